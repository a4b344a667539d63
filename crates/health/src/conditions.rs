//! `status.conditions`, as the Kubernetes API conventions lay them down.

use serde_json::Value;
use tiphys_value::ObjectExt;

/// One condition; absent fields are empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Condition {
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    /// Generation that the condition speaks of, if it says so.
    pub observed_generation: Option<i64>,
}

impl Condition {
    pub(crate) fn read(value: &Value) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            kind: text("type"),
            // Some controllers write a boolean where the conventions want a text.
            status: match value.get("status") {
                Some(Value::Bool(true)) => "True".to_owned(),
                Some(Value::Bool(false)) => "False".to_owned(),
                _ => text("status"),
            },
            reason: text("reason"),
            message: text("message"),
            observed_generation: value.get("observedGeneration").and_then(Value::as_i64),
        }
    }
}

/// The conditions of an object, in order.
pub(crate) fn list(object: &Value) -> Vec<Condition> {
    let list = object.at(&["status", "conditions"]).and_then(Value::as_array);
    list.map(|list| list.iter().map(Condition::read).collect()).unwrap_or_default()
}
