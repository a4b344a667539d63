//! Questions to the services that hand out tokens (RFC 6749, "The OAuth 2.0 Authorization Framework", section
//! 5).

use std::{io::Read as _, time::Duration};

use reqwest::blocking::{Client, RequestBuilder};
use serde_json::Value;

use crate::{IdentityError, Token};

/// How long a service may take to answer.
const LIMIT: Duration = Duration::from_secs(30);
/// The longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: u64 = 1 << 20;
/// How long a token is good whose answer does not say.
const UNSAID: u64 = 300;

/// A client without anything special.
///
/// # Errors
/// TLS cannot be set up.
pub fn client() -> Result<Client, IdentityError> {
    // Whoever comes first sets the process's provider; they are all the same.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let client = Client::builder()
        .user_agent(concat!("tiphys/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none());
    client.build().map_err(|error| IdentityError(format!("TLS cannot be set up: {error}")))
}

/// The JSON that a service answers.
pub(crate) fn ask(url: &str, request: RequestBuilder) -> Result<Value, IdentityError> {
    let fail = |reason: String| IdentityError(format!("{}: {reason}", without_query(url)));
    let response = request.timeout(LIMIT).send().map_err(|error| fail(error_chain(&error)))?;
    let status = response.status();
    let mut body = Vec::new();
    let read = response.take(MAX_ANSWER_BYTES).read_to_end(&mut body);
    read.map_err(|error| fail(format!("the answer breaks off: {error}")))?;
    let answer: Result<Value, _> = serde_json::from_slice(&body);
    if !status.is_success() {
        let said = answer.ok().and_then(|answer| refusal(&answer)).map(|said| format!(": {said}"));
        return Err(fail(format!("the service answers {status}{}", said.unwrap_or_default())));
    }
    answer.map_err(|error| fail(format!("the answer is no JSON: {error}")))
}

/// POST of a form, to be sent.
pub fn form(client: &Client, url: &str, fields: &[(&str, &str)]) -> RequestBuilder {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    client.post(url).header("content-type", "application/x-www-form-urlencoded").body(body)
}

/// The JSON that a service answers to a form.
pub(crate) fn post_form(client: &Client, url: &str, fields: &[(&str, &str)]) -> Result<Value, IdentityError> {
    ask(url, form(client, url, fields))
}

/// The token that an answer holds.
pub(crate) fn token_of(url: &str, answer: &Value) -> Result<Token, IdentityError> {
    let text = answer["access_token"].as_str();
    let text =
        text.ok_or_else(|| IdentityError(format!("{}: the answer has no token", without_query(url))))?;
    // A managed identity's answer holds the number as a text.
    let seconds = &answer["expires_in"];
    let seconds = seconds.as_u64().or_else(|| seconds.as_str()?.parse().ok()).unwrap_or(UNSAID);
    Ok(Token::good_for(text, Duration::from_secs(seconds)))
}

/// What a service says of its refusal (RFC 6749, section 5.2; Google's APIs, "Errors").
fn refusal(answer: &Value) -> Option<String> {
    let texts = [&answer["error_description"], &answer["error"]["message"], &answer["error"]];
    let said = texts.into_iter().find_map(Value::as_str)?;
    Some(said.lines().next().unwrap_or_default().trim().to_owned())
}

fn error_chain(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if error.is_timeout() { format!("no answer within {LIMIT:?}") } else { innermost.to_string() }
}

fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(address, _)| address)
}
