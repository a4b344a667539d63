//! Where two values differ, and reading, setting and deleting by path.

use serde_json::Value;
use tiphys_value::{FieldPath, Segment};

/// Differences below this depth are reported at it.
const MAX_DEPTH: usize = 100;

/// The paths at which two values differ, in order of keys; the smallest parts that differ are named.
pub fn difference(a: &Value, b: &Value) -> Vec<FieldPath> {
    let mut out = Vec::new();
    collect(Some(a), Some(b), &FieldPath::default(), &mut out);
    out
}

fn collect(a: Option<&Value>, b: Option<&Value>, at: &FieldPath, out: &mut Vec<FieldPath>) {
    if a == b {
        return;
    }
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) if at.0.len() < MAX_DEPTH => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                collect(a.get(key), b.get(key), &at.key(key), out);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if at.0.len() < MAX_DEPTH => {
            for index in 0..a.len().max(b.len()) {
                collect(a.get(index), b.get(index), &at.index(index), out);
            }
        }
        _ => out.push(at.clone()),
    }
}

/// Reads a JSON pointer (RFC 6901); digits lead into arrays where `root` has one, and `-1` to the last item,
/// as in the library that Argo CD uses (evanphx/json-patch).
pub(crate) fn pointer(text: &str, root: &Value) -> Option<FieldPath> {
    let rest = text.strip_prefix('/')?;
    let mut path = FieldPath::default();
    let mut at = Some(root);
    for part in rest.split('/') {
        let part = part.replace("~1", "/").replace("~0", "~");
        let index = |list: &Vec<Value>| match part.strip_prefix('-').map(str::parse::<usize>) {
            Some(Ok(back)) if back > 0 => list.len().checked_sub(back),
            _ => part.parse().ok(),
        };
        match (at, at.and_then(Value::as_array).and_then(index)) {
            (Some(Value::Array(list)), Some(index)) => {
                at = list.get(index);
                path = path.index(index);
            }
            _ => {
                at = at.and_then(|value| value.get(&part));
                path = path.key(part);
            }
        }
    }
    Some(path)
}

fn child_mut<'a>(value: &'a mut Value, segment: &Segment) -> Option<&'a mut Value> {
    match segment {
        Segment::Key(key) => value.get_mut(key),
        Segment::Index(index) => value.get_mut(index),
    }
}

/// Deletes what a path leads to, if it is there.
pub(crate) fn delete(root: &mut Value, path: &FieldPath) {
    let Some((last, parents)) = path.0.split_last() else { return };
    let parent = parents.iter().try_fold(root, |value, segment| child_mut(value, segment));
    match (parent, last) {
        (Some(Value::Object(map)), Segment::Key(key)) => {
            map.remove(key);
        }
        (Some(Value::Array(list)), Segment::Index(index)) if *index < list.len() => {
            list.remove(*index);
        }
        _ => {}
    }
}

/// Sets what a path leads to; objects on the way are made, array items are not.
pub(crate) fn set(root: &mut Value, path: &FieldPath, new: Value) {
    let Some((last, parents)) = path.0.split_last() else { return };
    let mut at = root;
    for segment in parents {
        let next = match (segment, at) {
            (Segment::Key(key), Value::Object(map)) => {
                Some(map.entry(key.clone()).or_insert_with(|| Value::Object(serde_json::Map::new())))
            }
            (Segment::Index(index), Value::Array(list)) => list.get_mut(*index),
            _ => None,
        };
        let Some(next) = next else { return };
        at = next;
    }
    match (last, at) {
        (Segment::Key(key), Value::Object(map)) => {
            map.insert(key.clone(), new);
        }
        (Segment::Index(index), Value::Array(list)) if *index < list.len() => list[*index] = new,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointers_count_from_the_end_where_they_are_negative() {
        let root = json!({"list": [1, 2, 3], "map": {"-1": "x"}});
        let read = |text: &str| pointer(text, &root).and_then(|path| path.get(&root).cloned());
        assert_eq!(read("/list/-1"), Some(json!(3)));
        assert_eq!(read("/list/-3"), Some(json!(1)));
        assert_eq!((read("/list/-4"), read("/list/-0"), read("/list/-")), (None, None, None));
        assert_eq!(read("/map/-1"), Some(json!("x")));
    }
}
