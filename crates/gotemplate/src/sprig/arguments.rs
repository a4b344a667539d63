//! How functions of Sprig are added to the table, and how they read their arguments.

use crate::{CallError, CallResult, Context, Function, Functions, Type, Value};

/// Adds a function with a fixed number of parameters under each of its names.
pub(super) fn add(
    functions: &mut Functions,
    names: &[&'static str],
    params: &'static [Type],
    body: impl Fn(&mut Context<'_>, &mut [Value]) -> CallResult + Send + Sync + Copy + 'static,
) {
    for name in names {
        functions.insert(Function::new(name, params, body));
    }
}

/// Adds a function whose last parameter repeats under each of its names.
pub(super) fn add_variadic(
    functions: &mut Functions,
    names: &[&'static str],
    params: &'static [Type],
    body: impl Fn(&mut Context<'_>, &mut [Value]) -> CallResult + Send + Sync + Copy + 'static,
) {
    for name in names {
        functions.insert(Function::variadic(name, params, body));
    }
}

/// The text of a string argument.
pub(super) fn text(args: &[Value], at: usize) -> &str {
    args.get(at).and_then(Value::as_str).unwrap_or_default()
}

/// The number of an `int` argument.
pub(super) fn int(args: &[Value], at: usize) -> i64 {
    match args.get(at) {
        Some(Value::Int(value) | Value::Int64(value)) => *value,
        _ => 0,
    }
}

/// Sprig's `strval`: strings as they are, bytes as text, others as `%v`.
pub(super) fn to_text(value: &Value) -> smol_str::SmolStr {
    match value {
        Value::String(text) => text.clone(),
        Value::Bytes(bytes) => tiphys_gocompat::rawstr::encode(bytes).into(),
        other => crate::format::sprint(std::slice::from_ref(other)).into(),
    }
}

/// A function that fails.
pub(super) fn fail<T>(message: impl Into<String>) -> Result<T, CallError> {
    Err(CallError::new(message))
}
