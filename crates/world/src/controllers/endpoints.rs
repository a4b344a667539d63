//! Endpoints and EndpointSlices: the pods behind a Service (core/v1, discovery.k8s.io/v1).

use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::workload::{delete, is_finished, stable_suffix};
use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    labels::{service_key, service_selects},
    object::{is_condition_true, owner_reference, resources},
};

const MANAGER: &str = "endpointslice-controller.k8s.io";
/// How many endpoints a slice holds at most.
const SLICE: usize = 100;

/// Keeps the slices and the Endpoints of every Service with a selector.
pub(super) struct EndpointsController;

impl Controller for EndpointsController {
    fn name(&self) -> &'static str {
        "endpointslice"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::services() {
            return vec![Key::from_object(&change.object)];
        }
        if change.resource == resources::endpoint_slices() {
            let name = service_key(&change.object).filter(|_| is_managed(&change.object));
            let namespace = change.object.namespace().to_owned();
            return name.map(|name| Key { namespace, name: name.to_owned() }).into_iter().collect();
        }
        if change.resource != resources::pods() {
            return Vec::new();
        }
        let services = view.list(&resources::services(), Some(change.object.namespace()));
        services
            .iter()
            .filter(|service| service_selects(service, &change.object))
            .map(|s| Key::from_object(s))
            .collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let mut slices = context.view.list(&resources::endpoint_slices(), Some(&key.namespace));
        slices.retain(|slice| service_key(slice) == Some(&key.name) && is_managed(slice));
        let Some(service) = context.view.get(&resources::services(), key) else {
            // The garbage collector takes those that are owned; a Service's Endpoints are not.
            let endpoints = context.view.get(&resources::endpoints(), key);
            return endpoints
                .map(|object| delete(resources::endpoints(), &object))
                .into_iter()
                .collect::<Vec<_>>()
                .into();
        };
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
        let groups = by_ports(&service, pods);
        let mut writes = slices_for(&service, &groups, &slices);
        writes.extend(endpoints_for(&service, &groups, context.view));
        writes.into()
    }
}

fn is_managed(slice: &Value) -> bool {
    slice.label("endpointslice.kubernetes.io/managed-by") == Some(MANAGER)
}

fn is_endpoint(service: &Value, pod: &Value) -> bool {
    service_selects(service, pod) && pod.str_at(&["status", "podIP"]).is_some() && !is_finished(pod)
}

fn publishes_unready(service: &Value) -> bool {
    service.at(&["spec", "publishNotReadyAddresses"]) == Some(&Value::Bool(true))
}

/// Pods behind the same numbers: a name stands for what each pod calls so.
struct Group {
    ports: Value,
    pods: Vec<Arc<Object>>,
}

fn by_ports(service: &Value, pods: Vec<Arc<Object>>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for pod in pods {
        let ports = ports(service, Some(&pod));
        match groups.iter_mut().find(|group| group.ports == ports) {
            Some(group) => group.pods.push(pod),
            None => groups.push(Group { ports, pods: vec![pod] }),
        }
    }
    // A Service without pods has a slice that says so, without ports.
    if groups.is_empty() {
        groups.push(Group { ports: Value::Null, pods: Vec::new() });
    }
    groups
}

fn slices_for(service: &Value, groups: &[Group], slices: &[Arc<Object>]) -> Vec<Write> {
    let mut chunks: Vec<(Vec<Value>, &Value)> = Vec::new();
    for group in groups {
        let endpoints: Vec<Value> = group.pods.iter().map(|pod| endpoint(service, pod)).collect();
        chunks.extend(endpoints.chunks(SLICE).map(|chunk| (chunk.to_vec(), &group.ports)));
        if endpoints.is_empty() {
            chunks.push((endpoints, &group.ports));
        }
    }
    let mut writes = Vec::new();
    for (number, (endpoints, ports)) in chunks.iter().enumerate() {
        let wanted = slice(service, number, endpoints, ports);
        match slices.iter().find(|slice| slice.name() == wanted.name()) {
            None => writes.push(Write::Create { resource: resources::endpoint_slices(), object: wanted }),
            Some(found) => {
                let mut object = found.value().clone();
                object["endpoints"] = wanted["endpoints"].clone();
                object["ports"] = wanted["ports"].clone();
                object["metadata"]["labels"] = wanted["metadata"]["labels"].clone();
                if object != *found.value() {
                    writes.push(Write::Update { resource: resources::endpoint_slices(), object });
                }
            }
        }
    }
    let names: Vec<_> = (0..chunks.len()).map(|number| slice_name(service, number)).collect();
    let surplus = slices.iter().filter(|slice| !names.iter().any(|name| name == slice.name()));
    writes.extend(surplus.map(|slice| delete(resources::endpoint_slices(), slice)));
    writes
}

fn slice_name(service: &Value, number: usize) -> String {
    format!("{}-{}", service.name(), stable_suffix(&[service.uid(), &number.to_string()], 5))
}

fn slice(service: &Value, number: usize, endpoints: &[Value], ports: &Value) -> Value {
    let mut labels = service.at(&["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
    labels["kubernetes.io/service-name"] = service.name().into();
    labels["endpointslice.kubernetes.io/managed-by"] = MANAGER.into();
    if service.str_at(&["spec", "clusterIP"]) == Some("None") {
        labels["service.kubernetes.io/headless"] = "".into();
    }
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": slice_name(service, number),
            "generateName": format!("{}-", service.name()),
            "namespace": service.namespace(),
            "labels": labels,
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports,
    })
}

fn endpoint(service: &Value, pod: &Value) -> Value {
    let serves = is_condition_true(pod, "Ready");
    let is_ready = publishes_unready(service) || (serves && !pod.is_terminating());
    let mut endpoint = json!({
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": is_ready, "serving": serves, "terminating": pod.is_terminating()},
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": target(pod),
    });
    if pod.str_at(&["spec", "subdomain"]) == Some(service.name())
        && let Some(hostname) = pod.at(&["spec", "hostname"])
    {
        endpoint["hostname"] = hostname.clone();
    }
    endpoint
}

fn target(pod: &Value) -> Value {
    json!({"kind": "Pod", "name": pod.name(), "namespace": pod.namespace(), "uid": pod.uid()})
}

/// The ports of a Service as a pod has them, or as they stand there.
fn ports(service: &Value, pod: Option<&Object>) -> Value {
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array);
    let port = |port: &Value| {
        let mut found = json!({
            "name": port.str_at(&["name"]).unwrap_or_default(),
            "port": target_port(port, pod),
            "protocol": port.str_at(&["protocol"]).unwrap_or("TCP"),
        });
        if let Some(protocol) = port.get("appProtocol") {
            found["appProtocol"] = protocol.clone();
        }
        found
    };
    // A name that no pod has stands for no port.
    ports.into_iter().flatten().map(port).filter(|port| !port["port"].is_null()).collect()
}

/// The number behind a Service port; a name is looked up in the pod.
fn target_port(port: &Value, pod: Option<&Object>) -> Value {
    match &port["targetPort"] {
        Value::String(name) => {
            let containers = pod.and_then(|pod| pod.at(&["spec", "containers"])?.as_array());
            let mut ports = containers
                .into_iter()
                .flatten()
                .filter_map(|container| container.get("ports")?.as_array())
                .flatten();
            ports
                .find(|port| port["name"] == name.as_str())
                .map_or(Value::Null, |port| port["containerPort"].clone())
        }
        Value::Null => port["port"].clone(),
        number => number.clone(),
    }
}

/// The older form, which tools still read.
fn endpoints_for(service: &Value, groups: &[Group], view: &View<'_>) -> Option<Write> {
    let subsets: Vec<Value> = groups.iter().filter_map(|group| subset(service, group)).collect();
    let subsets = if subsets.is_empty() { Value::Null } else { subsets.into() };
    let mut labels = service.at(&["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
    labels["endpoints.kubernetes.io/managed-by"] = "endpoint-controller".into();
    if service.str_at(&["spec", "clusterIP"]) == Some("None") {
        labels["service.kubernetes.io/headless"] = "".into();
    }
    let key = Key::from_object(service);
    let mut object = match view.get(&resources::endpoints(), &key) {
        Some(found)
            if found.get("subsets").unwrap_or(&Value::Null) == &subsets
                && found["metadata"]["labels"] == labels =>
        {
            return None;
        }
        Some(found) => found.value().clone(),
        None => {
            json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": key.name, "namespace": key.namespace}})
        }
    };
    let is_new = object.uid().is_empty();
    object["metadata"]["labels"] = labels;
    match (&subsets, object.as_object_mut()) {
        (Value::Null, Some(fields)) => drop(fields.remove("subsets")),
        (_, Some(fields)) => drop(fields.insert("subsets".into(), subsets.clone())),
        _ => {}
    }
    let resource = resources::endpoints();
    Some(if is_new { Write::Create { resource, object } } else { Write::Update { resource, object } })
}

/// The pods of a group as Endpoints list them; `None` if there are none.
fn subset(service: &Value, group: &Group) -> Option<Value> {
    // Pods that have none of the ports that the Service names are not listed.
    let names_ports =
        service.at(&["spec", "ports"]).and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    if names_ports && group.ports.as_array().is_none_or(Vec::is_empty) {
        return None;
    }
    let address = |pod: &Arc<Object>| {
        let mut address = json!({
            "ip": pod["status"]["podIP"], "nodeName": pod["spec"]["nodeName"], "targetRef": target(pod),
        });
        if pod.str_at(&["spec", "subdomain"]) == Some(service.name())
            && let Some(hostname) = pod.at(&["spec", "hostname"])
        {
            address["hostname"] = hostname.clone();
        }
        address
    };
    let live = || group.pods.iter().filter(|pod| !pod.is_terminating());
    let is_ready = |pod: &&Arc<Object>| publishes_unready(service) || is_condition_true(pod, "Ready");
    let ready: Vec<_> = live().filter(is_ready).map(address).collect();
    let unready: Vec<_> = live().filter(|pod| !is_ready(pod)).map(address).collect();
    let mut subset = json!({"ports": named_ports(&group.ports)});
    for (field, addresses) in [("addresses", ready), ("notReadyAddresses", unready)] {
        if !addresses.is_empty() {
            subset[field] = addresses.into();
        }
    }
    (subset.as_object()?.len() > 1).then_some(subset)
}

/// Ports as Endpoints name them: without a name that is empty.
fn named_ports(ports: &Value) -> Value {
    let named = |port: &Value| {
        let mut port = port.clone();
        if port["name"] == ""
            && let Some(port) = port.as_object_mut()
        {
            port.remove("name");
        }
        port
    };
    ports.as_array().into_iter().flatten().map(named).collect()
}
