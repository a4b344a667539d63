//! Field ownership.

use tiphys_schema::TypeRef;
use tiphys_value::Value;

use crate::ApiResult;

/// Who writes, and how.
pub(crate) struct Applied<'a> {
    pub manager: &'a str,
    pub force: bool,
    pub subresource: &'a str,
    pub api_version: &'a str,
    pub now: &'a str,
}

/// Server-side apply.
pub(crate) fn apply(ty: TypeRef<'_>, current: Option<&Value>, body: &Value, applied: &Applied<'_>) -> ApiResult<Value> {
    let _ = (ty, applied);
    let mut base = current.cloned().unwrap_or_else(|| body.clone());
    crate::patching::strategic_merge(&mut base, body, Some(ty)).map_err(|e| crate::ApiError::bad_request(format!("{e:?}")))?;
    Ok(base)
}

/// Records an update.
pub(crate) fn record(ty: TypeRef<'_>, current: Option<&Value>, object: &mut Value, applied: &Applied<'_>) {
    let _ = (ty, current, object, applied);
}
