//! Go's `path.Match` and, on Unix, `filepath.Match`: by it `.helmignore`, `--show-only` and the git generator
//! of ApplicationSets name files.

use super::{BadPattern, check_length};

/// Whether the whole name matches: `*` (also twice) and `?` stop at `/`, `[a-z]`, `[^a]`, `\` escapes.
///
/// # Errors
/// The part of the pattern that was needed is malformed; a pattern with stars has more than 4,096 bytes.
pub fn path_match(pattern: &str, name: &str) -> Result<bool, BadPattern> {
    const SPECIAL: [char; 4] = ['*', '?', '[', '\\'];
    // Most rules of most charts are plain names or `*.suffix`.
    if !pattern.contains(SPECIAL) {
        return Ok(pattern == name);
    }
    if let Some(suffix) = pattern.strip_prefix('*')
        && !suffix.contains(SPECIAL)
    {
        let head = name.strip_suffix(suffix);
        return Ok(head.is_some_and(|head| !head.contains('/')));
    }
    check_length(pattern)?;
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    match_from(&pattern, &name)
}

fn match_from(mut pattern: &[char], mut name: &[char]) -> Result<bool, BadPattern> {
    while !pattern.is_empty() {
        let star = pattern.starts_with(&['*']);
        while let Some(rest) = pattern.strip_prefix(&['*']) {
            pattern = rest;
        }
        let (chunk, rest) = pattern.split_at(chunk_len(pattern));
        if star && chunk.is_empty() {
            return Ok(!name.contains(&'/'));
        }
        pattern = rest;
        match match_chunk(chunk, name)? {
            Some(after) if !pattern.is_empty() || after.is_empty() => {
                name = after;
                continue;
            }
            _ => {}
        }
        if !star {
            check(pattern)?;
            return Ok(false);
        }
        match behind_star(chunk, pattern, name)? {
            Some(after) => name = after,
            None => {
                check(pattern)?;
                return Ok(false);
            }
        }
    }
    Ok(name.is_empty())
}

/// What is left of the name once a star took the fewest characters and the chunk matched.
fn behind_star<'n>(
    chunk: &[char],
    rest: &[char],
    name: &'n [char],
) -> Result<Option<&'n [char]>, BadPattern> {
    for at in 0..name.len() {
        if name[at] == '/' {
            break;
        }
        if let Some(after) = match_chunk(chunk, &name[at + 1..])?
            && (!rest.is_empty() || after.is_empty())
        {
            return Ok(Some(after));
        }
    }
    Ok(None)
}

/// Whether the rest of a pattern is well-formed.
fn check(mut pattern: &[char]) -> Result<(), BadPattern> {
    while !pattern.is_empty() {
        while let Some(rest) = pattern.strip_prefix(&['*']) {
            pattern = rest;
        }
        let (chunk, rest) = pattern.split_at(chunk_len(pattern));
        match_chunk(chunk, &[])?;
        pattern = rest;
    }
    Ok(())
}

/// Length of the pattern up to the next star outside brackets.
fn chunk_len(pattern: &[char]) -> usize {
    let mut in_range = false;
    let mut at = 0;
    while at < pattern.len() {
        match pattern[at] {
            '\\' => at += 1,
            '[' => in_range = true,
            ']' => in_range = false,
            '*' if !in_range => return at,
            _ => {}
        }
        at += 1;
    }
    pattern.len()
}

/// Matches a chunk without stars at the start of the name. Goes on checking the syntax after a mismatch.
fn match_chunk<'n>(mut chunk: &[char], mut name: &'n [char]) -> Result<Option<&'n [char]>, BadPattern> {
    let mut failed = false;
    while let Some(&first) = chunk.first() {
        failed |= name.is_empty();
        let next = name.first().copied().unwrap_or('\0');
        match first {
            '[' => {
                let (matched, rest) = match_range(&chunk[1..], next)?;
                failed |= !matched;
                chunk = rest;
            }
            '?' => {
                failed |= next == '/';
                chunk = &chunk[1..];
            }
            _ => {
                let escaped = first == '\\';
                let plain = if escaped { *chunk.get(1).ok_or(BadPattern)? } else { first };
                failed |= plain != next;
                chunk = &chunk[if escaped { 2 } else { 1 }..];
            }
        }
        name = name.get(1..).unwrap_or_default();
    }
    Ok((!failed).then_some(name))
}

/// Matches one character with what stands behind `[`; returns the chunk behind `]`.
fn match_range(mut chunk: &[char], next: char) -> Result<(bool, &[char]), BadPattern> {
    let negated = chunk.first() == Some(&'^');
    if negated {
        chunk = &chunk[1..];
    }
    let (mut matched, mut ranges) = (false, 0);
    loop {
        if ranges > 0 && chunk.first() == Some(&']') {
            return Ok((matched != negated, &chunk[1..]));
        }
        let (low, rest) = range_end(chunk)?;
        let (high, rest) = if rest.first() == Some(&'-') { range_end(&rest[1..])? } else { (low, rest) };
        matched |= low <= next && next <= high;
        chunk = rest;
        ranges += 1;
    }
}

fn range_end(chunk: &[char]) -> Result<(char, &[char]), BadPattern> {
    let (&first, mut rest) = chunk.split_first().ok_or(BadPattern)?;
    let mut end = first;
    match first {
        '-' | ']' => return Err(BadPattern),
        '\\' => (end, rest) = rest.split_first().map(|(c, rest)| (*c, rest)).ok_or(BadPattern)?,
        _ => {}
    }
    if rest.is_empty() { Err(BadPattern) } else { Ok((end, rest)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_as_go_documents() {
        for (pattern, name, expected) in [
            ("abc", "abc", Ok(true)),
            ("*", "abc", Ok(true)),
            ("*c", "abc", Ok(true)),
            ("a*", "ab/c", Ok(false)),
            ("a*/b", "abc/b", Ok(true)),
            ("a*b*c*d*e*/f", "axbxcxdxe/f", Ok(true)),
            ("a?c", "abc", Ok(true)),
            ("a?c", "a/c", Ok(false)),
            ("ab[c]", "abc", Ok(true)),
            ("ab[^c]", "abc", Ok(false)),
            ("[a-ζ]*", "α", Ok(true)),
            ("a\\*", "a*", Ok(true)),
            ("[", "a", Err(BadPattern)),
            ("[]a]", "]", Err(BadPattern)),
            ("a[", "ab", Err(BadPattern)),
            ("templates/.?*", "templates/.x", Ok(true)),
        ] {
            assert_eq!(path_match(pattern, name), expected, "{pattern} {name}");
        }
    }
}
