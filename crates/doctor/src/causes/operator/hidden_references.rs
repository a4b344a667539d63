//! What a resource needs by its specification and does not speak of: Services that it calls, and data behind
//! what it names.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object, address_target::Target, causes::config_unsaid::proves_absence, dependencies, finding::Finding,
    search_context::Look,
};

/// How deep addresses stand in a specification.
const DEEPEST: usize = 6;

/// The Services whose addresses stand in the specification of a resource.
pub(super) fn services_of_spec(look: &Look<'_>, live: &Value) -> Vec<Object> {
    let mut texts = Vec::new();
    collect_addresses(live.get("spec").unwrap_or(&Value::Null), 0, &mut texts);
    let namespace = if live.namespace().is_empty() { "default" } else { live.namespace() };
    let mut found = Vec::new();
    for address in texts.into_iter().flat_map(tiphys_cause::addresses) {
        if let Target::Service(service) = look.cluster.target(&address, namespace) {
            let service = Object::from_live(service);
            if !found.contains(&service) {
                found.push(service);
            }
        }
    }
    found
}

fn collect_addresses<'a>(value: &'a Value, depth: usize, found: &mut Vec<&'a str>) {
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::String(text) if text.contains("://") || text.contains(".svc") => found.push(text),
        Value::Array(items) => items.iter().for_each(|it| collect_addresses(it, depth + 1, found)),
        Value::Object(fields) => fields.values().for_each(|it| collect_addresses(it, depth + 1, found)),
        _ => {}
    }
}

/// The Secret, ConfigMap or workload that is not there and that a resource names, itself or by what it names.
/// Only for resources that tell nothing else: many may do without what they name.
pub(super) fn absent_behind(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let object = Object::from_live(live);
    let near = dependencies::upstream(look.cluster, &object);
    let is_custom = |it: &&Object| look.cluster.live(it).is_some_and(super::is_custom);
    let far = near
        .iter()
        .filter(is_custom)
        .flat_map(|by| dependencies::upstream(look.cluster, by).into_iter().map(move |it| (by.clone(), it)));
    let named = near.iter().map(|it| (object.clone(), it.clone())).chain(far);
    let (by, absent) = named.into_iter().find(|(_, it)| {
        let is_data = matches!(it.kind.as_str(), "Secret" | "ConfigMap");
        let is_target = matches!(it.kind.as_str(), "Deployment" | "StatefulSet");
        look.cluster.live(it).is_none()
            && (is_data && proves_absence(look, it) || is_target && look.cluster.has_kind(&it.kind))
    })?;
    let summary = format!("{absent} does not exist, and {by} names it");
    // What a resource names itself is its own fault; what is behind another one is not.
    let (cause, at) = if !matches!(absent.kind.as_str(), "Secret" | "ConfigMap") {
        (Cause::ScaleTarget, by.clone())
    } else if by == object {
        (Cause::OperatorReference, object.clone())
    } else {
        (Cause::ConfigMissing, absent.clone())
    };
    let finding = Finding::new(cause, at, 0.8, summary)
        .evidence(by.to_string(), format!("it names {absent}"))
        .remedy(format!("Make {absent}, or correct the reference in {by}."), &[])
        .suffers(object, "needs it, and is not ready");
    Some(dependencies::upstream(look.cluster, &absent).into_iter().fold(finding, Finding::below))
}

/// The Secret or ConfigMap that lacks a key which words quote: one that a resource names with that key,
/// itself or by what it names.
pub(super) fn lacking_key(look: &Look<'_>, live: &Value, words: &str) -> Option<Finding> {
    let plain = words.replace("\\\"", "\"");
    let quoted: Vec<&str> = plain.split(['"', '\'', '`']).collect();
    let object = Object::from_live(live);
    let near = dependencies::upstream(look.cluster, &object);
    let custom = near.iter().filter_map(|it| look.cluster.live(it)).filter(|it| super::is_custom(it));
    let mut keys = Vec::new();
    for holder in [live].into_iter().chain(custom) {
        collect_keys(holder.get("spec").unwrap_or(&Value::Null), holder.namespace(), 0, &mut keys);
    }
    let lacks = |(data, key): &(Object, String)| {
        let held = look.cluster.live(data).and_then(|it| it.get("data")?.as_object());
        quoted.contains(&key.as_str()) && held.is_some_and(|held| !held.contains_key(key))
    };
    let (data, key) = keys.into_iter().find(lacks)?;
    let summary = format!("{data} has no key {key}, which {object} needs");
    let command = format!(
        "kubectl -n {} get {} {} -o jsonpath='{{.data}}'",
        data.namespace,
        data.kind.to_lowercase(),
        data.name
    );
    Some(
        Finding::new(Cause::ConfigKeyMissing, data, 0.9, summary)
            .field(format!("data.{key}"))
            .evidence(format!("{object}, status"), words)
            .remedy(format!("Add the key {key}, or correct the reference."), &[command])
            .suffers(object, "does not find its key"),
    )
}

/// The keys of Secrets and ConfigMaps that a specification names.
fn collect_keys(value: &Value, namespace: &str, depth: usize, found: &mut Vec<(Object, String)>) {
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::Object(fields) => {
            if let (Some(name), Some(key)) = (value.str_at(&["name"]), value.str_at(&["key"])) {
                let namespace = value.str_at(&["namespace"]).unwrap_or(namespace);
                let kinds = ["Secret", "ConfigMap"];
                found.extend(kinds.map(|kind| (Object::new(kind, namespace, name), key.to_owned())));
            }
            fields.values().for_each(|it| collect_keys(it, namespace, depth + 1, found));
        }
        Value::Array(items) => items.iter().for_each(|it| collect_keys(it, namespace, depth + 1, found)),
        _ => {}
    }
}
