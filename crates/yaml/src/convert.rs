//! Between YAML and JSON values, as sigs.k8s.io/yaml converts.

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    Error, ErrorKind, Node, Profile,
    chars::find_forbidden,
    decode::{Decoder, Floats},
    emit,
    number::go_float32,
    parse_first, simple,
};

/// Reads the first document of a text as `sigs.k8s.io/yaml.YAMLToJSON` does.
///
/// Integers are kept as i64/u64 and other numbers as f64, although Go's `Unmarshal` into `interface{}`
/// would make every number a float64: who needs that (Helm's `.Values`) converts. Of duplicate keys
/// the last wins. An empty text is `null`.
///
/// # Errors
/// As [`yaml_to_json`].
pub fn from_yaml(text: &str) -> Result<Value, Error> {
    yaml_to_json(text, false)
}

/// As [`from_yaml`], but duplicate keys are an error (`YAMLToJSONStrict`).
///
/// # Errors
/// As [`yaml_to_json`].
pub fn from_yaml_strict(text: &str) -> Result<Value, Error> {
    yaml_to_json(text, true)
}

/// Reads the first document; `strict` refuses duplicate keys.
///
/// # Errors
/// Syntax errors and values that JSON has no form for, in the words of go-yaml v2 and
/// sigs.k8s.io/yaml. `sigs.k8s.io/yaml.Unmarshal` puts `error converting YAML to JSON: ` before them.
pub fn yaml_to_json(text: &str, strict: bool) -> Result<Value, Error> {
    read(text, strict, Floats::AsJson)
}

/// As [`from_yaml`] for typed fields, of which those that are strings take numbers, too: a whole float stays a float, and
/// [`field_text`] tells its text.
///
/// # Errors
/// As [`yaml_to_json`].
pub fn from_yaml_for_fields(text: &str) -> Result<Value, Error> {
    read(text, false, Floats::Kept)
}

/// The text of a field that is a string, as `sigs.k8s.io/yaml.Unmarshal` decodes what [`from_yaml_for_fields`] read:
/// numbers and booleans are printed, floats in single precision. `None` for what no string is made of.
pub fn field_text(value: &Value) -> Option<Cow<'_, str>> {
    Some(match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Bool(bool) => Cow::Owned(bool.to_string()),
        Value::Number(number) => Cow::Owned(match number.as_f64() {
            Some(float) if number.is_f64() => go_float32(float),
            _ => number.to_string(),
        }),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    })
}

fn read(text: &str, strict: bool, floats: Floats) -> Result<Value, Error> {
    if let Some(value) = simple::read(text, strict, floats, None) {
        return Ok(value);
    }
    match parse_first(text, Profile::Go2)? {
        Some(document) => Decoder::decode(&document.root, Profile::Go2, strict, floats),
        None => Ok(Value::Null),
    }
}

/// As [`from_yaml_for_fields`], with only those entries of the outermost mapping whose keys are wanted. The whole document is read all
/// the same, so that it fails where [`from_yaml`] fails.
///
/// # Errors
/// As [`from_yaml`].
pub fn from_yaml_entries(text: &str, wanted: impl Fn(&str) -> bool) -> Result<Value, Error> {
    if let Some(value) = simple::read(text, false, Floats::Kept, Some(&wanted)) {
        return Ok(value);
    }
    let mut value = from_yaml_for_fields(text)?;
    if let Value::Object(map) = &mut value {
        map.retain(|key, _| wanted(key));
    }
    Ok(value)
}

/// The value of a node; scalars are typed as `profile` types them.
///
/// # Errors
/// As [`yaml_to_json`].
pub fn to_value(node: &Node, profile: Profile) -> Result<Value, Error> {
    Decoder::decode(node, profile, false, Floats::AsJson)
}

/// A node tree in block style for a value, keys sorted as go-yaml sorts them. [`crate::emit`] writes
/// it as go-yaml v3 marshals the value (Helm's `toYamlPretty`): floats stay floats.
pub fn from_value(value: &Value) -> Node {
    emit::value_to_node(value)
}

/// Writes a value as `sigs.k8s.io/yaml.Marshal` does, byte for byte, with the final newline.
///
/// Integral floats are written as integers, because that function goes through JSON.
pub fn to_yaml(value: &Value) -> String {
    emit::emit_value(value)
}

/// As [`to_yaml`], but fails where `sigs.k8s.io/yaml.Marshal` does: on strings with control characters
/// that JSON does not escape.
///
/// # Errors
/// `yaml: control characters are not allowed`
pub fn try_to_yaml(value: &Value) -> Result<String, Error> {
    if has_unwritable(value) {
        let message = "yaml: control characters are not allowed".to_owned();
        return Err(Error::new(ErrorKind::Decode, message));
    }
    Ok(to_yaml(value))
}

fn has_unwritable(value: &Value) -> bool {
    match value {
        Value::String(text) => is_unwritable(text),
        Value::Array(items) => items.iter().any(has_unwritable),
        Value::Object(map) => map.iter().any(|(key, value)| is_unwritable(key) || has_unwritable(value)),
        _ => false,
    }
}

/// JSON escapes what is below the space; of the rest, YAML refuses some.
fn is_unwritable(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = find_forbidden(rest) {
        if rest.as_bytes()[at] >= b' ' {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}
