//! How bodies are read.

use bytes::Bytes;
use tiphys_value::{Budget, Value};
use tiphys_yaml::ErrorKind;

use super::{context::Context, json, response::JSON};
use crate::{
    ApiError, ApiResult,
    ops::{self, At, Patch},
};

fn media_type<'a>(context: &'a Context<'_>) -> &'a str {
    context.header("content-type").split(';').next().unwrap_or_default().trim()
}

/// Reads a JSON or YAML body.
pub(super) fn parse_body(context: &Context<'_>, body: &Bytes) -> ApiResult<(Value, Vec<String>)> {
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
pub(super) fn parse_object(context: &Context<'_>, at: &At, body: &Bytes) -> ApiResult<(Value, Vec<String>)> {
    let kind = ops::expected_kind(at).kind;
    if !matches!(media_type(context), "" | JSON) {
        return parse_body(context, body);
    }
    let (value, duplicates) = json::parse(body).map_err(|error| {
        let fault = super::json_syntax::go_words(&error, body);
        ApiError::bad_request(super::json_syntax::unrecognized(&kind, body, &fault))
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
                let message = super::json_syntax::unrecognized(&kind, body, &fault);
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
    let fault = super::json_syntax::not_an_object(what);
    Err(ApiError::bad_request(super::json_syntax::unrecognized(&kind, body, &fault)))
}

fn parse_json(body: &Bytes) -> ApiResult<(Value, Vec<String>)> {
    json::parse(body).map_err(|error| {
        let why = super::json_syntax::go_words(&error, body);
        ApiError::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
    })
}

/// JSON that is a patch of some kind.
fn parse_patch(body: &Bytes, start: &str) -> ApiResult<(Value, Vec<String>)> {
    json::parse(body).map_err(|error| {
        ApiError::bad_request(format!("{start}{}", super::json_syntax::go_words(&error, body)))
    })
}

/// What a body in YAML may mean in memory, in bytes: some forty times its own limit.
const MAX_MEANT: u64 = 128 << 20;

fn parse_yaml(body: &Bytes) -> ApiResult<(Value, Vec<String>)> {
    let text =
        std::str::from_utf8(body).map_err(|e| ApiError::bad_request(format!("error decoding YAML: {e}")))?;
    let value = tiphys_yaml::from_yaml_within(text, &Budget::new(MAX_MEANT)).map_err(|error| match error
        .kind()
    {
        ErrorKind::Budget => ApiError::too_large(format!("Request entity too large: {error}")),
        _ => ApiError::bad_request(format!("error decoding YAML: error converting YAML to JSON: {error}")),
    })?;
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

pub(super) fn patch_of(context: &Context<'_>, body: &Bytes) -> ApiResult<Patch> {
    let (mut patch, duplicates) = match media_type(context) {
        "application/json-patch+json" => {
            parse_patch(body, "error decoding patch: ").map(|(v, d)| (Patch::json(v), d))?
        }
        "application/merge-patch+json" => {
            parse_patch(body, "error decoding patch: ").map(|(v, d)| (Patch::merge(v), d))?
        }
        "application/strategic-merge-patch+json" => {
            parse_patch(body, "").map(|(v, d)| (Patch::strategic(v), d))?
        }
        "application/apply-patch+yaml" | "application/apply-patch+json" => {
            let force = context.query.flag("force");
            // JSON is read faster as what it is; what only looks like it is YAML.
            let json = if body.first() == Some(&b'{') { parse_json(body).ok() } else { None };
            let parsed = json.map_or_else(|| parse_applied(context, body), Ok);
            parsed.map(|(v, d)| (Patch::apply(v, force), d))?
        }
        _ => {
            return Err(ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type"));
        }
    };
    patch.duplicates = duplicates;
    Ok(patch)
}
