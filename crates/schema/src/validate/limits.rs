//! ResourceQuotas and LimitRanges.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{list, names, text};
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
/// What a quota may bound beside [`WHOLE`], and names with a domain, `count/…`, `requests.…` and `limits.…`.
const QUOTA: [&str; 5] = ["cpu", "memory", "ephemeral-storage", "storage", "requests.storage"];
const SCOPES: [&str; 6] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
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
        quota_name(name, &hard.key(name), errors);
        let Some(found) = amount(value) else { continue };
        if found.signum() < 0 {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(&hard.key(name), found.to_string(), detail));
        }
        if !found.is_whole() && (WHOLE.contains(&name.as_str()) || name.starts_with("count/")) {
            errors.push(FieldError::invalid(&hard.key(name), found.to_string(), "must be an integer"));
        }
    }
    scopes(spec, path, errors);
    for term in list(&spec["scopeSelector"], "matchExpressions") {
        let path = path.child("scopeSelector").child("matchExpressions");
        let operator = text(term, "operator");
        if !["In", "NotIn", "Exists", "DoesNotExist"].contains(&operator) {
            errors.push(FieldError::invalid(
                &path.child("operator"),
                operator,
                "not a valid selector operator",
            ));
        }
        let scope = text(term, "scopeName");
        if !SCOPES.contains(&scope) {
            errors.push(FieldError::invalid(&path.child("scopeName"), scope, "unsupported scope"));
        }
    }
}

fn quota_name(name: &str, path: &Path, errors: &mut ErrorList) {
    for fault in names::qualified_name(name) {
        errors.push(FieldError::invalid(path, name, fault));
    }
    if name.contains('/') {
        return;
    }
    let inner = name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
    let is_standard = WHOLE.contains(&name)
        || QUOTA.contains(&name)
        || ["cpu", "memory", "ephemeral-storage"].contains(&inner)
        || inner.starts_with("hugepages-");
    if !is_standard {
        for detail in
            ["must be a standard resource type or fully qualified", "must be a standard resource for quota"]
        {
            errors.push(FieldError::invalid(path, name, detail));
        }
    }
}

fn scopes(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let path = path.child("scopes");
    let all = list(spec, "scopes");
    let refuse = |detail: &str| FieldError::invalid(&path, all.to_vec(), detail);
    let hard: Vec<&String> = spec["hard"].as_object().into_iter().flatten().map(|(name, _)| name).collect();
    for scope in all.iter().filter_map(Value::as_str) {
        if !SCOPES.contains(&scope) {
            errors.push(refuse("unsupported scope"));
            continue;
        }
        let of_pods = |name: &String| {
            let compute = ["cpu", "memory", "limits.", "requests."];
            name == "pods" || (scope != "BestEffort" && compute.iter().any(|start| name.starts_with(start)))
        };
        if !hard.iter().all(|name| of_pods(name)) {
            errors.push(refuse("unsupported scope applied to resource"));
        }
    }
    let has = |scope: &str| all.iter().any(|other| other == scope);
    for (one, other) in [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")] {
        if has(one) && has(other) {
            errors.push(refuse("conflicting scopes"));
        }
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
    let faults = names::qualified_name(name);
    if !faults.is_empty() {
        errors.extend(faults.into_iter().map(|fault| FieldError::invalid(path, name, fault)));
        return;
    }
    if name.contains('/') {
        return;
    }
    let of_containers =
        matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    let inner = name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
    let is_standard = of_containers
        || QUOTA.contains(&name)
        || name == "storage"
        || matches!(inner, "cpu" | "memory" | "ephemeral-storage");
    if !is_standard {
        errors.push(FieldError::invalid(path, name, "must be a standard resource type or fully qualified"));
    }
    if !of_containers && matches!(kind, "Pod" | "Container") {
        errors.push(FieldError::invalid(path, name, "must be a standard resource for containers"));
    }
}

fn one_entry(entry: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    let (min, max) = (amounts(entry, "min"), amounts(entry, "max"));
    let (defaults, requests) = (amounts(entry, "default"), amounts(entry, "defaultRequest"));
    for key in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        if kind == "Pod" && key.starts_with("default") {
            continue;
        }
        for name in entry[key].as_object().into_iter().flat_map(|map| map.keys()) {
            limit_name(name, kind, &path.child(key).key(name), errors);
        }
    }
    if kind == "Pod" {
        for key in ["default", "defaultRequest"] {
            if entry[key].as_object().is_some_and(|map| !map.is_empty()) {
                let detail = "may not be specified when `type` is 'Pod'";
                errors.push(FieldError::forbidden(&path.child(key), detail));
            }
        }
        return;
    }
    if kind == "PersistentVolumeClaim" && !min.contains_key("storage") && !max.contains_key("storage") {
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(&path.child("limits"), detail));
    }
    let names: std::collections::BTreeSet<&String> =
        min.keys().chain(max.keys()).chain(defaults.keys()).chain(requests.keys()).collect();
    for name in names {
        let get = |map: &BTreeMap<String, Quantity>| map.get(name.as_str()).copied();
        ordered(name, [get(&min), get(&max), get(&defaults), get(&requests)], path, errors);
    }
    for (name, ratio) in amounts(entry, "maxLimitRequestRatio") {
        if ratio < Quantity::from_units(1) {
            let path = path.child("maxLimitRequestRatio").key(&name);
            errors.push(FieldError::invalid(
                &path,
                ratio.to_string(),
                format!("ratio {ratio} is less than 1"),
            ));
        }
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
