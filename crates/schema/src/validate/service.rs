//! Services.

use std::collections::HashSet;

use serde_json::Value;

use super::{faulty, list, names, one_of, other, text};
use crate::{ErrorList, FieldError, Path};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

pub(super) fn service(service: &Value, errors: &mut ErrorList) {
    let (spec, path) = (&service["spec"], Path::new("spec"));
    let kind = text(spec, "type");
    let headless = text(spec, "clusterIP") == "None";
    let ports = list(spec, "ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    match kind {
        "LoadBalancer" if headless => {
            let detail = "may not be set to 'None' for LoadBalancer services";
            errors.push(FieldError::invalid(&path.child("clusterIPs").index(0), "None", detail));
        }
        "NodePort" if headless => {
            let detail = "may not be set to 'None' for NodePort services";
            errors.push(FieldError::invalid(&path.child("clusterIPs").index(0), "None", detail));
        }
        "ExternalName" => match text(spec, "externalName").trim_end_matches('.') {
            "" => errors.push(FieldError::required(&path.child("externalName"), "")),
            name => faulty(names::dns1123_subdomain(name), name, &path.child("externalName"), errors),
        },
        _ => {}
    }
    let mut names_seen = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        one_port(port, ports.len() > 1, &mut names_seen, &path.child("ports").index(at), errors);
    }
    super::labels(&spec["selector"], &path.child("selector"), errors);
    one_of(text(spec, "sessionAffinity"), &["ClientIP", "None"], &path.child("sessionAffinity"), errors);
    one_of(kind, &TYPES, &path.child("type"), errors);
    for (at, port) in ports.iter().enumerate().filter(|_| kind == "ClusterIP") {
        if port["nodePort"].as_i64().is_some_and(|number| number != 0) {
            let path = path.child("ports").index(at).child("nodePort");
            errors.push(FieldError::forbidden(&path, "may not be used when `type` is 'ClusterIP'"));
        }
    }
    addresses(spec, kind, &path, errors);
    families(spec, &path, errors);
    policies(spec, kind, &path, errors);
    duplicate_ports(ports, &path, errors);
}

fn addresses(spec: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    let cluster = text(spec, "clusterIP");
    if !matches!(cluster, "" | "None") && kind != "ExternalName" {
        other::address(cluster, &path.child("clusterIPs").index(0), errors);
    }
    for (at, ip) in list(spec, "externalIPs").iter().filter_map(Value::as_str).enumerate() {
        other::not_loopback(ip, &path.child("externalIPs").index(at), errors);
    }
    for (at, range) in list(spec, "loadBalancerSourceRanges").iter().filter_map(Value::as_str).enumerate() {
        if names::cidr(range.trim()).is_none() {
            let path = path.child("LoadBalancerSourceRanges").index(at);
            errors.push(FieldError::invalid(&path, range, names::CIDR));
        }
    }
    let seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].as_i64();
    if let Some(seconds) = seconds.filter(|seconds| !(1..=86400).contains(seconds)) {
        let path = path.child("sessionAffinityConfig").child("clientIP").child("timeoutSeconds");
        let detail = "must be greater than 0 and less than 86400";
        errors.push(FieldError::invalid(&path, seconds, detail));
    }
}

/// The cluster has IPv4 only.
fn families(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for (at, family) in list(spec, "ipFamilies").iter().filter_map(Value::as_str).enumerate() {
        let path = path.child("ipFamilies").index(at);
        match family {
            "IPv4" => {}
            // A headless Service without a selector may name what it likes.
            "IPv6" if text(spec, "clusterIP") == "None" => {}
            "IPv6" => errors.push(FieldError::invalid(&path, family, "not configured on this cluster")),
            other => errors.push(FieldError::not_supported(&path, other, &["IPv4", "IPv6"])),
        }
    }
    let known = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    let path = path.child("ipFamilyPolicy");
    match spec["ipFamilyPolicy"].as_str() {
        Some("RequireDualStack") if text(spec, "clusterIP") != "None" => {
            let detail = "this cluster is not configured for dual-stack services";
            errors.push(FieldError::invalid(&path, "RequireDualStack", detail));
        }
        Some(other) if !known.contains(&other) => {
            errors.push(FieldError::not_supported(&path, other, &known));
        }
        _ => {}
    }
}

fn policies(spec: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    let external = matches!(kind, "LoadBalancer" | "NodePort") || !list(spec, "externalIPs").is_empty();
    if let Some(policy) = spec["externalTrafficPolicy"].as_str().filter(|_| !external) {
        let detail = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(&path.child("externalTrafficPolicy"), policy, detail));
    }
    let known = ["Cluster", "Local"];
    for field in ["externalTrafficPolicy", "internalTrafficPolicy"] {
        if let Some(policy) = spec[field].as_str().filter(|policy| !known.contains(policy)) {
            errors.push(FieldError::not_supported(&path.child(field), policy, &known));
        }
    }
    let own = kind == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local";
    if let Some(port) = spec["healthCheckNodePort"].as_i64().filter(|port| *port != 0 && !own) {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid(&path.child("healthCheckNodePort"), port, detail));
    }
    if let Some(class) = spec["loadBalancerClass"].as_str() {
        faulty(names::qualified_name(class), class, &path.child("loadBalancerClass"), errors);
    }
    let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    if let Some(other) = spec["trafficDistribution"].as_str().filter(|other| !known.contains(other)) {
        errors.push(FieldError::not_supported(&path.child("trafficDistribution"), other, &known));
    }
}

fn one_port<'a>(
    port: &'a Value,
    several: bool,
    seen: &mut HashSet<&'a str>,
    path: &Path,
    errors: &mut ErrorList,
) {
    let name = text(port, "name");
    if several && name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else if !name.is_empty() {
        faulty(names::dns1123_label(name), name, &path.child("name"), errors);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
    let number = port["port"].as_i64().unwrap_or_default();
    let faults = names::port_number(number);
    errors.extend(faults.into_iter().map(|fault| FieldError::invalid(&path.child("port"), number, fault)));
    one_of(text(port, "protocol"), &["SCTP", "TCP", "UDP"], &path.child("protocol"), errors);
    if let Some(protocol) = port["appProtocol"].as_str() {
        faulty(names::qualified_name(protocol), protocol, &path.child("appProtocol"), errors);
    }
    match &port["targetPort"] {
        Value::Number(target) => {
            let target = target.as_i64().unwrap_or_default();
            let faults = names::port_number(target);
            let path = path.child("targetPort");
            errors.extend(faults.into_iter().map(|fault| FieldError::invalid(&path, target, fault)));
        }
        Value::String(target) => faulty(names::port_name(target), target, &path.child("targetPort"), errors),
        _ => {}
    }
}

fn duplicate_ports(ports: &[Value], path: &Path, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        // The message shows the server's internal struct, of which only two fields are compared.
        let shown = serde_json::json!({"Name": "", "Protocol": port["protocol"], "AppProtocol": null,
            "Port": port["port"], "TargetPort": 0, "NodePort": 0});
        if !seen.insert(shown.to_string()) {
            let text = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                port["protocol"], port["port"]
            );
            errors.push(FieldError::duplicate(&path.child("ports").index(at), shown).shown_as(text));
        }
    }
}

pub(super) fn update(new: &Value, old: &Value, errors: &mut ErrorList) {
    let external = |service: &Value| service["spec"]["type"] == "ExternalName";
    if external(new) || external(old) {
        return;
    }
    let before = text(&old["spec"], "clusterIP");
    let after = text(&new["spec"], "clusterIP");
    if !before.is_empty() && before != after {
        let value = vec![Value::from(after)];
        let path = Path::new("spec.clusterIPs").index(0);
        errors.push(FieldError::invalid(&path, value, "may not change once set"));
    }
}
