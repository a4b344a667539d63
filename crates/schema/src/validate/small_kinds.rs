//! Smaller kinds: persistent volumes, classes, leases, endpoints.

use std::net::IpAddr;

use serde_json::Value;

use super::{faulty, list, names, not_negative, placement, pod::sources, text};
use crate::{ErrorList, FieldError, Path, Quantity};

/// What an address is expected to look like.
const ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
/// The sources of a persistent volume in the order in which the API server looks at them, and how it calls a
/// second one.
const SOURCES: [(&str, &str); 22] = [
    ("hostPath", "hostPath"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("nfs", "nfs"),
    ("rbd", "rbd"),
    ("quobyte", "quobyte"),
    ("cephfs", "cephFS"),
    ("iscsi", "iscsi"),
    ("cinder", "cinder"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("scaleIO", "scaleIO"),
    ("local", "local"),
    ("storageos", "storageos"),
    ("csi", "csi"),
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
    let local_multicast = match address {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] == 0xff02,
    };
    for (is, detail) in [
        (address.is_unspecified(), "may not be unspecified (0.0.0.0 or ::)".to_owned()),
        (address.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()),
        (link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (
            local_multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned(),
        ),
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
        let given =
            spec.filter(|(name, source)| SOURCES.iter().any(|(kind, _)| kind == name) && !source.is_null());
        given.map(|(name, source)| (name.clone(), source.clone())).collect::<serde_json::Map<_, _>>().into()
    };
    let (mut after, before) = (sources(new), sources(old));
    if before["csi"].is_object() && before["csi"]["controllerExpandSecretRef"].is_null() {
        drop(after["csi"].as_object_mut().map(|csi| csi.remove("controllerExpandSecretRef")));
    }
    if after != before {
        let [before, after] =
            [before, after].map(|sources| super::internal::indented("PersistentVolumeSource", &sources));
        let difference = super::unified_diff::difference(&before, &after);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.push(FieldError::forbidden(&Path::new("spec.persistentvolumesource"), detail));
    }
    let (mode, old_mode) = (&new["spec"]["volumeMode"], &old["spec"]["volumeMode"]);
    if mode != old_mode {
        errors.push(FieldError::invalid(&Path::new("volumeMode"), mode.clone(), "field is immutable"));
    }
}

pub(super) fn volume(object: &Value, path: &Path, errors: &mut ErrorList) {
    let spec = &object["spec"];
    if list(spec, "accessModes").is_empty() {
        errors.push(FieldError::required(&path.child("accessModes"), ""));
    }
    super::storage::access_modes(spec, &path.child("accessModes"), errors);
    capacity(&spec["capacity"], &path.child("capacity"), errors);
    let policies = ["Delete", "Recycle", "Retain"];
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    if !policy.is_empty() && !policies.contains(&policy) {
        let path = path.child("persistentVolumeReclaimPolicy");
        errors.push(FieldError::not_supported(&path, policy, &policies));
    }
    if spec["nodeAffinity"].is_object() {
        let (affinity, path) =
            (&spec["nodeAffinity"]["required"], path.child("nodeAffinity").child("required"));
        match affinity.is_object() {
            true => placement::node_selector(affinity, &path, errors),
            false => errors.push(FieldError::required(&path, "must specify required node constraints")),
        }
    }
    volume_sources(object, path, errors);
    let root = spec["hostPath"]["path"].as_str().is_some_and(is_root);
    if policy == "Recycle" && spec["hostPath"].is_object() && root {
        let path = path.child("persistentVolumeReclaimPolicy");
        errors.push(FieldError::forbidden(&path, "may not be 'recycle' for a hostPath mount of '/'"));
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        faulty(names::dns1123_subdomain(class), class, &path.child("storageClassName"), errors);
    }
    super::storage::volume_mode(spec, path, errors);
    if let Some(class) = spec["volumeAttributesClassName"].as_str() {
        let place = path.child("volumeAttributesClassName");
        match class {
            "" => errors.push(FieldError::required(&place, "an empty string is disallowed")),
            class => faulty(names::dns1123_subdomain(class), class, &place, errors),
        }
        if !spec["csi"].is_object() {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.push(FieldError::required(&path.child("csi"), detail));
        }
    }
}

/// Whether a path leads to the root, whatever it takes on the way.
fn is_root(place: &str) -> bool {
    let mut depth = 0usize;
    for part in place.split('/') {
        match part {
            "" | "." => {}
            ".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    place.starts_with('/') && depth == 0
}

/// What a volume is made of: one of many.
fn volume_sources(object: &Value, path: &Path, errors: &mut ErrorList) {
    let spec = &object["spec"];
    let mut count = 0;
    for (kind, second) in SOURCES.into_iter().filter(|(kind, _)| spec[*kind].is_object()) {
        count += 1;
        // The server looks at this one in any case.
        if count > 1 && kind != "flexVolume" {
            let detail = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(&path.child(second), detail));
            continue;
        }
        let (source, place) = (&spec[kind], path.child(kind));
        match kind {
            "csi" => csi(source, &place, errors),
            _ => sources::source(kind, source, true, &place, errors),
        }
        if kind == "iscsi" {
            sources::iscsi_portal(text(&object["metadata"], "name"), source, &place, errors);
        }
        if kind == "local" && !spec["nodeAffinity"].is_object() {
            let detail = "Local volume requires node affinity";
            errors.push(FieldError::required(&path.child("nodeAffinity"), detail));
        }
    }
    if count == 0 {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

fn csi(source: &Value, path: &Path, errors: &mut ErrorList) {
    const SECRETS: [&str; 4] = [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ];
    sources::driver_name(text(source, "driver"), &path.child("driver"), errors);
    if text(source, "volumeHandle").is_empty() {
        errors.push(FieldError::required(&path.child("volumeHandle"), ""));
    }
    for field in SECRETS.into_iter().filter(|field| source[*field].is_object()) {
        for (part, faults) in [
            ("name", names::dns1123_subdomain as fn(&str) -> Vec<String>),
            ("namespace", names::dns1123_label),
        ] {
            let (value, path) = (text(&source[field], part), path.child(field).child(part));
            match value {
                "" => errors.push(FieldError::required(&path, "")),
                value => faulty(faults(value), value, &path, errors),
            }
        }
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
    pod_networks(&object["spec"], errors);
}

/// The networks of a node's pods: at most one of each family.
fn pod_networks(spec: &Value, errors: &mut ErrorList) {
    let first = text(spec, "podCIDR");
    let alone = [Value::from(first)];
    let given = list(spec, "podCIDRs");
    // The older field counts where the two do not agree.
    let agrees = given.first().is_some_and(|network| network == first);
    let (networks, path) =
        (if first.is_empty() || agrees { given } else { &alone }, Path::new("spec.podCIDRs"));
    let networks = if first.is_empty() { &[][..] } else { networks };
    let mut families = Vec::new();
    for (at, network) in networks.iter().filter_map(Value::as_str).enumerate() {
        match names::cidr(network) {
            Some((address, _)) => families.push(address.is_ipv4()),
            None => errors.push(FieldError::invalid(&path.index(at), network, names::CIDR)),
        }
    }
    let is_dual = families.contains(&true) && families.contains(&false) && networks.len() == 2;
    if networks.len() > 1 && !is_dual {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(&path, networks.to_vec(), detail));
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
    if let Some(policy) = object["preemptionPolicy"].as_str() {
        let known = ["PreemptLowerPriority", "Never"];
        super::one_of(policy, &known, &Path::new("preemptionPolicy"), errors);
    }
}

pub(super) fn ingress_class(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let controller = text(spec, "controller");
    let place = path.child("controller");
    const LONGEST: usize = 250;
    if controller.len() > LONGEST {
        errors.push(FieldError::too_long(&place, LONGEST));
    }
    super::domain_path(controller, &place, errors);
    let parameters = &spec["parameters"];
    if !parameters.is_object() {
        return;
    }
    let path = path.child("parameters");
    super::network::typed_reference(parameters, &path, errors);
    let (namespace, place) = (parameters["namespace"].as_str(), path.child("namespace"));
    if let Some(namespace) = namespace.filter(|_| parameters["scope"] != "Cluster") {
        faulty(names::dns1123_label(namespace), namespace, &place, errors);
    }
    let Some(scope) = parameters["scope"].as_str() else {
        errors.push(FieldError::required(&path.child("scope"), ""));
        return;
    };
    match (scope, namespace) {
        ("Namespace", None) => {
            errors.push(FieldError::required(&place, "`parameters.scope` is set to 'Namespace'"));
        }
        ("Cluster", Some(_)) => {
            errors.push(FieldError::forbidden(&place, "`parameters.scope` is set to 'Cluster'"));
        }
        ("Namespace" | "Cluster", _) => {}
        (other, _) => {
            errors.push(FieldError::not_supported(&path.child("scope"), other, &["Cluster", "Namespace"]));
        }
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
        if !name.is_empty() {
            faulty(names::dns1123_label(name), name, &path.child("name"), errors);
        }
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
    for (at, protocol) in ports.iter().map(|port| port["appProtocol"].as_str()).enumerate() {
        if let Some(protocol) = protocol {
            let path = Path::new("ports").index(at).child("appProtocol");
            faulty(names::qualified_name(protocol), protocol, &path, errors);
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
    if let Some(host) = endpoint["hostname"].as_str() {
        faulty(names::dns1123_label(host), host, &path.child("hostname"), errors);
    }
    for (field, faults) in
        [("forZones", names::label_value as fn(&str) -> Vec<String>), ("forNodes", names::dns1123_subdomain)]
    {
        let hints = list(&endpoint["hints"], field);
        for (at, hint) in hints.iter().enumerate() {
            let (name, path) = (text(hint, "name"), path.child("hints").child(field).index(at).child("name"));
            if hints[..at].iter().any(|other| text(other, "name") == name) {
                errors.push(FieldError::duplicate(&path, name));
            }
            faulty(faults(name), name, &path, errors);
        }
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
                let entry_path = path.child(key).index(at);
                let path = entry_path.child("ip");
                let ip = text(entry, "ip");
                let host = text(entry, "hostname");
                if !host.is_empty() {
                    faulty(names::dns1123_label(host), host, &entry_path.child("hostname"), errors);
                }
                if let Some(node) = entry["nodeName"].as_str() {
                    faulty(names::dns1123_subdomain(node), node, &entry_path.child("nodeName"), errors);
                }
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
            if let Some(protocol) = port["appProtocol"].as_str() {
                faulty(names::qualified_name(protocol), protocol, &path.child("appProtocol"), errors);
            }
        }
    }
}
