//! What the API server gives an object and keeps when a writer says nothing of it.

use serde_json::Value;
use tiphys_value::ObjectExt;

/// Puts back into what a target makes of a live object what the API server would not let it take away.
pub(crate) fn keep(predicted: &mut Value, live: &Value) {
    let gvk = live.gvk();
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Service") => keep_addresses(predicted, live),
        ("", "Pod") => {
            keep_fields(predicted, live, &["priority", "preemptionPolicy"]);
            keep_tolerations(predicted, live);
        }
        _ => {}
    }
}

/// Whether a value is one that the API server takes for none.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) | Value::Object(_) => false,
    }
}

/// Admission lets every pod stay on a lost node for some minutes, unless it says otherwise
/// (`DefaultTolerationSeconds`).
fn keep_tolerations(predicted: &mut Value, live: &Value) {
    const KEYS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    let of = |pod: &Value| -> Vec<Value> {
        pod.at(&["spec", "tolerations"]).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut wanted = of(predicted);
    for toleration in of(live) {
        let key = toleration.str_at(&["key"]).unwrap_or_default();
        let is_given = toleration.str_at(&["effect"]) == Some("NoExecute") && KEYS.contains(&key);
        if is_given && !wanted.iter().any(|other| other.str_at(&["key"]).unwrap_or_default() == key) {
            wanted.push(toleration);
        }
    }
    if !wanted.is_empty() {
        predicted["spec"]["tolerations"] = wanted.into();
    }
}

/// Puts back fields of the specification that are missing.
fn keep_fields(predicted: &mut Value, live: &Value, fields: &[&str]) {
    for field in fields {
        let missing = predicted.at(&["spec", field]).is_none_or(says_nothing);
        if let (true, Some(value)) = (missing, live.at(&["spec", field])) {
            predicted["spec"][*field] = value.clone();
        }
    }
}

/// A port without a target leads to the port of the same number.
fn keep_target_ports(predicted: &mut Value, live: &Value) {
    let before = live.at(&["spec", "ports"]).and_then(Value::as_array).cloned().unwrap_or_default();
    for port in predicted.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let is_same = |other: &&Value| other.get("port") == port.get("port");
        let stored = before.iter().find(is_same).and_then(|port| port.get("targetPort"));
        if let Some(stored) = stored
            && port.get("targetPort").is_some_and(says_nothing)
            && Some(stored) == port.get("port")
        {
            port["targetPort"] = stored.clone();
        }
    }
}

/// Addresses and ports of a Service stay as long as its type needs them.
fn keep_addresses(predicted: &mut Value, live: &Value) {
    let is_external = |service: &Value| service.str_at(&["spec", "type"]) == Some("ExternalName");
    if is_external(predicted) || is_external(live) {
        return;
    }
    keep_fields(
        predicted,
        live,
        &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"],
    );
    keep_target_ports(predicted, live);
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
