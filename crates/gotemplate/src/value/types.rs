//! Types of parameters, and the Go names of types and kinds.

use super::{Kind, ListType, MapType, Value};
use std::borrow::Cow;

/// The type of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// `interface {}`: takes everything; no value arrives as nil.
    Any,
    /// `reflect.Value`: takes everything and tells nil from no value.
    Reflect,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `int64`
    Int64,
    /// `uint32`
    Uint32,
    /// `float64`
    Float64,
    /// `string`
    String,
    /// `map[string]interface {}`
    Map,
    /// `[]interface {}`
    List,
    /// A named struct, pointer or interface type, which takes objects of that type name only.
    Named(&'static str),
}

impl Type {
    /// The name of the type as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Reflect => "reflect.Value",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Uint32 => "uint32",
            Self::Float64 => "float64",
            Self::String => "string",
            Self::Map => "map[string]interface {}",
            Self::List => "[]interface {}",
            Self::Named(name) => name,
        }
    }

    /// Whether an untyped nil may be given for the type.
    pub fn can_be_nil(self) -> bool {
        match self {
            Self::Any | Self::Reflect | Self::Map | Self::List => true,
            Self::Named(name) => name.starts_with('*'),
            _ => false,
        }
    }

    /// Whether a value other than nil may be given for the type.
    pub fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any | Self::Reflect, _) => true,
            (Self::Bool, Value::Bool(_))
            | (Self::Int, Value::Int(_))
            | (Self::Int64, Value::Int64(_))
            | (Self::Float64, Value::Float64(_))
            | (Self::String, Value::String(_)) => true,
            (Self::Map, Value::Map(map)) => map.map_type().holds_any(),
            (Self::List, Value::List(list)) => list.list_type() == ListType::Any,
            (Self::Named(name), Value::Object(object)) => object.type_name() == name,
            _ => false,
        }
    }
}

impl ListType {
    /// The name of the type as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "[]interface {}",
            Self::String => "[]string",
            Self::Int => "[]int",
            Self::Lists => "[][]interface {}",
            Self::Maps => "[]map[string]interface {}",
            Self::Named(name) => name,
        }
    }

    /// The name of the element type as Go prints it.
    pub fn element_name(self) -> &'static str {
        self.name().trim_start_matches("[]")
    }

    /// Whether the element type is `interface {}`.
    pub fn holds_any(self) -> bool {
        matches!(self, Self::Any)
    }
}

impl MapType {
    /// The name of the type as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "map[string]interface {}",
            Self::String => "map[string]string",
            Self::Named(methods) => methods.type_name(),
        }
    }
}

impl Value {
    /// The name of the value's type as `%T` prints it (`<nil>` for nil).
    pub fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::NoValue | Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Int64(_) => "int64",
            Self::Float64(_) => "float64",
            Self::Uint8(_) => "uint8",
            Self::Uint64(_) => "uint64",
            Self::String(_) => "string",
            Self::Bytes(_) => "[]uint8",
            Self::List(list) => list.list_type().name(),
            Self::Map(map) => map.map_type().name(),
            Self::Object(object) => return object.type_name(),
        })
    }

    /// The name of the value's kind as Go's `reflect.Kind` prints it (`invalid` for nil).
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::NoValue | Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Int64(_) => "int64",
            Self::Float64(_) => "float64",
            Self::Uint8(_) => "uint8",
            Self::Uint64(_) => "uint64",
            Self::String(_) => "string",
            Self::Bytes(_) | Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Object(object) => match object.kind() {
                Kind::Struct => "struct",
                Kind::Pointer => "ptr",
                Kind::Named => object.content().map_or("struct", |content| content.kind_name()),
            },
        }
    }
}
