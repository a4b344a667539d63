//! Three-way merges of a configuration: what was applied last, what is live, what is wanted.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use tiphys_schema::TypeRef;

use crate::create_merge_patch;

/// The merge patch of a client-side apply: changes from live to wanted, and nulls for what was
/// applied last and is no longer wanted. What only the live object has stays.
pub fn three_way_merge_patch(last_applied: &Value, wanted: &Value, live: &Value) -> Value {
    let mut patch = keep_additions(create_merge_patch(live, wanted));
    add_deletions(&mut patch, last_applied, wanted, live);
    patch
}

/// A merge patch without its removals.
fn keep_additions(patch: Value) -> Value {
    let Value::Object(map) = patch else { return patch };
    let kept = map.into_iter().filter(|(_, value)| !value.is_null());
    let kept = kept.map(|(key, value)| (key, keep_additions(value)));
    Value::Object(kept.filter(|(_, value)| value.as_object().is_none_or(|map| !map.is_empty())).collect())
}

fn add_deletions(patch: &mut Value, last: &Value, wanted: &Value, live: &Value) {
    let (Some(last), Some(wanted), Some(live)) = (last.as_object(), wanted.as_object(), live.as_object())
    else {
        return;
    };
    for (key, before) in last {
        let Value::Object(map) = patch else { return };
        match (wanted.get(key), live.get(key)) {
            (None, Some(_)) => drop(map.insert(key.clone(), Value::Null)),
            (Some(after), Some(now)) if after.is_object() && now.is_object() && before.is_object() => {
                let mut inner = map.remove(key).unwrap_or_else(|| Value::Object(Map::new()));
                add_deletions(&mut inner, before, after, now);
                if inner.as_object().is_none_or(|inner| !inner.is_empty()) {
                    map.insert(key.clone(), inner);
                }
            }
            _ => {}
        }
    }
}

/// A strategic merge patch that turns one object into another: lists with a merge key item by item.
pub fn two_way_strategic_patch(from: &Value, to: &Value, ty: Option<TypeRef<'_>>) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let mut patch = Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, after) in to.iter().filter(|(key, after)| from.get(*key) != Some(after)) {
        let field = ty.and_then(|ty| ty.field_info(key)).filter(|field| field.strategy.merge);
        let merge_key = field.and_then(|field| field.merge_key.as_deref());
        let inner = ty.and_then(|ty| ty.field(key));
        match (from.get(key), after, merge_key) {
            (Some(before @ Value::Object(_)), Value::Object(_), _) => {
                patch.insert(key.clone(), two_way_strategic_patch(before, after, inner));
            }
            (Some(Value::Array(before)), Value::Array(after), Some(merge_key)) => {
                let order: Vec<Value> = after.iter().map(|item| key_only(item, merge_key)).collect();
                patch.insert(format!("$setElementOrder/{key}"), Value::Array(order));
                let items = inner.and_then(TypeRef::items);
                patch.insert(key.clone(), list_patch(before, after, merge_key, items));
            }
            (Some(Value::Array(_)), Value::Array(after), None) if field.is_some() => {
                let mut list = vec![serde_json::json!({"$patch": "replace"})];
                list.extend(after.iter().cloned());
                let scalars = after.iter().all(|item| !item.is_object());
                let replaced = if scalars { scalar_list_patch(&mut patch, key, from, after) } else { list };
                patch.insert(key.clone(), Value::Array(replaced));
            }
            _ => drop(patch.insert(key.clone(), after.clone())),
        }
    }
    Value::Object(patch)
}

/// Additions to a merged list of scalars; removals go into their directive.
fn scalar_list_patch(
    patch: &mut Map<String, Value>,
    key: &str,
    from: &Map<String, Value>,
    after: &[Value],
) -> Vec<Value> {
    let before = from.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let new: HashSet<&Value> = after.iter().collect();
    let gone: Vec<Value> = before.iter().filter(|item| !new.contains(item)).cloned().collect();
    if !gone.is_empty() {
        patch.insert(format!("$deleteFromPrimitiveList/{key}"), Value::Array(gone));
    }
    patch.insert(format!("$setElementOrder/{key}"), Value::Array(after.to_vec()));
    let old: HashSet<&Value> = before.iter().collect();
    after.iter().filter(|item| !old.contains(item)).cloned().collect()
}

fn key_only(item: &Value, merge_key: &str) -> Value {
    serde_json::json!({ merge_key: item[merge_key] })
}

fn list_patch(before: &[Value], after: &[Value], merge_key: &str, ty: Option<TypeRef<'_>>) -> Value {
    // Of several with one key the first counts.
    let old: HashMap<&Value, &Value> = before.iter().rev().map(|item| (&item[merge_key], item)).collect();
    let new: HashSet<&Value> = after.iter().map(|item| &item[merge_key]).collect();
    let mut out = Vec::new();
    for item in after {
        match old.get(&item[merge_key]).copied() {
            Some(old) if old == item => {}
            Some(old) => {
                let mut change = two_way_strategic_patch(old, item, ty);
                change[merge_key] = item[merge_key].clone();
                out.push(change);
            }
            None => out.push(item.clone()),
        }
    }
    for gone in before.iter().filter(|item| !new.contains(&item[merge_key])) {
        let mut change = key_only(gone, merge_key);
        change["$patch"] = "delete".into();
        out.push(change);
    }
    Value::Array(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{merge_patch, strategic_merge};
    use proptest::prelude::*;
    use serde_json::json;
    use tiphys_schema::Catalog;
    use tiphys_value::GroupVersionKind;

    #[test]
    fn live_additions_stay_and_dropped_fields_go() {
        let last = json!({"spec": {"a": 1, "b": 2}});
        let wanted = json!({"spec": {"a": 3}});
        let live = json!({"spec": {"a": 1, "b": 2, "c": 4}, "status": {}});
        let patch = three_way_merge_patch(&last, &wanted, &live);
        assert_eq!(merge_patch(&live, &patch), json!({"spec": {"a": 3, "c": 4}, "status": {}}));
    }

    fn pods() -> impl Strategy<Value = Value> {
        let container = (0..4_u8, prop::option::of("[xy]"), prop::collection::btree_set("[a-c]", 0..3));
        let list = prop::collection::btree_map(0..4_u8, container, 1..4);
        list.prop_map(|containers| {
            let containers: Vec<_> = containers
                .into_iter()
                .map(|(name, (port, image, args))| {
                    let mut item = json!({"name": format!("c{name}"), "args": args,
                        "ports": [{"containerPort": port}]});
                    if let Some(image) = image {
                        item["image"] = image.into();
                    }
                    item
                })
                .collect();
            json!({"spec": {"containers": containers}})
        })
    }

    proptest! {
        #[test]
        fn a_created_patch_leads_to_its_target(from in pods(), to in pods()) {
            let ty = Catalog::latest().type_of(&GroupVersionKind::new("", "v1", "Pod"));
            let patch = two_way_strategic_patch(&from, &to, ty);
            prop_assert_eq!(strategic_merge(&from, &mut patch.clone(), ty).expect("merges"), to);
        }
    }
}
