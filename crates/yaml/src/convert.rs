//! Between YAML and JSON values, as sigs.k8s.io/yaml converts.

use std::borrow::Cow;

use serde_json::Value;
use tiphys_value::Budget;

use crate::{
    Error, Node, Profile,
    chars::is_allowed,
    decode::{Decoder, Floats, json_scalar},
    emit, fast_path,
    number::go_float32,
    parse_first_within,
    resolve::resolve,
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

/// As [`from_yaml`], within a budget that others may share.
///
/// # Errors
/// As [`yaml_to_json`], or [`crate::ErrorKind::Budget`].
pub fn from_yaml_within(text: &str, budget: &Budget) -> Result<Value, Error> {
    read(text, false, Floats::AsJson, budget)
}

/// As [`from_yaml`], but duplicate keys are an error (`YAMLToJSONStrict`).
///
/// # Errors
/// As [`yaml_to_json`].
pub fn from_yaml_strict(text: &str) -> Result<Value, Error> {
    yaml_to_json(text, true)
}

/// The value of a scalar without quotes as [`from_yaml`] reads it; `None` for those that JSON has no form
/// for.
pub fn plain_value(text: &str) -> Option<Value> {
    json_scalar(resolve(text, Profile::Go2), Floats::AsJson)
}

/// Reads the first document; `strict` refuses duplicate keys.
///
/// # Errors
/// Syntax errors and values that JSON has no form for, in the words of go-yaml v2 and
/// sigs.k8s.io/yaml. `sigs.k8s.io/yaml.Unmarshal` puts `error converting YAML to JSON: ` before them.
pub fn yaml_to_json(text: &str, strict: bool) -> Result<Value, Error> {
    read(text, strict, Floats::AsJson, &Budget::of_document())
}

/// As [`from_yaml`] for typed fields, of which those that are strings take numbers, too: a whole float stays
/// a float, and [`field_text`] tells its text.
///
/// # Errors
/// As [`yaml_to_json`].
pub fn from_yaml_for_fields(text: &str) -> Result<Value, Error> {
    read(text, false, Floats::Kept, &Budget::of_document())
}

/// The text of a field that is a string, as `sigs.k8s.io/yaml.Unmarshal` decodes what
/// [`from_yaml_for_fields`] read: numbers and booleans are printed, floats in single precision. `None` for
/// what no string is made of.
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

fn read(text: &str, strict: bool, floats: Floats, budget: &Budget) -> Result<Value, Error> {
    if let Some(value) = fast_path::read(text, strict, floats, None, budget) {
        return Ok(value);
    }
    match parse_first_within(text, Profile::Go2, budget)? {
        Some(document) => Decoder::decode(&document.root, Profile::Go2, strict, floats, budget),
        None => Ok(Value::Null),
    }
}

/// As [`from_yaml_for_fields`], with only those entries of the outermost mapping whose keys are wanted; of
/// the mappings in these, where both keys together are not, entries may be missing. The whole document is
/// read all the same, so that it fails where [`from_yaml`] fails.
///
/// # Errors
/// As [`from_yaml`].
pub fn from_yaml_entries(text: &str, wanted: impl Fn(&[&str]) -> bool) -> Result<Value, Error> {
    if let Some(value) = fast_path::read(text, false, Floats::Kept, Some(&wanted), &Budget::of_document()) {
        return Ok(value);
    }
    let mut value = from_yaml_for_fields(text)?;
    if let Value::Object(map) = &mut value {
        map.retain(|key, _| wanted(&[key]));
    }
    Ok(value)
}

/// The value of a node; scalars are typed as `profile` types them.
///
/// # Errors
/// As [`yaml_to_json`].
pub fn to_value(node: &Node, profile: Profile) -> Result<Value, Error> {
    to_value_within(node, profile, &Budget::of_document())
}

/// As [`to_value`], within a budget that others may share.
///
/// # Errors
/// As [`yaml_to_json`], or [`crate::ErrorKind::Budget`].
pub fn to_value_within(node: &Node, profile: Profile, budget: &Budget) -> Result<Value, Error> {
    Decoder::decode(node, profile, false, Floats::AsJson, budget)
}

impl Node {
    /// Whether both mean the same value under a profile, however they are written.
    pub fn same_value(&self, other: &Node, profile: Profile) -> bool {
        matches!((to_value(self, profile), to_value(other, profile)), (Ok(a), Ok(b)) if a == b)
    }
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

/// As [`to_yaml`], of what [`through_json`] makes of the value.
///
/// # Errors
/// As [`through_json`].
pub fn try_to_yaml(value: &Value) -> Result<String, Error> {
    let yaml = to_yaml(value);
    // What JSON does not escape is written as an escape: without a backslash there is none of it.
    if memchr::memchr(b'\\', yaml.as_bytes()).is_none() || !has_unescaped(value) {
        return Ok(yaml);
    }
    Ok(to_yaml(&reread(value)?))
}

/// What becomes of a value on the way of `sigs.k8s.io/yaml.Marshal`, which writes JSON and reads that as
/// YAML: JSON leaves control characters from DEL on as they are, which YAML refuses or takes for line breaks.
///
/// # Errors
/// `yaml: control characters are not allowed`, or what the reader says of a key that seems to have a line
/// break.
pub fn through_json(value: Value) -> Result<Value, Error> {
    if has_unescaped(&value) { reread(&value) } else { Ok(value) }
}

fn reread(value: &Value) -> Result<Value, Error> {
    // Of the line breaks of YAML, Go's JSON escapes all but NEL.
    let json = value.to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    from_yaml(&json)
}

/// Whether a text holds a character that JSON does not escape and YAML does not read as it is.
fn has_unescaped(value: &Value) -> bool {
    match value {
        Value::String(text) => is_unescaped(text),
        Value::Array(items) => items.iter().any(has_unescaped),
        Value::Object(map) => map.iter().any(|(key, value)| is_unescaped(key) || has_unescaped(value)),
        _ => false,
    }
}

fn is_unescaped(text: &str) -> bool {
    // The first bytes of DEL, of U+0080 to U+009F, and of U+FFFE and U+FFFF.
    memchr::memchr3(0x7F, 0xC2, 0xEF, text.as_bytes()).is_some()
        && text.chars().any(|c| c >= ' ' && !is_allowed(c) || c == '\u{85}')
}
