//! Patterns of names: `*` stands for any text, `?` for one character (Kyverno, `ext/wildcard`).

/// Whether a pattern matches a whole text.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where the last `*` stands, and where the text goes on after what it stands for.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p, t));
                p += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == text[t] => (p, t) = (p + 1, t + 1),
            _ => match retry {
                Some((star, after)) => {
                    retry = Some((star, after + 1));
                    (p, t) = (star + 1, after + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|it| *it == '*')
}

/// Whether a text is a pattern and no name.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_is_any_text_and_a_question_mark_one_character() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("?*", "", false),
            ("?*", "a", true),
            ("*:latest", "nginx:latest", true),
            ("*:latest", "nginx:latest-1", false),
            ("*/*:*", "a/b:c", true),
            ("a*b*c", "a-b-b-c", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("ü*", "über", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
