//! Who owns which field: recorded in `metadata.managedFields` by every write.

use tiphys_merge::apply::{ApplyError, Request, apply, track_update};
use tiphys_schema::{Catalog, TypeRef};
use tiphys_value::{GroupVersionKind, ObjectExt, Value};

use super::{At, Call};
use crate::{ApiError, ApiResult, ApiServer, Cause, meta, rfc3339_seconds};

/// Top-level fields that a write through the main resource does not own.
const MAIN_IGNORES: &[&str] = &["status"];

/// The type of the objects of a resource in the version of the request or of the store.
pub(super) fn type_of<'a>(at: &'a At, gvk: &GroupVersionKind) -> Option<TypeRef<'a>> {
    let catalog = Catalog::latest();
    match &at.resource.custom {
        Some(custom) => custom.schema.as_ref().map(|schema| schema.type_ref(catalog)),
        None => catalog.type_of(gvk),
    }
}

fn ignored(at: &At) -> &'static [&'static str] {
    let (kind, subresource) = (at.resource.kind, at.subresource.as_deref());
    if let Some(particular) = (kind.unowned)(subresource) {
        return particular;
    }
    match (subresource, at.resource.subresource("status").is_some()) {
        (Some("status"), _) => kind.status_write.ignored,
        (None, true) => MAIN_IGNORES,
        _ => &[],
    }
}

/// The only field that is owned through a subresource that changes nothing else.
fn only(at: &At) -> &'static str {
    match at.subresource.as_deref() {
        Some("ephemeralcontainers") => "spec.ephemeralContainers",
        _ => "",
    }
}

/// Records the writer's fields in an object that is about to be stored.
pub(super) fn record(server: &ApiServer, call: &Call, at: &At, current: Option<&Value>, object: &mut Value) {
    if call.applied {
        return;
    }
    if !super::version_conversion::renames_fields(&at.resource) {
        return record_in_version(server, call, at, current, object);
    }
    // Fields are owned by the names that they have in the version of the request.
    let shown = |object: &Value| {
        let mut object = object.clone();
        super::version_conversion::to_version(&at.resource, &mut object);
        object
    };
    let mut changed = shown(object);
    record_in_version(server, call, at, current.map(shown).as_ref(), &mut changed);
    meta::copy(object, &changed, "managedFields");
}

/// Records that a controller inside the server wrote the status of an object.
pub(super) fn record_status(server: &ApiServer, at: &At, manager: &str, current: &Value, object: &mut Value) {
    let call = Call::new(crate::auth::User::admin(), manager);
    let at = At { subresource: Some("status".into()), ..at.clone() };
    record(server, &call, &at, Some(current), object);
}

fn record_in_version(server: &ApiServer, call: &Call, at: &At, current: Option<&Value>, object: &mut Value) {
    let gvk = object.gvk();
    let api_version = at.resource.gvk.api_version();
    let is_whole = current.is_some() && at.subresource.is_none();
    let hidden = is_whole && (at.resource.kind.assume)(object);
    let request = Request {
        ty: type_of(at, &gvk),
        manager: &call.manager,
        api_version: &api_version,
        subresource: at.subresource.as_deref().unwrap_or_default(),
        now: &rfc3339_seconds(server.now()),
        ignored: ignored(at),
        only: only(at),
    };
    match current {
        Some(current) => track_change(current, object, &request),
        None => track_update(None, object, &request),
    }
    if hidden {
        (at.resource.kind.forget_assumed)(object);
    }
}

/// Records who changed an object. A writer may replace the record itself: to migrate it, or, with an empty
/// one, to drop it; what has no record is given none until somebody applies.
fn track_change(current: &Value, object: &mut Value, request: &Request<'_>) {
    let is_empty = |owners: &Value| {
        owners.as_array().is_none_or(|list| list.iter().all(|entry| entry["operation"].is_null()))
    };
    let own = owners(object).filter(|own| own.is_array());
    let is_reset = own.and_then(Value::as_array).is_some_and(|list| match list.as_slice() {
        [] => true,
        [only] => only.as_object().is_some_and(|entry| entry.is_empty()),
        _ => false,
    });
    let base = own.filter(|own| !is_empty(own)).or_else(|| owners(current));
    let Some(base) = base.filter(|base| !is_reset && !is_empty(base)) else {
        meta::metadata_mut(object).remove("managedFields");
        return;
    };
    if owners(current) == Some(base) {
        return track_update(Some(current), object, request);
    }
    let mut before = current.clone();
    meta::metadata_mut(&mut before).insert("managedFields".into(), base.clone());
    track_update(Some(&before), object, request);
}

/// The record of who owns the fields of an object.
fn owners(object: &Value) -> Option<&Value> {
    object.at(&["metadata", "managedFields"])
}

/// Records who changed a scale.
pub(super) fn record_scale(
    server: &ApiServer,
    call: &Call,
    ty: Option<TypeRef<'_>>,
    current: &Value,
    scale: &mut Value,
) {
    let request = Request {
        ty,
        manager: &call.manager,
        api_version: "autoscaling/v1",
        subresource: "scale",
        now: &rfc3339_seconds(server.now()),
        ignored: &[],
        only: "",
    };
    track_change(current, scale, &request);
}

/// Server-side apply on the object in the version of the request.
pub(super) fn apply_config(
    server: &ApiServer,
    call: &Call,
    at: &At,
    current: Option<&Value>,
    body: &Value,
    force: bool,
) -> ApiResult<Value> {
    let gvk = super::expected_kind(at);
    let api_version = gvk.api_version();
    let ty = match gvk == at.resource.gvk {
        true => type_of(at, &gvk),
        false => Catalog::latest().type_of(&gvk),
    };
    let request = Request {
        ty,
        manager: &call.manager,
        api_version: &api_version,
        subresource: at.subresource.as_deref().unwrap_or_default(),
        now: &rfc3339_seconds(server.now()),
        ignored: ignored(at),
        only: only(at),
    };
    apply(current, body, &request, force).map_err(|error| apply_error(body, error))
}

fn apply_error(body: &Value, error: ApplyError) -> ApiError {
    let message = error.to_string();
    match error {
        ApplyError::Conflicts(conflicts) => {
            let start = ApiError::new(409, "Conflict", message);
            conflicts.into_iter().fold(start, |error, conflict| {
                error.with_cause(Cause {
                    reason: "FieldManagerConflict".into(),
                    message: format!("conflict with {}", conflict.manager),
                    field: conflict.field,
                })
            })
        }
        ApplyError::Schema(why) => {
            ApiError::new(500, "", format!("failed to create typed patch object ({}): {why}", shown_id(body)))
        }
    }
}

/// How messages about an applied object name it.
pub(super) fn shown_id(body: &Value) -> String {
    format!("{}/{}; {}", body.namespace(), body.name(), body.gvk())
}

/// Whether two versions have the same owners, whenever they last wrote.
pub(super) fn same_owners(a: &Value, b: &Value) -> bool {
    let owners = |object: &Value| {
        let mut list =
            object.at(&["metadata", "managedFields"]).and_then(Value::as_array).cloned().unwrap_or_default();
        for entry in &mut list {
            drop(entry.as_object_mut().map(|e| e.remove("time")));
        }
        list
    };
    owners(a) == owners(b)
}
