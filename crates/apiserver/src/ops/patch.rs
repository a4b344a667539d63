//! The four kinds of patch.

use std::sync::Arc;

use tiphys_merge::{JsonPatchError, StrategicError, json_patch, merge_patch, strategic_merge};
use tiphys_schema::{Catalog, ErrorList, FieldError, Path, TypeRef};
use tiphys_value::{ObjectExt, Value, json, json_kind};

use super::{
    At, Call, convert,
    decode::{expected_kind, refused_patch},
    managed,
};
use crate::{ApiError, ApiResult, ApiServer, Object, meta};

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

    /// Whether this is server-side apply.
    pub(crate) fn is_apply(&self) -> bool {
        self.kind.is_apply()
    }

    /// What error messages show of the patch: a strategic one as Go prints a map, otherwise the object
    /// that it makes; nothing for server-side apply, whose body is an object itself.
    pub(super) fn shown(&self, patched: &Value, ty: Option<TypeRef<'_>>) -> Option<String> {
        match self.kind {
            PatchKind::Apply => None,
            PatchKind::Strategic => Some(go_print(&self.body)),
            PatchKind::Json => Some(super::patch_text::shown(patched, Some(&touched(&self.body)), ty)),
            PatchKind::Merge => Some(super::patch_text::shown(patched, Some(&self.body), ty)),
        }
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
    let base = current.map(|object| convert::present(&at.resource, object));
    patched(server, call, at, base.as_ref(), patch)
}

/// What a patch makes of an object, or of a scale.
pub(super) fn patched(
    server: &ApiServer,
    call: &Call,
    at: &At,
    current: Option<&Value>,
    patch: &Patch,
) -> ApiResult<Value> {
    let base = current.cloned().unwrap_or_else(|| json!({}));
    match patch.kind {
        PatchKind::Apply => apply(server, call, at, current, patch),
        PatchKind::Json
            if patch.body.as_array().into_iter().flatten().any(|operation| !operation.is_object()) =>
        {
            Err(json_patch_error(JsonPatchError::Malformed(String::new()), &patch.body))
        }
        PatchKind::Json => {
            json_patch(&base, &patch.body).map_err(|error| json_patch_error(error, &patch.body))
        }
        PatchKind::Merge | PatchKind::Strategic if !patch.body.is_object() => {
            let what = go_kind(&patch.body);
            let start = if patch.kind == PatchKind::Merge { "error decoding patch: " } else { "" };
            Err(ApiError::bad_request(format!(
                "{start}json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
            )))
        }
        PatchKind::Merge => Ok(merge_patch(&base, &patch.body)),
        PatchKind::Strategic if at.resource.custom.is_some() => Err(ApiError::unsupported_media_type(&[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml",
        ])),
        PatchKind::Strategic => {
            let ty = Catalog::latest().type_of(&expected_kind(at));
            strategic_merge(&base, &patch.body, ty).map_err(strategic_error)
        }
    }
}

/// Fills the type of a built-in kind with what a strategic merge patch or server-side apply made: such patches
/// do not go through the JSON decoder.
pub(super) fn fit(at: &At, patch: &Patch, patched: &mut Value) -> ApiResult<()> {
    if at.resource.custom.is_some() || !matches!(patch.kind, PatchKind::Strategic | PatchKind::Apply) {
        return Ok(());
    }
    let gvk = expected_kind(at);
    let Some(ty) = Catalog::latest().type_of(&gvk) else { return Ok(()) };
    tiphys_schema::restore(ty, patched).map_err(|why| match patch.kind {
        PatchKind::Strategic => refused_patch(&go_print(&patch.body), &why),
        _ => {
            let id = managed::shown_id(&patch.body);
            let message = format!(
                "failed to convert new object ({id}) to proper version: unable to convert unstructured object to {gvk}: {why}"
            );
            ApiError::new(500, "", message)
        }
    })
}

fn strategic_error(error: StrategicError) -> ApiError {
    match error {
        StrategicError::NoKey { item, key } => {
            let item = serde_json::from_str(&item).map_or(item, |item: Value| go_print(&item));
            ApiError::new(500, "", format!("map: {item} does not contain declared merge key: {key}"))
        }
        StrategicError::Mixed { before, after } => {
            let shown = |list: &str| {
                serde_json::from_str(list).map_or_else(|_| list.to_owned(), |list| go_print(&list))
            };
            let (before, after) = (shown(&before), shown(&after));
            let message = format!("list element types are not identical: [{before} {after}]");
            ApiError::new(500, "", message)
        }
        StrategicError::Directive { name, map } => {
            let map = serde_json::from_str(&map).map_or(map, |map: Value| go_print(&map));
            ApiError::new(500, "", format!("unknown patch type: {name} in map: {map}"))
        }
    }
}

/// What Go calls a value in JSON; nothing is taken for an object without fields.
fn go_kind(value: &Value) -> &'static str {
    if value.is_null() { "object" } else { json_kind(value) }
}

fn json_patch_error(error: JsonPatchError, body: &Value) -> ApiError {
    let message = error.to_string();
    match error {
        JsonPatchError::TooMany(_) => ApiError::too_large(message),
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
    managed::apply_config(server, call, at, current, &body, patch.force)
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

/// A value as Go's `%v` prints it. Bodies are as deep as the JSON parser's limit at most.
fn go_print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_print).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            let entries = entries.iter().map(|(key, value)| format!("{key}:{}", go_print(value)));
            format!("map[{}]", entries.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_maps_as_go_does() {
        assert_eq!(go_print(&json!({"b": [1, "x"], "a": {"c": null}})), "map[a:map[c:<nil>] b:[1 x]]");
    }
}
