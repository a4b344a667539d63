//! Admission: what may change or refuse a write after it has been authorised. The order is the API
//! server's: built-in plugins and mutating webhooks change, then the object is validated, then
//! pod security, policies, validating webhooks and at last quotas may refuse.

mod builtin;
mod http;
mod limit_ranges;
mod matching;
mod mutation;
mod pod_security;
mod policy;
mod quota;
mod request;
mod webhook;

use tiphys_value::Value;

pub(crate) use quota::after_write;
pub use quota::quota_status;
pub(crate) use request::{Operation, Request};
pub(crate) use webhook::send;

use crate::{
    ApiResult, ApiServer, Object,
    ops::{At, Call},
};

/// Lets plugins and webhooks change what is about to be validated.
pub(crate) fn mutate(request: &Request<'_>, call: &mut Call, object: &mut Value) -> ApiResult<()> {
    if request.operation == Operation::Create && request.at.subresource.is_none() {
        limit_ranges::set_defaults(request, object);
        builtin::on_create(request.server, request.at, object)?;
    }
    if request.operation == Operation::Update && request.at.subresource.is_none() && request.at.is("", "pods")
    {
        builtin::tolerations(object);
    }
    mutation::mutate(request, call, object)?;
    webhook::mutate(request, call, object)
}

/// Asks everyone who may refuse a valid object.
pub(crate) fn validate(request: &Request<'_>, call: &mut Call, object: &Value) -> ApiResult<()> {
    if request.operation == Operation::Create && request.at.subresource.is_none() && request.at.is("", "pods")
    {
        builtin::check_overhead(request.server, request.at, object)?;
    }
    if request.operation == Operation::Update
        && request.at.subresource.is_none()
        && request.at.is("", "persistentvolumeclaims")
        && let Some(old) = request.old
    {
        builtin::check_growth(request.server, request.at, old, object)?;
    }
    limit_ranges::check(request, object)?;
    pod_security::check(request, call, object)?;
    policy::validate(request, call, Some(object))?;
    webhook::validate(request, call, Some(object))?;
    quota::check(request, object)
}

/// Runs a deletion through policies and webhooks.
pub(crate) fn admit_delete(server: &ApiServer, call: &mut Call, at: &At, object: &Object) -> ApiResult<()> {
    let request = Request { server, at, operation: Operation::Delete, old: Some(object) };
    policy::validate(&request, call, None)?;
    webhook::validate(&request, call, None)
}
