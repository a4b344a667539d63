//! Comparison with Go's strictness about types.

use crate::{CallError, Kind, Value, format};
use std::rc::Rc;

/// Kinds that can be compared with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Invalid,
    Bool,
    Int,
    Uint,
    Float,
    String,
}

/// A basic value under its type.
enum Plain {
    Other,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    String(smol_str::SmolStr),
}

impl Plain {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) | Value::Int64(value) => Self::Int(*value),
            Value::Uint8(value) => Self::Uint(u64::from(*value)),
            Value::Uint64(value) => Self::Uint(*value),
            Value::Float64(value) => Self::Float(*value),
            Value::String(text) => Self::String(text.clone()),
            Value::Object(object) if object.kind() == Kind::Named => {
                object.content().map_or(Self::Other, |content| Self::from_value(&content))
            }
            _ => Self::Other,
        }
    }

    fn basic(&self) -> Basic {
        match self {
            Self::Other => Basic::Invalid,
            Self::Bool(_) => Basic::Bool,
            Self::Int(_) => Basic::Int,
            Self::Uint(_) => Basic::Uint,
            Self::Float(_) => Basic::Float,
            Self::String(_) => Basic::String,
        }
    }
}

fn incompatible(a: &Value, b: &Value) -> CallError {
    CallError::new(format!("incompatible types for comparison: {} and {}", a.type_name(), b.type_name()))
}

fn bad_type() -> CallError {
    CallError::new("invalid type for comparison")
}

/// `eq`: whether the first argument equals any of the others.
pub(super) fn eq(args: &[Value]) -> Result<bool, CallError> {
    let (first, others) = args.split_first().expect("the signature has a first parameter");
    if others.is_empty() {
        return Err(CallError::new("missing argument for comparison"));
    }
    let a = Plain::from_value(first);
    for other in others {
        if equal(first, &a, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equal(first: &Value, a: &Plain, other: &Value) -> Result<bool, CallError> {
    let b = Plain::from_value(other);
    Ok(match (a, &b) {
        (Plain::Bool(a), Plain::Bool(b)) => a == b,
        (Plain::Int(a), Plain::Int(b)) => a == b,
        (Plain::Uint(a), Plain::Uint(b)) => a == b,
        (Plain::Float(a), Plain::Float(b)) => a == b,
        (Plain::String(a), Plain::String(b)) => a == b,
        (Plain::Int(a), Plain::Uint(b)) | (Plain::Uint(b), Plain::Int(a)) => u64::try_from(*a) == Ok(*b),
        (Plain::Other, Plain::Other) => return equal_other(first, other),
        _ if !first.is_nil() && !other.is_nil() => return Err(incompatible(first, other)),
        _ => false,
    })
}

/// Values that are not basic: only nil, pointers and structs compare.
fn equal_other(a: &Value, b: &Value) -> Result<bool, CallError> {
    if !a.is_nil() && !b.is_nil() && a.kind_name() != b.kind_name() {
        let (a_type, b_type) = (a.type_name(), b.type_name());
        let (a, b) = (as_string(a), format::sprint(std::slice::from_ref(b)));
        return Err(CallError::new(format!("non-comparable types {a}: {a_type}, {b_type}: {b}")));
    }
    let (a_nil, b_nil) = (is_nil(a), is_nil(b));
    if a_nil || b_nil {
        return Ok(a_nil == b_nil);
    }
    match (a, b) {
        (Value::Object(x), Value::Object(y)) if x.kind() == Kind::Pointer => Ok(Rc::ptr_eq(x, y)),
        (Value::Object(x), Value::Object(y)) if x.kind() != Kind::Named => {
            Ok(x.type_name() == y.type_name() && x.equals(y.as_ref()))
        }
        _ => {
            let shown = as_string(b);
            Err(CallError::new(format!("non-comparable type {shown}: {}", b.type_name())))
        }
    }
}

/// The value as Go's error texts show it: for the verb of strings, whatever it is.
fn as_string(value: &Value) -> String {
    format::sprintf("%s", std::slice::from_ref(value))
}

fn is_nil(value: &Value) -> bool {
    match value {
        Value::NoValue | Value::Nil => true,
        Value::List(list) => list.is_nil(),
        Value::Map(map) => map.is_nil(),
        _ => false,
    }
}

/// `lt`
pub(super) fn lt(args: &[Value]) -> Result<bool, CallError> {
    let (a, b) = (Plain::from_value(&args[0]), Plain::from_value(&args[1]));
    if a.basic() == Basic::Invalid || b.basic() == Basic::Invalid {
        return Err(bad_type());
    }
    match (&a, &b) {
        (Plain::Int(a), Plain::Int(b)) => Ok(a < b),
        (Plain::Uint(a), Plain::Uint(b)) => Ok(a < b),
        (Plain::Float(a), Plain::Float(b)) => Ok(a < b),
        (Plain::String(a), Plain::String(b)) => Ok(a < b),
        (Plain::Int(a), Plain::Uint(b)) => Ok(*a < 0 || (*a as u64) < *b),
        (Plain::Uint(a), Plain::Int(b)) => Ok(*b >= 0 && *a < *b as u64),
        (Plain::Bool(_), Plain::Bool(_)) => Err(bad_type()),
        _ => Err(incompatible(&args[0], &args[1])),
    }
}

/// `le`
pub(super) fn le(args: &[Value]) -> Result<bool, CallError> {
    Ok(lt(args)? || eq(args)?)
}
