//! Strings and floats as Go's `encoding/json` writes them.

use crate::rawstr;
use crate::strconv::{FloatFormat, append_float};

/// Appends a quoted string; with `escape_html` also `<`, `>` and `&` are escaped, as `json.Marshal` does.
pub fn push_string(out: &mut String, text: &str, escape_html: bool) {
    out.push('"');
    let mut start = 0;
    for (at, c) in text.char_indices() {
        let replacement: Option<String> = match c {
            '"' => Some("\\\"".into()),
            '\\' => Some("\\\\".into()),
            '\n' => Some("\\n".into()),
            '\r' => Some("\\r".into()),
            '\t' => Some("\\t".into()),
            '\x08' => Some("\\b".into()),
            '\x0C' => Some("\\f".into()),
            '<' | '>' | '&' if escape_html => Some(format!("\\u{:04x}", u32::from(c))),
            c if c < ' ' || matches!(c, '\u{2028}' | '\u{2029}') => Some(format!("\\u{:04x}", u32::from(c))),
            c if rawstr::byte_of(c).is_some() => Some("\\ufffd".into()),
            _ => None,
        };
        if let Some(replacement) = replacement {
            out.push_str(&text[start..at]);
            out.push_str(&replacement);
            start = at + c.len_utf8();
        }
    }
    out.push_str(&text[start..]);
    out.push('"');
}

/// Appends a finite float: decimal between 1e-6 and 1e21, else with an exponent without leading zero.
pub fn push_float(out: &mut String, value: f64) {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let start = out.len();
        append_float(out, value, FloatFormat::Exponent, None);
        if let Some(at) = out[start..].find("e-0") {
            out.remove(start + at + 2);
        }
    } else {
        append_float(out, value, FloatFormat::Decimal, None);
    }
}

/// Standard base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            if digit <= chunk.len() {
                out.push(char::from(DIGITS[(group >> (18 - 6 * digit) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}
