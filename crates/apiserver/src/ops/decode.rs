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
pub(crate) fn decode_input(
    call: &mut Call,
    at: &At,
    mut object: Value,
    duplicates: &[String],
) -> ApiResult<Value> {
    let expected = expected_kind(at);
    check_kind(&at.resource, &expected, &mut object).map_err(|error| match &call.patch_text {
        Some(patch) if error.code() == 400 && at.resource.custom.is_none() => {
            let start = format!("cannot be handled as a {}: ", expected.kind);
            let why = error.message().split_once(&start).map_or(error.message(), |(_, why)| why);
            refused_patch(patch, why)
        }
        _ => error,
    })?;
    if call.patch_text.is_some() && object.name().is_empty() {
        let message = format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            at.name
        );
        return Err(ApiError::bad_request(message));
    }
    let forgets_owners =
        object.at(&["metadata", "managedFields"]).is_some_and(|list| *list == Value::Array(Vec::new()));
    let decoded = match call.applied {
        true => decode_applied(&at.resource, &expected, &mut object),
        false => decode_by_type(&at.resource, &expected, &mut object),
    };
    if forgets_owners && object["metadata"].is_object() {
        // The type does not tell an empty list from none, but this one means something.
        object["metadata"]["managedFields"] = tiphys_value::json!([{}]);
    }
    // A patch that makes something undecodable is at fault itself.
    let decoded = match (&call.patch_text, decoded) {
        (Some(patch), Err(error)) if error.code() == 400 => {
            let why = error.message().split_once(&format!("cannot be handled as a {}: ", expected.kind));
            return Err(refused_patch(patch, why.map_or(error.message(), |(_, why)| why)));
        }
        (_, decoded) => decoded?,
    };
    let mut faults: Vec<String> = decoded.iter().map(|f| format!("unknown field {}", quote(f))).collect();
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
    ApiError::bad_request(format!(
        "{kind} in version {version} cannot be handled as a {kind}: strict decoding error: {list}"
    ))
}

/// A patch that brings in fields which the kind does not have.
fn patch_error(patch: &str, faults: &[String]) -> ApiError {
    refused_patch(patch, &format!("strict decoding error: {}", faults.join(", ")))
}

/// A patch that makes what is no object of its kind.
pub(super) fn refused_patch(patch: &str, detail: &str) -> ApiError {
    let fault = FieldError::invalid(&Path::new("patch"), patch, detail);
    let kind = tiphys_value::GroupKind::new("", "");
    ApiError::invalid(&kind, "", &ErrorList(vec![fault]))
}

/// The kind of the request body.
pub(crate) fn expected_kind(at: &At) -> GroupVersionKind {
    let sub = at.subresource.as_deref().and_then(|name| at.resource.subresource(name));
    sub.map_or_else(|| at.resource.gvk.clone(), |sub| sub.gvk.clone())
}

fn check_kind(resource: &Resource, expected: &GroupVersionKind, object: &mut Value) -> ApiResult<()> {
    let (api_version, kind) = (expected.api_version(), expected.kind.as_str());
    let Some(root) = object.as_object_mut() else {
        let version = quote(&expected.version);
        let message =
            format!("{kind} in version {version} cannot be handled as a {kind}: the body is no JSON object");
        return Err(ApiError::bad_request(message));
    };
    for (key, wanted) in [("apiVersion", api_version.as_str()), ("kind", kind)] {
        if root.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() {
            root.insert(key.into(), wanted.into());
        }
    }
    let found = object.gvk();
    if found == *expected {
        return Ok(());
    }
    if resource.custom.is_some() && found.api_version() == expected.api_version() {
        let detail = format!("must be {}", expected.kind);
        let fault = FieldError::invalid(&Path::new("kind"), found.kind.as_str(), detail);
        return Err(ApiError::invalid(&found.group_kind(), object.name(), &ErrorList(vec![fault])));
    }
    Err(ApiError::bad_request(mismatch(resource, expected, &found)))
}

fn mismatch(resource: &Resource, expected: &GroupVersionKind, found: &GroupVersionKind) -> String {
    if resource.custom.is_some() && found.kind == expected.kind {
        return format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            found.api_version(),
            expected.api_version()
        );
    }
    let start = format!(
        "{} in version {} cannot be handled as a {}",
        found.kind,
        quote(&found.version),
        expected.kind
    );
    let internal = |group: &str| match group.split('.').next() {
        None | Some("") => "core".to_owned(),
        Some(first) => first.to_owned(),
    };
    if Catalog::latest().type_of(found).is_some() {
        let into = format!(
            "({}.{}) to ({}.{})",
            found.version,
            found.kind,
            internal(&expected.group),
            expected.kind
        );
        return format!("{start}: converting {into}: unknown conversion");
    }
    let (kind, version) = (quote(&found.kind), quote(&found.api_version()));
    format!(
        "{start}: no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\""
    )
}

/// Brings an object into the form of its type and sets defaults; returns the unknown fields.
pub(super) fn decode_by_type(
    resource: &Resource,
    gvk: &GroupVersionKind,
    object: &mut Value,
) -> ApiResult<Vec<String>> {
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
    let families = crate::kinds::families_given(object);
    let decoded = decode(ty, object).map_err(fail)?;
    tiphys_schema::apply_defaults(gvk, object);
    if gvk.kind == "Service" && gvk.group.is_empty() {
        crate::kinds::forget_families(&families, object);
    }
    let mut unknown = decoded.unknown_fields;
    // Clients write metadata first, and faults are reported in the order of the text.
    unknown.sort_by_key(|field| !field.starts_with("metadata."));
    Ok(unknown)
}

/// As [`decode_by_type`], what server-side apply made: nulls in custom resources are not taken for absent
/// then.
fn decode_applied(resource: &Resource, gvk: &GroupVersionKind, object: &mut Value) -> ApiResult<Vec<String>> {
    let schema = resource.custom.as_ref().filter(|custom| *gvk == resource.gvk && !custom.preserve_unknown);
    let Some(schema) = schema.and_then(|custom| custom.schema.as_ref()) else {
        return decode_by_type(resource, gvk, object);
    };
    let given = object.clone();
    let unknown = decode_by_type(resource, gvk, object)?;
    let metadata = object["metadata"].take();
    *object = given;
    object["metadata"] = metadata;
    schema.prune(object);
    schema.set_defaults(object);
    Ok(unknown)
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
    let decoded = decode(TypeRef::new(catalog, &ty), metadata)?;
    Ok(decoded.unknown_fields.into_iter().map(|field| format!("metadata.{field}")).collect())
}

/// Checks name and namespace of a body against the URL and fills them in.
pub(crate) fn bind_to_url(at: &At, object: &mut Value) -> ApiResult<()> {
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
