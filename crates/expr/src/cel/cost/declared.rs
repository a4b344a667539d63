//! The types that a structural schema declares to CEL, and how large their values can get in one request
//! (apiserver, `pkg/cel/common`).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cel::convert::escape;

/// The largest request, in bytes.
pub(in crate::cel) const MAX_REQUEST: u64 = 3 * 1024 * 1024;
/// How deep schemas are followed.
const MAX_DEPTH: usize = 200;
/// The longest text that fits a request: without its quotation marks.
const LONGEST_TEXT: u64 = MAX_REQUEST - 2;

/// A declared type.
#[derive(Debug)]
pub(in crate::cel) struct Declared {
    pub shape: Shape,
    /// Characters of a text, items of a list, entries of a map: how many there can be.
    pub most: u64,
    /// The bytes that the smallest value takes in JSON.
    pub smallest: u64,
}

/// What values of a type are made of.
#[derive(Debug)]
pub(in crate::cel) enum Shape {
    Scalar(Scalar),
    List(Box<Declared>),
    /// The values; keys are texts.
    Map(Box<Declared>),
    /// Fields by the names that CEL knows them by.
    Object(BTreeMap<String, Declared>),
}

/// Types without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cel) enum Scalar {
    Dyn,
    Bool,
    Int,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
}

impl Declared {
    /// The type of a schema; `None` if its values are not shown to expressions. The root of a resource has a
    /// name and a type beside what the schema says.
    pub(crate) fn from_schema(schema: &Value, is_resource: bool) -> Option<Self> {
        Self::from_schema_at_depth(schema, is_resource, 0)
    }

    fn from_schema_at_depth(schema: &Value, is_resource: bool, depth: usize) -> Option<Self> {
        if depth > MAX_DEPTH {
            return None;
        }
        if schema["x-kubernetes-int-or-string"] == true {
            let most = limit(schema, "maxLength").map_or(LONGEST_TEXT, |most| most.saturating_mul(4));
            return Some(Self::scalar(Scalar::Dyn, most, 1));
        }
        let inner = |part: &Value| {
            Self::from_schema_at_depth(part, part["x-kubernetes-embedded-resource"] == true, depth + 1)
        };
        let kind = if is_resource { "object" } else { schema["type"].as_str()? };
        Some(match kind {
            "array" => {
                let items = inner(&schema["items"])?;
                let most = limit(schema, "maxItems").unwrap_or(LONGEST_TEXT / (items.smallest + 1));
                Self { shape: Shape::List(Box::new(items)), most, smallest: 2 }
            }
            "object" if schema["additionalProperties"].is_object() && !is_resource => {
                let values = inner(&schema["additionalProperties"])?;
                let most = limit(schema, "maxProperties").unwrap_or(LONGEST_TEXT / (values.smallest + 6));
                Self { shape: Shape::Map(Box::new(values)), most, smallest: 2 }
            }
            "object" => Self::object(schema, is_resource, inner),
            "string" => Self::text(schema),
            "boolean" => Self::scalar(Scalar::Bool, 0, 4),
            "number" => Self::scalar(Scalar::Double, 0, 1),
            "integer" => Self::scalar(Scalar::Int, 0, 1),
            _ => return None,
        })
    }

    fn scalar(scalar: Scalar, most: u64, smallest: u64) -> Self {
        Self { shape: Shape::Scalar(scalar), most, smallest }
    }

    fn text(schema: &Value) -> Self {
        let longest = limit(schema, "maxLength");
        match schema["format"].as_str() {
            Some("byte") => Self::scalar(Scalar::Bytes, longest.unwrap_or(LONGEST_TEXT), 2),
            Some("duration") => Self::scalar(Scalar::Duration, 32, 3),
            Some("date") => Self::scalar(Scalar::Timestamp, 12, 12),
            Some("date-time") => Self::scalar(Scalar::Timestamp, 32, 21),
            _ => {
                let values = schema["enum"].as_array().filter(|values| !values.is_empty());
                let named = values.map(|values| values.iter().filter_map(Value::as_str).map(str::len).max());
                // A character can take four bytes.
                let most = longest.map(|most| most.saturating_mul(4));
                let most = most.or(named.map(|named| named.unwrap_or(0) as u64)).unwrap_or(LONGEST_TEXT);
                Self::scalar(Scalar::String, most, 2)
            }
        }
    }

    fn object(schema: &Value, is_resource: bool, inner: impl Fn(&Value) -> Option<Self>) -> Self {
        let mut fields = BTreeMap::new();
        let mut smallest: u64 = 2;
        let required = schema["required"].as_array();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let Some(field) = inner(property) else { continue };
            let is_required = required.is_some_and(|names| names.iter().any(|required| required == name));
            if is_required && property["default"].is_null() {
                smallest = smallest.saturating_add(name.len() as u64 + field.smallest + 4);
            }
            fields.insert(escape(name), field);
        }
        if is_resource {
            let text = || Self::scalar(Scalar::String, LONGEST_TEXT, 2);
            let names = ["name", "generateName"].map(|name| (name.to_owned(), text()));
            let names = Self { shape: Shape::Object(names.into()), most: 0, smallest: 2 };
            fields.insert("metadata".into(), names);
            fields.extend(["kind", "apiVersion"].map(|name| (name.to_owned(), text())));
        }
        Self { shape: Shape::Object(fields), most: 0, smallest }
    }
}

/// A limit of a schema; negative ones are none at all to values, and 0 to sizes.
fn limit(schema: &Value, name: &str) -> Option<u64> {
    schema[name].as_i64().map(|limit| u64::try_from(limit).unwrap_or(0))
}
