//! JSON patch (RFC 6902) with the corner cases of the library that the API server uses: a missing
//! parent fails, negative list positions are refused, `test` takes a missing value for null,
//! `replace` adds a key that an object does not have. (The API server answers every operation that
//! does not apply with one generic text.)

use serde_json::Value;

/// How many operations a patch may have.
const MAX_OPERATIONS: usize = 10_000;
/// How many bytes of JSON the copies of one patch may add up to: the API server's limit.
const MAX_COPIED: u64 = 3 * 1024 * 1024;
/// How deep what a patch makes may be nested; deeper values do not fit on a stack.
const MAX_DEPTH: usize = 1000;

/// Why a JSON patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    /// The body is no list of operations.
    #[error("error decoding patch: {0}")]
    Malformed(String),
    /// More operations than allowed.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooMany(usize),
    /// Copies of more than is allowed.
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {0}, exceeding the limit {MAX_COPIED}"
    )]
    TooLarge(u64),
    /// What is made is nested too deeply.
    #[error(
        "{op} operation does not apply: {path} would be nested deeper than {MAX_DEPTH}, a limit of Tiphys"
    )]
    TooDeep {
        /// Operation.
        op: String,
        /// JSON pointer, or its beginning.
        path: String,
    },
    /// A path that is not there.
    #[error("{op} operation does not apply: doc is missing {what}: {path}: missing value")]
    Missing {
        /// Operation.
        op: String,
        /// `path`, `key` or `from path`.
        what: &'static str,
        /// JSON pointer.
        path: String,
    },
    /// A list position that is not there.
    #[error(
        "{op} operation does not apply: error in {op} for path: '{path}': Unable to access invalid index: {index}: invalid index referenced"
    )]
    Index {
        /// Operation.
        op: String,
        /// JSON pointer.
        path: String,
        /// The position as written.
        index: String,
    },
    /// A `test` operation that failed.
    #[error("testing value {path} failed: test failed")]
    Test {
        /// JSON pointer.
        path: String,
    },
    /// An operation that does not exist.
    #[error("Unexpected kind: {0}")]
    Unknown(String),
}

/// The document with all operations applied in order.
///
/// # Errors
/// The first operation that does not apply.
pub fn json_patch(document: &Value, patch: &Value) -> Result<Value, JsonPatchError> {
    let operations = patch.as_array();
    let operations =
        operations.ok_or_else(|| JsonPatchError::Malformed("patch is no list of operations".into()))?;
    if operations.len() > MAX_OPERATIONS {
        return Err(JsonPatchError::TooMany(operations.len()));
    }
    let mut copied = 0;
    operations
        .iter()
        .try_fold(document.clone(), |document, operation| apply_operation(document, operation, &mut copied))
}

fn apply_operation(
    mut document: Value,
    operation: &Value,
    copied: &mut u64,
) -> Result<Value, JsonPatchError> {
    let text = |key: &str| operation[key].as_str().unwrap_or_default();
    let (op, path) = (text("op"), text("path"));
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match op {
        "add" => add(&mut document, op, path, value())?,
        "remove" => drop(remove(&mut document, op, path)?),
        "replace" => {
            let value = value();
            check_depth(op, path, &value)?;
            replace(&mut document, op, path, value)?;
        }
        "move" => {
            let moved = remove(&mut document, op, text("from"))?;
            add(&mut document, op, path, moved)?;
        }
        "copy" => {
            let found = find_or_null(&mut document, op, text("from"))?;
            *copied = copied.saturating_add(json_length(found));
            if *copied > MAX_COPIED {
                return Err(JsonPatchError::TooLarge(*copied));
            }
            let found = found.clone();
            add(&mut document, op, path, found)?;
        }
        "test" => {
            let found = document.pointer(path).cloned().unwrap_or(Value::Null);
            if found != value() {
                return Err(JsonPatchError::Test { path: path.to_owned() });
            }
        }
        other => return Err(JsonPatchError::Unknown(other.to_owned())),
    }
    Ok(document)
}

/// The bytes of a value as JSON, about.
fn json_length(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(number) => number.to_string().len() as u64,
        Value::String(text) => text.len() as u64 + 2,
        Value::Array(items) => 1 + items.iter().map(|item| json_length(item) + 1).sum::<u64>(),
        Value::Object(map) => {
            1 + map.iter().map(|(key, value)| key.len() as u64 + 4 + json_length(value)).sum::<u64>()
        }
    }
}

/// Fails if a value would be nested too deeply at a path.
fn check_depth(op: &str, path: &str, value: &Value) -> Result<(), JsonPatchError> {
    fn fits_budget(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left > 0 && items.iter().all(|item| fits_budget(item, left - 1)),
            Value::Object(map) => left > 0 && map.values().all(|value| fits_budget(value, left - 1)),
            _ => true,
        }
    }
    let left = MAX_DEPTH.checked_sub(path.matches('/').count());
    if left.is_some_and(|left| fits_budget(value, left)) {
        return Ok(());
    }
    let path = path.chars().take(200).collect();
    Err(JsonPatchError::TooDeep { op: op.to_owned(), path })
}

fn missing(op: &str, what: &'static str, path: &str) -> JsonPatchError {
    JsonPatchError::Missing { op: op.to_owned(), what, path: path.to_owned() }
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// The container that a path ends in, and the last step.
fn parent<'a>(
    document: &'a mut Value,
    op: &str,
    path: &str,
) -> Result<(&'a mut Value, String), JsonPatchError> {
    let (before, last) = path.rsplit_once('/').ok_or_else(|| missing(op, "path", path))?;
    let container = document.pointer_mut(before).filter(|found| found.is_object() || found.is_array());
    container.map(|found| (found, unescape(last))).ok_or_else(|| missing(op, "path", path))
}

fn position(op: &str, path: &str, token: &str, limit: usize) -> Result<usize, JsonPatchError> {
    let index =
        || JsonPatchError::Index { op: op.to_owned(), path: path.to_owned(), index: token.to_owned() };
    token.parse().ok().filter(|at| *at < limit).ok_or_else(index)
}

fn add(document: &mut Value, op: &str, path: &str, value: Value) -> Result<(), JsonPatchError> {
    check_depth(op, path, &value)?;
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    let (container, last) = parent(document, op, path)?;
    match container {
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let at = position(op, path, &last, items.len() + 1)?;
            items.insert(at, value);
        }
        Value::Object(map) => drop(map.insert(last, value)),
        _ => return Err(missing(op, "path", path)),
    }
    Ok(())
}

/// Replaces a value. In an object the key may be missing, as the API server's library has it.
fn replace(document: &mut Value, op: &str, path: &str, value: Value) -> Result<(), JsonPatchError> {
    if !path.is_empty()
        && let (Value::Object(map), last) = parent(document, op, path)?
    {
        map.insert(last, value);
        return Ok(());
    }
    *find(document, op, path)? = value;
    Ok(())
}

fn remove(document: &mut Value, op: &str, path: &str) -> Result<Value, JsonPatchError> {
    let (container, last) = parent(document, op, path)?;
    match container {
        Value::Array(items) => {
            let at = position(op, path, &last, items.len())?;
            Ok(items.remove(at))
        }
        Value::Object(map) => map.remove(&last).ok_or_else(|| missing(op, "key", path)),
        _ => Err(missing(op, "path", path)),
    }
}

/// What is copied; a field that an object lacks is taken for `null`, as the API server does.
fn find_or_null<'a>(document: &'a mut Value, op: &str, path: &str) -> Result<&'a Value, JsonPatchError> {
    const NULL: &Value = &Value::Null;
    if path.is_empty() {
        return Ok(document);
    }
    match parent(document, op, path)? {
        (Value::Object(map), last) => Ok(map.get(&last).unwrap_or(NULL)),
        (Value::Array(items), last) => {
            let at = position(op, path, &last, items.len())?;
            Ok(&items[at])
        }
        _ => Err(missing(op, "key", path)),
    }
}

fn find<'a>(document: &'a mut Value, op: &str, path: &str) -> Result<&'a mut Value, JsonPatchError> {
    if path.is_empty() {
        return Ok(document);
    }
    let (container, last) = parent(document, op, path)?;
    match container {
        Value::Array(items) => {
            let at = position(op, path, &last, items.len())?;
            Ok(&mut items[at])
        }
        Value::Object(map) => map.get_mut(&last).ok_or_else(|| missing(op, "key", path)),
        _ => Err(missing(op, "path", path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn applies_all_operations() {
        let document = json!({"a": {"b/c": 1}, "l": [1, 2]});
        let patch = json!([
            {"op": "test", "path": "/a/b~1c", "value": 1},
            {"op": "add", "path": "/l/1", "value": 9},
            {"op": "add", "path": "/l/-", "value": 3},
            {"op": "remove", "path": "/l/0"},
            {"op": "replace", "path": "/a/b~1c", "value": 2},
            {"op": "copy", "from": "/a/b~1c", "path": "/x"},
            {"op": "move", "from": "/l", "path": "/a/l"},
            {"op": "copy", "from": "/a/none", "path": "/y"},
        ]);
        let expected = json!({"a": {"b/c": 2, "l": [9, 2, 3]}, "x": 2, "y": null});
        assert_eq!(json_patch(&document, &patch), Ok(expected));
    }

    #[test]
    fn copies_are_bounded_as_in_the_api_server() {
        let copies = |count: usize| -> Value {
            (0..count)
                .map(|at| json!({"op": "copy", "from": "/data", "path": format!("/data/a{at}")}))
                .collect()
        };
        let document = json!({"data": {"k": "x".repeat(100)}});
        let error = json_patch(&document, &copies(40)).unwrap_err();
        assert!(
            matches!(error, JsonPatchError::TooLarge(size) if size > 3 << 20 && size < 8 << 20),
            "{error}"
        );
        assert!(error.to_string().contains("exceeding the limit 3145728"), "{error}");
        assert!(json_patch(&document, &copies(10)).is_ok());
    }

    #[test]
    fn what_is_nested_too_deeply_is_refused() {
        let mut operations = Vec::new();
        for at in 0..50 {
            let inner = "{\"a\":".repeat(100) + "1" + &"}".repeat(100);
            let inner: Value = serde_json::from_str(&inner).unwrap();
            operations.push(json!({"op": "add", "path": "/a".repeat(100 * at) + "/a", "value": inner}));
        }
        let error = json_patch(&json!({}), &operations.into()).unwrap_err();
        assert!(matches!(error, JsonPatchError::TooDeep { .. }), "{error}");
        let deep: Value = serde_json::from_str(&("[".repeat(100) + &"]".repeat(100))).unwrap();
        let moves: Vec<Value> = (0..30)
            .flat_map(|_| {
                let inner = "/0".repeat(100);
                [
                    json!({"op": "add", "path": "/b", "value": deep}),
                    json!({"op": "move", "from": "/a", "path": format!("/b{}", &inner[2..])}),
                    json!({"op": "move", "from": "/b", "path": "/a"}),
                ]
            })
            .collect();
        let error = json_patch(&json!({"a": 1}), &moves.into()).unwrap_err();
        assert!(matches!(error, JsonPatchError::TooDeep { .. }), "{error}");
    }

    #[test]
    fn names_what_is_missing() {
        let document = json!({"a": []});
        for (operation, expected) in [
            (json!({"op": "replace", "path": "/x/y", "value": 1}), "doc is missing path: /x/y"),
            (json!({"op": "remove", "path": "/x/y"}), "doc is missing path: /x/y"),
            (json!({"op": "add", "path": "/a/5", "value": 1}), "invalid index: 5"),
            (json!({"op": "test", "path": "/a", "value": 1}), "testing value /a failed"),
            (json!({"op": "nope", "path": "/a"}), "Unexpected kind: nope"),
        ] {
            let error = json_patch(&document, &json!([operation])).expect_err("fails").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
