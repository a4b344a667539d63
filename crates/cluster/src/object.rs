//! Objects as an API server sends them, however deep they are.
//!
//! An API server takes objects of 10,000 levels, and who may create any object with a field that keeps what
//! it does not know (`helm.valuesObject` of an Application is one) may create such an object. It must not
//! keep the others of its kind from being read.

use std::cell::Cell;

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess},
};
use tiphys_value::{Map, ObjectExt as _, Reading, Value, ValueReader, json};

/// How deep an object is read; the JSON parser itself gives up 128 levels below the list around it.
const DEPTH: usize = 110;

/// An object. Of one that is deeper than [`DEPTH`] only what names it is kept.
#[derive(Clone)]
pub(crate) struct Object(pub(crate) Value);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let is_cut = Cell::new(false);
        let value = Reading(Node { depth: DEPTH, is_cut: &is_cut }).deserialize(deserializer)?;
        Ok(Self(if is_cut.get() { identity_only(value) } else { value }))
    }
}

/// What is left of an object that was not read to its end.
fn identity_only(mut object: Value) -> Value {
    tracing::warn!(
        kind = object.kind(),
        namespace = object.namespace(),
        name = object.name(),
        "the object is nested deeper than {DEPTH} levels: its content is not read"
    );
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    match object {
        Value::Object(mut map) => {
            map.retain(|key, _| matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
            Value::Object(map)
        }
        _ => json!({}),
    }
}

#[derive(Clone, Copy)]
struct Node<'a> {
    depth: usize,
    is_cut: &'a Cell<bool>,
}

impl<'a> Node<'a> {
    fn child(self) -> Option<Node<'a>> {
        let depth = self.depth.checked_sub(1);
        self.is_cut.set(self.is_cut.get() || depth.is_none());
        depth.map(|depth| Node { depth, ..self })
    }
}

impl<'de> ValueReader<'de> for Node<'_> {
    fn list<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let Some(below) = self.child() else {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        };
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Reading(below))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let Some(below) = self.child() else {
            while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        };
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            map.insert(key, entries.next_value_seed(Reading(below))?);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        let (open, close) = (r#"{"a":"#.repeat(levels), "}".repeat(levels));
        format!(
            r#"{{"kind": "A", "metadata": {{"name": "a", "managedFields": [{{"b": 1}}]}}, "spec": {open}[1, -2, 0.5, null, true, "c"]{close}}}"#
        )
    }

    #[test]
    fn one_deep_object_of_a_list_leaves_the_others_readable() {
        let text = format!("[{}, {}, {}]", nested(3), nested(9_000), nested(100));
        let objects: Vec<Object> = serde_json::from_str(&text).unwrap();
        let read: Vec<Value> =
            [nested(3), nested(100)].iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        assert_eq!([&objects[0].0, &objects[2].0], [&read[0], &read[1]]);
        assert_eq!(objects[1].0, json!({"kind": "A", "metadata": {"name": "a"}}));
    }

    #[test]
    fn a_deep_object_of_a_watch_is_an_event_like_others() {
        let text = format!(r#"{{"type": "MODIFIED", "object": {}}}"#, nested(9_000));
        match serde_json::from_str(&text).unwrap() {
            kube::core::WatchEvent::Modified(Object(object)) => assert_eq!(object.name(), "a"),
            _ => panic!("not the event that was sent"),
        }
    }
}
