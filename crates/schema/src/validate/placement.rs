//! Where pods may run: affinity, tolerations and topology spread.

use serde_json::Value;

use super::{faulty, list, names, selector, text};
use crate::{ErrorList, FieldError, Path};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// A pod's `affinity`.
pub(super) fn affinity(affinity: &Value, path: &Path, errors: &mut ErrorList) {
    let node = &affinity["nodeAffinity"];
    if node.is_object() {
        let path = path.child("nodeAffinity");
        if node[REQUIRED].is_object() {
            node_selector(&node[REQUIRED], &path.child(REQUIRED), errors);
        }
        for (at, term) in list(node, PREFERRED).iter().enumerate() {
            let path = path.child(PREFERRED).index(at);
            weight(&term["weight"], &path, errors);
            // Values of labels that cannot be are only asked of what is required.
            node_term(&term["preference"], false, &path.child("preference"), errors);
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let path = path.child(kind);
        for (at, term) in list(&affinity[kind], REQUIRED).iter().enumerate() {
            pod_term(term, &path.child(REQUIRED).index(at), errors);
        }
        for (at, term) in list(&affinity[kind], PREFERRED).iter().enumerate() {
            let path = path.child(PREFERRED).index(at);
            weight(&term["weight"], &path, errors);
            pod_term(&term["podAffinityTerm"], &path.child("podAffinityTerm"), errors);
        }
    }
}

fn weight(weight: &Value, path: &Path, errors: &mut ErrorList) {
    let weight = weight.as_i64().unwrap_or_default();
    if !(1..=100).contains(&weight) {
        errors.push(FieldError::invalid(&path.child("weight"), weight, "must be in the range 1-100"));
    }
}

/// A `NodeSelector`.
pub(super) fn node_selector(node_selector: &Value, path: &Path, errors: &mut ErrorList) {
    let terms = list(node_selector, "nodeSelectorTerms");
    let path = path.child("nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(FieldError::required(&path, "must have at least one node selector term"));
    }
    for (at, term) in terms.iter().enumerate() {
        node_term(term, true, &path.index(at), errors);
    }
}

fn node_term(term: &Value, with_values: bool, path: &Path, errors: &mut ErrorList) {
    for (at, requirement) in list(term, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").index(at);
        let values = list(requirement, "values");
        let place = path.child("values");
        match text(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(&place, detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(&place, detail));
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(FieldError::required(&place, detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => not_an_operator(other, &path, errors),
        }
        let key = text(requirement, "key");
        faulty(names::qualified_name(key), key, &path.child("key"), errors);
        for (at, value) in values.iter().filter_map(Value::as_str).enumerate().filter(|_| with_values) {
            faulty(names::label_value(value), value, &place.index(at), errors);
        }
    }
    for (at, requirement) in list(term, "matchFields").iter().enumerate() {
        node_field(requirement, &path.child("matchFields").index(at), errors);
    }
}

fn not_an_operator(operator: &str, path: &Path, errors: &mut ErrorList) {
    let detail = "not a valid selector operator";
    errors.push(FieldError::invalid(&path.child("operator"), operator, detail));
}

/// A requirement about a field of the node: its name is the only one.
fn node_field(requirement: &Value, path: &Path, errors: &mut ErrorList) {
    let values = list(requirement, "values");
    match text(requirement, "operator") {
        "In" | "NotIn" => {
            if values.len() != 1 {
                let detail =
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(FieldError::required(&path.child("values"), detail));
            }
        }
        other => not_an_operator(other, path, errors),
    }
    let key = text(requirement, "key");
    if key != "metadata.name" {
        errors.push(FieldError::invalid(&path.child("key"), key, "not a valid field selector key"));
        return;
    }
    for (at, name) in values.iter().filter_map(Value::as_str).enumerate() {
        faulty(names::dns1123_subdomain(name), name, &path.child("values").index(at), errors);
    }
}

fn pod_term(term: &Value, path: &Path, errors: &mut ErrorList) {
    for key in ["labelSelector", "namespaceSelector"] {
        selector(&term[key], &path.child(key), errors);
    }
    for name in list(term, "namespaces").iter().filter_map(Value::as_str) {
        faulty(names::dns1123_label(name), name, &path.child("namespace"), errors);
    }
    label_keys(term, path, errors);
    let key = text(term, "topologyKey");
    let path = path.child("topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&path, "can not be empty"));
    }
    faulty(names::qualified_name(key), key, &path, errors);
}

/// Keys of labels whose values pods share, or do not share.
fn label_keys(object: &Value, path: &Path, errors: &mut ErrorList) {
    let selector = &object["labelSelector"];
    let keys = |field: &str| -> Vec<&str> { list(object, field).iter().filter_map(Value::as_str).collect() };
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let (keys, path) = (keys(field), path.child(field));
        if !keys.is_empty() && !selector.is_object() {
            errors.push(FieldError::forbidden(&path, "must not be specified when labelSelector is not set"));
            continue;
        }
        for (at, key) in keys.into_iter().enumerate() {
            faulty(names::qualified_name(key), key, &path.index(at), errors);
        }
    }
    let matched = keys("matchLabelKeys");
    let mut seen: Vec<&str> =
        selector["matchLabels"].as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    for requirement in list(selector, "matchExpressions") {
        let key = text(requirement, "key");
        // What admission adds to the selector stands there once more.
        if let Some(at) = matched.iter().rposition(|other| *other == key)
            && seen.contains(&key)
        {
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(&path.index(at), key, detail));
        }
        seen.push(key);
    }
    let mismatched = keys("mismatchLabelKeys");
    for (at, key) in matched.into_iter().enumerate().filter(|(_, key)| mismatched.contains(key)) {
        let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
        errors.push(FieldError::invalid(&path.child("matchLabelKeys").index(at), key, detail));
    }
}

/// A pod's `topologySpreadConstraints`.
pub(super) fn spread(constraints: &[Value], path: &Path, errors: &mut ErrorList) {
    for (at, constraint) in constraints.iter().enumerate() {
        let path = path.index(at);
        let skew = constraint["maxSkew"].as_i64().unwrap_or_default();
        if skew <= 0 {
            errors.push(FieldError::invalid(&path.child("maxSkew"), skew, "must be greater than zero"));
        }
        let (key, action) = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
        if key.is_empty() {
            errors.push(FieldError::required(&path.child("topologyKey"), "can not be empty"));
        }
        let known = ["DoNotSchedule", "ScheduleAnyway"];
        if !known.contains(&action) {
            errors.push(FieldError::not_supported(&path.child("whenUnsatisfiable"), action, &known));
        }
        let is_same =
            |other: &Value| text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == action;
        if constraints[at + 1..].iter().any(is_same) {
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&path, format!("{{{key}, {action}}}")));
        }
        min_domains(constraint, action, &path.child("minDomains"), errors);
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            let known = ["Honor", "Ignore"];
            if let Some(policy) = constraint[field].as_str().filter(|policy| !known.contains(policy)) {
                errors.push(FieldError::not_supported(&path.child(field), policy, &known));
            }
        }
        label_keys(constraint, &path, errors);
        selector(&constraint["labelSelector"], &path.child("labelSelector"), errors);
    }
}

fn min_domains(constraint: &Value, action: &str, path: &Path, errors: &mut ErrorList) {
    let Some(domains) = constraint["minDomains"].as_i64() else { return };
    if domains <= 0 {
        errors.push(FieldError::invalid(path, domains, "must be greater than zero"));
    }
    if action != "DoNotSchedule" {
        let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.push(FieldError::invalid(path, domains, detail));
    }
}

/// A pod's `tolerations`.
pub(super) fn tolerations(tolerations: &[Value], path: &Path, errors: &mut ErrorList) {
    for (at, toleration) in tolerations.iter().enumerate() {
        let path = path.index(at);
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        if !key.is_empty() {
            faulty(names::qualified_name(key), key, &path.child("key"), errors);
        }
        let (effect, value) = (text(toleration, "effect"), text(toleration, "value"));
        let operator_path = path.child("operator");
        if key.is_empty() && operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(&operator_path, operator, detail));
        }
        if toleration["tolerationSeconds"].is_i64() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(&path.child("effect"), effect, detail));
        }
        match operator {
            "" | "Equal" => {
                let faults = names::label_value(value);
                if !faults.is_empty() {
                    errors.push(FieldError::invalid(&operator_path, value, faults.join(";")));
                }
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(&operator_path, value, detail));
            }
            "Exists" => {}
            "Lt" | "Gt" => {
                let known = ["Equal", "Exists", "Lt", "Gt"];
                errors.push(FieldError::not_supported(&operator_path, operator, &known));
            }
            _ => errors.push(FieldError::not_supported(&operator_path, operator, &["Equal", "Exists"])),
        }
        if !effect.is_empty() && !EFFECTS.contains(&effect) {
            errors.push(FieldError::not_supported(&path.child("effect"), effect, &EFFECTS));
        }
    }
}
