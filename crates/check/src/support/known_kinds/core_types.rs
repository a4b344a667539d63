//! Types of Kubernetes itself as structural schemas, for custom kinds that have a pod's template or a
//! selector in them.

use tiphys_schema::{Catalog, Definition, Quantity, Type};
use tiphys_value::{Map, Value, json};

/// How deep types are followed.
const MAX_DEPTH: usize = 40;
const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The schema of a type by its name without `io.k8s.`; anything goes if there is none of that name.
pub(super) fn schema(name: &str) -> Value {
    let catalog = Catalog::latest();
    catalog.reference(&format!("io.k8s.{name}")).map_or_else(anything, |ty| of_type(catalog, &ty, 0))
}

pub(super) fn anything() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

fn of_type(catalog: &Catalog, ty: &Type, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return anything();
    }
    match ty {
        Type::Str => json!({"type": "string"}),
        Type::Bytes => json!({"type": "string", "format": "byte"}),
        Type::Time | Type::MicroTime => json!({"type": "string", "format": "date-time"}),
        Type::Bool => json!({"type": "boolean"}),
        Type::I32 | Type::I64 => json!({"type": "integer"}),
        // A definition may have numbers for amounts.
        Type::F64 => json!({"type": "number"}),
        Type::Quantity => json!({
            "x-kubernetes-int-or-string": true,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": Quantity::PATTERN,
        }),
        Type::IntOrString => json!({"x-kubernetes-int-or-string": true}),
        Type::Any | Type::Open => anything(),
        Type::List(item, _) => json!({"type": "array", "items": of_type(catalog, item, depth + 1)}),
        Type::Map(value, _) => {
            json!({"type": "object", "additionalProperties": of_type(catalog, value, depth + 1)})
        }
        Type::Ref(id) => {
            let definition = catalog.definition_by_id(*id);
            // Definitions of custom kinds leave open what the metadata of templates has.
            if definition.name == METADATA { anything() } else { object(catalog, definition, depth) }
        }
        Type::Object(definition) => object(catalog, definition, depth),
    }
}

fn object(catalog: &Catalog, definition: &Definition, depth: usize) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, field) in &definition.fields {
        let mut schema = of_type(catalog, &field.ty, depth + 1);
        schema["nullable"] = true.into();
        if field.required && field.default.is_none() {
            required.push(Value::from(name.as_str()));
        }
        properties.insert(name.clone(), schema);
    }
    if properties.is_empty() {
        return anything();
    }
    json!({"type": "object", "properties": properties, "required": required})
}
