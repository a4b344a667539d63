//! What a Go server makes of the values of a patch when it fills the structs of a built-in kind from maps, as
//! it does for strategic merge patches and server-side apply: whole numbers are cut to their width, and what
//! does not fit is named in the words of its converter, which are not those of the JSON decoder.

use serde_json::Value;
use tiphys_value::json_kind;

use crate::{Definition, Field, Type, TypeRef, decode::quantity};

/// Objects are no deeper than the JSON parser allows.
const DEPTH: usize = 200;

/// Fills an object's type with its values.
///
/// # Errors
/// The first value that does not fit, fields in the order of their structs.
pub fn restore(ty: TypeRef<'_>, value: &mut Value) -> Result<(), String> {
    fill(ty, value, None, DEPTH)
}

/// `named` is the Go type of a scalar that has a name of its own.
fn fill(ty: TypeRef<'_>, value: &mut Value, named: Option<&str>, depth: usize) -> Result<(), String> {
    let Some(depth) = depth.checked_sub(1).filter(|_| !value.is_null()) else { return Ok(()) };
    if let Some(definition) = ty.definition() {
        return fill_struct(ty, definition, value, depth);
    }
    let inner = |ty_inner| TypeRef::new(ty.catalog, ty_inner);
    match ty.ty {
        Type::Map(of, _) => {
            let found = kind(value);
            let Value::Object(map) = value else { return Err(format!("cannot restore map from {found}")) };
            map.values_mut().try_for_each(|value| fill(inner(of), value, named, depth))
        }
        Type::List(of, _) => {
            let found = kind(value);
            let Value::Array(items) = value else { return Err(format!("cannot restore slice from {found}")) };
            items.iter_mut().try_for_each(|value| fill(inner(of), value, named, depth))
        }
        Type::Str => text(value, named),
        Type::Bool if !value.is_boolean() => Err("unrecognized type: bool".into()),
        Type::I32 => whole(value, named.unwrap_or("int32"), |number| i64::from(number as i32)),
        Type::I64 => whole(value, named.unwrap_or("int64"), |number| number),
        Type::F64 if !value.is_number() => Err("unrecognized type: float64".into()),
        Type::Bytes => bytes(value),
        Type::Quantity => quantity(value).map_err(|error| error.to_string()),
        Type::Time | Type::MicroTime => time(value, *ty.ty == Type::MicroTime),
        Type::IntOrString => whole_or_text(value),
        _ => Ok(()),
    }
}

fn fill_struct(
    ty: TypeRef<'_>,
    definition: &Definition,
    value: &mut Value,
    depth: usize,
) -> Result<(), String> {
    let found = kind(value);
    let Value::Object(map) = value else { return Err(format!("cannot restore struct from: {found}")) };
    let mut fields: Vec<(&String, &Field)> =
        definition.fields.iter().filter(|(name, _)| map.contains_key(*name)).collect();
    fields.sort_by_key(|(_, field)| field.position);
    for (name, field) in fields {
        let named = field.go_type.as_deref().map(|name| name.rsplit(']').next().unwrap_or(name));
        if let Some(value) = map.get_mut(name) {
            fill(TypeRef::new(ty.catalog, &field.ty), value, named, depth)?;
        }
    }
    Ok(())
}

/// The kind of a value in Go's reflection.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

fn text(value: &Value, named: Option<&str>) -> Result<(), String> {
    match value {
        Value::String(_) => Ok(()),
        // Go can convert whole numbers to text, as code points; its converter does not want that.
        Value::Number(number) if !number.is_f64() => {
            Err(format!("cannot convert int64 to {}", named.unwrap_or("string")))
        }
        _ => Err("unrecognized type: string".into()),
    }
}

fn whole(value: &mut Value, name: &str, cut: impl Fn(i64) -> i64) -> Result<(), String> {
    let Value::Number(number) = &*value else {
        let basic = name.rsplit('.').next().filter(|name| name.starts_with("int")).unwrap_or("int32");
        return Err(format!("unrecognized type: {basic}"));
    };
    match (number.as_i64(), number.as_f64()) {
        (Some(number), _) => *value = cut(number).into(),
        (None, Some(float)) if float.fract() == 0.0 => *value = cut(float as i64).into(),
        _ => return Err(format!("cannot convert float64 to {name}")),
    }
    Ok(())
}

fn bytes(value: &Value) -> Result<(), String> {
    let Value::String(text) = value else { return Err(format!("cannot restore slice from {}", kind(value))) };
    match crate::decode::first_byte_of_no_base64(text) {
        Some(at) => Err(format!("error decoding from json: {}", crate::DecodeError::Base64 { at })),
        None => Ok(()),
    }
}

fn time(value: &Value, micro: bool) -> Result<(), String> {
    match value {
        Value::String(text) => crate::decode_time::fault(text, micro).map_or(Ok(()), Err),
        other => Err(format!("json: cannot unmarshal {} into Go value of type string", json_kind(other))),
    }
}

fn whole_or_text(value: &mut Value) -> Result<(), String> {
    let refuse = |found: &str| Err(format!("json: cannot unmarshal {found} into Go value of type int32"));
    match &*value {
        Value::String(_) => Ok(()),
        Value::Number(number) => match number.as_i64().filter(|number| i32::try_from(*number).is_ok()) {
            Some(_) => Ok(()),
            None => refuse(&format!("number {number}")),
        },
        other => refuse(json_kind(other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tiphys_value::GroupVersionKind;

    use super::*;
    use crate::Catalog;

    fn restored(spec: Value) -> Result<Value, String> {
        let ty =
            Catalog::latest().type_of(&GroupVersionKind::new("apps", "v1", "Deployment")).expect("known");
        let mut object = json!({"spec": spec});
        restore(ty, &mut object)?;
        Ok(object["spec"].take())
    }

    #[test]
    fn faults_read_as_those_of_the_converter() {
        let container = |fields: Value| json!({"template": {"spec": {"containers": [fields]}}});
        for (spec, expected) in [
            (json!({"replicas": "2"}), "unrecognized type: int32"),
            (json!({"replicas": 1.5}), "cannot convert float64 to int32"),
            (json!({"paused": "x"}), "unrecognized type: bool"),
            (json!({"selector": {"matchLabels": []}}), "cannot restore map from slice"),
            (json!({"template": 5}), "cannot restore struct from: int64"),
            (container(json!({"args": "x"})), "cannot restore slice from string"),
            (container(json!({"name": 7})), "cannot convert int64 to string"),
            (container(json!({"name": true})), "unrecognized type: string"),
            (container(json!({"imagePullPolicy": 7})), "cannot convert int64 to v1.PullPolicy"),
            (container(json!({"ports": [{"name": 1, "hostPort": "y"}]})), "cannot convert int64 to string"),
        ] {
            assert_eq!(restored(spec), Err(expected.to_owned()));
        }
        assert_eq!(restored(json!({"replicas": 4_294_967_298_i64})), Ok(json!({"replicas": 2})));
    }
}
