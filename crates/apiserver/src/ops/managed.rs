//! Who owns which field: recorded in `metadata.managedFields` by every write.

use std::sync::Arc;

use tiphys_schema::{Catalog, Type, TypeRef};
use tiphys_value::{ObjectExt, Value};

use super::{At, Call};
use crate::{ApiResult, ApiServer, Object, managed_fields, meta};

/// Records the writer's fields in an object that is about to be stored.
pub(super) fn record(
    server: &ApiServer,
    call: &Call,
    at: &At,
    current: Option<&Arc<Object>>,
    object: &mut Value,
) -> ApiResult<()> {
    let catalog = Catalog::latest();
    let custom = at.resource.custom.as_ref().and_then(|c| c.schema.as_ref());
    let ty = custom.map(|s| s.type_ref(catalog)).or_else(|| catalog.type_of(&object.gvk()));
    let ty = ty.unwrap_or(TypeRef { catalog, ty: &Type::Any });
    let applied = managed_fields::Applied {
        manager: &call.manager,
        force: false,
        subresource: at.subresource.as_deref().unwrap_or_default(),
        api_version: &at.resource.gvk.api_version(),
        now: &crate::rfc3339_seconds(server.now()),
    };
    managed_fields::record(ty, current.map(|c| c.value()), object, &applied);
    Ok(())
}

/// Whether two versions have the same owners, whenever they last wrote.
pub(super) fn same_owners(a: &Value, b: &Value) -> bool {
    let owners = |object: &Value| {
        let mut list = object.at(&["metadata", "managedFields"]).and_then(Value::as_array).cloned().unwrap_or_default();
        for entry in &mut list {
            drop(entry.as_object_mut().map(|e| e.remove("time")));
        }
        list
    };
    let mut probe = a.clone();
    meta::metadata_mut(&mut probe);
    owners(&probe) == owners(b)
}
