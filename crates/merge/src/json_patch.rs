//! JSON patch (RFC 6902) with the corner cases of the library that the API server uses: a missing
//! parent fails, negative list positions are refused, `test` takes a missing value for null,
//! `replace` adds a key that an object does not have. (The API server answers every operation that
//! does not apply with one generic text.)

use serde_json::Value;

/// How many operations a patch may have.
const MAX_OPERATIONS: usize = 10_000;

/// Why a JSON patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    /// The body is no list of operations.
    #[error("error decoding patch: {0}")]
    Malformed(String),
    /// More operations than allowed.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooMany(usize),
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
    operations.iter().try_fold(document.clone(), one)
}

fn one(mut document: Value, operation: &Value) -> Result<Value, JsonPatchError> {
    let text = |key: &str| operation[key].as_str().unwrap_or_default();
    let (op, path) = (text("op"), text("path"));
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match op {
        "add" => add(&mut document, op, path, value())?,
        "remove" => drop(remove(&mut document, op, path)?),
        "replace" => replace(&mut document, op, path, value())?,
        "move" => {
            let moved = remove(&mut document, op, text("from"))?;
            add(&mut document, op, path, moved)?;
        }
        "copy" => {
            let copied = find_or_null(&mut document, op, text("from"))?;
            add(&mut document, op, path, copied)?;
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
fn find_or_null(document: &mut Value, op: &str, path: &str) -> Result<Value, JsonPatchError> {
    if !path.is_empty()
        && let (Value::Object(map), last) = parent(document, op, path)?
    {
        return Ok(map.get(&last).cloned().unwrap_or(Value::Null));
    }
    find(document, op, path).cloned()
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
