//! Formats in the schemas of definitions that the server does not know, and so does not look at.

use tiphys_schema::crd_schemas;
use tiphys_value::Value;

/// Formats of texts, without hyphens.
const OF_TEXTS: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];
/// Schemas are no deeper than the JSON parser allows.
const DEPTH: usize = 200;

/// What is said of formats that a definition brings in.
pub(super) fn unrecognized(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(formats_in).unwrap_or_default();
    let new = formats_in(definition).into_iter().filter(|format| !known.contains(format));
    new.map(|format| format!("unrecognized format {}", tiphys_schema::quote(&format))).collect()
}

fn formats_in(definition: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (schema, _) in crd_schemas(definition) {
        collect(schema, &mut found, DEPTH);
    }
    found
}

fn collect(schema: &Value, found: &mut Vec<String>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    if let Some(format) = schema["format"].as_str().filter(|format| !format.is_empty()) {
        let is_known = match schema["type"].as_str().unwrap_or_default() {
            "" | "string" => OF_TEXTS.contains(&format.replace('-', "").as_str()),
            "integer" => matches!(format, "int32" | "int64"),
            "number" => matches!(format, "float" | "double"),
            _ => false,
        };
        if !is_known && !found.iter().any(|known| known == format) {
            found.push(format.to_owned());
        }
    }
    for key in ["items", "additionalProperties", "not"] {
        collect_below(&schema[key], found, depth);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        schema[key].as_array().into_iter().flatten().for_each(|inner| collect_below(inner, found, depth));
    }
    for inner in schema["properties"].as_object().into_iter().flat_map(|properties| properties.values()) {
        collect_below(inner, found, depth);
    }
}

fn collect_below(schema: &Value, found: &mut Vec<String>, depth: usize) {
    if schema.is_object() {
        collect(schema, found, depth);
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    #[test]
    fn only_new_formats_that_nobody_knows_are_told() {
        let definition = |format: &str| {
            json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object",
            "properties": {"a": {"type": "string", "format": format}, "b": {"type": "integer", "format": "int32"}}}}}]}})
        };
        let url = definition("url");
        assert_eq!(unrecognized(&url, None), ["unrecognized format \"url\""]);
        assert!(unrecognized(&url, Some(&url)).is_empty());
        assert!(unrecognized(&definition("date-time"), None).is_empty());
    }
}
