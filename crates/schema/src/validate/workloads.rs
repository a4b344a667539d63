//! Workloads and disruption budgets.

use serde_json::Value;

use super::{is_empty_selector, list, not_negative, pod, selector, selector_fault, text};
use crate::{ErrorList, FieldError, FieldRule, LabelSelector, Path};

const MISMATCH: &str = "`selector` does not match template `labels`";
const STATEFUL_SET_UPDATE: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

pub(super) fn deployment(spec: &Value, path: &Path, errors: &mut ErrorList) {
    not_negative(&spec["replicas"], &path.child("replicas"), errors);
    selected_template(spec, "Deployment", path, errors);
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
    selected_template(spec, "ReplicaSet", path, errors);
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
        errors.push(
            FieldError::invalid(&path.child("metadata").child("labels"), labels.clone(), MISMATCH)
                .by_rule(FieldRule::SelectorMatchesTemplate),
        );
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
            errors.push(
                FieldError::invalid(&selector_path, given.clone(), detail)
                    .by_rule(FieldRule::SelectorNotEmpty),
            );
        }
    }
}

/// A required selector and the template that it must match.
fn selected_template(spec: &Value, what: &str, path: &Path, errors: &mut ErrorList) {
    required_selector(spec, "deployment", path, errors);
    let template_path = path.child("template");
    let selector_path = path.child("selector");
    if spec["selector"].is_object()
        && let Some(why) = selector_fault(&spec["selector"])
    {
        let shown = spec["selector"].clone();
        let detail = if what == "ReplicaSet" { "invalid label selector".to_owned() } else { why };
        errors.push(FieldError::invalid(&selector_path, shown, detail));
    }
    if selector_fault(&spec["selector"]).is_none() {
        matching_labels(&spec["selector"], &spec["template"], &template_path, errors);
    }
    workload_template(&spec["template"], what, &template_path, errors);
}

/// The template of what keeps pods running: they always restart, and never end.
fn workload_template(template: &Value, what: &str, path: &Path, errors: &mut ErrorList) {
    pod::template(template, path, errors);
    always_restarts(template, path, errors);
    if !template["spec"]["activeDeadlineSeconds"].is_null() {
        let detail = format!("activeDeadlineSeconds in {what} is not Supported");
        errors.push(FieldError::forbidden(&path.child("spec").child("activeDeadlineSeconds"), detail));
    }
}

pub(super) fn matching_labels(given: &Value, template: &Value, path: &Path, errors: &mut ErrorList) {
    let labels = &template["metadata"]["labels"];
    let matches = match LabelSelector::from_object(given) {
        Ok(Some(found)) => found.matches(labels),
        Ok(None) => false,
        Err(_) => true,
    };
    if !matches {
        errors.push(
            FieldError::invalid(&path.child("metadata").child("labels"), labels.clone(), MISMATCH)
                .by_rule(FieldRule::SelectorMatchesTemplate),
        );
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
    if let Some(why) = selector_fault(&spec["selector"]) {
        let place = Path::new(path.to_string().replace(".template", ".selector"));
        errors.push(FieldError::invalid(&place, spec["selector"].clone(), why));
    } else {
        matching_labels(&spec["selector"], &spec["template"], &path, errors);
    }
    let metadata = &spec["template"]["metadata"];
    // Both are looked at once by the set and once by the template.
    super::labels(&metadata["labels"], &path.child("labels"), errors);
    super::annotations(&metadata["annotations"], &path.child("annotations"), errors);
    workload_template(&with_claims(&spec["template"], claims), "StatefulSet", &path, errors);
}

/// The template of a stateful set as its pods will be: claims stand for volumes of the same name, and the
/// controller sets what pods are called.
fn with_claims(template: &Value, claims: &[Value]) -> Value {
    let mut template = template.clone();
    let Some(spec) = template["spec"].as_object_mut() else { return template };
    spec.remove("subdomain");
    spec.remove("hostname");
    let name = |claim: &Value| claim["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut names: Vec<String> = claims.iter().map(name).collect();
    names.dedup();
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

/// The fields below `spec` of a StatefulSet that may change; all others stay as they were made.
pub const STATEFUL_SET_CHANGEABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

pub(super) fn stateful_set_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    let fixed = |object: &Value| {
        let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
        for field in STATEFUL_SET_CHANGEABLE {
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
    let selected = match LabelSelector::from_object(given) {
        Ok(found) => found.is_some_and(|found| found.matches(labels)),
        Err(_) => true,
    };
    if !selected && selector_fault(given).is_none() {
        let path = template_path.child("metadata").child("labels");
        errors.push(
            FieldError::invalid(&path, labels.clone(), MISMATCH).by_rule(FieldRule::SelectorMatchesTemplate),
        );
    }
    if given.is_object() && is_empty_selector(given) {
        let detail = "empty selector is invalid for daemonset";
        let error = FieldError::invalid(&path.child("selector"), given.clone(), detail);
        errors.push(error.by_rule(FieldRule::SelectorNotEmpty));
    }
    workload_template(&spec["template"], "DaemonSet", &template_path, errors);
    not_negative(&spec["minReadySeconds"], &path.child("minReadySeconds"), errors);
    not_negative(&spec["revisionHistoryLimit"], &path.child("revisionHistoryLimit"), errors);
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
    for (field, value) in [("maxUnavailable", unavailable), ("maxSurge", surge)] {
        count_or_share(value, &path.child(field), errors);
        if value.is_string() && share(value) > 100 {
            let detail = "must not be greater than 100%";
            errors.push(FieldError::invalid(&path.child(field), value.clone(), detail));
        }
    }
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
