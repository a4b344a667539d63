//! Where pods may run: affinity and topology spread.

use serde_json::Value;

use super::{faulty, list, names, selector, text};
use crate::{ErrorList, FieldError, Path};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

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
            node_term(&term["preference"], &path.child("preference"), errors);
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
        node_term(term, &path.index(at), errors);
    }
}

fn node_term(term: &Value, path: &Path, errors: &mut ErrorList) {
    for (at, requirement) in list(term, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").index(at);
        let values = list(requirement, "values");
        let place = path.child("values");
        match text(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                errors.push(FieldError::required(
                    &place,
                    "must be specified when `operator` is 'In' or 'NotIn'",
                ));
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
            other => errors.push(FieldError::invalid(
                &path.child("operator"),
                other,
                "not a valid selector operator",
            )),
        }
        let key = text(requirement, "key");
        faulty(names::qualified_name(key), key, &path.child("key"), errors);
    }
}

fn pod_term(term: &Value, path: &Path, errors: &mut ErrorList) {
    for key in ["labelSelector", "namespaceSelector"] {
        selector(&term[key], &path.child(key), errors);
    }
    for name in list(term, "namespaces").iter().filter_map(Value::as_str) {
        faulty(names::dns1123_label(name), name, &path.child("namespace"), errors);
    }
    let key = text(term, "topologyKey");
    let path = path.child("topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&path, "can not be empty"));
    }
    faulty(names::qualified_name(key), key, &path, errors);
}

/// A pod's `topologySpreadConstraints`.
pub(super) fn spread(constraints: &[Value], path: &Path, errors: &mut ErrorList) {
    for (at, constraint) in constraints.iter().enumerate() {
        let path = path.index(at);
        let skew = constraint["maxSkew"].as_i64().unwrap_or_default();
        if skew <= 0 {
            errors.push(FieldError::invalid(&path.child("maxSkew"), skew, "must be greater than zero"));
        }
        if text(constraint, "topologyKey").is_empty() {
            errors.push(FieldError::required(&path.child("topologyKey"), "can not be empty"));
        }
        let action = text(constraint, "whenUnsatisfiable");
        let known = ["DoNotSchedule", "ScheduleAnyway"];
        if !known.contains(&action) {
            errors.push(FieldError::not_supported(&path.child("whenUnsatisfiable"), action, &known));
        }
        selector(&constraint["labelSelector"], &path.child("labelSelector"), errors);
    }
}
