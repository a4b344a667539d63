//! What admits requests, and how they are queued.

use jiff::Timestamp;
use tiphys_value::{ObjectExt, Value};

use super::{NONE, Printer, UNSET, name, row, size, text_or};
use crate::{http::table::cells::age, ops::items};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            (&["Name", "Webhooks:integer", "Age"], |o, now| {
                row([name(o), size(o.get("webhooks")).into(), age(o, now)])
            })
        }
        "ValidatingAdmissionPolicy" => {
            (&["Name", "Validations:integer", "ParamKind", "Age"], |o, now| policy(o, "validations", now))
        }
        "MutatingAdmissionPolicy" => {
            (&["Name", "Mutations:integer", "ParamKind", "Age"], |o, now| policy(o, "mutations", now))
        }
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            (&["Name", "PolicyName", "ParamRef", "Age"], binding)
        }
        "FlowSchema" => (
            &["Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"],
            flow_schema,
        ),
        "PriorityLevelConfiguration" => (
            &["Name", "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"],
            priority_level,
        ),
        "ServiceCIDR" => (&["Name", "CIDRs", "Age"], |o, now| {
            let all: Vec<&str> = items(o, "/spec/cidrs").filter_map(Value::as_str).collect();
            row([name(o), all.join(",").into(), age(o, now)])
        }),
        "IPAddress" => (&["Name", "ParentRef"], address),
        _ => return None,
    })
}

fn policy(object: &Value, list: &str, now: Timestamp) -> Vec<Value> {
    let kind =
        object.at(&["spec", "paramKind"]).map(|kind| format!("{}/{}", kind.api_version(), kind.kind()));
    row([
        name(object),
        size(object.at(&["spec", list])).into(),
        kind.unwrap_or_else(|| UNSET.to_owned()).into(),
        age(object, now),
    ])
}

fn binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let reference = object.at(&["spec", "paramRef"]).and_then(|reference| {
        let named = reference.str_at(&["name"]).filter(|name| !name.is_empty())?;
        let namespace = reference.str_at(&["namespace"]).filter(|name| !name.is_empty()).unwrap_or("*");
        Some(format!("{namespace}/{named}"))
    });
    row([
        name(object),
        text_or(object, &["spec", "policyName"], ""),
        reference.unwrap_or_else(|| UNSET.to_owned()).into(),
        age(object, now),
    ])
}

fn flow_schema(object: &Value, now: Timestamp) -> Vec<Value> {
    let dangling = items(object, "/status/conditions").find(|condition| condition["type"] == "Dangling");
    row([
        name(object),
        text_or(object, &["spec", "priorityLevelConfiguration", "name"], ""),
        object.int_at(&["spec", "matchingPrecedence"]).unwrap_or_default().into(),
        text_or(object, &["spec", "distinguisherMethod", "type"], NONE),
        age(object, now),
        dangling.and_then(|condition| condition.str_at(&["status"])).unwrap_or("?").into(),
    ])
}

fn priority_level(object: &Value, now: Timestamp) -> Vec<Value> {
    let limited = object.at(&["spec", "limited"]);
    let part = |keys: &[&str]| {
        limited.and_then(|limited| limited.int_at(keys)).map_or_else(|| NONE.into(), Value::from)
    };
    row([
        name(object),
        text_or(object, &["spec", "type"], ""),
        part(&["nominalConcurrencyShares"]),
        part(&["limitResponse", "queuing", "queues"]),
        part(&["limitResponse", "queuing", "handSize"]),
        part(&["limitResponse", "queuing", "queueLengthLimit"]),
        age(object, now),
    ])
}

fn address(object: &Value, now: Timestamp) -> Vec<Value> {
    let parent = object.at(&["spec", "parentRef"]).map(|parent| {
        let part = |key: &str| parent.str_at(&[key]).filter(|text| !text.is_empty());
        let group = part("group").map(|group| format!(".{group}")).unwrap_or_default();
        let namespace = part("namespace").map(|namespace| format!("/{namespace}")).unwrap_or_default();
        format!(
            "{}{namespace}/{}",
            format!("{}{group}", part("resource").unwrap_or_default()).to_lowercase(),
            part("name").unwrap_or_default()
        )
    });
    row([name(object), parent.unwrap_or_else(|| NONE.to_owned()).into(), age(object, now)])
}
