//! LimitRanges: defaults and bounds of what pods and claims ask for.

use std::collections::BTreeMap;

use tiphys_schema::Quantity;
use tiphys_value::{Map, ObjectExt, Value};

use super::{Operation, Request};
use crate::{ApiError, ApiResult, meta, ops::items, store::ResourceId};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

type Amounts = BTreeMap<String, Quantity>;

fn entries(request: &Request<'_>) -> Vec<Value> {
    let snapshot = request.server.snapshot();
    let ranges = snapshot.list(&ResourceId::new("", "limitranges"), Some(&request.at.namespace));
    ranges.flat_map(|range| items(range, "/spec/limits")).cloned().collect()
}

fn amounts(list: Option<&Value>) -> Amounts {
    let entries = list.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(name, amount)| Some((name.clone(), quantity(amount)?))).collect()
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => other.to_string().parse().ok(),
    }
}

/// Gives a new pod's containers the defaults of the namespace.
pub(super) fn set_defaults(request: &Request<'_>, pod: &mut Value) {
    if !request.at.is("", "pods") {
        return;
    }
    let mut limits = Map::new();
    let mut requests = Map::new();
    for entry in entries(request).iter().filter(|entry| entry["type"] == "Container") {
        for (from, to) in [("defaultRequest", &mut requests), ("default", &mut limits)] {
            to.extend(entry[from].as_object().cloned().unwrap_or_default());
        }
    }
    let mut notes = Vec::new();
    for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
        for container in pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let name = container.str_at(&["name"]).unwrap_or_default().to_owned();
            for (part, word, defaults) in [("requests", "request", &requests), ("limits", "limit", &limits)] {
                let set = add_missing(container, part, defaults);
                if !set.is_empty() {
                    notes.push(format!("{} {word} for {what} {name}", set.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        let annotations =
            meta::metadata_mut(pod).entry("annotations").or_insert_with(|| Value::Object(Map::new()));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations
                .insert(ANNOTATION.into(), format!("LimitRanger plugin set: {}", notes.join("; ")).into());
        }
    }
}

/// Adds the resources that are not named yet; returns which.
fn add_missing(container: &mut Value, part: &str, defaults: &Map<String, Value>) -> Vec<String> {
    let missing: Vec<(String, Value)> = defaults
        .iter()
        .filter(|(name, _)| container.at(&["resources", part, name.as_str()]).is_none())
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    for (name, amount) in &missing {
        container["resources"][part][name.as_str()] = amount.clone();
    }
    let mut names: Vec<String> = missing.into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

/// Refuses what lies outside of the bounds of the namespace.
pub(super) fn check(request: &Request<'_>, object: &Value) -> ApiResult<()> {
    let at = request.at;
    let is_pod = at.is("", "pods") && request.operation == Operation::Create;
    let is_claim = at.is("", "persistentvolumeclaims");
    if at.subresource.is_some() || !(is_pod || is_claim) {
        return Ok(());
    }
    let mut faults = Vec::new();
    for entry in entries(request) {
        let kind = entry.str_at(&["type"]).unwrap_or_default();
        match kind {
            "Container" if is_pod => {
                for container in
                    items(object, "/spec/containers").chain(items(object, "/spec/initContainers"))
                {
                    let of = |part| amounts(container.at(&["resources", part]));
                    bounds(&entry, kind, &of("requests"), &of("limits"), &mut faults);
                }
            }
            "Pod" if is_pod => {
                let (requests, limits) = (pod_total(object, "requests"), pod_total(object, "limits"));
                bounds(&entry, kind, &requests, &limits, &mut faults);
            }
            "PersistentVolumeClaim" if is_claim => {
                let requests = amounts(object.at(&["spec", "resources", "requests"]));
                claim_bounds(&entry, &requests, &mut faults);
            }
            _ => {}
        }
    }
    let mut seen = Vec::new();
    faults.retain(|fault| {
        !seen.contains(fault) && {
            seen.push(fault.clone());
            true
        }
    });
    match faults.as_slice() {
        [] => Ok(()),
        [one] => Err(ApiError::forbidden(at.resource.object_named(object.name()), one)),
        many => Err(ApiError::forbidden(
            at.resource.object_named(object.name()),
            &format!("[{}]", many.join(", ")),
        )),
    }
}

fn bounds(entry: &Value, kind: &str, requests: &Amounts, limits: &Amounts, faults: &mut Vec<String>) {
    for (name, min) in amounts(entry.get("min")) {
        let start = format!("minimum {name} usage per {kind} is {min}");
        match (requests.get(&name), limits.get(&name)) {
            (None, _) => faults.push(format!("{start}.  No request is specified")),
            (Some(request), _) if *request < min => faults.push(format!("{start}, but request is {request}")),
            (_, Some(limit)) if *limit < min => faults.push(format!("{start}, but limit is {limit}")),
            _ => {}
        }
    }
    for (name, max) in amounts(entry.get("max")) {
        let start = format!("maximum {name} usage per {kind} is {max}");
        match (requests.get(&name), limits.get(&name)) {
            (_, None) => faults.push(format!("{start}.  No limit is specified")),
            (_, Some(limit)) if *limit > max => faults.push(format!("{start}, but limit is {limit}")),
            (Some(request), _) if *request > max => faults.push(format!("{start}, but request is {request}")),
            _ => {}
        }
    }
    for (name, ratio) in amounts(entry.get("maxLimitRequestRatio")) {
        let start = format!("{name} max limit to request ratio per {kind} is {ratio}");
        let positive = |amount: Option<&Quantity>| amount.copied().filter(|a| a.signum() > 0);
        match (positive(requests.get(&name)), positive(limits.get(&name))) {
            (None, _) => faults.push(format!("{start}, but no request is specified or request is 0")),
            (_, None) => faults.push(format!("{start}, but no limit is specified or limit is 0")),
            (Some(request), Some(limit)) => {
                let found = limit.milli() as f64 / request.milli() as f64;
                if found * 1000.0 > ratio.milli() as f64 {
                    faults.push(format!("{start}, but provided ratio is {found:.6}"));
                }
            }
        }
    }
}

fn claim_bounds(entry: &Value, requests: &Amounts, faults: &mut Vec<String>) {
    for (word, part, outside) in [("minimum", "min", -1), ("maximum", "max", 1)] {
        for (name, bound) in amounts(entry.get(part)) {
            let start = format!("{word} {name} usage per PersistentVolumeClaim is {bound}");
            match requests.get(&name) {
                None => faults.push(format!("{start}.  No request is specified")),
                Some(request) if request.cmp(&bound) as i32 == outside => {
                    faults.push(format!("{start}, but request is {request}"));
                }
                Some(_) => {}
            }
        }
    }
}

/// What a pod asks for as a whole: its containers together, or its largest init container.
pub(super) fn pod_total(pod: &Value, part: &str) -> Amounts {
    let add = |total: &mut Amounts, more: &Amounts| {
        for (name, amount) in more {
            let sum = total.get(name).map_or(*amount, |before| before.plus(amount));
            total.insert(name.clone(), sum);
        }
    };
    let largest = |total: &mut Amounts, other: &Amounts| {
        for (name, amount) in other {
            let entry = total.entry(name.clone()).or_insert(*amount);
            *entry = (*entry).max(*amount);
        }
    };
    let mut total = Amounts::new();
    for container in items(pod, "/spec/containers") {
        add(&mut total, &amounts(container.at(&["resources", part])));
    }
    let (mut sidecars, mut start) = (Amounts::new(), Amounts::new());
    for container in items(pod, "/spec/initContainers") {
        let own = amounts(container.at(&["resources", part]));
        let needed = if container["restartPolicy"] == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            sidecars.clone()
        } else {
            let mut sum = own;
            add(&mut sum, &sidecars);
            sum
        };
        largest(&mut start, &needed);
    }
    largest(&mut total, &start);
    for (name, amount) in amounts(pod.at(&["spec", "resources", part])) {
        if matches!(name.as_str(), "cpu" | "memory") {
            total.insert(name, amount);
        }
    }
    total
}
