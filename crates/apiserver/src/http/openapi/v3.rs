//! One OpenAPI v3 document per group and version.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};
use tiphys_schema::Catalog;
use tiphys_value::{Map, Value, json};

use super::schema::Writer;
use crate::registry::{Registry, Resource};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Changes whenever the document does.
pub(super) fn fingerprint(registry: &Registry, group: &str, version: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{group}/{version}"));
    for resource in registry.of_version(group, version) {
        hash.update(&resource.plural);
        if let Some(custom) = &resource.custom {
            hash.update(custom.definition.revision().to_be_bytes());
        }
    }
    format!("{:X}", hash.finalize())
}

/// The document of a group and version: its paths and the schemas of its kinds.
pub(super) fn document(registry: &Registry, group: &str, version: &str) -> Value {
    let catalog = Catalog::latest();
    let mut writer = Writer::new("#/components/schemas/");
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for resource in registry.of_version(group, version) {
        let name = match &resource.custom {
            Some(custom) => {
                let name = custom_name(resource);
                let schema = custom
                    .schema
                    .as_ref()
                    .map_or_else(|| json!({"type": "object"}), |s| s.as_value().clone());
                schemas.insert(name.clone(), custom_schema(resource, schema, "#/components/schemas/"));
                writer.wanted.extend(reference_of(catalog));
                name
            }
            None => match catalog
                .type_of(&resource.gvk)
                .and_then(|ty| Some((ty.ty.clone(), ty.definition()?.name.clone())))
            {
                Some((tiphys_schema::Type::Ref(id), name)) => {
                    writer.wanted.insert(id);
                    name
                }
                _ => continue,
            },
        };
        add_paths(&mut paths, resource, &name);
    }
    for body in
        ["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", "io.k8s.apimachinery.pkg.apis.meta.v1.Status"]
    {
        writer.wanted.extend(
            catalog
                .reference(body)
                .and_then(|ty| if let tiphys_schema::Type::Ref(id) = ty { Some(id) } else { None }),
        );
    }
    let mut done = BTreeSet::new();
    while let Some(id) = writer.wanted.iter().find(|id| !done.contains(*id)).copied() {
        done.insert(id);
        let definition = catalog.definition_by_id(id);
        let schema = writer.definition(definition);
        schemas.insert(definition.name.clone(), schema);
    }
    json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.36.1"},
        "paths": paths, "components": {"schemas": schemas},
    })
}

fn reference_of(catalog: &Catalog) -> Option<u32> {
    match catalog.reference(OBJECT_META)? {
        tiphys_schema::Type::Ref(id) => Some(id),
        _ => None,
    }
}

/// `io.example.v1.Thing` for `Thing` of `example.io/v1`.
pub(super) fn custom_name(resource: &Resource) -> String {
    let reversed: Vec<&str> = resource.group().rsplit('.').collect();
    format!("{}.{}.{}", reversed.join("."), resource.gvk.version, resource.gvk.kind)
}

/// The schema of a custom resource, with what every object has.
pub(super) fn custom_schema(resource: &Resource, mut schema: Value, prefix: &str) -> Value {
    if !schema.is_object() {
        schema = json!({"type": "object"});
    }
    let gvk = &resource.gvk;
    let properties = &mut schema["properties"];
    if !properties.is_object() {
        *properties = json!({});
    }
    properties["apiVersion"] = json!({"type": "string"});
    properties["kind"] = json!({"type": "string"});
    properties["metadata"] = json!({"$ref": format!("{prefix}{OBJECT_META}")});
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": gvk.group, "version": gvk.version, "kind": gvk.kind}]);
    schema
}

fn add_paths(paths: &mut Map<String, Value>, resource: &Resource, schema: &str) {
    let gvk = &resource.gvk;
    let base = if gvk.group.is_empty() {
        format!("/api/{}", gvk.version)
    } else {
        format!("/apis/{}/{}", gvk.group, gvk.version)
    };
    let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let kind = json!({"group": gvk.group, "version": gvk.version, "kind": gvk.kind});
    let body = json!({"application/json": {"schema": {"$ref": format!("#/components/schemas/{schema}")}}});
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let operation = |action: &str, parameters: Vec<Value>| {
        json!({
            "parameters": parameters, "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind,
            "responses": {"200": {"description": "OK", "content": body}},
        })
    };
    let writes = || vec![parameter("dryRun"), parameter("fieldManager"), parameter("fieldValidation")];
    let mut collection = json!({"get": operation("list", vec![])});
    if resource.has_verb("create") {
        collection["post"] = operation("post", writes());
        collection["post"]["requestBody"] = json!({"content": body});
    }
    paths.insert(format!("{base}{scope}/{}", resource.plural), collection);
    let mut item = json!({"get": operation("get", vec![])});
    for (verb, method, action) in
        [("update", "put", "put"), ("patch", "patch", "patch"), ("delete", "delete", "delete")]
    {
        if resource.has_verb(verb) {
            item[method] = operation(action, writes());
        }
    }
    if resource.has_verb("get") {
        paths.insert(format!("{base}{scope}/{}/{{name}}", resource.plural), item);
    }
}
