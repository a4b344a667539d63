//! How answers are written.

use std::{fmt::Write, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use tiphys_value::{ObjectExt, Value, json};

use super::{
    ResponseBody,
    context::Context,
    negotiate::{self, Form},
    table,
};
use crate::{
    ApiError, ApiResult, Object,
    ops::{self, At, Call},
    registry::Resource,
};

pub(super) const JSON: &str = "application/json";

/// Answers in order of arrival; nothing in them may be kept by a cache.
const NO_CACHE: &str = "no-cache, private";

/// The media types of objects.
pub(super) const SERVED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The form of an answer about a resource.
pub(super) fn form_of(context: &Context<'_>, resource: &Resource) -> ApiResult<Form> {
    negotiate::choice(context.header("accept")).map(|choice| choice.form).map_err(|is_known| {
        match is_known || resource.custom.is_some() {
            true => ApiError::not_acceptable(&[SERVED]),
            false => ApiError::new(
                406,
                "NotAcceptable",
                format!("406: Not Acceptable\n\nAvailable representations: {SERVED}"),
            ),
        }
    })
}

/// An object in the form that the client asked for.
pub(super) fn object_response(
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

/// A list in the form that the client asked for.
pub(super) fn list_response(
    context: &Context<'_>,
    at: &At,
    items: &[Arc<Object>],
    metadata: Value,
    call: &Call,
) -> ApiResult<Response<ResponseBody>> {
    let body = match form_of(context, &at.resource)? {
        Form::Table => table::of_objects(context, &at.resource, items, metadata, true)?.to_string(),
        Form::Metadata | Form::MetadataList => {
            let items: Vec<Value> = items.iter().map(|object| partial(object)).collect();
            let items = if items.is_empty() { Value::Null } else { items.into() };
            json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items}).to_string()
        }
        _ => list_text(&at.resource, items, &metadata),
    };
    Ok(with_warnings(raw_response(200, JSON, body), call))
}

/// A scale in the form that the client asked for.
pub(super) fn scale_response(
    context: &Context<'_>,
    at: &At,
    scale: &Value,
    call: &Call,
) -> ApiResult<Response<ResponseBody>> {
    let answer = match form_of(context, &at.resource)? {
        Form::Table => table::of_scale(context, scale)?,
        Form::Metadata | Form::MetadataList => partial(scale),
        _ => scale.clone(),
    };
    Ok(with_warnings(json_response(200, &answer), call))
}

/// Answers in YAML, or in an older version of the forms, if that is what the client takes first.
pub(super) fn in_wanted_syntax(accept: &str, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    let Ok(choice) = negotiate::choice(accept) else { return response };
    if !choice.is_yaml && !choice.is_beta {
        return response;
    }
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|value| value == JSON);
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    let Some(mut value) = response.body().whole().filter(|_| is_json).and_then(|bytes| read(bytes)) else {
        return response;
    };
    if choice.is_beta && value["apiVersion"] == "meta.k8s.io/v1" {
        value["apiVersion"] = "meta.k8s.io/v1beta1".into();
        for row in value["rows"].as_array_mut().into_iter().flatten() {
            if row["object"]["apiVersion"] == "meta.k8s.io/v1" {
                row["object"]["apiVersion"] = "meta.k8s.io/v1beta1".into();
            }
        }
    }
    let text = match choice.is_yaml {
        true => tiphys_yaml::to_yaml(&value),
        false => value.to_string(),
    };
    if choice.is_yaml {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
    }
    *response.body_mut() = ResponseBody::full(text);
    response
}

/// Writes a list from the texts of its objects, which are made once per object.
pub(super) fn list_text(resource: &Resource, items: &[Arc<Object>], metadata: &Value) -> String {
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

pub(super) fn with_warnings(mut response: Response<ResponseBody>, call: &Call) -> Response<ResponseBody> {
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
