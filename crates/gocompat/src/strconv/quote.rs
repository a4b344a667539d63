//! `Quote`, `Unquote` and their variants.

use super::NumError;
use crate::{rawstr, unicode};
use std::borrow::Cow;

/// `strconv.Quote`
pub fn quote(text: &str) -> String {
    quote_with(text, '"', false)
}

/// `strconv.QuoteToASCII`
pub fn quote_ascii(text: &str) -> String {
    quote_with(text, '"', true)
}

/// `strconv.QuoteRune`
pub fn quote_rune(c: char) -> String {
    quote_with(c.encode_utf8(&mut [0; 4]), '\'', false)
}

/// `strconv.QuoteRuneToASCII`
pub fn quote_rune_ascii(c: char) -> String {
    quote_with(c.encode_utf8(&mut [0; 4]), '\'', true)
}

fn quote_with(text: &str, mark: char, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(mark);
    for c in text.chars() {
        push_escaped(&mut out, c, mark, ascii);
    }
    out.push(mark);
    out
}

fn push_escaped(out: &mut String, c: char, mark: char, ascii: bool) {
    use std::fmt::Write;
    if let Some(byte) = rawstr::byte_of(c) {
        let _ = write!(out, "\\x{byte:02x}");
        return;
    }
    if c == mark || c == '\\' {
        out.push('\\');
        out.push(c);
        return;
    }
    if if ascii { c.is_ascii() && unicode::is_print(c) } else { unicode::is_print(c) } {
        out.push(c);
        return;
    }
    // Writing to a string cannot fail.
    let _ = match c {
        '\x07' => out.write_str("\\a"),
        '\x08' => out.write_str("\\b"),
        '\x0C' => out.write_str("\\f"),
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        '\x0B' => out.write_str("\\v"),
        c if c < ' ' || c == '\x7F' => write!(out, "\\x{:02x}", u32::from(c)),
        c if u32::from(c) < 0x10000 => write!(out, "\\u{:04x}", u32::from(c)),
        c => write!(out, "\\U{:08x}", u32::from(c)),
    };
}

/// `strconv.CanBackquote`
pub fn can_backquote(text: &str) -> bool {
    text.chars().all(|c| match c {
        '\u{FEFF}' | '`' | '\x7F' => false,
        '\t' => true,
        c => c >= ' ' && rawstr::byte_of(c).is_none(),
    })
}

/// `strconv.Unquote`: a Go string or character literal to its text.
///
/// # Errors
/// Always [`NumError::Syntax`].
pub fn unquote(literal: &str) -> Result<Cow<'_, str>, NumError> {
    let mark = literal.chars().next().ok_or(NumError::Syntax)?;
    if literal.len() < 2 || !literal.ends_with(mark) {
        return Err(NumError::Syntax);
    }
    let inner = &literal[1..literal.len() - 1];
    match mark {
        '`' if memchr::memchr(b'`', inner.as_bytes()).is_none() => Ok(without_returns(inner)),
        '"' | '\'' => unquote_inner(inner, mark),
        _ => Err(NumError::Syntax),
    }
}

fn without_returns(text: &str) -> Cow<'_, str> {
    match memchr::memchr(b'\r', text.as_bytes()) {
        Some(_) => Cow::Owned(text.replace('\r', "")),
        None => Cow::Borrowed(text),
    }
}

fn unquote_inner(inner: &str, mark: char) -> Result<Cow<'_, str>, NumError> {
    match memchr::memchr3(b'\n', b'\\', mark as u8, inner.as_bytes()) {
        None if mark == '"' => return Ok(Cow::Borrowed(inner)),
        Some(_) if memchr::memchr(b'\n', inner.as_bytes()).is_some() => return Err(NumError::Syntax),
        _ => {}
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let (mut rest, mut count) = (inner, 0);
    while !rest.is_empty() {
        let (unit, tail) = unquote_char(rest, mark)?;
        match unit {
            Unit::Byte(byte) => bytes.push(byte),
            Unit::Char(c) => match rawstr::byte_of(c) {
                Some(byte) => bytes.push(byte),
                None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            },
        }
        rest = tail;
        count += 1;
    }
    if mark == '\'' && count != 1 {
        return Err(NumError::Syntax);
    }
    Ok(Cow::Owned(rawstr::encode_vec(bytes)))
}

/// One unit of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A byte, from `\x` or octal escapes.
    Byte(u8),
    /// A character.
    Char(char),
}

impl Unit {
    /// The number as Go's `rune`.
    pub fn code(self) -> i64 {
        match self {
            Self::Byte(byte) => byte.into(),
            Self::Char(c) => u32::from(c).into(),
        }
    }
}

/// `strconv.UnquoteChar`: the first unit of the inside of a literal, and the rest.
///
/// # Errors
/// Always [`NumError::Syntax`].
pub fn unquote_char(text: &str, mark: char) -> Result<(Unit, &str), NumError> {
    let mut chars = text.chars();
    let first = chars.next().ok_or(NumError::Syntax)?;
    if first == mark && matches!(mark, '"' | '\'') {
        return Err(NumError::Syntax);
    }
    if first != '\\' {
        return Ok((Unit::Char(first), chars.as_str()));
    }
    let escape = chars.next().ok_or(NumError::Syntax)?;
    let rest = chars.as_str();
    let simple = |c| Ok((Unit::Char(c), rest));
    match escape {
        'a' => simple('\x07'),
        'b' => simple('\x08'),
        'f' => simple('\x0C'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\x0B'),
        '\\' => simple('\\'),
        '\'' | '"' if escape == mark => simple(escape),
        'x' => numeric(rest, 2, 16),
        'u' => numeric(rest, 4, 16),
        'U' => numeric(rest, 8, 16),
        '0'..='7' => numeric(&text[1..], 3, 8),
        _ => Err(NumError::Syntax),
    }
}

fn numeric(text: &str, digits: usize, radix: u32) -> Result<(Unit, &str), NumError> {
    let number = text.get(..digits).ok_or(NumError::Syntax)?;
    if !number.chars().all(|c| c.is_digit(radix)) {
        return Err(NumError::Syntax);
    }
    let code = u32::from_str_radix(number, radix).map_err(|_| NumError::Syntax)?;
    let unit = if digits <= 3 {
        Unit::Byte(u8::try_from(code).map_err(|_| NumError::Syntax)?)
    } else {
        Unit::Char(char::from_u32(code).ok_or(NumError::Syntax)?)
    };
    Ok((unit, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go() {
        assert_eq!(quote("a\"b\\c\n\u{7f}\u{200b}é😀"), r#""a\"b\\c\n\x7f\u200bé😀""#);
        assert_eq!(quote(&rawstr::encode(b"\xffx")), r#""\xffx""#);
        assert_eq!(quote_ascii("é😀"), r#""\u00e9\U0001f600""#);
        assert_eq!(quote_rune('\''), r"'\''");
    }

    #[test]
    fn unquotes_as_go() {
        assert_eq!(unquote(r#""a\tb\x41\101é""#).as_deref(), Ok("a\tbAAé"));
        assert_eq!(unquote("`a\r\nb`").as_deref(), Ok("a\nb"));
        assert_eq!(unquote(r#""\'""#), Err(NumError::Syntax));
        assert_eq!(unquote("\"a\nb\""), Err(NumError::Syntax));
    }
}
