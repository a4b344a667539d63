//! Decoding as Go's `encoding/json` does: field names in any case, nulls ignored, its error texts.
//! A value that passes has the fields' own spelling and the declared types, so that serde reads it.

use serde_json::{Map, Value};
use tiphys_value::json_kind;

/// A type as Go declares it.
#[derive(Debug)]
pub(crate) enum Type {
    Text,
    Bool,
    Int,
    /// `interface{}`
    Any,
    /// `map[string]string`
    TextMap,
    /// `map[string]interface{}`
    AnyMap,
    List(&'static Type),
    Object(&'static Object),
}

/// A struct: its Go name and fields.
#[derive(Debug)]
pub(crate) struct Object {
    /// Go's name without package.
    pub name: &'static str,
    /// The fields.
    pub fields: &'static [Field],
}

/// A field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    /// The name in JSON.
    pub name: &'static str,
    /// Names of the embedded structs that it stands in, each with a dot; Go prints them.
    pub inside: &'static str,
    /// Its type.
    pub of: &'static Type,
}

/// How to treat what does not fit exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Unknown fields are errors (kustomization files).
    Strict,
    /// Unknown fields are dropped, numbers and booleans become text where text is declared
    /// (`sigs.k8s.io/yaml.Unmarshal` of plugin configurations).
    Lenient,
    /// As lenient, with unknown fields as errors (`UnmarshalStrict` of configurations).
    LenientStrict,
}

/// A value that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Go's text.
    pub message: String,
    /// Keys and indices that lead to the fault.
    pub path: Vec<String>,
    /// For unknown fields the declared name that is most like it.
    pub nearest: Option<&'static str>,
}

/// Checks a value against a type and brings it into the declared spelling.
///
/// # Errors
/// The first misfit in the order of sorted keys, in which Go meets them.
pub(crate) fn conform(value: &Value, object: &'static Object, mode: Mode) -> Result<Value, Misfit> {
    let mut checker = Checker { mode, go_path: Vec::new(), path: Vec::new(), first: None };
    let result = checker.object(value, object, "");
    match checker.first {
        Some(misfit) => Err(misfit),
        None => Ok(result.unwrap_or(Value::Object(Map::new()))),
    }
}

struct Checker {
    mode: Mode,
    go_path: Vec<String>,
    path: Vec<String>,
    first: Option<Misfit>,
}

impl Checker {
    fn fail(&mut self, message: String, nearest: Option<&'static str>) {
        let path = self.path.clone();
        self.first.get_or_insert(Misfit { message, path, nearest });
    }

    fn mismatch(&mut self, value: &Value, struct_name: &str, go_type: &str) {
        let found = json_kind(value);
        let message = if self.go_path.is_empty() {
            format!("json: cannot unmarshal {found} into Go value of type {go_type}")
        } else {
            let path = self.go_path.join(".");
            format!(
                "json: cannot unmarshal {found} into Go struct field {struct_name}.{path} of type {go_type}"
            )
        };
        self.fail(message, None);
    }

    fn object(&mut self, value: &Value, object: &'static Object, parent: &str) -> Option<Value> {
        let Value::Object(map) = value else {
            if !value.is_null() {
                self.mismatch(value, parent, &format!("types.{}", object.name));
            }
            return None;
        };
        let mut result = Map::new();
        for (key, value) in map {
            let exact = object.fields.iter().find(|field| field.name == key);
            let field =
                exact.or_else(|| object.fields.iter().find(|field| field.name.eq_ignore_ascii_case(key)));
            self.path.push(key.clone());
            match field {
                Some(field) => {
                    self.go_path.push(format!("{}{}", field.inside, field.name));
                    if let Some(value) = self.value(value, field.of, object.name) {
                        result.insert(field.name.to_owned(), value);
                    }
                    self.go_path.pop();
                }
                None if self.mode != Mode::Lenient => {
                    self.fail(format!("json: unknown field {key:?}"), nearest(key, object.fields));
                }
                None => {}
            }
            self.path.pop();
        }
        Some(Value::Object(result))
    }

    fn value(&mut self, value: &Value, of: &'static Type, parent: &str) -> Option<Value> {
        match (of, value) {
            (_, Value::Null) => None,
            (Type::Any, value) => Some(value.clone()),
            (Type::Text, Value::String(_))
            | (Type::Bool, Value::Bool(_))
            | (Type::AnyMap, Value::Object(_)) => Some(value.clone()),
            (Type::Text, Value::Number(_) | Value::Bool(_)) if self.mode != Mode::Strict => {
                Some(Value::String(as_text(value)))
            }
            (Type::Int, Value::Number(number)) if number.is_i64() => Some(value.clone()),
            (Type::Int, Value::Number(number)) => {
                let message = format!(
                    "json: cannot unmarshal number {number} into Go struct field {parent}.{} of type int",
                    self.go_path.join(".")
                );
                self.fail(message, None);
                None
            }
            (Type::TextMap, Value::Object(map)) => Some(Value::Object(self.text_map(map, parent))),
            (Type::List(item), Value::Array(items)) => {
                let items = items.iter().enumerate().map(|(index, value)| {
                    self.path.push(index.to_string());
                    let item = self.value(value, item, parent).unwrap_or_else(|| zero(item));
                    self.path.pop();
                    item
                });
                Some(Value::Array(items.collect()))
            }
            (Type::Object(object), value) => self.object(value, object, parent),
            (of, value) => {
                self.mismatch(value, parent, &go_type(of));
                None
            }
        }
    }

    fn text_map(&mut self, map: &Map<String, Value>, parent: &str) -> Map<String, Value> {
        let mut result = Map::new();
        for (key, value) in map {
            self.path.push(key.clone());
            let text = self.value(value, &Type::Text, parent);
            result.insert(key.clone(), text.unwrap_or_else(|| Value::String(String::new())));
            self.path.pop();
        }
        result
    }
}

/// What Go leaves in a slot of a list that was null.
fn zero(of: &Type) -> Value {
    match of {
        Type::Text => Value::String(String::new()),
        Type::Bool => Value::Bool(false),
        Type::Int => Value::from(0),
        Type::Object(_) | Type::TextMap | Type::AnyMap => Value::Object(Map::new()),
        Type::List(_) => Value::Array(Vec::new()),
        Type::Any => Value::Null,
    }
}

fn go_type(of: &Type) -> String {
    match of {
        Type::Text => "string".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::Int => "int64".to_owned(),
        Type::Any => "interface {}".to_owned(),
        Type::TextMap => "map[string]string".to_owned(),
        Type::AnyMap => "map[string]interface {}".to_owned(),
        Type::List(item) => format!("[]{}", go_type(item)),
        Type::Object(object) => format!("types.{}", object.name),
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => {
            crate::node::go_float(number.as_f64().unwrap_or_default())
        }
        other => other.to_string(),
    }
}

/// The field whose name is most like `key`, if any is near.
fn nearest(key: &str, fields: &'static [Field]) -> Option<&'static str> {
    nearest_of(key, fields.iter().map(|field| field.name))
}

/// The candidate most like a text: at most a third of its letters differ.
pub(crate) fn nearest_of<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (text.chars().count() / 3).clamp(1, 4);
    candidates
        .map(|candidate| (edit_distance(&text.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
