//! Faults in the syntax of JSON bodies, in the words of Go's decoder, which clients show to people.

/// Longest piece of a body that a message shows.
const SHOWN: usize = 30;

/// The message for a body of a kind that is no JSON object.
pub(super) fn unrecognized(kind: &str, body: &[u8], fault: &str) -> String {
    format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {fault} ({})",
        summary(body)
    )
}

/// A value that is well formed but no object.
pub(super) fn not_an_object(what: &str) -> String {
    format!(
        "json: cannot unmarshal {what} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )
}

fn summary(body: &[u8]) -> String {
    let cut = body.len() > SHOWN;
    let start = &body[..body.len().min(SHOWN)];
    let more = if cut { " ..." } else { "" };
    match body.first() {
        None => "<empty>".into(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(start)),
        Some(_) => {
            let hex: String = start.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{hex}{more}")
        }
    }
}

/// What Go's decoder says of the same fault.
pub(crate) fn go_words(error: &serde_json::Error, body: &[u8]) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".into();
    }
    let text = error.to_string();
    let place = offset_of(error, body);
    // Go takes a byte for a character.
    let Some(character) = body.get(place).map(|byte| char::from(*byte)) else { return text };
    let shown = match character {
        '\'' => "'\\''".to_owned(),
        '"' => "'\"'".to_owned(),
        c => format!("'{}'", c.escape_debug()),
    };
    let expectation = if text.starts_with("expected `:`") {
        "after object key"
    } else if text.starts_with("key must be a string")
        || text.starts_with("trailing comma") && character == '}'
    {
        "looking for beginning of object key string"
    } else if text.starts_with("expected `,` or `}`") {
        "after object key:value pair"
    } else if text.starts_with("expected `,` or `]`") {
        "after array element"
    } else if text.starts_with("trailing characters") {
        "after top-level value"
    } else if text.starts_with("expected value") || text.starts_with("trailing comma") {
        "looking for beginning of value"
    } else if text.starts_with("control character") {
        "in string literal"
    } else {
        return text;
    };
    format!("invalid character {shown} {expectation}")
}

/// Where the character at fault is; the decoder counts columns from one, behind what it has read.
fn offset_of(error: &serde_json::Error, body: &[u8]) -> usize {
    let lines = body.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    before + error.column().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(body: &str) -> String {
        let error = serde_json::from_str::<serde_json::Value>(body).unwrap_err();
        go_words(&error, body.as_bytes())
    }

    #[test]
    fn faults_read_as_go_writes_them() {
        assert_eq!(words("{\"a\":"), "unexpected end of JSON input");
        assert_eq!(words("{\"a\" 1}"), "invalid character '1' after object key");
        assert_eq!(words("{a}"), "invalid character 'a' looking for beginning of object key string");
        assert_eq!(words("[1 2]"), "invalid character '2' after array element");
        assert_eq!(words("x"), "invalid character 'x' looking for beginning of value");
        assert_eq!(words("{} x"), "invalid character 'x' after top-level value");
    }

    #[test]
    fn long_bodies_are_cut() {
        assert_eq!(summary(b""), "<empty>");
        assert_eq!(summary(b"[]"), "5b5d");
        assert!(summary(&[b'{'; 100]).ends_with(" ..."));
    }
}
