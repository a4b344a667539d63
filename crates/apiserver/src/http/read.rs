//! `get` and `list`.

use http::Response;
use tiphys_value::json;

use super::{
    ResponseBody,
    context::{Context, call_of, warn_deprecated},
    response::{list_response, object_response, scale_response},
};
use crate::{
    ApiError, ApiResult,
    ops::{self, At},
};

pub(super) fn get(context: &Context<'_>, at: &At) -> ApiResult<Response<ResponseBody>> {
    if at.subresource.as_deref() == Some("scale") {
        let scale = ops::get_scale(context.server, at)?;
        return scale_response(context, at, &scale, &call_of(context)?);
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
        let error = ApiError::revision_in_future(asked, context.server.revision());
        return Err(if ops::is_cached(at) { error.with_retry_after(1) } else { error });
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
    let mut call = call_of(context)?;
    warn_deprecated(&at.resource, &mut call);
    list_response(context, at, &page.items, metadata, &call)
}
