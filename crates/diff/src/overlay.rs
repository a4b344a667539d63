//! What a live object would become if a target were applied to it.

use std::collections::HashSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use tiphys_merge::apply::{ItemOrigin, interleave};
use tiphys_schema::{Catalog, Field, ListKind, Quantity, Type, TypeRef, is_dropped};
use tiphys_value::GroupVersionKind;

use crate::{Fields, apply_body::is_hollow_key};

/// Deeper parts are taken from the target as they are.
const MAX_DEPTH: usize = 100;

/// Lays a target over its live object. Lists and maps that are applied as a whole take the target's place
/// with the defaults of `filled`, everything else is merged. The metadata are those of every kind, also of
/// one whose fields are not known.
pub(crate) fn overlay(target: &Value, filled: &Value, live: &Value, fields: Option<Fields<'_>>) -> Value {
    let merge = Merge { drops_empty: fields.is_some_and(Fields::drops_empty) };
    let mut out = merge.value(target, filled, live, fields.map(Fields::types), 0);
    if fields.is_none()
        && let (Some(wanted), Some(have)) = (target.get("metadata"), live.get("metadata"))
    {
        let config_map = Catalog::latest().type_of(&GroupVersionKind::new("", "v1", "ConfigMap"));
        let metadata = config_map.and_then(|ty| ty.field("metadata"));
        out["metadata"] = merge.value(wanted, wanted, have, metadata, 1);
    }
    out
}

/// Gives what means the same as in the live value, by a type of the API server's, the live spelling.
pub(crate) fn keep_live_spelling(target: &mut Value, live: &Value, ty: TypeRef<'_>) {
    Merge { drops_empty: true }.respell(target, live, Some(ty), 0);
}

/// Gives fields that are set to a value which says no more than their absence the one that is stored:
/// `scheme: ""` of a probe means `HTTP`.
pub(crate) fn fill_zeros(target: &mut Value, stored: &Value, fields: Fields<'_>) {
    Merge { drops_empty: fields.drops_empty() }.fill_zeros(target, stored, Some(fields.types()), 0);
}

struct Merge {
    /// Empty fields are the same as absent ones unless their types say otherwise.
    drops_empty: bool,
}

impl Merge {
    /// Parts that mean the same keep the live spelling, so that equal objects come out equal.
    fn value(
        &self,
        target: &Value,
        filled: &Value,
        live: &Value,
        ty: Option<TypeRef<'_>>,
        depth: usize,
    ) -> Value {
        if depth > MAX_DEPTH {
            return target.clone();
        }
        match (target, live) {
            (Value::Object(_), Value::Object(_)) if ty.is_some_and(TypeRef::is_atomic_object) => {
                self.whole(filled, live, ty, depth)
            }
            (Value::Object(wanted), Value::Object(have)) => {
                Value::Object(self.object(wanted, filled, have, ty, depth))
            }
            (Value::Array(wanted), Value::Array(have)) => match ty.and_then(TypeRef::list_kind) {
                Some(ListKind::Map(keys)) => self
                    .map_list(wanted, filled, have, (keys, ty), depth)
                    .unwrap_or_else(|| self.whole(filled, live, ty, depth)),
                Some(ListKind::Set) => set(wanted, have),
                Some(ListKind::Atomic) | None => self.whole(filled, live, ty, depth),
            },
            _ if self.is_same(target, live, ty, depth) => live.clone(),
            _ => target.clone(),
        }
    }

    /// What is replaced as a whole.
    fn whole(&self, filled: &Value, live: &Value, ty: Option<TypeRef<'_>>, depth: usize) -> Value {
        if self.is_same(filled, live, ty, depth) { live.clone() } else { filled.clone() }
    }

    fn object(
        &self,
        wanted: &Map<String, Value>,
        filled: &Value,
        have: &Map<String, Value>,
        ty: Option<TypeRef<'_>>,
        depth: usize,
    ) -> Map<String, Value> {
        let mut out = have.clone();
        for (key, value) in wanted {
            let field = ty.and_then(|ty| ty.field(key));
            if is_hollow(value) && field.is_some() && self.is_dropped(value, ty, key) {
                reset(&mut out, key, filled.get(key), (ty, field));
                continue;
            }
            match have.get(key).filter(|_| !value.is_null()) {
                Some(live) => {
                    let filled = filled.get(key).unwrap_or(value);
                    out.insert(key.clone(), self.value(value, filled, live, field, depth + 1));
                }
                None if self.is_dropped(value, ty, key) => {}
                None => {
                    out.insert(key.clone(), value.clone());
                }
            }
        }
        out
    }

    /// Lists whose items are distinguished by keys; `None` if one of the keys stands there twice.
    fn map_list(
        &self,
        wanted: &[Value],
        filled: &Value,
        have: &[Value],
        (keys, ty): (&[String], Option<TypeRef<'_>>),
        depth: usize,
    ) -> Option<Value> {
        let items = ty.and_then(TypeRef::items);
        let ids = |list: &[Value]| list.iter().map(|item| identity(item, keys, items)).collect::<Vec<_>>();
        let (live_ids, wanted_ids) = (ids(have), ids(wanted));
        let is_clear = |ids: &[String]| ids.iter().collect::<HashSet<_>>().len() == ids.len();
        if !is_clear(&live_ids) || !is_clear(&wanted_ids) {
            return None;
        }
        let merged = interleave(&live_ids, &wanted_ids).into_iter().map(|place| match place {
            ItemOrigin::Live(at) => have[at].clone(),
            ItemOrigin::Changed { change, live: None } => wanted[change].clone(),
            ItemOrigin::Changed { change, live: Some(at) } => {
                let filled = filled.get(change).unwrap_or(&wanted[change]);
                self.value(&wanted[change], filled, &have[at], items, depth + 1)
            }
        });
        Some(merged.collect())
    }

    fn respell(&self, target: &mut Value, live: &Value, ty: Option<TypeRef<'_>>, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match (&mut *target, live) {
            (Value::Object(wanted), Value::Object(have)) => {
                wanted.retain(|key, value| have.contains_key(key) || !self.is_dropped(value, ty, key));
                for (key, live) in have {
                    match wanted.get_mut(key) {
                        Some(value) => self.respell(value, live, ty.and_then(|ty| ty.field(key)), depth + 1),
                        None if self.is_written_anyway(live, ty, key) => {
                            wanted.insert(key.clone(), live.clone());
                        }
                        None => {}
                    }
                }
            }
            (Value::Array(wanted), Value::Array(have)) => {
                let items = ty.and_then(TypeRef::items);
                wanted
                    .iter_mut()
                    .zip(have)
                    .for_each(|(wanted, have)| self.respell(wanted, have, items, depth + 1));
            }
            (scalar, live) if self.is_same(scalar, live, ty, depth) => scalar.clone_from(live),
            _ => {}
        }
    }

    fn fill_zeros(&self, target: &mut Value, stored: &Value, ty: Option<TypeRef<'_>>, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match (target, stored) {
            (Value::Object(wanted), Value::Object(stored)) => {
                for (key, value) in wanted.iter_mut().filter(|(_, value)| !value.is_null()) {
                    let Some(stored) = stored.get(key) else { continue };
                    if value != stored && self.is_dropped(value, ty, key) {
                        value.clone_from(stored);
                    } else {
                        self.fill_zeros(value, stored, ty.and_then(|ty| ty.field(key)), depth + 1);
                    }
                }
            }
            (Value::Array(wanted), Value::Array(stored)) if wanted.len() == stored.len() => {
                let items = ty.and_then(TypeRef::items);
                wanted.iter_mut().zip(stored).for_each(|(item, stored)| {
                    self.fill_zeros(item, stored, items, depth + 1);
                });
            }
            _ => {}
        }
    }

    /// Whether the API server drops a value that a target gives.
    fn is_dropped(&self, value: &Value, ty: Option<TypeRef<'_>>, key: &str) -> bool {
        value.is_null()
            || (self.drops_empty
                && ty.and_then(|ty| ty.field_info(key)).is_some_and(|field| is_dropped(field, value)))
    }

    /// Whether the API server writes a value that no target gives.
    fn is_written_anyway(&self, value: &Value, ty: Option<TypeRef<'_>>, key: &str) -> bool {
        value.is_null()
            || (self.drops_empty
                && ty.and_then(|ty| ty.field_info(key)).is_some_and(|field| is_empty(value, field)))
    }

    /// Whether a live value is what the API server makes of a target value that has its defaults.
    fn is_same(&self, target: &Value, live: &Value, ty: Option<TypeRef<'_>>, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return target == live;
        }
        match (target, live) {
            (Value::Object(wanted), Value::Object(have)) => {
                let is_kept = |(key, value): (&String, &Value)| match (value, have.get(key)) {
                    (Value::Null, Some(live)) => self.is_written_anyway(live, ty, key),
                    (_, Some(live)) if !live.is_null() => {
                        self.is_same(value, live, ty.and_then(|ty| ty.field(key)), depth + 1)
                    }
                    _ => self.is_dropped(value, ty, key),
                };
                let mut more = have.iter().filter(|(key, _)| !wanted.contains_key(*key));
                wanted.iter().all(is_kept) && more.all(|(key, value)| self.is_written_anyway(value, ty, key))
            }
            (Value::Array(wanted), Value::Array(have)) => {
                let items = ty.and_then(TypeRef::items);
                wanted.len() == have.len()
                    && wanted
                        .iter()
                        .zip(have)
                        .all(|(target, live)| self.is_same(target, live, items, depth + 1))
            }
            (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
            _ if target == live => true,
            _ => same_scalar(target, live, ty),
        }
    }
}

/// Whether a value may be one that says no more than its absence.
fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// A field that a target sets to nothing loses its value: what is stored then is its default, or in a map the
/// zero of its type.
fn reset(
    out: &mut Map<String, Value>,
    key: &str,
    stored: Option<&Value>,
    (ty, field): (Option<TypeRef<'_>>, Option<TypeRef<'_>>),
) {
    let is_map = ty.is_some_and(|ty| matches!(ty.ty, Type::Map(..)));
    match (out.get(key), stored) {
        (Some(live), _) if has_parts(live, field) => {}
        (Some(live), Some(stored)) if stored == live => {}
        (Some(_), Some(stored)) => drop(out.insert(key.to_owned(), stored.clone())),
        (Some(_), None) => drop(out.remove(key)),
        (None, Some(stored)) if is_map && !stored.is_null() => {
            out.insert(key.to_owned(), stored.clone());
        }
        (None, _) => {}
    }
}

/// Whether the parts of a live value have owners of their own, so that nothing said of the whole leaves them.
fn has_parts(live: &Value, ty: Option<TypeRef<'_>>) -> bool {
    let Some(ty) = ty.filter(|ty| !matches!(ty.ty, Type::Any | Type::Open)) else { return false };
    match live {
        Value::Object(map) => !map.is_empty() && !ty.is_atomic_object(),
        Value::Array(items) => {
            !items.is_empty() && matches!(ty.list_kind(), Some(ListKind::Map(_) | ListKind::Set))
        }
        _ => false,
    }
}

/// Whether a value is what a field of its type is without being given.
fn is_empty(value: &Value, field: &Field) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) if field.ty == Type::Quantity => text == "0" && !field.pointer,
        Value::String(text) => text.is_empty() && !field.pointer,
        Value::Bool(flag) => !flag && !field.pointer,
        Value::Number(number) => number.as_f64() == Some(0.0) && !field.pointer,
        Value::Null => true,
    }
}

fn set(wanted: &[Value], have: &[Value]) -> Value {
    let place = |place| match place {
        ItemOrigin::Live(at) => have[at].clone(),
        ItemOrigin::Changed { change, .. } => wanted[change].clone(),
    };
    interleave(have, wanted).into_iter().map(place).collect()
}

/// The key fields of a list item, defaults filled in, as a text.
pub(crate) fn identity(item: &Value, keys: &[String], items: Option<TypeRef<'_>>) -> String {
    let value = |key: &String| {
        let default = || items.and_then(|ty| ty.key_default(key)).cloned();
        item.get(key)
            .filter(|value| !is_hollow_key(key, value, items))
            .cloned()
            .or_else(default)
            .unwrap_or_default()
    };
    keys.iter().map(value).collect::<Value>().to_string()
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
