//! Globs as the Go module `gobwas/glob` has them (its documentation of `Compile`).

use super::{BadPattern, check_length};

/// How deep groups may be nested.
const MAX_DEPTH: usize = 64;

/// A pattern: `*` and `?` stop at the separator, `**` does not; `[abc]` or `[!abc]`, `[a-c]` or `[!a-c]` (one
/// range, or characters among which `-` is one); `{a,b}`; `\` before a character. A group that never closes
/// ends with the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Char(char),
    /// `?`.
    Single,
    /// `*`.
    Any,
    /// `**`.
    Super,
    Class {
        class: Class,
        not: bool,
    },
    AnyOf(Vec<Vec<Part>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Class {
    Range(char, char),
    List(Vec<char>),
}

impl Glob {
    /// Reads a pattern.
    ///
    /// # Errors
    /// A class that does not close or is empty, a range that runs backwards, groups nested deeper than 64,
    /// more than 4,096 bytes.
    pub fn compile(pattern: &str) -> Result<Self, BadPattern> {
        check_length(pattern)?;
        let mut rest = pattern.chars().peekable();
        // The alternatives of each open group, the last of them being read; the pattern itself is the
        // outermost.
        let mut open: Vec<Vec<Vec<Part>>> = vec![vec![Vec::new()]];
        while let Some(c) = rest.next() {
            let in_group = open.len() > 1;
            let part = match c {
                '*' if rest.next_if_eq(&'*').is_some() => Part::Super,
                '*' => Part::Any,
                '?' => Part::Single,
                '[' => class(&mut rest)?,
                '{' if open.len() > MAX_DEPTH => return Err(BadPattern),
                '{' => {
                    open.push(vec![Vec::new()]);
                    continue;
                }
                ',' if in_group => {
                    open.last_mut().ok_or(BadPattern)?.push(Vec::new());
                    continue;
                }
                '}' if in_group => Part::AnyOf(open.pop().ok_or(BadPattern)?),
                '\\' => match rest.next() {
                    Some(escaped) => Part::Char(escaped),
                    None => continue,
                },
                c => Part::Char(c),
            };
            append(&mut open, part);
        }
        while open.len() > 1 {
            let group = Part::AnyOf(open.pop().unwrap_or_default());
            append(&mut open, group);
        }
        Ok(Self { parts: open.pop().and_then(|mut outermost| outermost.pop()).unwrap_or_default() })
    }

    /// Whether it matches a whole text. The time is bounded by the product of the lengths.
    pub fn is_match(&self, text: &str, separator: Option<char>) -> bool {
        let text: Vec<char> = text.chars().collect();
        let mut start = vec![false; text.len() + 1];
        start[0] = true;
        Matcher { text: &text, separator }.run(&self.parts, start)[text.len()]
    }
}

fn append(open: &mut [Vec<Vec<Part>>], part: Part) {
    if let Some(alternative) = open.last_mut().and_then(|group| group.last_mut()) {
        alternative.push(part);
    }
}

/// What stands between brackets.
fn class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Part, BadPattern> {
    let not = rest.next_if_eq(&'!').is_some();
    let first = *rest.peek().ok_or(BadPattern)?;
    let mut after = rest.clone();
    after.next();
    if after.next_if_eq(&'-').is_some() {
        let last = after.next().ok_or(BadPattern)?;
        *rest = after;
        let is_closed = rest.next() == Some(']');
        return match is_closed && first <= last {
            true => Ok(Part::Class { class: Class::Range(first, last), not }),
            false => Err(BadPattern),
        };
    }
    let mut listed = Vec::new();
    loop {
        match rest.next().ok_or(BadPattern)? {
            ']' if listed.is_empty() => return Err(BadPattern),
            ']' => return Ok(Part::Class { class: Class::List(listed), not }),
            '\\' => listed.push(rest.next().ok_or(BadPattern)?),
            c => listed.push(c),
        }
    }
}

struct Matcher<'t> {
    text: &'t [char],
    separator: Option<char>,
}

impl Matcher<'_> {
    /// The places of the text that parts lead to from those that are marked.
    fn run(&self, parts: &[Part], mut reached: Vec<bool>) -> Vec<bool> {
        for part in parts {
            reached = match part {
                Part::Super => self.spread(&reached, |_| true),
                Part::Any => self.spread(&reached, |c| Some(c) != self.separator),
                Part::AnyOf(alternatives) => {
                    let mut all = vec![false; reached.len()];
                    for alternative in alternatives {
                        let led = self.run(alternative, reached.clone());
                        all.iter_mut().zip(led).for_each(|(one, other)| *one |= other);
                    }
                    all
                }
                Part::Char(wanted) => self.step(&reached, |c| c == *wanted),
                Part::Single => self.step(&reached, |c| Some(c) != self.separator),
                Part::Class { class, not } => self.step(&reached, |c| {
                    let is_in = match class {
                        Class::Range(first, last) => (*first..=*last).contains(&c),
                        Class::List(listed) => listed.contains(&c),
                    };
                    is_in != *not
                }),
            };
        }
        reached
    }

    /// One character on.
    fn step(&self, reached: &[bool], fits: impl Fn(char) -> bool) -> Vec<bool> {
        let led = self.text.iter().zip(reached).map(|(c, is_reached)| *is_reached && fits(*c));
        std::iter::once(false).chain(led).collect()
    }

    /// Any number of characters on.
    fn spread(&self, reached: &[bool], fits: impl Fn(char) -> bool) -> Vec<bool> {
        let mut led = reached.to_vec();
        for (at, c) in self.text.iter().enumerate() {
            led[at + 1] |= led[at] && fits(*c);
        }
        led
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str, separator: Option<char>) -> Option<bool> {
        Glob::compile(pattern).ok().map(|glob| glob.is_match(text, separator))
    }

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*", "ba", false),
            ("a*b*c", "axxbyybc", true),
            ("https://git.example.com/acme/*", "https://git.example.com/acme/a/b", true),
            ("team-?", "team-a", true),
            ("{dev,prod}-*", "prod-eu", true),
            ("{a,{b,c}d}.yaml", "cd.yaml", true),
            ("{a,b}", "c", false),
            ("{a,b", "b", true),
            ("a,b}", "a,b}", true),
            ("[a-c]x", "bx", true),
            ("[a-c]x", "dx", false),
            ("[!a-c]x", "dx", true),
            ("[^a]", "^", true),
            ("[ab-d]", "-", true),
            ("[ab-d]", "c", false),
            ("[\\]]", "]", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("a\\", "a", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, text, None), Some(expected), "{pattern} {text}");
        }
    }

    #[test]
    fn only_two_stars_and_classes_cross_the_separator() {
        for (pattern, text, expected) in [
            ("a/*", "a/b", true),
            ("a/*", "a/b/c", false),
            ("a/**", "a/b/c", true),
            ("a?b", "a/b", false),
            ("a[!x]b", "a/b", true),
        ] {
            assert_eq!(matches(pattern, text, Some('/')), Some(expected), "{pattern} {text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for pattern in ["[", "[]", "[a", "[!]", "[b-a]", "[a-", "[a-bc]", "[\\", &"{".repeat(70)] {
            assert_eq!(matches(pattern, "a", None), None, "{pattern}");
        }
    }

    #[test]
    fn hostile_patterns_end() {
        assert_eq!(Glob::compile(&"a".repeat(4097)), Err(BadPattern));
        let text = "a".repeat(400);
        assert_eq!(matches(&"*a".repeat(500), &text, None), Some(false));
        assert_eq!(matches(&format!("{}b", "{*,*}".repeat(500)), &text, None), Some(false));
        let text = format!("{text}c");
        assert_eq!(matches(&format!("{}b", "{a,**".repeat(60)), &text, Some('/')), Some(false));
    }
}
