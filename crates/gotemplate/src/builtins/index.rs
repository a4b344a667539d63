//! `index`, `slice`, `len` and `call`.

use crate::{CallError, CallResult, Context, Kind, List, MapType, OriginId, Value};
use smol_str::SmolStr;
use tiphys_gocompat::rawstr;

/// What is under a named type.
fn content(value: &Value) -> Value {
    match value {
        Value::Object(object) if object.kind() != Kind::Struct => {
            object.content().unwrap_or_else(|| value.clone())
        }
        _ => value.clone(),
    }
}

/// The name of the type, or of what a pointer points to.
fn pointed(value: &Value) -> String {
    value.type_name().trim_start_matches('*').to_owned()
}

fn index_number(index: &Value, limit: usize) -> Result<usize, CallError> {
    let number = match content(index) {
        Value::Int(number) | Value::Int64(number) => number,
        Value::Uint8(number) => i64::from(number),
        Value::Uint64(number) => number as i64,
        Value::NoValue | Value::Nil => return Err(CallError::new("cannot index slice/array with nil")),
        other => {
            return Err(CallError::new(format!("cannot index slice/array with type {}", other.type_name())));
        }
    };
    match usize::try_from(number) {
        Ok(at) if at <= limit => Ok(at),
        _ => Err(CallError::new(format!("index out of range: {number}"))),
    }
}

/// `index`
pub(super) fn index(ctx: &mut Context<'_>, args: &[Value]) -> CallResult {
    let (first, indexes) = args.split_first().expect("the signature has a first parameter");
    if first.is_nil() {
        return Err(CallError::new("index of untyped nil"));
    }
    let mut item = first.clone();
    let mut origin = ctx.arg_origin(0);
    for index in indexes {
        item = match content(&item) {
            Value::NoValue | Value::Nil => return Err(CallError::new("index of nil pointer")),
            Value::List(list) => {
                let at = index_number(index, list.len())?;
                origin = nonzero(list.origin_of(at), origin);
                list.get(at).ok_or_else(|| CallError::new("reflect: slice index out of range"))?
            }
            Value::Bytes(bytes) => {
                let at = index_number(index, bytes.len())?;
                let byte =
                    bytes.get(at).ok_or_else(|| CallError::new("reflect: slice index out of range"))?;
                Value::Uint8(*byte)
            }
            Value::String(text) => {
                let bytes = rawstr::decode(&text);
                let at = index_number(index, bytes.len())?;
                let byte =
                    bytes.get(at).ok_or_else(|| CallError::new("reflect: string index out of range"))?;
                Value::Uint8(*byte)
            }
            Value::Map(map) => {
                let key = key(index)?;
                let zero = if map.map_type() == MapType::String { Value::string("") } else { Value::Nil };
                match map.get_with_origin(&key) {
                    Some((value, own)) => {
                        origin = nonzero(own, origin);
                        value
                    }
                    None => zero,
                }
            }
            other => return Err(CallError::new(format!("can't index item of type {}", pointed(&other)))),
        };
    }
    ctx.returns(origin, 0);
    Ok(item)
}

fn nonzero(own: OriginId, whole: OriginId) -> OriginId {
    if own == 0 { whole } else { own }
}

fn key(index: &Value) -> Result<SmolStr, CallError> {
    match index {
        Value::String(text) => Ok(text.clone()),
        Value::NoValue | Value::Nil => Err(CallError::new("value is nil; should be of type string")),
        other => Err(CallError::new(format!("value has type {}; should be string", other.type_name()))),
    }
}

/// Go's `slice` (Sprig replaces it with its own).
pub(super) fn slice(args: &[Value]) -> CallResult {
    let (first, indexes) = args.split_first().expect("the signature has a first parameter");
    if first.is_nil() {
        return Err(CallError::new("slice of untyped nil"));
    }
    let item = content(first);
    if indexes.len() > 3 {
        return Err(CallError::new(format!("too many slice indexes: {}", indexes.len())));
    }
    let length = match &item {
        Value::String(_) if indexes.len() == 3 => {
            return Err(CallError::new("cannot 3-index slice a string"));
        }
        Value::String(text) => rawstr::len(text),
        Value::List(list) => list.len(),
        Value::Bytes(bytes) => bytes.len(),
        other => return Err(CallError::new(format!("can't slice item of type {}", pointed(other)))),
    };
    let mut bounds = [0, length, length];
    for (at, index) in indexes.iter().enumerate() {
        bounds[at] = index_number(index, length)?;
    }
    let [from, to, end] = bounds;
    if from > to {
        return Err(CallError::new(format!("invalid slice index: {from} > {to}")));
    }
    if to > end {
        return Err(CallError::new(format!("invalid slice index: {to} > {end}")));
    }
    Ok(match &item {
        Value::String(text) => Value::string(rawstr::slice(text, from, to)),
        Value::Bytes(bytes) => Value::Bytes(bytes[from..to].into()),
        Value::List(list) => Value::List(sub_list(list, from, to)),
        _ => Value::Nil,
    })
}

/// Items of a list as a list of the same type.
pub(crate) fn sub_list(list: &List, from: usize, to: usize) -> List {
    let part = List::with_type(list.list_type(), list.items()[from..to].to_vec());
    part.set_origin(list.origin());
    part.set_origins((from..to).map(|at| list.origin_of(at)).collect());
    part
}

/// `len`
pub(super) fn length(value: &Value) -> CallResult {
    let length = match content(value) {
        Value::NoValue => return Err(CallError::new("reflect: call of reflect.Value.Type on zero Value")),
        Value::Nil => return Err(CallError::new("len of nil pointer")),
        Value::String(text) => rawstr::len(&text),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        other => return Err(CallError::new(format!("len of type {}", pointed(&other)))),
    };
    Ok(Value::Int(length as i64))
}

/// `call`: templates have no function values here, so it can only fail. The first argument is the callee's
/// text.
pub(super) fn call(args: &[Value]) -> CallResult {
    match args {
        [name, callee, ..] if !callee.is_nil() => {
            let name = name.as_str().unwrap_or_default();
            Err(CallError::new(format!("non-function {name} of type {}", callee.type_name())))
        }
        _ => Err(CallError::new("call of nil")),
    }
}
