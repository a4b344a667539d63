//! JSON merge patch (RFC 7396).

use serde_json::{Map, Value};

/// The object with the patch applied: nulls remove, objects merge, everything else replaces.
pub fn merge_patch(object: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut merged = object.as_object().cloned().unwrap_or_default();
    for (key, change) in changes {
        if change.is_null() {
            merged.remove(key);
        } else {
            let before = merged.remove(key).unwrap_or(Value::Null);
            merged.insert(key.clone(), merge_patch(&before, change));
        }
    }
    Value::Object(merged)
}

/// The smallest merge patch that turns one object into another.
pub fn create_merge_patch(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let mut patch = Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, after) in to {
        match from.get(key) {
            Some(before) if before == after => {}
            Some(before) if before.is_object() && after.is_object() => {
                patch.insert(key.clone(), create_merge_patch(before, after));
            }
            _ => {
                patch.insert(key.clone(), after.clone());
            }
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn nulls_remove_and_lists_replace() {
        let object = json!({"a": {"b": 1, "c": [1, 2]}, "d": 1});
        let patch = json!({"a": {"b": null, "c": [3]}, "e": {"f": null}});
        assert_eq!(merge_patch(&object, &patch), json!({"a": {"c": [3]}, "d": 1, "e": {}}));
    }

    fn objects() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..3_i64).prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_created_patch_leads_to_its_target(from in objects(), to in objects()) {
            prop_assert_eq!(merge_patch(&from, &create_merge_patch(&from, &to)), to);
        }
    }
}
