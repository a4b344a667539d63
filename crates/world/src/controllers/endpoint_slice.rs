//! EndpointSlice: the Ready pods behind a Service (discovery.k8s.io/v1).

use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::workload::{is_ready, stable_suffix};
use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    labels::service_selects,
    object::{is_controlled_by, owner_reference, resources},
};

/// Keeps one EndpointSlice per Service with a selector.
pub struct EndpointSliceController;

impl Controller for EndpointSliceController {
    fn name(&self) -> &'static str {
        "endpointslice"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::services() {
            return vec![Key::of(&change.object)];
        }
        if change.resource != resources::pods() {
            return Vec::new();
        }
        let services = view.list(&resources::services(), Some(change.object.namespace()));
        services
            .iter()
            .filter(|service| service_selects(service, &change.object))
            .map(|s| Key::of(s))
            .collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(service) = context.view.get(&resources::services(), key) else { return Outcome::done() };
        let has_selector =
            service.at(&["spec", "selector"]).and_then(Value::as_object).is_some_and(|s| !s.is_empty());
        if service.is_terminating()
            || !has_selector
            || service.str_at(&["spec", "type"]) == Some("ExternalName")
        {
            return Outcome::done();
        }
        let pods = context.view.list(&resources::pods(), Some(service.namespace()));
        let pods: Vec<_> = pods.into_iter().filter(|pod| is_endpoint(&service, pod)).collect();
        let endpoints: Vec<Value> = pods.iter().map(|pod| endpoint(pod)).collect();
        let ports = ports(&service, &pods);
        let mut slices = context.view.list(&resources::endpoint_slices(), Some(service.namespace()));
        slices.retain(|slice| is_controlled_by(slice, &service));
        let Some(slice) = slices.first() else { return create(&service, endpoints, ports).into() };
        if slice["endpoints"] == json!(endpoints) && slice["ports"] == ports {
            return Outcome::done();
        }
        let mut changed = (**slice).clone();
        changed["endpoints"] = json!(endpoints);
        changed["ports"] = ports;
        Write::Update { resource: resources::endpoint_slices(), object: changed }.into()
    }
}

fn is_endpoint(service: &Value, pod: &Value) -> bool {
    service_selects(service, pod)
        && pod.str_at(&["status", "podIP"]).is_some()
        && !matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"))
}

fn endpoint(pod: &Value) -> Value {
    let is_ready = is_ready(pod);
    json!({
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": is_ready, "serving": is_ready, "terminating": pod.is_terminating()},
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": {"kind": "Pod", "name": pod.name(), "namespace": pod.namespace(), "uid": pod.uid()},
    })
}

fn ports(service: &Value, pods: &[Arc<Object>]) -> Value {
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array);
    let port = |port: &Value| {
        json!({
            "name": port.str_at(&["name"]).unwrap_or_default(),
            "port": target_port(port, pods),
            "protocol": port.str_at(&["protocol"]).unwrap_or("TCP"),
        })
    };
    ports.into_iter().flatten().map(port).collect()
}

/// The number behind a Service port; a name is looked up in the first pod that has it.
fn target_port(port: &Value, pods: &[Arc<Object>]) -> Value {
    match &port["targetPort"] {
        Value::String(name) => {
            let containers =
                pods.iter().filter_map(|pod| pod.at(&["spec", "containers"])?.as_array()).flatten();
            let mut ports = containers.filter_map(|container| container.get("ports")?.as_array()).flatten();
            ports
                .find(|port| port["name"] == name.as_str())
                .map_or(Value::Null, |port| port["containerPort"].clone())
        }
        Value::Null => port["port"].clone(),
        number => number.clone(),
    }
}

fn create(service: &Value, endpoints: Vec<Value>, ports: Value) -> Write {
    let object = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{}-{}", service.name(), stable_suffix(&[service.uid()], 5)),
            "namespace": service.namespace(),
            "labels": {
                "kubernetes.io/service-name": service.name(),
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports,
    });
    Write::Create { resource: resources::endpoint_slices(), object }
}
