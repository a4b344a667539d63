//! What is read of an event: only the fields that name a repository. Bodies are large and come from anybody,
//! so that the rest is passed over and never kept.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use tiphys_value::{Budget, Map, Value};

/// The fields that senders name repositories, packages and kinds of events by, at any depth.
const KEPT: [&str; 26] = [
    "action",
    "clone",
    "clone_url",
    "container_metadata",
    "event_name",
    "git_http_url",
    "git_ssh_url",
    "href",
    "html",
    "html_url",
    "links",
    "login",
    "name",
    "object_kind",
    "owner",
    "package",
    "package_type",
    "package_version",
    "project",
    "remoteUrl",
    "repository",
    "resource",
    "ssh_url",
    "tag",
    "test",
    "web_url",
];
/// No field stands deeper.
const MAX_DEPTH: usize = 8;
/// What the fields of one event take in memory, in bytes: addresses of one repository.
const MAX_BYTES: u64 = 1 << 20;

/// The fields of an event; `None` if it is no JSON object, or holds too much under their names.
pub(super) fn read(body: &[u8]) -> Option<Value> {
    let budget = Budget::new(MAX_BYTES);
    let mut reader = serde_json::Deserializer::from_slice(body);
    let is_root = Cell::new(true);
    let event = Fields { budget: &budget, depth: 0, is_root: &is_root }.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(event)
}

#[derive(Clone, Copy)]
struct Fields<'b> {
    budget: &'b Budget,
    depth: usize,
    /// Whether the outermost value is still to come, which must be an object.
    is_root: &'b Cell<bool>,
}

impl Fields<'_> {
    fn below(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn take<E: serde::de::Error>(self, bytes: usize) -> Result<(), E> {
        if self.is_root.get() {
            return Err(E::custom("an event is an object"));
        }
        self.budget.take(bytes as u64).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.take(0).map(|()| Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.take(0).map(|()| value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.take(0).map(|()| value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.take(0).map(|()| value.into())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.take(value.len()).map(|()| value.into())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.take(0).map(|()| Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        const ITEM: usize = 64;
        self.take(ITEM)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.below())? {
            self.take(ITEM)?;
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        const ENTRY: usize = 640;
        self.is_root.set(false);
        if self.depth > MAX_DEPTH {
            return Err(A::Error::custom("it is nested too deeply"));
        }
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if KEPT.contains(&key.as_str()) {
                self.take(ENTRY)?;
                map.insert(key, entries.next_value_seed(self.below())?);
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    #[test]
    fn keeps_what_names_a_repository() {
        let body = json!({"commits": [{"id": 1}], "repository": {"id": 7, "html_url": "https://a/b", "links": {"clone": [{"href": "x", "name": "http"}]}}});
        let kept = json!({"repository": {"html_url": "https://a/b", "links": {"clone": [{"href": "x", "name": "http"}]}}});
        assert_eq!(read(body.to_string().as_bytes()), Some(kept));
    }

    #[test]
    fn passes_over_what_is_large_and_refuses_what_hides_behind_the_names() {
        let commits = format!("[{}1]", "{\"a\":1},".repeat(200_000));
        let large = format!("{{\"commits\": {commits}, \"repository\": {{\"html_url\": \"https://a/b\"}}}}");
        assert_eq!(read(large.as_bytes()), Some(json!({"repository": {"html_url": "https://a/b"}})));
        let hidden = format!("{{\"repository\": {{\"links\": [{}1]}}}}", "{\"name\":1},".repeat(200_000));
        assert_eq!(read(hidden.as_bytes()), None);
        assert_eq!(read(commits.as_bytes()), None, "an event is an object");
        assert_eq!(read(b"{} x"), None);
        let deep = format!("{}1{}", "{\"links\":".repeat(100), "}".repeat(100));
        assert_eq!(read(deep.as_bytes()), None);
    }
}
