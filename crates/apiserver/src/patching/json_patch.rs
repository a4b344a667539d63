//! RFC 6902, with the texts of the library that the API server uses.

use tiphys_value::{ObjectExt, Value};

use super::PatchFault;

/// Carries out the operations in order; the target is undefined after a fault.
pub(crate) fn json_patch(target: &mut Value, operations: &Value) -> Result<(), PatchFault> {
    let Some(operations) = operations.as_array() else {
        let text = "json: cannot unmarshal object into Go value of type jsonpatch.Patch";
        return Err(PatchFault::Malformed(text.into()));
    };
    operations.iter().try_for_each(|operation| step(target, operation))
}

fn step(target: &mut Value, operation: &Value) -> Result<(), PatchFault> {
    let name = operation.str_at(&["op"]).unwrap_or_default();
    let path = operation.str_at(&["path"]).unwrap_or_default();
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match name {
        "add" => add(target, path, value()),
        "remove" => remove(target, path).map(drop),
        "replace" => {
            let slot = find(target, path).ok_or_else(|| missing("replace", path))?;
            *slot = value();
            Ok(())
        }
        "move" => {
            let from = operation.str_at(&["from"]).unwrap_or_default();
            let moved = remove(target, from)?;
            add(target, path, moved)
        }
        "copy" => {
            let from = operation.str_at(&["from"]).unwrap_or_default();
            let copied = find(target, from).ok_or_else(|| missing("copy", from))?.clone();
            add(target, path, copied)
        }
        "test" => match find(target, path) {
            Some(found) if *found == value() => Ok(()),
            None if value().is_null() => Ok(()),
            _ => Err(PatchFault::Inapplicable(format!("testing value {path} failed: test failed"))),
        },
        other => Err(PatchFault::Inapplicable(format!("Unexpected kind: {other}"))),
    }
}

fn missing(operation: &str, path: &str) -> PatchFault {
    let text = format!("{operation} operation does not apply: doc is missing key: {path}: missing value");
    PatchFault::Inapplicable(text)
}

fn find<'a>(target: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    target.pointer_mut(path)
}

fn split(path: &str) -> Option<(&str, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), PatchFault> {
    let Some((parent, last)) = split(path) else {
        *target = value;
        return Ok(());
    };
    match find(target, parent) {
        Some(Value::Object(map)) => {
            map.insert(last, value);
            Ok(())
        }
        Some(Value::Array(list)) => {
            let at = if last == "-" { Some(list.len()) } else { last.parse().ok().filter(|at| *at <= list.len()) };
            let at = at.ok_or_else(|| missing("add", path))?;
            list.insert(at, value);
            Ok(())
        }
        _ => Err(missing("add", path)),
    }
}

fn remove(target: &mut Value, path: &str) -> Result<Value, PatchFault> {
    let Some((parent, last)) = split(path) else { return Err(missing("remove", path)) };
    let removed = match find(target, parent) {
        Some(Value::Object(map)) => map.remove(&last),
        Some(Value::Array(list)) => {
            last.parse::<usize>().ok().filter(|at| *at < list.len()).map(|at| list.remove(at))
        }
        _ => None,
    };
    removed.ok_or_else(|| {
        PatchFault::Inapplicable(format!("remove operation does not apply: doc is missing key: {path}: missing value"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn every_operation() {
        let mut doc = json!({"a": [1, 2], "b": {"c/d": 1}});
        let ops = json!([
            {"op": "add", "path": "/a/-", "value": 3},
            {"op": "replace", "path": "/b/c~1d", "value": 2},
            {"op": "copy", "from": "/a/0", "path": "/x"},
            {"op": "move", "from": "/b", "path": "/y"},
            {"op": "test", "path": "/x", "value": 1},
            {"op": "remove", "path": "/a/1"}
        ]);
        json_patch(&mut doc, &ops).unwrap();
        assert_eq!(doc, json!({"a": [1, 3], "x": 1, "y": {"c/d": 2}}));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for op in [
            json!([{"op": "remove", "path": "/none"}]),
            json!([{"op": "add", "path": "/a/7", "value": 1}]),
            json!([{"op": "test", "path": "/a", "value": 1}]),
            json!({"op": "add"}),
        ] {
            assert!(json_patch(&mut json!({"a": []}), &op).is_err(), "{op}");
        }
    }
}
