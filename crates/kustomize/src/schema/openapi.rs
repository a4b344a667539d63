//! Reading OpenAPI version 2 definitions with the Kubernetes extensions.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Field, Schemas, Type, TypeId};

/// Why a text is no OpenAPI document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid schema file: {0}")]
pub struct SchemaError(String);

/// How many references are followed from one field before it is taken for untyped.
const MAX_REFERENCES: usize = 32;

pub(super) fn read(document: &Value, base: Schemas) -> Result<Schemas, SchemaError> {
    let root = document.as_object().ok_or_else(|| SchemaError("expected an object".to_owned()))?;
    let nothing = Map::new();
    let definitions = match root.get("definitions") {
        Some(value) => value.as_object().ok_or_else(|| SchemaError("definitions is no object".to_owned()))?,
        None => &nothing,
    };
    let mut reader = Reader { definitions, named: HashMap::new(), set: base };
    for (name, definition) in definitions {
        let of = reader.type_named(name, 0);
        for gvk in extension(definition, "x-kubernetes-group-version-kind")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if let (Some(of), Some(kind)) = (of, kind_of(gvk)) {
                reader.set.kinds.insert(kind, of);
            }
        }
    }
    let named: Vec<(String, TypeId)> =
        reader.named.iter().map(|(name, of)| ((*name).to_owned(), *of)).collect();
    let mut set = reader.set;
    set.names.extend(named);
    read_scopes(root.get("paths"), &mut set);
    Ok(set)
}

struct Reader<'a> {
    definitions: &'a Map<String, Value>,
    named: HashMap<&'a str, TypeId>,
    set: Schemas,
}

impl<'a> Reader<'a> {
    /// The type of a definition, read at its first use; the number is given before the fields are
    /// read, so that definitions may contain themselves.
    fn type_named(&mut self, name: &str, depth: usize) -> Option<TypeId> {
        let Some((name, definition)) = self.definitions.get_key_value(name) else {
            return self.set.names.get(name).copied();
        };
        if let Some(known) = self.named.get(name.as_str()) {
            return Some(*known);
        }
        let of = self.reserve();
        self.named.insert(name, of);
        self.fill(of, definition, depth);
        Some(of)
    }

    fn reserve(&mut self) -> TypeId {
        self.set.types.push(Type::default());
        u32::try_from(self.set.types.len() - 1).unwrap_or(u32::MAX)
    }

    fn fill(&mut self, of: TypeId, schema: &'a Value, depth: usize) {
        let mut fields = HashMap::new();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            fields.insert(name.clone(), self.field(property, depth + 1));
        }
        let additional = schema.get("additionalProperties").filter(|value| value.is_object());
        let additional = additional.map(|schema| self.field(schema, depth + 1));
        if let Some(slot) = self.set.types.get_mut(of as usize) {
            *slot = Type { fields, additional };
        }
    }

    fn field(&mut self, schema: &'a Value, depth: usize) -> Field {
        let (schema, name) = self.resolve(schema);
        if depth > crate::node::MAX_DEPTH {
            return Field::default();
        }
        if schema.get("type").and_then(Value::as_str) != Some("array") {
            return Field { merge_keys: None, of: self.object(schema, name, depth) };
        }
        let of = schema.get("items").and_then(|items| {
            let (items, name) = self.resolve(items);
            self.object(items, name, depth)
        });
        Field { merge_keys: merge_keys(schema), of }
    }

    fn object(&mut self, schema: &'a Value, name: Option<&'a str>, depth: usize) -> Option<TypeId> {
        if let Some(name) = name {
            return self.type_named(name, depth);
        }
        if schema.get("properties").is_none() && schema.get("additionalProperties").is_none() {
            return None;
        }
        let of = self.reserve();
        self.fill(of, schema, depth);
        Some(of)
    }

    /// Follows `$ref`s; returns the schema and the name of the definition that it is.
    fn resolve(&self, schema: &'a Value) -> (&'a Value, Option<&'a str>) {
        let mut schema = schema;
        let mut name = None;
        for _ in 0..MAX_REFERENCES {
            let reference = schema.get("$ref").and_then(Value::as_str);
            let Some(target) = reference.and_then(|r| r.strip_prefix("#/definitions/")) else { break };
            name = Some(target);
            let Some((_, definition)) = self.definitions.get_key_value(target) else { break };
            schema = definition;
        }
        (schema, name)
    }
}

fn extension<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get(name)
}

/// The merge keys of a list whose patch strategy is to merge.
fn merge_keys(schema: &Value) -> Option<Vec<String>> {
    let strategy = extension(schema, "x-kubernetes-patch-strategy")?.as_str()?;
    if !strategy.split(',').any(|part| part == "merge") {
        return None;
    }
    if let Some(keys) = extension(schema, "x-kubernetes-list-map-keys").and_then(Value::as_array) {
        return Some(keys.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    }
    let key = extension(schema, "x-kubernetes-patch-merge-key").and_then(Value::as_str);
    Some(key.map(str::to_owned).into_iter().collect())
}

/// `apiVersion` and kind of a group-version-kind extension.
fn kind_of(gvk: &Value) -> Option<(String, String)> {
    let text = |name: &str| gvk.get(name).and_then(Value::as_str);
    let version = text("version")?;
    let api_version = match text("group") {
        Some(group) if !group.is_empty() => format!("{group}/{version}"),
        _ => version.to_owned(),
    };
    Some((api_version, text("kind")?.to_owned()))
}

/// A kind is namespaced if any path that gets it has a namespace in it.
fn read_scopes(paths: Option<&Value>, set: &mut Schemas) {
    for (path, item) in paths.and_then(Value::as_object).into_iter().flatten() {
        let gvk = item.get("get").and_then(|get| extension(get, "x-kubernetes-group-version-kind"));
        let Some(kind) = gvk.and_then(kind_of) else { continue };
        let namespaced = path.contains("namespaces/{namespace}");
        *set.namespaced.entry(kind).or_insert(namespaced) |= namespaced;
    }
}
