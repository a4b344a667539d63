//! The types of a structural schema, for merging.

use std::sync::Arc;

use serde_json::Value;

use super::{MAX_DEPTH, flag};
use crate::{Catalog, Definition, Field, ListKind, Type};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The type of a custom resource: what its schema says, with the metadata of every object.
pub(super) fn object_type(schema: &Value, catalog: &Catalog) -> Type {
    let mut definition = definition(schema, 0);
    for name in ["apiVersion", "kind"] {
        definition.fields.insert(name.into(), Field::plain(Type::Str));
    }
    if let Some(metadata) = catalog.reference(OBJECT_META) {
        definition.fields.insert("metadata".into(), Field::plain(metadata));
    }
    Type::Object(Arc::new(definition))
}

fn definition(schema: &Value, depth: usize) -> Definition {
    let mut definition =
        Definition { atomic: schema["x-kubernetes-map-type"] == "atomic", ..Definition::default() };
    let required = schema["required"].as_array();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let mut field = Field::plain(ty(property, depth + 1));
        field.default = property.get("default").cloned();
        field.required = required.is_some_and(|names| names.iter().any(|required| required == name));
        definition.fields.insert(name.clone(), field);
    }
    if flag(schema, "x-kubernetes-preserve-unknown-fields") {
        definition.others = Some(Type::Open);
    }
    definition
}

fn ty(schema: &Value, depth: usize) -> Type {
    if depth > MAX_DEPTH {
        return Type::Open;
    }
    if flag(schema, "x-kubernetes-int-or-string") {
        return Type::IntOrString;
    }
    match schema["type"].as_str() {
        Some("object") if schema["additionalProperties"].is_object() => {
            let atomic = schema["x-kubernetes-map-type"] == "atomic";
            Type::Map(Box::new(ty(&schema["additionalProperties"], depth + 1)), atomic)
        }
        Some("object") => {
            let mut definition = definition(schema, depth);
            // An object of which OpenAPI describes no field takes any. Pruning drops them all the same.
            if definition.fields.is_empty() {
                definition.others = Some(Type::Open);
            }
            Type::Object(Arc::new(definition))
        }
        Some("array") => Type::List(Box::new(ty(&schema["items"], depth + 1)), list_kind(schema)),
        Some("string") => Type::Str,
        Some("boolean") => Type::Bool,
        Some("integer") => Type::I64,
        Some("number") => Type::F64,
        _ => Type::Open,
    }
}

fn list_kind(schema: &Value) -> ListKind {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListKind::Set,
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            ListKind::Map(keys.filter_map(|key| key.as_str().map(str::to_owned)).collect())
        }
        _ => ListKind::Atomic,
    }
}
