//! Globs of projects, sync windows and ignore rules: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, `\x`. No
//! character is a separator.

use tiphys_gocompat::regex::Regex;

/// Most steps that matching one pattern may take.
const MAX_STEPS: usize = 100_000;
/// Deepest nesting of `{}`.
const MAX_DEPTH: usize = 8;

/// Whether a pattern matches a whole text.
pub fn matches(pattern: &str, text: &str) -> bool {
    matches_with(pattern, text, None)
}

/// Whether a pattern of Application namespaces matches a whole text as a glob, or between slashes any part of it as a
/// regular expression, which matches nothing if it cannot be read; see [`regex_fault`].
pub fn matches_or_regex(pattern: &str, text: &str) -> bool {
    match regex_of(pattern) {
        Some(regex) => Regex::compile(regex).is_ok_and(|regex| regex.is_match(text)),
        None => matches(pattern, text),
    }
}

/// Why a pattern of Application namespaces matches nothing: it is a regular expression that cannot be read. Argo CD's
/// know look-around, ours do not.
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

/// Whether a pattern matches a whole text; `*` and `?` stop at the separator, `**` does not.
pub fn matches_with(pattern: &str, text: &str, separator: Option<char>) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let mut matcher = Matcher { separator, steps: MAX_STEPS };
    matcher.run(&pattern, &text, 0)
}

struct Matcher {
    separator: Option<char>,
    /// Steps left.
    steps: usize,
}

impl Matcher {
    fn run(&mut self, pattern: &[char], text: &[char], depth: usize) -> bool {
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 {
            return false;
        }
        match pattern.first() {
            None => text.is_empty(),
            Some('*') => {
                let stars = pattern.iter().take_while(|c| **c == '*').count();
                let stop = self.separator.filter(|_| stars == 1);
                let reach = text.iter().position(|c| Some(*c) == stop).unwrap_or(text.len());
                (0..=reach).any(|at| self.run(&pattern[stars..], &text[at..], depth))
            }
            Some('{') if depth < MAX_DEPTH && group(pattern).is_some() => {
                let Some((length, alternatives)) = group(pattern) else { return false };
                alternatives.iter().any(|alternative| {
                    let whole: Vec<char> = alternative.iter().chain(&pattern[length..]).copied().collect();
                    self.run(&whole, text, depth + 1)
                })
            }
            Some(head) => {
                let Some(c) = text.first().filter(|c| *head == **c || Some(**c) != self.separator) else {
                    return false;
                };
                one(pattern, *c).is_some_and(|length| self.run(&pattern[length..], &text[1..], depth))
            }
        }
    }
}

/// Whether the head of a pattern matches one character, and how long that head is.
fn one(pattern: &[char], c: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '\\' => (pattern.get(1) == Some(&c)).then_some(2),
        '[' => class(pattern, c),
        literal => (*literal == c).then_some(1),
    }
}

fn class(pattern: &[char], c: char) -> Option<usize> {
    let close = pattern.iter().skip(2).position(|c| *c == ']')? + 2;
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let body = &pattern[1 + usize::from(negated)..close];
    let mut found = false;
    let mut at = 0;
    while at < body.len() {
        if body.get(at + 1) == Some(&'-') && at + 2 < body.len() {
            found |= body[at] <= c && c <= body[at + 2];
            at += 3;
        } else {
            found |= body[at] == c;
            at += 1;
        }
    }
    (found != negated).then_some(close + 1)
}

/// The alternatives of a `{…}` at the head of a pattern, and how long it is.
fn group(pattern: &[char]) -> Option<(usize, Vec<Vec<char>>)> {
    let mut depth = 0usize;
    let mut alternatives = vec![Vec::new()];
    for (at, c) in pattern.iter().copied().enumerate() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match c {
            '{' if depth == 1 => {}
            '}' if depth == 0 => return Some((at + 1, alternatives)),
            ',' if depth == 1 => alternatives.push(Vec::new()),
            c => alternatives.last_mut()?.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_as_projects_expect() {
        for (pattern, text) in [
            ("*", ""),
            ("https://github.com/acme/*", "https://github.com/acme/a/b"),
            ("team-?", "team-a"),
            ("{dev,prod}-*", "prod-eu"),
            ("[a-c]x", "bx"),
            ("[!a]x", "bx"),
            ("a*b*c", "axxbyybc"),
            ("\\*", "*"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*", "ba"), ("[a-c]x", "dx"), ("{a,b}", "c"), ("", "x"), ("\\*", "x")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn hostile_patterns_end() {
        assert!(!matches(&"*a".repeat(500), &"a".repeat(400)));
        let text = "a".repeat(300);
        assert!(!matches(&format!("{}b", "{*,*}".repeat(7)), &text));
    }
}
