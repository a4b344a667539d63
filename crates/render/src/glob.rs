//! Globs of Argo CD's settings: `*`, `**`, `?`, `[a-z]`, `[!a]`, `{a,b}`, `\` before a character.

/// How many alternatives a pattern may expand to.
const MAX_ALTERNATIVES: usize = 1024;

/// Whether a glob matches a whole text. With `slash_stops`, `*` and `?` do not match a `/` (as in
/// lists of value files); without, they do (as in `directory.include`).
pub(crate) fn matches(pattern: &str, text: &str, slash_stops: bool) -> bool {
    let text: Vec<char> = text.chars().collect();
    alternatives(pattern).iter().any(|pattern| {
        let pattern: Vec<char> = pattern.chars().collect();
        matches_plain(&pattern, &text, slash_stops)
    })
}

/// Whether a text has characters that mean something in a glob.
pub(crate) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// Expands `{a,b}` groups from the left.
fn alternatives(pattern: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        if done.len() + open.len() >= MAX_ALTERNATIVES {
            break;
        }
        match first_group(&pattern) {
            None => done.push(pattern),
            Some((start, end, parts)) => {
                for part in parts {
                    open.push(format!("{}{part}{}", &pattern[..start], &pattern[end..]));
                }
            }
        }
    }
    done
}

/// The first group whose brace closes: where it starts and ends, and its parts.
fn first_group(pattern: &str) -> Option<(usize, usize, Vec<String>)> {
    let start = pattern.find('{')?;
    let mut depth = 0_usize;
    let mut parts = vec![String::new()];
    for (at, c) in pattern[start..].char_indices() {
        match c {
            '{' => {
                depth += 1;
                if depth == 1 {
                    continue;
                }
            }
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return Some((start, start + at + 1, parts));
                }
            }
            ',' if depth == 1 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    None
}

/// Matches without groups. Goes back to the last `*` only, and to the last `**` beyond that, so the
/// time is bounded by the product of the lengths for each of them.
fn matches_plain(pattern: &[char], text: &[char], slash_stops: bool) -> bool {
    // reachable[j]: whether pattern[..i] matches text[..j].
    let mut reachable = vec![false; text.len() + 1];
    reachable[0] = true;
    let mut i = 0;
    while i < pattern.len() {
        let mut next = vec![false; text.len() + 1];
        let stars = pattern[i..].iter().take_while(|c| **c == '*').count();
        if stars > 0 {
            let crosses = !slash_stops || stars > 1;
            // `**/` also matches no folder at all.
            let folders = slash_stops && stars > 1 && pattern.get(i + stars) == Some(&'/');
            let mut alive = false;
            for j in 0..=text.len() {
                alive = alive && (crosses || text[j - 1] != '/') || reachable[j];
                next[j] = alive;
            }
            if folders {
                let with: Vec<bool> = (0..=text.len())
                    .map(|j| reachable[j] || (j > 0 && next[j - 1] && text[j - 1] == '/'))
                    .collect();
                next = with;
                i += 1;
            }
            i += stars;
            reachable = next;
            continue;
        }
        let (width, class) = one(&pattern[i..]);
        for j in 0..text.len() {
            if reachable[j] {
                let c = text[j];
                next[j + 1] = match &class {
                    One::Any => !(slash_stops && c == '/'),
                    One::Char(wanted) => c == *wanted,
                    One::Class { ranges, negated } => {
                        ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
                            && !(slash_stops && c == '/')
                    }
                };
            }
        }
        i += width;
        reachable = next;
    }
    reachable[text.len()]
}

enum One {
    Any,
    Char(char),
    Class { ranges: Vec<(char, char)>, negated: bool },
}

/// What the first element of a pattern matches, and how many characters it takes.
fn one(pattern: &[char]) -> (usize, One) {
    match pattern {
        ['?', ..] => (1, One::Any),
        ['\\', c, ..] => (2, One::Char(*c)),
        ['[', rest @ ..] => match rest.iter().skip(1).position(|c| *c == ']') {
            Some(end) => {
                let body = &rest[..=end];
                let negated = matches!(body.first(), Some('!' | '^'));
                (end + 3, One::Class { ranges: ranges(&body[usize::from(negated)..]), negated })
            }
            None => (1, One::Char('[')),
        },
        [c, ..] => (1, One::Char(*c)),
        [] => (1, One::Any),
    }
}

fn ranges(body: &[char]) -> Vec<(char, char)> {
    let mut ranges = Vec::new();
    let mut rest = body;
    while let [low, after @ ..] = rest {
        match after {
            ['-', high, beyond @ ..] => {
                ranges.push((*low, *high));
                rest = beyond;
            }
            _ => {
                ranges.push((*low, *low));
                rest = after;
            }
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_of_include_cross_folders() {
        for (pattern, text, expected) in [
            ("*.yaml", "a/b.yaml", true),
            ("{config,secret}*", "secret.yaml", true),
            ("{config,secret}*", "other.yaml", false),
            ("{a,{b,c}d}.yaml", "cd.yaml", true),
            ("**/x.yaml", "a/b/x.yaml", true),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("", "", true),
            ("{open", "{open", true),
        ] {
            assert_eq!(matches(pattern, text, false), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn stars_of_value_files_stay_in_their_folder() {
        for (pattern, text, expected) in [
            ("a/*.yaml", "a/b.yaml", true),
            ("a/*.yaml", "a/b/c.yaml", false),
            ("a/**/*.yaml", "a/b/c.yaml", true),
            ("a/**/*.yaml", "a/c.yaml", true),
            ("**/*.yaml", "c.yaml", true),
        ] {
            assert_eq!(matches(pattern, text, true), expected, "{pattern} on {text}");
        }
    }
}
