//! OpenAPI documents, made from what is known of the kinds.

mod custom;
mod descriptions;
mod schema;
mod v2;
mod v2_protobuf;
mod v3;

use http::Response;
use tiphys_value::{Value, json};

use super::{
    ResponseBody,
    context::Context,
    response::{json_response, raw_response},
};
use crate::{ApiError, ApiResult, registry::Registry};

/// The document's type in protobuf. Clients still ask for it by the name that has an `@`, which is no
/// media type, so no answer can carry it.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const PROTOBUF_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// The document of version 2, in JSON or, for client-go, in protobuf.
fn version_2(context: &Context<'_>, registry: &Registry) -> ApiResult<Response<ResponseBody>> {
    let info = context.server.inner.version.info();
    let document = v2::document(registry, info["gitVersion"].as_str().unwrap_or_default());
    let accept = context.header("accept");
    let wants_protobuf = accept
        .split(',')
        .any(|range| [PROTOBUF, PROTOBUF_ASKED].iter().any(|name| range.trim().starts_with(name)));
    let mut response = match wants_protobuf {
        true => raw_response(200, PROTOBUF, v2_protobuf::encode(&document)),
        false => json_response(200, &document),
    };
    response.headers_mut().insert(http::header::VARY, http::HeaderValue::from_static("Accept"));
    Ok(response)
}

/// Answers `/openapi/...`.
pub(super) fn serve(context: &Context<'_>, path: &str) -> ApiResult<Response<ResponseBody>> {
    let registry = context.server.registry();
    match path.trim_end_matches('/') {
        "/openapi/v2" => version_2(context, &registry),
        "/openapi/v3" => {
            let mut paths = serde_json::Map::new();
            for (group, versions) in registry.groups().iter().map(|known| &**known) {
                for version in versions {
                    let at = if group.is_empty() {
                        format!("api/{version}")
                    } else {
                        format!("apis/{group}/{version}")
                    };
                    let hash = v3::fingerprint(&registry, group, version);
                    let url = json!({"serverRelativeURL": format!("/openapi/v3/{at}?hash={hash}")});
                    paths.insert(at, url);
                }
            }
            Ok(json_response(200, &json!({ "paths": paths })))
        }
        path => {
            let at = path.strip_prefix("/openapi/v3/").ok_or_else(ApiError::no_such_path)?;
            let parts: Vec<&str> = at.split('/').collect();
            let (group, version) = match parts.as_slice() {
                ["api", version] => ("", *version),
                ["apis", group, version] => (*group, *version),
                _ => return Err(ApiError::no_such_path()),
            };
            if !registry.has_group_version(group, version) {
                return Err(ApiError::no_such_path());
            }
            let info = context.server.inner.version.info();
            let document: Value =
                v3::document(&registry, group, version, info["gitVersion"].as_str().unwrap_or_default());
            Ok(json_response(200, &document))
        }
    }
}
