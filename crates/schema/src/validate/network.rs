//! Ingresses, network policies, and the addresses of Services.

use serde_json::Value;

use super::{faulty, list, names, selector, text};
use crate::{ErrorList, FieldError, FieldRule, Path};

const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];

/// An Ingress that is new: its class is said in one way.
pub(super) fn new_ingress(object: &Value, errors: &mut ErrorList) {
    const CLASS: &str = "kubernetes.io/ingress.class";
    ingress(&object["spec"], &Path::new("spec"), errors);
    let (old, new) = (object["metadata"]["annotations"][CLASS].as_str(), &object["spec"]["ingressClassName"]);
    if let (Some(old), Some(new)) = (old, new.as_str())
        && old != new
    {
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid(&Path::new("annotations").child(CLASS), old, detail));
    }
}

pub(super) fn ingress(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let rules = list(spec, "rules");
    let backend = &spec["defaultBackend"];
    if rules.is_empty() && !backend.is_object() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        let error = FieldError::invalid(path, spec["rules"].clone(), detail);
        errors.push(error.by_rule(FieldRule::HasBackend));
    }
    if backend.is_object() {
        ingress_backend(backend, &path.child("defaultBackend"), errors);
    }
    for (at, rule) in rules.iter().enumerate() {
        ingress_rule(rule, &path.child("rules").index(at), errors);
    }
    for (at, tls) in list(spec, "tls").iter().enumerate() {
        let path = path.child("tls").index(at);
        for (at, host) in list(tls, "hosts").iter().enumerate() {
            host_name(host.as_str().unwrap_or_default(), &path.child("hosts").index(at), errors);
        }
        let secret = text(tls, "secretName");
        if !secret.is_empty() {
            faulty(names::dns1123_subdomain(secret), secret, &path.child("secretName"), errors);
        }
    }
    let class = text(spec, "ingressClassName");
    if spec["ingressClassName"].is_string() {
        faulty(names::dns1123_subdomain(class), class, &path.child("ingressClassName"), errors);
    }
}

fn host_name(host: &str, path: &Path, errors: &mut ErrorList) {
    if host.contains('*') {
        let fine = host.strip_prefix("*.").is_some_and(|rest| names::dns1123_subdomain(rest).is_empty());
        if !fine {
            let detail = r"a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
            errors.push(FieldError::invalid(path, host, detail));
        }
        return;
    }
    faulty(names::dns1123_subdomain(host), host, path, errors);
}

fn ingress_rule(rule: &Value, path: &Path, errors: &mut ErrorList) {
    let host = text(rule, "host");
    if host.parse::<std::net::IpAddr>().is_ok() {
        errors.push(FieldError::invalid(&path.child("host"), host, "must be a DNS name, not an IP address"));
    }
    if !host.is_empty() {
        host_name(host, &path.child("host"), errors);
    }
    if !rule["http"].is_object() {
        return;
    }
    let path = path.child("http").child("paths");
    let paths = list(&rule["http"], "paths");
    if paths.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    for (at, one) in paths.iter().enumerate() {
        ingress_path(one, &path.index(at), errors);
    }
}

fn ingress_path(one: &Value, path: &Path, errors: &mut ErrorList) {
    let Some(kind) = one["pathType"].as_str() else {
        errors.push(FieldError::required(&path.child("pathType"), "pathType must be specified"));
        return;
    };
    let given = text(one, "path");
    let absolute = given.starts_with('/');
    match kind {
        "Exact" | "Prefix" => {
            if !absolute {
                errors.push(FieldError::invalid(&path.child("path"), given, "must be an absolute path"));
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|part| given.contains(*part)) {
                errors.push(FieldError::invalid(
                    &path.child("path"),
                    given,
                    format!("must not contain '{part}'"),
                ));
            }
            for end in ["/..", "/."].into_iter().filter(|end| given.ends_with(*end)) {
                errors.push(FieldError::invalid(
                    &path.child("path"),
                    given,
                    format!("cannot end with '{end}'"),
                ));
            }
        }
        "ImplementationSpecific" if !given.is_empty() && !absolute => {
            errors.push(FieldError::invalid(&path.child("path"), given, "must be an absolute path"));
        }
        "ImplementationSpecific" => {}
        other => errors.push(FieldError::not_supported(&path.child("pathType"), other, &PATH_TYPES)),
    }
    ingress_backend(&one["backend"], &path.child("backend"), errors);
}

fn ingress_backend(backend: &Value, path: &Path, errors: &mut ErrorList) {
    let (service, resource) = (&backend["service"], &backend["resource"]);
    if service.is_object() && resource.is_object() {
        errors.push(FieldError::invalid(path, "", "cannot set both resource and service backends"));
        return;
    }
    if resource.is_object() {
        typed_reference(resource, &path.child("resource"), errors);
        return;
    }
    if !service.is_object() {
        errors.push(FieldError::invalid(path, "", "resource or service backend is required"));
        return;
    }
    let service_path = path.child("service");
    match text(service, "name") {
        "" => errors.push(FieldError::required(&service_path.child("name"), "")),
        name => faulty(names::dns1123_label(name), name, &service_path.child("name"), errors),
    }
    let port = &service["port"];
    let (name, number) = (text(port, "name"), port["number"].as_i64().unwrap_or_default());
    let port_path = service_path.child("port");
    match (name.is_empty(), number) {
        (false, 0) => faulty(names::port_name(name), name, &port_path.child("name"), errors),
        (false, _) => errors.push(FieldError::invalid(path, "", "cannot set both port name & port number")),
        (true, 0) => errors.push(FieldError::required(path, "port name or number is required")),
        (true, number) => {
            let faults = names::port_number(number);
            let path = port_path.child("number");
            errors.extend(faults.into_iter().map(|fault| FieldError::invalid(&path, number, fault)));
        }
    }
}

/// A reference to an object of some kind: its group, kind and name.
pub(super) fn typed_reference(reference: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(group) = reference["apiGroup"].as_str() {
        faulty(names::dns1123_subdomain(group), group, &path.child("apiGroup"), errors);
    }
    for field in ["kind", "name"] {
        match text(reference, field) {
            "" => errors.push(FieldError::required(&path.child(field), "")),
            value => faulty(names::path_segment(value), value, &path.child(field), errors),
        }
    }
}

pub(super) fn policy(spec: &Value, path: &Path, errors: &mut ErrorList) {
    selector(&spec["podSelector"], &path.child("podSelector"), errors);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (at, rule) in list(spec, direction).iter().enumerate() {
            let path = path.child(direction).index(at);
            for (at, port) in list(rule, "ports").iter().enumerate() {
                policy_port(port, &path.child("ports").index(at), errors);
            }
            for (at, peer) in list(rule, peers).iter().enumerate() {
                policy_peer(peer, &path.child(peers).index(at), errors);
            }
        }
    }
    let types = list(spec, "policyTypes");
    if types.len() > 2 {
        let detail = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(&path.child("policyTypes"), types.to_vec(), detail));
        return;
    }
    for (at, kind) in types.iter().enumerate() {
        if !matches!(kind.as_str(), Some("Ingress" | "Egress")) {
            let path = path.child("policyTypes").index(at);
            errors.push(FieldError::not_supported(&path, kind.clone(), &["Ingress", "Egress"]));
        }
    }
}

fn policy_port(port: &Value, path: &Path, errors: &mut ErrorList) {
    let protocols = ["TCP", "UDP", "SCTP"];
    if let Some(protocol) = port["protocol"].as_str().filter(|protocol| !protocols.contains(protocol)) {
        errors.push(FieldError::not_supported(&path.child("protocol"), protocol, &protocols));
    }
    let (first, place) = (&port["port"], path.child("port"));
    match first {
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            let faults = names::port_number(number).into_iter();
            errors.extend(faults.map(|fault| FieldError::invalid(&place, number, fault)));
            if port["endPort"].as_i64().is_some_and(|end| end < number) {
                let detail = "must be greater than or equal to `port`";
                errors.push(FieldError::invalid(&path.child("endPort"), number, detail));
            }
            if let Some(end) = port["endPort"].as_i64() {
                let faults = names::port_number(end).into_iter();
                let path = path.child("endPort");
                errors.extend(faults.map(|fault| FieldError::invalid(&path, end, fault)));
            }
        }
        Value::String(name) => {
            if port["endPort"].is_i64() {
                let detail = "may not be specified when `port` is non-numeric";
                errors.push(FieldError::invalid(&path.child("endPort"), port["endPort"].clone(), detail));
            }
            faulty(names::port_name(name), name, &place, errors);
        }
        _ if port["endPort"].is_i64() => {
            let detail = "may not be specified when `port` is not specified";
            errors.push(FieldError::invalid(&path.child("endPort"), port["endPort"].clone(), detail));
        }
        _ => {}
    }
}

fn ip_block(block: &Value, path: &Path, errors: &mut ErrorList) {
    if text(block, "cidr").is_empty() {
        errors.push(FieldError::required(&path.child("cidr"), ""));
        return;
    }
    let outer = names::cidr(text(block, "cidr"));
    if outer.is_none() {
        errors.push(FieldError::invalid(&path.child("cidr"), text(block, "cidr"), names::CIDR));
    }
    for (at, except) in list(block, "except").iter().filter_map(Value::as_str).enumerate() {
        let path = path.child("except").index(at);
        match (names::cidr(except), outer) {
            (None, _) => errors.push(FieldError::invalid(&path, except, names::CIDR)),
            (Some(inner), Some(outer)) if !names::is_strictly_within(inner, outer) => {
                errors.push(FieldError::invalid(&path, except, "must be a strict subset of `cidr`"));
            }
            _ => {}
        }
    }
}

fn policy_peer(peer: &Value, path: &Path, errors: &mut ErrorList) {
    let selects = peer["podSelector"].is_object() || peer["namespaceSelector"].is_object();
    for field in ["podSelector", "namespaceSelector"] {
        selector(&peer[field], &path.child(field), errors);
    }
    if peer["ipBlock"].is_object() {
        ip_block(&peer["ipBlock"], &path.child("ipBlock"), errors);
    }
    match (selects, peer["ipBlock"].is_object()) {
        (false, false) => errors.push(FieldError::required(path, "must specify a peer")),
        (true, true) => {
            let detail = "may not specify both ipBlock and another peer";
            errors.push(FieldError::forbidden(path, detail));
        }
        _ => {}
    }
}
/// An address that something has (networking.k8s.io/v1 IPAddress).
pub(super) fn ip_address(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let parent = &spec["parentRef"];
    let path = path.child("parentRef");
    if !parent.is_object() {
        errors.push(FieldError::required(&path, ""));
        return;
    }
    let group = text(parent, "group");
    if !group.is_empty() {
        faulty(names::dns1123_subdomain(group), group, &path.child("group"), errors);
    }
    for field in ["resource", "name", "namespace"] {
        match text(parent, field) {
            "" if field == "namespace" => {}
            "" => errors.push(FieldError::required(&path.child(field), "")),
            name => faulty(names::path_segment(name), name, &path.child(field), errors),
        }
    }
}

/// What is wrong with a network, strictly taken (`IsValidCIDR` of apimachinery).
fn range_fault(range: &str) -> Option<String> {
    let Some((address, bits)) = names::cidr(range) else { return Some(names::CIDR.to_owned()) };
    let (number, width) = match address {
        std::net::IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32),
        std::net::IpAddr::V6(v6) => (u128::from(v6), 128),
    };
    let beyond = (1u128.checked_shl(width - u32::from(bits)).unwrap_or(0)).wrapping_sub(1);
    if number & beyond != 0 {
        return Some("must not have bits set beyond the prefix length".to_owned());
    }
    let canonical = format!("{address}/{bits}");
    (canonical != range).then(|| format!("must be in canonical form (\"{canonical}\")"))
}

/// A range that Services get their addresses from (networking.k8s.io/v1 ServiceCIDR).
pub(super) fn service_cidr(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let ranges = list(spec, "cidrs");
    let path = path.child("cidrs");
    match ranges.len() {
        0 => errors.push(FieldError::required(&path, "at least one CIDR required")),
        1 | 2 => {}
        _ => {
            let shown = serde_json::json!({"CIDRs": ranges}).to_string();
            errors.push(FieldError::invalid_as(&path, shown, "may only hold up to 2 values"));
            return;
        }
    }
    for (at, range) in ranges.iter().enumerate() {
        let range = range.as_str().unwrap_or_default();
        if let Some(fault) = range_fault(range) {
            errors.push(FieldError::invalid(&path.index(at), range, fault));
        }
    }
    let families: Vec<bool> =
        ranges.iter().filter_map(|range| Some(names::cidr(range.as_str()?)?.0.is_ipv4())).collect();
    if families.len() == 2 && families[0] == families[1] {
        let detail =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(&path, spec["cidrs"].clone(), detail));
    }
}
