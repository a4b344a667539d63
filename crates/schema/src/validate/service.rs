//! Services.

use std::collections::HashSet;

use serde_json::Value;

use super::{faulty, list, names, one_of, small_kinds, text};
use crate::{ErrorList, FieldError, FieldRule, Path};

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
        "LoadBalancer" | "NodePort" if headless => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(&path.child("clusterIPs").index(0), "None", detail));
        }
        "ExternalName" => external_name(spec, &path, errors),
        _ => {}
    }
    let mut names_seen = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        one_port(port, ports.len() > 1, &mut names_seen, &path.child("ports").index(at), errors);
    }
    super::labels(&spec["selector"], &path.child("selector"), errors);
    affinity(spec, &path, errors);
    if kind != "ExternalName" {
        addresses(spec, &path, errors);
    }
    for (at, ip) in list(spec, "externalIPs").iter().filter_map(Value::as_str).enumerate() {
        small_kinds::not_loopback(ip, &path.child("externalIPs").index(at), errors);
    }
    one_of(kind, &TYPES, &path.child("type"), errors);
    for (at, port) in ports.iter().enumerate().filter(|_| kind == "ClusterIP") {
        if port["nodePort"].as_i64().is_some_and(|number| number != 0) {
            let path = path.child("ports").index(at).child("nodePort");
            errors.push(FieldError::forbidden(&path, "may not be used when `type` is 'ClusterIP'"));
        }
    }
    duplicate_ports(ports, &path, errors);
    source_ranges(service, kind, &path, errors);
    balancer_fields(spec, kind, &path, errors);
    policies(spec, kind, &path, errors);
    // Addresses are given out to what is valid otherwise.
    if errors.is_empty() && kind != "ExternalName" {
        stacks(spec, &path, errors);
    }
}

fn external_name(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let detail = "may not be set for ExternalName services";
    for field in ["clusterIPs", "ipFamilies"] {
        let has_one = field == "clusterIPs" && !text(spec, "clusterIP").is_empty();
        if has_one || !list(spec, field).is_empty() {
            errors.push(FieldError::forbidden(&path.child(field), detail));
        }
    }
    if !spec["ipFamilyPolicy"].is_null() {
        errors.push(FieldError::forbidden(&path.child("ipFamilyPolicy"), detail));
    }
    let name = text(spec, "externalName");
    match name.strip_suffix('.').unwrap_or(name) {
        "" => errors.push(FieldError::required(&path.child("externalName"), "")),
        name => faulty(names::dns1123_subdomain(name), name, &path.child("externalName"), errors),
    }
}

fn affinity(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let kind = text(spec, "sessionAffinity");
    one_of(kind, &["ClientIP", "None"], &path.child("sessionAffinity"), errors);
    let (config, path) = (&spec["sessionAffinityConfig"], path.child("sessionAffinityConfig"));
    if kind == "None" && config.is_object() {
        errors.push(FieldError::forbidden(&path, "must not be set when session affinity is None"));
    }
    if kind != "ClientIP" {
        return;
    }
    let place = path.child("clientIP").child("timeoutSeconds");
    let missing = match () {
        () if !config.is_object() => &path,
        () if !config["clientIP"].is_object() => &path.child("clientIP"),
        () if config["clientIP"]["timeoutSeconds"].is_null() => &place,
        () => {
            let seconds = config["clientIP"]["timeoutSeconds"].as_i64().unwrap_or_default();
            if !(1..=86400).contains(&seconds) {
                let detail = "must be greater than 0 and less than 86400";
                errors.push(FieldError::invalid(&place, seconds, detail));
            }
            return;
        }
    };
    errors.push(FieldError::required(missing, "when session affinity type is ClientIP"));
}

/// Addresses and their families, whatever the cluster has.
fn addresses(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let (cluster, ips) = (text(spec, "clusterIP"), list(spec, "clusterIPs"));
    let place = path.child("clusterIPs");
    match ips.first().and_then(Value::as_str) {
        Some(_) if cluster.is_empty() => {
            let detail = "must be empty when `clusterIP` is not specified";
            errors.push(FieldError::invalid(&place, ips.to_vec(), detail));
        }
        Some(first) if first != cluster => {
            errors.push(FieldError::invalid(&place, ips.to_vec(), "first value must match `clusterIP`"));
        }
        _ => {}
    }
    families(spec, path, errors);
    // What is not completed yet has one address only.
    let of_one = [Value::from(cluster)];
    let ips = if ips.is_empty() && !cluster.is_empty() { &of_one[..] } else { ips };
    let mut families = Vec::new();
    for (at, ip) in ips.iter().map(|ip| ip.as_str().unwrap_or_default()).enumerate() {
        if at == 0 && ip == "None" {
            if ips.len() > 1 {
                let detail = "'None' must be the first and only value";
                errors.push(FieldError::invalid(&place, ips.to_vec(), detail));
            }
            continue;
        }
        families.extend(
            small_kinds::address(ip, &place.index(at), errors).map(|found| (at, ip, found.is_ipv4())),
        );
    }
    if ips.len() > 2 {
        errors.push(FieldError::invalid(&place, ips.to_vec(), "may only hold up to 2 values"));
    }
    if families.len() < ips.len() {
        return;
    }
    if ips.len() > 1 && !(families.len() == 2 && families[0].2 != families[1].2) {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(&place, ips.to_vec(), detail));
    }
    for ((at, ip, is_ipv4), family) in families.into_iter().zip(list(spec, "ipFamilies")) {
        let wrong = match family.as_str() {
            Some("IPv4") if !is_ipv4 => "IPv4",
            Some("IPv6") if is_ipv4 => "IPv6",
            _ => continue,
        };
        let detail = format!("expected an {wrong} value as indicated by `ipFamilies[{at}]`");
        errors.push(FieldError::invalid(&place.index(at), ip, detail));
    }
}

fn families(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let families = list(spec, "ipFamilies");
    let (families_path, policy_path) = (path.child("ipFamilies"), path.child("ipFamilyPolicy"));
    let known = ["IPv4", "IPv6"];
    for (at, family) in families.iter().enumerate() {
        if !known.contains(&family.as_str().unwrap_or_default()) {
            errors.push(FieldError::not_supported(&families_path.index(at), family.clone(), &known));
        }
        if families[..at].contains(family) {
            errors.push(FieldError::duplicate(&families_path.index(at), family.clone()));
        }
    }
    let known = ["PreferDualStack", "RequireDualStack", SINGLE];
    if let Some(policy) = spec["ipFamilyPolicy"].as_str().filter(|policy| !known.contains(policy)) {
        errors.push(FieldError::not_supported(&policy_path, policy, &known));
    }
}

/// From where a load balancer takes requests: in a field, or in an annotation.
fn source_ranges(service: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    const ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    const ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
    let ranges = list(&service["spec"], "loadBalancerSourceRanges");
    if !ranges.is_empty() {
        let path = path.child("LoadBalancerSourceRanges");
        if kind != "LoadBalancer" {
            errors.push(FieldError::forbidden(&path, ONLY));
        }
        for (at, range) in ranges.iter().filter_map(Value::as_str).enumerate() {
            let range = range.trim();
            if names::cidr(range).is_none() {
                errors.push(FieldError::invalid(&path.index(at), range, names::CIDR));
            }
        }
        return;
    }
    let Some(ranges) = service["metadata"]["annotations"][ANNOTATION].as_str() else { return };
    let path = Path::new("metadata.annotations").key(ANNOTATION);
    if kind != "LoadBalancer" {
        errors.push(FieldError::forbidden(&path, ONLY));
    }
    for range in ranges.trim().split(',').map(str::trim).filter(|_| !ranges.trim().is_empty()) {
        if names::cidr(range).is_none() {
            errors.push(FieldError::invalid(&path, range, names::CIDR));
        }
    }
}

fn balancer_fields(spec: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    const ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
    let is_balancer = kind == "LoadBalancer";
    if !spec["allocateLoadBalancerNodePorts"].is_null() && !is_balancer {
        errors.push(FieldError::forbidden(&path.child("allocateLoadBalancerNodePorts"), ONLY));
    }
    if let Some(class) = spec["loadBalancerClass"].as_str() {
        let path = path.child("loadBalancerClass");
        match is_balancer {
            true => faulty(names::qualified_name(class), class, &path, errors),
            false => errors.push(FieldError::forbidden(&path, ONLY)),
        }
    }
}

const SINGLE: &str = "SingleStack";

/// What a Service asks of the cluster, which has IPv4 only. A headless one without a selector has endpoints
/// of the user's, in whatever family they like.
fn stacks(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let is_headless = text(spec, "clusterIP") == "None";
    if is_headless && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty) {
        return;
    }
    let (ips, policy) = (list(spec, "clusterIPs"), text(spec, "ipFamilyPolicy"));
    let of_ipv6 = ips.iter().enumerate().filter(|(_, ip)| ip.as_str().is_some_and(|ip| ip.contains(':')));
    let of_ipv6: Vec<usize> = of_ipv6.map(|(at, _)| at).collect();
    let policy_path = path.child("ipFamilyPolicy");
    let is_torn = policy == SINGLE && list(spec, "ipFamilies").len() > 1;
    if is_torn {
        let detail =
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified";
        errors.push(FieldError::invalid(&policy_path, SINGLE, detail));
    }
    if !of_ipv6.is_empty() {
        if ips.len() > 1 && policy == SINGLE {
            let detail =
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified";
            errors.push(FieldError::invalid(&policy_path, SINGLE, detail));
        }
        for at in of_ipv6 {
            let detail = "IPv6 is not configured on this cluster";
            let path = path.child("clusterIPs").index(at);
            let error = FieldError::invalid(&path, ips.to_vec(), detail);
            errors.push(error.by_rule(FieldRule::ClusterConfiguration));
        }
        return;
    }
    if ips.len() > 1 {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(&path.child("clusterIPs"), ips.to_vec(), detail));
        return;
    }
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        let error = FieldError::invalid(&policy_path, policy, detail);
        errors.push(error.by_rule(FieldRule::ClusterConfiguration));
    }
    for (at, family) in list(spec, "ipFamilies").iter().filter_map(Value::as_str).enumerate() {
        if family == "IPv6" && !is_torn {
            let path = path.child("ipFamilies").index(at);
            let error = FieldError::invalid(&path, family, "not configured on this cluster");
            errors.push(error.by_rule(FieldRule::ClusterConfiguration));
        }
    }
}

fn policies(spec: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    let external = matches!(kind, "LoadBalancer" | "NodePort") || !list(spec, "externalIPs").is_empty();
    let (known, place) = (["Cluster", "Local"], path.child("externalTrafficPolicy"));
    match spec["externalTrafficPolicy"].as_str() {
        Some(policy) if !external => {
            let detail = "may only be set for externally-accessible services";
            errors.push(FieldError::invalid(&place, policy, detail));
        }
        Some(policy) if !known.contains(&policy) => {
            errors.push(FieldError::not_supported(&place, policy, &known));
        }
        _ => {}
    }
    let own = kind == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local";
    if let Some(port) = spec["healthCheckNodePort"].as_i64().filter(|port| *port != 0) {
        let place = path.child("healthCheckNodePort");
        match own {
            true => {
                let faults = names::port_number(port).into_iter();
                errors.extend(faults.map(|fault| FieldError::invalid(&place, port, fault)));
            }
            false => {
                let detail =
                    "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
                errors.push(FieldError::invalid(&place, port, detail));
            }
        }
    }
    if let Some(policy) = spec["internalTrafficPolicy"].as_str().filter(|policy| !known.contains(policy)) {
        errors.push(FieldError::not_supported(&path.child("internalTrafficPolicy"), policy, &known));
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
    let mut taken = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        let number = port["nodePort"].as_i64().unwrap_or_default();
        if number != 0 && !taken.insert((text(port, "protocol"), number)) {
            let path = path.child("ports").index(at).child("nodePort");
            errors.push(FieldError::duplicate(&path, number));
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What kube-apiserver 1.36 says with one range of IPv4.
    #[test]
    fn families_that_the_cluster_does_not_have_are_refused() {
        let told = |more: serde_json::Value| {
            let mut object = serde_json::json!({"spec": {"type": "ClusterIP", "sessionAffinity": "None",
                "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}], "selector": {"a": "b"}}});
            for (field, value) in more.as_object().into_iter().flatten() {
                object["spec"][field] = value.clone();
            }
            let mut errors = ErrorList::new();
            service(&object, &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        let two = "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified";
        let dual = "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services";
        let second = "spec.ipFamilies[1]: Invalid value: \"IPv6\": not configured on this cluster";
        let forbidden = "Forbidden: may not be set for ExternalName services";
        for (more, expected) in [
            (serde_json::json!({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4", "IPv6"]}), two.to_owned()),
            (serde_json::json!({"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4"]}), String::new()),
            (serde_json::json!({"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4", "IPv6"]}), second.to_owned()),
            (serde_json::json!({"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]}), format!("{dual}; {second}")),
            (serde_json::json!({"clusterIP": "None", "ipFamilyPolicy": "RequireDualStack"}), dual.to_owned()),
            (serde_json::json!({"clusterIP": "None", "selector": {}, "ipFamilyPolicy": "RequireDualStack"}), String::new()),
            (
                serde_json::json!({"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7", "10.96.0.8"]}),
                "spec.clusterIPs: Invalid value: [\"10.96.0.7\",\"10.96.0.8\"]: may specify no more than one IP for each IP family".to_owned(),
            ),
            (
                serde_json::json!({"type": "ExternalName", "externalName": "a.example.com", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}),
                format!("spec.ipFamilies: {forbidden}; spec.ipFamilyPolicy: {forbidden}"),
            ),
        ] {
            assert_eq!(told(more.clone()), expected, "{more}");
        }
    }
}
