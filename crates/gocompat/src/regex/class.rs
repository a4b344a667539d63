//! Character classes and escapes.

use super::RegexError;
use super::translate::{error, push_literal};

/// Translates a bracket expression at the start of the text; returns what follows it.
pub(super) fn bracket<'p>(text: &'p str, out: &mut String) -> Result<&'p str, RegexError> {
    let mut rest = &text[1..];
    out.push('[');
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    let mut first = true;
    while rest.is_empty() || !rest.starts_with(']') || first {
        first = false;
        if rest.starts_with("[:")
            && let Some(end) = rest[2..].find(":]")
        {
            let name = &rest[..2 + end + 2];
            if !is_posix(name) {
                return error("invalid character class range", name);
            }
            out.push_str(name);
            rest = &rest[name.len()..];
            continue;
        }
        if let Some(after) = property(rest, out)? {
            rest = after;
            continue;
        }
        if let Some((class, after)) = perl(rest) {
            out.push_str(class);
            rest = after;
            continue;
        }
        rest = range(text, rest, out)?;
    }
    out.push(']');
    Ok(&rest[1..])
}

/// A character or a range of characters.
fn range<'p>(whole: &'p str, text: &'p str, out: &mut String) -> Result<&'p str, RegexError> {
    let (low, mut rest) = member(text, whole)?;
    push_literal(out, low);
    if rest.starts_with('-') && rest.len() >= 2 && !rest.starts_with("-]") {
        let (high, after) = member(&rest[1..], whole)?;
        rest = after;
        if high < low {
            return error("invalid character class range", &text[..text.len() - rest.len()]);
        }
        out.push('-');
        push_literal(out, high);
    }
    Ok(rest)
}

fn member<'p>(text: &'p str, whole: &str) -> Result<(char, &'p str), RegexError> {
    let mut chars = text.chars();
    match chars.next() {
        None => error("missing closing ]", whole),
        Some('\\') => character(text),
        Some(c) => Ok((c, chars.as_str())),
    }
}

fn is_posix(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
        "upper", "word", "xdigit",
    ];
    let name = name.trim_start_matches("[:").trim_end_matches(":]");
    NAMES.contains(&name.strip_prefix('^').unwrap_or(name))
}

/// `\d` and its like.
fn perl(text: &str) -> Option<(&'static str, &str)> {
    let class = match text.as_bytes() {
        [b'\\', b'd', ..] => "[0-9]",
        [b'\\', b'D', ..] => "[^0-9]",
        [b'\\', b's', ..] => r"[\t\n\f\r ]",
        [b'\\', b'S', ..] => r"[^\t\n\f\r ]",
        [b'\\', b'w', ..] => "[0-9A-Za-z_]",
        [b'\\', b'W', ..] => "[^0-9A-Za-z_]",
        _ => return None,
    };
    Some((class, &text[2..]))
}

/// `\pL`, `\p{Greek}`, `\p{^Greek}` and their negations.
fn property<'p>(text: &'p str, out: &mut String) -> Result<Option<&'p str>, RegexError> {
    let Some(body) = text.strip_prefix(r"\p").or_else(|| text.strip_prefix(r"\P")) else {
        return Ok(None);
    };
    let (name, rest) = match body.strip_prefix('{') {
        Some(inner) => match inner.find('}') {
            Some(end) => (&inner[..end], &inner[end + 1..]),
            None => return error("invalid character class range", text),
        },
        None => match body.chars().next() {
            Some(c) => body.split_at(c.len_utf8()),
            None => return error("invalid character class range", text),
        },
    };
    let (negated, name) = match name.strip_prefix('^') {
        Some(name) => (true, name),
        None => (false, name),
    };
    let negated = negated != text.starts_with(r"\P");
    let class = match name {
        "Any" => (if negated { r"[^\x00-\x{10FFFF}]" } else { r"[\x00-\x{10FFFF}]" }).to_owned(),
        name => format!(r"\{}{{{name}}}", if negated { 'P' } else { 'p' }),
    };
    // Go knows only general categories and scripts, by their exact names.
    let known = name == "Any"
        || (name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
            && ::regex::Regex::new(&class).is_ok());
    if !known {
        return error("invalid character class range", &text[..text.len() - rest.len()]);
    }
    out.push_str(&class);
    Ok(Some(rest))
}

/// Translates an escape outside of brackets; returns what follows it.
pub(super) fn escape<'p>(text: &'p str, out: &mut String) -> Result<&'p str, RegexError> {
    if let Some(rest) = property(text, out)? {
        return Ok(rest);
    }
    if let Some((class, rest)) = perl(text) {
        out.push_str(class);
        return Ok(rest);
    }
    let (c, rest) = character(text)?;
    push_literal(out, c);
    Ok(rest)
}

/// The character that an escape stands for.
fn character(text: &str) -> Result<(char, &str), RegexError> {
    let mut chars = text[1..].chars();
    let Some(c) = chars.next() else {
        return error("trailing backslash at end of expression", "");
    };
    let rest = chars.as_str();
    let invalid = |rest: &str| error("invalid escape sequence", &text[..text.len() - rest.len()]);
    let found = match c {
        '1'..='7' if !rest.starts_with(|c: char| matches!(c, '0'..='7')) => return invalid(rest),
        '0'..='7' => {
            let more = rest.bytes().take(2).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
            let code = u32::from_str_radix(&text[1..2 + more], 8).unwrap_or(0);
            return Ok((char::from_u32(code).unwrap_or('\u{FFFD}'), &rest[more..]));
        }
        'x' => return hex(text, rest),
        'a' => '\x07',
        'f' => '\x0C',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0B',
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => c,
        _ => return invalid(rest),
    };
    Ok((found, rest))
}

fn hex<'p>(text: &'p str, rest: &'p str) -> Result<(char, &'p str), RegexError> {
    let invalid = |rest: &str| error("invalid escape sequence", &text[..text.len() - rest.len()]);
    if let Some(inner) = rest.strip_prefix('{') {
        let digits = inner.bytes().take_while(u8::is_ascii_hexdigit).count();
        let after = &inner[digits..];
        let code = u32::from_str_radix(&inner[..digits], 16).ok().filter(|_| after.starts_with('}'));
        return match code.filter(|code| *code <= 0x10FFFF) {
            Some(code) => Ok((char::from_u32(code).unwrap_or('\u{FFFD}'), &after[1..])),
            None => {
                let next = after.chars().next().map_or(0, char::len_utf8);
                invalid(&after[next..])
            }
        };
    }
    match rest.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        Some(digits) => {
            let code = u32::from_str_radix(digits, 16).unwrap_or(0);
            Ok((char::from_u32(code).unwrap_or('\u{FFFD}'), &rest[2..]))
        }
        None => invalid(rest.char_indices().nth(2).map_or("", |(at, _)| &rest[at..])),
    }
}
