//! POST of JSON over HTTP(S), for services that answer questions.

use std::time::Duration;

use serde_json::Value;

use super::http::{authorize, fetch_error, read_ok};
use crate::{Access, SourceError};

/// The longest answer taken.
const MAX_ANSWER_BYTES: u64 = 16 << 20;

/// Asks a service and reads its JSON answer. Blocking: not for an async runtime's own threads.
///
/// # Errors
/// The service does not answer within the time, refuses, or answers something else than JSON. The token
/// is in no error.
pub fn post_json(
    url: &str,
    access: &Access,
    question: &Value,
    limit: Duration,
) -> Result<Value, SourceError> {
    let fail = |reason: String| SourceError::Fetch { url: super::http::redact(url), reason };
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err(fail("only http:// and https:// addresses are asked".into()));
    }
    let client = super::Http::default().client(url, access)?;
    let request = authorize(client.post(url), access)
        .header("content-type", "application/json")
        .timeout(limit)
        .body(question.to_string());
    let answer = read_ok(url, request.send().map_err(|e| fetch_error(url, &e))?, MAX_ANSWER_BYTES)?;
    serde_json::from_slice(&answer).map_err(|error| fail(format!("the answer is no JSON: {error}")))
}
