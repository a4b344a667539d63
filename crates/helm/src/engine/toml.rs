//! TOML as `github.com/BurntSushi/toml` writes and reads it.

use std::fmt::Write;

use tiphys_value::{Map, Value};

/// How deep tables may nest.
const MAX_DEPTH: usize = 100;

/// Writes a table: plain keys first, then tables, each in key order, sub-tables indented.
///
/// # Errors
/// The value is no table, or nests too deep.
pub(crate) fn encode(value: &Value) -> Result<String, String> {
    let Value::Object(map) = value else {
        return Err("toml: top-level values must be Go maps or structs".to_owned());
    };
    let mut out = String::new();
    write_table(&mut out, map, &[], 0)?;
    Ok(out)
}

fn is_tables(value: &Value) -> bool {
    matches!(value, Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_object))
}

fn write_table(
    out: &mut String,
    map: &Map<String, Value>,
    path: &[&str],
    depth: usize,
) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("toml: tables nest deeper than the limit of {MAX_DEPTH}"));
    }
    let indent = "  ".repeat(path.len().saturating_sub(1));
    let mut sorted: Vec<_> = map.iter().filter(|(_, value)| !value.is_null()).collect();
    sorted.sort_by_key(|(key, _)| *key);
    for (key, value) in sorted.iter().filter(|(_, value)| !value.is_object() && !is_tables(value)) {
        let _ = writeln!(out, "{indent}{} = {}", key_text(key), value_text(value, depth)?);
    }
    for (key, value) in sorted {
        let mut below = path.to_vec();
        below.push(key);
        let name: Vec<_> = below.iter().map(|key| key_text(key)).collect();
        let (name, indent) = (name.join("."), "  ".repeat(below.len() - 1));
        match value {
            Value::Object(map) => {
                if !out.is_empty() && path.is_empty() {
                    out.push('\n');
                }
                let _ = writeln!(out, "{indent}[{name}]");
                write_table(out, map, &below, depth + 1)?;
            }
            Value::Array(items) if is_tables(value) => {
                for item in items.iter().filter_map(Value::as_object) {
                    if !out.is_empty() {
                        out.push('\n');
                    }
                    let _ = writeln!(out, "{indent}[[{name}]]");
                    write_table(out, item, &below, depth + 1)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn key_text(key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if is_bare { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn value_text(value: &Value, depth: usize) -> Result<String, String> {
    if depth > MAX_DEPTH {
        return Err(format!("toml: values nest deeper than the limit of {MAX_DEPTH}"));
    }
    Ok(match value {
        Value::Null => "\"\"".to_owned(),
        Value::Bool(bool) => bool.to_string(),
        // Numbers of values files are floats in Helm, and floats are written with a point.
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 => format!("{float:.1}"),
            _ => number.to_string(),
        },
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Result<Vec<_>, _> = items.iter().map(|item| value_text(item, depth + 1)).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Object(map) => {
            let mut pairs = Vec::new();
            for (key, value) in map {
                pairs.push(format!("{} = {}", key_text(key), value_text(value, depth + 1)?));
            }
            format!("{{{}}}", pairs.join(", "))
        }
    })
}

/// Reads a TOML text.
///
/// # Errors
/// The text is no TOML.
pub(crate) fn decode(text: &str) -> Result<Value, String> {
    text.parse::<::toml::Table>()
        .map_err(|error| format!("toml: {}", error.message()))
        .and_then(|table| serde_json::to_value(table).map_err(|error| error.to_string()))
}
