//! The four kinds of patch.

use std::sync::Arc;

use tiphys_schema::{Catalog, ErrorList, FieldError, Path, TypeRef};
use tiphys_value::{ObjectExt, Value, json};

use super::{At, Call, convert, decode::expected_kind};
use crate::{
    ApiError, ApiResult, ApiServer, Object, managed_fields, meta,
    patching::{self, PatchFault},
};

/// Most operations in one JSON patch.
const MAX_OPERATIONS: usize = 10_000;

/// How a patch is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    pub fn is_apply(self) -> bool {
        self == Self::Apply
    }
}

/// A patch of an object.
#[derive(Clone, Debug)]
pub struct Patch {
    pub(crate) kind: PatchKind,
    pub(crate) body: Value,
    pub(crate) force: bool,
    /// Keys that occur twice in the text of the body.
    pub(crate) duplicates: Vec<String>,
}

impl Patch {
    fn new(kind: PatchKind, body: Value) -> Self {
        Self { kind, body, force: false, duplicates: Vec::new() }
    }

    /// RFC 6902.
    pub fn json(operations: Value) -> Self {
        Self::new(PatchKind::Json, operations)
    }

    /// RFC 7386.
    pub fn merge(body: Value) -> Self {
        Self::new(PatchKind::Merge, body)
    }

    /// Kubernetes' strategic merge patch; only for built-in kinds.
    pub fn strategic(body: Value) -> Self {
        Self::new(PatchKind::Strategic, body)
    }

    /// Server-side apply; `force` takes over fields that others own.
    pub fn apply(object: Value, force: bool) -> Self {
        Self { force, ..Self::new(PatchKind::Apply, object) }
    }

    /// Whether the patch itself says which version it is for: then a lost race is final.
    pub(super) fn names_version(&self) -> bool {
        self.body.at(&["metadata", "resourceVersion"]).is_some()
    }
}

/// The object that a patch makes of the present one (in the version of the request).
pub(super) fn apply_patch(
    server: &ApiServer,
    call: &Call,
    at: &At,
    current: Option<&Arc<Object>>,
    patch: &Patch,
) -> ApiResult<Value> {
    let mut base = current.map_or_else(|| json!({}), |object| convert::present(&at.resource, object));
    match patch.kind {
        PatchKind::Apply => apply(server, call, at, current.is_some().then_some(&base), patch),
        PatchKind::Json => {
            let operations = patch.body.as_array().map_or(0, Vec::len);
            if operations > MAX_OPERATIONS {
                let message = format!("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {operations}");
                return Err(ApiError::too_large(message));
            }
            patching::json_patch(&mut base, &patch.body).map_err(|fault| patch_error(at, fault))?;
            Ok(base)
        }
        PatchKind::Merge => {
            patching::merge_patch(&mut base, &patch.body);
            Ok(base)
        }
        PatchKind::Strategic => {
            let ty = Catalog::latest().type_of(&expected_kind(at));
            if at.resource.custom.is_some() {
                return Err(ApiError::unsupported_media_type(&[
                    "application/json-patch+json",
                    "application/merge-patch+json",
                    "application/apply-patch+yaml",
                ]));
            }
            patching::strategic_merge(&mut base, &patch.body, ty).map_err(|fault| patch_error(at, fault))?;
            Ok(base)
        }
    }
}

fn patch_error(at: &At, fault: PatchFault) -> ApiError {
    match fault {
        PatchFault::Malformed(message) => ApiError::bad_request(message),
        PatchFault::Inapplicable(message) => {
            let _ = at;
            ApiError::new(422, "Invalid", message)
        }
    }
}

fn apply(server: &ApiServer, call: &Call, at: &At, current: Option<&Value>, patch: &Patch) -> ApiResult<Value> {
    if call.manager.is_empty() {
        let fault = FieldError::required(&Path::new("fieldManager"), "is required for apply patch");
        let kind = tiphys_value::GroupKind::new("meta.k8s.io", "PatchOptions");
        return Err(ApiError::invalid(&kind, "", &ErrorList(vec![fault])));
    }
    let mut body = patch.body.clone();
    if body.at(&["metadata", "managedFields"]).is_some_and(|m| !m.is_null()) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let gvk = expected_kind(at);
    if body.api_version().is_empty() || body.kind().is_empty() {
        return Err(ApiError::bad_request("error decoding YAML: Object 'Kind' is missing in the applied configuration"));
    }
    if body.api_version() != gvk.api_version() {
        let message = format!("Incorrect version specified in apply patch. Specified patch version: {}, expected: {}", body.api_version(), gvk.api_version());
        return Err(ApiError::bad_request(message));
    }
    meta::set(&mut body, "name", &at.name);
    let catalog = Catalog::latest();
    let custom = at.resource.custom.as_ref().and_then(|c| c.schema.as_ref());
    let ty = custom.map(|s| s.type_ref(catalog)).or_else(|| catalog.type_of(&gvk));
    let ty = ty.unwrap_or(TypeRef { catalog, ty: &tiphys_schema::Type::Any });
    let applied = managed_fields::Applied {
        manager: &call.manager,
        force: patch.force,
        subresource: at.subresource.as_deref().unwrap_or_default(),
        api_version: &gvk.api_version(),
        now: &crate::rfc3339_seconds(server.now()),
    };
    managed_fields::apply(ty, current, &body, &applied)
}
