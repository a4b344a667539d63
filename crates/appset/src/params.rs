//! Sets of parameters: Go values, as templates tell their types apart (an entry that a `map[string]string`
//! lacks is an empty text, one that a `map[string]interface {}` lacks is no value).

use serde_json::Value as Json;
use tiphys_gocompat::unicode;
use tiphys_gotemplate::{ListType, Map, MapType, Numbers, Value, format};

use crate::Params;

/// Deeper trees are cut.
const MAX_DEPTH: usize = 64;

/// A set as Go's decoder of JSON makes it.
pub(crate) fn from_json(params: &Params) -> Map {
    params.iter().map(|(key, value)| (key.as_str(), value_of(value))).collect()
}

/// A value as Go's decoder of JSON makes it.
pub(crate) fn value_of(json: &Json) -> Value {
    Value::from_json(json, Numbers::Float64)
}

/// A `map[string]string`.
pub(crate) fn texts<K: AsRef<str>, V: Into<Value>>(pairs: impl IntoIterator<Item = (K, V)>) -> Map {
    let map = Map::with_type(MapType::String);
    pairs.into_iter().for_each(|(key, value)| map.insert(key.as_ref(), value));
    map
}

/// A tree as flat texts: keys joined by dots, items of lists by their number. Empty maps and lists vanish.
pub(crate) fn flatten(tree: &Map) -> Map {
    let out = Map::new();
    for entry in tree.entries().iter() {
        flatten_into(entry.key.to_string(), &entry.value, &out, 0);
    }
    out
}

fn flatten_into(key: String, value: &Value, out: &Map, depth: usize) {
    match value {
        Value::Map(map) if depth < MAX_DEPTH => {
            for entry in map.entries().iter() {
                flatten_into(format!("{key}.{}", entry.key), &entry.value, out, depth + 1);
            }
        }
        Value::List(list) if list.list_type() == ListType::Any && depth < MAX_DEPTH => {
            for (index, child) in list.items().iter().enumerate() {
                flatten_into(format!("{key}.{index}"), child, out, depth + 1);
            }
        }
        scalar => out.insert(key, text_of(scalar)),
    }
}

/// A value as `%v` prints it.
pub(crate) fn text_of(value: &Value) -> String {
    format::sprint(std::slice::from_ref(value))
}

/// A copy that shares nothing with the original.
pub(crate) fn copy(map: &Map) -> Map {
    copy_below(map, 0)
}

fn copy_below(map: &Map, depth: usize) -> Map {
    let out = Map::with_type(map.map_type());
    for entry in map.entries().iter() {
        let value = match &entry.value {
            Value::Map(inner) if depth < MAX_DEPTH => copy_below(inner, depth + 1).into(),
            other => other.clone(),
        };
        out.insert(entry.key.clone(), value);
    }
    out
}

/// Lays one tree over another; maps are merged, all else is replaced. What is merged holds any values if one
/// side does.
pub(crate) fn overlay(base: &Map, over: &Map) {
    overlay_below(base, over, 0);
}

fn overlay_below(base: &Map, over: &Map, depth: usize) {
    for entry in over.entries().iter() {
        let value = match (base.get(&entry.key), &entry.value) {
            (Some(Value::Map(have)), Value::Map(new)) if depth < MAX_DEPTH => {
                let kind = if new.map_type() == have.map_type() { have.map_type() } else { MapType::Any };
                let merged = Map::from_entries(kind, have.snapshot());
                overlay_below(&merged, new, depth + 1);
                merged.into()
            }
            (_, value) => value.clone(),
        };
        base.insert(entry.key.clone(), value);
    }
}

/// A text as a DNS name: lower case, other characters as dashes, at most 253 of them.
pub(crate) fn normalize(text: &str) -> String {
    let mapped: String = text
        .chars()
        .map(unicode::to_lower)
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.') { c } else { '-' })
        .take(253)
        .collect();
    mapped.trim_matches(['-', '.']).to_owned()
}

/// A text as part of an address: lower case letters, digits, underscores and single dashes. What is longer
/// than `limit` ends before a dash if it may (`at_words`), and else where it has to.
pub(crate) fn slugify(text: &str, limit: i64, at_words: bool) -> Result<String, String> {
    let mut text = normalize(text);
    let length = text.len() as i64;
    if !at_words && length >= limit {
        let limit = usize::try_from(limit).map_err(|_| format!("slice bounds out of range [:{limit}]"))?;
        text.truncate(limit);
    }
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '-' | '.' if out.ends_with('-') => {}
            '-' | '.' => out.push('-'),
            other => out.push(other),
        }
    }
    let out = out.trim_matches('-');
    let limit = usize::try_from(limit).unwrap_or_default();
    if limit == 0 || !at_words || out.len() <= limit {
        return Ok(out.to_owned());
    }
    let end = out.as_bytes()[..=limit].iter().rposition(|byte| *byte == b'-').unwrap_or(limit);
    Ok(out[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(json: Json) -> Map {
        from_json(json.as_object().expect("an object"))
    }

    #[test]
    fn trees_become_flat_texts_as_go_prints_them() {
        let flat =
            flatten(&set(json!({"a": {"b": [1, "x"], "c": {}}, "n": 1_000_000, "nil": null, "f": 0.5})));
        let shown: Vec<String> =
            flat.entries().iter().map(|entry| format!("{}={}", entry.key, text_of(&entry.value))).collect();
        assert_eq!(shown, ["a.b.0=1", "a.b.1=x", "f=0.5", "n=1e+06", "nil=<nil>"]);
    }

    #[test]
    fn what_lies_above_wins_and_maps_are_merged() {
        let base = set(json!({"a": {"x": "1", "y": "1"}, "b": "1", "c": ["1"]}));
        overlay(&base, &set(json!({"a": {"y": "2"}, "b": null, "c": []})));
        assert_eq!(Value::from(base).to_json(), Ok(json!({"a": {"x": "1", "y": "2"}, "b": null, "c": []})));
    }

    #[test]
    fn slugs_end_at_words_unless_told_otherwise() {
        let long = "feature.some--thing_else-that-is-longer-than-fifty-characters-altogether";
        for (limit, at_words, expected) in [
            (50, true, "feature-some-thing_else-that-is-longer-than-fifty"),
            (10, true, "feature"),
            (10, false, "feature-so"),
            (3, true, "fea"),
            (0, true, "feature-some-thing-else-that-is-longer-than-fifty-characters-altogether"),
            (0, false, ""),
        ] {
            let expected = expected.replace('_', "-");
            assert_eq!(slugify(long, limit, at_words), Ok(expected), "{limit} {at_words}");
        }
        assert!(slugify("x", -1, false).is_err());
    }
}
