//! The constraints that most charts have, such as `>=1.25.0-0 <2.0.0`, without the four regular expressions
//! that define all of them: compiling those takes longer than rendering a small chart.

use super::constraint::{Constraint, ConstraintError, Group, Parts};

/// Reads comparisons of plain versions joined by spaces or commas; nothing for every other text.
pub(super) fn parse(text: &str) -> Option<Result<Group, ConstraintError>> {
    let mut all = Vec::new();
    let mut rest = text.trim_matches(' ');
    loop {
        let (parts, behind) = comparison(rest)?;
        all.push(parts);
        if behind.is_empty() {
            return Some(all.iter().map(Constraint::from_parts).collect());
        }
        // A dash between spaces makes a range of the versions around it.
        let next = behind.trim_start_matches(' ');
        if next.starts_with('-') || (next.len() == behind.len() && !next.starts_with(',')) {
            return None;
        }
        rest = next.strip_prefix(',').unwrap_or(next).trim_start_matches(' ');
    }
}

/// An operator and a version at the start of a text, and what stands behind them.
fn comparison(text: &str) -> Option<(Parts<'_>, &str)> {
    let (operator, rest) = split(text, |c| matches!(c, '=' | '!' | '<' | '>' | '~' | '^'));
    if !matches!(operator, "" | "=" | "!=" | ">" | "<" | ">=" | "=>" | "<=" | "=<" | "~" | "~>" | "^") {
        return None;
    }
    let version = rest.trim_start_matches(' ');
    let (major, rest) = digits_or_wildcard(version.strip_prefix('v').unwrap_or(version));
    let (minor, rest) = number(rest)?;
    let (patch, rest) = if minor.is_empty() { ("", rest) } else { number(rest)? };
    let is_label = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let (prerelease, behind) = if rest.starts_with('-') { split(rest, is_label) } else { ("", rest) };
    if major.is_empty() || (!prerelease.is_empty() && prerelease[1..].split('.').any(str::is_empty)) {
        return None;
    }
    let version = &version[..version.len() - behind.len()];
    Some((Parts { operator, version, major, minor, patch, prerelease }, behind))
}

/// A dot with the number behind it, if there is a dot.
fn number(text: &str) -> Option<(&str, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some(("", text)) };
    let (digits, rest) = digits_or_wildcard(rest);
    (!digits.is_empty()).then(|| (&text[..=digits.len()], rest))
}

/// Digits or one wildcard at the start of a text, and the rest.
fn digits_or_wildcard(text: &str) -> (&str, &str) {
    if text.starts_with(['x', 'X', '*']) { text.split_at(1) } else { split(text, |c| c.is_ascii_digit()) }
}

/// The text in front of the first character that does not belong, and the rest.
fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::super::constraint::general;

    #[test]
    fn reads_what_the_general_reader_reads() {
        for text in [
            "1",
            "1.2",
            "1.2.3",
            "v1.2.3",
            ">=1.25.0-0",
            ">= 1.19.0-0 < 2",
            "^1.2",
            "~1.2.3",
            "~>1",
            "=1.0.0",
            "!=1.2",
            ">1,<2",
            ">1 , <2",
            "=>1.2 =<3",
            "  >1.2.3-alpha.1  ",
            "1.2.3-a-b",
            "1.2.3-01",
            "1.x",
            "*",
            "x",
            "0.0.*",
            "^1.2.X",
            ">=1.* <3",
            "1.x.3",
            "*.1",
            "1.2.x-0",
        ] {
            let plain = super::parse(text).expect(text).map(|group| format!("{group:?}"));
            assert_eq!(plain, general(text).map(|group| format!("{group:?}")), "{text}");
        }
    }

    #[test]
    fn leaves_the_rest_to_the_general_reader() {
        for text in [
            "",
            "1x",
            "x1",
            "1.xx",
            "*.",
            "1.2.3.4",
            "1.2.",
            ".1",
            "1 - 2",
            ">=1.2.3 - 2",
            "1.2.3-",
            "1.2.3-a..b",
            "1.2.3+b",
            ">==1",
            "1||2",
            ">1<2",
            "1 ,",
            ",1",
            "vx1",
            "1.2.3_4",
        ] {
            assert!(super::parse(text).is_none(), "{text}");
        }
    }
}
