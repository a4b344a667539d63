//! TOML as `github.com/BurntSushi/toml` writes and reads it.

mod reader;
mod scan;

use std::fmt::Write;

use tiphys_gocompat::strconv::{FloatFormat, format_float};
use tiphys_gotemplate::{Entry, List, Map, Numbers, Value};

use crate::Compat;

pub(crate) use reader::decode;

/// How deep tables and lists may nest.
const MAX_DEPTH: usize = 100;

/// Writes a value: of a table plain keys first, then tables, each in key order.
///
/// # Errors
/// Go's text: a list that holds nil, or a list of tables without a key; or a value that nests too deep.
pub(crate) fn encode(value: &Value, compat: Compat) -> Result<String, String> {
    let mut encoder = Encoder { out: String::new(), compat };
    encoder.encode(&[], value)?;
    Ok(encoder.out)
}

/// What a value is to TOML.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Nothing,
    Plain,
    Table,
    Tables,
}

impl Class {
    fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::Tables)
    }
}

/// The class of a value. Lists are looked through, as they may not hold nil.
fn class(value: &Value, depth: usize) -> Result<Class, String> {
    if depth > MAX_DEPTH {
        return Err(format!("toml: values nest deeper than the limit of {MAX_DEPTH}"));
    }
    Ok(match value {
        value if value.is_nil() => Class::Nothing,
        Value::Map(map) if map.is_nil() => Class::Nothing,
        Value::List(list) if list.is_nil() => Class::Nothing,
        Value::Map(_) => Class::Table,
        Value::List(list) => {
            let mut tables = !list.is_empty();
            for item in list.items().iter() {
                match class(item, depth + 1)? {
                    Class::Nothing => return Err("toml: cannot encode array with nil element".to_owned()),
                    item => tables &= item == Class::Table,
                }
            }
            if tables { Class::Tables } else { Class::Plain }
        }
        _ => Class::Plain,
    })
}

struct Encoder {
    out: String,
    compat: Compat,
}

impl Encoder {
    fn encode(&mut self, key: &[&str], value: &Value) -> Result<(), String> {
        match (class(value, key.len())?, value) {
            (Class::Nothing, _) => Ok(()),
            (Class::Tables, Value::List(list)) => self.tables(key, list),
            (Class::Table, Value::Map(map)) => {
                if key.len() == 1 {
                    self.new_line();
                }
                if !key.is_empty() {
                    let _ = writeln!(self.out, "{}[{}]", indent(key), path(key));
                }
                self.entries(key, map)
            }
            _ => {
                if let Some(name) = key.last() {
                    let _ = write!(self.out, "{}{} = ", indent(key), quoted_key(name));
                }
                self.element(value, key.len())?;
                if !key.is_empty() {
                    self.out.push('\n');
                }
                Ok(())
            }
        }
    }

    fn tables(&mut self, key: &[&str], list: &List) -> Result<(), String> {
        if key.is_empty() {
            return Err("toml: top-level values must be Go maps or structs".to_owned());
        }
        for item in list.snapshot() {
            if let Value::Map(map) = &item {
                self.new_line();
                let _ = writeln!(self.out, "{}[[{}]]", indent(key), path(key));
                self.entries(key, map)?;
            }
        }
        Ok(())
    }

    fn entries(&mut self, key: &[&str], map: &Map) -> Result<(), String> {
        let (direct, tables) = sorted(map, key.len())?;
        for Entry { key: name, value, .. } in direct.iter().chain(&tables) {
            let mut below = key.to_vec();
            below.push(name);
            self.encode(&below, value)?;
        }
        Ok(())
    }

    fn new_line(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn element(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("toml: values nest deeper than the limit of {MAX_DEPTH}"));
        }
        // Writing to a string cannot fail.
        let _ = match value {
            Value::Bool(bool) => write!(self.out, "{bool}"),
            Value::Int(int) | Value::Int64(int) => write!(self.out, "{int}"),
            Value::Uint8(int) => write!(self.out, "{int}"),
            Value::Uint64(int) => write!(self.out, "{int}"),
            Value::Float64(float) => {
                self.out.push_str(&float_text(*float, self.compat));
                Ok(())
            }
            Value::String(text) => {
                self.out.push_str(&quoted(text));
                Ok(())
            }
            Value::Bytes(bytes) => {
                let items: Vec<_> = bytes.iter().map(ToString::to_string).collect();
                write!(self.out, "[{}]", items.join(", "))
            }
            Value::List(list) => {
                self.out.push('[');
                for (at, item) in list.snapshot().iter().enumerate() {
                    if at > 0 {
                        self.out.push_str(", ");
                    }
                    self.element(item, depth + 1)?;
                }
                self.out.push(']');
                Ok(())
            }
            Value::Map(map) => {
                self.inline(map, depth)?;
                Ok(())
            }
            Value::NoValue | Value::Nil => Ok(()),
            Value::Object(_) => {
                let plain = Value::from_json(&value.to_json()?, Numbers::AsStored);
                return self.element(&plain, depth + 1);
            }
        };
        Ok(())
    }

    /// A table on one line. A comma also follows the last key where the last one is nil, as in Go.
    fn inline(&mut self, map: &Map, depth: usize) -> Result<(), String> {
        let (direct, tables) = sorted(map, depth)?;
        let count = direct.len() + tables.len();
        self.out.push('{');
        for (at, Entry { key, value, .. }) in direct.iter().chain(&tables).enumerate() {
            if class(value, depth)? == Class::Nothing {
                continue;
            }
            let _ = write!(self.out, "{} = ", quoted_key(key));
            self.element(value, depth + 1)?;
            if at + 1 < count {
                self.out.push_str(", ");
            }
        }
        self.out.push('}');
        Ok(())
    }
}

/// The entries of a map in key order: plain ones, and tables.
fn sorted(map: &Map, depth: usize) -> Result<(Vec<Entry>, Vec<Entry>), String> {
    let mut entries = map.snapshot();
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    let (mut direct, mut tables) = (Vec::new(), Vec::new());
    for entry in entries {
        let place = if class(&entry.value, depth)?.is_table() { &mut tables } else { &mut direct };
        place.push(entry);
    }
    Ok((direct, tables))
}

fn indent(key: &[&str]) -> String {
    "  ".repeat(key.len() - 1)
}

fn path(key: &[&str]) -> String {
    key.iter().map(|part| quoted_key(part)).collect::<Vec<_>>().join(".")
}

fn quoted_key(key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if is_bare { key.to_owned() } else { quoted(key) }
}

fn float_text(float: f64, compat: Compat) -> String {
    if float.is_nan() {
        return "nan".to_owned();
    }
    if float.is_infinite() {
        return if float < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let format = if compat == Compat::Helm3 { FloatFormat::Decimal } else { FloatFormat::General };
    let text = format_float(float, format, None);
    if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
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
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c.is_ascii_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A time as Go writes it into JSON and YAML; days and zones that are left out are those of the beginning.
fn time_text(time: &::toml::value::Datetime) -> String {
    let date = time.date.map_or_else(|| "0000-01-01".to_owned(), |date| date.to_string());
    let clock = time.time.map_or_else(|| "00:00:00".to_owned(), |clock| clock.to_string());
    let seconds = if clock.matches(':').count() == 1 { ":00" } else { "" };
    let zone = time.offset.map_or_else(|| "Z".to_owned(), |zone| zone.to_string());
    format!("{date}T{clock}{seconds}{zone}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toml(text: &str, compat: Compat) -> String {
        let json = serde_json::from_str(text).unwrap();
        encode(&Value::from_json(&json, Numbers::AsStored), compat).unwrap_or_else(|error| error)
    }

    #[test]
    fn tables_are_indented_and_integers_stay() {
        let text =
            r#"{"x": {"y": {"z": 1}}, "t": [{"k": 1.5}, {}], "a": [1, {"b": null, "c": "q\""}], "n": null}"#;
        assert_eq!(
            toml(text, Compat::Helm4),
            "a = [1, {c = \"q\\\"\"}]\n\n[[t]]\n  k = 1.5\n\n[[t]]\n\n[x]\n  [x.y]\n    z = 1\n"
        );
        assert_eq!(toml(r#"{"a": [null]}"#, Compat::Helm4), "toml: cannot encode array with nil element");
        assert_eq!(toml("[1, 2]", Compat::Helm4), "[1, 2]");
    }

    #[test]
    fn large_floats_have_exponents_since_helm_4() {
        assert_eq!(toml(r#"{"a": 1e21}"#, Compat::Helm4), "a = 1e+21\n");
        assert_eq!(toml(r#"{"a": 1e21}"#, Compat::Helm3), "a = 1000000000000000000000.0\n");
    }
}
