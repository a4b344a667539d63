//! Nodes, Services, autoscalers, namespaces and certificate requests.

use tiphys_value::{Value, json};

use super::{
    conditions,
    text::{Field, below, fields, number, pairs, value, values},
};

pub(super) fn node(described: &[Field<'_>]) -> Value {
    let taints = values(described, "Taints").into_iter().filter_map(|taint| {
        let (key, effect) = taint.rsplit_once(':')?;
        let (key, value) = key.split_once('=').unwrap_or((key, ""));
        Some(json!({"key": key, "value": value, "effect": effect}))
    });
    let addresses = fields(below(described, "Addresses"));
    let addresses: Vec<Value> =
        addresses.iter().map(|it| json!({"type": it.key, "address": it.value})).collect();
    let mut live = json!({
        "spec": {"taints": taints.collect::<Vec<Value>>()},
        "status": {"conditions": conditions(described), "addresses": addresses},
    });
    if value(described, "Unschedulable") == Some("true") {
        live["spec"]["unschedulable"] = json!(true);
    }
    for amount in fields(below(described, "Allocatable")) {
        live["status"]["allocatable"][amount.key] = json!(amount.value);
    }
    live
}

pub(super) fn service(described: &[Field<'_>]) -> Value {
    let selector: Value =
        pairs(&values(described, "Selector")).into_iter().map(|(key, value)| (key, json!(value))).collect();
    let mut ports: Vec<Value> = Vec::new();
    for field in described {
        match field.key {
            "Port" => {
                let mut words = field.value.split_whitespace();
                let name = words.next().filter(|name| *name != "<unset>").unwrap_or_default();
                let (port, protocol) = words.next().and_then(|it| it.split_once('/')).unwrap_or_default();
                ports.push(json!({"name": name, "port": number(port), "protocol": protocol}));
            }
            "TargetPort" => {
                let target = field.value.split('/').next().unwrap_or_default();
                if let Some(last) = ports.last_mut() {
                    last["targetPort"] =
                        target.parse::<i64>().map_or_else(|_| json!(target), |number| json!(number));
                }
            }
            _ => {}
        }
    }
    let mut live = json!({"spec": {"selector": selector, "ports": ports}, "status": {}});
    if let Some(address) = value(described, "LoadBalancer Ingress") {
        let found = address.split(',').map(|it| it.split_whitespace().next().unwrap_or_default());
        live["status"]["loadBalancer"]["ingress"] = found.map(|address| json!({"ip": address})).collect();
    }
    for (title, key) in [("Type", "type"), ("IP", "clusterIP"), ("External Name", "externalName")] {
        if let Some(text) = value(described, title) {
            live["spec"][key] = json!(text);
        }
    }
    live
}

pub(super) fn namespace(described: &[Field<'_>]) -> Value {
    let found = conditions(described);
    json!({"status": {"phase": value(described, "Status").unwrap_or_default(), "conditions": found}})
}

pub(super) fn request(described: &[Field<'_>]) -> Value {
    let state = value(described, "Status").unwrap_or("Pending");
    let words = state.split(',').filter(|word| matches!(*word, "Approved" | "Denied" | "Failed"));
    let found: Vec<Value> = words.map(|word| json!({"type": word, "status": "True"})).collect();
    json!({
        "spec": {
            "username": value(described, "Requesting User").unwrap_or_default(),
            "signerName": value(described, "Signer").unwrap_or_default(),
        },
        "status": {"conditions": found},
    })
}

pub(super) fn autoscaler(described: &[Field<'_>]) -> Value {
    let (kind, name) = value(described, "Reference").and_then(|it| it.split_once('/')).unwrap_or_default();
    let told = |key: &str| value(described, key).and_then(number);
    json!({
        "spec": {
            "scaleTargetRef": {"kind": kind, "name": name},
            "minReplicas": told("Min replicas"),
            "maxReplicas": told("Max replicas"),
        },
        "status": {"conditions": conditions(described)},
    })
}
