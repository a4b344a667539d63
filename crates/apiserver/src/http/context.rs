//! A request without its body, and what it says of the call that it asks for.

use http::{HeaderMap, Method};
use tiphys_schema::{FieldError, Path};
use tiphys_value::{Value, json};

use super::query::Query;
use crate::{
    ApiError, ApiResult, ApiServer,
    auth::User,
    ops::{Call, FieldValidation},
    registry::Resource,
};

/// Everything about a request but its body.
pub(super) struct Context<'a> {
    pub server: &'a ApiServer,
    pub user: User,
    pub method: &'a Method,
    pub headers: &'a HeaderMap,
    pub query: Query,
    pub path: &'a str,
    /// The connection, where it may be used for something else than HTTP.
    pub upgrade: Option<&'a hyper::upgrade::OnUpgrade>,
}

impl Context<'_> {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
    }
}

pub(super) fn call_of(context: &Context<'_>) -> ApiResult<Call> {
    let query = &context.query;
    let agent = context.header("user-agent");
    let manager = match (query.get("fieldManager"), *context.method == Method::PATCH) {
        ("", true) if context.header("content-type").starts_with("application/apply-patch") => "",
        ("", _) => agent.split('/').next().unwrap_or_default(),
        (given, _) => given,
    };
    let mut call = Call::new(context.user.clone(), manager);
    let options = match *context.method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::DELETE => "DeleteOptions",
        _ => "PatchOptions",
    };
    let unsupported = |field: &str, value: Value, supported: &[&str]| {
        let fault = FieldError::not_supported(&Path::new(field), value, supported);
        Err(ApiError::invalid_options(options, fault))
    };
    call.dry_run = match query.get("dryRun") {
        "" => false,
        "All" => true,
        other => return unsupported("dryRun", json!([other]), &["All"]),
    };
    call.validation = match query.get("fieldValidation") {
        "" | "Warn" => FieldValidation::Warn,
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        // Reading and deleting have no such option.
        _ if !matches!(*context.method, Method::POST | Method::PUT | Method::PATCH) => FieldValidation::Warn,
        other => return unsupported("fieldValidation", other.into(), &["", "Ignore", "Strict", "Warn"]),
    };
    if matches!(*context.method, Method::POST | Method::PUT | Method::PATCH) {
        check_manager(query.get("fieldManager"))
            .map_err(|fault| ApiError::invalid_options(options, fault))?;
    }
    Ok(call)
}

/// The name of a field manager is short and can be printed.
fn check_manager(name: &str) -> Result<(), FieldError> {
    const LONGEST: usize = 128;
    let path = Path::new("fieldManager");
    if name.len() > LONGEST {
        return Err(FieldError::too_long(&path, LONGEST));
    }
    match name.chars().enumerate().find(|(_, character)| character.is_control()) {
        Some((at, character)) => {
            let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(character));
            Err(FieldError::invalid(&path, name, detail))
        }
        None => Ok(()),
    }
}

pub(super) fn warn_deprecated(resource: &Resource, call: &mut Call) {
    if let Some(text) = (resource.kind.deprecation)(&resource.gvk.version) {
        call.warnings.push(text.to_owned());
    }
    if let Some(text) = resource.custom.as_ref().and_then(|c| c.deprecation.as_ref()) {
        call.warnings.push(text.clone());
    }
}
