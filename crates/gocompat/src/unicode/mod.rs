//! Classes of characters as Go's `unicode` package knows them.

mod tables;

fn table_contains(table: &[(u32, u32)], c: char) -> bool {
    let c = u32::from(c);
    table
        .binary_search_by(|&(from, to)| {
            if to < c {
                std::cmp::Ordering::Less
            } else if from > c {
                std::cmp::Ordering::Greater
            } else {
                std::cmp::Ordering::Equal
            }
        })
        .is_ok()
}

/// `unicode.IsPrint`
pub fn is_print(c: char) -> bool {
    if c.is_ascii() { matches!(c, ' '..='~') } else { table_contains(tables::PRINT, c) }
}

/// `unicode.IsLetter`
pub fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { table_contains(tables::LETTER, c) }
}

/// `unicode.IsDigit`
pub fn is_digit(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { table_contains(tables::DIGIT, c) }
}

/// `unicode.IsUpper`
pub fn is_upper(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_uppercase() } else { table_contains(tables::UPPER, c) }
}

/// `unicode.IsLower`
pub fn is_lower(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_lowercase() } else { table_contains(tables::LOWER, c) }
}

/// `unicode.IsSpace`
pub fn is_space(c: char) -> bool {
    matches!(
        c,
        '\t' | '\n' | '\x0B' | '\x0C' | '\r' | ' ' | '\u{85}' | '\u{A0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// `unicode.ToUpper`: one character to one character.
pub fn to_upper(c: char) -> char {
    single(c, c.to_uppercase())
}

/// `unicode.ToLower`: one character to one character.
pub fn to_lower(c: char) -> char {
    // Go maps this one letter to a plain i; the full mapping has two characters.
    if c == '\u{130}' { 'i' } else { single(c, c.to_lowercase()) }
}

/// `unicode.ToTitle`: one character to one character.
pub fn to_title(c: char) -> char {
    match tables::TITLE.binary_search_by_key(&c, |&(from, _)| from) {
        Ok(at) => tables::TITLE[at].1,
        Err(_) => to_upper(c),
    }
}

/// Full mappings to several characters exist only beside Go's simple ones.
fn single(c: char, mut mapped: impl ExactSizeIterator<Item = char>) -> char {
    match mapped.next() {
        Some(only) if mapped.len() == 0 => only,
        _ => simple_exception(c),
    }
}

/// Simple mappings of characters whose full mapping is longer: Greek letters with iota subscript.
fn simple_exception(c: char) -> char {
    match u32::from(c) {
        0x1F80..=0x1F87 | 0x1F90..=0x1F97 | 0x1FA0..=0x1FA7 => char::from_u32(u32::from(c) + 8).unwrap_or(c),
        0x1FB3 | 0x1FC3 | 0x1FF3 => char::from_u32(u32::from(c) + 9).unwrap_or(c),
        _ => c,
    }
}

/// `strings.ToUpper`; bytes that are not UTF-8 become U+FFFD when anything else changes.
pub fn upper(text: &str) -> String {
    map(text, to_upper)
}

/// `strings.ToLower`; bytes that are not UTF-8 become U+FFFD when anything else changes.
pub fn lower(text: &str) -> String {
    map(text, to_lower)
}

fn map(text: &str, one: impl Fn(char) -> char) -> String {
    if text.is_ascii() || !crate::rawstr::has_raw(text) {
        return text.chars().map(one).collect();
    }
    text.chars().map(|c| if crate::rawstr::byte_of(c).is_some() { '\u{FFFD}' } else { one(c) }).collect()
}
