//! `get` and `list`.

use http::Response;
use tiphys_value::{Value, json};

use super::{
    ResponseBody,
    context::{Context, call_of, warn_deprecated},
    negotiate::Form,
    response::{
        JSON, form_of, json_response, list_text, object_response, partial, raw_response, with_warnings,
    },
    table,
};
use crate::{
    ApiError, ApiResult,
    ops::{self, At},
};

pub(super) fn get(context: &Context<'_>, at: &At) -> ApiResult<Response<ResponseBody>> {
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

pub(super) fn list(context: &Context<'_>, at: &At) -> ApiResult<Response<ResponseBody>> {
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
