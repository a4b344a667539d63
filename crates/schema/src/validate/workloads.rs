//! Workloads, jobs, autoscalers and disruption budgets.

use serde_json::Value;

use super::{immutable, is_empty_selector, list, not_negative, one_of, pod, selector, text};
use tiphys_gocompat::cron::Schedule;

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

pub(super) fn replication_controller(spec: &Value, path: &Path, errors: &mut ErrorList) {
    not_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
    let selector = spec["selector"].as_object().filter(|labels| !labels.is_empty());
    if selector.is_none() {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    not_negative(&spec["replicas"], &path.child("replicas"), errors);
    let (template, path) = (&spec["template"], path.child("template"));
    if is_missing(template) {
        errors.push(FieldError::required(&path, ""));
        return;
    }
    let labels = &template["metadata"]["labels"];
    if selector.is_some_and(|selector| selector.iter().any(|(key, value)| labels[key] != *value)) {
        errors.push(FieldError::invalid(&path.child("metadata").child("labels"), labels.clone(), MISMATCH));
    }
    pod::template(template, &path, errors);
    always_restarts(template, &path, errors);
    if template["spec"]["activeDeadlineSeconds"].is_i64() {
        let detail = "activeDeadlineSeconds in ReplicationController is not Supported";
        errors.push(FieldError::forbidden(&path.child("spec").child("activeDeadlineSeconds"), detail));
    }
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
        kind => {
            let shown = format!("{{\"Type\":{},\"RollingUpdate\":null}}", Value::from(kind));
            let fault = FieldError::not_supported(path, strategy.clone(), &["Recreate", "RollingUpdate"]);
            errors.push(fault.shown_as(shown));
        }
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

/// `is_new` is false for updates: what cannot be changed is not judged again.
pub(super) fn stateful_set(spec: &Value, is_new: bool, path: &Path, errors: &mut ErrorList) {
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(&path.child("podManagementPolicy"), policy, detail));
    }
    let strategy = &spec["updateStrategy"];
    if !matches!(text(strategy, "type"), "RollingUpdate" | "OnDelete") {
        let detail = "must be 'RollingUpdate' or 'OnDelete'";
        let shown = format!(
            "{{\"Type\":{},\"RollingUpdate\":{}}}",
            Value::from(text(strategy, "type")),
            internal_rolling(&strategy["rollingUpdate"])
        );
        errors.push(FieldError::invalid_as(&path.child("updateStrategy"), shown, detail));
    }
    let rolling = &strategy["rollingUpdate"];
    let place = path.child("updateStrategy").child("rollingUpdate");
    match text(strategy, "type") {
        "OnDelete" if rolling.is_object() => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(FieldError::invalid_as(&place, internal_rolling(rolling), detail));
        }
        "RollingUpdate" => not_negative(&rolling["partition"], &place.child("partition"), errors),
        _ => {}
    }
    for field in ["whenDeleted", "whenScaled"] {
        let policy = text(&spec["persistentVolumeClaimRetentionPolicy"], field);
        if !matches!(policy, "" | "Retain" | "Delete") {
            let path = path.child("persistentVolumeClaimRetentionPolicy").child(field);
            errors.push(FieldError::not_supported(&path, policy, &["Retain", "Delete"]));
        }
    }
    let claims = list(spec, "volumeClaimTemplates");
    for (at, claim) in claims.iter().enumerate().filter(|_| is_new) {
        let path = path.child("volumeClaimTemplates").index(at).child("spec");
        super::storage::claim(&claim["spec"], &path, errors);
    }
    not_negative(&spec["replicas"], &path.child("replicas"), errors);
    not_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
    not_negative(&spec["ordinals"]["start"], &path.child("ordinals.start"), errors);
    let service = text(spec, "serviceName");
    if is_new && !service.is_empty() {
        super::faulty(super::names::dns1123_label(service), service, &path.child("serviceName"), errors);
    }
    required_selector(spec, "statefulset", path, errors);
    let path = path.child("template");
    matching_labels(&spec["selector"], &spec["template"], &path, errors);
    pod::template(&with_claims(&spec["template"], claims), &path, errors);
    always_restarts(&spec["template"], &path, errors);
}

/// The template of a stateful set as its pods will be: claims stand for volumes of the same name, and the
/// controller sets what pods are called.
fn with_claims(template: &Value, claims: &[Value]) -> Value {
    let mut template = template.clone();
    let Some(spec) = template["spec"].as_object_mut() else { return template };
    spec.remove("subdomain");
    spec.remove("hostname");
    let name = |claim: &Value| claim["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = claims.iter().map(name).collect();
    let claimed = names
        .iter()
        .map(|name| serde_json::json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
    let given = spec.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
    let others = given.into_iter().filter(|volume| !names.iter().any(|name| volume["name"] == name.as_str()));
    let volumes: Vec<Value> = claimed.chain(others).collect();
    spec.insert("volumes".into(), volumes.into());
    template
}

/// A rolling update as the API server's own type prints it.
fn internal_rolling(rolling: &Value) -> String {
    if !rolling.is_object() {
        return "null".into();
    }
    let partition = rolling["partition"].as_i64().unwrap_or_default();
    format!("{{\"Partition\":{partition},\"MaxUnavailable\":{}}}", rolling["maxUnavailable"])
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
        let kind = Value::from(text(&spec["updateStrategy"], "type"));
        let fault = FieldError::not_supported(&path, spec["updateStrategy"].clone(), &supported);
        errors.push(fault.shown_as(format!("{{\"Type\":{kind},\"RollingUpdate\":null}}")));
    } else if text(&spec["updateStrategy"], "type") == "RollingUpdate" {
        let path = path.child("updateStrategy").child("rollingUpdate");
        daemon_rolling(&spec["updateStrategy"]["rollingUpdate"], &path, errors);
    }
}

fn daemon_rolling(rolling: &Value, path: &Path, errors: &mut ErrorList) {
    let (unavailable, surge) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
    count_or_share(unavailable, &path.child("maxUnavailable"), errors);
    count_or_share(surge, &path.child("maxSurge"), errors);
    match (share(unavailable) != 0, share(surge) != 0) {
        (true, true) => {
            let detail = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid(&path.child("maxSurge"), surge.clone(), detail));
        }
        (false, false) => {
            let detail = "cannot be 0 when maxSurge is 0";
            errors.push(FieldError::required(&path.child("maxUnavailable"), detail));
        }
        _ => {}
    }
}

/// The counts in the status of a workload: none of `parts` is above the number of its pods, and
/// no more are available than are ready, which messages call `ready`.
pub(super) fn counts(status: &Value, parts: &[&str], ready: &str, errors: &mut ErrorList) {
    let replicas = status["replicas"].as_i64().unwrap_or_default();
    let path = Path::new("status");
    for field in parts {
        let count = status[*field].as_i64().unwrap_or_default();
        if count > replicas {
            let detail = "cannot be greater than status.replicas";
            errors.push(FieldError::invalid(&path.child(field), count, detail));
        }
    }
    let available = status["availableReplicas"].as_i64().unwrap_or_default();
    if available > status["readyReplicas"].as_i64().unwrap_or_default() {
        let detail = format!("cannot be greater than {ready}");
        errors.push(FieldError::invalid(&path.child("availableReplicas"), available, detail));
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
    for (field, known) in [
        ("completionMode", ["NonIndexed", "Indexed"]),
        ("podReplacementPolicy", ["Failed", "TerminatingOrFailed"]),
    ] {
        let value = text(spec, field);
        if !value.is_empty() && !known.contains(&value) {
            errors.push(FieldError::not_supported(&path.child(field), value, &known));
        }
    }
    let generated = spec["template"]["metadata"]["labels"]["batch.kubernetes.io/controller-uid"].as_str();
    if let Some(uid) = generated.filter(|_| spec["manualSelector"] != true) {
        let own = serde_json::json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
        if spec["selector"].is_object() && spec["selector"] != own {
            let detail = "`selector` not auto-generated";
            errors.push(FieldError::invalid(&path.child("selector"), spec["selector"].clone(), detail));
        }
        matching_labels(&spec["selector"], &spec["template"], &path.child("template"), errors);
    }
    failure_policy(&spec["podFailurePolicy"], &path.child("podFailurePolicy"), errors);
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

fn failure_policy(policy: &Value, path: &Path, errors: &mut ErrorList) {
    let known = ["Count", "FailIndex", "FailJob", "Ignore"];
    for (at, rule) in list(policy, "rules").iter().enumerate() {
        let path = path.child("rules").index(at);
        let action = text(rule, "action");
        if action.is_empty() {
            errors.push(FieldError::required(
                &path.child("action"),
                "valid values: \"Count\", \"FailIndex\", \"FailJob\", \"Ignore\"",
            ));
        } else if !known.contains(&action) {
            errors.push(FieldError::not_supported(&path.child("action"), action, &known));
        }
        let given = usize::from(rule["onExitCodes"].is_object())
            + usize::from(!list(rule, "onPodConditions").is_empty());
        if given == 0 {
            let detail = "specifying one of OnExitCodes and OnPodConditions is required";
            errors.push(FieldError::new(crate::ErrorKind::Invalid, &path, None, detail));
        }
    }
}

pub(super) fn job_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    if new["spec"]["selector"].is_null() {
        errors.push(FieldError::required(&Path::new("spec.selector"), ""));
        let labels = new["spec"]["template"]["metadata"]["labels"].clone();
        let path = Path::new("spec.template.metadata.labels");
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(&path, labels, detail));
    }
    let indexed = new["spec"]["completionMode"] == "Indexed";
    if !indexed {
        immutable(new, old, "/spec/completions", errors);
    }
    immutable(new, old, "/spec/selector", errors);
    if old["spec"]["suspend"] != true {
        let (template, before) = (&new["spec"]["template"], &old["spec"]["template"]);
        if template != before {
            let shown = super::internal::compact("PodTemplateSpec", template);
            let path = Path::new("spec.template");
            errors.push(FieldError::invalid_as(&path, shown, "field is immutable"));
        }
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
        let path = path.child("schedule");
        if let Err(error) = Schedule::parse(schedule) {
            errors.push(FieldError::invalid(&path, schedule, error.to_string()));
        }
        if schedule.contains("TZ") {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.push(FieldError::invalid(&path, schedule, detail));
        }
    }
    if let Some(zone) = spec["timeZone"].as_str() {
        time_zone(zone, &path.child("timeZone"), errors);
    }
    if spec["jobTemplate"]["spec"]["manualSelector"] == true {
        let path = path.child("jobTemplate").child("spec").child("manualSelector");
        errors.push(FieldError::not_supported(&path, true, &["nil", "false"]));
    }
    not_negative(&spec["startingDeadlineSeconds"], &path.child("startingDeadlineSeconds"), errors);
    let policies = ["Allow", "Forbid", "Replace"];
    one_of(text(spec, "concurrencyPolicy"), &policies, &path.child("concurrencyPolicy"), errors);
    job(&spec["jobTemplate"]["spec"], &path.child("jobTemplate").child("spec"), errors);
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        not_negative(&spec[field], &path.child(field), errors);
    }
}

/// The first number of a schedule that its field does not have.
/// The zone of a schedule has to be in the zone database, under just this name.
fn time_zone(name: &str, path: &Path, errors: &mut ErrorList) {
    let mut refuse = |detail: String| errors.push(FieldError::invalid(path, name, detail));
    if name.is_empty() {
        return refuse("timeZone must be nil or non-empty string".to_owned());
    }
    let is_part = |part: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
        (1..=14).contains(&part.len())
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.chars().all(allowed)
    };
    let unknown = format!("unknown time zone {name}");
    if !name.split('/').all(is_part) {
        return refuse(unknown);
    }
    if name.eq_ignore_ascii_case("Local") {
        refuse(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones".to_owned(),
        );
    }
    if name != "Local" && tiphys_gocompat::time::zone(name).is_none() {
        refuse(unknown);
    }
}

pub(super) fn autoscaler(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let (least, most) = (spec["minReplicas"].as_i64(), spec["maxReplicas"].as_i64().unwrap_or_default());
    if let Some(least) = least.filter(|least| *least < 1) {
        let detail = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(&path.child("minReplicas"), least, detail));
    }
    if most == 0 {
        let detail = "must be set and greater than 0";
        errors.push(FieldError::required(&path.child("maxReplicas"), detail));
    } else if most < 0 {
        let detail = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(&path.child("maxReplicas"), most, detail));
    }
    if least.is_some_and(|least| most < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(&path.child("maxReplicas"), most, detail));
    }
    scale_target(&spec["scaleTargetRef"], &path.child("scaleTargetRef"), errors);
    let scales_to_zero =
        list(spec, "metrics").iter().any(|metric| matches!(text(metric, "type"), "Object" | "External"));
    if least == Some(0) && !scales_to_zero {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(&path.child("metrics"), detail));
    }
    for (at, metric) in list(spec, "metrics").iter().enumerate() {
        one_metric(metric, &path.child("metrics").index(at), errors);
    }
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &spec["behavior"][direction];
        if rules.is_object() {
            scaling_rules(rules, &path.child("behavior").child(direction), errors);
        }
    }
}

fn scale_target(target: &Value, path: &Path, errors: &mut ErrorList) {
    for field in ["kind", "name"] {
        match text(target, field) {
            "" => errors.push(FieldError::required(&path.child(field), "")),
            name => super::faulty(super::names::path_segment(name), name, &path.child(field), errors),
        }
    }
    let version = text(target, "apiVersion");
    let detail = match version.matches('/').count() {
        0 => "apiVersion must specify API group".to_owned(),
        1 if version.starts_with('/') && version.len() > 1 => "apiVersion must specify API group".to_owned(),
        1 => return,
        _ => format!("unexpected GroupVersion string: {version}"),
    };
    errors.push(FieldError::invalid(&path.child("apiVersion"), version, detail));
}

fn one_metric(metric: &Value, path: &Path, errors: &mut ErrorList) {
    let known = [
        ("ContainerResource", "containerResource"),
        ("External", "external"),
        ("Object", "object"),
        ("Pods", "pods"),
        ("Resource", "resource"),
    ];
    let kind = text(metric, "type");
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "must specify a metric source type"));
    }
    let Some((_, field)) = known.iter().find(|(name, _)| *name == kind) else {
        let names = known.map(|(name, _)| name);
        errors.push(FieldError::not_supported(&path.child("type"), kind, &names));
        return;
    };
    let (source, path) = (&metric[*field], path.child(field));
    if !source.is_object() {
        errors.push(FieldError::required(&path, "must populate information for the given metric source"));
        return;
    }
    let by_resource = matches!(kind, "Resource" | "ContainerResource");
    if by_resource && text(source, "name").is_empty() {
        errors.push(FieldError::required(&path.child("name"), "must specify a resource name"));
    }
    if !by_resource && text(&source["metric"], "name").is_empty() {
        let path = path.child("metric").child("name");
        errors.push(FieldError::required(&path, "must specify a metric name"));
    }
    metric_target(&source["target"], kind, &path.child("target"), errors);
}

fn metric_target(target: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    let found = text(target, "type");
    if found.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "must specify a metric target type"));
    }
    if !matches!(found, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&path.child("type"), found, detail));
    }
    for field in ["value", "averageValue"] {
        let amount = target[field].as_str().and_then(|text| text.parse::<crate::Quantity>().ok());
        if let Some(amount) = amount.filter(|amount| amount.signum() < 1) {
            errors.push(FieldError::invalid(&path.child(field), amount.to_string(), "must be positive"));
        }
    }
    if let Some(percent) = target["averageUtilization"].as_i64().filter(|percent| *percent < 1) {
        let path = path.child("averageUtilization");
        errors.push(FieldError::invalid(&path, percent, "must be greater than 0"));
    }
    let has = |field: &str| !target[field].is_null();
    match kind {
        "Resource" | "ContainerResource" if !has("averageUtilization") && !has("averageValue") => {
            let detail = "must set either a target raw value or a target utilization";
            errors.push(FieldError::required(&path.child("averageUtilization"), detail));
        }
        "Pods" if !has("averageValue") => {
            let detail = "must specify a positive target averageValue";
            errors.push(FieldError::required(&path.child("averageValue"), detail));
        }
        "Object" | "External" if !has("value") && !has("averageValue") => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.push(FieldError::required(&path.child("averageValue"), detail));
        }
        _ => {}
    }
}

fn scaling_rules(rules: &Value, path: &Path, errors: &mut ErrorList) {
    const LONGEST: i64 = 3600;
    let place = path.child("stabilizationWindowSeconds");
    match rules["stabilizationWindowSeconds"].as_i64() {
        Some(seconds) if seconds < 0 => {
            errors.push(FieldError::invalid(&place, seconds, "must be greater than or equal to zero"));
        }
        Some(seconds) if seconds > LONGEST => {
            let detail = format!("must be less than or equal to {LONGEST}");
            errors.push(FieldError::invalid(&place, seconds, detail));
        }
        _ => {}
    }
    let policies = path.child("policies");
    if list(rules, "policies").is_empty() {
        errors.push(FieldError::required(&policies, "must specify at least one Policy"));
    }
    for (at, policy) in list(rules, "policies").iter().enumerate() {
        let path = policies.index(at);
        let kind = text(policy, "type");
        if !matches!(kind, "Percent" | "Pods") {
            errors.push(FieldError::not_supported(&path.child("type"), kind, &["Percent", "Pods"]));
        }
        for field in ["value", "periodSeconds"] {
            let number = policy[field].as_i64().unwrap_or_default();
            if number <= 0 {
                errors.push(FieldError::invalid(&path.child(field), number, "must be greater than zero"));
            }
        }
    }
}

pub(super) fn disruption_budget(spec: &Value, path: &Path, errors: &mut ErrorList) {
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            spec["minAvailable"],
            spec["selector"],
            spec["maxUnavailable"],
            spec["unhealthyPodEvictionPolicy"]
        );
        errors.push(FieldError::invalid_as(path, shown, detail));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        if !spec[field].is_null() {
            count_or_share(&spec[field], &path.child(field), errors);
            if spec[field].is_string() && share(&spec[field]) > 100 {
                let detail = "must not be greater than 100%";
                errors.push(FieldError::invalid(&path.child(field), spec[field].clone(), detail));
            }
        }
    }
    let known = ["AlwaysAllow", "IfHealthyBudget"];
    if let Some(policy) = spec["unhealthyPodEvictionPolicy"].as_str().filter(|p| !known.contains(p)) {
        errors.push(FieldError::not_supported(&path.child("unhealthyPodEvictionPolicy"), policy, &known));
    }
    selector(&spec["selector"], &path.child("selector"), errors);
}
