//! JSON patch, merge patch and strategic merge patch on values.

mod json_patch;
mod strategic;

pub(crate) use json_patch::json_patch;
pub(crate) use strategic::strategic_merge;
use tiphys_value::{Map, Value};

/// Why a patch cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatchFault {
    /// It is no patch.
    Malformed(String),
    /// It does not fit the object.
    Inapplicable(String),
}

/// RFC 7386: null removes, objects merge, everything else replaces. Bodies are as deep as the JSON
/// parser's limit at most.
pub(crate) fn merge_patch(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge_patch(fields.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}
