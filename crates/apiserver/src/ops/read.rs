//! Reading one object and lists of them.

use std::sync::Arc;

use base64::{
    Engine,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::URL_SAFE_NO_PAD},
};
use tiphys_schema::{FieldError, Path};
use tiphys_value::{ObjectExt, Value, json};

use super::{At, conversion_webhook};
use crate::{ApiError, ApiResult, ApiServer, Object, Snapshot, selectors::Selection};

/// What to list.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// `labelSelector`.
    pub label_selector: String,
    /// `fieldSelector`.
    pub field_selector: String,
    /// Most items to return; 0 is all.
    pub limit: usize,
    /// The `continue` token of the page before.
    pub continue_token: String,
    /// `resourceVersion`.
    pub resource_version: String,
    /// `resourceVersionMatch`.
    pub resource_version_match: String,
}

/// One page of a list.
pub(crate) struct Page {
    pub revision: u64,
    pub items: Vec<Arc<Object>>,
    pub continue_token: Option<String>,
    pub remaining: Option<usize>,
}

pub(crate) fn get(server: &ApiServer, at: &At) -> ApiResult<Arc<Object>> {
    let stored = server.snapshot().get(&at.resource.id, &at.namespace, &at.name).cloned();
    conversion_webhook::seen_one(server, &at.resource, stored.ok_or_else(|| at.not_found())?)
}

pub(crate) fn list(server: &ApiServer, at: &At, options: &ListOptions) -> ApiResult<Page> {
    let selection = Selection::parse(&at.resource, &options.label_selector, &options.field_selector)?;
    let start = start_of(options, server.revision(), at)?;
    let snapshot = source(server, options, start.as_ref())?;
    let namespace = Some(at.namespace.as_str()).filter(|n| !n.is_empty());
    let mut page = Page {
        revision: start.as_ref().and_then(|s| s.revision).unwrap_or(snapshot.revision()),
        items: Vec::new(),
        continue_token: None,
        remaining: None,
    };
    let after = start.as_ref().map(|s| s.after.as_str());
    // Fields are selected as the version of the request has them.
    let stored = snapshot.range(&at.resource.id, namespace, after);
    let all: Box<dyn Iterator<Item = (&Arc<str>, Arc<Object>)>> =
        match conversion_webhook::is_by_webhook(&at.resource) {
            false => {
                let selected = stored.filter(|(_, object)| selection.matches(object));
                Box::new(selected.map(|(key, object)| (key, Arc::clone(object))))
            }
            true => {
                let (keys, objects): (Vec<_>, Vec<_>) =
                    stored.map(|(key, object)| (key, Arc::clone(object))).unzip();
                let converted = conversion_webhook::convert_by_webhook(server, &at.resource, objects)?;
                Box::new(keys.into_iter().zip(converted).filter(|(_, object)| selection.matches(object)))
            }
        };
    // Whatever is at hand is given as a whole.
    let limit = if options.resource_version == "0" && start.is_none() { 0 } else { options.limit };
    let mut rest = all.peekable();
    let mut last = None;
    while let Some((key, object)) = rest.next() {
        page.items.push(object);
        last = Some(key);
        if limit > 0 && page.items.len() == limit && rest.peek().is_some() {
            break;
        }
    }
    if rest.peek().is_some() {
        let token = json!({"v": "meta.k8s.io/v1", "rv": page.revision, "start": format!("{}\0", last.map_or("", |k| k))});
        page.continue_token = Some(URL_SAFE_NO_PAD.encode(token.to_string()));
        page.remaining = selection.is_everything().then(|| rest.count());
    }
    Ok(page)
}

struct Start {
    /// `None` goes on from the present.
    revision: Option<u64>,
    after: String,
}

const TOKEN_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// Checks the revision parameters; returns where a continued list goes on.
fn start_of(options: &ListOptions, current: u64, at: &At) -> ApiResult<Option<Start>> {
    let (version, matching) = (options.resource_version.as_str(), options.resource_version_match.as_str());
    if !options.continue_token.is_empty() {
        if !matching.is_empty() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            return Err(invalid_match(FieldError::forbidden(&match_path(), why)));
        }
        let start = decode_token(&options.continue_token)?;
        if !matches!(version, "" | "0") {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        return Ok(Some(start));
    }
    check_match(version, matching)?;
    let asked = parse_revision(version)?;
    if asked > current {
        let error = ApiError::revision_in_future(asked, current);
        return Err(if is_cached(at) && !is_exact(options, asked) {
            error.with_retry_after(1)
        } else {
            error
        });
    }
    Ok(None)
}

/// Events are not kept in the server's cache. Who waits for that to catch up is told when to come again.
pub(crate) fn is_cached(at: &At) -> bool {
    at.resource.plural != "events"
}

/// Whether a list is to be of one revision and no other.
fn is_exact(options: &ListOptions, asked: u64) -> bool {
    options.resource_version_match == "Exact"
        || (options.limit > 0 && options.resource_version_match.is_empty() && asked > 0)
}

fn match_path() -> Path {
    Path::new("resourceVersionMatch")
}

fn invalid_match(fault: FieldError) -> ApiError {
    ApiError::invalid_options("ListOptions", fault)
}

fn check_match(version: &str, matching: &str) -> ApiResult<()> {
    let forbid = |why: &str| Err(invalid_match(FieldError::forbidden(&match_path(), why)));
    match (matching, version) {
        ("", _) => Ok(()),
        (_, "") => forbid("resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("Exact", "0") => forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""),
        ("Exact" | "NotOlderThan", _) => Ok(()),
        (other, _) => {
            let supported = ["Exact", "NotOlderThan", ""];
            Err(invalid_match(FieldError::not_supported(&match_path(), other, &supported)))
        }
    }
}

/// What a list is taken from: the present, or for an exact or continued one the past it asks for.
fn source(server: &ApiServer, options: &ListOptions, start: Option<&Start>) -> ApiResult<Snapshot> {
    if let Some(start) = start {
        // A token without a revision goes on from whatever is there now.
        let Some(revision) = start.revision else { return Ok(server.snapshot()) };
        return server.inner.store.snapshot_at(revision).ok_or_else(|| expired_token(start));
    }
    let asked = parse_revision(&options.resource_version)?;
    if !is_exact(options, asked) || asked == 0 {
        return Ok(server.snapshot());
    }
    let past = server.inner.store.snapshot_at(asked);
    past.ok_or_else(|| ApiError::expired("The resourceVersion for the provided list is too old."))
}

/// The past of a token is gone: the answer carries a token that goes on in the present.
fn expired_token(start: &Start) -> ApiError {
    let token = json!({"v": "meta.k8s.io/v1", "rv": -1, "start": format!("{}\0", start.after)});
    ApiError::expired(TOKEN_TOO_OLD).with_continue(URL_SAFE_NO_PAD.encode(token.to_string()))
}

/// Base64 as Go reads it: bits behind the last byte do not count.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

fn decode_token(token: &str) -> ApiResult<Start> {
    let fault = |why: &str| {
        ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
    };
    let token = token.trim_end_matches('=');
    let bytes = LENIENT.decode(token).map_err(|error| {
        // Where Go's decoder stops: at a strange byte, or at the start of what is no whole group.
        let place = match error {
            base64::DecodeError::InvalidByte(at, _) => at,
            _ => token.len().saturating_sub(1),
        };
        fault(&format!("illegal base64 data at input byte {place}"))
    })?;
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|e| fault(&crate::http::json_fault(&e, &bytes)))?;
    if value.str_at(&["v"]) != Some("meta.k8s.io/v1") {
        return Err(fault("server does not recognize this encoded version"));
    }
    let revision = value["rv"].as_u64();
    let after = value.str_at(&["start"]).ok_or_else(|| fault("encoded start key empty"))?;
    Ok(Start { revision, after: after.trim_end_matches('\0').to_owned() })
}

/// A `resourceVersion` parameter; empty and `0` are 0.
pub(crate) fn parse_revision(text: &str) -> ApiResult<u64> {
    read_revision(text).map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))
}

/// The number of a resource version; 0 for none.
///
/// # Errors
/// Why the text is no number, in the words of the API server.
pub(crate) fn read_revision(text: &str) -> Result<u64, String> {
    match text {
        "" => Ok(0),
        text => text.parse().map_err(|_| {
            let quoted = tiphys_schema::quote(text);
            format!(
                "resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: invalid syntax"
            )
        }),
    }
}
