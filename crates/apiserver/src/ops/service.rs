//! What the server decides about Services beside their addresses.

use tiphys_value::{ObjectExt, Value, json};

use super::items;
use crate::store::needs_health_check_port;

/// Address families are chosen when a Service is created and kept afterwards.
const FAMILIES: [&str; 2] = ["ipFamilies", "ipFamilyPolicy"];

/// Takes away what defaulting knows of address families, where the client did not name them: they are
/// the server's to choose, so nobody owns them.
pub(super) fn forget_families(given: &[bool; 2], service: &mut Value) {
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for (field, given) in FAMILIES.iter().zip(given) {
        if !given {
            spec.remove(*field);
        }
    }
}

/// Which of the address family fields a client named.
pub(super) fn families_given(service: &Value) -> [bool; 2] {
    FAMILIES.map(|field| service.at(&["spec", field]).is_some_and(|v| !v.is_null()))
}

/// Chooses address families, and lets go of node ports that the new type has no use for.
pub(super) fn complete(service: &mut Value, current: Option<&Value>) {
    if service.str_at(&["spec", "type"]) == Some("ExternalName") || !service["spec"].is_object() {
        return;
    }
    let headless = service.str_at(&["spec", "clusterIP"]) == Some("None");
    let selects =
        service.at(&["spec", "selector"]).is_some_and(|s| s.as_object().is_some_and(|s| !s.is_empty()));
    // Endpoints of a headless Service without a selector are the user's, in whatever family they like.
    let chosen = match headless && !selects {
        true => [json!(["IPv4", "IPv6"]), json!("RequireDualStack")],
        false => [json!(["IPv4"]), json!("SingleStack")],
    };
    for (field, chosen) in FAMILIES.into_iter().zip(chosen) {
        if service["spec"].get(field).is_none_or(Value::is_null) {
            let before = current.and_then(|c| c.at(&["spec", field])).cloned();
            service["spec"][field] = before.unwrap_or(chosen);
        }
    }
    if let Some(current) = current {
        keep_allocated(service, current);
        if has_node_ports(current) && !has_node_ports(service) {
            release_ports(service, current);
        }
        let field = ["spec", "healthCheckNodePort"];
        let is_same = service.at(&field).is_some() && service.at(&field) == current.at(&field);
        if is_same && needs_health_check_port(current) && !needs_health_check_port(service) {
            drop(service["spec"].as_object_mut().map(|spec| spec.remove("healthCheckNodePort")));
        }
    }
}

/// A client that replaces a Service need not know what was given to it: addresses and ports stay.
fn keep_allocated(service: &mut Value, current: &Value) {
    let is_external = |service: &Value| service.str_at(&["spec", "type"]) == Some("ExternalName");
    if is_external(current) || is_external(service) {
        return;
    }
    let is_silent = |field: &str| service.str_at(&["spec", field]).is_none_or(str::is_empty);
    if is_silent("clusterIP") {
        for field in ["clusterIP", "clusterIPs"] {
            if let Some(value) = current.at(&["spec", field]) {
                service["spec"][field] = value.clone();
            }
        }
    }
    if !has_node_ports(current) || !has_node_ports(service) {
        return;
    }
    if let Some(port) = current.at(&["spec", "healthCheckNodePort"])
        && service.at(&["spec", "healthCheckNodePort"]).is_none()
        && service.str_at(&["spec", "externalTrafficPolicy"]) == Some("Local")
    {
        service["spec"]["healthCheckNodePort"] = port.clone();
    }
    let taken: Vec<i64> = items(service, "/spec/ports").filter_map(|p| p.int_at(&["nodePort"])).collect();
    for port in service.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port.int_at(&["nodePort"]).is_some_and(|number| number != 0) {
            continue;
        }
        let same = |p: &&Value| p["port"] == port["port"] && p["protocol"] == port["protocol"];
        let before = items(current, "/spec/ports").find(same).and_then(|p| p.int_at(&["nodePort"]));
        if let Some(number) = before.filter(|number| !taken.contains(number)) {
            port["nodePort"] = number.into();
        }
    }
}

fn has_node_ports(service: &Value) -> bool {
    matches!(service.str_at(&["spec", "type"]), Some("NodePort" | "LoadBalancer"))
}

/// Node ports that were given out before go; one that the client names now is a fault of its own.
fn release_ports(service: &mut Value, current: &Value) {
    let before: Vec<i64> = items(current, "/spec/ports").filter_map(|p| p.int_at(&["nodePort"])).collect();
    for port in service.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port.int_at(&["nodePort"]).is_some_and(|n| before.contains(&n)) {
            drop(port.as_object_mut().map(|port| port.remove("nodePort")));
        }
    }
    if let Some(spec) = service["spec"].as_object_mut() {
        spec.remove("externalTrafficPolicy");
        spec.remove("allocateLoadBalancerNodePorts");
    }
}
