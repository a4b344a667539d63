//! The columns of built-in kinds and how their cells are found.

mod network;
mod other;
mod policy;
mod storage;
mod workload;

use jiff::Timestamp;
use tiphys_value::{ObjectExt, Value};

use super::cells::Column;
use crate::ops::items;

/// Makes the cells of one row.
pub(super) type Cells = fn(&Value, Timestamp) -> Vec<Value>;

/// Columns (`name`, or `name type`, with `!` in front of those that only wide output shows) and cells.
type Printer = (&'static [&'static str], Cells);

/// The printer of a kind; kinds without one show name and creation time.
pub(super) fn printer(kind: &str) -> Option<(Vec<Column>, Cells)> {
    let (columns, cells) = workload::printer(kind)
        .or_else(|| network::printer(kind))
        .or_else(|| storage::printer(kind))
        .or_else(|| policy::printer(kind))
        .or_else(|| other::printer(kind))?;
    Some((columns.iter().map(|text| column(text)).collect(), cells))
}

fn column(text: &str) -> Column {
    let (text, priority) = text.strip_prefix('!').map_or((text, 0), |rest| (rest, 1));
    match text {
        "Name" => Column::new(text, "string", priority).formatted("name"),
        _ => match text.split_once(':') {
            Some((name, kind)) if kind.contains(':') => {
                let (kind, format) = kind.split_once(':').unwrap_or((kind, ""));
                Column::new(name, kind, priority).formatted(format)
            }
            Some((name, kind)) => Column::new(name, kind, priority),
            None => Column::new(text, "string", priority),
        },
    }
}

const NONE: &str = "<none>";
const UNSET: &str = "<unset>";

fn name(object: &Value) -> Value {
    object.name().into()
}

fn number(object: &Value, keys: &[&str]) -> i64 {
    object.int_at(keys).unwrap_or(0)
}

/// A text, or `<none>`.
fn text(object: &Value, keys: &[&str]) -> Value {
    text_or(object, keys, NONE)
}

fn text_or(object: &Value, keys: &[&str], otherwise: &str) -> Value {
    object.str_at(keys).filter(|t| !t.is_empty()).unwrap_or(otherwise).into()
}

/// How many entries an object or list has.
fn size(value: Option<&Value>) -> usize {
    match value {
        Some(Value::Object(map)) => map.len(),
        Some(Value::Array(list)) => list.len(),
        _ => 0,
    }
}

/// Texts joined by commas, or `<none>`.
fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let list: Vec<&str> = texts.collect();
    if list.is_empty() { NONE.to_owned() } else { list.join(",") }
}

fn container_names(object: &Value, pointer: &str) -> Value {
    joined(items(object, pointer).filter_map(|c| c.str_at(&["name"]))).into()
}

fn container_images(object: &Value, pointer: &str) -> Value {
    joined(items(object, pointer).filter_map(|c| c.str_at(&["image"]))).into()
}

fn selector(value: Option<&Value>) -> Value {
    let text = value.map(crate::ops::selector_text).unwrap_or_default();
    if text.is_empty() { NONE.into() } else { text.into() }
}

fn go_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

fn row(cells: impl IntoIterator<Item = Value>) -> Vec<Value> {
    cells.into_iter().collect()
}

/// Labels as text, or `<none>`.
fn labels(value: Option<&Value>) -> Value {
    let map = value.and_then(Value::as_object);
    let pairs = map.into_iter().flatten().map(|(key, value)| {
        let value = value.as_str().unwrap_or_default();
        format!("{key}={value}")
    });
    let pairs: Vec<String> = pairs.collect();
    joined(pairs.iter().map(String::as_str)).into()
}
