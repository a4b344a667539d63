//! What of a target is sent to the API server.

use std::borrow::Cow;

use serde_json::Value;
use tiphys_model::names::LAST_APPLIED;
use tiphys_schema::{ListKind, TypeRef};
use tiphys_value::ObjectExt;

use crate::{Fields, normalize::SERVER_METADATA, once::items_once};

/// Deeper parts are left as they are.
const MAX_DEPTH: usize = 100;

/// A target as server-side apply takes it: without what an exported object has of the API server's own, each item of a list
/// once, and without nulls that would not pass. What the kind's fields are not known to allow stays.
pub fn applied_form<'a>(object: &'a Value, fields: Option<Fields<'_>>) -> Cow<'a, Value> {
    let mut form = Cow::Borrowed(object);
    if is_exported(object) {
        strip(form.to_mut());
    }
    let Some(fields) = fields else { return form };
    if let Some(once) = items_once(&form, fields) {
        form = Cow::Owned(once);
    }
    if tiphys_model::has_null(&form) {
        match fields {
            Fields::BuiltIn(types) => remove_null_keys(form.to_mut(), types, 0),
            Fields::Custom(schema) => schema.remove_nulls(form.to_mut()),
        }
    }
    form
}

/// Metadata that the API server sets, which an object has that was read from one.
fn server_set(object: &Value) -> impl Iterator<Item = &'static str> {
    let metadata = object.get("metadata");
    SERVER_METADATA.into_iter().filter(move |field| metadata.is_some_and(|all| all.get(field).is_some()))
}

fn is_exported(object: &Value) -> bool {
    server_set(object).next().is_some() || object.annotation(LAST_APPLIED).is_some()
}

/// The fields of an object that only an API server sets, such as `metadata.uid`: whoever applies the object drops them.
pub fn exported_fields(object: &Value) -> Vec<String> {
    let status =
        object.get("status").is_some_and(|status| status.as_object().is_some_and(|map| !map.is_empty()));
    let metadata = server_set(object).filter(|field| !object["metadata"][field].is_null());
    metadata.map(|field| format!("metadata.{field}")).chain(status.then(|| "status".to_owned())).collect()
}

fn strip(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    SERVER_METADATA.iter().for_each(|field| drop(metadata.remove(*field)));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
}

/// A field that tells the items of a list apart and is null is one that is not given.
fn remove_null_keys(value: &mut Value, ty: TypeRef<'_>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut().filter(|(_, value)| value.is_object() || value.is_array()) {
                if let Some(field) = ty.field(key) {
                    remove_null_keys(value, field, depth + 1);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                if let (Some(ListKind::Map(keys)), Value::Object(map)) = (ty.list_kind(), &mut *item) {
                    map.retain(|key, value| !value.is_null() || !keys.contains(key));
                }
                if let Some(ty) = ty.items() {
                    remove_null_keys(item, ty, depth + 1);
                }
            }
        }
        _ => {}
    }
}
