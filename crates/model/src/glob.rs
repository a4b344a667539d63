//! Globs of projects, sync windows and ignore rules: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, `\x`. No
//! character is a separator.

/// Most steps that matching one pattern may take.
const MAX_STEPS: usize = 100_000;
/// Deepest nesting of `{}`.
const MAX_DEPTH: usize = 8;

/// Whether a pattern matches a whole text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let mut steps = MAX_STEPS;
    matches_from(&pattern, &text, 0, &mut steps)
}

fn matches_from(pattern: &[char], text: &[char], depth: usize, steps: &mut usize) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go back to: the position after the last star, and the text it was tried at.
    let mut star: Option<(usize, usize)> = None;
    loop {
        *steps = steps.saturating_sub(1);
        if *steps == 0 {
            return false;
        }
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some('{') if depth < MAX_DEPTH => {
                if let Some((ends, alternatives)) = group(&pattern[p..]) {
                    let tail = &pattern[p + ends..];
                    let any = alternatives.iter().any(|alternative| {
                        let whole: Vec<char> = alternative.iter().chain(tail).copied().collect();
                        matches_from(&whole, &text[t..], depth + 1, steps)
                    });
                    if any {
                        return true;
                    }
                }
            }
            None if t == text.len() => return true,
            _ => {
                if let Some(length) = text.get(t).and_then(|c| one(&pattern[p..], *c)) {
                    p += length;
                    t += 1;
                    continue;
                }
            }
        }
        match star {
            Some((after, at)) if at < text.len() => {
                star = Some((after, at + 1));
                (p, t) = (after, at + 1);
            }
            _ => return false,
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
