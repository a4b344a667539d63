//! One OpenAPI v3 document per group and version.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};
use tiphys_schema::Catalog;
use tiphys_value::{Map, Value, json};

use super::{
    custom::{self, Dialect},
    schema::Writer,
};
use crate::registry::{Registry, Resource};

/// What the schemas of custom resources refer to.
const META: [&str; 2] =
    ["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"];
/// What requests and answers of every resource have as bodies.
const BODIES: [&str; 2] =
    ["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", "io.k8s.apimachinery.pkg.apis.meta.v1.Status"];

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

/// The document of a group and version, with the version of the server: its paths and the schemas of its
/// kinds.
pub(super) fn document(registry: &Registry, group: &str, version: &str, server: &str) -> Value {
    let catalog = Catalog::latest();
    let mut writer = Writer::new(Dialect::V3.prefix());
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for resource in registry.of_version(group, version) {
        let name = match &resource.custom {
            Some(_) => {
                schemas.extend(custom::schemas(resource, Dialect::V3));
                writer.wanted.extend(META.iter().filter_map(|name| reference_of(catalog, name)));
                custom::name(resource)
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
    writer.wanted.extend(BODIES.iter().filter_map(|name| reference_of(catalog, name)));
    let mut done = BTreeSet::new();
    while let Some(id) = writer.wanted.iter().find(|id| !done.contains(*id)).copied() {
        done.insert(id);
        let definition = catalog.definition_by_id(id);
        let schema = writer.definition(definition);
        schemas.insert(definition.name.clone(), schema);
    }
    json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": server},
        "paths": paths, "components": {"schemas": schemas},
    })
}

fn reference_of(catalog: &Catalog, name: &str) -> Option<u32> {
    match catalog.reference(name)? {
        tiphys_schema::Type::Ref(id) => Some(id),
        _ => None,
    }
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
