//! Character classes of YAML 1.1 over UTF-8 bytes. Reading past the end yields NUL, as libyaml's
//! buffers do, so that no lookahead has to be guarded.

/// The byte at `at`, NUL past the end.
#[inline(always)]
pub(crate) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// Bytes of the line break at `at`, 0 if there is none: CR, LF, NEL, LS, PS (CRLF counts as CR here).
#[inline(always)]
pub(crate) fn break_len(bytes: &[u8], at: usize) -> usize {
    match byte(bytes, at) {
        b'\n' | b'\r' => 1,
        0xC2 if byte(bytes, at + 1) == 0x85 => 2,
        0xE2 if byte(bytes, at + 1) == 0x80 && matches!(byte(bytes, at + 2), 0xA8 | 0xA9) => 3,
        _ => 0,
    }
}

/// A line break.
#[inline(always)]
pub(crate) fn is_break(bytes: &[u8], at: usize) -> bool {
    break_len(bytes, at) > 0
}

/// A line break or the end.
#[inline(always)]
pub(crate) fn is_breakz(bytes: &[u8], at: usize) -> bool {
    byte(bytes, at) == 0 || is_break(bytes, at)
}

/// Space or tab.
#[inline(always)]
pub(crate) fn is_blank(bytes: &[u8], at: usize) -> bool {
    matches!(byte(bytes, at), b' ' | b'\t')
}

/// Space, tab, line break or the end.
#[inline(always)]
pub(crate) fn is_blankz(bytes: &[u8], at: usize) -> bool {
    match byte(bytes, at) {
        b' ' | b'\t' | b'\n' | b'\r' | 0 => true,
        0xC2 | 0xE2 => is_break(bytes, at),
        _ => false,
    }
}

/// What libyaml allows in anchors, handles and directive names.
#[inline]
pub(crate) fn is_alpha(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// `---` or `...` followed by a blank, a break or the end.
#[inline]
pub(crate) fn is_document_indicator(bytes: &[u8], at: usize) -> bool {
    let first = byte(bytes, at);
    matches!(first, b'-' | b'.')
        && byte(bytes, at + 1) == first
        && byte(bytes, at + 2) == first
        && is_blankz(bytes, at + 3)
}

/// Whether YAML prints the character as it is (go-yaml's `is_printable`: no tab, nothing above the
/// basic plane).
pub(crate) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}') && c != '\u{FEFF}'
}

/// Whether a YAML stream may contain the character at all.
pub(crate) fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}')
        || c >= '\u{10000}'
}

/// Whether the character is a YAML 1.1 line break.
pub(crate) fn is_break_char(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Byte offset of the first character that no YAML stream may contain.
pub(crate) fn find_forbidden(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(found) = bytes[from..].iter().position(|&b| SUSPICIOUS[b as usize]) {
        let at = from + found;
        // Suspicious bytes are lead bytes or ASCII, hence character boundaries.
        let c = text[at..].chars().next()?;
        if !is_allowed(c) {
            return Some(at);
        }
        from = at + c.len_utf8();
    }
    None
}

/// Bytes that can start a forbidden character.
static SUSPICIOUS: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 0x20 {
        table[b] = !matches!(b as u8, b'\t' | b'\n' | b'\r');
        b += 1;
    }
    table[0x7F] = true;
    table[0xC2] = true;
    table[0xEF] = true;
    table
};
