//! What the API server makes of a target by itself, before anything else is known: fields that their authors left
//! empty have their defaults.

use serde_json::Value;
use tiphys_schema::{TypeRef, apply_defaults, decode};
use tiphys_value::ObjectExt;

use crate::overlay::means_absent;

/// A target of a built-in kind as it would be stored; `None` for one that would be refused.
pub(crate) fn settled(target: &Value, ty: TypeRef<'_>) -> Option<Value> {
    let mut settled = target.clone();
    decode(ty, &mut settled).ok()?;
    apply_defaults(&target.gvk(), &mut settled);
    Some(settled)
}

/// Gives fields that are set to a value which says no more than their absence the one that is stored: `scheme: ""` of a
/// probe means `HTTP`. Nulls are left alone; see [`crate::ownership::remove_abandoned`].
pub(crate) fn fill_zeros(target: &mut Value, settled: &Value, ty: TypeRef<'_>) {
    match (target, settled) {
        (Value::Object(wanted), Value::Object(stored)) => {
            for (key, value) in wanted {
                let Some(stored) = stored.get(key) else { continue };
                if !value.is_null() && value != stored && means_absent(value, Some(ty), key) {
                    value.clone_from(stored);
                } else if let Some(field) = ty.field(key) {
                    fill_zeros(value, stored, field);
                }
            }
        }
        (Value::Array(wanted), Value::Array(stored)) if wanted.len() == stored.len() => {
            let Some(items) = ty.items() else { return };
            wanted.iter_mut().zip(stored).for_each(|(item, stored)| fill_zeros(item, stored, items));
        }
        _ => {}
    }
}
