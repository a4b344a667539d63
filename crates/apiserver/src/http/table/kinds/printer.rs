//! What printers of kinds are made of.

use jiff::Timestamp;
use tiphys_value::{ObjectExt, Value};

use crate::ops::items;

/// Makes the cells of one row.
pub(in crate::http::table) type Cells = fn(&Value, Timestamp) -> Vec<Value>;

/// Columns (`name`, or `name type`, with `!` in front of those that only wide output shows) and cells.
pub(super) type Printer = (&'static [&'static str], Cells);

pub(super) const NONE: &str = "<none>";
pub(super) const UNSET: &str = "<unset>";

pub(super) fn name(object: &Value) -> Value {
    object.name().into()
}

pub(super) fn number(object: &Value, keys: &[&str]) -> i64 {
    object.int_at(keys).unwrap_or(0)
}

/// A text, or `<none>`.
pub(super) fn text(object: &Value, keys: &[&str]) -> Value {
    text_or(object, keys, NONE)
}

pub(super) fn text_or(object: &Value, keys: &[&str], otherwise: &str) -> Value {
    object.str_at(keys).filter(|t| !t.is_empty()).unwrap_or(otherwise).into()
}

/// How many entries an object or list has.
pub(super) fn size(value: Option<&Value>) -> usize {
    match value {
        Some(Value::Object(map)) => map.len(),
        Some(Value::Array(list)) => list.len(),
        _ => 0,
    }
}

/// Texts joined by commas, or `<none>`.
pub(super) fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let list: Vec<&str> = texts.collect();
    if list.is_empty() { NONE.to_owned() } else { list.join(",") }
}

pub(super) fn container_names(object: &Value, pointer: &str) -> Value {
    joined(items(object, pointer).filter_map(|c| c.str_at(&["name"]))).into()
}

pub(super) fn container_images(object: &Value, pointer: &str) -> Value {
    joined(items(object, pointer).filter_map(|c| c.str_at(&["image"]))).into()
}

pub(super) fn selector(value: Option<&Value>) -> Value {
    let text = value.map(crate::ops::selector_text).unwrap_or_default();
    if text.is_empty() { NONE.into() } else { text.into() }
}

pub(super) fn go_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

pub(super) fn row(cells: impl IntoIterator<Item = Value>) -> Vec<Value> {
    cells.into_iter().collect()
}

/// Labels as text, or `<none>`.
pub(super) fn labels(value: Option<&Value>) -> Value {
    let map = value.and_then(Value::as_object);
    let pairs = map.into_iter().flatten().map(|(key, value)| {
        let value = value.as_str().unwrap_or_default();
        format!("{key}={value}")
    });
    let pairs: Vec<String> = pairs.collect();
    joined(pairs.iter().map(String::as_str)).into()
}
