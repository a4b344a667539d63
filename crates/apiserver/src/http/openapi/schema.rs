//! Types of the catalog as OpenAPI v3 schemas.

use std::collections::BTreeSet;

use tiphys_schema::{Catalog, Definition, Field, ListKind, Type};
use tiphys_value::{Map, Value, json};

/// Writes schemas and remembers which named definitions they refer to.
pub(super) struct Writer {
    pub wanted: BTreeSet<u32>,
    /// Where named schemas are in the document.
    prefix: &'static str,
}

impl Writer {
    pub(super) fn new(prefix: &'static str) -> Self {
        Self { wanted: BTreeSet::new(), prefix }
    }

    /// The schema of an object type.
    pub(super) fn definition(&mut self, definition: &Definition) -> Value {
        let mut schema = json!({"type": "object"});
        let mut properties = Map::new();
        for (name, field) in &definition.fields {
            let mut schema = self.field(field);
            if let Some(text) =
                super::descriptions::describe_field(&definition.name, definition.gvk.is_some(), name)
            {
                // Siblings of a reference are not read: it has to be wrapped.
                if schema.get("$ref").is_some() {
                    schema = json!({"allOf": [schema]});
                }
                schema["description"] = text.into();
            }
            properties.insert(name.clone(), schema);
        }
        if !properties.is_empty() {
            schema["properties"] = Value::Object(properties);
        }
        let required: Vec<&str> =
            definition.fields.iter().filter(|(_, f)| f.required).map(|(n, _)| n.as_str()).collect();
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        if definition.atomic {
            schema["x-kubernetes-map-type"] = "atomic".into();
        }
        if let Some(gvk) = &definition.gvk {
            if let Some(text) = super::descriptions::of_kind(&gvk.kind) {
                schema["description"] = text.into();
            }
            schema["x-kubernetes-group-version-kind"] =
                json!([{"group": gvk.group, "version": gvk.version, "kind": gvk.kind}]);
        }
        schema
    }

    fn field(&mut self, field: &Field) -> Value {
        let mut schema = self.of_type(&field.ty);
        // Siblings of a reference are not read: it has to be wrapped.
        if schema.get("$ref").is_some() {
            schema = json!({"allOf": [schema]});
        }
        if field.granular {
            schema["x-kubernetes-map-type"] = "granular".into();
        }
        if let Some(default) = &field.default {
            schema["default"] = default.clone();
        }
        if !field.allowed.is_empty() {
            schema["enum"] = field.allowed.clone().into();
        }
        if let Some(key) = &field.merge_key {
            schema["x-kubernetes-patch-merge-key"] = key.as_str().into();
        }
        let strategies = [
            (field.strategy.merge, "merge"),
            (field.strategy.retain_keys, "retainKeys"),
            (field.strategy.replace, "replace"),
        ];
        let strategies: Vec<&str> =
            strategies.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        if !strategies.is_empty() {
            schema["x-kubernetes-patch-strategy"] = strategies.join(",").into();
        }
        schema
    }

    fn of_type(&mut self, ty: &Type) -> Value {
        match ty {
            Type::Str => json!({"type": "string"}),
            Type::Bool => json!({"type": "boolean"}),
            Type::I32 => json!({"type": "integer", "format": "int32"}),
            Type::I64 => json!({"type": "integer", "format": "int64"}),
            Type::F64 => json!({"type": "number", "format": "double"}),
            Type::Bytes => json!({"type": "string", "format": "byte"}),
            Type::Time | Type::MicroTime => json!({"type": "string", "format": "date-time"}),
            Type::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            Type::IntOrString => {
                json!({"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"})
            }
            Type::Any | Type::Open => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            Type::Ref(id) => {
                self.wanted.insert(*id);
                json!({"$ref": format!("{}{}", self.prefix, Catalog::latest().definition_by_id(*id).name)})
            }
            Type::Object(definition) => self.definition(definition),
            Type::Map(value, atomic) => {
                let mut schema = json!({"type": "object", "additionalProperties": self.of_type(value)});
                if *atomic {
                    schema["x-kubernetes-map-type"] = "atomic".into();
                }
                schema
            }
            Type::List(items, kind) => {
                let mut schema = json!({"type": "array", "items": self.of_type(items)});
                match kind {
                    ListKind::Atomic => schema["x-kubernetes-list-type"] = "atomic".into(),
                    ListKind::Set => schema["x-kubernetes-list-type"] = "set".into(),
                    ListKind::Map(keys) => {
                        schema["x-kubernetes-list-type"] = "map".into();
                        schema["x-kubernetes-list-map-keys"] = keys.clone().into();
                    }
                }
                schema
            }
        }
    }
}
