//! `create`, `update`, `patch` and `delete`.

use bytes::Bytes;
use http::{Method, Response};
use tiphys_schema::{FieldError, Path};
use tiphys_value::{ObjectExt, Value, json};

use super::{
    ResponseBody,
    context::{Context, call_of, warn_deprecated},
    negotiate::Form,
    request::{parse_body, parse_object, patch_of},
    response::{
        SERVED, form_of, json_response, list_response, object_response, partial, scale_response,
        with_warnings,
    },
};
use crate::{
    ApiError, ApiResult,
    auth::{self},
    ops::{self, At, DeleteOptions},
};

pub(super) async fn write(context: &Context<'_>, at: &At, body: &Bytes) -> ApiResult<Response<ResponseBody>> {
    let mut call = call_of(context)?;
    let server = context.server;
    warn_deprecated(&at.resource, &mut call);
    let (object, created) = match (context.method, at.subresource.as_deref()) {
        (&Method::PATCH, Some("scale")) => {
            let patch = patch_of(context, body)?;
            let change = ops::ScaleChange::Patch(&patch);
            let scale = ops::update_scale(server, &mut call, at, &change)?;
            return scale_response(context, at, &scale, &call);
        }
        (&Method::PUT, Some("scale")) => {
            let (sent, _) = parse_body(context, body)?;
            let change = ops::ScaleChange::Put(&sent);
            let scale = ops::update_scale(server, &mut call, at, &change)?;
            return scale_response(context, at, &scale, &call);
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
                if form_of(context, &at.resource)? != Form::Objects {
                    return Err(ApiError::not_acceptable(&[SERVED]));
                }
                let answer = ops::create_subresource(server, &mut call, at, sent)?;
                return Ok(with_warnings(json_response(201, &answer), &call));
            }
            if !at.name.is_empty() && at.resource.custom.is_none() {
                return Err(ApiError::method_not_allowed());
            }
            if at.is("", "bindings") {
                let pod = binding_of(context, at, &sent)?;
                let answer = ops::create_subresource(server, &mut call, &pod, sent)?;
                return Ok(with_warnings(json_response(201, &answer), &call));
            }
            if at.resource.verbs == ["create"] {
                let form = form_of(context, &at.resource)?;
                if !matches!(form, Form::Objects | Form::Metadata) {
                    return Err(ApiError::not_acceptable(&[SERVED]));
                }
                let object = ops::decode_input(&mut call, at, sent, &duplicates)?;
                let mut object = object;
                // Of questions about rules nobody is recorded.
                if at.resource.plural != "selfsubjectrulesreviews" {
                    ops::record_review(server, &call, at, &mut object);
                }
                let mut answer = auth::review(server, &context.user, at, object)?;
                if form == Form::Metadata {
                    answer = partial(&answer);
                }
                return Ok(with_warnings(json_response(201, &answer), &call));
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

/// The subresource that a `Binding` stands for.
fn binding_of(context: &Context<'_>, at: &At, binding: &Value) -> ApiResult<At> {
    let pods = context.server.registry().find("", "v1", "pods").cloned();
    let resource = pods.ok_or_else(ApiError::no_such_resource)?;
    let name = binding.name().to_owned();
    Ok(At { resource, namespace: at.namespace.clone(), name, subresource: Some("binding".into()) })
}

fn whole_object(at: &At) -> At {
    match at.subresource.as_deref().and_then(|name| at.resource.subresource(name)) {
        Some(sub) if sub.gvk == at.resource.gvk => At { subresource: None, ..at.clone() },
        _ => at.clone(),
    }
}

pub(super) async fn delete(
    context: &Context<'_>,
    at: &At,
    body: &Bytes,
) -> ApiResult<Response<ResponseBody>> {
    let mut call = call_of(context)?;
    let mut options = match body.is_empty() {
        true => DeleteOptions::default(),
        false => {
            let (mut sent, _) = parse_body(context, body)?;
            ops::check_delete_options(&mut sent)?;
            call.dry_run |= sent["dryRun"].as_array().is_some_and(|d| d.iter().any(|v| v == "All"));
            DeleteOptions::from_value(&sent)?
        }
    };
    context.query.add_delete_options(&mut options)?;
    warn_deprecated(&at.resource, &mut call);
    if let Some(warning) = at.resource.kind.deletion_warning.filter(|_| options.propagation.is_none()) {
        call.warnings.push(warning.to_owned());
    }
    let server = context.server;
    if at.name.is_empty() {
        // Not of all namespaces at once.
        if !at.resource.has_verb("deletecollection") || (at.resource.namespaced && at.namespace.is_empty()) {
            return Err(ApiError::method_not_allowed());
        }
        let deleted = ops::delete_collection(server, &mut call, at, &context.query.list_options(), &options)?;
        server.inner.store.durable(server.revision()).await.map_err(ApiError::internal)?;
        let metadata = json!({"resourceVersion": server.revision().to_string()});
        return list_response(context, at, &deleted, metadata, &call);
    }
    let outcome = ops::delete(server, &mut call, at, &options)?;
    if !call.dry_run {
        server.inner.store.durable(outcome.object.revision()).await.map_err(ApiError::internal)?;
    }
    if !outcome.gone || at.resource.kind.is_returned_when_deleted {
        return object_response(context, at, 200, &outcome.object, &call);
    }
    let details = json!({"name": at.name, "kind": at.resource.plural, "uid": outcome.object.uid()});
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    if !at.resource.group().is_empty() {
        status["details"]["group"] = at.resource.group().into();
    }
    Ok(with_warnings(json_response(200, &status), &call))
}
