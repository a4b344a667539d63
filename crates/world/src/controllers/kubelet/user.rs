//! Whether the kubelet starts a container under the user that it would have (`runAsNonRoot`).

use serde_json::Value;
use tiphys_value::ObjectExt;

use crate::behaviour::known_image;

/// Why a container is not started under its user, in the kubelet's words.
pub(super) fn refusal(pod: &Value, container: &Value) -> Option<String> {
    let setting = |key: &str| {
        let own = container.at(&["securityContext", key]).filter(|value| !value.is_null());
        own.or_else(|| pod.at(&["spec", "securityContext", key]).filter(|value| !value.is_null()))
    };
    if setting("runAsNonRoot").and_then(Value::as_bool) != Some(true) {
        return None;
    }
    let name = container.str_at(&["name"]).unwrap_or_default();
    let whose = format!("(pod: \"{}_{}({})\", container: {name})", pod.name(), pod.namespace(), pod.uid());
    match setting("runAsUser").and_then(Value::as_i64) {
        Some(0) => Some(format!("container's runAsUser breaks non-root policy {whose}")),
        Some(_) => None,
        None => {
            let image = container.str_at(&["image"]).unwrap_or_default();
            let is_root = known_image(image).is_some_and(|known| known.root);
            is_root.then(|| format!("container has runAsNonRoot and image will run as root {whose}"))
        }
    }
}
