//! Paths that are no API: version, health and metrics.

use std::fmt::Write;

use http::Response;
use tiphys_value::json;

use super::{
    ResponseBody,
    response::{json_response, raw_response, text_response},
};
use crate::{ApiError, ApiResult, ApiServer};

/// Paths that are no API: version and health.
pub(super) fn plain(server: &ApiServer, path: &str) -> ApiResult<Response<ResponseBody>> {
    let base = path.trim_end_matches('/');
    match base {
        "/version" => Ok(json_response(200, &server.inner.version.info())),
        "" => Ok(json_response(
            200,
            &json!({"paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]}),
        )),
        "/metrics" => Ok(raw_response(200, "text/plain; version=0.0.4; charset=utf-8", metrics(server))),
        _ if ["/healthz", "/livez", "/readyz"]
            .iter()
            .any(|h| base == *h || base.starts_with(&format!("{h}/"))) =>
        {
            Ok(text_response("ok"))
        }
        _ => Err(ApiError::no_such_path()),
    }
}

/// How many requests were answered, and how many objects of each resource there are, in Prometheus' text
/// format.
fn metrics(server: &ApiServer) -> String {
    let snapshot = server.snapshot();
    let mut text = server.inner.requests.text();
    text.push_str("# TYPE apiserver_storage_objects gauge\n");
    for id in snapshot.resources() {
        let _ = writeln!(text, "apiserver_storage_objects{{resource=\"{id}\"}} {}", snapshot.count(id));
    }
    text
}
