//! Bytes to text.

use crate::{Error, ErrorKind};

/// The text of a YAML stream in UTF-8.
///
/// # Errors
/// The bytes are not UTF-8, in the words of go-yaml's reader (`yaml: invalid trailing UTF-8 octet`).
pub fn decode_utf8(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|error| {
        let fault = fault(&bytes[error.valid_up_to()..]);
        Error::new(ErrorKind::Syntax, format!("yaml: {fault}"))
    })
}

/// What is wrong with the character that the bytes begin with.
fn fault(bytes: &[u8]) -> &'static str {
    let width = match bytes.first() {
        Some(0xC0..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF7) => 4,
        _ => return "invalid leading UTF-8 octet",
    };
    let Some(character) = bytes.get(..width) else { return "incomplete UTF-8 octet sequence" };
    if character[1..].iter().any(|byte| byte & 0xC0 != 0x80) {
        return "invalid trailing UTF-8 octet";
    }
    let lead = u32::from(character[0]) & (0x7F >> width);
    let code = character[1..].iter().fold(lead, |code, byte| code << 6 | u32::from(byte & 0x3F));
    let least = [0, 0, 0x80, 0x800, 0x1_0000][width];
    if code < least { "invalid length of a UTF-8 sequence" } else { "invalid Unicode character" }
}
