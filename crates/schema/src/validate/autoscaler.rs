//! Autoscalers: what they scale, by which metrics, and how fast.

use serde_json::Value;

use super::{faulty, list, names, pod::container_resource_name, text};
use crate::{ErrorList, FieldError, Path, Quantity};

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
    for (at, metric) in list(spec, "metrics").iter().enumerate() {
        one_metric(metric, &path.child("metrics").index(at), errors);
    }
    let scales_to_zero =
        list(spec, "metrics").iter().any(|metric| matches!(text(metric, "type"), "Object" | "External"));
    if least == Some(0) && !scales_to_zero {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(&path.child("metrics"), detail));
    }
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &spec["behavior"][direction];
        if rules.is_object() {
            scaling_rules(rules, &path.child("behavior").child(direction), errors);
        }
    }
}

/// The kind and the name of an object of whatever group.
fn reference(target: &Value, path: &Path, errors: &mut ErrorList) {
    for field in ["kind", "name"] {
        match text(target, field) {
            "" => errors.push(FieldError::required(&path.child(field), "")),
            name => faulty(names::path_segment(name), name, &path.child(field), errors),
        }
    }
}

fn scale_target(target: &Value, path: &Path, errors: &mut ErrorList) {
    reference(target, path, errors);
    let version = text(target, "apiVersion");
    let detail = match version.matches('/').count() {
        0 => "apiVersion must specify API group".to_owned(),
        1 if version.starts_with('/') && version.len() > 1 => "apiVersion must specify API group".to_owned(),
        1 => return,
        _ => format!("unexpected GroupVersion string: {version}"),
    };
    errors.push(FieldError::invalid(&path.child("apiVersion"), version, detail));
}

/// The sources of metrics in the order in which the API server looks at them, by the types that they go with.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

fn one_metric(metric: &Value, path: &Path, errors: &mut ErrorList) {
    let kind = text(metric, "type");
    let place = path.child("type");
    if kind.is_empty() {
        errors.push(FieldError::required(&place, "must specify a metric source type"));
    }
    let expected = SOURCES.iter().find(|(name, _)| *name == kind).map(|(_, field)| *field);
    if expected.is_none() {
        errors.push(FieldError::not_supported(&place, kind, &TYPES));
    }
    let given: Vec<&str> =
        SOURCES.iter().map(|(_, field)| *field).filter(|field| metric[*field].is_object()).collect();
    if let Some(first) = given.first() {
        source(&metric[*first], first, &path.child(first), errors);
    }
    match expected {
        Some(field) if !given.contains(&field) => {
            let detail = "must populate information for the given metric source";
            errors.push(FieldError::required(&path.child(field), detail));
        }
        Some(_) => {}
        // The server says it twice.
        None => errors.push(FieldError::not_supported(&place, kind, &TYPES)),
    }
    if given.len() != 1 {
        for field in given.into_iter().filter(|field| Some(*field) != expected) {
            let detail = "must populate the given metric source only";
            errors.push(FieldError::forbidden(&path.child(field), detail));
        }
    }
}

fn source(source: &Value, field: &str, path: &Path, errors: &mut ErrorList) {
    if field == "object" {
        reference(&source["describedObject"], &path.child("describedObject"), errors);
    }
    if matches!(field, "resource" | "containerResource") {
        let (name, place) = (text(source, "name"), path.child("name"));
        match name {
            "" => errors.push(FieldError::required(&place, "must specify a resource name")),
            name if field == "containerResource" => container_resource_name(name, &place, errors),
            _ => {}
        }
    } else {
        let (name, place) = (text(&source["metric"], "name"), path.child("metric").child("name"));
        match name {
            "" => errors.push(FieldError::required(&place, "must specify a metric name")),
            name => faulty(names::path_segment(name), name, &place, errors),
        }
    }
    if field == "containerResource" {
        let (name, place) = (text(source, "container"), path.child("container"));
        match name {
            "" => errors.push(FieldError::required(&place, "must specify a container")),
            name => faulty(names::dns1123_label(name), name, &place, errors),
        }
    }
    let (target, path) = (&source["target"], path.child("target"));
    metric_target(target, &path, errors);
    let has = |field: &str| !target[field].is_null();
    let missing = match field {
        "object" if !has("value") && !has("averageValue") => {
            ("averageValue", "must set either a target value or averageValue")
        }
        "external" if !has("value") && !has("averageValue") => {
            ("averageValue", "must set either a target value for metric or a per-pod target")
        }
        "pods" if !has("averageValue") => ("averageValue", "must specify a positive target averageValue"),
        "resource" | "containerResource" if !has("averageUtilization") && !has("averageValue") => {
            ("averageUtilization", "must set either a target raw value or a target utilization")
        }
        _ => ("", ""),
    };
    if !missing.0.is_empty() {
        errors.push(FieldError::required(&path.child(missing.0), missing.1));
    }
    if field == "external" && has("value") && has("averageValue") {
        let detail = "may not set both a target value for metric and a per-pod target";
        errors.push(FieldError::forbidden(&path.child("value"), detail));
    }
    if matches!(field, "resource" | "containerResource") && has("averageUtilization") && has("averageValue") {
        let detail = "may not set both a target raw value and a target utilization";
        errors.push(FieldError::forbidden(&path.child("averageValue"), detail));
    }
}

fn metric_target(target: &Value, path: &Path, errors: &mut ErrorList) {
    let found = text(target, "type");
    if found.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "must specify a metric target type"));
    }
    if !matches!(found, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&path.child("type"), found, detail));
    }
    for field in ["value", "averageValue"] {
        let amount = target[field].as_str().and_then(|text| text.parse::<Quantity>().ok());
        if let Some(amount) = amount.filter(|amount| amount.signum() < 1) {
            errors.push(FieldError::invalid(&path.child(field), amount.to_string(), "must be positive"));
        }
    }
    if let Some(percent) = target["averageUtilization"].as_i64().filter(|percent| *percent < 1) {
        let path = path.child("averageUtilization");
        errors.push(FieldError::invalid(&path, percent, "must be greater than 0"));
    }
}

fn scaling_rules(rules: &Value, path: &Path, errors: &mut ErrorList) {
    const LONGEST: i64 = 3600;
    const LONGEST_PERIOD: i64 = 1800;
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
    let known = ["Disabled", "Max", "Min"];
    if let Some(policy) = rules["selectPolicy"].as_str().filter(|policy| !known.contains(policy)) {
        errors.push(FieldError::not_supported(&path.child("selectPolicy"), policy, &known));
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
        if let Some(seconds) = policy["periodSeconds"].as_i64().filter(|seconds| *seconds > LONGEST_PERIOD) {
            let detail = format!("must be less than or equal to {LONGEST_PERIOD}");
            errors.push(FieldError::invalid(&path.child("periodSeconds"), seconds, detail));
        }
    }
    let tolerance = rules["tolerance"].as_str().and_then(|text| text.parse::<Quantity>().ok());
    if let Some(tolerance) = tolerance.filter(|tolerance| tolerance.signum() < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("tolerance"), tolerance.to_string(), detail));
    }
}
