//! An object while an action changes it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tiphys_model::Timestamp;
use tiphys_value::ObjectExt;

/// An object while an action changes it.
pub(super) struct Edit<'a> {
    /// The object as it becomes.
    pub object: Value,
    /// What the user gave.
    pub params: &'a BTreeMap<String, String>,
    /// The time.
    pub now: Timestamp,
    /// Objects to create; the object is left as it is if there are any.
    pub created: Vec<Value>,
}

impl Edit<'_> {
    /// Sets a field, with the maps on the way to it.
    pub(super) fn set(&mut self, path: &[&str], value: impl Into<Value>) {
        set_field(&mut self.object, path, value.into());
    }

    /// Takes a field away.
    pub(super) fn unset(&mut self, path: &[&str]) {
        let Some((last, way)) = path.split_last() else { return };
        let parent = way.iter().try_fold(&mut self.object, |object, key| object.get_mut(*key));
        if let Some(map) = parent.and_then(Value::as_object_mut) {
            map.remove(*last);
        }
    }

    /// Makes a switch that is on `false`. One that is not set means the same, and stays unset.
    pub(super) fn switch_off(&mut self, path: &[&str]) {
        if is_on(&self.object, path) {
            self.set(path, false);
        }
    }

    /// Sets an annotation.
    pub(super) fn annotate(&mut self, key: &str, value: impl Into<String>) {
        self.set(&["metadata", "annotations", key], value.into());
    }

    /// The time, as Kubernetes writes it.
    pub(super) fn time(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// A parameter that is a number of pods.
    pub(super) fn replicas(&self) -> Result<u32, String> {
        let text = self.params.get("replicas").ok_or("the parameter replicas is missing")?;
        let number = text.trim().parse();
        number.map_err(|_| format!("the parameter replicas is {text:?}, which is no number of pods"))
    }

    /// A reference to the object as the owner of another one.
    pub(super) fn owner(&self) -> Value {
        let object = &self.object;
        serde_json::json!({"apiVersion": object.api_version(), "kind": object.kind(), "name": object.name(),
            "uid": object.uid()})
    }
}

/// Sets a field of an object, with the maps on the way to it.
pub(super) fn set_field(object: &mut Value, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *object = value;
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    if let Some(map) = object.as_object_mut() {
        set_field(map.entry(*first).or_insert(Value::Null), rest, value);
    }
}

/// Whether a switch of an object is on.
pub(super) fn is_on(object: &Value, path: &[&str]) -> bool {
    object.at(path).and_then(Value::as_bool) == Some(true)
}

/// The items of a list of an object; none if there is no list.
pub(super) fn items<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    object.at(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
