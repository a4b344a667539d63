//! Services, endpoints and network policies.

use serde_json::{Value, json};

use super::{Object, child, each, object_or_new, set, set_text, text};

pub(super) fn service(object: &mut Object) {
    if let Some(spec) = child(object, "spec") {
        service_spec(spec);
    }
}

fn service_spec(spec: &mut Object) {
    set_text(spec, "type", "ClusterIP");
    set_text(spec, "sessionAffinity", "None");
    if text(spec, "sessionAffinity") == "None" {
        spec.remove("sessionAffinityConfig");
    } else if let Some(config) = object_or_new(spec, "sessionAffinityConfig")
        && let Some(client) = object_or_new(config, "clientIP")
    {
        set(client, "timeoutSeconds", 10_800);
    }
    for port in each(spec, "ports") {
        set_text(port, "protocol", "TCP");
        let unset = port.get("targetPort").is_none_or(|target| *target == json!(0) || *target == json!(""));
        if unset && let Some(number) = port.get("port").cloned() {
            port.insert("targetPort".into(), number);
        }
    }
    let kind = text(spec, "type").to_owned();
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        set_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        set_text(spec, "internalTrafficPolicy", "Cluster");
        ip_families(spec);
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// Families of a cluster with IPv4 only; a headless service without selector may have any.
fn ip_families(spec: &mut Object) {
    let headless = text(spec, "clusterIP") == "None";
    let selected = spec.get("selector").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    let any_family = headless && !selected;
    set(spec, "ipFamilyPolicy", if any_family { "RequireDualStack" } else { "SingleStack" });
    let both = any_family && text(spec, "ipFamilyPolicy") != "SingleStack";
    match spec.get_mut("ipFamilies").and_then(Value::as_array_mut) {
        Some(families) if both && families.len() == 1 => {
            let other = if families[0] == "IPv4" { "IPv6" } else { "IPv4" };
            families.push(other.into());
        }
        Some(_) => {}
        None => set(spec, "ipFamilies", if both { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) }),
    }
}

pub(super) fn endpoints(object: &mut Object) {
    for subset in each(object, "subsets") {
        for port in each(subset, "ports") {
            set_text(port, "protocol", "TCP");
        }
    }
}

pub(super) fn endpoint_slice(object: &mut Object) {
    for port in each(object, "ports") {
        set(port, "name", "");
        set(port, "protocol", "TCP");
    }
}

pub(super) fn network_policy(object: &mut Object) {
    let Some(spec) = child(object, "spec") else { return };
    for direction in ["ingress", "egress"] {
        for rule in each(spec, direction) {
            for port in each(rule, "ports") {
                set(port, "protocol", "TCP");
            }
        }
    }
    let egress = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    // An empty list is as none at all.
    if spec.get("policyTypes").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        spec.remove("policyTypes");
    }
    set(spec, "policyTypes", types);
}

pub(super) fn ingress_class(object: &mut Object) {
    if let Some(parameters) = child(object, "spec").and_then(|spec| child(spec, "parameters")) {
        set(parameters, "scope", "Cluster");
    }
}
