//! `reflect.DeepEqual`.

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

fn same_entries(a: &crate::Map, b: &crate::Map, depth: usize) -> bool {
    let (a, b) = (a.entries(), b.entries());
    a.len() == b.len()
        && a.iter().zip(b.iter()).all(|(a, b)| a.key == b.key && compare(&a.value, &b.value, depth + 1))
}
