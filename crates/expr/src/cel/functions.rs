//! Functions of Kubernetes' environment that the CEL library does not have or has in another form, and
//! those that macros stand for (their names begin with `@`).

mod text_functions;

use std::{cell::Cell, cmp::Ordering, collections::HashMap, sync::Arc};

use kube_cel::cel::{
    Context, ExecutionError, FunctionContext, Value,
    common::ast::Expr,
    extractors::This,
    objects::{Key, Map, OptionalValue},
};

/// What one evaluation may cost.
pub(super) const PER_CALL: u64 = 1_000_000;

thread_local! {
    /// What the evaluation that goes on in this thread has cost so far.
    static SPENT: Cell<u64> = const { Cell::new(0) };
}

/// Begins an evaluation that costs at least this much.
pub(super) fn begin(cost: u64) {
    SPENT.set(cost);
}

/// What the last evaluation of this thread cost.
pub(super) fn spent() -> u64 {
    SPENT.get()
}

/// Items of a list that are copied at the cost of one.
const COPIED: u64 = 100;

type Outcome = Result<Value, ExecutionError>;

fn spend(cost: u64) -> Result<(), ExecutionError> {
    SPENT.set(SPENT.get().saturating_add(cost));
    match SPENT.get() > PER_CALL {
        true => {
            Err(ExecutionError::function_error("@cost", "operation cancelled: actual cost limit exceeded"))
        }
        false => Ok(()),
    }
}

/// Registers the functions, in place of those of the same names.
pub(super) fn register(context: &mut Context<'_>) {
    context.add_function("@cost", cost);
    text_functions::register(context);
    context.add_function("@optMap", |context: &FunctionContext<'_, '_>| {
        Ok::<_, ExecutionError>(optional(mapped(context)?))
    });
    context.add_function("@optFlatMap", |context: &FunctionContext<'_, '_>| {
        Ok::<_, ExecutionError>(mapped(context)?.unwrap_or_else(|| optional(None)))
    });
    context.add_function("@entries", |value: Value| entries(&value));
    context.add_function("@insert", insert);
    context.add_function("@insertAll", insert_all);
    context.add_function("@sortByKeys", sort_by_keys);
    context.add_function("@optional", |value: Value| match value {
        Value::Null => Ok::<_, ExecutionError>(optional(None)),
        value => Ok(optional(Some(value))),
    });
    context.add_function("size", |This(this): This<Value>| size(&this));
    context.add_function("first", |This(list): This<Value>| {
        Ok::<_, ExecutionError>(optional(items(&list)?.first().cloned()))
    });
    context.add_function("last", |This(list): This<Value>| {
        Ok::<_, ExecutionError>(optional(items(&list)?.last().cloned()))
    });
    context.add_function("lists.range", range);
    context.add_function("optional.unwrap", |list: Value| unwrapped(&list));
    context.add_function("unwrapOpt", |This(list): This<Value>| unwrapped(&list));
    context.add_function("dyn", Ok::<Value, ExecutionError>);
    context.add_function("type", |value: Value| Ok::<_, ExecutionError>(type_name(&value)));
    for name in TYPES {
        // A CEL value becomes a CEL value without fail.
        let _ = context.add_variable(name, text(name));
    }
}

/// The types that expressions name.
const TYPES: [&str; 9] = ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type"];

fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

fn type_name(value: &Value) -> Value {
    text(match value {
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Bool(_) => "bool",
        Value::Null => "null_type",
        Value::Duration(_) => "google.protobuf.Duration",
        Value::Timestamp(_) => "google.protobuf.Timestamp",
        Value::Opaque(opaque) => return text(opaque.runtime_type_name()),
        Value::Function(..) => "function",
    })
}

fn optional(value: Option<Value>) -> Value {
    Value::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// Evaluates its second argument and adds the first one to what the evaluation has cost.
fn cost(context: &FunctionContext<'_, '_>) -> Outcome {
    let [cost, body] = context.args else { return Err(ExecutionError::NoSuchOverload) };
    if let Value::Int(cost) = Value::resolve(cost, context.ptx)? {
        spend(cost.unsigned_abs())?;
    }
    let so_far = Value::resolve(body, context.ptx)?;
    // The library copies what a loop has gathered at every step.
    let length = match &so_far {
        Value::List(items) => items.len(),
        Value::Map(map) => map.map.len(),
        _ => 0,
    };
    spend(length as u64 / COPIED)?;
    Ok(so_far)
}

/// What the body of a binding is for the value that an optional holds, if it holds one.
fn mapped(context: &FunctionContext<'_, '_>) -> Result<Option<Value>, ExecutionError> {
    let [target, body] = context.args else { return Err(ExecutionError::NoSuchOverload) };
    let Expr::Comprehension(binding) = &body.expr else { return Err(ExecutionError::NoSuchOverload) };
    let target = Value::resolve(target, context.ptx)?;
    let held: &OptionalValue = (&target).try_into()?;
    let Some(value) = held.value() else { return Ok(None) };
    let mut inner = context.ptx.new_inner_scope();
    // A CEL value becomes a CEL value without fail.
    let _ = inner.add_variable(binding.accu_var.clone(), value.clone());
    Value::resolve(&binding.result, &inner).map(Some)
}

fn items(value: &Value) -> Result<&[Value], ExecutionError> {
    match value {
        Value::List(items) => Ok(items),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

/// Key and value of every entry of a map in the order of the keys, or index and item of a list.
fn entries(value: &Value) -> Outcome {
    let pair = |key: Value, value: &Value| Value::List(Arc::new(vec![key, value.clone()]));
    let pairs: Vec<Value> = match value {
        Value::List(items) => {
            items.iter().enumerate().map(|(at, item)| pair(Value::Int(at as i64), item)).collect()
        }
        Value::Map(map) => {
            let mut entries: Vec<_> = map.map.iter().collect();
            entries.sort_by(|a, b| a.0.cmp(b.0));
            entries.into_iter().map(|(key, value)| pair(key_value(key), value)).collect()
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    spend(pairs.len() as u64)?;
    Ok(Value::List(Arc::new(pairs)))
}

fn key_value(key: &Key) -> Value {
    match key {
        Key::Int(value) => Value::Int(*value),
        Key::Uint(value) => Value::UInt(*value),
        Key::Bool(value) => Value::Bool(*value),
        Key::String(value) => Value::String(Arc::clone(value)),
    }
}

fn key_of(value: &Value) -> Result<Key, ExecutionError> {
    Ok(match value {
        Value::Int(value) => Key::Int(*value),
        Value::UInt(value) => Key::Uint(*value),
        Value::Bool(value) => Key::Bool(*value),
        Value::String(value) => Key::String(Arc::clone(value)),
        _ => return Err(ExecutionError::NoSuchOverload),
    })
}

fn map_of(value: Value) -> Result<HashMap<Key, Value>, ExecutionError> {
    match value {
        Value::Map(map) => Ok(Arc::unwrap_or_clone(map.map)),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn add(map: &mut HashMap<Key, Value>, key: Key, value: Value) -> Result<(), ExecutionError> {
    if map.contains_key(&key) {
        let shown = match &key {
            Key::String(text) => text.to_string(),
            Key::Int(value) => value.to_string(),
            Key::Uint(value) => value.to_string(),
            Key::Bool(value) => value.to_string(),
        };
        return Err(ExecutionError::function_error(
            "insert",
            format!("insert failed: key {shown} already exists"),
        ));
    }
    map.insert(key, value);
    Ok(())
}

fn insert(map: Value, key: Value, value: Value) -> Outcome {
    let mut map = map_of(map)?;
    add(&mut map, key_of(&key)?, value)?;
    Ok(Value::Map(Map { map: Arc::new(map) }))
}

fn insert_all(map: Value, more: Value) -> Outcome {
    let mut map = map_of(map)?;
    for (key, value) in map_of(more)? {
        add(&mut map, key, value)?;
    }
    Ok(Value::Map(Map { map: Arc::new(map) }))
}

/// The items in the order of their keys, which stand in a list of the same length.
fn sort_by_keys(list: Value, keys: Value) -> Outcome {
    let (list, keys) = (items(&list)?, items(&keys)?);
    let mut pairs: Vec<(&Value, &Value)> = keys.iter().zip(list).collect();
    let comparable = keys.windows(2).all(|pair| pair[0].partial_cmp(&pair[1]).is_some());
    if !comparable {
        return Err(ExecutionError::function_error("sortBy", "list elements must be comparable"));
    }
    pairs.sort_by(|a, b| a.0.partial_cmp(b.0).unwrap_or(Ordering::Equal));
    Ok(Value::List(Arc::new(pairs.into_iter().map(|(_, item)| item.clone()).collect())))
}

/// Strings are counted by characters.
fn size(value: &Value) -> Result<i64, ExecutionError> {
    let size = match value {
        Value::List(items) => items.len(),
        Value::Map(map) => map.map.len(),
        Value::String(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(size as i64)
}

fn range(end: i64) -> Outcome {
    spend(end.max(0).unsigned_abs())?;
    Ok(Value::List(Arc::new((0..end.max(0)).map(Value::Int).collect())))
}

/// What the optionals of a list hold, without those that hold nothing.
fn unwrapped(list: &Value) -> Outcome {
    let mut held = Vec::new();
    for item in items(list)? {
        // The CEL library keeps optionals in lists as what they hold.
        match <&OptionalValue>::try_from(item) {
            Ok(optional) => held.extend(optional.value().cloned()),
            Err(_) => held.extend((*item != Value::Null).then(|| item.clone())),
        }
    }
    Ok(Value::List(Arc::new(held)))
}
