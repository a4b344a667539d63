//! Dictionaries.

use super::merge::{deep_copy, merge};
use super::{add, add_variadic, fail, text, to_text};
use crate::{CallError, CallResult, Context, Entry, Functions, List, ListType, Map, MapType, Type, Value};

const MAP: &[Type] = &[Type::Map];
const MAP_KEY: &[Type] = &[Type::Map, Type::String];
const MAPS: &[Type] = &[Type::Map, Type::Map];

fn map(args: &[Value], at: usize) -> Map {
    args.get(at).and_then(Value::as_map).cloned().unwrap_or_default()
}

/// The map as the unnamed type that Sprig's functions return.
fn unnamed(value: &Value) -> Value {
    match value {
        Value::Map(map) if matches!(map.map_type(), MapType::Named(_)) => Value::Map(map.as_unnamed()),
        other => other.clone(),
    }
}

pub(super) fn register(functions: &mut Functions) {
    access(functions);
    making(functions);
    merging(functions);
    add_variadic(functions, &["dig"], &[Type::Any], |ctx, args| dig(ctx, args));
}

fn access(f: &mut Functions) {
    add(f, &["get"], MAP_KEY, |ctx, args| {
        let Some((value, origin)) = map(args, 0).get_with_origin(text(args, 1)) else { return Ok("".into()) };
        ctx.returns(origin, 0);
        Ok(value)
    });
    add(f, &["set"], &[Type::Map, Type::String, Type::Any], |ctx, args| {
        let map = map(args, 0);
        if map.is_nil() {
            return fail("assignment to entry in nil map");
        }
        map.insert_with_origin(text(args, 1), args[2].clone(), ctx.kept_origin(2));
        Ok(unnamed(&args[0]))
    });
    add(f, &["unset"], MAP_KEY, |_, args| {
        map(args, 0).remove(text(args, 1));
        Ok(unnamed(&args[0]))
    });
    add(f, &["hasKey"], MAP_KEY, |_, args| Ok(map(args, 0).contains(text(args, 1)).into()));
    add_variadic(f, &["pluck"], &[Type::String, Type::Map], |_, args| {
        let found = (1..args.len()).filter_map(|at| map(args, at).get_with_origin(text(args, 0)));
        let (values, origins) = found.unzip();
        let list = List::new(values);
        list.set_origins(origins);
        Ok(list.into())
    });
    add_variadic(f, &["keys"], MAP, |_, args| {
        let mut keys = Vec::new();
        for at in 0..args.len() {
            keys.extend(map(args, at).entries().iter().map(|entry| Value::String(entry.key.clone())));
        }
        Ok(List::with_type(ListType::String, keys).into())
    });
    add(f, &["values"], MAP, |_, args| {
        let map = map(args, 0);
        let entries = map.entries();
        let list = List::new(entries.iter().map(|entry| entry.value.clone()).collect());
        list.set_origins(entries.iter().map(|entry| entry.origin).collect());
        list.set_origin(map.origin());
        drop(entries);
        Ok(list.into())
    });
}

fn making(f: &mut Functions) {
    add_variadic(f, &["dict"], &[Type::Any], |ctx, args| Ok(dict(ctx, args)));
    add_variadic(f, &["pick"], MAP_KEY, |ctx, args| {
        let from = map(args, 0);
        ctx.claim_entries(from.len().min(args.len()))?;
        Ok(subset(&from, |key| args[1..].iter().any(|wanted| wanted.as_str() == Some(key))))
    });
    add_variadic(f, &["omit"], MAP_KEY, |ctx, args| {
        let from = map(args, 0);
        ctx.claim_entries(from.len())?;
        Ok(subset(&from, |key| !args[1..].iter().any(|omitted| omitted.as_str() == Some(key))))
    });
    add(f, &["deepCopy", "mustDeepCopy"], &[Type::Any], |_, args| {
        if args[0].is_nil() {
            return fail("reflect: call of reflect.Value.Type on zero Value");
        }
        deep_copy(&args[0])
    });
}

fn dict(ctx: &mut Context<'_>, args: &mut [Value]) -> Value {
    let mut entries = Vec::with_capacity(args.len().div_ceil(2));
    for at in (0..args.len()).step_by(2) {
        let key = to_text(&args[at]);
        let value = args.get_mut(at + 1).map_or_else(|| Value::from(""), std::mem::take);
        entries.push(Entry { key, value, origin: ctx.kept_origin(at + 1) });
    }
    Map::from_entries(MapType::Any, entries).into()
}

fn subset(from: &Map, keep: impl Fn(&str) -> bool) -> Value {
    let whole = from.origin();
    let entries = from.entries();
    let kept = entries
        .iter()
        .filter(|entry| keep(&entry.key))
        .map(|entry| Entry { origin: if entry.origin == 0 { whole } else { entry.origin }, ..entry.clone() });
    Map::from_entries(MapType::Any, kept.collect()).into()
}

fn merging(f: &mut Functions) {
    add_variadic(f, &["merge"], MAPS, |ctx, args| merge_all(ctx, args, false).or_else(|_| Ok("".into())));
    add_variadic(f, &["mergeOverwrite"], MAPS, |ctx, args| {
        merge_all(ctx, args, true).or_else(|_| Ok("".into()))
    });
    add_variadic(f, &["mustMerge"], MAPS, |ctx, args| merge_all(ctx, args, false));
    add_variadic(f, &["mustMergeOverwrite"], MAPS, |ctx, args| merge_all(ctx, args, true));
}

fn merge_all(ctx: &mut Context<'_>, args: &[Value], overwrite: bool) -> CallResult {
    let mut target = map(args, 0);
    for at in 1..args.len() {
        let source = map(args, at);
        ctx.claim_entries(source.len())?;
        if target.is_nil() && !source.is_nil() {
            target = Map::new();
        }
        let origin = ctx.kept_origin(at);
        merge(&target, &source, origin, overwrite)?;
    }
    Ok(unnamed(&Value::Map(target)))
}

fn dig(ctx: &mut Context<'_>, args: &[Value]) -> CallResult {
    let [keys @ .., default, dict] = args else {
        return fail("dig needs at least three arguments");
    };
    if keys.is_empty() {
        return fail("dig needs at least three arguments");
    }
    let mut at = plain_map(dict)?;
    let mut origin = ctx.arg_origin(args.len() - 1);
    let mut names = Vec::with_capacity(keys.len());
    for key in keys {
        match key {
            Value::String(name) => names.push(name),
            other => return fail(conversion(other, "string")),
        }
    }
    let (last, path) = names.split_last().expect("there is at least one key");
    for name in path {
        match at.get_with_origin(name) {
            None => return Ok(default.clone()),
            Some((step, own)) => {
                origin = if own == 0 { origin } else { own };
                at = plain_map(&step)?;
            }
        }
    }
    let Some((value, own)) = at.get_with_origin(last) else { return Ok(default.clone()) };
    ctx.returns(if own == 0 { origin } else { own }, args.len() - 1);
    Ok(value)
}

/// A type assertion to `map[string]interface {}`, which named types fail.
fn plain_map(value: &Value) -> Result<Map, CallError> {
    match value {
        Value::Map(map) if map.map_type() == MapType::Any => Ok(map.clone()),
        other => fail(conversion(other, "map[string]interface {}")),
    }
}

fn conversion(value: &Value, wanted: &str) -> String {
    let is = if value.is_nil() { "nil".into() } else { value.type_name() };
    format!("interface conversion: interface {{}} is {is}, not {wanted}")
}
