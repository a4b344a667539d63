//! What of a target is sent to the API server.

use std::borrow::Cow;

use serde_json::Value;
use tiphys_model::names::LAST_APPLIED;
use tiphys_schema::{ListKind, TypeRef};
use tiphys_value::ObjectExt;

use crate::{Fields, duplicate_keys::items_once, normalize::SERVER_METADATA};

/// Deeper parts are left as they are.
const MAX_DEPTH: usize = 100;

/// A target as server-side apply takes it: without what an exported object has of the API server's own, each
/// item of a list once, and without nulls that would not pass. What the kind's fields are not known to allow
/// stays.
pub fn applied_form<'a>(object: &'a Value, fields: Option<Fields<'_>>) -> Cow<'a, Value> {
    let mut form = Cow::Borrowed(object);
    if is_exported(object) {
        strip(form.to_mut());
    }
    let Some(fields) = fields else { return form };
    if let Some(once) = items_once(&form, fields) {
        form = Cow::Owned(once);
    }
    match fields {
        Fields::BuiltIn(types) if has_hollow_item(&form, 0) => remove_hollow_keys(form.to_mut(), types, 0),
        Fields::Custom(schema) if tiphys_model::has_null(&form) => schema.remove_nulls(form.to_mut()),
        Fields::BuiltIn(_) | Fields::Custom(_) => {}
    }
    form
}

/// Whether an object has what only an API server, or `kubectl apply`, writes into one.
fn is_exported(object: &Value) -> bool {
    let metadata = object.get("metadata");
    SERVER_METADATA.iter().any(|field| metadata.is_some_and(|all| all.get(field).is_some()))
        || object.annotation(LAST_APPLIED).is_some()
}

fn strip(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    SERVER_METADATA.iter().for_each(|field| drop(metadata.remove(*field)));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
}

/// Whether an item of a list has a field that is null or empty; most have none, and no types have to be
/// looked up then.
fn has_hollow_item(value: &Value, depth: usize) -> bool {
    let is_hollow = |value: &Value| value.is_null() || value.as_str() == Some("");
    let has_hollow = |item: &Value| item.as_object().is_some_and(|map| map.values().any(is_hollow));
    match value {
        _ if depth > MAX_DEPTH => false,
        Value::Object(map) => map.values().any(|value| has_hollow_item(value, depth + 1)),
        Value::Array(items) => items.iter().any(|item| has_hollow(item) || has_hollow_item(item, depth + 1)),
        _ => false,
    }
}

/// A field that tells the items of a list apart and says nothing is one that is not given: its default tells
/// them apart (`protocol: ""` of a port is TCP).
fn remove_hollow_keys(value: &mut Value, ty: TypeRef<'_>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut().filter(|(_, value)| value.is_object() || value.is_array()) {
                if let Some(field) = ty.field(key) {
                    remove_hollow_keys(value, field, depth + 1);
                }
            }
        }
        Value::Array(items) => {
            let item_type = ty.items();
            for item in items {
                if let (Some(ListKind::Map(keys)), Value::Object(map)) = (ty.list_kind(), &mut *item) {
                    map.retain(|key, value| !keys.contains(key) || !is_hollow_key(key, value, item_type));
                }
                if let Some(ty) = item_type {
                    remove_hollow_keys(item, ty, depth + 1);
                }
            }
        }
        _ => {}
    }
}

/// Whether a field that tells items apart says nothing: it is null, or empty where it has a default.
pub(crate) fn is_hollow_key(key: &str, value: &Value, items: Option<TypeRef<'_>>) -> bool {
    value.is_null()
        || (value.as_str() == Some("") && items.is_some_and(|items| items.key_default(key).is_some()))
}
