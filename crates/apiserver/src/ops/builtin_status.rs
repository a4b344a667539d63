//! Status that controllers inside the API server write: whether flow schemas dangle, whether aggregated APIs
//! can be reached.

use std::sync::Arc;

use tiphys_value::{ObjectExt, Value, json};

use super::{At, items, managed_fields};
use crate::{
    ApiServer, Object, rfc3339_seconds,
    store::{Expect, ResourceId, Write},
};

/// The kind of aggregated APIs: group and plural.
const AGGREGATION: (&str, &str) = ("apiregistration.k8s.io", "apiservices");
/// The label that says whose endpoints a slice has.
const SERVICE_OF_SLICE: &str = "kubernetes.io/service-name";
const FLOW_MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const FLOW_GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// Brings the status of what was written, or depends on it, up to date.
pub(super) fn after_commit(server: &ApiServer, at: &At, object: &Object, removed: bool) {
    if at.is(FLOW_GROUP, "flowschemas") && !removed {
        flow_schema(server, at, object);
    } else if at.is(AGGREGATION.0, AGGREGATION.1) && !removed {
        api_service(server, at, object);
    } else if at.is("", "services") {
        behind(server, object.namespace(), object.name());
    } else if at.is("discovery.k8s.io", "endpointslices")
        && let Some(service) = object.label(SERVICE_OF_SLICE)
    {
        behind(server, object.namespace(), service);
    }
}

/// Stores a status that the server itself works out. Losing a race means that it is worked out anew.
pub(crate) fn put_status(server: &ApiServer, resource: &ResourceId, old: &Object, next: Value) -> bool {
    let key = crate::store::key(old.namespace(), old.name());
    let expect = Expect::Revision(old.revision());
    server.inner.store.commit(Write { resource, key: &key, expect, value: next, remove: false }).is_ok()
}

fn flow_schema(server: &ApiServer, at: &At, schema: &Object) {
    let level = schema.str_at(&["spec", "priorityLevelConfiguration", "name"]).unwrap_or_default();
    let levels = ResourceId::new(FLOW_GROUP, "prioritylevelconfigurations");
    let start = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {}",
        tiphys_schema::quote(level)
    );
    let (status, reason, message) = match server.snapshot().get(&levels, "", level) {
        Some(_) => ("False", "Found", format!("{start} and it exists")),
        None => ("True", "NotFound", format!("{start} but there is no such object")),
    };
    if has(schema, ["Dangling", status, reason, &message]) {
        return;
    }
    let own = condition(server, ["Dangling", status, reason, &message]);
    let applied = json!({"apiVersion": at.resource.gvk.api_version(), "kind": "FlowSchema",
        "metadata": {"name": schema.name()}, "status": {"conditions": [own]}});
    let at = At { name: schema.name().to_owned(), subresource: Some("status".into()), ..at.clone() };
    let call = super::Call::new(crate::auth::User::admin(), FLOW_MANAGER);
    if let Ok(next) = managed_fields::apply_config(server, &call, &at, Some(schema), &applied, true) {
        put_status(server, &at.resource.id, schema, next);
    }
}

/// Looks again at the aggregated APIs behind a Service.
fn behind(server: &ApiServer, namespace: &str, name: &str) {
    let snapshot = server.snapshot();
    let id = ResourceId::new(AGGREGATION.0, AGGREGATION.1);
    let part = |object: &Object, key: &str| object.str_at(&["spec", "service", key]).map(str::to_owned);
    let is_behind = |object: &&Arc<Object>| {
        part(object, "namespace").as_deref() == Some(namespace)
            && part(object, "name").as_deref() == Some(name)
    };
    let all: Vec<Arc<Object>> = snapshot.list(&id, None).filter(is_behind).cloned().collect();
    let registry = server.registry();
    let Some(resource) = registry.find(AGGREGATION.0, "v1", AGGREGATION.1) else { return };
    for object in all {
        let name = object.name().to_owned();
        let at = At { resource: resource.clone(), namespace: String::new(), name, subresource: None };
        api_service(server, &at, &object);
    }
}

/// Whether there are slices with the endpoints of a Service, and one of them is ready.
fn endpoints(server: &ApiServer, namespace: &str, service: &str) -> Option<bool> {
    let snapshot = server.snapshot();
    let id = ResourceId::new("discovery.k8s.io", "endpointslices");
    let slices = snapshot.list(&id, Some(namespace));
    let mut slices = slices.filter(|slice| slice.label(SERVICE_OF_SLICE) == Some(service)).peekable();
    slices.peek()?;
    let is_ready = |endpoint: &Value| endpoint.at(&["conditions", "ready"]) != Some(&Value::Bool(false));
    Some(slices.any(|slice| items(slice, "/endpoints").any(is_ready)))
}

fn api_service(server: &ApiServer, at: &At, service: &Object) {
    let Some(reference) = service.at(&["spec", "service"]).filter(|reference| reference.is_object()) else {
        return;
    };
    let part = |key: &str| reference.str_at(&[key]).unwrap_or_default();
    let (namespace, name) = (part("namespace"), part("name"));
    let quoted = tiphys_schema::quote(namespace);
    let present = server.snapshot().get(&ResourceId::new("", "services"), namespace, name).is_some();
    let (status, reason, message) = match (present, endpoints(server, namespace, name)) {
        (false, _) => ("False", "ServiceNotFound", format!("service/{name} in {quoted} is not present")),
        (true, None) => {
            let message = format!("cannot find endpointslices for service/{name} in {quoted}");
            ("False", "EndpointsNotFound", message)
        }
        (true, Some(false)) => {
            let port = service.int_at(&["spec", "service", "port"]).unwrap_or(443);
            let named = port_name(server, namespace, name, port);
            let message = format!(
                "endpointslices for service/{name} in {quoted} have no addresses with port name {}",
                tiphys_schema::quote(&named)
            );
            ("False", "MissingEndpoints", message)
        }
        // What the program behind it would answer, nobody knows: it is taken to work, as webhooks are.
        (true, Some(true)) => ("True", "Passed", "all checks passed".to_owned()),
    };
    put(server, at, service, "kube-apiserver", ["Available", status, reason, &message]);
}

/// What a Service calls a port.
fn port_name(server: &ApiServer, namespace: &str, service: &str, port: i64) -> String {
    let snapshot = server.snapshot();
    let service = snapshot.get(&ResourceId::new("", "services"), namespace, service);
    let ports: Vec<&Value> = service.iter().flat_map(|service| items(service, "/spec/ports")).collect();
    let found = ports.into_iter().find(|known| known["port"].as_i64() == Some(port));
    found.and_then(|known| known["name"].as_str()).unwrap_or_default().to_owned()
}

fn has(object: &Object, [kind, status, reason, message]: [&str; 4]) -> bool {
    items(object, "/status/conditions").any(|known| {
        known["type"] == kind
            && known["status"] == status
            && known["reason"] == reason
            && known["message"] == message
    })
}

fn condition(server: &ApiServer, [kind, status, reason, message]: [&str; 4]) -> Value {
    let now = rfc3339_seconds(server.now());
    json!({"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message})
}

/// Writes a condition unless it stands there already.
fn put(server: &ApiServer, at: &At, object: &Object, manager: &str, wanted: [&str; 4]) {
    if has(object, wanted) {
        return;
    }
    let mut next = object.value().clone();
    let others: Vec<Value> =
        items(object, "/status/conditions").filter(|known| known["type"] != wanted[0]).cloned().collect();
    let own = condition(server, wanted);
    next["status"]["conditions"] = others.into_iter().chain([own]).collect::<Vec<_>>().into();
    managed_fields::record_status(server, at, manager, object, &mut next);
    put_status(server, &at.resource.id, object, next);
}
