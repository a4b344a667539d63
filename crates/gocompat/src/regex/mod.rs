//! Regular expressions with the syntax, the meaning and the errors of Go's `regexp`, run by the regex crate.

mod class;
mod expand;
mod translate;

use crate::rawstr;
use expand::Names;
use std::borrow::Cow;

/// Largest compiled expression, in bytes.
const SIZE_LIMIT: usize = 16 << 20;
const NEST_LIMIT: u32 = 1000;

/// Texts up to this length are nobody's concern.
const SHORT: usize = 1 << 20;

/// A pattern that Go refuses, with Go's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {code}: `{part}`")]
pub struct RegexError {
    /// What is wrong.
    pub code: &'static str,
    /// The part of the pattern where it is.
    pub part: String,
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Regex {
    inner: ::regex::Regex,
    names: Names,
}

impl Regex {
    /// `regexp.Compile`
    ///
    /// # Errors
    /// Patterns that Go refuses, and patterns that compile to more than 16 MiB.
    pub fn compile(pattern: &str) -> Result<Self, RegexError> {
        let (translated, names) = translate::translate(pattern)?;
        ::regex::RegexBuilder::new(&translated)
            .size_limit(SIZE_LIMIT)
            .nest_limit(NEST_LIMIT)
            .build()
            .map(|inner| Self { inner, names })
            .map_err(|error| RegexError {
                code: match error {
                    ::regex::Error::CompiledTooBig(_) => "expression too large",
                    _ => "invalid or unsupported syntax",
                },
                part: pattern.to_owned(),
            })
    }

    /// Checks that Go takes a pattern, without compiling it.
    ///
    /// # Errors
    /// Patterns that Go refuses.
    pub fn check(pattern: &str) -> Result<(), RegexError> {
        translate::translate(pattern).map(drop)
    }

    /// Whether it matches somewhere.
    pub fn is_match(&self, text: &str) -> bool {
        self.inner.is_match(text)
    }

    /// The first match.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.inner.find(text).map(|found| found.as_str())
    }

    /// The groups of the first match, the whole match first; nothing for a group that took no part.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Vec<Option<&'t str>>> {
        let found = self.inner.captures(text)?;
        Some(found.iter().map(|group| group.map(|group| group.as_str())).collect())
    }

    /// `FindAllString`: at most `limit` matches, or all if that is negative.
    pub fn find_all<'t>(&self, text: &'t str, limit: i64) -> Vec<&'t str> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.inner.find_iter(text).take(limit).map(|found| found.as_str()).collect()
    }

    /// `ReplaceAllString`, with `$1` and `${name}` in the replacement.
    pub fn replace_all<'t>(&self, text: &'t str, replacement: &str) -> Cow<'t, str> {
        if !replacement.contains('$') {
            return self.replace_all_literal(text, replacement);
        }
        renormalised(self.inner.replace_all(text, |found: &::regex::Captures<'_>| {
            let mut out = String::new();
            expand::expand(replacement, &self.names, found, &mut out);
            out
        }))
    }

    /// A length in bytes that the text has at most when every match is replaced, with what `$` names or
    /// literally.
    pub fn replaced_length(&self, text: &str, replacement: &str) -> usize {
        let named = replacement.bytes().filter(|byte| *byte == b'$').count();
        // Most texts are short enough however often they match.
        let at_most = |matches: usize| {
            let copies = text.len().saturating_mul(named + 1);
            matches.saturating_mul(replacement.len()).saturating_add(copies)
        };
        match at_most(text.len() + 1) {
            length if length <= SHORT => length,
            _ => at_most(self.inner.find_iter(text).count()),
        }
    }

    /// `ReplaceAllLiteralString`
    pub fn replace_all_literal<'t>(&self, text: &'t str, replacement: &str) -> Cow<'t, str> {
        renormalised(self.inner.replace_all(text, ::regex::NoExpand(replacement)))
    }

    /// `Split`: at most `limit` parts, or all if that is negative; none for 0.
    pub fn split<'t>(&self, text: &'t str, limit: i64) -> Vec<&'t str> {
        if limit == 0 {
            return Vec::new();
        }
        if text.is_empty() && !self.inner.as_str().is_empty() {
            return vec![text];
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let (mut parts, mut from, mut end) = (Vec::new(), 0, 0);
        for found in self.inner.find_iter(text) {
            if parts.len() + 1 == limit {
                break;
            }
            end = found.start();
            if found.end() != 0 {
                parts.push(&text[from..end]);
            }
            from = found.end();
        }
        if end != text.len() {
            parts.push(&text[from..]);
        }
        parts
    }
}

fn renormalised(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Owned(text) => Cow::Owned(rawstr::renormalise(text)),
        borrowed => borrowed,
    }
}

/// `regexp.QuoteMeta`
pub fn quote_meta(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Regex::compile(pattern).unwrap().is_match(text)
    }

    fn error(pattern: &str) -> String {
        Regex::compile(pattern).unwrap_err().to_string()
    }

    #[test]
    fn syntax_only_go_has() {
        assert!(matches(r"^\Qa.b\E$", "a.b"));
        assert!(matches(r"^\101$", "A"));
        assert!(matches(r"^a{,5}$", "a{,5}"));
        assert!(matches(r"^[]a-]+$", "]a-"));
        assert!(matches(r"^[[a&&b]+$", "[a&b"));
        assert!(matches(r"^\x{e9}\z", "é"));
    }

    #[test]
    fn classes_are_ascii() {
        assert!(!matches(r"\d", "٣"));
        assert!(!matches(r"^\w$", "é"));
        assert!(!matches(r"\s", "\u{b}"));
        assert!(matches(r"^[^\W]+$", "abc_1"));
        assert!(matches(r"^\bfoo\b", "foo bar"));
    }

    #[test]
    fn errors_of_go() {
        assert_eq!(error("a**"), "error parsing regexp: invalid nested repetition operator: `**`");
        assert_eq!(error("*a"), "error parsing regexp: missing argument to repetition operator: `*`");
        assert_eq!(error("(a"), "error parsing regexp: missing closing ): `(a`");
        assert_eq!(error("a)"), "error parsing regexp: unexpected ): `a)`");
        assert_eq!(error("[a"), "error parsing regexp: missing closing ]: `[a`");
        assert_eq!(error(r"\y"), r"error parsing regexp: invalid escape sequence: `\y`");
        assert_eq!(error("a{1001}"), "error parsing regexp: invalid repeat count: `{1001}`");
        assert_eq!(error("(?x)a"), "error parsing regexp: invalid or unsupported Perl syntax: `(?x`");
        assert_eq!(error("(?=a)"), "error parsing regexp: invalid or unsupported Perl syntax: `(?=`");
        assert_eq!(error("[z-a]"), "error parsing regexp: invalid character class range: `z-a`");
    }

    #[test]
    fn groups_may_share_a_name() {
        let regex = Regex::compile("(?P<n>a)|(?<n>b)|(?P<1x>c)").unwrap();
        assert_eq!(regex.replace_all("abcd", "<$n>"), "<a><b><>d");
        assert_eq!(regex.replace_all("abcd", "<${1x}|$1x|$1>"), "<||a><||><c|c|>d");
        assert_eq!(regex.captures("b"), Some(vec![Some("b"), None, Some("b"), None]));
    }

    #[test]
    fn what_a_dollar_sign_names() {
        let regex = Regex::compile("(?P<word>[a-z]+)-(é)").unwrap();
        for (replacement, want) in [
            ("$word/$0", "ab/ab-é"),
            ("$wordé", ""),
            ("${word}é", "abé"),
            ("$01|$1_|$1é|$3", "|||"),
            ("$$1 $ ${ ${} ${word $-", "$1 $ ${ ${} ${word $-"),
            ("$1234567890", ""),
        ] {
            assert_eq!(regex.replace_all("ab-é", replacement), want, "{replacement}");
        }
    }

    #[test]
    fn replacing_and_splitting() {
        let regex = Regex::compile("a*").unwrap();
        assert_eq!(regex.replace_all("baaac", "X"), "XbXcX");
        let regex = Regex::compile("(a)(b)?").unwrap();
        assert_eq!(regex.replace_all("ab a", "${1}W$2"), "aWb aW");
        assert_eq!(Regex::compile("x").unwrap().split("axbxc", 2), ["a", "bxc"]);
        assert_eq!(Regex::compile("").unwrap().split("abc", -1), ["a", "b", "c"]);
    }
}
