//! The four kinds of patch.

use tiphys_merge::{
    JsonPatchError, RejectionKind, StrategicError, go_print, json_patch, merge_patch, strategic_merge,
};
use tiphys_schema::{Catalog, ErrorList, FieldError, Path, TypeRef};
use tiphys_value::{ObjectExt, Value, json, json_kind};

use super::{
    At, Call,
    decode::{decode_input, expected_kind, refused_patch},
    managed_fields,
};
use crate::{ApiError, ApiResult, ApiServer, meta};

/// How a patch is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    pub(crate) fn is_apply(self) -> bool {
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

    /// Whether this is server-side apply.
    pub(crate) fn is_apply(&self) -> bool {
        self.kind.is_apply()
    }

    /// What error messages show of the patch: what is left of a strategic one as Go prints a map, otherwise
    /// the object that it makes; nothing for server-side apply, whose body is an object itself.
    fn error_text(&self, patched: &Patched, at: &At, ty: Option<TypeRef<'_>>) -> Option<String> {
        let object = &patched.object;
        match self.kind {
            PatchKind::Apply => None,
            // Custom resources have no structs that would give their fields an order.
            _ if at.resource.custom.is_some() => Some(super::patch_text::sorted(object)),
            PatchKind::Strategic => Some(go_print(&patched.left)),
            PatchKind::Json => {
                Some(super::patch_text::format_patched(object, Some(&touched(&self.body)), ty))
            }
            PatchKind::Merge => Some(super::patch_text::format_patched(object, Some(&self.body), ty)),
        }
    }

    /// Whether the patch itself says which version it is for: then a lost race is final.
    pub(super) fn names_version(&self) -> bool {
        self.body.at(&["metadata", "resourceVersion"]).is_some()
    }
}

/// What a patch makes of an object.
struct Patched {
    object: Value,
    /// What is left of a strategic merge patch when it has been worked in.
    left: Value,
}

/// The object that a patch makes of the present one, in the version of the request, read as one that a client
/// sends. `whole` is where an object of its type would be sent to.
pub(super) fn read_patched(
    server: &ApiServer,
    call: &mut Call,
    (at, whole): (&At, &At),
    current: Option<&Value>,
    patch: &Patch,
    ty: Option<TypeRef<'_>>,
) -> ApiResult<Value> {
    let made = || -> ApiResult<Patched> {
        let mut patched = patched(server, call, at, current, patch)?;
        fit(whole, patch, &mut patched)?;
        Ok(patched)
    };
    let (first, is_apply) = (made()?, patch.is_apply());
    let mut inner = Call { applied: is_apply, patch_text: (!is_apply).then(String::new), ..call.clone() };
    let read = decode_input(&mut inner, whole, first.object, &patch.duplicates);
    if read.is_err() && !is_apply {
        // Only who is refused is shown what the patch comes to.
        let again = made()?;
        inner.patch_text = patch.error_text(&again, at, ty);
        return decode_input(&mut inner, whole, again.object, &patch.duplicates);
    }
    *call = inner;
    read
}

/// Strategic merge patches need structs, which custom resources have none of.
pub(super) fn check_kind_of_patch(at: &At, patch: &Patch) -> ApiResult<()> {
    if patch.kind != PatchKind::Strategic || at.resource.custom.is_none() {
        return Ok(());
    }
    Err(ApiError::unsupported_media_type(&[
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ]))
}

fn patched(
    server: &ApiServer,
    call: &Call,
    at: &At,
    current: Option<&Value>,
    patch: &Patch,
) -> ApiResult<Patched> {
    let nothing = json!({});
    let base = current.unwrap_or(&nothing);
    let mut left = Value::Null;
    let object = match patch.kind {
        PatchKind::Apply => apply(server, call, at, current, patch),
        PatchKind::Json
            if patch.body.as_array().into_iter().flatten().any(|operation| !operation.is_object()) =>
        {
            Err(json_patch_error(JsonPatchError::Malformed(String::new()), &patch.body))
        }
        PatchKind::Json => {
            json_patch(base, &patch.body).map_err(|error| json_patch_error(error, &patch.body))
        }
        PatchKind::Merge | PatchKind::Strategic if !patch.body.is_object() => {
            let what = go_kind(&patch.body);
            let start = if patch.kind == PatchKind::Merge { "error decoding patch: " } else { "" };
            Err(ApiError::bad_request(format!(
                "{start}json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
            )))
        }
        PatchKind::Merge => Ok(merge_patch(base, &patch.body)),
        PatchKind::Strategic => {
            let ty = Catalog::latest().type_of(&expected_kind(at));
            left = patch.body.clone();
            strategic_merge(base, &mut left, ty).map_err(strategic_error)
        }
    };
    Ok(Patched { object: object?, left })
}

/// Fills the type of a built-in kind with what a strategic merge patch or server-side apply made: such
/// patches do not go through the JSON decoder.
fn fit(at: &At, patch: &Patch, patched: &mut Patched) -> ApiResult<()> {
    if at.resource.custom.is_some() || !matches!(patch.kind, PatchKind::Strategic | PatchKind::Apply) {
        return Ok(());
    }
    let gvk = expected_kind(at);
    let Some(ty) = Catalog::latest().type_of(&gvk) else { return Ok(()) };
    let Patched { object, left } = patched;
    tiphys_schema::restore(ty, object).map_err(|why| match patch.kind {
        PatchKind::Strategic => refused_patch(&go_print(left), &why),
        _ => {
            let id = managed_fields::shown_id(&patch.body);
            let message = format!(
                "failed to convert new object ({id}) to proper version: unable to convert unstructured object to {gvk}: {why}"
            );
            ApiError::new(500, "", message)
        }
    })
}

fn strategic_error(error: StrategicError) -> ApiError {
    match error.fault {
        RejectionKind::Format => ApiError::bad_request(error.message),
        RejectionKind::Unprocessable => ApiError::new(422, "", error.message),
        RejectionKind::Unexpected => ApiError::new(500, "", error.message),
    }
}

/// What Go calls a value in JSON; nothing is taken for an object without fields.
fn go_kind(value: &Value) -> &'static str {
    if value.is_null() { "object" } else { json_kind(value) }
}

fn json_patch_error(error: JsonPatchError, body: &Value) -> ApiError {
    let message = error.to_string();
    match error {
        JsonPatchError::TooMany(_) | JsonPatchError::TooLarge(_) => ApiError::too_large(message),
        JsonPatchError::Malformed(_) => {
            let items = body.as_array().into_iter().flatten();
            let (what, into) = match items.map(go_kind).find(|kind| *kind != "object") {
                Some(kind) => (kind, "handlers.jsonPatchOp"),
                None => (go_kind(body), "[]handlers.jsonPatchOp"),
            };
            let message =
                format!("error decoding patch: json: cannot unmarshal {what} into Go value of type {into}");
            ApiError::bad_request(message)
        }
        _ => ApiError::new(422, "Invalid", "the server rejected our request due to an error in our request")
            .with_retry_after(0),
    }
}

fn apply(
    server: &ApiServer,
    call: &Call,
    at: &At,
    current: Option<&Value>,
    patch: &Patch,
) -> ApiResult<Value> {
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
    if body.is_array() {
        return Err(ApiError::bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ));
    }
    if body.api_version().is_empty() || body.kind().is_empty() {
        let (group, version) = body.api_version().split_once('/').unwrap_or(("", body.api_version()));
        let message = format!("invalid object type: {group}/{version}, Kind={}", body.kind());
        return Err(ApiError::bad_request(message));
    }
    if Catalog::latest().type_of(&body.gvk()).is_none() && at.resource.custom.is_none() {
        let (group, version) = body.api_version().split_once('/').unwrap_or(("", body.api_version()));
        let message = format!("invalid object type: {group}/{version}, Kind={}", body.kind());
        return Err(ApiError::bad_request(message));
    }
    if body.api_version() != gvk.api_version() {
        let message = format!(
            "Incorrect version specified in apply patch. Specified patch version: {}, expected: {}",
            body.api_version(),
            gvk.api_version()
        );
        return Err(ApiError::bad_request(message));
    }
    if body.kind() != gvk.kind && at.resource.custom.is_none() {
        let message = format!("invalid object type: {}/{}, Kind={}", gvk.group, gvk.version, body.kind());
        return Err(ApiError::bad_request(message));
    }
    let name = body.name();
    if !name.is_empty() && name != at.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            at.name
        )));
    }
    meta::set(&mut body, "name", &at.name);
    managed_fields::apply_config(server, call, at, current, &body, patch.force)
}

/// The objects that the operations of a JSON patch look into, as nested objects.
fn touched(operations: &Value) -> Value {
    let mut tree = json!({});
    for operation in operations.as_array().into_iter().flatten() {
        for path in ["path", "from"].into_iter().filter_map(|key| operation.str_at(&[key])) {
            let steps: Vec<&str> = path.split('/').skip(1).collect();
            let mut at = &mut tree;
            for step in steps.iter().take(steps.len().saturating_sub(1)) {
                let key = step.replace("~1", "/").replace("~0", "~");
                at = &mut at[key];
                if !at.is_object() {
                    *at = json!({});
                }
            }
        }
    }
    tree
}
