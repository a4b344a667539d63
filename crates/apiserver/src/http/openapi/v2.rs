//! The OpenAPI v2 document of everything that is served, for clients that know no other.

use std::collections::BTreeSet;

use tiphys_schema::{Catalog, Type};
use tiphys_value::{Map, Value, json};

use super::{
    custom::{self, Dialect},
    schema::Writer,
};
use crate::registry::{Registry, Resource};

/// The document.
pub(super) fn document(registry: &Registry, version: &str) -> Value {
    let catalog = Catalog::latest();
    let mut writer = Writer::new(Dialect::V2.prefix());
    let mut definitions = Map::new();
    let mut paths = Map::new();
    for resource in registry.all() {
        let name = match &resource.custom {
            Some(_) => {
                definitions.extend(custom::schemas(resource, Dialect::V2));
                custom::name(resource)
            }
            None => match catalog
                .type_of(&resource.gvk)
                .and_then(|ty| Some((ty.ty.clone(), ty.definition()?.name.clone())))
            {
                Some((Type::Ref(id), name)) => {
                    writer.wanted.insert(id);
                    name
                }
                _ => continue,
            },
        };
        add_paths(&mut paths, resource, &name);
    }
    for name in ["DeleteOptions", "Status", "ObjectMeta", "ListMeta"] {
        let full = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}");
        if let Some(Type::Ref(id)) = catalog.reference(&full) {
            writer.wanted.insert(id);
        }
    }
    let mut done = BTreeSet::new();
    while let Some(id) = writer.wanted.iter().find(|id| !done.contains(*id)).copied() {
        done.insert(id);
        let definition = catalog.definition_by_id(id);
        definitions.insert(definition.name.clone(), plain(writer.definition(definition)));
    }
    json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": version},
        "paths": paths, "definitions": definitions,
    })
}

/// Version 2 knows no choice between types.
fn plain(mut schema: Value) -> Value {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for property in properties.values_mut() {
            *property = without_choice(property.take());
        }
    }
    schema
}

fn without_choice(mut schema: Value) -> Value {
    // A property that only wraps a reference is the reference.
    if let Some([only]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        let mut only = only.clone();
        for (key, value) in schema.as_object().into_iter().flatten().filter(|(key, _)| *key != "allOf") {
            only[key.as_str()] = value.clone();
        }
        return only;
    }
    if let Some(map) = schema.as_object_mut()
        && map.remove("oneOf").is_some()
    {
        map.insert("type".into(), "string".into());
    }
    for key in ["items", "additionalProperties"] {
        if schema.get(key).is_some_and(Value::is_object) {
            schema[key] = without_choice(schema[key].take());
        }
    }
    schema
}

fn add_paths(paths: &mut Map<String, Value>, resource: &Resource, schema: &str) {
    let gvk = &resource.gvk;
    let base = match gvk.group.as_str() {
        "" => format!("/api/{}", gvk.version),
        group => format!("/apis/{group}/{}", gvk.version),
    };
    let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let kind = json!({"group": gvk.group, "version": gvk.version, "kind": gvk.kind});
    let reference = json!({"$ref": format!("#/definitions/{schema}")});
    let query = |name: &str| json!({"name": name, "in": "query", "type": "string", "uniqueItems": true});
    let operation = |action: &str, writes: bool| {
        let parameters = match writes {
            true => vec![query("dryRun"), query("fieldManager"), query("fieldValidation")],
            false => Vec::new(),
        };
        json!({
            "parameters": parameters, "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind,
            "responses": {"200": {"description": "OK", "schema": reference}},
        })
    };
    let mut collection = Map::new();
    for (verb, method, action) in [
        ("list", "get", "list"),
        ("create", "post", "post"),
        ("deletecollection", "delete", "deletecollection"),
    ] {
        if resource.has_verb(verb) {
            collection.insert(method.into(), operation(action, verb == "create"));
        }
    }
    paths.insert(format!("{base}{scope}/{}", resource.plural), Value::Object(collection));
    let mut item = Map::new();
    for (verb, method) in [("get", "get"), ("update", "put"), ("patch", "patch"), ("delete", "delete")] {
        if resource.has_verb(verb) {
            item.insert(method.into(), operation(method, verb == "update" || verb == "patch"));
        }
    }
    if !item.is_empty() {
        paths.insert(format!("{base}{scope}/{}/{{name}}", resource.plural), Value::Object(item));
    }
}
