//! Conversion from and to plain JSON values.

use super::{Entry, List, Map, MapType, Value};
use serde_json::Value as Json;
use smol_str::SmolStr;

/// How numbers of a JSON value become Go numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Numbers {
    /// All are `float64`, as Go's decoders make them.
    Float64,
    /// Integers are `int64`, others `float64`.
    AsStored,
}

impl Value {
    /// The value of a JSON value.
    pub fn from_json(json: &Json, numbers: Numbers) -> Self {
        match json {
            Json::Null => Self::Nil,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(integer) if numbers == Numbers::AsStored => Self::Int64(integer),
                _ => Self::Float64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::String(SmolStr::new(text)),
            Json::Array(items) => {
                Self::List(List::new(items.iter().map(|item| Self::from_json(item, numbers)).collect()))
            }
            Json::Object(fields) => {
                let entries = fields.iter().map(|(key, value)| Entry {
                    key: SmolStr::new(key),
                    value: Self::from_json(value, numbers),
                    origin: 0,
                });
                Self::Map(Map::from_entries(MapType::Any, entries.collect()))
            }
        }
    }

    /// The JSON value that reading the output of Go's `json.Marshal` gives: whole floats become integers,
    /// bytes become base64, objects their fields.
    ///
    /// # Errors
    /// What `encoding/json` cannot encode: floats that are not finite, values that contain themselves.
    pub fn to_json(&self) -> Result<Json, String> {
        crate::json::to_plain(self)
    }
}
