//! Smaller kinds: persistent volumes, classes, leases, endpoints.

use std::net::IpAddr;

use serde_json::Value;

use super::{faulty, list, names, not_negative, placement, text};
use crate::{ErrorList, FieldError, Path, Quantity};

/// What an address is expected to look like.
const ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
/// The sources of a persistent volume.
const SOURCES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

pub(super) fn address(text: &str, path: &Path, errors: &mut ErrorList) -> Option<IpAddr> {
    let parsed = text.parse().ok();
    if parsed.is_none() {
        errors.push(FieldError::invalid(path, text, ADDRESS));
    }
    parsed
}

/// An address that is no one's own: endpoints cannot be there.
fn reachable(text: &str, address: IpAddr, path: &Path, errors: &mut ErrorList) {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    };
    for (is, detail) in [
        (address.is_unspecified(), "may not be unspecified (0.0.0.0 or ::)".to_owned()),
        (address.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()),
        (link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
    ] {
        if is {
            errors.push(FieldError::invalid(path, text, detail));
        }
    }
}

pub(super) fn not_loopback(text: &str, path: &Path, errors: &mut ErrorList) {
    if let Some(found) = address(text, path, errors) {
        reachable(text, found, path, errors);
    }
}

/// Where a volume is cannot be changed.
pub(super) fn volume_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    let sources = |object: &Value| -> Value {
        let spec = object["spec"].as_object().into_iter().flatten();
        let given = spec.filter(|(name, source)| SOURCES.contains(&name.as_str()) && !source.is_null());
        given.map(|(name, source)| (name.clone(), source.clone())).collect::<serde_json::Map<_, _>>().into()
    };
    let (mut after, before) = (sources(new), sources(old));
    if before["csi"].is_object() && before["csi"]["controllerExpandSecretRef"].is_null() {
        drop(after["csi"].as_object_mut().map(|csi| csi.remove("controllerExpandSecretRef")));
    }
    if after != before {
        let [before, after] =
            [before, after].map(|sources| super::internal::indented("PersistentVolumeSource", &sources));
        let difference = super::unified::difference(&before, &after);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.push(FieldError::forbidden(&Path::new("spec.persistentvolumesource"), detail));
    }
    let (mode, old_mode) = (&new["spec"]["volumeMode"], &old["spec"]["volumeMode"]);
    if mode != old_mode {
        errors.push(FieldError::invalid(&Path::new("volumeMode"), mode.clone(), "field is immutable"));
    }
}

pub(super) fn volume(spec: &Value, path: &Path, errors: &mut ErrorList) {
    if list(spec, "accessModes").is_empty() {
        errors.push(FieldError::required(&path.child("accessModes"), ""));
    }
    for mode in list(spec, "accessModes") {
        if !super::storage::ACCESS.contains(&mode.as_str().unwrap_or_default()) {
            let known = &super::storage::ACCESS;
            errors.push(FieldError::not_supported(&path.child("accessModes"), mode.clone(), known));
        }
    }
    capacity(&spec["capacity"], &path.child("capacity"), errors);
    let policies = ["Delete", "Recycle", "Retain"];
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    if !policy.is_empty() && !policies.contains(&policy) {
        let path = path.child("persistentVolumeReclaimPolicy");
        errors.push(FieldError::not_supported(&path, policy, &policies));
    }
    let affinity = &spec["nodeAffinity"]["required"];
    if affinity.is_object() {
        placement::node_selector(affinity, &path.child("nodeAffinity").child("required"), errors);
    }
    let given: Vec<&str> = SOURCES.into_iter().filter(|source| spec[*source].is_object()).collect();
    if given.is_empty() {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    // One source is looked at before the others.
    let order = given.iter().filter(|s| **s == "hostPath").chain(given.iter().filter(|s| **s != "hostPath"));
    for (at, source) in order.enumerate() {
        let path = path.child(source);
        if at > 0 {
            errors.push(FieldError::forbidden(&path, "may not specify more than 1 volume type"));
        } else {
            volume_source(source, spec, &path, errors);
        }
    }
    let root = spec["hostPath"]["path"].as_str().is_some_and(|place| place.trim_end_matches('/').is_empty());
    if policy == "Recycle" && spec["hostPath"].is_object() && root {
        let path = path.child("persistentVolumeReclaimPolicy");
        errors.push(FieldError::forbidden(&path, "may not be 'recycle' for a hostPath mount of '/'"));
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        faulty(names::dns1123_subdomain(class), class, &path.child("storageClassName"), errors);
    }
    let mode = text(spec, "volumeMode");
    if !matches!(mode, "" | "Block" | "Filesystem") {
        errors.push(FieldError::not_supported(&path.child("volumeMode"), mode, &["Block", "Filesystem"]));
    }
}

/// The taints of a node.
pub(super) fn node(object: &Value, errors: &mut ErrorList) {
    const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let taints = list(&object["spec"], "taints");
    for (at, taint) in taints.iter().enumerate() {
        let path = Path::new("metadata.taints").index(at);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        faulty(names::qualified_name(key), key, &path.child("key"), errors);
        let faults = names::label_value(value);
        if !faults.is_empty() {
            errors.push(FieldError::invalid(&path.child("value"), value, faults.join(";")));
        }
        match effect {
            "" => errors.push(FieldError::required(&path.child("effect"), "")),
            _ if EFFECTS.contains(&effect) => {}
            _ => errors.push(FieldError::not_supported(&path.child("effect"), effect, &EFFECTS)),
        }
        if taints[..at].iter().any(|other| text(other, "key") == key && text(other, "effect") == effect) {
            let mut fault = FieldError::duplicate(&path, taint.clone());
            fault.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(fault);
        }
    }
}

fn capacity(capacity: &Value, path: &Path, errors: &mut ErrorList) {
    let entries = capacity.as_object();
    if entries.is_none_or(|entries| entries.is_empty()) {
        errors.push(FieldError::required(path, ""));
    }
    if capacity.get("storage").is_none() || entries.is_some_and(|entries| entries.len() > 1) {
        let shown = if capacity.is_null() { Value::Object(serde_json::Map::new()) } else { capacity.clone() };
        errors.push(FieldError::not_supported(path, shown, &["storage"]));
    }
    for (name, value) in entries.into_iter().flatten() {
        let Some(amount) = value.as_str().and_then(|text| text.parse::<Quantity>().ok()) else { continue };
        if amount.signum() < 0 {
            let path = path.key(name);
            errors.push(FieldError::invalid(&path, amount.units(), "must be a valid resource quantity"));
        }
        if amount.signum() <= 0 {
            errors.push(FieldError::invalid(
                &path.key(name),
                amount.to_string(),
                "must be greater than zero",
            ));
        }
    }
}

fn volume_source(kind: &str, spec: &Value, path: &Path, errors: &mut ErrorList) {
    let source = &spec[kind];
    let mut required = |keys: &[&str]| {
        for key in keys.iter().filter(|key| text(source, key).is_empty()) {
            errors.push(FieldError::required(&path.child(key), ""));
        }
    };
    match kind {
        "hostPath" | "local" => required(&["path"]),
        "csi" => required(&["driver", "volumeHandle"]),
        "nfs" => required(&["server", "path"]),
        _ => return,
    }
    let place = text(source, "path");
    if kind == "nfs" && !place.starts_with('/') && !place.is_empty() {
        errors.push(FieldError::invalid(&path.child("path"), place, "must be an absolute path"));
    }
    if kind == "hostPath" && place.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(&path.child("path"), place, "must not contain '..'"));
    }
    if kind == "local" && !spec["nodeAffinity"]["required"].is_object() {
        let detail = "Local volume requires node affinity";
        errors.push(FieldError::required(&Path::new("spec.nodeAffinity"), detail));
    }
}

pub(super) fn priority_class_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    if new["value"].as_i64().unwrap_or_default() != old["value"].as_i64().unwrap_or_default() {
        errors.push(FieldError::forbidden(&Path::new("value"), "may not be changed in an update."));
    }
    super::immutable(new, old, "/preemptionPolicy", errors);
}

pub(super) fn priority_class(object: &Value, errors: &mut ErrorList) {
    const HIGHEST: i64 = 1_000_000_000;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let value = object["value"].as_i64().unwrap_or_default();
    let is_system = [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)]
        .contains(&(name, value));
    if name.starts_with("system-") && !is_system {
        let detail = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"
        );
        errors.push(FieldError::forbidden(&Path::new("metadata.name"), detail));
    }
    if value > HIGHEST && !name.starts_with("system-") {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        errors.push(FieldError::forbidden(&Path::new("value"), detail));
    }
    let policies = ["PreemptLowerPriority", "Never"];
    if let Some(policy) = object["preemptionPolicy"].as_str().filter(|policy| !policies.contains(policy)) {
        errors.push(FieldError::not_supported(&Path::new("preemptionPolicy"), policy, &policies));
    }
}

pub(super) fn ingress_class(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let controller = text(spec, "controller");
    let place = path.child("controller");
    if controller.is_empty() {
        errors.push(FieldError::required(&place, ""));
    } else if !controller.contains('/') {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        errors.push(FieldError::invalid(&place, controller, detail));
    }
    let parameters = &spec["parameters"];
    if !parameters.is_object() {
        return;
    }
    let path = path.child("parameters");
    for key in ["kind", "name"] {
        if text(parameters, key).is_empty() {
            errors.push(FieldError::required(&path.child(key), ""));
        }
    }
    let scope = text(parameters, "scope");
    if !matches!(scope, "" | "Cluster" | "Namespace") {
        errors.push(FieldError::not_supported(&path.child("scope"), scope, &["Cluster", "Namespace"]));
    }
}

pub(super) fn lease(spec: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(seconds) = spec["leaseDurationSeconds"].as_i64().filter(|seconds| *seconds <= 0) {
        errors.push(FieldError::invalid(
            &path.child("leaseDurationSeconds"),
            seconds,
            "must be greater than 0",
        ));
    }
    not_negative(&spec["leaseTransitions"], &path.child("leaseTransitions"), errors);
}

pub(super) fn endpoint_slice(slice: &Value, errors: &mut ErrorList) {
    let kind = text(slice, "addressType");
    let types = ["FQDN", "IPv4", "IPv6"];
    if kind.is_empty() {
        errors.push(FieldError::required(&Path::new("addressType"), ""));
        return;
    }
    if !types.contains(&kind) {
        errors.push(FieldError::not_supported(&Path::new("addressType"), kind, &types));
        return;
    }
    let ports = list(slice, "ports");
    for (at, port) in ports.iter().enumerate() {
        let path = Path::new("ports").index(at);
        let name = text(port, "name");
        if ports[..at].iter().any(|other| text(other, "name") == name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let protocol = text(port, "protocol");
        if !matches!(protocol, "SCTP" | "TCP" | "UDP") {
            errors.push(FieldError::not_supported(
                &path.child("protocol"),
                protocol,
                &["SCTP", "TCP", "UDP"],
            ));
        }
    }
    for (at, endpoint) in list(slice, "endpoints").iter().enumerate() {
        one_endpoint(endpoint, kind, &Path::new("endpoints").index(at), errors);
    }
}

fn one_endpoint(endpoint: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    let addresses = list(endpoint, "addresses");
    let place = path.child("addresses");
    if addresses.is_empty() {
        errors.push(FieldError::required(&place, "must contain at least 1 address"));
    }
    for (at, text) in addresses.iter().filter_map(Value::as_str).enumerate() {
        let path = place.index(at);
        match kind {
            "FQDN" => faulty(names::dns1123_subdomain(text), text, &path, errors),
            _ => {
                let Some(found) = address(text, &path, errors) else { continue };
                if found.is_ipv4() != (kind == "IPv4") {
                    errors.push(FieldError::invalid(&place, text, format!("must be an {kind} address")));
                } else {
                    reachable(text, found, &path, errors);
                }
            }
        }
    }
    let node = text(endpoint, "nodeName");
    if !node.is_empty() {
        faulty(names::dns1123_subdomain(node), node, &path.child("nodeName"), errors);
    }
    let host = text(endpoint, "hostname");
    if !host.is_empty() {
        faulty(names::dns1123_label(host), host, &path.child("hostname"), errors);
    }
}

pub(super) fn endpoints(object: &Value, errors: &mut ErrorList) {
    for (at, subset) in list(object, "subsets").iter().enumerate() {
        let path = Path::new("subsets").index(at);
        if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
            errors.push(FieldError::required(&path, "must specify `addresses` or `notReadyAddresses`"));
        }
        for key in ["addresses", "notReadyAddresses"] {
            for (at, entry) in list(subset, key).iter().enumerate() {
                let path = path.child(key).index(at).child("ip");
                let ip = text(entry, "ip");
                match address(ip, &path, errors) {
                    Some(found) => reachable(ip, found, &path, errors),
                    None => errors.push(FieldError::invalid(&path, ip, "must be a valid IP address")),
                }
            }
        }
        for (at, port) in list(subset, "ports").iter().enumerate() {
            let number = port["port"].as_i64().unwrap_or_default();
            let path = path.child("ports").index(at);
            let name = text(port, "name");
            if name.is_empty() && list(subset, "ports").len() > 1 {
                errors.push(FieldError::required(&path.child("name"), ""));
            } else if !name.is_empty() {
                super::faulty(names::dns1123_label(name), name, &path.child("name"), errors);
            }
            let faults = names::port_number(number).into_iter();
            errors.extend(faults.map(|fault| FieldError::invalid(&path.child("port"), number, fault)));
            super::one_of(text(port, "protocol"), &["SCTP", "TCP", "UDP"], &path.child("protocol"), errors);
        }
    }
}
