//! The Secrets that operators make of objects.

use tiphys_value::{ObjectExt, Value};

/// The name of the Secret that is made of an object, if one is.
pub(crate) fn made_secret(object: &Value) -> Option<&str> {
    match object.kind() {
        "ExternalSecret" => object.str_at(&["spec", "target", "name"]).or(Some(object.name())),
        "SealedSecret" | "OnePasswordItem" => Some(object.name()),
        "Certificate" => object.str_at(&["spec", "secretName"]),
        _ => None,
    }
}
