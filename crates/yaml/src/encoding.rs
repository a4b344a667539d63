//! Bytes to text.

use std::borrow::Cow;

use crate::{Error, ErrorKind};

/// The text of a YAML stream, which is UTF-16 where its byte order mark says so and UTF-8 everywhere else.
///
/// # Errors
/// What is wrong with the bytes, in the words of go-yaml's reader (`yaml: incomplete UTF-16 character`).
pub fn decode_text(bytes: &[u8]) -> Result<Cow<'_, str>, Error> {
    match bytes {
        [0xFF, 0xFE, text @ ..] => decode_utf16(text, u16::from_le_bytes).map(Cow::Owned),
        [0xFE, 0xFF, text @ ..] => decode_utf16(text, u16::from_be_bytes).map(Cow::Owned),
        text => decode_utf8(text).map(Cow::Borrowed),
    }
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, Error> {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let mut units = pairs.iter().map(|pair| unit(*pair));
    let mut text = String::with_capacity(pairs.len());
    let fault = loop {
        let Some(first) = units.next() else {
            match odd {
                [] => return Ok(text),
                _ => break "incomplete UTF-16 character",
            }
        };
        match first {
            0xD800..=0xDBFF => match units.next() {
                None => break "incomplete UTF-16 surrogate pair",
                Some(second @ 0xDC00..=0xDFFF) => {
                    text.extend(char::decode_utf16([first, second]).filter_map(Result::ok));
                }
                Some(_) => break "expected low surrogate area",
            },
            0xDC00..=0xDFFF => break "unexpected low surrogate area",
            first => text.extend(char::from_u32(u32::from(first))),
        }
    };
    Err(Error::new(ErrorKind::Syntax, format!("yaml: {fault}")))
}

/// A text in UTF-8.
///
/// # Errors
/// The bytes are not UTF-8, in the words of go-yaml's reader (`yaml: invalid trailing UTF-8 octet`).
fn decode_utf8(bytes: &[u8]) -> Result<&str, Error> {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn units(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        ['\u{feff}']
            .into_iter()
            .chain(text.chars())
            .flat_map(|c| {
                let mut buffer = [0; 2];
                c.encode_utf16(&mut buffer).iter().flat_map(|unit| bytes(*unit)).collect::<Vec<u8>>()
            })
            .collect()
    }

    #[test]
    fn the_byte_order_mark_tells_the_encoding() {
        let text = "a: é 😀\r\n";
        assert_eq!(decode_text(&units(text, u16::to_le_bytes)).unwrap(), text);
        assert_eq!(decode_text(&units(text, u16::to_be_bytes)).unwrap(), text);
        assert_eq!(decode_text(text.as_bytes()).unwrap(), text);
        // Without the mark it is UTF-8 with zeros.
        assert_eq!(decode_text(b"a\0").unwrap(), "a\0");
    }

    #[test]
    fn faults_are_those_of_go_yaml() {
        for (bytes, fault) in [
            (&b"\xFF\xFEa\0b"[..], "incomplete UTF-16 character"),
            (b"\xFF\xFE\x3D\xD8", "incomplete UTF-16 surrogate pair"),
            (b"\xFF\xFE\x3D\xD8a\0", "expected low surrogate area"),
            (b"\xFE\xFF\xDC\0", "unexpected low surrogate area"),
            (b"\xFFa", "invalid leading UTF-8 octet"),
        ] {
            assert_eq!(decode_text(bytes).unwrap_err().to_string(), format!("yaml: {fault}"));
        }
    }
}
