//! String helpers of Go's `strings` and of the libraries that Sprig uses for words and cases.

use crate::{rawstr, unicode};

/// `strings.Title`: the first letter of every word in title case.
pub fn title(text: &str) -> String {
    let mut previous = ' ';
    text.chars()
        .map(|c| {
            let mapped = if is_separator(previous) { unicode::to_title(c) } else { c };
            previous = c;
            mapped
        })
        .collect()
}

fn is_separator(c: char) -> bool {
    if c.is_ascii() {
        return !(c.is_ascii_alphanumeric() || c == '_');
    }
    !unicode::is_letter(c) && !unicode::is_digit(c) && unicode::is_space(c)
}

/// The first letter of every word in lower case (goutils `Uncapitalize`).
pub fn uncapitalize(text: &str) -> String {
    let mut at_start = true;
    text.chars()
        .map(|c| {
            if unicode::is_space(c) {
                at_start = true;
                c
            } else if std::mem::replace(&mut at_start, false) {
                unicode::to_lower(c)
            } else {
                c
            }
        })
        .collect()
}

/// Upper and lower case swapped; a lower-case letter at the start of a word becomes title case.
pub fn swap_case(text: &str) -> String {
    let mut at_start = true;
    text.chars()
        .map(|c| {
            if unicode::is_upper(c) || unicode::to_title(c) == c && unicode::to_lower(c) != c {
                at_start = false;
                unicode::to_lower(c)
            } else if unicode::is_lower(c) {
                if std::mem::replace(&mut at_start, false) {
                    unicode::to_title(c)
                } else {
                    unicode::to_upper(c)
                }
            } else {
                at_start = unicode::is_space(c);
                c
            }
        })
        .collect()
}

/// The first byte of every word, read as Latin-1 (goutils `Initials`).
pub fn initials(text: &str) -> String {
    let mut after_gap = true;
    let mut out = String::new();
    for byte in rawstr::decode(text).iter() {
        let c = char::from(*byte);
        if unicode::is_space(c) {
            after_gap = true;
        } else if std::mem::replace(&mut after_gap, false) {
            out.push(c);
        }
    }
    out
}

/// Text without white space (goutils `DeleteWhiteSpace`). If there is some, all bytes are read as Latin-1.
pub fn without_space(text: &str) -> String {
    let bytes = rawstr::decode(text);
    let kept: String =
        bytes.iter().map(|byte| char::from(*byte)).filter(|c| !unicode::is_space(*c)).collect();
    if kept.chars().count() == bytes.len() { text.to_owned() } else { kept }
}

/// Text cut to a width with `...` at one end or both (goutils `AbbreviateFull`); empty if the width is too
/// small.
pub fn abbreviate(text: &str, offset: i64, width: i64) -> String {
    let bytes = rawstr::decode(text);
    let length = bytes.len() as i64;
    if length == 0 || width < 4 {
        return String::new();
    }
    if length <= width {
        return text.to_owned();
    }
    let mut offset = offset.min(length);
    if length - offset < width - 3 {
        offset = length - (width - 3);
    }
    let part = |from: i64, to: i64| rawstr::encode(&bytes[from as usize..to as usize]).into_owned();
    if offset <= 4 {
        return part(0, width - 3) + "...";
    }
    if width < 7 {
        return String::new();
    }
    if offset + width - 3 < length {
        return format!("...{}", abbreviate(&part(offset, length), 0, width - 3));
    }
    format!("...{}", part(length - (width - 3), length))
}

/// Text wrapped at spaces; longer words are cut if `cut_words` (goutils `WrapCustom`).
pub fn wrap(text: &str, width: i64, newline: &str, cut_words: bool) -> String {
    let bytes = rawstr::decode(text);
    let newline = if newline.is_empty() { "\n" } else { newline };
    let width = usize::try_from(width).unwrap_or(1).max(1);
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len() + bytes.len() / width * newline.len());
    let mut offset = 0;
    while bytes.len() - offset > width {
        if bytes[offset] == b' ' {
            offset += 1;
            continue;
        }
        let end = offset + width;
        let space = bytes[offset..=end].iter().rposition(|byte| *byte == b' ').map(|at| at + offset);
        let (to, next) = match space {
            Some(space) => (space, space + 1),
            None if cut_words => (end, end),
            None => match bytes[end..].iter().position(|byte| *byte == b' ') {
                Some(at) => (end + at, end + at + 1),
                None => break,
            },
        };
        out.extend_from_slice(&bytes[offset..to]);
        out.extend_from_slice(newline.as_bytes());
        offset = next;
    }
    out.extend_from_slice(&bytes[offset..]);
    rawstr::encode_vec(out)
}

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || unicode::is_space(c)
}

/// `some_words here` to `SomeWordsHere` (xstrings `ToPascalCase`).
pub fn pascal_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    let mut current = None;
    let mut first_upper = false;
    for c in chars.by_ref() {
        if !is_connector(c) {
            first_upper = unicode::is_upper(c);
            current = Some(unicode::to_upper(c));
            break;
        }
        out.push(c);
    }
    let Some(mut current) = current else {
        // Only connectors: the last one is written twice, as the original does.
        out.extend(text.chars().next_back());
        return out;
    };
    for c in chars {
        let previous = std::mem::replace(&mut current, c);
        if is_connector(current) && is_connector(previous) {
            out.push(previous);
            continue;
        }
        if is_connector(previous) {
            first_upper = unicode::is_upper(current);
            current = unicode::to_upper(current);
            continue;
        }
        if first_upper {
            if unicode::is_upper(current) {
                current = unicode::to_lower(current);
            } else {
                first_upper = false;
            }
        }
        out.push(previous);
    }
    out.push(current);
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    None,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

/// `SomeWords` to `some_words`, with any connector (xstrings `ToSnakeCase`, `ToKebabCase`).
pub fn separated_case(text: &str, connector: char) -> String {
    let mut words = Words { rest: text, connector, out: String::with_capacity(text.len() + 8) };
    let (mut kind, mut word) = words.next();
    while !words.rest.is_empty() {
        if kind != Word::Connector {
            words.push(kind, word);
        }
        let (previous, last) = (kind, word);
        (kind, word) = words.next();
        match previous {
            Word::Number => (kind, word) = words.alphanumerics(kind, word),
            Word::Connector => words.push(previous, last),
            Word::Punctuation => {}
            _ if kind != Word::Number => {
                if kind != Word::Connector && kind != Word::Punctuation {
                    words.out.push(connector);
                }
            }
            _ if words.rest.is_empty() => {}
            _ => {
                let number = word;
                (kind, word) = words.next();
                if kind == Word::Alphabet {
                    words.out.push(connector);
                    words.push(Word::Number, number);
                    (kind, word) = words.alphanumerics(kind, word);
                } else {
                    words.push(Word::Number, number);
                    if kind != Word::Connector && kind != Word::Punctuation {
                        words.out.push(connector);
                    }
                }
            }
        }
    }
    words.push(kind, word);
    words.out
}

struct Words<'t> {
    rest: &'t str,
    connector: char,
    out: String,
}

impl<'t> Words<'t> {
    fn push(&mut self, kind: Word, word: &str) {
        if kind == Word::Connector {
            self.out.extend(word.chars().map(|_| self.connector));
        } else {
            self.out.extend(word.chars().map(unicode::to_lower));
        }
    }

    /// Letters and digits that belong to the number before them.
    fn alphanumerics(&mut self, mut kind: Word, mut word: &'t str) -> (Word, &'t str) {
        while matches!(kind, Word::Alphabet | Word::Number) {
            self.push(kind, word);
            (kind, word) = self.next();
        }
        if !matches!(kind, Word::None | Word::Punctuation | Word::Connector) {
            self.out.push(self.connector);
        }
        (kind, word)
    }

    fn take(&mut self, length: usize) -> &'t str {
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        word
    }

    fn run(&self, belongs: impl Fn(char) -> bool) -> usize {
        self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len())
    }

    fn next(&mut self) -> (Word, &'t str) {
        let Some(first) = self.rest.chars().next() else {
            return (Word::None, "");
        };
        let (kind, length) = if is_connector(first) {
            (Word::Connector, self.run(is_connector))
        } else if is_punctuation(first) {
            (Word::Punctuation, self.run(is_punctuation))
        } else if unicode::is_upper(first) {
            (Word::Upper, self.upper_word())
        } else if is_alphabet(first) {
            (Word::Alphabet, self.run(|c| is_alphabet(c) && !unicode::is_upper(c)))
        } else if first.is_numeric() {
            (Word::Number, self.run(char::is_numeric))
        } else {
            let other = |c| !(is_connector(c) || is_alphabet(c) || char::is_numeric(c) || is_punctuation(c));
            (Word::Other, self.run(other))
        };
        (kind, self.take(length))
    }

    /// `Word`, or `HTTP` of `HTTPServer`.
    fn upper_word(&self) -> usize {
        let uppers = self.run(unicode::is_upper);
        let after = self.rest[uppers..].chars().next();
        let first = self.rest.chars().next().map_or(0, char::len_utf8);
        if uppers > first {
            let last = self.rest[..uppers].chars().next_back().map_or(0, char::len_utf8);
            return if after.is_some_and(is_alphabet) { uppers - last } else { uppers };
        }
        first
            + self.rest[first..]
                .find(|c| !is_alphabet(c) || unicode::is_upper(c))
                .unwrap_or(self.rest.len() - first)
    }
}

/// Letters of scripts that have upper and lower case.
fn is_alphabet(c: char) -> bool {
    unicode::is_letter(c)
        && (unicode::is_upper(c)
            || unicode::is_lower(c)
            || unicode::to_title(c) != c
            || unicode::to_lower(c) != c)
}

/// `unicode.IsPunct`: printable, but neither letter, number, mark, symbol nor space.
fn is_punctuation(c: char) -> bool {
    match c {
        '!'..='#' | '%'..='*' | ','..='/' | ':' | ';' | '?' | '@' | '['..=']' | '_' | '{' | '}' => true,
        c if c.is_ascii() => false,
        '\u{A1}' | '\u{A7}' | '\u{AB}' | '\u{B6}' | '\u{B7}' | '\u{BB}' | '\u{BF}' => true,
        '\u{2010}'..='\u{2027}'
        | '\u{2030}'..='\u{2043}'
        | '\u{2045}'..='\u{2051}'
        | '\u{2053}'..='\u{205E}' => true,
        '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301F}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases() {
        assert_eq!(separated_case("FirstName", '_'), "first_name");
        assert_eq!(separated_case("HTTPServer", '-'), "http-server");
        assert_eq!(separated_case("NoHTTPS", '_'), "no_https");
        assert_eq!(separated_case("GO PATH", '_'), "go_path");
        assert_eq!(separated_case("http2xx", '_'), "http_2xx");
        assert_eq!(pascal_case("http_server"), "HttpServer");
        assert_eq!(pascal_case("no_https"), "NoHttps");
        assert_eq!(title("hello wörld-x"), "Hello Wörld-X");
    }

    #[test]
    fn widths() {
        assert_eq!(abbreviate("hello world", 0, 5), "he...");
        assert_eq!(wrap("Hello World of text", 5, "", true), "Hello\nWorld\nof\ntext");
    }
}
