//! Lists.

use super::cast::{to_float, to_int};
use super::equal::{deep_equal, deep_hash};
use super::{add, add_variadic, fail, int};
use rustc_hash::FxHashMap;
use std::hash::RandomState;

use crate::{CallError, Functions, List, ListType, OriginId, Type, Value};

const ANY: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];

/// The items of a list argument with their origins.
struct Items {
    values: Vec<Value>,
    origins: Vec<OriginId>,
}

impl Items {
    fn into_list(self) -> Value {
        let list = List::new(self.values);
        if self.origins.iter().any(|origin| *origin != 0) {
            list.set_origins(self.origins);
        }
        list.into()
    }

    fn push(&mut self, value: Value, origin: OriginId) {
        self.values.push(value);
        self.origins.push(origin);
    }
}

/// The items of a slice, or Sprig's error for something else.
fn items(value: &Value, complaint: &str) -> Result<Items, CallError> {
    match value {
        Value::List(list) => {
            let values = list.snapshot();
            let origins = (0..values.len()).map(|at| list.origin_of(at)).collect();
            Ok(Items { values, origins })
        }
        Value::Bytes(bytes) => Ok(Items {
            values: bytes.iter().map(|byte| Value::Uint8(*byte)).collect(),
            origins: vec![0; bytes.len()],
        }),
        Value::NoValue | Value::Nil => {
            fail("runtime error: invalid memory address or nil pointer dereference")
        }
        Value::Object(object) => match object.content() {
            Some(content @ (Value::List(_) | Value::Bytes(_))) => items(&content, complaint),
            _ => fail(format!("{complaint} {}", value.kind_name())),
        },
        other => fail(format!("{complaint} {}", other.kind_name())),
    }
}

pub(super) fn register(functions: &mut Functions) {
    making(functions);
    ends(functions);
    filters(functions);
    parts(functions);
}

fn making(f: &mut Functions) {
    add_variadic(f, &["list", "tuple"], ANY, |ctx, args| {
        let mut made = Items { values: Vec::with_capacity(args.len()), origins: Vec::new() };
        for (at, arg) in args.iter_mut().enumerate() {
            made.push(std::mem::take(arg), ctx.kept_origin(at));
        }
        Ok(made.into_list())
    });
    add(f, &["append", "push", "mustAppend", "mustPush"], TWO, |ctx, args| {
        let mut list = items(&args[0], "Cannot push on type")?;
        list.push(args[1].clone(), ctx.kept_origin(1));
        Ok(list.into_list())
    });
    add(f, &["prepend", "mustPrepend"], TWO, |ctx, args| {
        let mut list = items(&args[0], "Cannot prepend on type")?;
        list.values.insert(0, args[1].clone());
        list.origins.insert(0, ctx.kept_origin(1));
        Ok(list.into_list())
    });
    add_variadic(f, &["concat"], ANY, |ctx, args| {
        let mut all = Items { values: Vec::new(), origins: Vec::new() };
        for (at, arg) in args.iter().enumerate() {
            let whole = ctx.arg_origin(at);
            let list = match items(arg, "") {
                Err(error) if error.message.starts_with(' ') => {
                    return fail(format!("Cannot concat type{} as list", error.message));
                }
                other => other?,
            };
            all.values.extend(list.values);
            all.origins.extend(list.origins.into_iter().map(|own| if own == 0 { whole } else { own }));
        }
        if all.values.is_empty() {
            return Ok(List::nil(ListType::Any).into());
        }
        Ok(all.into_list())
    });
    add(f, &["reverse", "mustReverse"], ANY, |_, args| {
        let mut list = items(&args[0], "Cannot find reverse on type")?;
        list.values.reverse();
        list.origins.reverse();
        Ok(list.into_list())
    });
}

fn ends(f: &mut Functions) {
    add(f, &["first", "mustFirst"], ANY, |ctx, args| {
        let list = items(&args[0], "Cannot find first on type")?;
        ctx.returns(list.origins.first().copied().unwrap_or(0), 0);
        Ok(list.values.into_iter().next().unwrap_or(Value::Nil))
    });
    add(f, &["last", "mustLast"], ANY, |ctx, args| {
        let mut list = items(&args[0], "Cannot find last on type")?;
        ctx.returns(list.origins.last().copied().unwrap_or(0), 0);
        Ok(list.values.pop().unwrap_or(Value::Nil))
    });
    add(f, &["rest", "mustRest"], ANY, |_, args| {
        let mut list = items(&args[0], "Cannot find rest on type")?;
        if list.values.is_empty() {
            return Ok(List::nil(ListType::Any).into());
        }
        list.values.remove(0);
        list.origins.remove(0);
        Ok(list.into_list())
    });
    add(f, &["initial", "mustInitial"], ANY, |_, args| {
        let mut list = items(&args[0], "Cannot find initial on type")?;
        if list.values.pop().is_none() {
            return Ok(List::nil(ListType::Any).into());
        }
        list.origins.pop();
        Ok(list.into_list())
    });
}

/// Keeps the items that pass.
fn retain(list: Items, keep: impl Fn(&Value) -> bool) -> Value {
    let mut kept = Items { values: Vec::new(), origins: Vec::new() };
    for (value, origin) in list.values.into_iter().zip(list.origins) {
        if keep(&value) {
            kept.push(value, origin);
        }
    }
    kept.into_list()
}

/// The first of all items that are equal, found by their hashes.
fn unique(list: Items) -> Value {
    let mut kept = Items { values: Vec::new(), origins: Vec::new() };
    // Nobody foresees its hashes.
    let state = RandomState::new();
    let mut known: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    for (value, origin) in list.values.into_iter().zip(list.origins) {
        let alike = known.entry(deep_hash(&value, &state)).or_default();
        if !alike.iter().any(|at| deep_equal(&value, &kept.values[*at])) {
            alike.push(kept.values.len());
            kept.push(value, origin);
        }
    }
    kept.into_list()
}

fn filters(f: &mut Functions) {
    add(f, &["compact", "mustCompact"], ANY, |_, args| {
        Ok(retain(items(&args[0], "Cannot compact on type")?, |item| !super::defaults::is_empty(item)))
    });
    add(f, &["uniq", "mustUniq"], ANY, |_, args| {
        let list = items(&args[0], "Cannot find uniq on type")?;
        Ok(unique(list))
    });
    add_variadic(f, &["without", "mustWithout"], TWO, |_, args| {
        let list = items(&args[0], "Cannot find without on type")?;
        Ok(retain(list, |item| !args[1..].iter().any(|omitted| deep_equal(item, omitted))))
    });
    add(f, &["has", "mustHas"], TWO, |_, args| {
        if args[1].is_nil() {
            return Ok(false.into());
        }
        let list = items(&args[1], "Cannot find has on type")?;
        Ok(list.values.iter().any(|item| deep_equal(&args[0], item)).into())
    });
}

fn parts(f: &mut Functions) {
    add_variadic(f, &["slice", "mustSlice"], TWO, |_, args| {
        let list = items(&args[0], "list should be type of slice or array but")?;
        let length = list.values.len();
        if length == 0 {
            return Ok(Value::Nil);
        }
        let start = args.get(1).map_or(0, to_int);
        let end = args.get(2).map_or(length as i64, to_int);
        if start < 0 || end < start || end > length as i64 {
            return fail("reflect.Value.Slice: slice index out of bounds");
        }
        match &args[0] {
            Value::List(list) => Ok(crate::builtins::sub_list(list, start as usize, end as usize).into()),
            Value::Bytes(bytes) => Ok(Value::Bytes(bytes[start as usize..end as usize].into())),
            _ => Ok(Value::list(list.values[start as usize..end as usize].to_vec())),
        }
    });
    add(f, &["chunk", "mustChunk"], &[Type::Int, Type::Any], |ctx, args| {
        let list = items(&args[1], "Cannot chunk type")?;
        ctx.claim_items(list.values.len(), 0)?;
        chunk(int(args, 0), &list.values)
    });
}

fn chunk(size: i64, list: &[Value]) -> Result<Value, CallError> {
    let made = |chunks: Vec<Value>| Ok(List::with_type(ListType::Lists, chunks).into());
    if list.is_empty() && size > 0 {
        return made(Vec::new());
    }
    match usize::try_from(size) {
        Ok(size) if size > 0 => made(list.chunks(size).map(|part| Value::list(part.to_vec())).collect()),
        // The number of chunks is infinite or negative.
        _ => {
            let chunks = ((list.len() as f64 - 1.0) / to_float(&Value::Int(size))).floor() + 1.0;
            if chunks == 0.0 {
                return made(Vec::new());
            }
            fail("runtime error: makeslice: len out of range")
        }
    }
}
