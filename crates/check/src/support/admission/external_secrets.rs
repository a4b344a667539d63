//! What the webhook of External Secrets refuses (external-secrets, `externalsecret_validator.go`).

use tiphys_value::{ObjectExt, Value};

use super::refused_fields::Refusals;
use crate::support::{
    field_paths::keys,
    pods::{list, text},
};

pub(super) fn check(kind: &str, spec: &Value, found: &mut Refusals) {
    match kind {
        "ExternalSecret" => external_secret(spec, found),
        "SecretStore" | "ClusterSecretStore" => store(spec, found),
        _ => {}
    }
}

/// A store has one provider (external-secrets, `SecretStoreProvider`, `MinProperties` and `MaxProperties`).
fn store(spec: &Value, found: &mut Refusals) {
    let providers = spec.get("provider").and_then(Value::as_object).map_or(0, |map| map.keys().count());
    match providers {
        1 => {}
        0 => found.add(keys(&["spec"]), "spec.provider must have exactly one provider, and has none"),
        _ => found.add(keys(&["spec", "provider"]), "spec.provider must have at most 1 items"),
    }
}

fn external_secret(spec: &Value, found: &mut Refusals) {
    let (data, from) = (list(spec, "data"), list(spec, "dataFrom"));
    if data.is_empty() && from.is_empty() {
        found.add(keys(&["spec"]), "either data or dataFrom should be specified");
    }
    let policy = |field: &str| spec.str_at(&["target", field]).unwrap_or_default();
    if policy("deletionPolicy") == "Delete" && matches!(policy("creationPolicy"), "Merge" | "None") {
        let message = "deletionPolicy=Delete must not be used when the controller doesn't own the secret. Please set creationPolicy=Owner";
        found.add(keys(&["spec", "target", "deletionPolicy"]), message);
    }
    if policy("deletionPolicy") == "Merge" && policy("creationPolicy") == "None" {
        let message = "deletionPolicy=Merge must not be used with creationPolicy=None. There is no Secret to merge with";
        found.add(keys(&["spec", "target", "deletionPolicy"]), message);
    }
    for (at, one) in from.iter().enumerate() {
        let has = |field: &str| one.get(field).is_some_and(Value::is_object);
        let generates = one.at(&["sourceRef", "generatorRef"]).is_some();
        let place = keys(&["spec", "dataFrom"]).index(at);
        if has("extract") && has("find") {
            found.add(place, "extract and find cannot be set at the same time");
        } else if generates && (has("extract") || has("find")) {
            found.add(place, "generator can not be used with find or extract");
        } else if !has("extract") && !has("find") && !has("sourceRef") {
            found.add(place, "either extract, find, or sourceRef must be set to dataFrom");
        }
    }
    let place = keys(&["spec", "data"]);
    let named = data.iter().enumerate();
    found.repeated(named.map(|(at, it)| (place.index(at).key("secretKey"), text(it, "secretKey"))), |key| {
        format!("duplicate secretKey found: {key}")
    });
}
