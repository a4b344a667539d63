//! Replacements with `$1` and `${name}` (`Regexp.Expand`).

use std::collections::HashMap;

use ::regex::Captures;

use crate::unicode::{is_digit, is_letter};

/// Which groups have a name. Go allows names that begin with a digit, and several groups of one name.
pub(super) type Names = HashMap<String, Vec<usize>>;

/// Appends a replacement, with what the match's groups hold.
pub(super) fn expand(template: &str, names: &Names, found: &Captures<'_>, out: &mut String) {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = name(rest) {
            out.push_str(group(name, names, found));
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
}

/// What a name or number stands for: of several groups of one name the first that took part.
fn group<'t>(name: &str, names: &Names, found: &Captures<'t>) -> &'t str {
    let held = match number(name) {
        Some(number) => found.get(number),
        None => names.get(name).and_then(|groups| groups.iter().find_map(|group| found.get(*group))),
    };
    held.map_or("", |held| held.as_str())
}

/// The name at the beginning of a text that followed a dollar sign, and what comes after it.
fn name(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('{');
    let text = inner.unwrap_or(text);
    let end = text.find(|c| !is_letter(c) && !is_digit(c) && c != '_').unwrap_or(text.len());
    if end == 0 {
        return None;
    }
    let (name, rest) = text.split_at(end);
    let rest = if inner.is_some() { rest.strip_prefix('}')? } else { rest };
    Some((name, rest))
}

/// A group's number: digits without leading zeros, below 10⁹.
fn number(name: &str) -> Option<usize> {
    let canonical = name == "0" || !name.starts_with('0');
    let digits = name.len() <= 9 && name.bytes().all(|byte| byte.is_ascii_digit());
    if canonical && digits { name.parse().ok() } else { None }
}
