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

/// Checks that a text is one JSON value, with the errors of Go's scanner.
///
/// # Errors
/// `invalid character …` or `unexpected end of JSON input`.
pub fn check(text: &str) -> Result<(), String> {
    let mut checker = Checker { bytes: text.as_bytes(), at: 0 };
    checker.space();
    checker.value(0)?;
    checker.space();
    match checker.peek() {
        None => Ok(()),
        Some(_) => checker.bad("after top-level value"),
    }
}

/// How deep values may nest; Go follows 10,000 levels.
pub const MAX_DEPTH: usize = 1000;

struct Checker<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Checker<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn bad(&self, context: &str) -> Result<(), String> {
        let Some(byte) = self.peek() else {
            return Err("unexpected end of JSON input".to_owned());
        };
        let shown = match byte {
            b'\'' => r"'\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            byte => {
                let quoted = crate::strconv::quote(&char::from(byte).to_string());
                format!("'{}'", &quoted[1..quoted.len() - 1])
            }
        };
        Err(format!("invalid character {shown} {context}"))
    }

    fn value(&mut self, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => self.bad("looking for beginning of value"),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                let expected = char::from(expected);
                // Go's scanner reads the end of the input as a space.
                if self.peek().is_none() {
                    return Err(format!("invalid character ' ' in literal {word} (expecting '{expected}')"));
                }
                return self.bad(&format!("in literal {word} (expecting '{expected}')"));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), String> {
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return self.bad("looking for beginning of object key string");
            }
            self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return self.bad("after object key");
            }
            self.at += 1;
            self.space();
            self.value(depth + 1)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.bad("after object key:value pair"),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), String> {
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            self.value(depth + 1)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.bad("after array element"),
            }
        }
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                None | Some(0..0x20) => return self.bad("in string literal"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return self.bad("in \\u hexadecimal character escape");
                    }
                    self.at += 1;
                }
            }
            _ => return self.bad("in string escape code"),
        }
        Ok(())
    }

    /// Within a number, Go's scanner reads the end of the input as a space.
    fn bad_number(&self, context: &str) -> Result<(), String> {
        match self.peek() {
            None => Err(format!("invalid character ' ' {context}")),
            Some(_) => self.bad(context),
        }
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> Result<(), String> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else if !self.digits() {
            return self.bad_number("in numeric literal");
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if !self.digits() {
                return self.bad_number("after decimal point in numeric literal");
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.digits() {
                return self.bad_number("in exponent of numeric literal");
            }
        }
        Ok(())
    }
}
