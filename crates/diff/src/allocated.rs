//! What the API server gives an object and keeps when a writer says nothing of it.

use serde_json::Value;
use tiphys_value::ObjectExt;

/// Puts back into what a target makes of a live object what the API server would not let it take away.
pub(crate) fn keep(predicted: &mut Value, live: &Value) {
    let gvk = live.gvk();
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Service") => keep_addresses(predicted, live),
        ("", "Pod") => keep_fields(predicted, live, &["priority", "preemptionPolicy"]),
        _ => {}
    }
}

/// Puts back fields of the specification that are missing.
fn keep_fields(predicted: &mut Value, live: &Value, fields: &[&str]) {
    for field in fields {
        let missing = predicted.at(&["spec", field]).is_none_or(Value::is_null);
        if let (true, Some(value)) = (missing, live.at(&["spec", field])) {
            predicted["spec"][*field] = value.clone();
        }
    }
}

/// Addresses and ports of a Service stay as long as its type needs them.
fn keep_addresses(predicted: &mut Value, live: &Value) {
    let is_external = |service: &Value| service.str_at(&["spec", "type"]) == Some("ExternalName");
    if is_external(predicted) || is_external(live) {
        return;
    }
    keep_fields(predicted, live, &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]);
    let has_node_ports =
        |service: &Value| matches!(service.str_at(&["spec", "type"]), Some("NodePort" | "LoadBalancer"));
    if !has_node_ports(predicted) || !has_node_ports(live) {
        return;
    }
    if predicted.str_at(&["spec", "externalTrafficPolicy"]) == Some("Local") {
        keep_fields(predicted, live, &["healthCheckNodePort"]);
    }
    let ports = |service: &Value| -> Vec<Value> {
        service.at(&["spec", "ports"]).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (before, now) = (ports(live), ports(predicted));
    let taken: Vec<i64> = now.iter().filter_map(|port| port.int_at(&["nodePort"])).collect();
    for port in predicted.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port.int_at(&["nodePort"]).is_some_and(|number| number != 0) {
            continue;
        }
        let is_same = |other: &&Value| ["port", "protocol"].iter().all(|key| other.get(key) == port.get(key));
        let number = before.iter().find(is_same).and_then(|port| port.int_at(&["nodePort"]));
        if let Some(number) = number.filter(|number| !taken.contains(number)) {
            port["nodePort"] = number.into();
        }
    }
}
