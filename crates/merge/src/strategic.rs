//! Strategic merge patch: a merge patch that knows by which key list items are the same, with
//! directives (`$patch`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`, `$retainKeys`).

use serde_json::{Map, Value};
use tiphys_schema::{Field, TypeRef};

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// Why a strategic merge patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategicError {
    /// A list item lacks the key that identifies it.
    #[error("map: {item} does not contain declared merge key: {key}")]
    NoKey {
        /// The item.
        item: String,
        /// Merge key.
        key: String,
    },
    /// Items of the two lists are of several types; both as JSON.
    #[error("list element types are not identical: [{before} {after}]")]
    Mixed {
        /// The list that is there.
        before: String,
        /// The list of the patch.
        after: String,
    },
    /// A `$patch` directive that does not exist.
    #[error("unknown patch type: {name} in map: {map}")]
    Directive {
        /// What it says.
        name: String,
        /// Where it stands, as JSON.
        map: String,
    },
}

/// The object with the patch applied; fields that the type does not know merge as in a merge patch.
///
/// # Errors
/// Items without their merge key; unknown directives.
pub fn strategic_merge(
    object: &Value,
    patch: &Value,
    ty: Option<TypeRef<'_>>,
) -> Result<Value, StrategicError> {
    let (Value::Object(object), Value::Object(patch)) = (object, patch) else { return Ok(patch.clone()) };
    merge_maps(object, patch, ty).map(Value::Object)
}

type Object = Map<String, Value>;

/// A patch for something that is not there: without its directives and nulls.
fn cleaned(patch: &Value) -> Value {
    match patch {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, value)| !is_directive(key) && !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), cleaned(value))).collect())
        }
        Value::Array(items) => {
            let kept = items.iter().filter(|item| item[PATCH].is_null());
            kept.map(cleaned).collect()
        }
        other => other.clone(),
    }
}

fn is_directive(key: &str) -> bool {
    key == PATCH || key == RETAIN || key.starts_with(DELETE_FROM) || key.starts_with(ORDER)
}

fn merge_maps(object: &Object, patch: &Object, ty: Option<TypeRef<'_>>) -> Result<Object, StrategicError> {
    match patch.get(PATCH).and_then(Value::as_str) {
        None | Some("merge") => {}
        Some("replace") => return Ok(patch.iter().filter(|(k, _)| *k != PATCH).map(pair).collect()),
        Some("delete") => return Ok(Object::new()),
        Some(other) => {
            let map = Value::Object(patch.clone()).to_string();
            return Err(StrategicError::Directive { name: other.to_owned(), map });
        }
    }
    let mut merged = object.clone();
    if let Some(keep) = patch.get(RETAIN).and_then(Value::as_array) {
        merged.retain(|key, _| keep.iter().any(|kept| kept == key));
    }
    for (directive, gone) in patch.iter().filter(|(key, _)| key.starts_with(DELETE_FROM)) {
        if let Some(list) = merged.get_mut(&directive[DELETE_FROM.len()..]).and_then(Value::as_array_mut) {
            let gone = gone.as_array().map_or(&[][..], Vec::as_slice);
            list.retain(|item| !gone.contains(item));
        }
    }
    for (key, change) in patch.iter().filter(|(key, _)| !is_directive(key)) {
        let field = ty.and_then(|ty| ty.field_info(key));
        let inner = ty.and_then(|ty| ty.field(key));
        match (merged.get(key), change) {
            (_, Value::Null) => drop(merged.remove(key)),
            (Some(Value::Object(before)), Value::Object(after)) if !replaces(field) => {
                let value = Value::Object(merge_maps(before, after, inner)?);
                merged.insert(key.clone(), value);
            }
            (before, Value::Array(after)) if merges(field) => {
                let before = before.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let merge_key = field.and_then(|field| field.merge_key.as_deref());
                let list = merge_lists(before, after, merge_key, inner)?;
                let own: Vec<Value> = after.iter().filter(|item| item[PATCH].is_null()).cloned().collect();
                let list = ordered(list, Some(&own), before, merge_key);
                let order = patch.get(&format!("{ORDER}{key}")).and_then(Value::as_array);
                merged.insert(key.clone(), Value::Array(ordered(list, order, before, merge_key)));
            }
            _ => drop(merged.insert(key.clone(), cleaned(change))),
        }
    }
    reorder_untouched(&mut merged, patch, ty);
    Ok(merged)
}

/// Lists that the patch orders without changing their items.
fn reorder_untouched(merged: &mut Object, patch: &Object, ty: Option<TypeRef<'_>>) {
    for (directive, order) in patch.iter().filter(|(key, _)| key.starts_with(ORDER)) {
        let key = &directive[ORDER.len()..];
        let merge_key = ty.and_then(|ty| ty.field_info(key)).and_then(|field| field.merge_key.as_deref());
        if let Some(Value::Array(list)) = merged.get_mut(key).filter(|_| !patch.contains_key(key)) {
            let before = list.clone();
            *list = ordered(before.clone(), order.as_array(), &before, merge_key);
        }
    }
}

fn pair((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

fn merges(field: Option<&Field>) -> bool {
    field.is_some_and(|field| field.strategy.merge)
}

fn replaces(field: Option<&Field>) -> bool {
    field.is_some_and(|field| field.strategy.replace)
}

fn merge_lists(
    before: &[Value],
    after: &[Value],
    merge_key: Option<&str>,
    ty: Option<TypeRef<'_>>,
) -> Result<Vec<Value>, StrategicError> {
    if after.iter().any(|item| item[PATCH] == "replace") {
        return Ok(after.iter().filter(|item| item[PATCH].is_null()).cloned().collect());
    }
    let mut merged = before.to_vec();
    let Some(merge_key) = merge_key else {
        merged.extend(after.iter().filter(|item| !before.contains(item)).cloned());
        return Ok(merged);
    };
    let items = ty.and_then(TypeRef::items);
    if !before.is_empty() && after.iter().any(|item| !item.is_object()) {
        let text = |list: &[Value]| Value::from(list.to_vec()).to_string();
        return Err(StrategicError::Mixed { before: text(before), after: text(after) });
    }
    for change in after {
        let no_key = || StrategicError::NoKey { item: change.to_string(), key: merge_key.to_owned() };
        let key = change.get(merge_key).ok_or_else(no_key)?;
        let at = merged.iter().position(|item| item.get(merge_key) == Some(key));
        match (at, change[PATCH].as_str(), change) {
            (_, Some("delete"), _) => merged.retain(|item| item.get(merge_key) != Some(key)),
            (Some(at), _, Value::Object(changes)) => {
                let empty = Object::new();
                let item = merged[at].as_object().unwrap_or(&empty);
                merged[at] = Value::Object(merge_maps(item, changes, items)?);
            }
            _ => merged.push(cleaned(change)),
        }
    }
    Ok(merged)
}

/// Puts listed items into the given order; items that are not listed keep their place relative to
/// the live list's.
fn ordered(list: Vec<Value>, order: Option<&Vec<Value>>, live: &[Value], key: Option<&str>) -> Vec<Value> {
    let Some(order) = order else { return list };
    let id = |item: &Value| key.map_or_else(|| item.clone(), |key| item[key].clone());
    let wanted: Vec<Value> = order.iter().map(id).collect();
    let (mut listed, others): (Vec<_>, Vec<_>) =
        list.into_iter().partition(|item| wanted.contains(&id(item)));
    listed.sort_by_key(|item| wanted.iter().position(|wanted| *wanted == id(item)));
    let place = |item: &Value| live.iter().position(|other| id(other) == id(item));
    let mut out = Vec::with_capacity(listed.len() + others.len());
    let (mut listed, mut others) = (listed.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(a), Some(b)) = (listed.peek(), others.peek()) {
        let other_first = matches!((place(a), place(b)), (Some(a), Some(b)) if b < a);
        out.extend(if other_first { others.next() } else { listed.next() });
    }
    out.extend(listed);
    out.extend(others);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tiphys_schema::Catalog;
    use tiphys_value::GroupVersionKind;

    fn merged(object: Value, patch: Value) -> Value {
        let gvk = GroupVersionKind::new("", "v1", "Pod");
        let ty = Catalog::latest().type_of(&gvk);
        strategic_merge(&json!({"spec": object}), &json!({"spec": patch}), ty).expect("merges")["spec"]
            .clone()
    }

    #[test]
    fn list_items_merge_by_key() {
        let object = json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}]});
        let patch = json!({"containers": [{"name": "a", "image": "2"}, {"name": "c"}]});
        // New items come first unless an order is given: that is the API server's way.
        let expected = json!({"containers": [{"name": "a", "image": "2"}, {"name": "c"}, {"name": "b"}]});
        assert_eq!(merged(object, patch), expected);
    }

    #[test]
    fn directives_are_obeyed() {
        let object = json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"x": "y"},
            "volumes": [{"name": "v", "emptyDir": {}}]});
        let patch = json!({
            "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}],
            "containers": [{"name": "a", "$patch": "delete"}, {"name": "c"}],
            "nodeSelector": {"$patch": "replace", "z": "1"},
            "volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}],
        });
        let expected = json!({"containers": [{"name": "c"}, {"name": "b"}], "nodeSelector": {"z": "1"},
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}]});
        assert_eq!(merged(object, patch), expected);
    }

    #[test]
    fn an_item_without_its_key_is_refused() {
        let ty = Catalog::latest().type_of(&GroupVersionKind::new("", "v1", "Pod"));
        let patch = json!({"spec": {"containers": [{"image": "x"}]}});
        assert!(matches!(
            strategic_merge(&json!({"spec": {}}), &patch, ty),
            Err(StrategicError::NoKey { .. })
        ));
    }
}
