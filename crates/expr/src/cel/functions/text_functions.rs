//! Functions whose result may be much larger than what they are given: what they make is paid for before it
//! is made, as the API server accounts for it, a tenth for each character.

use std::sync::Arc;

use kube_cel::cel::{
    Context, ExecutionError, FunctionContext, Value,
    extractors::{Arguments, This},
    objects::Key,
};

use super::{Outcome, spend};

/// Bytes that cost one.
const BYTES: u64 = 10;
/// What a value takes beside its text.
const VALUE: u64 = 24;
/// The digits behind the point that a format may ask for: the library fails at 65,536.
const MAX_PRECISION: usize = 1000;
/// Values nested deeper are refused by whatever reads them.
const MAX_DEPTH: usize = 500;

pub(super) fn register(context: &mut Context<'_>) {
    context.add_function("@weighed", charge_argument);
    context.add_function("@format", |value: Value| {
        if let Value::String(format) = &value {
            check_precision(format)?;
        }
        Ok::<_, ExecutionError>(value)
    });
    context.add_function("replace", replace);
    context.add_function("join", join);
    context.add_function("split", split);
}

/// Evaluates its argument and pays for the size of it.
fn charge_argument(context: &FunctionContext<'_, '_>) -> Outcome {
    let [body] = context.args else { return Err(ExecutionError::NoSuchOverload) };
    let value = Value::resolve(body, context.ptx)?;
    spend(weight(&value, 0) / BYTES)?;
    Ok(value)
}

/// The bytes that a value takes.
fn weight(value: &Value, depth: usize) -> u64 {
    let below = |value: &Value| VALUE + weight(value, depth + 1);
    match value {
        _ if depth > MAX_DEPTH => 0,
        Value::String(text) => text.len() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::List(items) => items.iter().map(below).sum(),
        Value::Map(map) => map.map.iter().map(|(key, value)| key_weight(key) + below(value)).sum(),
        _ => 0,
    }
}

fn key_weight(key: &Key) -> u64 {
    match key {
        Key::String(text) => VALUE + text.len() as u64,
        _ => VALUE,
    }
}

/// Pays for a text of so many bytes, or for parts of one.
fn spend_bytes(bytes: usize) -> Result<(), ExecutionError> {
    spend(bytes as u64 / BYTES)
}

fn check_precision(format: &str) -> Result<(), ExecutionError> {
    for (at, _) in format.match_indices("%.") {
        let digits = &format[at + 2..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let too_large = digits[..end].parse::<usize>().map_or(end > 0, |number| number > MAX_PRECISION);
        if too_large {
            let message = format!(
                "the precision %.{} is larger than {MAX_PRECISION}, a limit of Tiphys: ask for fewer digits",
                &digits[..end.min(20)]
            );
            return Err(ExecutionError::function_error("format", message));
        }
    }
    Ok(())
}

fn text(value: Option<&Value>, function: &str) -> Result<Arc<String>, ExecutionError> {
    match value {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(ExecutionError::function_error(function, "expected string argument")),
    }
}

fn replace(This(this): This<Arc<String>>, Arguments(args): Arguments) -> Outcome {
    let (from, to) = (text(args.first(), "replace")?, text(args.get(1), "replace")?);
    let most = match args.get(2) {
        Some(Value::Int(most)) => usize::try_from((*most).max(0)).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let found = match from.len() {
        0 => this.chars().count() + 1,
        _ => this.matches(from.as_str()).count(),
    };
    let growth = to.len().saturating_sub(from.len());
    spend_bytes(this.len().saturating_add(found.min(most).saturating_mul(growth)))?;
    Ok(Value::String(Arc::new(this.replacen(from.as_str(), &to, most))))
}

fn join(This(this): This<Arc<Vec<Value>>>, Arguments(args): Arguments) -> Outcome {
    let separator = match args.first() {
        Some(Value::String(text)) => text.as_str(),
        _ => "",
    };
    let length = |item: &Value| match item {
        Value::String(text) => text.len(),
        other => usize::try_from(weight(other, 0)).unwrap_or(usize::MAX),
    };
    let items: usize = this.iter().map(length).fold(0, usize::saturating_add);
    spend_bytes(items.saturating_add(this.len().saturating_mul(separator.len())))?;
    let parts: Vec<String> = this
        .iter()
        .map(|item| match item {
            Value::String(text) => text.to_string(),
            other => format!("{other:?}"),
        })
        .collect();
    Ok(Value::String(Arc::new(parts.join(separator))))
}

fn split(This(this): This<Arc<String>>, Arguments(args): Arguments) -> Outcome {
    let separator = text(args.first(), "split")?;
    let most = match args.get(1) {
        Some(Value::Int(0)) => return Ok(Value::List(Arc::new(Vec::new()))),
        Some(Value::Int(most)) => usize::try_from(*most).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let parts = match separator.len() {
        0 => this.chars().count() + 2,
        _ => this.matches(separator.as_str()).count() + 1,
    };
    let each = usize::try_from(VALUE).unwrap_or_default();
    spend_bytes(parts.min(most).saturating_mul(each).saturating_add(this.len()))?;
    let part = |part: &str| Value::String(Arc::new(part.to_owned()));
    Ok(Value::List(Arc::new(this.splitn(most, separator.as_str()).map(part).collect())))
}
