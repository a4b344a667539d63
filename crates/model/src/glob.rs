//! Globs of projects, sync windows and ignore rules ([`Glob`]).

use tiphys_gocompat::{glob::Glob, regex::Regex};

/// Whether a pattern matches a whole text; no character is a separator.
pub fn matches(pattern: &str, text: &str) -> bool {
    matches_with(pattern, text, None)
}

/// Whether a pattern of Application namespaces matches a whole text as a glob, or between slashes any part of
/// it as a regular expression, which matches nothing if it cannot be read; see [`regex_fault`].
pub fn matches_or_regex(pattern: &str, text: &str) -> bool {
    match regex_of(pattern) {
        Some(regex) => Regex::compile(regex).is_ok_and(|regex| regex.is_match(text)),
        None => matches(pattern, text),
    }
}

/// Why a pattern of Application namespaces matches nothing: it is a regular expression that cannot be read.
/// Argo CD's know look-around, ours do not.
pub fn regex_fault(pattern: &str) -> Option<String> {
    const LOOK_AROUND: [&str; 4] = ["(?=", "(?!", "(?<=", "(?<!"];
    let error = Regex::compile(regex_of(pattern)?).err()?;
    let why = match LOOK_AROUND.iter().any(|mark| pattern.contains(mark)) {
        true => "Tiphys knows no look-around".to_owned(),
        false => error.to_string(),
    };
    Some(format!("{pattern} matches nothing: {why}"))
}

fn regex_of(pattern: &str) -> Option<&str> {
    pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'))
}

/// Whether a pattern matches a whole text; `*` and `?` stop at the separator, `**` does not. A pattern that
/// cannot be read matches nothing.
pub fn matches_with(pattern: &str, text: &str, separator: Option<char>) -> bool {
    const SPECIAL: [char; 6] = ['*', '?', '[', '{', '}', '\\'];
    // Most are names or say "any".
    if !pattern.contains(SPECIAL) {
        return pattern == text;
    }
    let is_any = pattern == "*" && separator.is_none();
    is_any || Glob::compile(pattern).is_ok_and(|glob| glob.is_match(text, separator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_or_are_names() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("name", "name", true),
            ("name", "other", false),
            ("a}", "a}", true),
            ("team-{a,b}", "team-b", true),
            ("[", "[", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(!matches_with("*", "a/b", Some('/')));
    }
}
