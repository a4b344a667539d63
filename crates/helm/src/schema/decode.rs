//! Reading a schema as Go's decoder reads JSON.

use tiphys_gocompat::json;
use tiphys_value::{Budget, JsonError, Value, json_within};

/// Whether a text ends within `true`, `false` or `null`.
fn is_cut(text: &str) -> bool {
    let fault = json::check(&format!("{text}?")).err().unwrap_or_default();
    fault.starts_with("invalid character '?' in literal")
        && !json::check(text).is_err_and(|sooner| sooner == fault)
}

/// Reads a schema document.
pub(super) fn decode(text: &[u8]) -> Result<Value, String> {
    let read = match json_within(text, &Budget::of_document()) {
        Err(JsonError::Budget(fault)) => return Err(fault.to_string()),
        Err(JsonError::Syntax(error)) => Err(error),
        Ok(value) => Ok(value),
    };
    read.map_err(|error| {
        let text = String::from_utf8_lossy(text);
        match json::check(&text) {
            Err(error) if text.trim().is_empty() || error.starts_with("unexpected end") || is_cut(&text) => {
                if text.trim().is_empty() {
                    "EOF".to_owned()
                } else {
                    "unexpected EOF".to_owned()
                }
            }
            Err(error) if error.ends_with("after top-level value") => {
                "invalid character after top-level value".to_owned()
            }
            Err(error) => error,
            Ok(()) => error.to_string(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn what_ends_too_early_is_told_as_go_s_decoder_tells_it() {
        for (text, expected) in [
            ("", "EOF"),
            ("{\"a\": [", "unexpected EOF"),
            ("{\"not\": fal", "unexpected EOF"),
            ("tr", "unexpected EOF"),
            ("{\"a\": tr }", "invalid character ' ' in literal true (expecting 'u')"),
            ("{\"a\": nu?", "invalid character '?' in literal null (expecting 'l')"),
        ] {
            assert_eq!(decode(text.as_bytes()).unwrap_err(), expected, "{text:?}");
        }
    }
}
