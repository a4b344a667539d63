//! Go strings are bytes; Rust strings are UTF-8. This module carries any bytes through a `str` without loss.
//!
//! Valid UTF-8 stays as it is. Every byte that is not part of valid UTF-8 becomes one character of the last
//! 128 code points (`U+10FF80` for 0x80 … `U+10FFFF` for 0xFF). Those code points themselves, which no text
//! uses, are treated as invalid bytes too, so that the mapping is one to one.

use std::borrow::Cow;

const FIRST: u32 = 0x10FF80;
/// First two bytes that all escapes share in UTF-8: F4 8F BE (80..BF) and F4 8F BF (80..BF).
const LEAD: [u8; 2] = [0xF4, 0x8F];

fn escape(byte: u8) -> char {
    char::from_u32(FIRST + u32::from(byte) - 0x80).expect("the last code points are characters")
}

fn is_escape(c: char) -> bool {
    u32::from(c) >= FIRST
}

/// Whether the text carries bytes that are not UTF-8.
pub fn has_raw(text: &str) -> bool {
    memchr::memchr(LEAD[0], text.as_bytes()).is_some() && text.chars().any(is_escape)
}

/// The text that carries the bytes.
pub fn encode(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !has_raw(text)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_escape(c) {
                text.extend(c.encode_utf8(&mut [0; 4]).bytes().map(escape));
            } else {
                text.push(c);
            }
        }
        text.extend(chunk.invalid().iter().map(|&byte| escape(byte)));
    }
    Cow::Owned(text)
}

/// As [`encode`], reusing the buffer where it can.
pub fn encode_vec(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) if !has_raw(&text) => text,
        Ok(text) => encode(text.as_bytes()).into_owned(),
        Err(error) => encode(error.as_bytes()).into_owned(),
    }
}

/// The bytes that the text carries.
pub fn decode(text: &str) -> Cow<'_, [u8]> {
    if !has_raw(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// The byte that a character stands for, if it stands for one.
pub fn byte_of(c: char) -> Option<u8> {
    is_escape(c).then(|| (u32::from(c) - FIRST + 0x80) as u8)
}

/// Length in bytes as Go's `len` counts it.
pub fn len(text: &str) -> usize {
    if has_raw(text) { decode(text).len() } else { text.len() }
}

/// The text from one byte offset to another, as Go slices strings; offsets may split characters.
///
/// The offsets must be ordered and within [`len`].
pub fn slice(text: &str, from: usize, to: usize) -> Cow<'_, str> {
    if !has_raw(text)
        && let Some(part) = text.get(from..to)
    {
        return Cow::Borrowed(part);
    }
    Cow::Owned(encode(&decode(text)[from..to]).into_owned())
}

/// Joins parts that may together form valid UTF-8 although each alone did not.
pub fn renormalise(text: String) -> String {
    if has_raw(&text) { encode(&decode(&text)).into_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_survive(bytes: Vec<u8>) {
            let carried = encode(&bytes).into_owned();
            let back = decode(&carried).into_owned();
            prop_assert_eq!(&back, &bytes);
            prop_assert_eq!(len(&carried), bytes.len());
            prop_assert_eq!(encode_vec(bytes), carried);
        }
    }

    #[test]
    fn reserved_characters_survive() {
        let bytes = "a\u{10FF80}\u{10FFFF}b".as_bytes();
        assert_eq!(decode(&encode(bytes)).as_ref(), bytes);
    }

    #[test]
    fn slicing_may_split_a_character() {
        let half = slice("xé", 0, 2).into_owned();
        assert_eq!(decode(&half).as_ref(), b"x\xC3");
        let rest = slice("xé", 2, 3);
        assert_eq!(renormalise(format!("{half}{rest}")), "xé");
    }
}
