//! Reading JSON bodies, with the keys that occur twice.

use std::{collections::HashSet, fmt};

use serde::de::{DeserializeSeed, MapAccess, SeqAccess};
use tiphys_value::{Map, Reading, Value, ValueReader};

/// A value and the paths of keys that its text has twice.
pub(super) fn parse(bytes: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut duplicates = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let node = Node { path: Path::Root, duplicates: &mut duplicates };
    let value = Reading(node).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, duplicates))
}

/// Where a value stands. It is written out only if a key occurs twice.
enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, key) => f.write_str(key),
            Self::Key(above, key) => write!(f, "{above}.{key}"),
            Self::Index(above, index) => write!(f, "{above}[{index}]"),
        }
    }
}

struct Node<'a> {
    path: Path<'a>,
    duplicates: &'a mut Vec<String>,
}

impl<'de> ValueReader<'de> for Node<'_> {
    fn list<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = Path::Index(&self.path, list.len());
            match items.next_element_seed(Reading(Node { path, duplicates: &mut *self.duplicates }))? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        let mut told: HashSet<String> = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = Path::Key(&self.path, &key);
            if map.contains_key(&key) && told.insert(key.clone()) {
                self.duplicates.push(path.to_string());
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
        let (_, duplicates) =
            parse(br#"{"a": {"b": 1, "b": 2, "b": 3, "c": [[{"d": 1, "d": 2}]]}}"#).unwrap();
        assert_eq!(duplicates, ["a.b", "a.c[0][0].d"]);
    }

    #[test]
    fn refuses_depth_and_trailing_text() {
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
        assert!(parse(b"{} x").is_err());
    }
}
