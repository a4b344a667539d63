//! Typed decoding of built-in kinds.

use serde_json::Value;

use crate::TypeRef;

/// What decoding found beside the object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Paths of fields that the type does not have, in document order of sorted keys, such as `spec.foo`.
    pub unknown_fields: Vec<String>,
}

/// Why a value does not fit its type, in the words of Go's JSON decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(pub String);

/// Brings a value into the form that the API server's typed decoder and encoder give it.
pub fn decode(ty: TypeRef<'_>, value: &mut Value) -> Result<Decoded, DecodeError> {
    let _ = (ty, value);
    Ok(Decoded::default())
}

/// Removes fields that the type does not have; returns their paths.
pub fn prune_unknown(ty: TypeRef<'_>, value: &mut Value) -> Vec<String> {
    let _ = (ty, value);
    Vec::new()
}
