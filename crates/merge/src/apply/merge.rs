//! Merging a configuration into an object, and taking paths out of one.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::Hash,
};

use serde_json::{Map, Value};
use tiphys_schema::{Type, TypeRef};

use super::set::{FieldSet, is_atomic, item_step};

/// The live object with the configuration's values in place of its own.
pub(super) fn merge(live: &Value, config: &Value, ty: Option<TypeRef<'_>>) -> Result<Value, String> {
    match (live, config) {
        (live, Value::Object(changes)) if !is_atomic(config, ty) => {
            let mut merged = live.as_object().cloned().unwrap_or_default();
            for (key, change) in changes {
                let field = ty.and_then(|ty| ty.field(key));
                let before = merged.remove(key).unwrap_or(Value::Null);
                merged.insert(key.clone(), merge(&before, change, field)?);
            }
            Ok(Value::Object(merged))
        }
        (Value::Array(live), Value::Array(changes)) if !is_atomic(config, ty) => {
            merge_lists(live, changes, ty).map(Value::Array)
        }
        (_, Value::Array(changes)) if !is_atomic(config, ty) => {
            merge_lists(&[], changes, ty).map(Value::Array)
        }
        // Nothing said of a map or a list that is merged leaves it as it is.
        (Value::Object(_) | Value::Array(_), Value::Null) if is_merged(live, ty) => Ok(live.clone()),
        _ => Ok(config.clone()),
    }
}

/// Whether the parts of a value have owners of their own, by its type.
fn is_merged(live: &Value, ty: Option<TypeRef<'_>>) -> bool {
    let is_hollow = live.as_object().is_some_and(Map::is_empty) || live.as_array().is_some_and(Vec::is_empty);
    let is_typed = ty.is_some_and(|ty| !matches!(ty.ty, Type::Any | Type::Open));
    is_typed && !is_hollow && !is_atomic(live, ty)
}

fn steps(list: &[Value], ty: Option<TypeRef<'_>>) -> Result<Vec<String>, String> {
    list.iter().map(|item| item_step(item, ty)).collect()
}

/// Merges keyed lists.
fn merge_lists(live: &[Value], changes: &[Value], ty: Option<TypeRef<'_>>) -> Result<Vec<Value>, String> {
    let (live_steps, change_steps) = (steps(live, ty)?, steps(changes, ty)?);
    let mut seen = HashSet::new();
    if let Some(twice) = change_steps.iter().find(|step| !seen.insert(step.as_str())) {
        let set = FieldSet::from_fields_v1(&Value::Object(
            std::iter::once((twice.clone(), Value::Object(Map::new()))).collect(),
        ));
        return Err(format!("duplicate entries for key {}", set.paths().concat()));
    }
    let items = ty.and_then(TypeRef::items);
    let merged = interleave(&live_steps, &change_steps).into_iter().map(|place| match place {
        ItemOrigin::Live(at) => Ok(live[at].clone()),
        ItemOrigin::Changed { change, live: before } => {
            merge(before.map_or(&Value::Null, |at| &live[at]), &changes[change], items)
        }
    });
    merged.collect()
}

/// Where an item of a merged list comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemOrigin {
    /// From the live list alone: its position there.
    Live(usize),
    /// From the configuration.
    Changed {
        /// Its position in the configuration.
        change: usize,
        /// That of the item in the live list that is the same by its key.
        live: Option<usize>,
    },
}

/// How a live list and a configuration's are merged by the keys of their items: the configuration's order
/// wins, live items keep their place relative to the items that both have. A key stands in the configuration
/// once.
pub fn interleave<K: Eq + Hash>(live: &[K], changes: &[K]) -> Vec<ItemOrigin> {
    let live_at: HashMap<&K, usize> = live.iter().zip(0..).collect();
    let changed: HashSet<&K> = changes.iter().collect();
    let mut shared: VecDeque<&K> = changes.iter().filter(|key| live_at.contains_key(key)).collect();
    let mut next = shared.pop_front();
    let mut done = HashSet::new();
    let mut out = Vec::with_capacity(live.len().max(changes.len()));
    let (mut l, mut r) = (0, 0);
    while l < live.len() || r < changes.len() {
        if let (Some(left), Some(right)) = (live.get(l), changes.get(r)) {
            if left == right {
                out.push(ItemOrigin::Changed { change: r, live: Some(l) });
                done.insert(left);
                (l, r) = (l + 1, r + 1);
                next = shared.pop_front();
                continue;
            }
            if changed.contains(left) && next.is_some_and(|next| next != left) {
                l += 1;
                continue;
            }
        }
        if let Some(left) = live.get(l) {
            if !changed.contains(left) {
                out.push(ItemOrigin::Live(l));
                l += 1;
                continue;
            }
            l += usize::from(done.contains(left));
        }
        if let Some(right) = changes.get(r) {
            done.insert(right);
            out.push(ItemOrigin::Changed { change: r, live: live_at.get(right).copied() });
            r += 1;
            if next == Some(right) {
                next = shared.pop_front();
            }
        }
    }
    out
}

/// The object without the members of a set; `None` if nothing is left of it.
pub(super) fn without(value: &Value, set: &FieldSet, ty: Option<TypeRef<'_>>) -> Option<Value> {
    match value {
        Value::Object(map) if !is_atomic(value, ty) => {
            let mut kept = Map::new();
            for (key, inner) in map {
                let step = format!("f:{key}");
                if set.contains(&step) {
                    continue;
                }
                let field = ty.and_then(|ty| ty.field(key));
                // An emptied field stays as null: it is still there for whoever owns it.
                let inner = match set.child(&step) {
                    Some(below) => without(inner, below, field).unwrap_or(Value::Null),
                    None => inner.clone(),
                };
                kept.insert(key.clone(), inner);
            }
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(list) if !is_atomic(value, ty) => {
            let kept: Vec<_> = list.iter().filter_map(|item| without_item(item, set, ty)).collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        _ => Some(value.clone()),
    }
}

/// Removes the nulls that [`without`] left, but not those that the configuration asks for: what they become
/// is up to their type.
pub(super) fn drop_emptied(value: &mut Value, config: &Value, ty: Option<TypeRef<'_>>) {
    if is_atomic(value, ty) {
        return;
    }
    match value {
        Value::Object(map) => {
            map.retain(|key, inner| !inner.is_null() || config.get(key).is_some());
            for (key, inner) in map {
                drop_emptied(inner, &config[key.as_str()], ty.and_then(|ty| ty.field(key)));
            }
        }
        Value::Array(list) => {
            let config = config.as_array().map_or(&[][..], Vec::as_slice);
            let by_step: HashMap<String, &Value> =
                config.iter().filter_map(|item| Some((item_step(item, ty).ok()?, item))).collect();
            for item in list {
                let asked = item_step(item, ty).ok().and_then(|step| by_step.get(&step).copied());
                drop_emptied(item, asked.unwrap_or(&Value::Null), ty.and_then(TypeRef::items));
            }
        }
        _ => {}
    }
}

fn without_item(item: &Value, set: &FieldSet, ty: Option<TypeRef<'_>>) -> Option<Value> {
    let Ok(step) = item_step(item, ty) else { return Some(item.clone()) };
    if set.contains(&step) {
        return None;
    }
    match set.child(&step) {
        Some(below) => without(item, below, ty.and_then(TypeRef::items)),
        None => Some(item.clone()),
    }
}
