//! Credentials in objects: in variables, arguments, parameters of charts, and fields of any custom resource.

use serde_json::{Map, Value};

use super::{MASKED, mask_text, names, strip_secret};

/// Objects that are nested deeper are cut there.
const MAX_DEPTH: usize = 128;
/// The longest JSON in a string that is looked into.
const MAX_NESTED: usize = 4 * 1024 * 1024;

/// Masks every credential in an object. Of a Secret, wherever it stands, only keys and public parts are left.
pub(crate) fn mask_object(object: &mut Value) {
    mask(object, 0);
}

fn mask(value: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
        *value = Value::Null;
        return;
    }
    match value {
        Value::Object(map) => mask_map(map, depth),
        Value::Array(items) => mask_list(items, depth),
        Value::String(text) => mask_string(text, depth),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn mask_map(map: &mut Map<String, Value>, depth: usize) {
    let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
    if kind == "Secret"
        && (map.contains_key("data") || map.contains_key("stringData") || map.contains_key("metadata"))
    {
        strip_secret(map);
    }
    // Binary files may be key stores.
    if let Some(files) = map.get_mut("binaryData").and_then(Value::as_object_mut) {
        files.values_mut().for_each(|file| *file = Value::String(String::new()));
    }
    mask_variable(map);
    for (key, value) in map.iter_mut() {
        match value {
            Value::String(text) if is_masked_field(key, text) => MASKED.clone_into(text),
            value => mask(value, depth + 1),
        }
    }
}

fn is_masked_field(key: &str, value: &str) -> bool {
    // What is left of a Secret: public, or empty.
    let is_public = matches!(key, "tls.crt" | "ca.crt" | ".dockerconfigjson" | ".dockercfg");
    !is_public
        && names::is_credential(key)
        && !names::is_no_value(value)
        && !names::is_secret_name(key, value)
}

/// `{name: DB_PASSWORD, value: x}`, as environment variables and parameters of charts are written.
fn mask_variable(map: &mut Map<String, Value>) {
    let name = ["name", "key"].iter().find_map(|key| map.get(*key)?.as_str()).unwrap_or_default();
    if !names::is_credential_variable(name) {
        return;
    }
    if let Some(Value::String(value)) = map.get_mut("value") {
        // Of an address the host is needed, and its login is masked as everywhere.
        let is_address = value.contains("://");
        if !names::is_no_value(value) && !is_address {
            MASKED.clone_into(value);
        }
    }
}

/// Lists of arguments: the one behind `--password` is the password.
fn mask_list(items: &mut [Value], depth: usize) {
    let mut is_flag_before = false;
    for item in items {
        let is_flag = item
            .as_str()
            .is_some_and(|text| text.starts_with('-') && !text.contains('=') && names::is_credential(text));
        match item {
            Value::String(text) if is_flag_before && !text.starts_with('-') && !names::is_no_value(text) => {
                MASKED.clone_into(text);
            }
            item => mask(item, depth + 1),
        }
        is_flag_before = is_flag;
    }
}

/// Texts; what is JSON in a text (`last-applied-configuration`) is masked as an object.
fn mask_string(text: &mut String, depth: usize) {
    let start = text.trim_start();
    if text.len() <= MAX_NESTED
        && start.starts_with(['{', '['])
        && let Ok(mut nested @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text)
    {
        let before = nested.clone();
        mask(&mut nested, depth + 1);
        if nested != before {
            *text = nested.to_string();
        }
        return;
    }
    if let Some(masked) = mask_manifests(text, depth) {
        *text = masked;
    }
    if let std::borrow::Cow::Owned(masked) = mask_text(text) {
        *text = masked;
    }
}

/// A text of YAML with the Secrets among its documents masked; `None` if there are none.
fn mask_manifests(text: &str, depth: usize) -> Option<String> {
    if !has_secret(text) {
        return None;
    }
    let documents = match tiphys_yaml::split_kubernetes_documents(text) {
        Ok(documents) if text.len() <= MAX_NESTED => documents,
        _ => return Some(MASKED.to_owned()),
    };
    let masked = documents.into_iter().map(|(_, document)| match tiphys_yaml::from_yaml(document) {
        _ if !has_secret(document) => document.to_owned(),
        Ok(mut object) => {
            mask(&mut object, depth + 1);
            tiphys_yaml::to_yaml(&object)
        }
        // A template, mostly.
        Err(_) => format!("{MASKED}\n"),
    });
    Some(masked.collect::<Vec<_>>().join("---\n"))
}

/// Whether a text may hold a manifest of a Secret.
fn has_secret(text: &str) -> bool {
    const KIND: &str = "kind: Secret";
    text.match_indices(KIND).any(|(at, _)| !text[at + KIND.len()..].starts_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn masked(mut object: Value) -> Value {
        mask_object(&mut object);
        object
    }

    #[test]
    fn variables_and_arguments_are_masked_and_their_names_stay() {
        let container = masked(json!({"env": [
            {"name": "DB_PASSWORD", "value": "hunter2"},
            {"name": "DB_URL", "value": "postgres://app:hunter2@db.shop:5432"},
            {"name": "SECRET_URL", "value": "https://vault:8200"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "db-token", "key": "token"}}},
            {"name": "HOST", "value": "db.shop"}], "args": ["--db-password", "hunter2", "--token=hunter2", "--port", "80"]}));
        assert!(!container.to_string().contains("hunter2"), "{container}");
        assert_eq!(container["env"][1]["value"], "postgres://app:***@db.shop:5432");
        assert_eq!(container["env"][2]["value"], "https://vault:8200");
        assert_eq!(
            container["env"][3]["valueFrom"]["secretKeyRef"],
            json!({"name": "db-token", "key": "token"})
        );
        assert_eq!(container["args"], json!(["--db-password", "***", "--token=***", "--port", "80"]));
    }

    #[test]
    fn secrets_inside_of_other_objects_lose_their_values() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "hunter2"}, "metadata": {"name": "x"}});
        let object = masked(json!({"kind": "Policy", "metadata": {"annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": secret.to_string()}},
            "spec": {"generate": {"resource": secret}, "helm": {"values": "db:\n  password: hunter2\n", "parameters": [{"name": "db.password", "value": "hunter2"}]},
            "existingSecret": "shop-db", "clientSecret": "hunter2", "automount": true}}));
        assert!(!object.to_string().contains("hunter2"), "{object}");
        assert_eq!(object["spec"]["existingSecret"], "shop-db");
        assert_eq!(object["spec"]["generate"]["resource"]["stringData"], json!({"a": ""}));
    }

    #[test]
    fn manifests_in_texts_are_masked() {
        let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  a: hunter2\n";
        let other = "kind: SecretStore\nspec: {a: b}\n";
        let map = masked(json!({"kind": "ConfigMap", "data": {
            "all.yaml": format!("{other}---\n{secret}"),
            "template.yaml": format!("{secret}  b: {{{{ .Values.b }}}}\n"),
            "other.yaml": other}}));
        assert!(!map.to_string().contains("hunter2"), "{map}");
        let all = map["data"]["all.yaml"].as_str().unwrap();
        assert!(all.contains("kind: SecretStore") && all.contains("name: s"), "{all}");
        assert_eq!(map["data"]["other.yaml"], other);
    }

    #[test]
    fn fields_that_no_secret_has_are_left_out() {
        let secret = masked(
            json!({"kind": "Secret", "metadata": {"name": "s"}, "Data": {"a": "hunter2"}, "extra": "hunter2", "data": {"b": ""}}),
        );
        assert_eq!(secret, json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"b": ""}}));
    }

    #[test]
    fn files_in_config_maps_are_masked() {
        let map = masked(
            json!({"kind": "ConfigMap", "data": {"app.properties": "db.host=db\ndb.password=hunter2\n", "api-token": "hunter2"},
            "binaryData": {"keys.p12": "aHVudGVyMg=="}}),
        );
        assert_eq!(map["data"]["app.properties"], "db.host=db\ndb.password=***\n");
        assert!(!map.to_string().contains("hunter2") && !map.to_string().contains("aHVudGVyMg"), "{map}");
    }
}
