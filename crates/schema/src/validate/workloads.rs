//! Workloads, jobs, autoscalers and disruption budgets.

use serde_json::Value;

use super::{immutable, is_empty_selector, labels, list, not_negative, one_of, pod, selector, text};
use crate::{ErrorList, FieldError, LabelSelector, Path};

const MISMATCH: &str = "`selector` does not match template `labels`";
const STATEFUL_SET_UPDATE: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

pub(super) fn deployment(spec: &Value, path: &Path, errors: &mut ErrorList) {
    not_negative(&spec["replicas"], &path.child("replicas"), errors);
    selected_template(spec, "deployment", path, errors);
    strategy(&spec["strategy"], &path.child("strategy"), errors);
    not_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
    not_negative(&spec["revisionHistoryLimit"], &path.child("revisionHistoryLimit"), errors);
    let deadline = &spec["progressDeadlineSeconds"];
    let path = path.child("progressDeadlineSeconds");
    not_negative(deadline, &path, errors);
    if let Some(seconds) = deadline.as_i64()
        && seconds <= spec["minReadySeconds"].as_i64().unwrap_or_default()
    {
        errors.push(FieldError::invalid(&path, seconds, "must be greater than minReadySeconds"));
    }
}

pub(super) fn replica_set(spec: &Value, path: &Path, errors: &mut ErrorList) {
    not_negative(&spec["replicas"], &path.child("replicas"), errors);
    not_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
    selected_template(spec, "deployment", path, errors);
}

fn is_missing(value: &Value) -> bool {
    !value.is_object()
}

/// A selector that must be there and select something.
fn required_selector(spec: &Value, what: &str, path: &Path, errors: &mut ErrorList) {
    let given = &spec["selector"];
    let selector_path = path.child("selector");
    if is_missing(given) {
        errors.push(FieldError::required(&selector_path, ""));
    } else {
        selector(given, &selector_path, errors);
        if is_empty_selector(given) {
            let detail = format!("empty selector is invalid for {what}");
            errors.push(FieldError::invalid(&selector_path, given.clone(), detail));
        }
    }
}

/// A required selector and the template that it must match.
fn selected_template(spec: &Value, what: &str, path: &Path, errors: &mut ErrorList) {
    required_selector(spec, what, path, errors);
    let template_path = path.child("template");
    matching_labels(&spec["selector"], &spec["template"], &template_path, errors);
    pod::template(&spec["template"], &template_path, errors);
    always_restarts(&spec["template"], &template_path, errors);
}

fn matching_labels(given: &Value, template: &Value, path: &Path, errors: &mut ErrorList) {
    let labels = &template["metadata"]["labels"];
    let matches = match LabelSelector::from_object(given) {
        Ok(Some(found)) => found.matches(labels),
        Ok(None) => false,
        Err(_) => true,
    };
    if !matches {
        errors.push(FieldError::invalid(&path.child("metadata").child("labels"), labels.clone(), MISMATCH));
    }
}

fn always_restarts(template: &Value, path: &Path, errors: &mut ErrorList) {
    let policy = text(&template["spec"], "restartPolicy");
    if policy != "Always" {
        errors.push(FieldError::not_supported(
            &path.child("spec").child("restartPolicy"),
            policy,
            &["Always"],
        ));
    }
}

fn strategy(strategy: &Value, path: &Path, errors: &mut ErrorList) {
    let rolling = &strategy["rollingUpdate"];
    match text(strategy, "type") {
        "Recreate" if rolling.is_object() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(FieldError::forbidden(&path.child("rollingUpdate"), detail));
        }
        "Recreate" => {}
        "RollingUpdate" => rolling_update(rolling, &path.child("rollingUpdate"), errors),
        _ => errors.push(FieldError::not_supported(path, strategy.clone(), &["Recreate", "RollingUpdate"])),
    }
}

fn share(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_str()?.strip_suffix('%')?.parse().ok()).unwrap_or_default()
}

/// A count or a percentage.
fn count_or_share(value: &Value, path: &Path, errors: &mut ErrorList) {
    let percent = |text: &str| {
        text.strip_suffix('%')
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    };
    match value {
        Value::String(text) if !percent(text) => {
            let detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            errors.push(FieldError::invalid(path, text.as_str(), detail));
        }
        value => not_negative(value, path, errors),
    }
}

fn rolling_update(rolling: &Value, path: &Path, errors: &mut ErrorList) {
    let unavailable = &rolling["maxUnavailable"];
    count_or_share(unavailable, &path.child("maxUnavailable"), errors);
    count_or_share(&rolling["maxSurge"], &path.child("maxSurge"), errors);
    let path = path.child("maxUnavailable");
    if share(unavailable) == 0 && share(&rolling["maxSurge"]) == 0 {
        errors.push(FieldError::invalid(&path, unavailable.clone(), "may not be 0 when `maxSurge` is 0"));
    }
    if unavailable.is_string() && share(unavailable) > 100 {
        errors.push(FieldError::invalid(&path, unavailable.clone(), "must not be greater than 100%"));
    }
}

pub(super) fn stateful_set(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(&path.child("podManagementPolicy"), policy, detail));
    }
    let strategy = &spec["updateStrategy"];
    if !matches!(text(strategy, "type"), "RollingUpdate" | "OnDelete") {
        let detail = "must be 'RollingUpdate' or 'OnDelete'";
        errors.push(FieldError::invalid(&path.child("updateStrategy"), strategy.clone(), detail));
    }
    not_negative(&spec["replicas"], &path.child("replicas"), errors);
    not_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
    required_selector(spec, "statefulset", path, errors);
    // Of a stateful set's template the API server checks no more: volumes come from claim templates.
    let (template, path) = (&spec["template"], path.child("template"));
    matching_labels(&spec["selector"], template, &path, errors);
    labels(&template["metadata"]["labels"], &path.child("labels"), errors);
    always_restarts(template, &path, errors);
}

pub(super) fn stateful_set_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    let fixed = |object: &Value| {
        let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
        for field in [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ] {
            spec.remove(field);
        }
        spec
    };
    if fixed(new) != fixed(old) {
        errors.push(FieldError::forbidden(&Path::new("spec"), STATEFUL_SET_UPDATE));
    }
}

pub(super) fn daemon_set(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let given = &spec["selector"];
    let template_path = path.child("template");
    selector(given, &path.child("selector"), errors);
    let labels = &spec["template"]["metadata"]["labels"];
    let selected =
        LabelSelector::from_object(given).ok().flatten().is_some_and(|found| found.matches(labels));
    if !selected {
        let path = template_path.child("metadata").child("labels");
        errors.push(FieldError::invalid(&path, labels.clone(), MISMATCH));
    }
    if given.is_object() && is_empty_selector(given) {
        let detail = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid(&path.child("selector"), given.clone(), detail));
    }
    pod::template(&spec["template"], &template_path, errors);
    always_restarts(&spec["template"], &template_path, errors);
    not_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
    if !matches!(text(&spec["updateStrategy"], "type"), "RollingUpdate" | "OnDelete") {
        let path = path.child("updateStrategy");
        let supported = ["RollingUpdate", "OnDelete"];
        errors.push(FieldError::not_supported(&path, spec["updateStrategy"].clone(), &supported));
    }
}

pub(super) fn job(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
    ] {
        not_negative(&spec[field], &path.child(field), errors);
    }
    if spec["completionMode"] == "Indexed" && spec["completions"].is_null() {
        errors.push(FieldError::required(&path.child("completions"), "when completion mode is Indexed"));
    }
    pod::template(&spec["template"], &path.child("template"), errors);
    let policy = text(&spec["template"]["spec"], "restartPolicy");
    if !matches!(policy, "OnFailure" | "Never") {
        let path = path.child("template").child("spec").child("restartPolicy");
        // An unset policy is Always by default: the message does not show it.
        let error = FieldError::required(&path, "valid values: \"OnFailure\", \"Never\"");
        errors.push(match policy {
            "Always" => error,
            policy => FieldError::not_supported(&path, policy, &["OnFailure", "Never"]),
        });
    }
}

pub(super) fn job_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    let indexed = new["spec"]["completionMode"] == "Indexed";
    if !indexed {
        immutable(new, old, "/spec/completions", errors);
    }
    immutable(new, old, "/spec/selector", errors);
    if old["spec"]["suspend"] != true {
        immutable(new, old, "/spec/template", errors);
    }
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        immutable(new, old, &format!("/spec/{field}"), errors);
    }
}

pub(super) fn cron_job(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        errors.push(FieldError::required(&path.child("schedule"), ""));
    } else {
        let fields = schedule.split_whitespace().count();
        if fields != 5 && !schedule.starts_with('@') {
            let detail = format!(
                "expected exactly 5 fields, found {fields}: [{}]",
                schedule.split_whitespace().collect::<Vec<_>>().join(" ")
            );
            errors.push(FieldError::invalid(&path.child("schedule"), schedule, detail));
        }
    }
    not_negative(&spec["startingDeadlineSeconds"], &path.child("startingDeadlineSeconds"), errors);
    let policies = ["Allow", "Forbid", "Replace"];
    one_of(text(spec, "concurrencyPolicy"), &policies, &path.child("concurrencyPolicy"), errors);
    job(&spec["jobTemplate"]["spec"], &path.child("jobTemplate").child("spec"), errors);
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        not_negative(&spec[field], &path.child(field), errors);
    }
}

pub(super) fn autoscaler(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let (least, most) = (spec["minReplicas"].as_i64(), spec["maxReplicas"].as_i64().unwrap_or_default());
    if let Some(least) = least.filter(|least| *least < 1) {
        let detail = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(&path.child("minReplicas"), least, detail));
    }
    if most < 1 {
        errors.push(FieldError::invalid(&path.child("maxReplicas"), most, "must be greater than 0"));
    }
    if least.is_some_and(|least| most < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(&path.child("maxReplicas"), most, detail));
    }
    let target = &spec["scaleTargetRef"];
    for field in ["kind", "name"].into_iter().filter(|field| text(target, field).is_empty()) {
        errors.push(FieldError::required(&path.child("scaleTargetRef").child(field), ""));
    }
    for (at, metric) in list(spec, "metrics").iter().enumerate() {
        if text(metric, "type").is_empty() {
            let path = path.child("metrics").index(at).child("type");
            errors.push(FieldError::required(&path, "must specify a metric source type"));
        }
    }
}

pub(super) fn disruption_budget(spec: &Value, path: &Path, errors: &mut ErrorList) {
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid(path, spec.clone(), detail));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        if !spec[field].is_null() {
            count_or_share(&spec[field], &path.child(field), errors);
        }
    }
    selector(&spec["selector"], &path.child("selector"), errors);
}
