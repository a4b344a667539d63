//! Typed decoding of built-in kinds: what a Go server makes of a JSON body when it reads it into its
//! struct and writes it again. Unknown fields and nulls go, empty optional fields go, structs that
//! are no pointers appear, quantities become canonical; wrong types are errors in Go's words.

use std::fmt;

use base64::{
    Engine,
    engine::{GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use serde_json::{Map, Value, json};

use crate::{Definition, Field, ListKind, ParseQuantityError, Path, Quantity, Type, TypeRef};

/// What decoding found beside the object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Paths of fields that the type does not have, keys sorted, such as `spec.foo`.
    pub unknown_fields: Vec<String>,
}

/// Why a value does not fit its type, in the words of Go's JSON decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A value of another type.
    #[error("{0}")]
    Type(TypeMismatch),
    /// A text that is no base64.
    #[error("illegal base64 data at input byte {at}")]
    Base64 {
        /// The first byte that does not belong there.
        at: usize,
    },
    /// A text that is no time, and why.
    #[error("{0}")]
    Time(String),
    /// A value that is no quantity.
    #[error("{0}")]
    Quantity(ParseQuantityError),
}

/// A value whose JSON type is not that of its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMismatch {
    /// What was found: `string`, `object`, or `number 1.5` for a number that does not fit.
    pub found: String,
    /// The Go type that was expected, such as `int32` or `[]v1.Container`.
    pub expected: String,
    /// The name of the Go struct around the field; none at the root.
    pub owner: Option<String>,
    /// Names of the fields from the root, without positions in lists and keys of maps.
    pub names: Vec<String>,
}

impl fmt::Display for TypeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, expected, .. } = self;
        match &self.owner {
            Some(owner) => {
                let names = self.names.join(".");
                write!(
                    f,
                    "json: cannot unmarshal {found} into Go struct field {owner}.{names} of type {expected}"
                )
            }
            None => write!(f, "json: cannot unmarshal {found} into Go value of type {expected}"),
        }
    }
}

/// Brings a value into the form that the API server's typed decoder and encoder give it.
///
/// # Errors
/// The first value of a wrong type.
pub fn decode(ty: TypeRef<'_>, value: &mut Value) -> Result<Decoded, DecodeError> {
    let mut decoder =
        Decoder { unknown: Vec::new(), names: Vec::new(), structs: Vec::new(), fields: Vec::new() };
    decoder.value(ty, value, &Path::root())?;
    Ok(Decoded { unknown_fields: decoder.unknown })
}

/// Removes fields that the type does not have; returns their paths.
pub fn prune_unknown(ty: TypeRef<'_>, value: &mut Value) -> Vec<String> {
    let mut gone = Vec::new();
    prune(ty, value, &Path::root(), &mut gone);
    gone
}

fn prune(ty: TypeRef<'_>, value: &mut Value, path: &Path, gone: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(definition) = ty.definition().filter(|definition| definition.others.is_none()) {
                map.retain(|key, _| {
                    let known = definition.fields.contains_key(key);
                    if !known {
                        gone.push(path.child(key).to_string());
                    }
                    known
                });
            }
            for (key, inner) in map {
                if let Some(field) = ty.field(key) {
                    prune(field, inner, &path.child(key), gone);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                if let Some(ty) = ty.items() {
                    prune(ty, item, &path.index(at), gone);
                }
            }
        }
        _ => {}
    }
}

/// The schemas of custom resources.
const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

struct Decoder<'a> {
    unknown: Vec<String>,
    /// Field names from the root, as Go's errors join them (without list positions and map keys).
    names: Vec<String>,
    /// The structs on the way, innermost last.
    structs: Vec<&'a str>,
    /// The fields on the way, innermost last.
    fields: Vec<&'a Field>,
}

impl<'a> Decoder<'a> {
    fn value(&mut self, ty: TypeRef<'a>, value: &mut Value, path: &Path) -> Result<(), DecodeError> {
        if value.is_null() {
            return Ok(());
        }
        if let Some(definition) = ty.definition() {
            return match value {
                Value::Object(map) => self.object(ty, definition, map, path),
                other => Err(self.mismatch(other, ty)),
            };
        }
        match (ty.ty, value) {
            (Type::Map(inner, _), Value::Object(map)) => {
                for (key, value) in map {
                    if value.is_null() && **inner == Type::Bytes {
                        *value = "".into();
                    } else if value.is_null() {
                        *value = zero(TypeRef::new(ty.catalog, inner)).unwrap_or(Value::Null);
                    }
                    self.value(TypeRef::new(ty.catalog, inner), value, &path.child(key))?;
                }
                Ok(())
            }
            (Type::List(inner, _), Value::Array(items)) => {
                for (at, item) in items.iter_mut().enumerate() {
                    if item.is_null()
                        && matches!(**inner, Type::Str | Type::Bool | Type::I32 | Type::I64 | Type::Ref(_))
                    {
                        *item = zero(TypeRef::new(ty.catalog, inner)).unwrap_or(Value::Null);
                    }
                    self.value(TypeRef::new(ty.catalog, inner), item, &path.index(at))?;
                }
                Ok(())
            }
            (_, value) => self.scalar(ty, value),
        }
    }

    fn object(
        &mut self,
        ty: TypeRef<'a>,
        definition: &'a Definition,
        map: &mut Map<String, Value>,
        path: &Path,
    ) -> Result<(), DecodeError> {
        self.structs.push(short_name(&definition.name));
        let keys: Vec<String> = map.keys().cloned().collect();
        for key in keys {
            let Some(field) = definition.fields.get(&key) else {
                if definition.others.is_none() {
                    self.unknown.push(path.child(&key).to_string());
                    map.remove(&key);
                }
                continue;
            };
            let depth = self.names.len();
            self.names.extend(field.embedded.iter().cloned());
            self.names.push(key.clone());
            self.fields.push(field);
            if let Some(value) = map.get_mut(&key) {
                self.value(TypeRef::new(ty.catalog, &field.ty), value, &path.child(&key))?;
                // Where a schema or something else may stand, the schema of schemas says nothing.
                let is_open = matches!(key.as_str(), "items" | "additionalProperties" | "additionalItems");
                if is_open && definition.name == SCHEMA && value.is_object() {
                    // The server reads it by a reader of its own, which drops what it does not know silently.
                    let told = self.unknown.len();
                    self.value(ty, value, &path.child(&key))?;
                    self.unknown.truncate(told);
                }
            }
            self.fields.pop();
            self.names.truncate(depth);
            match map.get_mut(&key) {
                Some(value) if is_dropped(field, value) => drop(map.remove(&key)),
                _ => {}
            }
        }
        self.structs.pop();
        fill_kept(ty, definition, map);
        Ok(())
    }

    fn scalar(&self, ty: TypeRef<'_>, value: &mut Value) -> Result<(), DecodeError> {
        let fits = match ty.ty {
            Type::Str => value.is_string(),
            Type::Bool => value.is_boolean(),
            Type::I32 => return self.integer(ty, value, i64::from(i32::MIN), i64::from(i32::MAX)),
            Type::I64 => return self.integer(ty, value, i64::MIN, i64::MAX),
            Type::F64 => value.is_number(),
            Type::Bytes => return self.bytes(ty, value),
            Type::Time | Type::MicroTime => {
                let micro = *ty.ty == Type::MicroTime;
                if let Some(why) = value.as_str().and_then(|text| crate::decode_time::fault(text, micro)) {
                    return Err(DecodeError::Time(why));
                }
                value.is_string()
            }
            Type::Quantity => return quantity(value),
            Type::IntOrString if value.is_number() => {
                return self.integer(ty, value, i64::from(i32::MIN), i64::from(i32::MAX));
            }
            Type::IntOrString => value.is_string(),
            _ => !matches!(ty.ty, Type::List(..) | Type::Map(..)),
        };
        if fits { Ok(()) } else { Err(self.mismatch(value, ty)) }
    }

    fn integer(&self, ty: TypeRef<'_>, value: &mut Value, min: i64, max: i64) -> Result<(), DecodeError> {
        let Value::Number(number) = &*value else { return Err(self.mismatch(value, ty)) };
        let whole = number.as_i64().or_else(|| {
            // A float without fraction is read as the whole number it is.
            number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15).map(|f| f as i64)
        });
        match whole.filter(|whole| (min..=max).contains(whole)) {
            Some(whole) => *value = whole.into(),
            None => return Err(self.message(&format!("number {number}"), ty)),
        }
        Ok(())
    }

    fn bytes(&self, ty: TypeRef<'_>, value: &mut Value) -> Result<(), DecodeError> {
        let text = match &*value {
            Value::String(text) => text,
            // A list of bytes is read too; only that of none is met.
            Value::Array(items) if items.is_empty() => return Ok(()),
            _ => return Err(self.mismatch(value, ty)),
        };
        if let Some(at) = first_byte_of_no_base64(text) {
            return Err(DecodeError::Base64 { at });
        }
        // What is not written as an encoder would, such as in several lines, is written anew.
        if STANDARD.decode(text).is_err() {
            let compact: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
            if let Ok(bytes) = LENIENT.decode(&compact) {
                *value = STANDARD.encode(bytes).into();
            }
        }
        Ok(())
    }

    fn mismatch(&self, value: &Value, ty: TypeRef<'_>) -> DecodeError {
        self.message(tiphys_value::json_kind(value), ty)
    }

    /// The Go type of the innermost field, or of what it holds, if that is a scalar with a name.
    fn named_scalar(&self, ty: TypeRef<'_>) -> Option<String> {
        let field = self.fields.last()?;
        let named = field.go_type.as_ref()?;
        match std::ptr::eq(ty.ty, &field.ty) {
            true => Some(named.clone()),
            false => Some(named.rsplit(']').next().unwrap_or(named).to_owned()),
        }
    }

    fn message(&self, found: &str, ty: TypeRef<'_>) -> DecodeError {
        let expected = self.named_scalar(ty).unwrap_or_else(|| go_type(ty));
        let owner = self.structs.last().filter(|_| !self.names.is_empty()).map(|name| (*name).to_owned());
        let names = self.names.clone();
        DecodeError::Type(TypeMismatch { found: found.to_owned(), expected, owner, names })
    }
}

fn short_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The Go spelling of a type in decoding errors.
fn go_type(ty: TypeRef<'_>) -> String {
    if let Some(definition) = ty.definition() {
        let mut parts = definition.name.rsplit('.');
        let (name, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        return format!("{package}.{name}");
    }
    let inner = |ty_inner| go_type(TypeRef::new(ty.catalog, ty_inner));
    match ty.ty {
        Type::Bool => "bool".into(),
        Type::I32 => "int32".into(),
        Type::I64 => "int64".into(),
        Type::F64 => "float64".into(),
        Type::Bytes => "[]uint8".into(),
        Type::List(item, _) => format!("[]{}", inner(item)),
        Type::Map(value, _) if **value == Type::Quantity => "v1.ResourceList".into(),
        Type::Map(value, _) => format!("map[string]{}", inner(value)),
        Type::Any | Type::Open => "interface {}".into(),
        // What is no text is read as a number.
        Type::IntOrString => "int32".into(),
        Type::Str | Type::Time | Type::MicroTime | Type::Quantity => "string".into(),
        Type::Ref(_) | Type::Object(_) => "struct {}".into(),
    }
}

/// Base64 as Go reads it: bits behind the last byte do not count.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The first byte of a text that no base64 has there; none if it is base64.
pub(crate) fn first_byte_of_no_base64(text: &str) -> Option<usize> {
    let compact: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    match LENIENT.decode(&compact) {
        Ok(_) => None,
        Err(base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _)) => {
            Some(at)
        }
        Err(_) => Some(compact.len() / 4 * 4),
    }
}

pub(crate) fn quantity(value: &mut Value) -> Result<(), DecodeError> {
    let text = match &*value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => other.to_string(),
    };
    let parsed: Quantity = text.trim().parse().map_err(DecodeError::Quantity)?;
    *value = parsed.to_string().into();
    Ok(())
}

/// Whether Go's encoder leaves a field with a value out.
pub fn is_dropped(field: &Field, value: &Value) -> bool {
    match value {
        Value::Null => true,
        _ if field.kept || field.ty == Type::Any => false,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty() && matches!(field.ty, Type::Map(..)),
        _ if field.pointer => false,
        Value::String(text) => text.is_empty() && !matches!(field.ty, Type::IntOrString),
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0) && !matches!(field.ty, Type::IntOrString),
    }
}

fn is_empty_collection(field: &Field, value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty() && matches!(field.ty, Type::Map(..)),
        _ => false,
    }
}

/// Makes empty lists and maps that are always written nothing: storage does not tell them from none.
pub fn forget_empty(ty: TypeRef<'_>, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let is_empty = ty.field_info(key).is_some_and(|field| is_empty_collection(field, inner));
                match ty.field(key) {
                    _ if is_empty => *inner = Value::Null,
                    Some(field) => forget_empty(field, inner),
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(of) = ty.items() else { return };
            items.iter_mut().for_each(|item| forget_empty(of, item));
        }
        _ => {}
    }
}

/// Adds the fields that Go's encoder writes even when nothing was given.
fn fill_kept(ty: TypeRef<'_>, definition: &Definition, map: &mut Map<String, Value>) {
    for (name, field) in definition.fields.iter().filter(|(_, field)| field.kept && !field.pointer) {
        if !map.contains_key(name) {
            let value = zero(TypeRef::new(ty.catalog, &field.ty));
            map.extend(value.map(|value| (name.clone(), value)));
        }
    }
}

/// What Go writes for an object of this type of which nothing is set: for server-side apply the
/// state before an object is created. An empty object where the type has no named definition.
pub fn zero_value(ty: TypeRef<'_>) -> Value {
    match ty.ty {
        Type::Ref(_) => zero(ty).unwrap_or_default(),
        _ => Value::Object(Map::new()),
    }
}

/// What Go writes for a field that was not given.
fn zero(ty: TypeRef<'_>) -> Option<Value> {
    if let Some(definition) = ty.definition() {
        let mut map = Map::new();
        fill_kept(ty, definition, &mut map);
        return Some(Value::Object(map));
    }
    Some(match ty.ty {
        Type::Str => json!(""),
        Type::Bool => json!(false),
        Type::I32 | Type::I64 | Type::F64 => json!(0),
        Type::Quantity => json!("0"),
        Type::IntOrString => json!(0),
        Type::List(_, ListKind::Atomic | ListKind::Set | ListKind::Map(_)) | Type::Map(..) => Value::Null,
        Type::Time | Type::MicroTime | Type::Bytes | Type::Any => Value::Null,
        Type::Open | Type::Ref(_) | Type::Object(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;
    use tiphys_value::GroupVersionKind;

    fn decoded(kind: (&str, &str), mut object: Value) -> Result<(Value, Vec<String>), String> {
        let gvk = GroupVersionKind::from_api_version(kind.0, kind.1);
        let ty = Catalog::latest().type_of(&gvk).expect("known");
        let found = decode(ty, &mut object).map_err(|error| error.to_string())?;
        Ok((object, found.unknown_fields))
    }

    #[test]
    fn writes_what_go_writes() {
        let pod = json!({"spec": {"containers": [{"name": "a", "args": [], "stdin": false, "x": 1,
            "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}, "env": null}],
            "terminationGracePeriodSeconds": 0, "hostNetwork": false}});
        let (pod, unknown) = decoded(("v1", "Pod"), pod).expect("decodes");
        let container = json!({"name": "a", "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}});
        let expected = json!({"metadata": {}, "status": {},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}});
        assert_eq!(pod, expected);
        assert_eq!(unknown, ["spec.containers[0].x"]);
    }

    #[test]
    fn faults_read_as_in_go() {
        for (kind, object, expected) in [
            (
                ("apps/v1", "Deployment"),
                json!({"spec": {"replicas": "2"}}),
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                ("v1", "ConfigMap"),
                json!({"data": {"a": 1}}),
                "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
            ),
            (
                ("v1", "Pod"),
                json!({"spec": {"containers": [{"ports": [{"containerPort": 1.5}]}]}}),
                "json: cannot unmarshal number 1.5 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
            ),
            (
                ("v1", "Pod"),
                json!({"spec": {"containers": {}}}),
                "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            (("v1", "Secret"), json!({"data": {"a": "x!yz"}}), "illegal base64 data at input byte 1"),
        ] {
            assert_eq!(decoded(kind, object), Err(expected.to_owned()));
        }
    }
}
