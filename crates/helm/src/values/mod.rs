//! Values: the data that templates read as `.Values`, and how its sources are put together.

mod coalesce;
mod defaults;
mod merge;
mod merged_defaults;
mod options;
mod strvals;
mod values_file;

use std::{collections::BTreeMap, sync::Arc};

use tiphys_value::{Number, Value};

pub(crate) use coalesce::{coalesce_values, merge_tables, merge_values};
pub(crate) use defaults::{Defaults, MergeCache, Warnings};
pub(crate) use merge::merge_maps;
pub(crate) use merged_defaults::merged_defaults;
pub use options::set_file_paths;
pub(crate) use options::{apply, user_values};
pub(crate) use values_file::read_values;

/// The key whose table every subchart sees.
pub(crate) const GLOBAL: &str = "global";

/// A table of values. Cloning shares; writing copies what is shared (`Arc::make_mut`).
pub(crate) type Table = BTreeMap<Arc<str>, Val>;

/// A value as Go's Helm holds it: numbers read from YAML and JSON are floats, those of `--set` are
/// integers, which templates can distinguish.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Val {
    /// `nil`.
    Null,
    /// `bool`.
    Bool(bool),
    /// `int64`.
    Int(i64),
    /// `float64`.
    Float(f64),
    /// `string`.
    Str(Arc<str>),
    /// `[]interface{}`.
    List(Arc<Vec<Val>>),
    /// `map[string]interface{}`.
    Table(Arc<Table>),
}

impl Val {
    /// A text.
    pub(crate) fn string(text: &str) -> Self {
        Self::Str(Arc::from(text))
    }

    /// Whether this is `nil`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The table, if it is one.
    pub(crate) fn as_table(&self) -> Option<&Table> {
        match self {
            Self::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The table to write to, if it is one.
    pub(crate) fn as_table_mut(&mut self) -> Option<&mut Table> {
        match self {
            Self::Table(table) => Some(Arc::make_mut(table)),
            _ => None,
        }
    }

    /// The value of decoded JSON: every number is a float, as Go decodes it.
    pub(crate) fn from_json(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(bool) => Self::Bool(bool),
            Value::Number(number) => Self::Float(number.as_f64().unwrap_or_default()),
            Value::String(text) => Self::Str(Arc::from(text)),
            Value::Array(items) => Self::List(Arc::new(items.into_iter().map(Self::from_json).collect())),
            Value::Object(map) => Self::Table(Arc::new(
                map.into_iter().map(|(key, value)| (Arc::from(key), Self::from_json(value))).collect(),
            )),
        }
    }

    /// The JSON of a value; floats that are whole numbers become integers, as Go prints them.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(bool) => Value::Bool(*bool),
            Self::Int(int) => Value::from(*int),
            Self::Float(float) => json_number(*float),
            Self::Str(text) => Value::from(&**text),
            Self::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Self::Table(table) => {
                Value::Object(table.iter().map(|(key, value)| (key.to_string(), value.to_json())).collect())
            }
        }
    }

    /// Go's name of the dynamic type (`%T`).
    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "nil",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int64",
            Self::Float(_) => "float64",
            Self::Str(_) => "string",
            Self::List(_) => "[]interface {}",
            Self::Table(_) => "map[string]interface {}",
        }
    }

    /// What Go's `%v` prints.
    pub(crate) fn go_print(&self) -> String {
        match self {
            Self::Null => "<nil>".to_owned(),
            Self::Bool(bool) => bool.to_string(),
            Self::Int(int) => int.to_string(),
            Self::Float(float) => {
                tiphys_gotemplate::format::sprint(&[tiphys_gotemplate::Value::Float64(*float)])
            }
            Self::Str(text) => text.to_string(),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(Self::go_print).collect();
                format!("[{}]", items.join(" "))
            }
            Self::Table(table) => {
                let pairs: Vec<_> =
                    table.iter().map(|(key, value)| format!("{key}:{}", value.go_print())).collect();
                format!("map[{}]", pairs.join(" "))
            }
        }
    }
}

/// Above this, floats no longer hold every integer.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

fn json_number(float: f64) -> Value {
    if float.fract() == 0.0 && float.abs() < MAX_EXACT {
        // Exact by the check above.
        #[allow(clippy::cast_possible_truncation)]
        return Value::from(float as i64);
    }
    Number::from_f64(float).map_or(Value::Null, Value::Number)
}

/// The table at a dotted path, as Helm's `Values.Table` finds it.
pub(crate) fn table_at<'a>(values: &'a Table, path: &str) -> Result<&'a Table, NoTable> {
    let mut table = values;
    for name in path.split('.') {
        table = table.get(name).and_then(Val::as_table).ok_or_else(|| NoTable(name.to_owned()))?;
    }
    Ok(table)
}

/// The value at a dotted path that is no table, as Helm's `Values.PathValue` finds it.
pub(crate) fn path_value<'a>(values: &'a Table, path: &str) -> Option<&'a Val> {
    let (table, key) = match path.rsplit_once('.') {
        Some((folder, key)) => (table_at(values, folder).ok()?, key),
        None => (values, path),
    };
    table.get(key).filter(|value| value.as_table().is_none())
}

/// A step of a path that is no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a table", tiphys_gocompat::strconv::quote(.0))]
pub(crate) struct NoTable(pub String);
