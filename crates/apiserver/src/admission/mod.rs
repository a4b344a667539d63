//! Admission: what may change or refuse a write after it has been authorised.

mod builtin;
mod webhook;

use tiphys_value::Value;

use crate::{
    ApiResult, ApiServer, Object,
    ops::{At, Call},
};

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// Runs a create or update through built-in admission and webhooks.
pub(crate) fn admit(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    operation: Operation,
    object: &mut Value,
    old: Option<&Object>,
) -> ApiResult<()> {
    if operation == Operation::Create && at.subresource.is_none() {
        builtin::on_create(server, at, object)?;
    }
    webhook::mutate(server, call, at, operation, object, old)?;
    webhook::validate(server, call, at, operation, Some(object), old)
}

/// Runs a deletion through webhooks.
pub(crate) fn admit_delete(server: &ApiServer, call: &mut Call, at: &At, object: &Object) -> ApiResult<()> {
    webhook::validate(server, call, at, Operation::Delete, None, Some(object))
}
