//! Secrets without their values.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

/// Annotations that repeat the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The fields of a Secret.
const FIELDS: [&str; 7] = ["apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData"];

/// Takes every value out of a Secret and leaves its keys. Public certificates stay, and of the credentials of
/// image registries the hosts. Annotations that repeat the object go.
pub(crate) fn strip_secret(secret: &mut Map<String, Value>) {
    let kind = secret.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    // Whatever else stands there is a field that was misspelt, or one that nobody knows yet.
    secret.retain(|field, _| FIELDS.contains(&field.as_str()));
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
    }
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
