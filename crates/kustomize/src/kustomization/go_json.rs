//! Decoding as Go's `encoding/json` does: field names in any case, nulls ignored, its error texts.
//! A value that passes has the fields' own spelling and the declared types, so that serde reads it.

use serde_json::{Map, Value};
use tiphys_value::json_kind;

use tiphys_gocompat::strconv::quote;

use tiphys_diag::similar_names;

/// A type as Go declares it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Text,
    /// A string type of that name.
    Named(&'static str),
    Bool,
    /// `int` or `int64`.
    Int(&'static str),
    /// `map[string]string`
    TextMap,
    /// `map[string]interface{}`
    AnyMap,
    List(&'static Type),
    Object(&'static Object),
}

/// A struct: its Go name and fields.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// Go's name without package.
    pub name: &'static str,
    /// The fields.
    pub fields: &'static [Field],
}

/// A field of a struct.
#[derive(Debug, PartialEq, Eq)]
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
    /// As lenient, below embedded structs too (go-yaml).
    Yaml,
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
    /// For unknown fields those that are declared in its place.
    pub known: &'static [Field],
}

impl Misfit {
    /// What the user may have meant by an unknown field.
    pub(crate) fn advice(&self) -> Option<String> {
        let names = || self.known.iter().map(|field| field.name);
        match (self.nearest, self.known) {
            (Some(nearest), _) => Some(format!("did you mean `{nearest}`?")),
            (None, []) => None,
            (None, _) => Some(format!("there is {}", names().collect::<Vec<_>>().join(", "))),
        }
    }
}

/// Checks a value against a type and brings it into the declared spelling.
///
/// # Errors
/// The first misfit in the order of sorted keys, in which Go meets them.
pub(crate) fn conform(value: &Value, object: &'static Object, mode: Mode) -> Result<Value, Misfit> {
    conform_noting(value, object, mode, &mut Vec::new())
}

/// As [`conform`]; notes the unknown fields that are dropped.
///
/// # Errors
/// As there.
pub(crate) fn conform_noting(
    value: &Value,
    object: &'static Object,
    mode: Mode,
    unknown: &mut Vec<Misfit>,
) -> Result<Value, Misfit> {
    let converts = mode != Mode::Strict;
    let mut checker = Checker { mode, converts, go_path: Vec::new(), path: Vec::new(), first: None, unknown };
    let result = checker.object(value, object, "");
    match checker.first {
        Some(misfit) => Err(misfit),
        None => Ok(result.unwrap_or(Value::Object(Map::new()))),
    }
}

struct Checker<'a> {
    mode: Mode,
    /// Whether numbers and booleans become text. The library asks the type of a field before it decodes, and
    /// of an embedded struct it gets that of the struct: nothing below is converted.
    converts: bool,
    go_path: Vec<String>,
    path: Vec<String>,
    first: Option<Misfit>,
    unknown: &'a mut Vec<Misfit>,
}

impl Checker<'_> {
    fn fail(&mut self, message: String) {
        let path = self.path.clone();
        self.first.get_or_insert(Misfit { message, path, nearest: None, known: &[] });
    }

    fn unknown(&mut self, key: &str, known: &'static [Field]) {
        let path = self.path.clone();
        let misfit = Misfit {
            message: format!("json: unknown field {}", quote(key)),
            path,
            nearest: nearest(key, known),
            known,
        };
        if matches!(self.mode, Mode::Lenient | Mode::Yaml) {
            self.unknown.push(misfit);
        } else {
            self.first.get_or_insert(misfit);
        }
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
        self.fail(message);
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
                    let converts = self.converts;
                    self.converts &= field.inside.is_empty() || self.mode == Mode::Yaml;
                    if let Some(value) = self.value(value, field.of, object.name) {
                        result.insert(field.name.to_owned(), value);
                    }
                    self.converts = converts;
                    self.go_path.pop();
                }
                None => self.unknown(key, object.fields),
            }
            self.path.pop();
        }
        Some(Value::Object(result))
    }

    fn value(&mut self, value: &Value, of: &'static Type, parent: &str) -> Option<Value> {
        match (of, value) {
            (_, Value::Null) => None,
            (Type::Text | Type::Named(_), Value::String(_))
            | (Type::Bool, Value::Bool(_))
            | (Type::AnyMap, Value::Object(_)) => Some(value.clone()),
            (Type::Text | Type::Named(_), Value::Number(_) | Value::Bool(_)) if self.converts => {
                Some(Value::String(as_text(value)))
            }
            (Type::Int(_), Value::Number(number)) if number.is_i64() => Some(value.clone()),
            (Type::Int(name), Value::Number(number)) => {
                let message = format!(
                    "json: cannot unmarshal number {number} into Go struct field {parent}.{} of type {name}",
                    self.go_path.join(".")
                );
                self.fail(message);
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
        Type::Text | Type::Named(_) => Value::String(String::new()),
        Type::Bool => Value::Bool(false),
        Type::Int(_) => Value::from(0),
        Type::Object(_) | Type::TextMap | Type::AnyMap => Value::Object(Map::new()),
        Type::List(_) => Value::Array(Vec::new()),
    }
}

fn go_type(of: &Type) -> String {
    match of {
        Type::Text => "string".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::Int(name) => (*name).to_owned(),
        Type::Named(name) => format!("types.{name}"),
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
    similar_names::nearest(key, fields.iter().map(|field| field.name))
}
