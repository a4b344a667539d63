//! Config maps and secrets.

use serde_json::Value;

use super::{faulty, names, text};
use crate::{ErrorList, FieldError, Path};

/// The most bytes that the data of a config map or secret may have.
const MAX_BYTES: usize = 1024 * 1024;

pub(super) fn config_map(object: &Value, errors: &mut ErrorList) {
    let mut size = 0;
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        faulty(names::config_key(key), key, &Path::new("data").key(key), errors);
        if object["binaryData"].get(key).is_some() {
            let path = Path::new("data").key(key);
            errors.push(FieldError::invalid(&path, key.as_str(), "duplicate of key present in binaryData"));
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in object["binaryData"].as_object().into_iter().flatten() {
        faulty(names::config_key(key), key, &Path::new("binaryData").key(key), errors);
        size += decoded_length(value);
    }
    if size > MAX_BYTES {
        errors.push(FieldError::too_long(&Path::new("[]"), MAX_BYTES));
    }
}

fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default().trim_end_matches('=');
    text.len() * 3 / 4
}

pub(super) fn secret(object: &Value, errors: &mut ErrorList) {
    let data = Path::new("data");
    let mut size = 0;
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        faulty(names::config_key(key), key, &data.key(key), errors);
        size += decoded_length(value);
    }
    if size > MAX_BYTES {
        errors.push(FieldError::too_long(&data, MAX_BYTES));
    }
    let account = "kubernetes.io/service-account.name";
    let named = object["metadata"]["annotations"][account].as_str().is_some_and(|name| !name.is_empty());
    if text(object, "type") == "kubernetes.io/service-account-token" && !named {
        errors.push(FieldError::required(&Path::new("metadata.annotations").key(account), ""));
    }
    let required: &[&str] = match text(object, "type") {
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        _ => &[],
    };
    let is_missing = |key: &str| match key {
        // A key that is empty is none.
        "ssh-privatekey" => object["data"][key].as_str().is_none_or(str::is_empty),
        key => object["data"].get(key).is_none(),
    };
    for key in required.iter().filter(|key| is_missing(key)) {
        errors.push(FieldError::required(&data.key(key), ""));
    }
    if let [key @ (".dockercfg" | ".dockerconfigjson")] = required
        && let Some(value) = object["data"][*key].as_str()
        && let Some(why) = json_object_fault(value)
    {
        errors.push(FieldError::invalid(&data.key(key), "<secret contents redacted>", why));
    }
    if text(object, "type") == "kubernetes.io/basic-auth" && is_missing("username") && is_missing("password")
    {
        for key in ["username", "password"] {
            errors.push(FieldError::required(&data.key(key), ""));
        }
    }
}

/// Why data is no JSON object, or nothing.
fn json_object_fault(data: &str) -> Option<String> {
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).ok()?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Some("unexpected end of JSON input".to_owned());
    }
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => None,
        Ok(other) => {
            let kind = match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            Some(format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"))
        }
        Err(error) => Some(error.to_string()),
    }
}

pub(super) fn update(new: &Value, old: &Value, errors: &mut ErrorList) {
    if let Some(before) = old["type"].as_str()
        && new["type"] != before
    {
        errors.push(FieldError::invalid(&Path::new("type"), new["type"].clone(), "field is immutable"));
    }
    if old["immutable"] != true {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    for field in ["immutable", "data", "binaryData"].into_iter().filter(|field| new[*field] != old[*field]) {
        errors.push(FieldError::forbidden(&Path::new(field), detail));
    }
}
