//! The text of `kubectl describe`, taken apart: fields, what stands below them, and tables.

use tiphys_value::{Value, json};

/// A field with its value, and the lines that stand below it.
#[derive(Debug, Default)]
pub(super) struct Field<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a str,
    /// The lines below, as deep as they stand.
    pub(super) lines: Vec<&'a str>,
}

/// The fields of some lines at their smallest depth; deeper lines belong to the field before them.
pub(super) fn fields<'a>(lines: &[&'a str]) -> Vec<Field<'a>> {
    let depth =
        lines.iter().filter(|line| !line.trim().is_empty()).map(|line| indent(line)).min().unwrap_or(0);
    let mut found: Vec<Field<'a>> = Vec::new();
    for line in lines.iter().filter(|line| !line.trim().is_empty()) {
        match field(line).filter(|_| indent(line) == depth) {
            Some((key, value)) => found.push(Field { key, value, lines: Vec::new() }),
            None => {
                if let Some(last) = found.last_mut() {
                    last.lines.push(line);
                }
            }
        }
    }
    found
}

/// How many spaces a line begins with.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The key and the value of a line such as `Restart Count:  9`.
pub(super) fn field(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_key = !key.trim().is_empty()
        && (value.is_empty() || value.starts_with([' ', '\t']))
        && key.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '/' | '(' | ')'));
    is_key.then(|| (key.trim(), value.trim()))
}

/// The value of the first field of a name; what stands for nothing is nothing.
pub(super) fn value<'a>(fields: &[Field<'a>], key: &str) -> Option<&'a str> {
    let found = fields.iter().find(|field| field.key == key).map(|field| field.value);
    found.filter(|value| !matches!(*value, "" | "<none>" | "<unset>" | "<unknown>"))
}

/// The lines below the first field of a name.
pub(super) fn below<'f, 'a>(fields: &'f [Field<'a>], key: &str) -> &'f [&'a str] {
    fields.iter().find(|field| field.key == key).map_or(&[], |field| field.lines.as_slice())
}

/// A field's value and the lines below it, as labels and selectors stand there.
pub(super) fn values<'a>(fields: &[Field<'a>], key: &str) -> Vec<&'a str> {
    let lines = below(fields, key).iter().map(|line| line.trim());
    value(fields, key).into_iter().chain(lines).collect()
}

/// The pairs of `a=b,c=d`, or of one `a=b` a line.
pub(super) fn pairs(values: &[&str]) -> Vec<(String, String)> {
    let all = values.iter().flat_map(|value| value.split(','));
    let pairs = all.filter_map(|pair| pair.trim().split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The parts of a text between commas that stand in no brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0_u32, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(text[start..].trim());
    found.retain(|part| !part.is_empty());
    found
}

/// A selector as kubectl prints it: `app=web,tier in (a,b),!old`; what stands for nothing selects all.
pub(super) fn selector(text: &str) -> Value {
    let mut selector = json!({});
    let mut expressions: Vec<Value> = Vec::new();
    for part in parts(text).into_iter().filter(|part| !part.starts_with("<none>")) {
        let list = |values: &str| -> Vec<String> {
            let values = values.trim().trim_matches(['(', ')']).split(',');
            values.map(|value| value.trim().to_owned()).collect()
        };
        if let Some((key, values)) = part.split_once(" notin ") {
            expressions.push(json!({"key": key.trim(), "operator": "NotIn", "values": list(values)}));
        } else if let Some((key, values)) = part.split_once(" in ") {
            expressions.push(json!({"key": key.trim(), "operator": "In", "values": list(values)}));
        } else if let Some((key, value)) = part.split_once('=') {
            selector["matchLabels"][key.trim()] = json!(value.trim());
        } else if let Some(key) = part.strip_prefix('!') {
            expressions.push(json!({"key": key.trim(), "operator": "DoesNotExist"}));
        } else {
            expressions.push(json!({"key": part, "operator": "Exists"}));
        }
    }
    if !expressions.is_empty() {
        selector["matchExpressions"] = json!(expressions);
    }
    selector
}

/// The rows of a table with a title line, each as title and text; the last column takes the rest.
pub(super) fn rows<'a>(lines: &[&'a str]) -> Vec<Vec<(&'a str, &'a str)>> {
    let mut lines = lines.iter().filter(|line| !line.trim().is_empty());
    let Some(title) = lines.next() else { return Vec::new() };
    let titles = cells(title, usize::MAX);
    let is_rule = |line: &str| line.trim().chars().all(|c| matches!(c, '-' | ' '));
    let rows = lines.filter(|line| !is_rule(line)).map(|line| cells(line, titles.len()));
    rows.map(|row| titles.iter().copied().zip(row).collect()).collect()
}

/// The cells of a row, which two spaces part.
fn cells(line: &str, most: usize) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() && found.len() + 1 < most {
        let Some((cell, after)) = rest.split_once("  ") else { break };
        found.push(cell.trim());
        rest = after.trim_start();
    }
    if !rest.is_empty() {
        found.push(rest.trim());
    }
    found
}

/// A cell of a row.
pub(super) fn cell<'a>(row: &[(&str, &'a str)], title: &str) -> &'a str {
    row.iter().find(|(known, _)| *known == title).map(|(_, text)| *text).unwrap_or_default()
}

/// A time as kubectl prints it for people, as the API writes it.
pub(super) fn time(text: &str) -> Option<String> {
    let read = jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp());
    read.or_else(|| text.parse().ok()).map(|time: jiff::Timestamp| time.to_string())
}

/// The number at the start of a text.
pub(super) fn number(text: &str) -> Option<i64> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
