//! Merging as mergo does it, and deep copies.

use super::defaults::is_empty;
use crate::{CallError, List, Map, MapType, OriginId, Value};

/// How deep maps are merged and copied; deeper ones contain themselves.
const MAX_DEPTH: usize = 1000;

/// Merges `source` into `target`. Maps that both have are merged in place; otherwise the source's value is
/// shared, not copied. Without `overwrite` only empty values of the target are replaced. `whole` is the
/// origin of those of the source's values that have none of their own.
pub(super) fn merge(target: &Map, source: &Map, whole: OriginId, overwrite: bool) -> Result<(), CallError> {
    merge_at(target, source, whole, overwrite, 0)
}

fn merge_at(
    target: &Map,
    source: &Map,
    whole: OriginId,
    overwrite: bool,
    depth: usize,
) -> Result<(), CallError> {
    if depth > MAX_DEPTH {
        return Err(CallError::new("merge: maps nested too deep"));
    }
    if target.same(source) {
        return Ok(());
    }
    for entry in source.snapshot() {
        let own = [entry.origin, source.origin()].into_iter().find(|origin| *origin != 0);
        let origin = own.unwrap_or(whole);
        if entry.value.is_nil() {
            if overwrite {
                set_entry(target, &entry.key, Value::Nil, origin)?;
            }
            continue;
        }
        let existing = target.get(&entry.key);
        if let (Value::Map(source), Some(Value::Map(target))) = (&entry.value, &existing) {
            merge_at(target, source, origin, overwrite, depth + 1)?;
        }
        let keep = match &existing {
            Some(value) if !is_empty_deep(value) => match &entry.value {
                Value::List(_) | Value::Bytes(_) => !overwrite,
                Value::Map(_) if matches!(value, Value::Map(_)) => true,
                Value::Object(object) if object.kind() == crate::Kind::Pointer => true,
                _ => !overwrite,
            },
            _ => false,
        };
        if !keep {
            set_entry(target, &entry.key, entry.value, origin)?;
        }
    }
    Ok(())
}

fn set_entry(target: &Map, key: &str, value: Value, origin: u32) -> Result<(), CallError> {
    if target.map_type() == MapType::String && !matches!(value, Value::String(_)) {
        let got = value.type_name();
        return Err(CallError::new(format!(
            "reflect.Value.SetMapIndex: value of type {got} is not assignable to type string"
        )));
    }
    target.insert_with_origin(key, value, origin);
    Ok(())
}

/// Emptiness as mergo sees it: structs and pointers are never empty.
fn is_empty_deep(value: &Value) -> bool {
    match value {
        Value::Object(_) => false,
        other => is_empty(other),
    }
}

/// A copy that shares no map and no list with the value.
pub(super) fn deep_copy(value: &Value) -> Result<Value, CallError> {
    copy_at(value, 0)
}

fn copy_at(value: &Value, depth: usize) -> Result<Value, CallError> {
    if depth > MAX_DEPTH {
        return Err(CallError::new("deepCopy error: value nested too deep"));
    }
    Ok(match value {
        Value::Map(map) if map.is_nil() => value.clone(),
        Value::Map(map) => {
            let mut entries = map.snapshot();
            for entry in &mut entries {
                entry.value = copy_at(&entry.value, depth + 1)?;
            }
            let copy = Map::from_entries(map.map_type(), entries);
            copy.set_origin(map.origin());
            copy.into()
        }
        Value::List(list) if list.is_nil() => value.clone(),
        Value::List(list) => {
            let items = list.items().iter().map(|item| copy_at(item, depth + 1)).collect::<Result<_, _>>()?;
            let copy = List::with_type(list.list_type(), items);
            copy.set_origin(list.origin());
            copy.set_origins((0..list.len()).map(|at| list.origin_of(at)).collect());
            copy.into()
        }
        other => other.clone(),
    })
}
