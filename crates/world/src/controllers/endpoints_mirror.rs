//! EndpointSlices of Endpoints that somebody wrote by hand, for a Service without a selector
//! (discovery.k8s.io/v1; the EndpointSliceMirroring controller of kube-controller-manager).

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::workload::{delete, stable_suffix};
use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    labels::service_key,
    object::{owner_reference, resources},
};

const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// Endpoints with this label are mirrored by whoever wrote them.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// What elections leave behind is none that traffic is led to.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// Keeps the slices of Endpoints that no other controller writes.
pub(super) struct EndpointsMirrorController;

impl Controller for EndpointsMirrorController {
    fn name(&self) -> &'static str {
        "endpointslicemirroring"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        if change.resource == resources::services() || change.resource == resources::endpoints() {
            return vec![Key::from_object(&change.object)];
        }
        let of_slice = (change.resource == resources::endpoint_slices() && is_mirror(&change.object))
            .then(|| service_key(&change.object))
            .flatten();
        let namespace = change.object.namespace().to_owned();
        of_slice.map(|name| Key { namespace, name: name.to_owned() }).into_iter().collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let mut mirrors = context.view.list(&resources::endpoint_slices(), Some(&key.namespace));
        mirrors.retain(|slice| is_mirror(slice) && service_key(slice) == Some(&key.name));
        let service = context.view.get(&resources::services(), key);
        let endpoints = context.view.get(&resources::endpoints(), key);
        let wanted: Vec<Value> = match endpoints
            .filter(|endpoints| is_mirrored(endpoints, service.as_deref().map(|it| it.value())))
        {
            Some(endpoints) => {
                subsets(&endpoints).enumerate().map(|(at, it)| slice(&endpoints, at, it)).collect()
            }
            None => Vec::new(),
        };
        let mut writes = Vec::new();
        for object in &wanted {
            let resource = resources::endpoint_slices();
            match mirrors.iter().find(|mirror| mirror.name() == object.name()) {
                None => writes.push(Write::Create { resource, object: object.clone() }),
                Some(mirror) if says_the_same(mirror, object) => {}
                Some(mirror) => {
                    let mut changed = mirror.value().clone();
                    for field in ["endpoints", "ports"] {
                        changed[field] = object[field].clone();
                    }
                    changed["metadata"]["labels"] = object["metadata"]["labels"].clone();
                    writes.push(Write::Update { resource, object: changed });
                }
            }
        }
        let is_wanted = |name: &str| wanted.iter().any(|object| object.name() == name);
        let surplus = mirrors.iter().filter(|mirror| !is_wanted(mirror.name()));
        writes.extend(surplus.map(|mirror| delete(resources::endpoint_slices(), mirror)));
        writes.into()
    }
}

fn is_mirror(slice: &Value) -> bool {
    slice.label("endpointslice.kubernetes.io/managed-by") == Some(MANAGER)
}

fn says_the_same(mirror: &Value, object: &Value) -> bool {
    mirror["endpoints"] == object["endpoints"]
        && mirror["ports"] == object["ports"]
        && mirror["metadata"]["labels"] == object["metadata"]["labels"]
}

/// Whether Endpoints are somebody's own: their Service selects no pods.
fn is_mirrored(endpoints: &Value, service: Option<&Value>) -> bool {
    let selects = |service: &Value| {
        service.at(&["spec", "selector"]).and_then(Value::as_object).is_some_and(|labels| !labels.is_empty())
    };
    service.is_some_and(|service| !selects(service))
        && endpoints.label(SKIP) != Some("true")
        && endpoints.at(&["metadata", "annotations", LEADER]).is_none()
}

fn subsets(endpoints: &Value) -> impl Iterator<Item = &Value> {
    endpoints.get("subsets").and_then(Value::as_array).into_iter().flatten()
}

/// One subset as a slice.
fn slice(endpoints: &Value, at: usize, subset: &Value) -> Value {
    let mut labels = endpoints.at(&["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
    labels["kubernetes.io/service-name"] = endpoints.name().into();
    labels["endpointslice.kubernetes.io/managed-by"] = MANAGER.into();
    let listed = |field: &str, is_ready: bool| -> Vec<Value> {
        let addresses = subset.get(field).and_then(Value::as_array).into_iter().flatten();
        addresses.map(|address| endpoint(address, is_ready)).collect()
    };
    let mut all = listed("addresses", true);
    all.extend(listed("notReadyAddresses", false));
    let is_ipv6 =
        all.first().is_some_and(|it| it["addresses"][0].as_str().is_some_and(|ip| ip.contains(':')));
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{}-{}", endpoints.name(), stable_suffix(&[endpoints.uid(), &at.to_string()], 5)),
            "generateName": format!("{}-", endpoints.name()),
            "namespace": endpoints.namespace(),
            "labels": labels,
            "ownerReferences": [owner_reference(endpoints)],
        },
        "addressType": if is_ipv6 { "IPv6" } else { "IPv4" },
        "endpoints": all,
        "ports": ports(subset),
    })
}

fn ports(subset: &Value) -> Vec<Value> {
    let given = subset.get("ports").and_then(Value::as_array).into_iter().flatten();
    let port = |port: &Value| {
        let mut port = port.clone();
        if let Some(fields) = port.as_object_mut() {
            fields.entry("name").or_insert_with(|| "".into());
            fields.entry("protocol").or_insert_with(|| "TCP".into());
        }
        port
    };
    given.map(port).collect()
}

fn endpoint(address: &Value, is_ready: bool) -> Value {
    let mut endpoint = json!({"addresses": [address["ip"]], "conditions": {"ready": is_ready}});
    for field in ["hostname", "nodeName", "targetRef"] {
        if let Some(value) = address.get(field) {
            endpoint[field] = value.clone();
        }
    }
    endpoint
}
