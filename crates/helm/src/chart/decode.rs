//! Decoding YAML into typed fields as `sigs.k8s.io/yaml` and Go's `encoding/json` do: field names
//! in any case, scalars turned into strings where a string is wanted, Go's error texts.

use std::{borrow::Cow, collections::BTreeMap};

use tiphys_gocompat::rawstr;
use tiphys_value::{Map, Value, json_kind};
use tiphys_yaml::{decode_text, field_text, from_yaml_for_fields};

/// A field path and its Go type, for errors.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    /// Such as `Metadata.name`.
    pub path: &'a str,
}

/// The fields of the mapping that a text holds; none for an empty text.
///
/// # Errors
/// The text is no YAML, or no mapping.
pub(crate) fn mapping(text: &[u8], go_type: &str) -> Result<Map<String, Value>, String> {
    let value = decode_text(text)
        .and_then(|text| from_yaml_for_fields(&text))
        .map_err(|error| format!("error converting YAML to JSON: {error}"))?;
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        other => Err(unmarshal_error(&format!(
            "json: cannot unmarshal {} into Go value of type {go_type}",
            json_kind(&other)
        ))),
    }
}

/// A text of templates as go-yaml reads it: what carries bytes that are not UTF-8 is refused, or is UTF-16.
///
/// # Errors
/// In go-yaml's words.
pub(crate) fn decoded(text: &str) -> Result<Cow<'_, str>, tiphys_yaml::Error> {
    if !rawstr::has_raw(text) {
        return Ok(Cow::Borrowed(text));
    }
    decode_text(&rawstr::decode(text)).map(|text| Cow::Owned(text.into_owned()))
}

/// Puts before an error what `sigs.k8s.io/yaml.Unmarshal` puts there.
pub(crate) fn unmarshal_error(error: &str) -> String {
    format!("error unmarshaling JSON: while decoding JSON: {error}")
}

/// Whether a key means a field: Go's decoder ignores case.
pub(crate) fn is_field(key: &str, field: &str) -> bool {
    key.eq_ignore_ascii_case(field)
}

impl Field<'_> {
    fn mismatch(self, value: &Value, go_type: &str) -> String {
        unmarshal_error(&format!(
            "json: cannot unmarshal {} into Go struct field {} of type {go_type}",
            json_kind(value),
            self.path
        ))
    }

    /// A string; numbers and booleans are printed.
    pub(crate) fn string(self, value: &Value, target: &mut String) -> Result<(), String> {
        match field_text(value) {
            Some(text) => *target = text.into_owned(),
            None if value.is_null() => {}
            None => return Err(self.mismatch(value, "string")),
        }
        Ok(())
    }

    /// A boolean.
    pub(crate) fn bool(self, value: &Value, target: &mut bool) -> Result<(), String> {
        match value {
            Value::Null => {}
            Value::Bool(bool) => *target = *bool,
            other => return Err(self.mismatch(other, "bool")),
        }
        Ok(())
    }

    /// The items of a list; `None` for null.
    pub(crate) fn items<'v>(self, value: &'v Value, go_type: &str) -> Result<Option<&'v [Value]>, String> {
        match value {
            Value::Null => Ok(None),
            Value::Array(items) => Ok(Some(items)),
            other => Err(self.mismatch(other, go_type)),
        }
    }

    /// The entries of an object; `None` for null.
    pub(crate) fn entries<'v>(
        self,
        value: &'v Value,
        go_type: &str,
    ) -> Result<Option<&'v Map<String, Value>>, String> {
        match value {
            Value::Null => Ok(None),
            Value::Object(map) => Ok(Some(map)),
            other => Err(self.mismatch(other, go_type)),
        }
    }

    /// A list of strings.
    pub(crate) fn strings(self, value: &Value, target: &mut Vec<String>) -> Result<(), String> {
        let Some(items) = self.items(value, "[]string")? else { return Ok(()) };
        target.clear();
        for item in items {
            let mut text = String::new();
            self.string(item, &mut text)?;
            target.push(text);
        }
        Ok(())
    }

    /// A map of strings.
    pub(crate) fn string_map(
        self,
        value: &Value,
        target: &mut Option<BTreeMap<String, String>>,
    ) -> Result<(), String> {
        let Some(map) = self.entries(value, "map[string]string")? else { return Ok(()) };
        let target = target.get_or_insert_default();
        for (key, item) in map {
            let mut text = String::new();
            self.string(item, &mut text)?;
            target.insert(key.clone(), text);
        }
        Ok(())
    }
}
