//! Globs as the Go module `bmatcuk/doublestar` has them (its README, "Patterns"), and Git's, which lack what
//! makes those special.

use super::{BadPattern, check_length};

/// How many patterns one with groups may stand for.
const MAX_ALTERNATIVES: usize = 1024;

/// Whether a pattern matches a whole path: `*` and `?` stop at `/`, `**` as a part of its own is any number
/// of folders, none included; `[abc]`, `[^abc]` or `[!abc]` with ranges; `{a,b}`; `\` before a character.
///
/// # Errors
/// A class or group that does not close, an empty class, a `\` at the end; groups that stand for more than
/// 1,024 patterns; more than 4,096 bytes.
pub fn doublestar(pattern: &str, path: &str) -> Result<bool, BadPattern> {
    check_length(pattern)?;
    let all = alternatives(pattern.chars().collect())?;
    let compiled = all.iter().map(|one| compile(one, false)).collect::<Result<Vec<_>, _>>()?;
    Ok(compiled.iter().any(|parts| is_match(parts, path, false)))
}

/// Whether a pattern matches a whole path as one for `git ls-files` does (gitglossary, "pathspec"): stars and
/// `?` do not stop at `/`. A malformed one matches nothing. Groups, which are none for Git, stand for their
/// alternatives.
pub fn pathspec(pattern: &str, path: &str) -> bool {
    if check_length(pattern).is_err() {
        return false;
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let all = alternatives(pattern.clone()).unwrap_or_else(|_| vec![pattern]);
    all.iter().filter_map(|one| compile(one, true).ok()).any(|parts| is_match(&parts, path, true))
}

enum Part {
    Char(char),
    /// `?`.
    Single,
    /// `*`.
    Star,
    /// `**/`.
    Folders,
    /// `**` at the end.
    Rest,
    Class {
        ranges: Vec<(char, char)>,
        not: bool,
    },
    /// The end, if that is where the path ends: `/**` and `/**/` at the end match the folder itself, too.
    Itself,
}

/// The patterns without groups that one with groups stands for.
fn alternatives(pattern: Vec<char>) -> Result<Vec<Vec<char>>, BadPattern> {
    let (mut done, mut open) = (Vec::new(), vec![pattern]);
    while let Some(pattern) = open.pop() {
        if done.len() + open.len() > MAX_ALTERNATIVES {
            return Err(BadPattern);
        }
        let Some(start) = outside_classes(&pattern, |c| c == '{')? else {
            done.push(pattern);
            continue;
        };
        let (end, commas) = group(&pattern[start + 1..])?;
        let bounds: Vec<usize> = commas.into_iter().chain([end]).collect();
        let mut from = 0;
        for until in bounds {
            let inner = &pattern[start + 1..];
            open.push([&pattern[..start], &inner[from..until], &inner[end + 1..]].concat());
            from = until + 1;
        }
    }
    Ok(done)
}

/// The first character that fits, is not escaped and does not stand in a class. One that closes a group which
/// nothing opened is malformed.
fn outside_classes(pattern: &[char], fits: impl Fn(char) -> bool) -> Result<Option<usize>, BadPattern> {
    let mut at = 0;
    while let Some(c) = pattern.get(at) {
        match c {
            '\\' => at += 2,
            '[' => at += class(&pattern[at..])?.0,
            '}' => return Err(BadPattern),
            c if fits(*c) => return Ok(Some(at)),
            _ => at += 1,
        }
    }
    Ok(None)
}

/// Where a group closes, and its commas, counted from behind its brace.
fn group(inner: &[char]) -> Result<(usize, Vec<usize>), BadPattern> {
    let (mut at, mut depth, mut commas) = (0, 0_usize, Vec::new());
    while let Some(c) = inner.get(at) {
        match c {
            '\\' => at += 1,
            '{' => depth += 1,
            '}' if depth == 0 => return Ok((at, commas)),
            '}' => depth -= 1,
            ',' if depth == 0 => commas.push(at),
            _ => {}
        }
        at += 1;
    }
    Err(BadPattern)
}

/// Without folders (`is_flat`) a slash is a character like any other.
fn compile(pattern: &[char], is_flat: bool) -> Result<Vec<Part>, BadPattern> {
    let (mut parts, mut at) = (Vec::new(), 0);
    let mut starts_part = true;
    while let Some(c) = pattern.get(at) {
        let rest = &pattern[at..];
        if !is_flat && matches!(rest, ['/', '*', '*'] | ['/', '*', '*', '/']) {
            parts.push(Part::Itself);
        }
        let (width, part) = match rest {
            ['*', ..] if is_flat => (1, Part::Star),
            ['*', '*', '/', ..] if starts_part => (3, Part::Folders),
            ['*', '*'] if starts_part => (2, Part::Rest),
            ['*', '*', ..] => (2, Part::Star),
            ['*', ..] => (1, Part::Star),
            ['?', ..] => (1, Part::Single),
            ['[', ..] => class(rest)?,
            ['\\', escaped, ..] => (2, Part::Char(*escaped)),
            ['\\'] => return Err(BadPattern),
            _ => (1, Part::Char(*c)),
        };
        starts_part = matches!(part, Part::Folders | Part::Char('/'));
        parts.push(part);
        at += width;
    }
    Ok(parts)
}

/// The class that a pattern begins with, and how long it is.
fn class(pattern: &[char]) -> Result<(usize, Part), BadPattern> {
    let not = matches!(pattern.get(1), Some('!' | '^'));
    let start = 1 + usize::from(not);
    let (mut ranges, mut at) = (Vec::new(), start);
    loop {
        match pattern.get(at).ok_or(BadPattern)? {
            ']' if at == start => return Err(BadPattern),
            ']' => return Ok((at + 1, Part::Class { ranges, not })),
            _ => {}
        }
        let first = class_char(pattern, &mut at)?;
        let is_range = pattern.get(at) == Some(&'-') && pattern.get(at + 1).is_some_and(|next| *next != ']');
        let last = match is_range {
            true => {
                at += 1;
                class_char(pattern, &mut at)?
            }
            false => first,
        };
        // What a range begins with matches even where it runs backwards.
        ranges.push((first, last.max(first)));
    }
}

/// One character of a class, which may be escaped.
fn class_char(pattern: &[char], at: &mut usize) -> Result<char, BadPattern> {
    *at += usize::from(pattern.get(*at) == Some(&'\\'));
    let c = pattern.get(*at).copied().ok_or(BadPattern)?;
    *at += 1;
    Ok(c)
}

/// Follows all ways through the parts at once.
fn is_match(parts: &[Part], path: &str, is_flat: bool) -> bool {
    let path: Vec<char> = path.chars().collect();
    let end = path.len();
    let mut reached = vec![false; end + 1];
    reached[0] = true;
    for part in parts {
        let step = |fits: &dyn Fn(char) -> bool| -> Vec<bool> {
            let led = path.iter().zip(&reached).map(|(c, is_reached)| *is_reached && fits(*c));
            std::iter::once(false).chain(led).collect()
        };
        reached = match part {
            Part::Itself if reached[end] => return true,
            Part::Itself => reached,
            Part::Rest => return reached.contains(&true),
            Part::Char(wanted) => step(&|c| c == *wanted),
            Part::Single => step(&|c| is_flat || c != '/'),
            Part::Class { ranges, not } => {
                step(&|c| ranges.iter().any(|(first, last)| (*first..=*last).contains(&c)) != *not)
            }
            Part::Star => {
                for (at, c) in path.iter().enumerate() {
                    reached[at + 1] |= reached[at] && (is_flat || *c != '/');
                }
                reached
            }
            Part::Folders => {
                let mut seen = false;
                (0..=end)
                    .map(|at| {
                        let after_slash = seen && at > 0 && path[at - 1] == '/';
                        seen |= reached[at];
                        reached[at] || after_slash
                    })
                    .collect()
            }
        };
    }
    reached[end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_stars_are_folders() {
        for (pattern, path, expected) in [
            ("a/*.yaml", "a/b.yaml", true),
            ("a/*.yaml", "a/b/c.yaml", false),
            ("a/**/*.yaml", "a/b/c.yaml", true),
            ("a/**/*.yaml", "a/c.yaml", true),
            ("**/*.yaml", "c.yaml", true),
            ("a/**", "a/b/c", true),
            ("a/**", "a", true),
            ("a/**", "ab", false),
            ("a/**/", "a/b", false),
            ("a**", "a/b", false),
            ("a**", "ab", true),
            ("{a,b/**}/c", "b/x/c", true),
            ("[!a-c]x", "dx", true),
            ("[^a-c]x", "bx", false),
            ("[a-]", "-", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
        ] {
            assert_eq!(doublestar(pattern, path), Ok(expected), "{pattern} {path}");
        }
    }

    #[test]
    fn to_git_a_slash_is_a_character() {
        for (pattern, path, expected) in [
            ("apps/*.yaml", "apps/a/b.yaml", true),
            ("apps/?/b", "apps///b", true),
            ("**/b", "b", false),
            ("**/b", "a/b", true),
            ("eu-[a-z0-9]", "eu-1", true),
            ("eu-[^a-z]", "eu-a", false),
            ("[", "[", false),
            ("{a,b}/c", "b/c", true),
            ("{a", "{a", true),
        ] {
            assert_eq!(pathspec(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for pattern in ["[", "[]", "[]a]", "a[", "{a", "a}", "\\", "[a-", "a{b,[}"] {
            assert_eq!(doublestar(pattern, "a"), Err(BadPattern), "{pattern}");
        }
    }

    #[test]
    fn hostile_patterns_end() {
        let path = "a".repeat(400);
        assert_eq!(doublestar(&"*a".repeat(500), &path), Ok(false));
        assert_eq!(doublestar(&format!("{}b", "{a,*}".repeat(11)), &path), Err(BadPattern));
        assert_eq!(doublestar(&"{".repeat(10_000), &path), Err(BadPattern));
    }
}
