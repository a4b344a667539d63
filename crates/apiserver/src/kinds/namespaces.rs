//! Namespaces.

use tiphys_value::{ObjectExt, Value, json};

use crate::meta::{self, items};

/// Namespaces that may not be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];
const NAME: &str = "kubernetes.io/metadata.name";

/// What every new namespace has.
pub(super) fn complete(namespace: &mut Value) {
    namespace["spec"] = json!({"finalizers": ["kubernetes"]});
    let name = namespace.name().to_owned();
    meta::label(namespace, NAME, &name);
}

/// An update changes neither the specification nor the label of the name.
pub(super) fn keep(namespace: &mut Value, current: &Value) {
    meta::keep_part(namespace, current, "spec");
    let name = namespace.name().to_owned();
    meta::label(namespace, NAME, &name);
}

/// Whether there is still something in it to be deleted.
pub(super) fn is_held(namespace: &Value) -> bool {
    items(namespace, "/spec/finalizers").next().is_some()
}

/// Why a namespace may not be deleted.
pub(super) fn undeletable(name: &str) -> Option<&'static str> {
    IMMORTAL.contains(&name).then_some("this namespace may not be deleted")
}
