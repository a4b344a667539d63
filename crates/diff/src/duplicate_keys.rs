//! Items of a list that have one key. Server-side apply refuses an object that has them, though the API
//! server stores them when it is created or updated: `kubectl apply` creates it.

use std::collections::HashSet;

use serde_json::Value;
use tiphys_schema::{ListKind, TypeRef};

use crate::Fields;

/// Deeper parts are left as they are.
const MAX_DEPTH: usize = 100;

/// The object with each item once of those that stand there several times and are the same; `None` if there
/// are none.
pub fn items_once(object: &Value, fields: Fields<'_>) -> Option<Value> {
    if !has_repeats(object) {
        return None;
    }
    let mut once = object.clone();
    let mut is_less = false;
    each_list(&mut once, fields.types(), 0, &mut |items, _| {
        let before = items.len();
        let mut seen: Vec<Value> = Vec::new();
        items.retain(|item| {
            let is_new = !seen.contains(item) || refers(item);
            if is_new {
                seen.push(item.clone());
            }
            is_new
        });
        is_less |= items.len() < before;
    });
    is_less.then_some(once)
}

/// Whether two items of a list have one key and are not the same, so that each may be meant: a variable that
/// adds to its earlier self, two names of one port.
pub fn has_rivals(object: &Value, fields: Fields<'_>) -> bool {
    let mut found = false;
    each_list(&mut object.clone(), fields.types(), 0, &mut |items, keys| {
        let mut seen = HashSet::new();
        found |= items.iter().any(|item| !seen.insert(keys(item)));
    });
    found
}

/// The object with one item of each key, the last: what server-side apply takes.
pub fn last_only(object: &Value, fields: Fields<'_>) -> Value {
    let mut out = object.clone();
    each_list(&mut out, fields.types(), 0, &mut |items, keys| {
        let mut seen = HashSet::new();
        let mut kept: Vec<Value> = items.drain(..).rev().filter(|item| seen.insert(keys(item))).collect();
        kept.reverse();
        *items = kept;
    });
    out
}

/// Whether a variable's value is made of others, so that it means something else in another place.
fn refers(item: &Value) -> bool {
    item.get("value").and_then(Value::as_str).is_some_and(|text| text.contains("$("))
}

/// Whether any list has two equal items; most have none, and no types have to be looked up then.
pub fn has_repeats(value: &Value) -> bool {
    has_repeats_below(value, 0)
}

fn has_repeats_below(value: &Value, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    match value {
        Value::Object(map) => map.values().any(|value| has_repeats_below(value, depth + 1)),
        Value::Array(items) => {
            let is_twice = match items.len() {
                0 | 1 => false,
                2..=8 => items.iter().enumerate().any(|(at, item)| items[..at].contains(item)),
                _ => items.iter().collect::<HashSet<_>>().len() < items.len(),
            };
            is_twice || items.iter().any(|item| has_repeats_below(item, depth + 1))
        }
        _ => false,
    }
}

/// What is done with a list and with what tells its items apart.
type Act<'a> = &'a mut dyn FnMut(&mut Vec<Value>, &dyn Fn(&Value) -> String);

/// Shows every list whose items are distinguished, with what tells them apart.
fn each_list(value: &mut Value, ty: TypeRef<'_>, depth: usize, act: Act<'_>) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut().filter(|(_, value)| value.is_object() || value.is_array()) {
                if let Some(field) = ty.field(key) {
                    each_list(value, field, depth + 1, act);
                }
            }
        }
        Value::Array(items) => {
            let item_type = ty.items();
            match ty.list_kind() {
                Some(ListKind::Map(keys)) => {
                    act(items, &|item| crate::overlay::identity(item, keys, item_type));
                }
                Some(ListKind::Set) => act(items, &Value::to_string),
                _ => {}
            }
            for item in items {
                if let Some(ty) = item_type {
                    each_list(item, ty, depth + 1, act);
                }
            }
        }
        _ => {}
    }
}
