//! Addresses of schemas: URLs, JSON pointers, and both together.

use tiphys_gocompat::{
    strconv::quote,
    url::{Url, path_unescape},
};
use tiphys_value::pointer_step;

/// What stands before and behind the first hash sign.
pub(super) fn split(text: &str) -> (&str, &str) {
    text.split_once('#').unwrap_or((text, ""))
}

/// The URL and the decoded fragment of a reference.
///
/// # Errors
/// The fragment is badly encoded.
pub(super) fn split_fragment(text: &str) -> Result<(&str, String), String> {
    let (url, fragment) = split(text);
    let fragment =
        path_unescape(fragment).map_err(|error| format!("error in parsing {}: {error}", quote(text)))?;
    Ok((url, fragment))
}

/// What a reference in a document means: the URL and the fragment.
///
/// # Errors
/// The reference is no URL.
pub(super) fn join(base: &str, reference: &str) -> Result<(String, String), String> {
    let parse =
        |text: &str| Url::parse(text).map_err(|error| format!("error in parsing {}: {error}", quote(text)));
    let base = parse(base)?;
    let (reference, fragment) = split_fragment(reference)?;
    let reference = parse(reference)?;
    let mut whole = base.resolve(&reference);
    if reference.scheme.is_empty() && !base.opaque.is_empty() {
        whole.opaque = base.opaque;
    }
    Ok((whole.to_string(), fragment))
}

/// A pointer to what stands below another.
pub(super) fn join_pointer(pointer: &str, token: &str) -> String {
    let mut whole = String::with_capacity(pointer.len() + token.len() + 1);
    whole.push_str(pointer);
    whole.push('/');
    whole.push_str(&pointer_step(token));
    whole
}

/// URL and pointer, as messages print them.
pub(super) fn location(url: &str, pointer: &str) -> String {
    let mut text = format!("{url}#");
    for byte in pointer.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"/-_.~$&+:=@".contains(&byte);
        if plain {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// A text in single quotes, escaped as Go's `%q` would inside double ones.
pub(super) fn single_quoted(text: &str) -> String {
    let quoted = quote(text);
    let inner = quoted[1..quoted.len() - 1].replace("\\\"", "\"").replace('\'', "\\'");
    format!("'{inner}'")
}
