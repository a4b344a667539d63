//! Sets of parameters: flat texts for the plain template language, trees for Go templates.

use serde_json::{Map, Value};

use crate::Params;

/// Deeper trees are cut.
const MAX_DEPTH: usize = 64;

/// A tree as flat parameters: keys joined by dots, list items as `key[0]`, scalars as text.
pub(crate) fn flatten(tree: &Params) -> Params {
    let mut out = Params::new();
    for (key, value) in tree {
        flatten_into(key.clone(), value, &mut out, 0);
    }
    out
}

fn flatten_into(key: String, value: &Value, out: &mut Params, depth: usize) {
    match value {
        Value::Object(map) if depth < MAX_DEPTH => {
            for (name, child) in map {
                flatten_into(format!("{key}.{name}"), child, out, depth + 1);
            }
        }
        Value::Array(list) if depth < MAX_DEPTH => {
            for (index, child) in list.iter().enumerate() {
                flatten_into(format!("{key}[{index}]"), child, out, depth + 1);
            }
        }
        scalar => {
            out.insert(key, text_of(scalar).into());
        }
    }
}

/// A scalar as text.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Lays one tree over another; maps are merged, all else is replaced.
pub(crate) fn overlay(base: &mut Params, over: &Params, depth: usize) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Object(have)), Value::Object(new)) if depth < MAX_DEPTH => {
                overlay(have, new, depth + 1)
            }
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

/// A merge patch (RFC 7396).
pub(crate) fn merge_patch(target: &mut Value, patch: &Value, depth: usize) {
    let Value::Object(changes) = patch else {
        if !patch.is_null() {
            *target = patch.clone();
        }
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else { return };
    for (key, change) in changes {
        if change.is_null() {
            map.remove(key);
        } else if change.is_object() && depth < MAX_DEPTH {
            merge_patch(map.entry(key.clone()).or_insert(Value::Null), change, depth + 1);
        } else {
            map.insert(key.clone(), change.clone());
        }
    }
}

/// A text as a DNS name: lower case, other characters as dashes, at most 253 of them.
pub(crate) fn normalize(text: &str) -> String {
    let mapped: String = text
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.') { c } else { '-' })
        .take(253)
        .collect();
    mapped.trim_matches(['-', '.']).to_owned()
}
