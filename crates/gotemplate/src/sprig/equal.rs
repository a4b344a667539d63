//! `reflect.DeepEqual`.

use std::hash::{BuildHasher, Hash, Hasher};

use crate::Value;

/// How deep values are compared; Go stops at values that contain themselves, which are equal here too.
const MAX_DEPTH: usize = 1000;

/// Whether two values have the same type and content.
pub(super) fn deep_equal(a: &Value, b: &Value) -> bool {
    compare(a, b, 0)
}

fn compare(a: &Value, b: &Value, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return true;
    }
    match (a, b) {
        (Value::NoValue | Value::Nil, Value::NoValue | Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) | (Value::Int64(a), Value::Int64(b)) => a == b,
        (Value::Uint8(a), Value::Uint8(b)) => a == b,
        (Value::Uint64(a), Value::Uint64(b)) => a == b,
        (Value::Float64(a), Value::Float64(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::List(a), Value::List(b)) => {
            a.list_type() == b.list_type()
                && a.is_nil() == b.is_nil()
                && (a.same(b)
                    || (a.len() == b.len()
                        && a.items().iter().zip(b.items().iter()).all(|(a, b)| compare(a, b, depth + 1))))
        }
        (Value::Map(a), Value::Map(b)) => {
            a.map_type() == b.map_type()
                && a.is_nil() == b.is_nil()
                && (a.same(b) || same_entries(a, b, depth))
        }
        (Value::Object(a), Value::Object(b)) => {
            std::rc::Rc::ptr_eq(a, b) || (a.type_name() == b.type_name() && a.equals(b.as_ref()))
        }
        _ => false,
    }
}

/// A hash that is the same for equal values. Whoever goes through many values has weighed them before.
pub(super) fn deep_hash(value: &Value, state: &impl BuildHasher) -> u64 {
    let mut hasher = state.build_hasher();
    hash(value, 0, &mut hasher);
    hasher.finish()
}

fn hash(value: &Value, depth: usize, hasher: &mut impl Hasher) {
    match value {
        // Nil and no value are equal.
        Value::NoValue | Value::Nil => 0.hash(hasher),
        Value::Bool(value) => (1, value).hash(hasher),
        Value::Int(value) => (2, value).hash(hasher),
        Value::Int64(value) => (3, value).hash(hasher),
        // Zero has two signs.
        Value::Float64(value) => (4, (value + 0.0).to_bits()).hash(hasher),
        Value::Uint8(value) => (5, value).hash(hasher),
        Value::Uint64(value) => (6, value).hash(hasher),
        Value::String(text) => (7, text).hash(hasher),
        Value::Bytes(bytes) => (8, bytes).hash(hasher),
        Value::List(list) => {
            (9, list.len()).hash(hasher);
            if depth < MAX_DEPTH {
                list.items().iter().for_each(|item| hash(item, depth + 1, hasher));
            }
        }
        Value::Map(map) => {
            (10, map.len()).hash(hasher);
            if depth < MAX_DEPTH {
                for entry in map.entries().iter() {
                    entry.key.hash(hasher);
                    hash(&entry.value, depth + 1, hasher);
                }
            }
        }
        Value::Object(_) => 11.hash(hasher),
    }
}

fn same_entries(a: &crate::Map, b: &crate::Map, depth: usize) -> bool {
    let (a, b) = (a.entries(), b.entries());
    a.len() == b.len()
        && a.iter().zip(b.iter()).all(|(a, b)| a.key == b.key && compare(&a.value, &b.value, depth + 1))
}
