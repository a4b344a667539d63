//! The functions of Sprig 3, by family.

mod cast;
mod crypto;
mod dates;
mod defaults;
mod dicts;
mod encoding;
mod equal;
mod lists;
mod math;
mod merge;
mod paths;
mod reflect;
mod regexes;
mod strings;
mod times;
mod urls;
mod versions;

use crate::{CallError, CallResult, Context, Function, Functions, Type, Value};

/// Adds the functions to the table.
pub(crate) fn register(functions: &mut Functions) {
    strings::register(functions);
    lists::register(functions);
    dicts::register(functions);
    math::register(functions);
    defaults::register(functions);
    encoding::register(functions);
    reflect::register(functions);
    paths::register(functions);
    crypto::register(functions);
    urls::register(functions);
    dates::register(functions);
    regexes::register(functions);
    versions::register(functions);
    functions.walking(&WALKING);
    functions.copying(&COPYING);
}

/// Functions that copy whatever their arguments hold.
const COPYING: [&str; 2] = ["deepCopy", "mustDeepCopy"];

/// Functions that print or compare whatever their arguments hold.
const WALKING: [&str; 26] = [
    "cat",
    "compact",
    "deepEqual",
    "has",
    "join",
    "merge",
    "mergeOverwrite",
    "mustCompact",
    "mustHas",
    "mustMerge",
    "mustMergeOverwrite",
    "mustToJson",
    "mustToPrettyJson",
    "mustToRawJson",
    "mustUniq",
    "mustWithout",
    "quote",
    "sortAlpha",
    "squote",
    "toJson",
    "toPrettyJson",
    "toRawJson",
    "toString",
    "toStrings",
    "uniq",
    "without",
];

/// Adds a function with a fixed number of parameters under each of its names.
fn add(
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
fn add_variadic(
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
fn text(args: &[Value], at: usize) -> &str {
    args.get(at).and_then(Value::as_str).unwrap_or_default()
}

/// The number of an `int` argument.
fn int(args: &[Value], at: usize) -> i64 {
    match args.get(at) {
        Some(Value::Int(value) | Value::Int64(value)) => *value,
        _ => 0,
    }
}

/// Sprig's `strval`: strings as they are, bytes as text, others as `%v`.
fn to_text(value: &Value) -> smol_str::SmolStr {
    match value {
        Value::String(text) => text.clone(),
        Value::Bytes(bytes) => tiphys_gocompat::rawstr::encode(bytes).into(),
        other => crate::format::sprint(std::slice::from_ref(other)).into(),
    }
}

fn fail<T>(message: impl Into<String>) -> Result<T, CallError> {
    Err(CallError::new(message))
}
