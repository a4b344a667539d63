//! Status that controllers inside the API server write: whether flow schemas dangle, whether aggregated APIs
//! can be reached.

use tiphys_value::{ObjectExt, Value, json};

use super::{At, items, managed, write};
use crate::{ApiServer, Object, rfc3339_seconds, store::ResourceId};

const FLOW_MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const FLOW_GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// Brings the status of what was written up to date.
pub(super) fn after_commit(server: &ApiServer, at: &At, object: &Object) {
    if at.is(FLOW_GROUP, "flowschemas") {
        flow_schema(server, at, object);
    } else if at.is("apiregistration.k8s.io", "apiservices") {
        api_service(server, at, object);
    }
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
    if let Ok(next) = managed::apply_config(server, &call, &at, Some(schema), &applied, true) {
        write::put_status(server, &at.resource.id, schema, next);
    }
}

fn api_service(server: &ApiServer, at: &At, service: &Object) {
    let Some(reference) = service.at(&["spec", "service"]).filter(|reference| reference.is_object()) else {
        return;
    };
    let part = |key: &str| reference.str_at(&[key]).unwrap_or_default();
    let (namespace, name) = (part("namespace"), part("name"));
    let quoted = tiphys_schema::quote(namespace);
    let present = server.snapshot().get(&ResourceId::new("", "services"), namespace, name).is_some();
    let (reason, message) = match present {
        true => ("EndpointsNotFound", format!("cannot find endpointslices for service/{name} in {quoted}")),
        false => ("ServiceNotFound", format!("service/{name} in {quoted} is not present")),
    };
    put(server, at, service, "kube-apiserver", ["Available", "False", reason, &message]);
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
    managed::record_status(server, at, manager, object, &mut next);
    write::put_status(server, &at.resource.id, object, next);
}
