//! The last step of every write: to the store, and what the server itself does then.

use std::sync::Arc;

use tiphys_schema::{ErrorList, FieldError, Path};
use tiphys_value::Value;

use super::{At, builtin_status, conversion_webhook, definitions, event_life, protection};
use crate::{
    ApiError, ApiResult, ApiServer, Object, admission, meta,
    store::{AllocationConflict, CommitError, Expect, Write},
};

/// Why a write did not happen.
pub(super) enum Failed {
    /// Somebody else was faster.
    Changed,
    /// It may not happen.
    Refused(ApiError),
}

impl Failed {
    pub(super) fn into_error(self) -> ApiError {
        match self {
            Self::Refused(error) => error,
            Self::Changed => ApiError::new(409, "Conflict", "the object has been modified"),
        }
    }
}

impl From<ApiError> for Failed {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

/// The most that a store like etcd takes in one request, in bytes.
const MAX_STORED: usize = 1536 * 1024;

/// An object that the store can take: one that is too large loses the record of its fields' owners first.
fn within_size(mut object: Value) -> ApiResult<Value> {
    if text_size(&object) <= MAX_STORED || object.to_string().len() <= MAX_STORED {
        return Ok(object);
    }
    meta::metadata_mut(&mut object).remove("managedFields");
    match object.to_string().len() <= MAX_STORED {
        true => Ok(object),
        false => Err(ApiError::new(500, "", "etcdserver: request is too large")),
    }
}

/// At least what the JSON of a value takes unless it needs escapes, in bytes. Bodies are as deep as the
/// parser's limit at most.
fn text_size(value: &Value) -> usize {
    match value {
        Value::String(text) => 2 * text.len() + 2,
        Value::Array(items) => items.iter().map(|item| text_size(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => {
            map.iter().map(|(key, value)| 2 * key.len() + 4 + text_size(value)).sum::<usize>() + 2
        }
        _ => 24,
    }
}

/// What a write takes the place of, if it is still what was read.
fn replaced(server: &ApiServer, at: &At, revision: u64) -> Option<Arc<Object>> {
    let snapshot = server.snapshot();
    let known = snapshot.get(&at.resource.id, &at.namespace, &at.name);
    known.filter(|object| object.revision() == revision).cloned()
}

/// Writes to the store, and does what follows from the write.
pub(super) fn commit(
    server: &ApiServer,
    at: &At,
    expect: Expect,
    object: Value,
    remove: bool,
) -> Result<Arc<Object>, Failed> {
    let object = match remove {
        true => object,
        false => within_size(object)?,
    };
    // Who wrote the object sees it as it was written.
    let (value, written) = match conversion_webhook::stored(server, at, &object)? {
        Some(stored) => (stored, Some(object)),
        None => (object, None),
    };
    let replaced = match expect {
        Expect::Revision(revision) if !remove => replaced(server, at, revision),
        _ => None,
    };
    let write = Write { resource: &at.resource.id, key: &at.key(), expect, value, remove };
    match server.inner.store.commit(write) {
        Ok(object) => {
            after_commit(server, at, &object, remove);
            admission::after_write(server, at, replaced.as_deref(), &object);
            protection::after_write(server, at);
            Ok(match written {
                Some(written) => Arc::new(Object::stamped(written, object.revision())),
                None => object,
            })
        }
        Err(CommitError::Changed) => Err(Failed::Changed),
        Err(CommitError::Allocation(conflict)) => Err(refused_allocation(at, conflict).into()),
    }
}

/// Does what follows from a commit, whoever made it: old events go, built-in states are brought up to date, a
/// changed definition changes what is served.
pub(crate) fn after_commit(server: &ApiServer, at: &At, object: &Object, removed: bool) {
    event_life::after_commit(server, at, object, removed);
    builtin_status::after_commit(server, at, object, removed);
    definitions::after_commit(server, at, object, removed);
}

/// An address or port that a Service asks for cannot be given.
pub(super) fn refused_allocation(at: &At, conflict: AllocationConflict) -> ApiError {
    let fault = FieldError::invalid(&Path::new(conflict.field), conflict.value, conflict.why);
    ApiError::invalid(&at.resource.gvk.group_kind(), &at.name, &ErrorList(vec![fault]))
}
