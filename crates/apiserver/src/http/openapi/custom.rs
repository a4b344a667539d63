//! The schemas of custom resources, as their definitions give them and as clients can read them.

use tiphys_value::{Map, Value, json};

use super::descriptions;
use crate::registry::Resource;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
/// How deep schemas are looked into; definitions are as deep as JSON bodies at most.
const MAX_DEPTH: usize = 200;

/// Keywords of structural schemas that version 2 has.
const KEYWORDS: [&str; 16] = [
    "type",
    "format",
    "title",
    "description",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "multipleOf",
    "required",
    "enum",
];

/// The versions of the document.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// OpenAPI 2: no choices, no `nullable`, and nothing under what keeps unknown fields.
    V2,
    /// OpenAPI 3.
    V3,
}

/// `io.example.v1.Thing` for `Thing` of `example.io/v1`.
pub(super) fn name(resource: &Resource) -> String {
    name_of(resource, &resource.gvk.kind)
}

fn name_of(resource: &Resource, kind: &str) -> String {
    let reversed: Vec<&str> = resource.group().rsplit('.').collect();
    format!("{}.{}.{kind}", reversed.join("."), resource.gvk.version)
}

/// The named schemas of a custom resource: of its objects and of lists of them.
pub(super) fn schemas(resource: &Resource, dialect: Dialect) -> [(String, Value); 2] {
    let list = name_of(resource, &resource.list_kind);
    [(name(resource), object(resource, dialect)), (list, list_of(resource, dialect))]
}

fn object(resource: &Resource, dialect: Dialect) -> Value {
    let custom = resource.custom.as_ref();
    let given = custom.and_then(|custom| custom.schema.as_ref()).map(|schema| schema.as_value());
    let keeps_all = custom.is_some_and(|custom| custom.preserve_unknown)
        || given.is_some_and(|schema| schema["x-kubernetes-preserve-unknown-fields"] == true);
    let mut schema = match given {
        // Who is told of some fields takes all others for mistakes.
        None => json!({"type": "object"}),
        Some(_) if keeps_all && dialect == Dialect::V2 => json!({"type": "object"}),
        Some(given) => {
            let mut schema = match dialect {
                Dialect::V2 => reduced(given, 0),
                Dialect::V3 => given.clone(),
            };
            add_embedded(&mut schema, dialect, 0);
            add_common(&mut schema, dialect);
            schema
        }
    };
    add_kind(resource, &mut schema, &resource.gvk.kind);
    schema
}

fn list_of(resource: &Resource, dialect: Dialect) -> Value {
    let mut schema = json!({
        "type": "object", "required": ["items"], "description": format!("A list of {}.", resource.gvk.kind),
        "properties": {
            "apiVersion": {"type": "string", "description": descriptions::API_VERSION},
            "kind": {"type": "string", "description": descriptions::KIND},
            "metadata": reference(&format!("{META}.ListMeta"), descriptions::LIST_METADATA, dialect),
            "items": {"type": "array", "description": format!("The {} themselves.", resource.plural),
                "items": {"$ref": format!("{}{}", dialect.prefix(), name(resource))}},
        },
    });
    add_kind(resource, &mut schema, &resource.list_kind);
    schema
}

impl Dialect {
    /// Where named schemas are in the document.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::V2 => "#/definitions/",
            Self::V3 => "#/components/schemas/",
        }
    }
}

/// A described reference; beside one, version 3 reads nothing.
fn reference(name: &str, description: &str, dialect: Dialect) -> Value {
    let reference = format!("{}{name}", dialect.prefix());
    match dialect {
        Dialect::V2 => json!({"$ref": reference, "description": description}),
        Dialect::V3 => json!({"allOf": [{"$ref": reference}], "description": description}),
    }
}

/// What says which kind a schema is of.
fn add_kind(resource: &Resource, schema: &mut Value, kind: &str) {
    let gvk = &resource.gvk;
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": gvk.group, "version": gvk.version, "kind": kind}]);
    let fields = resource.custom.as_ref().map_or(&[][..], |custom| custom.selectable.as_slice());
    if !fields.is_empty() {
        let fields = fields.iter().map(|field| json!({"fieldPath": field}));
        schema["x-kubernetes-selectable-fields"] = fields.collect();
    }
}

/// What every object has.
fn add_common(schema: &mut Value, dialect: Dialect) {
    let properties = &mut schema["properties"];
    if !properties.is_object() {
        *properties = json!({});
    }
    properties["apiVersion"] = json!({"type": "string", "description": descriptions::API_VERSION});
    properties["kind"] = json!({"type": "string", "description": descriptions::KIND});
    properties["metadata"] = reference(&format!("{META}.ObjectMeta"), descriptions::METADATA, dialect);
}

/// Completes the schemas of whole objects within an object.
fn add_embedded(schema: &mut Value, dialect: Dialect, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    for property in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        add_embedded(property.1, dialect, depth + 1);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(part) = schema.get_mut(key).filter(|part| part.is_object()) {
            add_embedded(part, dialect, depth + 1);
        }
    }
    let keeps_all = schema["x-kubernetes-preserve-unknown-fields"] == true;
    if schema["x-kubernetes-embedded-resource"] != true || (keeps_all && dialect == Dialect::V2) {
        return;
    }
    add_common(schema, dialect);
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    for name in ["kind", "apiVersion"] {
        if !required.iter().any(|known| known == name) {
            required.push(name.into());
        }
    }
    schema["required"] = required.into();
}

/// A structural schema in what version 2 has for it.
fn reduced(schema: &Value, depth: usize) -> Value {
    let mut out = Map::new();
    if depth > MAX_DEPTH {
        return Value::Object(out);
    }
    for (key, value) in schema.as_object().into_iter().flatten() {
        if KEYWORDS.contains(&key.as_str()) || key.starts_with("x-kubernetes-") {
            out.insert(key.clone(), value.clone());
        }
    }
    let keeps_all = schema["x-kubernetes-preserve-unknown-fields"] == true;
    let is_closed = schema["nullable"] != true && !keeps_all;
    // Who cannot say that null is allowed must not say of which type the rest is, and who keeps everything
    // must not say what it knows.
    if !is_closed && (schema["nullable"] == true || schema["type"] == "object") {
        out.remove("type");
    }
    if is_closed {
        for key in ["properties", "items"] {
            match &schema[key] {
                Value::Object(properties) if key == "properties" => {
                    let parts =
                        properties.iter().map(|(name, part)| (name.clone(), reduced(part, depth + 1)));
                    out.insert(key.into(), Value::Object(parts.collect()));
                }
                part @ Value::Object(_) => drop(out.insert(key.into(), reduced(part, depth + 1))),
                _ => {}
            }
        }
    }
    if !out.contains_key("items") && schema["type"] == "array" {
        out.remove("type");
    }
    if schema["additionalProperties"].is_object() {
        out.insert("additionalProperties".into(), reduced(&schema["additionalProperties"], depth + 1));
    }
    let may_be_null =
        |name: &Value| name.as_str().is_some_and(|name| schema["properties"][name]["nullable"] == true);
    if let Some(required) = out.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !may_be_null(name));
        if required.is_empty() || schema["additionalProperties"]["nullable"] == true {
            out.remove("required");
        }
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2_is_told_less() {
        let schema = json!({"type": "object", "required": ["a", "n"], "properties": {
            "a": {"type": "string", "default": "x"}, "n": {"type": "string", "nullable": true},
            "i": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"k": {"type": "string"}}},
            "list": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}});
        let expected = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string"}, "n": {}, "i": {"x-kubernetes-int-or-string": true},
            "free": {"x-kubernetes-preserve-unknown-fields": true},
            "list": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}}}});
        assert_eq!(reduced(&schema, 0), expected);
    }

    #[test]
    fn objects_within_objects_have_what_objects_have() {
        let inner = json!({"type": "object", "x-kubernetes-embedded-resource": true});
        let mut schema = json!({"properties": {"inner": inner}});
        add_embedded(&mut schema, Dialect::V3, 0);
        let inner = &schema["properties"]["inner"];
        assert_eq!(inner["required"], json!(["kind", "apiVersion"]));
        assert_eq!(
            inner["properties"]["metadata"]["allOf"][0]["$ref"],
            "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        );
    }
}
