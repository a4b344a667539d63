//! Setting fields of objects that are missing.

use serde_json::{Map, Value};

pub(super) type Object = Map<String, Value>;

/// Sets a field that is missing.
pub(super) fn set(object: &mut Object, key: &str, value: impl Into<Value>) {
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key.to_owned(), value.into());
    }
}

/// Sets a text field that is missing or empty.
pub(super) fn set_text(object: &mut Object, key: &str, value: &str) {
    if object.get(key).and_then(Value::as_str).is_none_or(str::is_empty) {
        object.insert(key.to_owned(), value.into());
    }
}

/// The object in a field, if there is one.
pub(super) fn child<'a>(object: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    object.get_mut(key)?.as_object_mut()
}

/// The object in a field, made if there is none.
pub(super) fn object_or_new<'a>(object: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    set(object, key, Object::new());
    child(object, key)
}

/// The objects in a list.
pub(super) fn each<'a>(object: &'a mut Object, key: &str) -> impl Iterator<Item = &'a mut Object> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// A text field, empty if it is missing.
pub(super) fn text<'a>(object: &'a Object, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}
