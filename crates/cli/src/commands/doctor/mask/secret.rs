//! Secrets without their values.

use std::collections::BTreeSet;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

/// Annotations that repeat the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The fields of a Secret.
const FIELDS: [&str; 7] = ["apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData"];

/// Takes every value out of a Secret and leaves its keys. Public certificates stay, and of the credentials of
/// image registries the hosts. Annotations that repeat the object go, and those that hold a value lose
/// theirs.
pub(crate) fn strip_secret(secret: &mut Map<String, Value>) {
    let kind = secret.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    // Whatever else stands there is a field that was misspelt, or one that nobody knows yet.
    secret.retain(|field, _| FIELDS.contains(&field.as_str()));
    let values = values_of(secret);
    for (field, is_encoded) in [("data", true), ("stringData", false)] {
        let Some(values) = secret.get_mut(field) else { continue };
        match values.as_object_mut() {
            Some(values) => values.iter_mut().for_each(|(key, value)| {
                *value = Value::String(public_part(&kind, key, value, is_encoded).unwrap_or_default());
            }),
            None => *values = Value::Null,
        }
    }
    if let Some(annotations) = secret.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"))
        && let Some(annotations) = annotations.as_object_mut()
    {
        annotations.remove(LAST_APPLIED);
        // Of tools that keep what they applied under names of their own.
        annotations.retain(|_, value| !value.as_str().is_some_and(|text| text.trim_start().starts_with('{')));
        for value in annotations.values_mut().filter(|value| holds_any(value, &values)) {
            *value = Value::String(String::new());
        }
    }
}

/// A value that is shorter stands in any text, and is no secret: `1`, `app`, `true`.
const SHORTEST: usize = 5;

/// The values of a Secret, plain and as they are written, and each line of those that have several.
fn values_of(secret: &Map<String, Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (field, is_encoded) in [("data", true), ("stringData", false)] {
        let values = secret.get(field).and_then(Value::as_object).into_iter().flat_map(Map::values);
        for text in values.filter_map(Value::as_str) {
            let decoded = is_encoded.then(|| BASE64_STANDARD.decode(text.trim()).ok()).flatten();
            let plain = match &decoded {
                Some(bytes) => String::from_utf8_lossy(bytes),
                None => text.into(),
            };
            found.insert(text.trim().trim_end_matches('=').to_owned());
            found.insert(BASE64_STANDARD.encode(plain.trim()).trim_end_matches('=').to_owned());
            found.insert(plain.trim().to_owned());
            found.extend(plain.lines().map(|line| line.trim().to_owned()));
        }
    }
    found.retain(|value| value.len() >= SHORTEST);
    found
}

/// Whether a text is one of the values, or holds one. Of very many values any text is taken for one.
fn holds_any(text: &Value, values: &BTreeSet<String>) -> bool {
    const MOST: usize = 1_000;
    values.len() > MOST
        || text.as_str().is_some_and(|text| values.iter().any(|value| text.contains(value.as_str())))
}

/// What of a value may be seen by everybody, in the form of the value.
fn public_part(kind: &str, key: &str, value: &Value, is_encoded: bool) -> Option<String> {
    let text = value.as_str()?;
    let plain = match is_encoded {
        true => String::from_utf8(BASE64_STANDARD.decode(text.trim()).ok()?).ok()?,
        false => text.to_owned(),
    };
    let public = match (kind, key) {
        (_, "tls.crt" | "ca.crt") => certificates(&plain)?,
        (_, ".dockerconfigjson") => {
            json!({"auths": hosts(&serde_json::from_str::<Value>(&plain).ok()?["auths"])}).to_string()
        }
        (_, ".dockercfg") => hosts(&serde_json::from_str(&plain).ok()?).to_string(),
        _ => return None,
    };
    Some(if is_encoded { BASE64_STANDARD.encode(public) } else { public })
}

/// The certificates of a text of PEM; whatever else it holds, keys above all, is left out.
fn certificates(text: &str) -> Option<String> {
    const FRAME: (&str, &str) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
    let (mut found, mut rest) = (String::new(), text);
    while let Some((_, after)) = rest.split_once(FRAME.0) {
        let (body, after) = after.split_once(FRAME.1)?;
        if body.contains("-----") {
            return None;
        }
        found.push_str(&format!("{}{body}{}\n", FRAME.0, FRAME.1));
        rest = after;
    }
    (!found.is_empty()).then_some(found)
}

/// The hosts that credentials are for, without the credentials.
fn hosts(credentials: &Value) -> Value {
    let hosts = credentials.as_object().into_iter().flat_map(Map::keys);
    // A key may be an address with a login.
    Value::Object(hosts.map(|host| (super::mask_text(host).into_owned(), json!({}))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(secret: Value) -> Value {
        let Value::Object(mut map) = secret else { panic!("an object") };
        strip_secret(&mut map);
        Value::Object(map)
    }

    #[test]
    fn keys_stay_and_values_go() {
        let stripped = stripped(
            json!({"kind": "Secret", "type": "Opaque", "data": {"password": "aHVudGVyMg==", "empty": null},
            "stringData": {"token": "hunter2"}, "metadata": {"name": "db", "annotations": {
                LAST_APPLIED: "{\"stringData\": {\"token\": \"hunter2\"}}", "applied-by-us": "{\"a\": \"hunter2\"}", "team": "shop"}}}),
        );
        assert_eq!(stripped["data"], json!({"password": "", "empty": ""}));
        assert_eq!(stripped["metadata"]["annotations"], json!({"team": "shop"}));
        assert!(!stripped.to_string().contains("hunter2"));
    }

    #[test]
    fn annotations_that_hold_a_value_lose_theirs() {
        let encoded = |text: &str| BASE64_STANDARD.encode(text);
        let stripped = stripped(json!({"kind": "Secret",
            "data": {"password": encoded("hunter2\n"), "rows": encoded("first-line\nsecond-line\n"), "flag": encoded("true")},
            "stringData": {"token": "s3cr3t-token"}, "metadata": {"annotations": {
                "plain": "hunter2", "within": "psql://u:hunter2@db", "encoded": encoded("hunter2"), "line": "second-line",
                "written": encoded("hunter2\n"), "token": "Bearer s3cr3t-token", "team": "shop", "replicate": "true"}}}));
        let annotations = stripped["metadata"]["annotations"].as_object().unwrap();
        let left: Vec<&str> =
            annotations.values().filter_map(Value::as_str).filter(|it| !it.is_empty()).collect();
        assert_eq!((annotations.len(), left), (8, vec!["true", "shop"]));
    }

    #[test]
    fn public_certificates_and_hosts_of_registries_stay() {
        let pem = "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n";
        let key = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n";
        let encoded = |text: &str| BASE64_STANDARD.encode(text);
        let tls = stripped(
            json!({"type": "kubernetes.io/tls", "data": {"tls.crt": encoded(&format!("{key}{pem}")), "tls.key": encoded(key)}}),
        );
        assert_eq!(tls["data"], json!({"tls.crt": encoded(pem), "tls.key": ""}));
        let logins = r#"{"auths": {"ghcr.io": {"auth": "aHVudGVyMg=="}, "https://u:hunter2@r.example": {}}}"#;
        let docker = stripped(
            json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": encoded(logins)}}),
        );
        let kept = BASE64_STANDARD.decode(docker["data"][".dockerconfigjson"].as_str().unwrap()).unwrap();
        assert_eq!(
            String::from_utf8(kept).unwrap(),
            r#"{"auths":{"ghcr.io":{},"https://u:***@r.example":{}}}"#
        );
    }
}
