//! What a live object would become if a target were applied to it.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use tiphys_schema::{Catalog, ListKind, Quantity, Type, TypeRef};
use tiphys_value::GroupVersionKind;

/// Deeper parts are taken from the target as they are.
const MAX_DEPTH: usize = 100;

/// Lays a whole target over its live object. The metadata are those of every kind, also of one whose
/// types are not known.
pub(crate) fn overlay_root(target: &Value, live: &Value, ty: Option<TypeRef<'_>>) -> Value {
    let mut out = overlay(target, live, ty, 0);
    if ty.is_none()
        && let (Some(wanted), Some(have)) = (target.get("metadata"), live.get("metadata"))
    {
        let config_map = Catalog::latest().type_of(&GroupVersionKind::new("", "v1", "ConfigMap"));
        let metadata = config_map.and_then(|ty| ty.field("metadata"));
        out["metadata"] = overlay(wanted, have, metadata, 1);
    }
    out
}

/// Lays a target over a live value. Parts that mean the same keep the live spelling, so that equal
/// objects come out equal.
pub(crate) fn overlay(target: &Value, live: &Value, ty: Option<TypeRef<'_>>, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return target.clone();
    }
    match (target, live) {
        (Value::Object(wanted), Value::Object(have)) => {
            if ty.is_some_and(TypeRef::is_atomic_object) {
                return if means_same(target, live, ty, depth) { live.clone() } else { target.clone() };
            }
            Value::Object(overlay_object(wanted, have, ty, depth))
        }
        (Value::Array(wanted), Value::Array(have)) => overlay_list(wanted, have, ty, depth),
        _ if means_same(target, live, ty, depth) => live.clone(),
        _ => target.clone(),
    }
}

fn overlay_object(
    wanted: &Map<String, Value>,
    have: &Map<String, Value>,
    ty: Option<TypeRef<'_>>,
    depth: usize,
) -> Map<String, Value> {
    let mut out = have.clone();
    for (key, value) in wanted.iter().filter(|(_, value)| !value.is_null()) {
        let field = ty.and_then(|ty| ty.field(key));
        match have.get(key) {
            Some(live) => {
                out.insert(key.clone(), overlay(value, live, field, depth + 1));
            }
            None if means_absent(value, ty, key) => {}
            None => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    out
}

/// Whether the API server drops the value: an empty one of a built-in kind whose field does not tell
/// empty from absent, or a field that its default fills in.
pub(crate) fn means_absent(value: &Value, ty: Option<TypeRef<'_>>, key: &str) -> bool {
    let Some(field) = ty.and_then(|ty| ty.field_info(key)) else { return false };
    let is_empty = match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty() && !field.pointer,
        Value::Bool(flag) => !flag && !field.pointer,
        Value::Number(number) => number.as_f64() == Some(0.0) && !field.pointer,
        Value::Null => true,
    };
    is_empty && !field.kept
}

fn overlay_list(wanted: &[Value], have: &[Value], ty: Option<TypeRef<'_>>, depth: usize) -> Value {
    let items = ty.and_then(TypeRef::items);
    let mut out = have.to_vec();
    match ty.and_then(TypeRef::list_kind) {
        Some(ListKind::Map(keys)) => {
            for item in wanted {
                let id = identity(item, keys, items);
                match out.iter().position(|live| identity(live, keys, items) == id) {
                    Some(at) => out[at] = overlay(item, &out[at], items, depth + 1),
                    None => out.push(item.clone()),
                }
            }
        }
        Some(ListKind::Set) => {
            for item in wanted.iter().filter(|item| !have.contains(item)) {
                out.push(item.clone());
            }
        }
        Some(ListKind::Atomic) | None => {
            let (wanted, have) = (Value::from(wanted.to_vec()), Value::from(have.to_vec()));
            return if means_same(&wanted, &have, ty, depth) { have } else { wanted };
        }
    }
    Value::Array(out)
}

/// The key fields of a list item, defaults filled in.
fn identity(item: &Value, keys: &[String], items: Option<TypeRef<'_>>) -> Vec<Value> {
    keys.iter()
        .map(|key| {
            let default = || items.and_then(|ty| ty.key_default(key)).cloned();
            item.get(key).cloned().or_else(default).unwrap_or_default()
        })
        .collect()
}

/// Whether a live value is what the API server makes of a target value. Fields that only the live value
/// has are taken for defaults.
fn means_same(target: &Value, live: &Value, ty: Option<TypeRef<'_>>, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return target == live;
    }
    match (target, live) {
        (Value::Object(wanted), Value::Object(have)) => {
            wanted.iter().filter(|(_, value)| !value.is_null()).all(|(key, value)| {
                let field = ty.and_then(|ty| ty.field(key));
                have.get(key).map_or_else(
                    || means_absent(value, ty, key),
                    |live| means_same(value, live, field, depth + 1),
                )
            })
        }
        (Value::Array(wanted), Value::Array(have)) => {
            let items = ty.and_then(TypeRef::items);
            wanted.len() == have.len()
                && wanted.iter().zip(have).all(|(target, live)| means_same(target, live, items, depth + 1))
        }
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ if target == live => true,
        _ => same_scalar(target, live, ty),
    }
}

fn same_scalar(target: &Value, live: &Value, ty: Option<TypeRef<'_>>) -> bool {
    match ty.map(|ty| ty.ty) {
        Some(Type::Quantity) => match (quantity(target), quantity(live)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        },
        Some(Type::Time | Type::MicroTime) => {
            let time = |value: &Value| value.as_str()?.parse::<tiphys_model::Timestamp>().ok();
            time(target).is_some() && time(target) == time(live)
        }
        Some(Type::Bytes) => bytes(target).is_some() && bytes(target) == bytes(live),
        _ => false,
    }
}

/// Binary data of a manifest, which may stand on several lines.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    let text: String = value.as_str()?.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    STANDARD.decode(text).ok()
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}
