//! The `Status` that every refused request gets (API conventions, "Response Status Kind"), with the
//! texts that clients match on.

use std::fmt;

use tiphys_schema::{ErrorList, FieldError, quote};
use tiphys_value::{GroupKind, Map, Value, json};

/// One entry of `details.causes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable reason, such as `FieldValueInvalid`.
    pub reason: String,
    /// Human-readable text.
    pub message: String,
    /// Field path in JSON notation; may be empty.
    pub field: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Details {
    group: String,
    kind: String,
    name: String,
    uid: String,
    causes: Vec<Cause>,
    retry_after_seconds: u32,
    continue_token: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Details>,
}

/// A failed API request: what becomes the `Status` body of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError(Box<Inner>);

/// The result of an API request.
pub type ApiResult<T> = Result<T, ApiError>;

/// A resource and its group, as errors print it: `deployments.apps`.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Plural resource name (or the kind, for validation errors).
    pub resource: &'a str,
    /// Object name; may be empty.
    pub name: &'a str,
}

/// The reasons that the API knows (API conventions, "Response Status Kind"); anything else is no reason.
pub(crate) fn known_reason(text: &str) -> &'static str {
    const KNOWN: [&str; 19] = [
        "Unauthorized",
        "Forbidden",
        "NotFound",
        "AlreadyExists",
        "Conflict",
        "Gone",
        "Invalid",
        "ServerTimeout",
        "StoreReadError",
        "Timeout",
        "TooManyRequests",
        "BadRequest",
        "MethodNotAllowed",
        "NotAcceptable",
        "RequestEntityTooLarge",
        "UnsupportedMediaType",
        "InternalError",
        "Expired",
        "ServiceUnavailable",
    ];
    KNOWN.iter().find(|known| **known == text).copied().unwrap_or_default()
}

impl Named<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    fn details(&self) -> Details {
        Details {
            group: self.group.to_owned(),
            kind: self.resource.to_owned(),
            name: self.name.to_owned(),
            ..Details::default()
        }
    }
}

impl ApiError {
    /// Any error: status code, reason and message.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { code, reason, message: message.into(), details: None }))
    }

    fn about(code: u16, reason: &'static str, message: String, details: Details) -> Self {
        Self(Box::new(Inner { code, reason, message, details: Some(details) }))
    }

    /// Adds the token with which an expired list goes on.
    #[must_use]
    pub(crate) fn with_continue(mut self, token: String) -> Self {
        self.0.details.get_or_insert_default().continue_token = token;
        self
    }

    /// The same error under another code and reason.
    #[must_use]
    pub fn with_code(mut self, code: u16, reason: &'static str) -> Self {
        self.0.code = code;
        self.0.reason = reason;
        self
    }

    /// 404 for an object.
    pub fn not_found(what: Named<'_>) -> Self {
        let message = format!("{} {} not found", what.qualified(), quote(what.name));
        Self::about(404, "NotFound", message, what.details())
    }

    /// 404 for a resource that a served version does not have.
    pub fn no_such_resource() -> Self {
        Self::no_such_path().with_retry_after(0)
    }

    /// 405 for a verb that a path does not have.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::about(405, "MethodNotAllowed", message.into(), Details::default())
    }

    /// 422 for request parameters: `kind` is such as `CreateOptions`.
    pub fn invalid_options(kind: &str, error: FieldError) -> Self {
        Self::invalid(&GroupKind::new("meta.k8s.io", kind), "", &ErrorList(vec![error]))
    }

    /// 404 for a path that nothing serves.
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    /// 409 for a name that is taken.
    pub fn already_exists(what: Named<'_>) -> Self {
        let message = format!("{} {} already exists", what.qualified(), quote(what.name));
        Self::about(409, "AlreadyExists", message, what.details())
    }

    /// The same with words in front of its message.
    #[must_use]
    pub(crate) fn with_prefix(mut self, prefix: &str) -> Self {
        self.0.message.insert_str(0, prefix);
        self
    }

    /// 409 for a write that lost a race or a precondition.
    pub fn conflict(what: Named<'_>, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {}: {why}", what.qualified(), quote(what.name));
        Self::about(409, "Conflict", message, what.details())
    }

    /// 409 for a write based on an old version.
    pub fn modified(what: Named<'_>) -> Self {
        Self::conflict(
            what,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 403 with the object's name in front.
    pub fn forbidden(what: Named<'_>, why: &str) -> Self {
        let message = match (what.resource.is_empty(), what.name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{} is forbidden: {why}", what.qualified()),
            (false, false) => format!("{} {} is forbidden: {why}", what.qualified(), quote(what.name)),
        };
        Self::about(403, "Forbidden", message, what.details())
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 405 for a verb that the resource does not have.
    pub fn method_not_supported(what: Named<'_>, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", what.qualified());
        let details = Details { group: what.group.into(), kind: what.resource.into(), ..Details::default() };
        Self::about(405, "MethodNotAllowed", message, details)
    }

    /// 406 for an `Accept` header that nothing satisfies.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let list = accepted.join(", ");
        Self::new(406, "NotAcceptable", format!("only the following media types are accepted: {list}"))
    }

    /// 410 for a revision that is gone.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 415 for a body format that the resource does not take.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let list = accepted.join(", ");
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {list}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 422 from the faults found in an object.
    pub fn invalid(kind: &GroupKind, name: &str, errors: &ErrorList) -> Self {
        let what = Named { group: &kind.group, resource: &kind.kind, name };
        let message = format!("{kind} {} is invalid: {errors}", quote(name));
        let causes = errors.iter().map(cause_of).collect();
        Self::about(422, "Invalid", message, Details { causes, ..what.details() })
    }

    /// 500.
    pub fn internal(why: impl fmt::Display) -> Self {
        let message = format!("Internal error occurred: {why}");
        let cause = Cause { message: why.to_string(), ..Cause::default() };
        Self::about(500, "InternalError", message, Details { causes: vec![cause], ..Details::default() })
    }

    /// 504 for a revision that has not happened yet.
    pub fn revision_in_future(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            ..Cause::default()
        };
        let details = Details { causes: vec![cause], ..Details::default() };
        Self::about(504, "Timeout", message, details)
    }

    /// Adds a cause.
    #[must_use]
    pub fn with_cause(mut self, cause: Cause) -> Self {
        self.0.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// Asks the client to come back after so many seconds.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.0.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// Names the object that the error is about, keeping the message.
    #[must_use]
    pub fn with_details(mut self, what: Named<'_>) -> Self {
        let causes = self.0.details.take().map(|d| d.causes).unwrap_or_default();
        self.0.details = Some(Details { causes, ..what.details() });
        self
    }

    /// HTTP status code.
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// Machine-readable reason, such as `NotFound`.
    pub fn reason(&self) -> &'static str {
        self.0.reason
    }

    /// Human-readable text.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// `details.causes`.
    pub fn causes(&self) -> &[Cause] {
        self.0.details.as_ref().map_or(&[], |d| &d.causes)
    }

    /// `details.retryAfterSeconds`, 0 when not set.
    pub fn retry_after_seconds(&self) -> u32 {
        self.0.details.as_ref().map_or(0, |d| d.retry_after_seconds)
    }

    /// Whether this is a 404 for an object or path.
    pub fn is_not_found(&self) -> bool {
        self.0.reason == "NotFound"
    }

    /// Whether nothing serves the path at all: over HTTP that answer is no `Status`, so clients make
    /// their own from it.
    pub(crate) fn is_no_such_path(&self) -> bool {
        self.0.code == 404 && self.0.details.is_none()
    }

    /// Whether a write lost a race and may be repeated on the present version.
    pub fn is_conflict(&self) -> bool {
        self.0.reason == "Conflict"
    }

    /// Whether the name was taken.
    pub fn is_already_exists(&self) -> bool {
        self.0.reason == "AlreadyExists"
    }

    /// The `Status` object of the answer.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.0.message, "code": self.0.code,
        });
        if !self.0.reason.is_empty() {
            status["reason"] = self.0.reason.into();
        }
        if let Some(details) = &self.0.details {
            if details.continue_token.is_empty() {
                status["details"] = details.to_value();
            } else {
                status["metadata"]["continue"] = details.continue_token.as_str().into();
            }
        }
        status
    }
}

fn cause_of(error: &FieldError) -> Cause {
    Cause { reason: error.kind.reason().into(), message: error.body(), field: error.field.clone() }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, text) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !text.is_empty() {
                map.insert(key.into(), text.as_str().into());
            }
        }
        if !self.causes.is_empty() {
            map.insert("causes".into(), self.causes.iter().map(Cause::to_value).collect());
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds".into(), self.retry_after_seconds.into());
        }
        Value::Object(map)
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, text) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !text.is_empty() {
                map.insert(key.into(), text.as_str().into());
            }
        }
        Value::Object(map)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ApiError {}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_schema::Path;

    const DEPLOYMENT: Named<'static> = Named { group: "apps", resource: "deployments", name: "x" };

    #[test]
    fn texts_that_clients_know() {
        assert_eq!(ApiError::not_found(DEPLOYMENT).message(), r#"deployments.apps "x" not found"#);
        assert_eq!(ApiError::already_exists(DEPLOYMENT).message(), r#"deployments.apps "x" already exists"#);
        assert_eq!(
            ApiError::method_not_supported(Named { name: "", ..DEPLOYMENT }, "update").message(),
            r#"update is not supported on resources of kind "deployments.apps""#
        );
    }

    #[test]
    fn faults_become_causes() {
        let errors = ErrorList(vec![FieldError::required(&Path::new("spec.a"), "")]);
        let error = ApiError::invalid(&GroupKind::new("apps", "Deployment"), "x", &errors);
        assert_eq!(error.message(), r#"Deployment.apps "x" is invalid: spec.a: Required value"#);
        assert_eq!(error.causes()[0].reason, "FieldValueRequired");
    }
}
