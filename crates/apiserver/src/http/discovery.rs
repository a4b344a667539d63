//! Discovery: which groups, versions and resources there are, in the legacy and the aggregated form.

use http::{HeaderValue, Response, StatusCode, header};
use sha2::{Digest, Sha256};
use tiphys_value::{Value, json};

use super::{
    ResponseBody,
    context::Context,
    negotiate::{self, Form},
    path::Route,
    response::json_response,
};
use crate::{
    ApiError, ApiResult,
    registry::{Registry, Resource, Subresource},
};

/// Answers a discovery path.
pub(super) fn serve(context: &Context<'_>, route: &Route<'_>) -> ApiResult<Response<ResponseBody>> {
    let registry = context.server.registry();
    let form = negotiate::form(context.header("accept"))?;
    match (route, form) {
        (Route::CoreVersions, Form::Discovery(version)) => Ok(aggregated(context, &registry, version, true)),
        (Route::Groups, Form::Discovery(version)) => Ok(aggregated(context, &registry, version, false)),
        (Route::CoreVersions, _) => Ok(json_response(
            200,
            &json!({
                "kind": "APIVersions", "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": context.header("host")}],
            }),
        )),
        (Route::Groups, _) => {
            let named = registry.groups().iter().map(|known| &**known).filter(|(name, _)| !name.is_empty());
            let groups: Vec<Value> = named.map(|(name, versions)| group(name, versions)).collect();
            Ok(json_response(200, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})))
        }
        (Route::Group(name), _) => {
            let found = registry.groups().iter().find(|known| known.0 == *name && !name.is_empty());
            let (name, versions) = &**found.ok_or_else(ApiError::no_such_path)?;
            let mut body = group(name, versions);
            body["kind"] = "APIGroup".into();
            body["apiVersion"] = "v1".into();
            Ok(json_response(200, &body))
        }
        (Route::Version(group, version), _) if registry.has_group_version(group, version) => {
            Ok(json_response(200, &resource_list(&registry, group, version)))
        }
        _ => Err(ApiError::no_such_path()),
    }
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn group(name: &str, versions: &[String]) -> Value {
    let entry = |version: &String| json!({"groupVersion": group_version(name, version), "version": version});
    let all: Vec<Value> = versions.iter().map(entry).collect();
    json!({"name": name, "preferredVersion": all.first(), "versions": all})
}

fn resource_list(registry: &Registry, group: &str, version: &str) -> Value {
    let mut resources = Vec::new();
    for resource in registry.of_version(group, version) {
        resources.push(legacy_resource(resource));
        resources.extend(resource.subresources.iter().map(|sub| legacy_subresource(resource, sub)));
    }
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version(group, version),
        "resources": resources,
    })
}

fn legacy_resource(resource: &Resource) -> Value {
    let mut entry = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.gvk.kind, "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        entry["categories"] = resource.categories.clone().into();
    }
    if resource.has_verb("list") {
        entry["storageVersionHash"] = storage_hash(resource).into();
    }
    entry
}

/// Clients only compare these.
fn storage_hash(resource: &Resource) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let text = format!("{}/{}/{}", resource.group(), resource.storage_version, resource.gvk.kind);
    STANDARD.encode(&Sha256::digest(text)[..8])
}

fn legacy_subresource(resource: &Resource, sub: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", resource.plural, sub.name), "singularName": "",
        "namespaced": resource.namespaced, "kind": sub.gvk.kind, "verbs": sub.verbs,
    });
    if sub.gvk.group != resource.gvk.group || sub.gvk.version != resource.gvk.version {
        entry["group"] = sub.gvk.group.as_str().into();
        entry["version"] = sub.gvk.version.as_str().into();
    }
    entry
}

/// The whole of discovery in one document, with an ETag so that clients need not read it twice.
fn aggregated(
    context: &Context<'_>,
    registry: &Registry,
    version: &'static str,
    core: bool,
) -> Response<ResponseBody> {
    let groups = registry.groups().iter().map(|known| &**known).filter(|(name, _)| name.is_empty() == core);
    let items: Vec<Value> = groups
        .map(|(name, versions)| {
            let versions: Vec<Value> =
                versions.iter().map(|v| aggregated_version(registry, name, v)).collect();
            let metadata = if core {
                json!({"creationTimestamp": null})
            } else {
                json!({"name": name, "creationTimestamp": null})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let body = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {}, "items": items,
    });
    let text = body.to_string();
    let tag = format!("\"{:X}\"", Sha256::digest(&text));
    let mut response = json_response(200, &Value::Null);
    let unchanged = context.header("if-none-match").trim_matches('"') == tag.trim_matches('"');
    *response.body_mut() = ResponseBody::full(if unchanged { String::new() } else { text });
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let media = match version {
        "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

fn aggregated_version(registry: &Registry, group: &str, version: &str) -> Value {
    let resources: Vec<Value> = registry.of_version(group, version).map(|r| aggregated_resource(r)).collect();
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = |gvk: &tiphys_value::GroupVersionKind| json!({"group": gvk.group, "version": gvk.version, "kind": gvk.kind});
    let mut entry = json!({
        "resource": resource.plural, "responseKind": kind(&resource.gvk),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        entry["categories"] = resource.categories.clone().into();
    }
    let subs = resource
        .subresources
        .iter()
        .map(|s| json!({"subresource": s.name, "responseKind": kind(&s.gvk), "verbs": s.verbs}));
    let subs: Vec<Value> = subs.collect();
    if !subs.is_empty() {
        entry["subresources"] = subs.into();
    }
    entry
}
