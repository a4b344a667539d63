//! Everything else.

use jiff::Timestamp;
use tiphys_value::{ObjectExt, Value};

use super::{NONE, Printer, go_bool, joined, name, number, row, size, text, text_or};
use crate::{
    http::table::cells::{age, since},
    ops::items,
};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "Namespace" => (&["Name", "Status", "Age"], |o, now| {
            row([name(o), text_or(o, &["status", "phase"], ""), age(o, now)])
        }),
        "ConfigMap" => (&["Name", "Data", "Age"], |o, now| {
            row([name(o), (size(o.get("data")) + size(o.get("binaryData"))).into(), age(o, now)])
        }),
        "Secret" => (&["Name", "Type", "Data", "Age"], |o, now| {
            row([name(o), text(o, &["type"]), size(o.get("data")).into(), age(o, now)])
        }),
        "ServiceAccount" => (&["Name", "Age"], |o, now| row([name(o), age(o, now)])),
        "Node" => (
            &[
                "Name",
                "Status",
                "Roles",
                "Age",
                "Version",
                "!Internal-IP",
                "!External-IP",
                "!OS-Image",
                "!Kernel-Version",
                "!Container-Runtime",
            ],
            node,
        ),
        "ComponentStatus" => (&["Name", "Status", "Message", "Error"], component),
        "RoleBinding" | "ClusterRoleBinding" => {
            (&["Name", "Role", "Age", "!Users", "!Groups", "!ServiceAccounts"], binding)
        }
        "CustomResourceDefinition" => {
            (&["Name", "Created At:date"], |o, _| row([name(o), text(o, &["metadata", "creationTimestamp"])]))
        }
        "Event" => (
            &[
                "Last Seen",
                "Type",
                "Reason",
                "Object",
                "!Subobject",
                "!Source",
                "Message",
                "!First Seen",
                "!Count",
                "!Name",
            ],
            event,
        ),
        "Lease" => (&["Name", "Holder", "Age"], |o, now| {
            row([name(o), text_or(o, &["spec", "holderIdentity"], ""), age(o, now)])
        }),
        "PriorityClass" => {
            (&["Name", "Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy"], |o, now| {
                let preempts = text_or(o, &["preemptionPolicy"], "");
                row([
                    name(o),
                    number(o, &["value"]).into(),
                    (o["globalDefault"] == true).into(),
                    age(o, now),
                    preempts,
                ])
            })
        }
        "ResourceQuota" => (&["Name", "Request", "Limit", "Age"], quota),
        "APIService" => (&["Name", "Service", "Available", "Age"], api_service),
        "RuntimeClass" => {
            (&["Name", "Handler", "Age"], |o, now| row([name(o), text(o, &["handler"]), age(o, now)]))
        }
        "CertificateSigningRequest" => {
            (&["Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"], signing_request)
        }
        _ => return None,
    })
}

fn node(node: &Value, now: Timestamp) -> Vec<Value> {
    let ready = items(node, "/status/conditions").find(|c| c["type"] == "Ready");
    let mut status = match ready.map(|c| c["status"] == "True") {
        Some(true) => "Ready".to_owned(),
        Some(false) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node.at(&["spec", "unschedulable"]) == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = node.at(&["metadata", "labels"]).and_then(Value::as_object);
    let roles =
        labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"));
    let address = |kind: &str| {
        let found = items(node, "/status/addresses").find(|a| a["type"] == kind);
        Value::from(found.and_then(|a| a.str_at(&["address"])).unwrap_or(NONE))
    };
    let info = |key: &str| text_or(node, &["status", "nodeInfo", key], "<unknown>");
    row([
        name(node),
        status.into(),
        joined(roles).into(),
        age(node, now),
        text_or(node, &["status", "nodeInfo", "kubeletVersion"], ""),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ])
}

fn binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = object.at(&["roleRef"]).cloned().unwrap_or_default();
    let of = |kind: &str| {
        let subjects = items(object, "/subjects").filter(|s| s["kind"] == kind);
        let names: Vec<String> = subjects
            .map(|s| {
                let name = s.str_at(&["name"]).unwrap_or_default();
                match kind {
                    "ServiceAccount" => {
                        format!("{}/{name}", s.str_at(&["namespace"]).unwrap_or_default())
                    }
                    _ => name.to_owned(),
                }
            })
            .collect();
        Value::from(names.join(", "))
    };
    row([
        name(object),
        format!("{}/{}", role.kind(), role.str_at(&["name"]).unwrap_or_default()).into(),
        age(object, now),
        of("User"),
        of("Group"),
        of("ServiceAccount"),
    ])
}

fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let subject =
        object.get("involvedObject").or_else(|| object.get("regarding")).cloned().unwrap_or_default();
    let moment = |keys: &[&str]| keys.iter().find_map(|key| object.str_at(&[key]).filter(|t| !t.is_empty()));
    let last = moment(&["lastTimestamp", "deprecatedLastTimestamp", "eventTime"]);
    let first = moment(&["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"]);
    let ago = |at: Option<&str>| Value::from(at.map_or_else(|| "<unknown>".to_owned(), |at| since(at, now)));
    let first_of =
        |keys: &[&[&str]]| keys.iter().find_map(|key| object.str_at(key).filter(|t| !t.is_empty()));
    let source = first_of(&[
        &["source", "component"],
        &["deprecatedSource", "component"],
        &["reportingComponent"],
        &["reportingController"],
    ]);
    let host = first_of(&[&["source", "host"], &["deprecatedSource", "host"], &["reportingInstance"]]);
    let host = host.map(|host| format!(", {host}")).unwrap_or_default();
    row([
        ago(last),
        text_or(object, &["type"], ""),
        text_or(object, &["reason"], ""),
        format!("{}/{}", subject.kind().to_lowercase(), subject.str_at(&["name"]).unwrap_or_default()).into(),
        text_or(&subject, &["fieldPath"], ""),
        format!("{}{host}", source.unwrap_or_default()).into(),
        object.str_at(&["message"]).or_else(|| object.str_at(&["note"])).unwrap_or_default().trim().into(),
        ago(first),
        object.int_at(&["count"]).unwrap_or(1).into(),
        name(object),
    ])
}

fn quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let hard = object.at(&["status", "hard"]).and_then(Value::as_object);
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, amount) in hard.into_iter().flatten() {
        let used = object.str_at(&["status", "used", resource]).unwrap_or("0");
        let entry = format!("{resource}: {used}/{}", amount.as_str().unwrap_or_default());
        if resource.starts_with("limits") { limits.push(entry) } else { requests.push(entry) }
    }
    row([name(object), requests.join(", ").into(), limits.join(", ").into(), age(object, now)])
}

fn api_service(object: &Value, now: Timestamp) -> Vec<Value> {
    let service = object.at(&["spec", "service"]).filter(|s| s.is_object()).map_or_else(
        || "Local".to_owned(),
        |s| {
            format!(
                "{}/{}",
                s.str_at(&["namespace"]).unwrap_or_default(),
                s.str_at(&["name"]).unwrap_or_default()
            )
        },
    );
    let condition = items(object, "/status/conditions").find(|c| c["type"] == "Available");
    let available = condition.map_or_else(
        || "Unknown".to_owned(),
        |c| match c["status"] == "True" {
            true => go_bool(true).to_owned(),
            false => format!("{} ({})", go_bool(false), c.str_at(&["reason"]).unwrap_or_default()),
        },
    );
    row([name(object), service.into(), available.into(), age(object, now)])
}

fn signing_request(object: &Value, now: Timestamp) -> Vec<Value> {
    let is = |kind: &str| items(object, "/status/conditions").any(|c| c["type"] == kind);
    let mut states: Vec<&str> = ["Approved", "Denied"].into_iter().filter(|k| is(k)).collect();
    if states.is_empty() {
        states.push("Pending");
    }
    states.extend(["Failed"].into_iter().filter(|k| is(k)));
    if object.str_at(&["status", "certificate"]).is_some_and(|c| !c.is_empty()) {
        states.push("Issued");
    }
    let lifetime = object
        .int_at(&["spec", "expirationSeconds"])
        .map_or_else(|| NONE.to_owned(), crate::http::table::cells::duration);
    row([
        name(object),
        age(object, now),
        text(object, &["spec", "signerName"]),
        text(object, &["spec", "username"]),
        lifetime.into(),
        states.join(",").into(),
    ])
}

fn component(object: &Value, _: Timestamp) -> Vec<Value> {
    let healthy = items(object, "/conditions").find(|condition| condition["type"] == "Healthy");
    let part = |key: &str| healthy.and_then(|condition| condition.str_at(&[key])).unwrap_or_default();
    let status = match part("status") {
        "True" => "Healthy",
        "False" => "Unhealthy",
        _ => "Unknown",
    };
    row([name(object), status.into(), part("message").into(), part("error").into()])
}
