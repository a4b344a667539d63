//! From a request to the verb it asks for, and from its result to a response.

use std::{fmt::Write, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts};
use tiphys_schema::{FieldError, Path};
use tiphys_value::{ObjectExt, Value, json};

use super::{
    ResponseBody, discovery, json,
    negotiate::{self, Form},
    openapi,
    path::{ResourcePath, Route, route},
    query::Query,
    table, watch,
};
use crate::{
    ApiError, ApiResult, ApiServer, Object,
    auth::{self, Attributes, User},
    ops::{self, At, Call, DeleteOptions, FieldValidation, Patch},
    registry::Resource,
};

const JSON: &str = "application/json";
/// The media types of objects.
const SERVED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
/// Kinds whose deletion answers with the object even when it is gone at once.
const RETURNED_WHEN_DELETED: [(&str, &str); 18] = [
    ("", "namespaces"),
    ("", "pods"),
    ("", "services"),
    ("", "serviceaccounts"),
    ("", "persistentvolumes"),
    ("", "persistentvolumeclaims"),
    ("", "podtemplates"),
    ("", "resourcequotas"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "devicetaintrules"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
    ("resource.k8s.io", "resourceslices"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattachments"),
    ("storage.k8s.io", "volumeattributesclasses"),
];
/// There is one flow of requests, and it has room for all.
const FLOW: &str = "00000000-0000-4000-8000-000000000000";
/// Answers in order of arrival; nothing in them may be kept by a cache.
const NO_CACHE: &str = "no-cache, private";

/// Everything about a request but its body.
pub(super) struct Context<'a> {
    pub server: &'a ApiServer,
    pub user: User,
    pub method: &'a Method,
    pub headers: &'a HeaderMap,
    pub query: Query,
    pub path: &'a str,
}

impl Context<'_> {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
    }
}

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
            let context =
                Context { server, user, method: &parts.method, headers: &parts.headers, query, path: &path };
            answer(context, body).await
        }
        Err(error) => Err(error),
    };
    let mut response = answer.unwrap_or_else(|error| error_response(&error));
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

/// Paths that are no API: version and health.
fn plain(server: &ApiServer, path: &str) -> ApiResult<Response<ResponseBody>> {
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

/// Numbers the requests of a process. Not from the server's source of uids: reading must not change what
/// is created next.
fn next_audit_id() -> String {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("00000000-0000-4000-8000-{:012x}", number & 0xffff_ffff_ffff)
}

/// How many objects of each resource there are, in Prometheus' text format.
fn metrics(server: &ApiServer) -> String {
    let snapshot = server.snapshot();
    let mut text = String::from("# TYPE apiserver_storage_objects gauge\n");
    for id in snapshot.resources() {
        let _ = writeln!(text, "apiserver_storage_objects{{resource=\"{id}\"}} {}", snapshot.count(id));
    }
    text
}

/// The user that a request acts as, if its headers name one and its own user may do that.
fn impersonated(context: &Context<'_>) -> ApiResult<User> {
    let name = context.header("impersonate-user");
    let all = |header: &str| -> Vec<String> {
        let values = context.headers.get_all(header).iter();
        values.filter_map(|v| v.to_str().ok()).map(str::to_owned).collect()
    };
    let groups = all("impersonate-group");
    let uid = context.header("impersonate-uid");
    let extra = impersonated_extra(context);
    if name.is_empty() {
        if groups.is_empty() && uid.is_empty() && extra.is_empty() {
            return Ok(context.user.clone());
        }
        let quoted: Vec<String> = groups.iter().map(|group| tiphys_schema::quote(group)).collect();
        return Err(ApiError::bad_request(format!(
            "requested &user.DefaultInfo{{Name:\"\", UID:{}, Groups:[]string{{{}}}, Extra:map[string][]string(nil)}} without impersonating a user name",
            tiphys_schema::quote(uid),
            quoted.join(", ")
        )));
    }
    let service_account = name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    let may = |group: &str, resource: &str, namespace: &str, name: &str| {
        let wish = Attributes {
            verb: "impersonate".into(),
            group: group.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
            path: String::new(),
        };
        auth::authorize(context.server, &context.user, &wish)
    };
    match service_account {
        Some((namespace, account)) => may("", "serviceaccounts", namespace, account)?,
        None => may("", "users", "", name)?,
    }
    groups.iter().try_for_each(|group| may("", "groups", "", group))?;
    for (key, values) in &extra {
        let resource = format!("userextras/{key}");
        values.iter().try_for_each(|value| may("authentication.k8s.io", &resource, "", value))?;
    }
    let mut user = match service_account {
        Some((namespace, account)) if groups.is_empty() => User::service_account(namespace, account, ""),
        _ => User { name: name.to_owned(), ..User::default() },
    };
    user.groups.extend(groups);
    let known = if name == "system:anonymous" { "system:unauthenticated" } else { "system:authenticated" };
    if !user.groups.iter().any(|group| group == known) {
        user.groups.push(known.into());
    }
    user.uid = uid.to_owned();
    user.extra = extra;
    Ok(user)
}

fn impersonated_extra(context: &Context<'_>) -> std::collections::BTreeMap<String, Vec<String>> {
    let mut extra: std::collections::BTreeMap<String, Vec<String>> = std::collections::BTreeMap::new();
    for (name, value) in context.headers {
        let Some(key) = name.as_str().strip_prefix("impersonate-extra-") else { continue };
        if let Ok(value) = value.to_str() {
            extra.entry(super::query::decode(key)).or_default().push(value.to_owned());
        }
    }
    extra
}

fn wish(context: &Context<'_>, route: &Route<'_>) -> Attributes {
    let Route::Resource(path) = route else {
        let verb = context.method.as_str().to_lowercase();
        return Attributes { verb, path: context.path.to_owned(), ..Attributes::default() };
    };
    let many = path.name.is_empty();
    let watches = path.watch || (context.query.flag("watch") && many);
    let verb = match (context.method, many) {
        (&Method::GET | &Method::HEAD, _) if watches => "watch",
        (&Method::GET | &Method::HEAD, true) => "list",
        (&Method::GET | &Method::HEAD, false) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, true) => "deletecollection",
        (&Method::DELETE, false) => "delete",
        _ => "",
    };
    let resource = match path.subresource {
        Some(sub) => format!("{}/{sub}", path.plural),
        None => path.plural.to_owned(),
    };
    Attributes {
        verb: verb.into(),
        group: path.group.into(),
        resource,
        namespace: if path.plural == "namespaces" { path.name } else { path.namespace }.into(),
        name: path.name.into(),
        path: String::new(),
    }
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
        check_subresource(context, &at, sub)?;
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
    if !at.name.is_empty() && at.resource.has_verb("get") {
        ops::get(context.server, at)?;
    }
    // What runs inside a container does not exist here.
    let hollow = matches!(name, "exec" | "attach" | "portforward" | "proxy" | "log");
    if hollow {
        let named = format!("{}/{name}", at.resource.plural);
        return Err(ApiError::method_not_supported(
            crate::Named { group: at.resource.group(), resource: &named, name: "" },
            verb,
        ));
    }
    Ok(())
}

fn get(context: &Context<'_>, at: &At) -> ApiResult<Response<ResponseBody>> {
    if at.subresource.as_deref() == Some("scale") {
        return Ok(json_response(200, &ops::get_scale(context.server, at)?));
    }
    if !at.resource.has_verb("get") {
        return Err(ApiError::method_not_allowed());
    }
    let version = context.query.get("resourceVersion");
    let asked = ops::parse_revision(version).map_err(|_| {
        let quoted = tiphys_schema::quote(version);
        let why = format!(
            "resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: invalid syntax"
        );
        // Events are read past the cache, which says it in another way.
        match at.resource.plural.as_str() {
            "events" => ApiError::bad_request(format!("invalid resource version: {why}")),
            _ => ApiError::new(500, "", why),
        }
    })?;
    if asked > context.server.revision() {
        return Err(ApiError::revision_in_future(asked, context.server.revision()));
    }
    let object = ops::get(context.server, at)?;
    let mut call = call_of(context)?;
    warn_deprecated(&at.resource, &mut call);
    object_response(context, at, 200, &object, &call)
}

/// The form of an answer about a resource.
fn form_of(context: &Context<'_>, resource: &Resource) -> ApiResult<Form> {
    negotiate::form(context.header("accept")).map_err(|_| match resource.custom.is_some() {
        true => ApiError::not_acceptable(&[SERVED]),
        false => ApiError::new(
            406,
            "NotAcceptable",
            format!("406: Not Acceptable\n\nAvailable representations: {SERVED}"),
        ),
    })
}

fn list(context: &Context<'_>, at: &At) -> ApiResult<Response<ResponseBody>> {
    if !at.resource.has_verb("list") {
        return Err(ApiError::method_not_allowed());
    }
    context.query.check_list()?;
    let page = ops::list(context.server, at, &context.query.list_options())?;
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    if let Some(token) = &page.continue_token {
        metadata["continue"] = token.as_str().into();
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    let body = match form_of(context, &at.resource)? {
        Form::Table => table::of_objects(context, &at.resource, &page.items, metadata, true)?.to_string(),
        Form::Metadata | Form::MetadataList => {
            let items: Vec<Value> = page.items.iter().map(|o| partial(o)).collect();
            json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items}).to_string()
        }
        _ => list_text(&at.resource, &page.items, &metadata),
    };
    let mut call = call_of(context)?;
    warn_deprecated(&at.resource, &mut call);
    Ok(with_warnings(raw_response(200, JSON, body), &call))
}

/// Writes a list from the texts of its objects, which are made once per object.
fn list_text(resource: &Resource, items: &[Arc<Object>], metadata: &Value) -> String {
    let head =
        json!({"kind": resource.list_kind, "apiVersion": resource.gvk.api_version(), "metadata": metadata})
            .to_string();
    let mut text = head.trim_end_matches('}').to_owned();
    // The metadata is the last but one object that closes.
    let closing = head.len() - text.len();
    text.push_str(&"}".repeat(closing - 1));
    text.push_str(",\"items\":[");
    for (at, object) in items.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        match resource.custom {
            Some(_) => text.push_str(&object_text(resource, object)),
            None => text.push_str(&item_text(resource, object)),
        }
    }
    text.push_str("]}");
    text
}

/// An item of a list of built-in objects: the list says what they are.
fn item_text(resource: &Resource, object: &Arc<Object>) -> String {
    let converted;
    let value = match object.value().api_version() == resource.gvk.api_version() {
        true => object.value(),
        false => {
            converted = ops::present(resource, object);
            &converted
        }
    };
    let mut text = String::from("{");
    for (key, part) in
        value.as_object().into_iter().flatten().filter(|(key, _)| *key != "apiVersion" && *key != "kind")
    {
        let comma = if text.len() > 1 { "," } else { "" };
        let _ = write!(text, "{comma}{}:{part}", Value::from(key.as_str()));
    }
    text.push('}');
    text
}

/// An object as JSON in the version of a resource.
pub(super) fn object_text(resource: &Resource, object: &Arc<Object>) -> String {
    if ops::is_shown_as_stored(resource, object) {
        return String::from_utf8_lossy(&object.json()).into_owned();
    }
    ops::present(resource, object).to_string()
}

pub(super) fn partial(object: &Value) -> Value {
    const INTERNAL: &str = "deprecated.daemonset.template.generation";
    let mut metadata = object["metadata"].clone();
    // What this annotation says is a field of the form that metadata is taken from.
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations.filter(|annotations| annotations.contains_key(INTERNAL)) {
        annotations.remove(INTERNAL);
        if annotations.is_empty() {
            drop(metadata.as_object_mut().map(|metadata| metadata.remove("annotations")));
        }
    }
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

async fn write(context: &Context<'_>, at: &At, body: &Bytes) -> ApiResult<Response<ResponseBody>> {
    let mut call = call_of(context)?;
    let server = context.server;
    warn_deprecated(&at.resource, &mut call);
    let (object, created) = match (context.method, at.subresource.as_deref()) {
        (&Method::PATCH, Some("scale")) => {
            let patch = patch_of(context, body)?;
            let change = |scale: Value| ops::patch_plain(&scale, &patch);
            return Ok(json_response(200, &ops::update_scale(server, &mut call, at, &change)?));
        }
        (&Method::PUT, Some("scale")) => {
            let (sent, _) = parse_body(context, body)?;
            let change = |_| Ok(sent.clone());
            return Ok(json_response(200, &ops::update_scale(server, &mut call, at, &change)?));
        }
        (&Method::PATCH, _) => {
            if !at.resource.has_verb("patch") || at.name.is_empty() {
                return Err(ApiError::method_not_allowed());
            }
            let patch = patch_of(context, body).map_err(|error| match at.resource.custom.is_some() {
                true if error.code() == 415 => ApiError::unsupported_media_type(&[
                    "application/json-patch+json",
                    "application/merge-patch+json",
                    "application/apply-patch+yaml",
                ]),
                _ => error,
            })?;
            if !context.query.get("force").is_empty() && !patch.is_apply() {
                let why = "may not be specified for non-apply patch";
                let fault = FieldError::forbidden(&Path::new("force"), why);
                return Err(ApiError::invalid_options("PatchOptions", fault));
            }
            ops::patch(server, &mut call, at, &patch)?
        }
        (&Method::PUT, _) => {
            if at.resource.custom.is_some() && at.name.is_empty() {
                return Err(ApiError::bad_request("name must be provided"));
            }
            if !at.resource.has_verb("update") || at.name.is_empty() {
                return Err(ApiError::method_not_allowed());
            }
            let (sent, duplicates) = parse_object(context, at, body)?;
            let whole = whole_object(at);
            let object = ops::decode_input(&mut call, &whole, sent, &duplicates)?;
            ops::update_decoded(server, &mut call, at, object)?
        }
        _ => {
            let (sent, duplicates) = parse_object(context, at, body)?;
            if at.subresource.is_some() {
                let answer = ops::create_subresource(server, &mut call, at, sent)?;
                return Ok(with_warnings(json_response(201, &answer), &call));
            }
            if !at.name.is_empty() && at.resource.custom.is_none() {
                return Err(ApiError::method_not_allowed());
            }
            if at.resource.verbs == ["create"] {
                if form_of(context, &at.resource)? != Form::Objects {
                    return Err(ApiError::not_acceptable(&[SERVED]));
                }
                let object = ops::decode_input(&mut call, at, sent, &duplicates)?;
                let mut object = object;
                ops::record_review(server, &call, at, &mut object);
                let answer = auth::review(server, &context.user, at, object)?;
                return Ok(json_response(201, &answer));
            }
            let object = ops::decode_input(&mut call, at, sent, &duplicates)?;
            (ops::create_decoded(server, &mut call, at, object)?, true)
        }
    };
    if !call.dry_run {
        server.inner.store.durable(object.revision()).await.map_err(ApiError::internal)?;
    }
    object_response(context, at, if created { 201 } else { 200 }, &object, &call)
}

fn whole_object(at: &At) -> At {
    match at.subresource.as_deref().and_then(|name| at.resource.subresource(name)) {
        Some(sub) if sub.gvk == at.resource.gvk => At { subresource: None, ..at.clone() },
        _ => at.clone(),
    }
}

async fn delete(context: &Context<'_>, at: &At, body: &Bytes) -> ApiResult<Response<ResponseBody>> {
    let mut call = call_of(context)?;
    let mut options = match body.is_empty() {
        true => DeleteOptions::default(),
        false => {
            let (sent, _) = parse_body(context, body)?;
            call.dry_run |= sent["dryRun"].as_array().is_some_and(|d| d.iter().any(|v| v == "All"));
            DeleteOptions::from_value(&sent)?
        }
    };
    context.query.add_delete_options(&mut options)?;
    warn_deprecated(&at.resource, &mut call);
    if at.is("batch", "jobs") && options.propagation.is_none() {
        call.warnings.push(ops::JOB_ORPHANS.to_owned());
    }
    let server = context.server;
    if at.name.is_empty() {
        if !at.resource.has_verb("deletecollection") {
            return Err(ApiError::method_not_allowed());
        }
        let deleted = ops::delete_collection(server, &mut call, at, &context.query.list_options(), &options)?;
        server.inner.store.durable(server.revision()).await.map_err(ApiError::internal)?;
        let metadata = json!({"resourceVersion": server.revision().to_string()});
        let response = raw_response(200, JSON, list_text(&at.resource, &deleted, &metadata));
        return Ok(with_warnings(response, &call));
    }
    let outcome = ops::delete(server, &mut call, at, &options)?;
    if !call.dry_run {
        server.inner.store.durable(outcome.object.revision()).await.map_err(ApiError::internal)?;
    }
    if !outcome.gone || RETURNED_WHEN_DELETED.iter().any(|(group, plural)| at.is(group, plural)) {
        return object_response(context, at, 200, &outcome.object, &call);
    }
    let details = json!({"name": at.name, "kind": at.resource.plural, "uid": outcome.object.uid()});
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    if !at.resource.group().is_empty() {
        status["details"]["group"] = at.resource.group().into();
    }
    Ok(with_warnings(json_response(200, &status), &call))
}

fn call_of(context: &Context<'_>) -> ApiResult<Call> {
    let query = &context.query;
    let agent = context.header("user-agent");
    let manager = match (query.get("fieldManager"), *context.method == Method::PATCH) {
        ("", true) if context.header("content-type").starts_with("application/apply-patch") => "",
        ("", _) => agent.split('/').next().unwrap_or_default(),
        (given, _) => given,
    };
    let mut call = Call::new(context.user.clone(), manager);
    let options = match *context.method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::DELETE => "DeleteOptions",
        _ => "PatchOptions",
    };
    let unsupported = |field: &str, value: Value, supported: &[&str]| {
        let fault = FieldError::not_supported(&Path::new(field), value, supported);
        Err(ApiError::invalid_options(options, fault))
    };
    call.dry_run = match query.get("dryRun") {
        "" => false,
        "All" => true,
        other => return unsupported("dryRun", json!([other]), &["All"]),
    };
    call.validation = match query.get("fieldValidation") {
        "" | "Warn" => FieldValidation::Warn,
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        other => return unsupported("fieldValidation", other.into(), &["", "Ignore", "Strict", "Warn"]),
    };
    Ok(call)
}

/// Built-in kinds that warn of their end (deprecation guide of Kubernetes).
fn deprecation_of(resource: &Resource) -> Option<&'static str> {
    match (resource.group(), resource.plural.as_str()) {
        ("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        ("", "endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        }
        _ => None,
    }
}

fn warn_deprecated(resource: &Resource, call: &mut Call) {
    if let Some(text) = deprecation_of(resource).filter(|_| resource.custom.is_none()) {
        call.warnings.push(text.to_owned());
    }
    if let Some(text) = resource.custom.as_ref().and_then(|c| c.deprecation.as_ref()) {
        call.warnings.push(text.clone());
    }
}

fn media_type<'a>(context: &'a Context<'_>) -> &'a str {
    context.header("content-type").split(';').next().unwrap_or_default().trim()
}

/// Reads a JSON or YAML body.
fn parse_body(context: &Context<'_>, body: &Bytes) -> ApiResult<(Value, Vec<String>)> {
    match media_type(context) {
        "" | JSON => parse_json(body),
        "application/yaml" | "application/x-yaml" => parse_yaml(body),
        "application/vnd.kubernetes.protobuf" => {
            let value = super::protobuf::decode(body).map_err(|e| ApiError::bad_request(e.to_string()))?;
            Ok((value, Vec::new()))
        }
        _ => Err(ApiError::unsupported_media_type(&[
            JSON,
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
        ])),
    }
}

/// Reads a body that must be an object of the resource's kind.
fn parse_object(context: &Context<'_>, at: &At, body: &Bytes) -> ApiResult<(Value, Vec<String>)> {
    let kind = ops::expected_kind(at).kind;
    if !matches!(media_type(context), "" | JSON) {
        return parse_body(context, body);
    }
    let (value, duplicates) = json::parse(body).map_err(|error| {
        let fault = super::syntax::go_words(&error, body);
        ApiError::bad_request(super::syntax::unrecognized(&kind, body, &fault))
    })?;
    let what = match &value {
        Value::Object(fields) => {
            let missing = [("apiVersion", "apiVersion"), ("kind", "Kind")]
                .into_iter()
                .find(|(key, _)| fields.get(*key).and_then(Value::as_str).unwrap_or_default().is_empty());
            // Built-in kinds are told by the path, custom ones have to say what they are.
            if let Some((_, shown)) =
                missing.filter(|_| at.resource.custom.is_some() && at.subresource.is_none())
            {
                let text = String::from_utf8_lossy(body);
                let fault = format!("Object '{shown}' is missing in '{text}'");
                let message = super::syntax::unrecognized(&kind, body, &fault);
                return Err(ApiError::bad_request(message.replacen(
                    "couldn't get version/kind; json parse error: ",
                    "",
                    1,
                )));
            }
            return Ok((value, duplicates));
        }
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::Null => return Ok((Value::Object(serde_json::Map::new()), duplicates)),
    };
    let fault = super::syntax::not_an_object(what);
    Err(ApiError::bad_request(super::syntax::unrecognized(&kind, body, &fault)))
}

fn parse_json(body: &Bytes) -> ApiResult<(Value, Vec<String>)> {
    json::parse(body)
        .map_err(|e| ApiError::bad_request(format!("couldn't get version/kind; json parse error: {e}")))
}

fn parse_yaml(body: &Bytes) -> ApiResult<(Value, Vec<String>)> {
    let text =
        std::str::from_utf8(body).map_err(|e| ApiError::bad_request(format!("error decoding YAML: {e}")))?;
    let value = tiphys_yaml::from_yaml(text)
        .map_err(|e| ApiError::bad_request(format!("error decoding YAML: {e}")))?;
    Ok((value, Vec::new()))
}

/// Reads an applied configuration in YAML, whose duplicate keys are faults of the text.
fn parse_applied(context: &Context<'_>, body: &Bytes) -> ApiResult<(Value, Vec<String>)> {
    let parsed = parse_yaml(body)?;
    let text = String::from_utf8_lossy(body);
    match tiphys_yaml::from_yaml_strict(&text) {
        Err(why) if context.query.get("fieldValidation") == "Strict" => Err(ApiError::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: {why}"
        ))),
        _ => Ok(parsed),
    }
}

fn patch_of(context: &Context<'_>, body: &Bytes) -> ApiResult<Patch> {
    let read = |parsed: ApiResult<(Value, Vec<String>)>| parsed;
    let (mut patch, duplicates) = match media_type(context) {
        "application/json-patch+json" => read(parse_json(body)).map(|(v, d)| (Patch::json(v), d))?,
        "application/merge-patch+json" => read(parse_json(body)).map(|(v, d)| (Patch::merge(v), d))?,
        "application/strategic-merge-patch+json" => {
            read(parse_json(body)).map(|(v, d)| (Patch::strategic(v), d))?
        }
        "application/apply-patch+yaml" | "application/apply-patch+json" => {
            let force = context.query.flag("force") && !context.query.get("force").is_empty();
            let parsed =
                if body.first() == Some(&b'{') { parse_json(body) } else { parse_applied(context, body) };
            parsed.map(|(v, d)| (Patch::apply(v, force), d))?
        }
        _ => {
            return Err(ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type"));
        }
    };
    patch.duplicates = duplicates;
    Ok(patch)
}

/// An object in the form that the client asked for.
fn object_response(
    context: &Context<'_>,
    at: &At,
    code: u16,
    object: &Arc<Object>,
    call: &Call,
) -> ApiResult<Response<ResponseBody>> {
    let response = match form_of(context, &at.resource)? {
        Form::Table => {
            let metadata = json!({"resourceVersion": object.resource_version()});
            let table =
                table::of_objects(context, &at.resource, std::slice::from_ref(object), metadata, true)?;
            json_response(code, &table)
        }
        Form::Metadata | Form::MetadataList => json_response(code, &partial(object)),
        _ if ops::is_shown_as_stored(&at.resource, object) => raw_response(code, JSON, object.json()),
        _ => json_response(code, &ops::present(&at.resource, object)),
    };
    Ok(with_warnings(response, call))
}

fn with_warnings(mut response: Response<ResponseBody>, call: &Call) -> Response<ResponseBody> {
    for warning in &call.warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append("warning", value);
        }
    }
    response
}

pub(super) fn json_response(code: u16, value: &Value) -> Response<ResponseBody> {
    raw_response(code, JSON, value.to_string())
}

pub(super) fn text_response(text: &'static str) -> Response<ResponseBody> {
    raw_response(200, "text/plain; charset=utf-8", text)
}

pub(super) fn raw_response(
    code: u16,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::full(body));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(NO_CACHE));
    response
}

/// The `Status` of a refused request.
pub(super) fn error_response(error: &ApiError) -> Response<ResponseBody> {
    if error.is_no_such_path() {
        return raw_response(404, "text/plain; charset=utf-8", "404 page not found\n");
    }
    let mut response = json_response(error.code(), &error.to_value());
    if error.retry_after_seconds() > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, error.retry_after_seconds().into());
    }
    response
}
