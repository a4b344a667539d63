//! Changing `metadata`.

use tiphys_value::{Map, ObjectExt, Value};

/// `metadata.annotations`, made if there are none.
pub(crate) fn annotations_mut(object: &mut Value) -> &mut Map<String, Value> {
    let annotations = metadata_mut(object).entry("annotations").or_insert(Value::Null);
    if !annotations.is_object() {
        *annotations = Value::Object(Map::new());
    }
    annotations.as_object_mut().expect("made an object above")
}

/// `metadata`, made if it is not there. An object that is no map gets none: the map is then a spare.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().expect("made an object above")
}

/// Sets a text in `metadata`, or removes it if it is empty.
pub(crate) fn set(object: &mut Value, key: &str, text: &str) {
    let metadata = metadata_mut(object);
    if text.is_empty() {
        metadata.remove(key);
    } else {
        metadata.insert(key.into(), text.into());
    }
}

/// Copies a field of `metadata` from another object, removing it if that has none.
pub(crate) fn copy(object: &mut Value, from: &Value, key: &str) {
    let metadata = metadata_mut(object);
    match from.at(&["metadata", key]) {
        Some(value) => metadata.insert(key.into(), value.clone()),
        None => metadata.remove(key),
    };
}

/// Sets a label.
pub(crate) fn label(object: &mut Value, key: &str, value: &str) {
    let labels = metadata_mut(object).entry("labels").or_insert_with(|| Value::Object(Map::new()));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(key.into(), value.into());
    }
}

/// Gives a part of an object what the stored one has there.
pub(crate) fn keep_part(object: &mut Value, current: &Value, part: &str) {
    match current.get(part) {
        Some(value) => object[part] = value.clone(),
        None => drop(object.as_object_mut().map(|root| root.remove(part))),
    }
}

/// `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Replaces `metadata.finalizers`.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[&str]) {
    let metadata = metadata_mut(object);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), finalizers.iter().copied().collect());
    }
}

/// Whether two objects are the same but for `metadata.managedFields` and `metadata.resourceVersion`: then a
/// write changes nothing.
pub(crate) fn is_same_essence(a: &Value, b: &Value) -> bool {
    equal_without(a, b, &["metadata"])
        && equal_without(&a["metadata"], &b["metadata"], &["managedFields", "resourceVersion"])
}

/// Whether two values are the same but for some fields.
pub(crate) fn equal_without(a: &Value, b: &Value, beside: &[&str]) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    let counts = |(field, _): &(&String, &Value)| !beside.contains(&field.as_str());
    a.iter().filter(counts).eq(b.iter().filter(counts))
}

/// The items of a list at a path, or none.
pub(crate) fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}
