//! Formatting of values with Go's `fmt`.

use crate::{Kind, Value};
use std::borrow::Cow;
use tiphys_gocompat::fmt::{self, Arg, Shape, Visitor};
use tiphys_gocompat::strconv::{self, FloatFormat};

impl Arg for Value {
    fn shape(&self) -> Shape<'_> {
        match self {
            Self::NoValue | Self::Nil => Shape::Nil,
            Self::Bool(value) => Shape::Bool(*value),
            Self::Int(value) | Self::Int64(value) => Shape::Int(*value),
            Self::Float64(value) => Shape::Float(*value),
            Self::Uint8(value) => Shape::Uint(u64::from(*value)),
            Self::Uint64(value) => Shape::Uint(*value),
            Self::String(text) => Shape::Str(Cow::Borrowed(text)),
            Self::Bytes(bytes) => Shape::Bytes(Cow::Borrowed(bytes), false),
            Self::List(list) => Shape::List(list.is_nil()),
            Self::Map(map) => Shape::Map(map.is_nil()),
            Self::Object(object) => match (object.kind(), object.content()) {
                (Kind::Pointer, _) => Shape::Pointer,
                (Kind::Named, Some(content)) => content_shape(&content),
                _ => Shape::Struct,
            },
        }
    }

    fn type_name(&self) -> Cow<'_, str> {
        Value::type_name(self)
    }

    fn stringer(&self) -> Option<String> {
        match self {
            Self::Object(object) => object.stringer(),
            _ => None,
        }
    }

    fn go_string(&self) -> Option<String> {
        match self {
            Self::Object(object) => object.go_string(),
            _ => None,
        }
    }

    fn each(&self, visit: &mut Visitor<'_>) {
        match self {
            Self::List(list) => list.items().iter().for_each(|item| visit(None, item)),
            Self::Map(map) => map.entries().iter().for_each(|entry| visit(Some(&entry.key), &entry.value)),
            Self::Object(object) => match object.content() {
                Some(content) => content.each(visit),
                None => {
                    for name in object.field_names() {
                        visit(Some(name), &object.field(name).unwrap_or_default());
                    }
                    object.hidden_fields().iter().for_each(|(name, value)| visit(Some(name), value));
                }
            },
            _ => {}
        }
    }
}

/// The shape of what is under a named type, without borrowing from it.
fn content_shape<'a>(content: &Value) -> Shape<'a> {
    match content.shape() {
        Shape::Str(text) => Shape::Str(Cow::Owned(text.into_owned())),
        Shape::Bytes(bytes, nil) => Shape::Bytes(Cow::Owned(bytes.into_owned()), nil),
        Shape::Nil => Shape::Nil,
        Shape::Bool(value) => Shape::Bool(value),
        Shape::Int(value) => Shape::Int(value),
        Shape::Uint(value) => Shape::Uint(value),
        Shape::Float(value) => Shape::Float(value),
        Shape::List(nil) => Shape::List(nil),
        Shape::Map(nil) => Shape::Map(nil),
        Shape::Struct => Shape::Struct,
        Shape::Pointer => Shape::Pointer,
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", self.type_name(), sprint(std::slice::from_ref(self)))
    }
}

/// `fmt.Sprint`
pub fn sprint(values: &[Value]) -> String {
    fmt::sprint(values.iter().map(|value| value as &dyn Arg))
}

/// `fmt.Sprintln`
pub fn sprintln(values: &[Value]) -> String {
    fmt::sprintln(values.iter().map(|value| value as &dyn Arg))
}

/// `fmt.Sprintf`
pub fn sprintf(format: &str, values: &[Value]) -> String {
    let args: Vec<&dyn Arg> = values.iter().map(|value| value as &dyn Arg).collect();
    fmt::sprintf(format, &args)
}

/// `fmt.Sprintf`, unless the text would be longer than so many bytes: then the length at which it was given
/// up.
pub(crate) fn sprintf_within(format: &str, values: &[Value], most: usize) -> Result<String, usize> {
    let args: Vec<&dyn Arg> = values.iter().map(|value| value as &dyn Arg).collect();
    fmt::sprintf_within(format, &args, most)
}

/// Appends a value as an action prints it.
pub(crate) fn append(out: &mut String, value: &Value) {
    use std::fmt::Write;
    // Writing to a string cannot fail.
    let _ = match value {
        Value::NoValue => out.write_str("<no value>"),
        Value::Nil => out.write_str("<nil>"),
        Value::String(text) => out.write_str(text),
        Value::Bool(value) => out.write_str(if *value { "true" } else { "false" }),
        Value::Int(value) | Value::Int64(value) => write!(out, "{value}"),
        Value::Uint64(value) => write!(out, "{value}"),
        Value::Float64(value) => {
            strconv::append_float(out, *value, FloatFormat::General, None);
            Ok(())
        }
        other => {
            let own = if let Value::Object(object) = other { object.pointer_stringer() } else { None };
            out.write_str(&own.unwrap_or_else(|| sprint(std::slice::from_ref(other))))
        }
    };
}
