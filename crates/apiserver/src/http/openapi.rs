//! OpenAPI documents, made from what is known of the kinds.

mod schema;
mod v3;

use http::Response;
use tiphys_value::{Value, json};

use super::{
    ResponseBody,
    dispatch::{Context, json_response},
};
use crate::{ApiError, ApiResult};

/// Answers `/openapi/...`.
pub(super) fn serve(context: &Context<'_>, path: &str) -> ApiResult<Response<ResponseBody>> {
    let registry = context.server.registry();
    match path.trim_end_matches('/') {
        "/openapi/v3" => {
            let mut paths = serde_json::Map::new();
            for (group, versions) in registry.groups() {
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
            let document: Value = v3::document(&registry, group, version);
            Ok(json_response(200, &document))
        }
    }
}
