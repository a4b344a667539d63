//! The Secrets that operators make of objects.

use tiphys_value::{ObjectExt, Value};

/// Words in objects whose Secrets a controller copies into other namespaces.
pub(crate) const COPIERS: [&str; 3] = ["reflector", "replicat", "kubed"];

/// The name of the Secret that is made of an object, if one is.
pub(crate) fn made_secret(object: &Value) -> Option<&str> {
    match object.kind() {
        "ExternalSecret" => object.str_at(&["spec", "target", "name"]).or(Some(object.name())),
        "SealedSecret" | "OnePasswordItem" => Some(object.name()),
        "Certificate" => object.str_at(&["spec", "secretName"]),
        _ => None,
    }
}
