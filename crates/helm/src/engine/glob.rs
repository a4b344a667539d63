//! The globs of `.Files.Glob`: `*` and `?` stop at `/`, `**` does not, `[a-z]`, `[!a]`, `{a,b}`.

use regex::Regex;

/// A compiled glob. One that is malformed matches everything, as in Helm.
pub(crate) struct Glob(Option<Regex>);

impl Glob {
    /// Compiles a glob.
    pub(crate) fn new(pattern: &str) -> Self {
        Self(translate(pattern).and_then(|regex| Regex::new(&regex).ok()))
    }

    /// Whether the whole path matches.
    pub(crate) fn matches(&self, path: &str) -> bool {
        self.0.as_ref().is_none_or(|regex| regex.is_match(path))
    }
}

fn translate(pattern: &str) -> Option<String> {
    let mut regex = String::from("(?s)^");
    let mut chars = pattern.chars().peekable();
    let mut open = 0_usize;
    while let Some(next) = chars.next() {
        match next {
            '*' => {
                let mut stars = 1;
                while chars.next_if_eq(&'*').is_some() {
                    stars += 1;
                }
                regex.push_str(if stars > 1 { ".*" } else { "[^/]*" });
            }
            '?' => regex.push_str("[^/]"),
            '\\' => regex.push_str(&regex::escape(&chars.next()?.to_string())),
            '[' => range(&mut chars, &mut regex)?,
            '{' => {
                open += 1;
                regex.push_str("(?:");
            }
            '}' if open > 0 => {
                open -= 1;
                regex.push(')');
            }
            ',' if open > 0 => regex.push('|'),
            plain => regex.push_str(&regex::escape(&plain.to_string())),
        }
    }
    regex.push('$');
    (open == 0).then_some(regex)
}

fn range(chars: &mut impl Iterator<Item = char>, regex: &mut String) -> Option<()> {
    let mut inner = String::new();
    loop {
        match chars.next()? {
            ']' if !inner.is_empty() => break,
            next => inner.push(next),
        }
    }
    let (negated, body) = inner.strip_prefix('!').map_or((false, inner.as_str()), |rest| (true, rest));
    let letters: Vec<char> = body.chars().collect();
    regex.push_str(if negated { "[^" } else { "[" });
    match letters.as_slice() {
        [low, '-', high] => {
            regex.push_str(&format!(
                "{}-{}",
                regex::escape(&low.to_string()),
                regex::escape(&high.to_string())
            ));
        }
        many => many.iter().for_each(|c| {
            regex.push_str(&regex::escape(&c.to_string()));
        }),
    }
    regex.push(']');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stop_at_slashes_unless_doubled() {
        for (pattern, path, expected) in [
            ("*.txt", "a.txt", true),
            ("*.txt", "d/a.txt", false),
            ("**.txt", "d/a.txt", true),
            ("d/**", "d/e/f", true),
            ("{a,b}/*.y?ml", "b/x.yaml", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[ab]x", "cx", false),
            ("a\\*", "a*", true),
            ("{a", "anything", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(path), expected, "{pattern} {path}");
        }
    }
}
