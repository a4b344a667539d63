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
