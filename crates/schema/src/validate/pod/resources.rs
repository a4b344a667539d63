//! What containers and pods ask for: requests, limits, claims.

use serde_json::Value;

use super::{faulty, list, names, text};
use crate::{ErrorList, FieldError, Path, Quantity};

/// Resources that exist in every cluster: those of nodes and those of quotas.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
/// Those that are counted.
const WHOLE: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const PAGES: &str = "hugepages-";

fn amount(value: &Value) -> Option<Quantity> {
    value.as_str()?.parse().ok()
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_page(name: &str) -> bool {
    name.starts_with(PAGES)
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Faults of the name of any resource; says whether it is well formed.
pub(in crate::validate) fn resource_name_faults(name: &str, path: &Path, errors: &mut ErrorList) -> bool {
    let faults = names::qualified_name(name);
    if !faults.is_empty() {
        faulty(faults, name, path, errors);
        return false;
    }
    let is_standard = STANDARD.contains(&name) || is_page(name) || name.starts_with("requests.hugepages-");
    if !name.contains('/') && !is_standard {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, name, detail));
        return false;
    }
    true
}

/// Faults of the name of a resource that containers can ask for.
pub(in crate::validate) fn container_resource_name(name: &str, path: &Path, errors: &mut ErrorList) {
    resource_name_faults(name, path, errors);
    let is_standard = matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_page(name);
    if !name.contains('/') {
        if !is_standard {
            errors.push(FieldError::invalid(path, name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(FieldError::invalid(path, name, "doesn't follow extended resource name standard"));
    }
}

fn pod_resource_name(name: &str, path: &Path, errors: &mut ErrorList) {
    let is_supported = matches!(name, "cpu" | "memory") || is_page(name);
    if resource_name_faults(name, path, errors) && !is_supported {
        errors.push(FieldError::not_supported(path, name, &["cpu", PAGES, "memory"]));
    }
}

/// Faults of an amount of a resource.
pub(in crate::validate) fn quantity(name: &str, value: &Quantity, path: &Path, errors: &mut ErrorList) {
    if value.signum() < 0 {
        errors.push(FieldError::invalid(path, value.to_string(), "must be greater than or equal to 0"));
    }
    if (WHOLE.contains(&name) || is_extended(name)) && !value.is_whole() {
        errors.push(FieldError::invalid(path, value.to_string(), "must be an integer"));
    }
}

/// A container's resources.
pub(super) fn of_container(resources: &Value, spec: &Value, path: &Path, errors: &mut ErrorList) {
    requirements(resources, container_resource_name, path, errors);
    claim_names(list(resources, "claims"), spec, &path.child("claims"), errors);
}

/// What a pod costs beyond its containers.
pub(super) fn overhead(overhead: &Value, path: &Path, errors: &mut ErrorList) {
    let limits = serde_json::json!({"limits": overhead});
    requirements(&limits, container_resource_name, path, errors);
}

pub(in crate::validate) fn requirements(
    resources: &Value,
    name_faults: fn(&str, &Path, &mut ErrorList),
    whole: &Path,
    errors: &mut ErrorList,
) {
    let (mut has_pages, mut has_compute) = (false, false);
    for part in ["limits", "requests"] {
        let all = whole.child(part);
        for (name, value) in resources[part].as_object().into_iter().flatten() {
            let path = all.key(name);
            name_faults(name, &path, errors);
            let Some(value) = amount(value) else { continue };
            quantity(name, &value, &path, errors);
            if part == "requests" {
                within_limit(name, &value, resources, whole, errors);
            }
            if is_page(name) {
                has_pages = true;
                if !is_multiple(&value, &name[PAGES.len()..]) {
                    let detail = format!("{value} is not positive integer multiple of {name}");
                    errors.push(FieldError::invalid(&path, value.to_string(), detail));
                }
            }
            has_compute |= matches!(name.as_str(), "cpu" | "memory");
        }
    }
    if has_pages && !has_compute {
        errors.push(FieldError::forbidden(whole, "HugePages require cpu or memory"));
    }
}

/// A request against the limit of its resource.
fn within_limit(name: &str, request: &Quantity, resources: &Value, path: &Path, errors: &mut ErrorList) {
    let can_overcommit = is_native(name) && !is_page(name);
    let Some(limit) = amount(&resources["limits"][name]) else {
        if !can_overcommit {
            let detail = "Limit must be set for non overcommitable resources";
            errors.push(FieldError::required(&path.child("limits"), detail));
        }
        return;
    };
    let detail = match () {
        () if *request != limit && !can_overcommit => format!("must be equal to {name} limit of {limit}"),
        () if *request > limit => format!("must be less than or equal to {name} limit of {limit}"),
        () => return,
    };
    errors.push(FieldError::invalid(&path.child("requests"), request.to_string(), detail));
}

fn is_multiple(value: &Quantity, size: &str) -> bool {
    let Some(size) = size.parse::<Quantity>().ok().filter(|size| size.signum() > 0 && size.is_whole()) else {
        return false;
    };
    value.units() % size.units() == 0
}

/// The claims of devices that a container names are those of the pod.
fn claim_names(claims: &[Value], spec: &Value, path: &Path, errors: &mut ErrorList) {
    let mut known: Vec<&str> = list(spec, "resourceClaims").iter().map(|claim| text(claim, "name")).collect();
    known.retain(|name| !name.is_empty());
    known.sort_unstable();
    known.dedup();
    let mut seen: Vec<String> = Vec::new();
    for (at, claim) in claims.iter().enumerate() {
        let (name, request, path) = (text(claim, "name"), text(claim, "request"), path.index(at));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        if seen.iter().any(|other| other == name) {
            errors.push(FieldError::duplicate(&path, name));
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                faulty(names::dns1123_label(request), request, &path.child("request"), errors);
                key = format!("{name}/{request}");
            }
            let is_part = |other: &&String| other.split_once('/').is_some_and(|(first, _)| first == name);
            if seen.contains(&key) {
                errors.push(FieldError::duplicate(&path, key.as_str()));
            } else if request.is_empty() {
                for _ in seen.iter().filter(is_part) {
                    errors.push(FieldError::duplicate(&path, name));
                }
            }
            seen.push(key);
        }
        if !known.contains(&name) {
            let mut fault = FieldError::not_found(&path, name);
            let rest =
                if known.is_empty() { " which is empty".into() } else { format!(": {}", known.join(", ")) };
            fault.detail = format!("must be one of the names in pod.spec.resourceClaims{rest}");
            errors.push(fault);
        }
    }
}

/// A pod's claims of devices.
pub(super) fn claims(spec: &Value, metadata: Option<&Value>, path: &Path, errors: &mut ErrorList) {
    let is_mirror = metadata.is_some_and(|metadata| {
        metadata["annotations"].as_object().is_some_and(|all| all.contains_key("kubernetes.io/config.mirror"))
    });
    let claims = list(spec, "resourceClaims");
    for (at, claim) in claims.iter().enumerate() {
        if is_mirror {
            errors.push(FieldError::forbidden(&Path::root(), "static pods do not support resource claims"));
            continue;
        }
        let path = path.index(at);
        let name = text(claim, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if claims[..at].iter().any(|other| text(other, "name") == name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        } else {
            faulty(names::dns1123_label(name), name, &path.child("name"), errors);
        }
        let given: Vec<&str> = ["resourceClaimName", "resourceClaimTemplateName"]
            .into_iter()
            .filter(|field| claim[*field].is_string())
            .collect();
        let detail = match given.len() {
            0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            1 => "",
            _ => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        };
        if !detail.is_empty() {
            let shown = format!(
                "{{\"Name\":{},\"ResourceClaimName\":{},\"ResourceClaimTemplateName\":{}}}",
                Value::from(name),
                claim["resourceClaimName"],
                claim["resourceClaimTemplateName"]
            );
            errors.push(FieldError::invalid_as(&path, shown, detail));
        }
        for field in given {
            let value = text(claim, field);
            faulty(names::dns1123_subdomain(value), value, &path.child(field), errors);
        }
    }
}

/// The resources of a pod as a whole.
pub(super) fn of_pod(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let resources = &spec["resources"];
    if !resources.is_object() {
        return;
    }
    let path = path.child("resources");
    if spec["os"]["name"] == "windows" {
        errors.push(FieldError::forbidden(&path, "may not be set for a windows pod"));
        return;
    }
    if !resources["claims"].is_null() {
        let detail = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(&path.child("claims"), detail));
    }
    requirements(resources, pod_resource_name, &path, errors);
    claim_names(list(resources, "claims"), spec, &path.child("claims"), errors);
    consistency(spec, &path, errors);
}

/// What containers ask for together is within what the pod asks for.
fn consistency(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let own = |part: &str, name: &str| amount(&spec["resources"][part][name]);
    for (name, sum) in together(spec, "requests") {
        if let Some(request) = own("requests", &name).filter(|request| sum > *request) {
            let detail = format!("must be greater than or equal to aggregate container requests of {sum}");
            let path = path.child("requests").key(&name);
            errors.push(FieldError::invalid(&path, request.to_string(), detail));
        }
    }
    for (name, sum) in together(spec, "limits").into_iter().filter(|(name, _)| is_page(name)) {
        if let Some(limit) = own("limits", &name).filter(|limit| sum > *limit) {
            let detail = format!("must be greater than or equal to aggregate container limits of {sum}");
            let path = path.child("limits").key(&name);
            errors.push(FieldError::invalid(&path, limit.to_string(), detail));
        }
    }
    for (at, container) in list(spec, "containers").iter().enumerate() {
        for (name, value) in container["resources"]["limits"].as_object().into_iter().flatten() {
            let (Some(value), Some(limit)) = (amount(value), own("limits", name)) else { continue };
            if value > limit {
                let path = path.child("containers").index(at).key(name).child("limits");
                let detail = format!("must be less than or equal to pod limits of {limit}");
                errors.push(FieldError::invalid(&path, value.to_string(), detail));
            }
        }
    }
}

/// What all containers ask for at the time when it is most: sidecars add up, other init containers run alone.
fn together(spec: &Value, part: &str) -> std::collections::BTreeMap<String, Quantity> {
    let mut sums = std::collections::BTreeMap::<String, Quantity>::new();
    let of = |container: &Value| -> Vec<(String, Quantity)> {
        let all = container["resources"][part].as_object().into_iter().flatten();
        all.filter_map(|(name, value)| Some((name.clone(), amount(value)?))).collect()
    };
    for (name, value) in list(spec, "containers").iter().flat_map(of) {
        let sum = sums.get(&name).map_or_else(|| value, |sum| sum.plus(&value));
        sums.insert(name, sum);
    }
    let mut sidecars = std::collections::BTreeMap::<String, Quantity>::new();
    let mut most = std::collections::BTreeMap::<String, Quantity>::new();
    for container in list(spec, "initContainers") {
        for (name, value) in of(container) {
            let beside = sidecars.get(&name).map_or_else(|| value, |sum| sum.plus(&value));
            if container["restartPolicy"] == "Always" {
                let sum = sums.get(&name).map_or_else(|| value, |sum| sum.plus(&value));
                sums.insert(name.clone(), sum);
                sidecars.insert(name.clone(), beside);
            }
            if most.get(&name).is_none_or(|other| beside > *other) {
                most.insert(name, beside);
            }
        }
    }
    for (name, value) in most {
        if sums.get(&name).is_none_or(|sum| value > *sum) {
            sums.insert(name, value);
        }
    }
    sums
}
