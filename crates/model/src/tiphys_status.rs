//! What Tiphys adds to the status of an Application, where the definition of Application is Argo CD's own:
//! that knows no field `tiphys`, and an API server drops what a definition does not know. It is kept in an
//! annotation then, and read as if it stood where it belongs.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use tiphys_value::ObjectExt;

use crate::{names, packed_lists};

/// The field of ours, in `status` and in `status.operationState`.
const FIELD: &str = "tiphys";

/// What an Application keeps beside Argo CD's fields, as the text of the annotation [`names::KEPT`]; `None`
/// if nothing.
pub fn annotation_text(app: &Value) -> Option<String> {
    let status = app.at(&["status", FIELD]);
    let operation = app.at(&["status", "operationState", FIELD]);
    if status.is_none() && operation.is_none() {
        return None;
    }
    // An operation that another one followed meanwhile takes what was its own along.
    let of = app.at(&["status", "operationState", "startedAt"]);
    Some(json!({"status": status, "operationState": operation, "startedAt": of}).to_string())
}

/// An Application with what its annotation keeps in the place where it belongs, unless something is there,
/// and with long lists as they were before they were packed (see [`crate::packed`]).
pub fn put_back(app: &Value) -> Cow<'_, Value> {
    packed_lists::unpack(with_annotation(app))
}

fn with_annotation(app: &Value) -> Cow<'_, Value> {
    let Some(Value::Object(mut kept)) =
        app.annotation(names::KEPT).and_then(|text| serde_json::from_str(text).ok())
    else {
        return Cow::Borrowed(app);
    };
    let mut whole = app.clone();
    let mut take = |field: &str| kept.remove(field).filter(|value| !value.is_null());
    let (status, operation, of) = (take("status"), take("operationState"), take("startedAt"));
    let put = |into: Option<&mut Map<String, Value>>, value: Option<Value>| {
        if let (Some(into), Some(value)) = (into, value) {
            into.entry(FIELD).or_insert(value);
        }
    };
    let is_same = app.at(&["status", "operationState", "startedAt"]) == of.as_ref();
    let state = whole.pointer_mut("/status/operationState").and_then(Value::as_object_mut);
    put(state, operation.filter(|_| is_same));
    put(whole.pointer_mut("/status").and_then(Value::as_object_mut), status);
    Cow::Owned(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app() -> Value {
        json!({"metadata": {"annotations": {"a": "b"}}, "status": {"tiphys": {"warnings": ["w"]},
            "operationState": {"startedAt": "2026-01-01T00:00:00Z", "tiphys": {"waits": [1]}}}})
    }

    /// As an API server stores it that knows no field of ours.
    fn pruned(mut app: Value) -> Value {
        app["metadata"]["annotations"][names::KEPT] = annotation_text(&app).unwrap().into();
        app["status"].as_object_mut().unwrap().remove("tiphys");
        app["status"]["operationState"].as_object_mut().unwrap().remove("tiphys");
        app
    }

    #[test]
    fn what_is_kept_comes_back() {
        let stored = pruned(app());
        assert_eq!(annotation_text(&stored), None);
        let whole = put_back(&stored);
        assert_eq!(whole["status"], app()["status"]);
        assert_eq!(put_back(&app()).as_ref(), &app());
    }

    #[test]
    fn of_an_operation_that_is_gone_nothing_comes_back() {
        let mut stored = pruned(app());
        stored["status"]["operationState"]["startedAt"] = "2026-01-02T00:00:00Z".into();
        assert_eq!(put_back(&stored).pointer("/status/operationState/tiphys"), None);
        stored["status"]["operationState"] = Value::Null;
        assert_eq!(put_back(&stored)["status"]["operationState"], Value::Null);
        stored["metadata"]["annotations"][names::KEPT] = "no JSON".into();
        assert_eq!(put_back(&stored).as_ref(), &stored);
    }
}
