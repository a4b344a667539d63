//! Struct-like values with fields and methods.

use super::{Type, Value};
use crate::{CallError, Clock};
use std::any::Any;
use std::borrow::Cow;

/// Result of a template function.
pub type CallResult = Result<Value, CallError>;

/// The kind of an object's Go type as `kindOf` names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A struct.
    Struct,
    /// A pointer to a struct.
    Pointer,
    /// A named type over the kind of [`Object::content`].
    Named,
}

/// Parameters of a method or function.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// Types of the parameters; the last one repeats if `variadic`.
    pub params: &'static [Type],
    /// Whether the last parameter repeats.
    pub variadic: bool,
}

impl Signature {
    /// A signature with a fixed number of parameters.
    pub const fn fixed(params: &'static [Type]) -> Self {
        Self { params, variadic: false }
    }

    /// A signature whose last parameter repeats.
    pub const fn variadic(params: &'static [Type]) -> Self {
        Self { params, variadic: true }
    }
}

/// A value of a Go struct, pointer or named type.
pub trait Object: Any {
    /// The Go name of the type as `%T` prints it.
    fn type_name(&self) -> Cow<'static, str>;

    /// The kind of the type.
    fn kind(&self) -> Kind {
        Kind::Struct
    }

    /// The exported field `name`.
    fn field(&self, _name: &str) -> Option<Value> {
        None
    }

    /// The names of the exported fields in the order of their declaration, for printing.
    fn field_names(&self) -> &[&'static str] {
        &[]
    }

    /// The signature of the method `name`.
    fn method(&self, _name: &str) -> Option<Signature> {
        None
    }

    /// Calls the method `name`; the arguments fit its signature. `clock` is the render's.
    ///
    /// # Errors
    /// Whatever the method reports.
    fn call(&self, _clock: &dyn Clock, name: &str, _args: &[Value]) -> CallResult {
        Err(CallError::new(format!("no method {name}")))
    }

    /// The list, map or scalar under a named type (for `range`, `index`, `len`, truth and comparison).
    fn content(&self) -> Option<Value> {
        None
    }

    /// The result of the type's `String` or `Error` method.
    fn stringer(&self) -> Option<String> {
        None
    }

    /// The result of the type's `GoString` method, which `%#v` prints.
    fn go_string(&self) -> Option<String> {
        None
    }

    /// The fields that only `fmt` sees, for verbs that print them where there is a `String` method for the
    /// others.
    fn hidden_fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// The result of a `String` method that only a pointer to the value has: an action that names the value
    /// itself prints this, whatever is given a copy (every function) does not know the method.
    fn pointer_stringer(&self) -> Option<String> {
        None
    }

    /// What a key that the map under a named type lacks yields, if that is not what maps of any values yield.
    fn missing_entry(&self) -> Option<Value> {
        None
    }

    /// The names that `encoding/json` gives the fields, in their order; by default those of the fields.
    fn json_names(&self) -> &[&'static str] {
        self.field_names()
    }

    /// What `encoding/json` makes of the value; by default its fields.
    fn to_json(&self) -> Value {
        if let Some(content) = self.content() {
            return content;
        }
        self.json_names()
            .iter()
            .map(|name| (*name, self.field(name).unwrap_or_default()))
            .collect::<super::Map>()
            .into()
    }

    /// Whether both are equal in Go's sense of `==` and `reflect.DeepEqual`.
    fn equals(&self, _other: &dyn Object) -> bool {
        false
    }
}

impl dyn Object {
    /// The value as a concrete type.
    pub fn downcast_ref<T: Object>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref::<T>()
    }
}
