//! Schemas inside CustomResourceDefinitions: the fields that hold one of several things (a schema or a list
//! of schemas, a schema or a truth value), of which the catalog knows no type.

use tiphys_schema::{Catalog, TypeRef};
use tiphys_value::{Map, Value};

use super::{Decoded, Fields, ProtobufError, Wire, message};

/// The message of a schema.
pub(super) const PROPS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Reads a field that holds one of several things; `None` for all other fields.
pub(super) fn choice(field: &str, bytes: &[u8], depth: usize) -> Option<Decoded<Value>> {
    match field {
        "items" => Some(schema_or_list(bytes, depth)),
        "additionalItems" | "additionalProperties" => Some(schema_or_bool(bytes, depth)),
        _ => None,
    }
}

fn schema_or_list(bytes: &[u8], depth: usize) -> Decoded<Value> {
    let mut list = Vec::new();
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Bytes(schema)) => return props(schema, depth),
            (2, Wire::Bytes(schema)) => list.push(props(schema, depth)?),
            _ => {}
        }
    }
    Ok(list.into())
}

fn schema_or_bool(bytes: &[u8], depth: usize) -> Decoded<Value> {
    let mut allows = false;
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Number(number)) => allows = number != 0,
            (2, Wire::Bytes(schema)) => return props(schema, depth),
            _ => {}
        }
    }
    Ok(allows.into())
}

fn props(bytes: &[u8], depth: usize) -> Decoded<Value> {
    let catalog = Catalog::latest();
    let ty = catalog.reference(PROPS).ok_or(ProtobufError("schemas are not known"))?;
    let mut object = Map::new();
    message(TypeRef::new(catalog, &ty), PROPS, bytes, depth, &mut object)?;
    Ok(Value::Object(object))
}

/// Drops what the encoding always writes and JSON leaves out: empty texts and `false`.
pub(super) fn drop_zeros(object: &mut Map<String, Value>) {
    object.retain(|field, value| {
        let is_pointer = field == "x-kubernetes-preserve-unknown-fields"
            || field == "additionalProperties"
            || field == "additionalItems";
        is_pointer || !matches!(value, Value::Bool(false)) && value.as_str() != Some("")
    });
}
