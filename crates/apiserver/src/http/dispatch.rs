//! From a request to the verb that it asks for.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, header, request::Parts};

use super::{
    ResponseBody,
    context::Context,
    discovery,
    identity::{impersonated, wish},
    non_api_paths::plain,
    openapi,
    path::{ResourcePath, Route, route},
    port_forward,
    query::Query,
    read::{get, list},
    response::{error_response, in_wanted_syntax},
    watch,
    write::{delete, write},
};
use crate::{
    ApiError, ApiResult, ApiServer,
    auth::{self, User},
    ops::{self, At},
    registry::Resource,
};

/// There is one flow of requests, and it has room for all.
const FLOW: &str = "00000000-0000-4000-8000-000000000000";

/// Answers a request. `user` is given where the client needs no token.
pub(super) async fn handle(
    server: &ApiServer,
    user: Option<User>,
    parts: &Parts,
    body: Bytes,
) -> Response<ResponseBody> {
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let path = super::query::decode(&parts.uri.path().replace('+', "%2B"));
    let authenticated = match user {
        Some(user) => Ok(user),
        None => {
            let header = parts.headers.get(header::AUTHORIZATION).map(|v| v.to_str().unwrap_or("?"));
            auth::authenticate(server, header)
        }
    };
    let answer = match authenticated {
        Ok(user) => {
            let upgrade = parts.extensions.get();
            let (method, headers) = (&parts.method, &parts.headers);
            let context = Context { server, user, method, headers, query, path: &path, upgrade };
            answer(context, body).await
        }
        Err(error) => Err(error),
    };
    let response = answer.unwrap_or_else(|error| error_response(&error));
    let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut response = in_wanted_syntax(accept, response);
    let headers = response.headers_mut();
    let audit = parts.headers.get("audit-id").cloned();
    let audit = audit.or_else(|| HeaderValue::from_str(&next_audit_id()).ok());
    if let Some(audit) = audit {
        headers.insert("audit-id", audit);
    }
    headers.insert("x-kubernetes-pf-flowschema-uid", HeaderValue::from_static(FLOW));
    headers.insert("x-kubernetes-pf-prioritylevel-uid", HeaderValue::from_static(FLOW));
    response
}

async fn answer(mut context: Context<'_>, body: Bytes) -> ApiResult<Response<ResponseBody>> {
    context.user = impersonated(&context)?;
    let route = route(context.path);
    auth::authorize(context.server, &context.user, &wish(&context, &route))?;
    match route {
        Route::Resource(path) => {
            let found = context.server.registry().find(path.group, path.version, path.plural).cloned();
            match found {
                Some(resource) => on_resource(&context, resource, &path, &body).await,
                None if context.server.registry().has_group(path.group) => Err(ApiError::no_such_resource()),
                None if path.group == "metrics.k8s.io" => Err(no_metrics(path.plural)),
                None => Err(ApiError::no_such_path()),
            }
        }
        _ if !matches!(*context.method, Method::GET | Method::HEAD) => Err(ApiError::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )),
        Route::Other(path) if path.starts_with("/openapi/") => openapi::serve(&context, path),
        Route::Other(path) => plain(context.server, path),
        other => discovery::serve(&context, &other),
    }
}

/// What `kubectl top` asks for.
fn no_metrics(resource: &str) -> ApiError {
    let why = "the server could not find the requested resource: no program runs in the Pods of this cluster, so nothing uses processors or memory";
    ApiError::new(404, "NotFound", why).with_details(crate::Named {
        group: "metrics.k8s.io",
        resource,
        name: "",
    })
}

/// Numbers the requests of a process. Not from the server's source of uids: reading must not change what
/// is created next.
fn next_audit_id() -> String {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("00000000-0000-4000-8000-{:012x}", number & 0xffff_ffff_ffff)
}

async fn on_resource(
    context: &Context<'_>,
    resource: Arc<Resource>,
    path: &ResourcePath<'_>,
    body: &Bytes,
) -> ApiResult<Response<ResponseBody>> {
    if !path.namespace.is_empty() && !resource.namespaced {
        return Err(ApiError::no_such_resource());
    }
    let by_name = !path.name.is_empty() || *context.method == Method::POST;
    if resource.namespaced && path.namespace.is_empty() && by_name {
        return Err(ApiError::no_such_resource());
    }
    let at = At {
        resource,
        namespace: path.namespace.to_owned(),
        name: path.name.to_owned(),
        subresource: path.subresource.map(str::to_owned),
    };
    if let Some(sub) = path.subresource {
        if sub == "portforward"
            && let Some(connection) = port_forward::requested_upgrade(context)
        {
            let pod = ops::get(context.server, &at)?;
            let target =
                port_forward::Target { pod: pod.value().clone(), backend: context.server.pod_backend() };
            return Ok(port_forward::begin(connection, target));
        }
        check_subresource(context, &at, sub)?;
        if sub == "log" {
            return super::logs::serve(context, &at);
        }
    }
    let watches = path.watch || context.query.flag("watch");
    match *context.method {
        Method::GET | Method::HEAD if at.name.is_empty() && watches => watch::serve(context, &at),
        Method::GET | Method::HEAD if watches && at.subresource.is_none() => watch::serve(context, &at),
        Method::GET | Method::HEAD if at.name.is_empty() => list(context, &at),
        Method::GET | Method::HEAD => get(context, &at),
        Method::POST | Method::PUT | Method::PATCH => write(context, &at, body).await,
        Method::DELETE => delete(context, &at, body).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}

fn check_subresource(context: &Context<'_>, at: &At, name: &str) -> ApiResult<()> {
    let Some(sub) = at.resource.subresource(name) else {
        return Err(if at.resource.custom.is_some() { at.not_found() } else { ApiError::no_such_resource() });
    };
    let verb = match *context.method {
        Method::GET | Method::HEAD => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        _ => "delete",
    };
    if !sub.verbs.iter().any(|v| v == verb) {
        return Err(ApiError::method_not_allowed());
    }
    // What is bound is first compared with the path.
    if !at.name.is_empty() && at.resource.has_verb("get") && name != "binding" {
        ops::get(context.server, at)?;
    }
    // What runs inside a container does not exist here.
    let why = match name {
        "exec" | "attach" => {
            "no program runs in the Pods of this cluster: their life is played, and `kubectl logs` says what is known of it"
        }
        "portforward" | "proxy" => "nothing listens there: no program runs in the Pods of this cluster",
        _ => return Ok(()),
    };
    let named = format!("{}/{name}", at.resource.plural);
    let named = crate::Named { group: at.resource.group(), resource: &named, name: "" };
    Err(ApiError::new(405, "MethodNotAllowed", format!("{name} is not supported: {why}")).with_details(named))
}
