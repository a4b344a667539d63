//! From a request body to an object: names checked against the URL, unknown fields found, defaults set.

use tiphys_schema::{Catalog, ErrorList, FieldError, Path, TypeRef, decode, quote};
use tiphys_value::{GroupVersionKind, Map, ObjectExt, Value};

use super::{At, Call};
use crate::{ApiError, ApiResult, meta, registry::Resource};

/// What happens to fields that the kind does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Reads an object that a client sent, in the version of the request.
pub(crate) fn decode_input(call: &mut Call, at: &At, mut object: Value, duplicates: &[String]) -> ApiResult<Value> {
    let expected = expected_kind(at);
    check_kind(&expected, &mut object)?;
    let mut faults: Vec<String> =
        decode_by_type(&at.resource, &expected, &mut object)?.iter().map(|f| format!("unknown field {}", quote(f))).collect();
    faults.extend(duplicates.iter().map(|f| format!("duplicate field {}", quote(f))));
    match call.validation {
        _ if faults.is_empty() => {}
        FieldValidation::Ignore => {}
        FieldValidation::Warn => call.warnings.extend(faults),
        FieldValidation::Strict => match &call.patch_text {
            Some(patch) => return Err(patch_error(patch, &faults)),
            None => return Err(strict_error(&expected, &faults)),
        },
    }
    Ok(object)
}

fn strict_error(expected: &GroupVersionKind, faults: &[String]) -> ApiError {
    let (kind, version) = (&expected.kind, quote(&expected.version));
    let list = faults.join(", ");
    ApiError::bad_request(format!("{kind} in version {version} cannot be handled as a {kind}: strict decoding error: {list}"))
}

/// A patch that brings in fields which the kind does not have.
fn patch_error(patch: &str, faults: &[String]) -> ApiError {
    let detail = format!("strict decoding error: {}", faults.join(", "));
    let fault = FieldError::invalid(&Path::new("patch"), patch, detail);
    let kind = tiphys_value::GroupKind::new("", "");
    ApiError::invalid(&kind, "", &ErrorList(vec![fault]))
}

/// The kind of the request body.
pub(crate) fn expected_kind(at: &At) -> GroupVersionKind {
    let sub = at.subresource.as_deref().and_then(|name| at.resource.subresource(name));
    sub.map_or_else(|| at.resource.gvk.clone(), |sub| sub.gvk.clone())
}

fn check_kind(expected: &GroupVersionKind, object: &mut Value) -> ApiResult<()> {
    let Some(root) = object.as_object_mut() else {
        let kind = &expected.kind;
        return Err(ApiError::bad_request(format!("{kind} in version {} cannot be handled as a {kind}: the body is no JSON object", quote(&expected.version))));
    };
    let (api_version, kind) = (expected.api_version(), expected.kind.clone());
    for (key, wanted) in [("apiVersion", &api_version), ("kind", &kind)] {
        match root.get(key).and_then(Value::as_str).unwrap_or_default() {
            "" => {
                root.insert(key.into(), wanted.as_str().into());
            }
            found if found == wanted => {}
            found if key == "apiVersion" => {
                return Err(ApiError::bad_request(format!(
                    "the API version in the data ({found}) does not match the expected API version ({wanted})"
                )));
            }
            found => {
                return Err(ApiError::bad_request(format!(
                    "{found} in version {} cannot be handled as a {wanted}: no kind {} matches the request",
                    quote(&expected.version),
                    quote(found)
                )));
            }
        }
    }
    Ok(())
}

/// Brings an object into the form of its type and sets defaults; returns the unknown fields.
pub(super) fn decode_by_type(resource: &Resource, gvk: &GroupVersionKind, object: &mut Value) -> ApiResult<Vec<String>> {
    let catalog = Catalog::latest();
    let fail = |e: tiphys_schema::DecodeError| {
        let (kind, version) = (&gvk.kind, quote(&gvk.version));
        ApiError::bad_request(format!("{kind} in version {version} cannot be handled as a {kind}: {e}"))
    };
    if let (Some(custom), true) = (&resource.custom, *gvk == resource.gvk) {
        let mut unknown = decode_metadata(object).map_err(fail)?;
        if let Some(schema) = custom.schema.as_ref().filter(|_| !custom.preserve_unknown) {
            unknown.extend(schema.prune(object));
            schema.apply_defaults(object);
        }
        return Ok(unknown);
    }
    let Some(ty) = catalog.type_of(gvk) else { return Ok(Vec::new()) };
    let decoded = decode(ty, object).map_err(fail)?;
    tiphys_schema::apply_defaults(gvk, object);
    Ok(decoded.unknown_fields)
}

/// The metadata of custom resources is typed even where their schema says nothing.
fn decode_metadata(object: &mut Value) -> Result<Vec<String>, tiphys_schema::DecodeError> {
    let catalog = Catalog::latest();
    let ty = catalog.reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    let (Some(ty), Some(metadata)) = (ty, object.get_mut("metadata")) else {
        meta::metadata_mut(object);
        return Ok(Vec::new());
    };
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let decoded = decode(TypeRef { catalog, ty: &ty }, metadata)?;
    Ok(decoded.unknown_fields.into_iter().map(|field| format!("metadata.{field}")).collect())
}

/// Checks name and namespace of a body against the URL and fills them in.
pub(super) fn bind_to_url(at: &At, object: &mut Value) -> ApiResult<()> {
    if at.resource.namespaced {
        match object.namespace() {
            "" => meta::set(object, "namespace", &at.namespace),
            found if found != at.namespace => {
                return Err(ApiError::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            _ => {}
        }
    } else {
        meta::set(object, "namespace", "");
    }
    if at.name.is_empty() {
        return Ok(());
    }
    match object.name() {
        "" => meta::set(object, "name", &at.name),
        found if found != at.name => {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({found}) does not match the name on the URL ({})",
                at.name
            )));
        }
        _ => {}
    }
    Ok(())
}
