//! ResourceQuotas and LimitRanges.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    list, names,
    pod::{container_resource_name, quantity, resource_name_faults},
    text,
};
use crate::{ErrorList, FieldError, Path, Quantity};

/// Counted in whole numbers.
const WHOLE: [&str; 9] = [
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

fn amount(value: &Value) -> Option<Quantity> {
    value.as_str()?.parse().ok()
}

fn amounts(holder: &Value, key: &str) -> BTreeMap<String, Quantity> {
    let entries = holder[key].as_object().into_iter().flatten();
    entries.filter_map(|(name, value)| Some((name.clone(), amount(value)?))).collect()
}

pub(super) fn quota(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let hard = path.child("hard");
    for (name, value) in spec["hard"].as_object().into_iter().flatten() {
        let path = hard.key(name);
        resource_name_faults(name, &path, errors);
        if !name.contains('/') && !is_standard(name) {
            errors.push(FieldError::invalid(&path, name.as_str(), "must be a standard resource for quota"));
        }
        if let Some(found) = amount(value) {
            quantity(name, &found, &path, errors);
        }
    }
    scopes(spec, path, errors);
    if spec["scopeSelector"].is_object() {
        scope_selector(spec, &path.child("scopeSelector").child("matchExpressions"), errors);
    }
}

/// Whether a quota of this resource is kept by the server itself.
fn is_standard(name: &str) -> bool {
    let inner = name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
    WHOLE.contains(&name)
        || name == "requests.storage"
        || matches!(inner, "cpu" | "memory" | "ephemeral-storage")
        || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
}

/// Whether a scope can bound a resource.
fn applies(scope: &str, resource: &str) -> bool {
    let of_pods = || {
        resource == "pods"
            || ["cpu", "memory", "ephemeral-storage"].contains(
                &resource.strip_prefix("requests.").or(resource.strip_prefix("limits.")).unwrap_or(resource),
            )
    };
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => of_pods(),
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}

fn bounded(spec: &Value) -> Vec<&str> {
    let hard = spec["hard"].as_object().into_iter().flatten();
    hard.map(|(name, _)| name.as_str()).filter(|name| is_standard(name)).collect()
}

const CONFLICTS: [(&str, &str); 2] = [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")];

fn scopes(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let path = path.child("scopes");
    let all = list(spec, "scopes");
    let refuse = |detail: &str| FieldError::invalid(&path, all.to_vec(), detail);
    for scope in all.iter().filter_map(Value::as_str) {
        if !SCOPES.contains(&scope) {
            errors.push(refuse("unsupported scope"));
        }
        for _ in bounded(spec).into_iter().filter(|resource| !applies(scope, resource)) {
            errors.push(refuse("unsupported scope applied to resource"));
        }
    }
    let has = |scope: &str| all.iter().any(|other| other == scope);
    for _ in CONFLICTS.into_iter().filter(|(one, other)| has(one) && has(other)) {
        errors.push(refuse("conflicting scopes"));
    }
}

fn scope_selector(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let terms = list(&spec["scopeSelector"], "matchExpressions");
    for term in terms {
        let (scope, operator) = (text(term, "scopeName"), text(term, "operator"));
        let place = path.child("operator");
        if !SCOPES.contains(&scope) {
            errors.push(FieldError::invalid(&path.child("scopeName"), scope, "unsupported scope"));
        }
        for _ in bounded(spec).into_iter().filter(|resource| !applies(scope, resource)) {
            let shown = super::internal::compact("ScopeSelector", &spec["scopeSelector"]);
            errors.push(FieldError::invalid_as(path, shown, "unsupported scope applied to resource"));
        }
        let is_flag = !matches!(scope, "PriorityClass" | "VolumeAttributesClass") && SCOPES.contains(&scope);
        if is_flag && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(FieldError::invalid(&place, operator, detail));
        }
        let values = list(term, "values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let detail =
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(FieldError::required(&path.child("values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail =
                    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.push(FieldError::invalid(&path.child("values"), values.to_vec(), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(FieldError::invalid(&place, other, "not a valid selector operator")),
        }
    }
    let has = |scope: &str| terms.iter().any(|term| text(term, "scopeName") == scope);
    for _ in CONFLICTS.into_iter().filter(|(one, other)| has(one) && has(other)) {
        errors.push(FieldError::invalid(path, spec["scopes"].clone(), "conflicting scopes"));
    }
}

pub(super) fn range(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let entries = list(spec, "limits");
    for (at, entry) in entries.iter().enumerate() {
        let path = path.child("limits").index(at);
        let kind = text(entry, "type");
        let faults = names::qualified_name(kind);
        if !faults.is_empty() {
            super::faulty(faults, kind, &path.child("type"), errors);
        } else if !kind.contains('/') && !["Pod", "Container", "PersistentVolumeClaim"].contains(&kind) {
            let detail = "must be a standard limit type or fully qualified";
            errors.push(FieldError::invalid(&path.child("type"), kind, detail));
        }
        if entries[..at].iter().any(|other| text(other, "type") == kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
        one_entry(entry, kind, &path, errors);
    }
}

/// A resource that a limit is set for.
fn limit_name(name: &str, kind: &str, path: &Path, errors: &mut ErrorList) {
    match kind {
        "Pod" | "Container" => container_resource_name(name, path, errors),
        _ => drop(resource_name_faults(name, path, errors)),
    }
}

fn one_entry(entry: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    let (min, max) = (amounts(entry, "min"), amounts(entry, "max"));
    let (defaults, requests) = (amounts(entry, "default"), amounts(entry, "defaultRequest"));
    let is_pod = kind == "Pod";
    for key in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        if is_pod && key.starts_with("default") {
            if entry[key].as_object().is_some_and(|map| !map.is_empty()) {
                let detail = "may not be specified when `type` is 'Pod'";
                errors.push(FieldError::forbidden(&path.child(key), detail));
            }
            continue;
        }
        for name in entry[key].as_object().into_iter().flat_map(|map| map.keys()) {
            limit_name(name, kind, &path.child(key).key(name), errors);
        }
    }
    if kind == "PersistentVolumeClaim" && !min.contains_key("storage") && !max.contains_key("storage") {
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(&path.child("limits"), detail));
    }
    let ratios = amounts(entry, "maxLimitRequestRatio");
    let (defaults, requests) = if is_pod { Default::default() } else { (defaults, requests) };
    let all = [&min, &max, &defaults, &requests, &ratios];
    let names: std::collections::BTreeSet<&String> = all.iter().flat_map(|map| map.keys()).collect();
    for name in names {
        let get = |map: &BTreeMap<String, Quantity>| map.get(name.as_str()).copied();
        ordered(name, [get(&min), get(&max), get(&defaults), get(&requests)], path, errors);
        if let Some(most) = get(&ratios) {
            ratio(most, get(&min), get(&max), &path.child("maxLimitRequestRatio").key(name), errors);
        }
        let can_overcommit =
            (!name.contains('/') || name.contains("kubernetes.io/")) && !name.starts_with("hugepages-");
        if let (false, Some(limit), Some(request)) = (can_overcommit, get(&defaults), get(&requests))
            && limit != request
        {
            let detail =
                format!("default value {limit} must equal to defaultRequest value {request} in {name}");
            let path = path.child("defaultRequest").key(name);
            errors.push(FieldError::invalid(&path, request.to_string(), detail));
        }
    }
}

/// How far a limit may be above its request; no further than the most is above the least.
fn ratio(most: Quantity, min: Option<Quantity>, max: Option<Quantity>, path: &Path, errors: &mut ErrorList) {
    if most < Quantity::from_units(1) {
        let detail = format!("ratio {most} is less than 1");
        errors.push(FieldError::invalid(path, most.to_string(), detail));
    }
    let (Some(min), Some(max)) = (min, max) else { return };
    let bound = max.milli() as f64 / min.milli() as f64;
    if most.milli() as f64 / 1000.0 > bound {
        let shown = if bound.is_infinite() { "+Inf".to_owned() } else { format!("{bound:.6}") };
        let detail = format!("ratio {most} is greater than max/min = {shown}");
        errors.push(FieldError::invalid(path, most.to_string(), detail));
    }
}

/// Least, request by default, limit by default, most: each at most the next.
fn ordered(
    name: &str,
    [min, max, limit, request]: [Option<Quantity>; 4],
    path: &Path,
    errors: &mut ErrorList,
) {
    let place = |key: &str| path.child(key).key(name);
    let mut refuse = |key: &str, shown: Quantity, detail: String| {
        errors.push(FieldError::invalid(&place(key), shown.to_string(), detail));
    };
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        refuse("min", min, format!("min value {min} is greater than max value {max}"));
    }
    if let (Some(request), Some(min)) = (request, min)
        && min > request
    {
        refuse(
            "defaultRequest",
            request,
            format!("min value {min} is greater than default request value {request}"),
        );
    }
    if let (Some(request), Some(max)) = (request, max)
        && request > max
    {
        refuse(
            "defaultRequest",
            request,
            format!("default request value {request} is greater than max value {max}"),
        );
    }
    if let (Some(request), Some(limit)) = (request, limit)
        && request > limit
    {
        let detail = format!("default request value {request} is greater than default limit value {limit}");
        refuse("defaultRequest", request, detail);
    }
    if let (Some(limit), Some(min)) = (limit, min)
        && min > limit
    {
        refuse("default", min, format!("min value {min} is greater than default value {limit}"));
    }
    if let (Some(limit), Some(max)) = (limit, max)
        && limit > max
    {
        refuse("default", max, format!("default value {limit} is greater than max value {max}"));
    }
}
