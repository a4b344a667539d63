//! Reading JSON bodies, with the keys that occur twice.

use serde::de::{DeserializeSeed, MapAccess, SeqAccess};
use tiphys_value::{Map, Read, Reading, Value};

/// A value and the paths of keys that its text has twice.
pub(super) fn parse(bytes: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut duplicates = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let node = Node { path: String::new(), duplicates: &mut duplicates };
    let value = Reading(node).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, duplicates))
}

struct Node<'a> {
    path: String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> Read<'de> for Node<'_> {
    fn list<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, list.len());
            match items.next_element_seed(Reading(Node { path, duplicates: &mut *self.duplicates }))? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            if map.contains_key(&key) && !self.duplicates.contains(&path) {
                self.duplicates.push(path.clone());
            }
            let value = entries.next_value_seed(Reading(Node { path, duplicates: &mut *self.duplicates }))?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn finds_keys_that_occur_twice() {
        let (value, duplicates) = parse(br#"{"a": 1, "b": [{"c": 1, "c": 2}], "a": 3}"#).unwrap();
        assert_eq!(value, json!({"a": 3, "b": [{"c": 2}]}));
        assert_eq!(duplicates, ["b[0].c", "a"]);
    }

    #[test]
    fn refuses_depth_and_trailing_text() {
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
        assert!(parse(b"{} x").is_err());
    }
}
