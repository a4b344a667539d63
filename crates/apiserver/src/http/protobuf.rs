//! Request bodies in Kubernetes' protobuf encoding, which typed Go clients send. Field numbers are
//! data; types are those of the catalog. Answers are always JSON, which those clients take as well.

mod schema;

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use tiphys_schema::{Catalog, Type, TypeRef};
use tiphys_value::{GroupVersionKind, Map, Value, json};

use crate::{rfc3339_micros, rfc3339_seconds};

/// A message a line: name of the definition, then `number:field`, or `number:=message` for fields
/// whose own fields belong to the outer object.
const TABLE: &str = include_str!("protobuf.txt");
const MAGIC: &[u8] = b"k8s\0";
/// How deep messages may nest.
const MAX_DEPTH: usize = 64;

enum Slot {
    Field(&'static str),
    Inline(&'static str),
}

static MESSAGES: LazyLock<HashMap<&'static str, BTreeMap<u64, Slot>>> = LazyLock::new(|| {
    let message = |line: &'static str| {
        let (name, fields) = line.split_once(' ')?;
        let slots = fields.split(' ').filter_map(|field| {
            let (number, name) = field.split_once(':')?;
            let slot = name.strip_prefix('=').map_or(Slot::Field(name), Slot::Inline);
            Some((number.parse().ok()?, slot))
        });
        Some((name, slots.collect()))
    };
    TABLE.lines().filter_map(message).collect()
});

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot decode the protobuf body: {0}")]
pub(super) struct ProtobufError(&'static str);

type Decoded<T> = Result<T, ProtobufError>;

/// Reads a body: the envelope names version and kind of the message in it.
pub(super) fn decode(body: &[u8]) -> Decoded<Value> {
    let body =
        body.strip_prefix(MAGIC).ok_or(ProtobufError("it does not start as Kubernetes' encoding does"))?;
    let (mut meta, mut raw) = ((String::new(), String::new()), &[][..]);
    for field in Fields(body) {
        match field? {
            (1, Wire::Bytes(bytes)) => meta = type_meta(bytes)?,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (api_version, kind) = meta;
    let catalog = Catalog::latest();
    let options = Type::Ref(0);
    let gvk = GroupVersionKind::from_api_version(&api_version, &kind);
    let shared = catalog.reference("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions").unwrap_or(options);
    let ty = match kind.as_str() {
        "DeleteOptions" => TypeRef::new(catalog, &shared),
        _ => catalog.type_of(&gvk).ok_or(ProtobufError("its kind is not known"))?,
    };
    let mut object = Map::new();
    message(ty, &definition_name(ty)?, raw, MAX_DEPTH, &mut object)?;
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    Ok(Value::Object(object))
}

fn type_meta(bytes: &[u8]) -> Decoded<(String, String)> {
    let mut meta = (String::new(), String::new());
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Bytes(text)) => meta.0 = utf8(text)?,
            (2, Wire::Bytes(text)) => meta.1 = utf8(text)?,
            _ => {}
        }
    }
    Ok(meta)
}

fn definition_name(ty: TypeRef<'_>) -> Decoded<String> {
    ty.definition().map(|d| d.name.clone()).ok_or(ProtobufError("a message has no named type"))
}

/// Reads the fields of a message into an object. Fields that the table does not have are left out.
fn message(
    ty: TypeRef<'_>,
    name: &str,
    bytes: &[u8],
    depth: usize,
    object: &mut Map<String, Value>,
) -> Decoded<()> {
    let depth = depth.checked_sub(1).ok_or(ProtobufError("messages nest too deep"))?;
    let slots = MESSAGES.get(name).ok_or(ProtobufError("a message has no field numbers"))?;
    for field in Fields(bytes) {
        let (number, wire) = field?;
        match (slots.get(&number), wire) {
            (Some(Slot::Inline(inner)), Wire::Bytes(bytes)) => message(ty, inner, bytes, depth, object)?,
            (Some(Slot::Field(field)), wire) => {
                if name == schema::PROPS
                    && let Wire::Bytes(bytes) = wire
                    && let Some(found) = schema::choice(field, bytes, depth)
                {
                    object.insert((*field).to_owned(), found?);
                } else if let Some(field_type) = ty.field(field) {
                    add(field_type, field, wire, depth, object)?;
                }
            }
            _ => {}
        }
    }
    if name == schema::PROPS {
        schema::drop_zeros(object);
    }
    Ok(())
}

/// Puts one occurrence of a field into its object: repeated ones add up to lists and maps.
fn add(
    ty: TypeRef<'_>,
    field: &str,
    wire: Wire<'_>,
    depth: usize,
    object: &mut Map<String, Value>,
) -> Decoded<()> {
    match (ty.ty, wire) {
        (Type::List(..), wire) => {
            let item = ty.items().ok_or(ProtobufError("a list has no item type"))?;
            let item = value(item, wire, depth)?;
            let list = object.entry(field).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(item);
            }
        }
        (Type::Map(..), Wire::Bytes(entry)) => {
            let (mut key, mut found) = (String::new(), Value::Null);
            let inner = ty.field("").ok_or(ProtobufError("a map has no value type"))?;
            for part in Fields(entry) {
                match part? {
                    (1, Wire::Bytes(text)) => key = utf8(text)?,
                    (2, wire) => found = value(inner, wire, depth)?,
                    _ => {}
                }
            }
            let map = object.entry(field).or_insert_with(|| json!({}));
            if let Some(map) = map.as_object_mut() {
                map.insert(key, found);
            }
        }
        (_, wire) => drop(object.insert(field.to_owned(), value(ty, wire, depth)?)),
    }
    Ok(())
}

fn value(ty: TypeRef<'_>, wire: Wire<'_>, depth: usize) -> Decoded<Value> {
    Ok(match (ty.ty, wire) {
        (Type::Bool, Wire::Number(n)) => (n != 0).into(),
        (_, Wire::Number(n)) => n.cast_signed().into(),
        (_, Wire::Double(n)) => n.into(),
        (Type::Str, Wire::Bytes(bytes)) => utf8(bytes)?.into(),
        (Type::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Type::Time, Wire::Bytes(bytes)) => moment(bytes)?.map(rfc3339_seconds).into(),
        (Type::MicroTime, Wire::Bytes(bytes)) => moment(bytes)?.map(rfc3339_micros).into(),
        (Type::Quantity, Wire::Bytes(bytes)) => match first_bytes(bytes)? {
            Some(text) => utf8(text)?.into(),
            None => Value::Null,
        },
        (Type::IntOrString, Wire::Bytes(bytes)) => int_or_string(bytes)?,
        // Lists inside maps are messages with one repeated field.
        (Type::List(..), Wire::Bytes(bytes)) => {
            let mut holder = Map::new();
            for field in Fields(bytes) {
                add(ty, "items", field?.1, depth, &mut holder)?;
            }
            holder.remove("items").unwrap_or_else(|| json!([]))
        }
        (Type::Any | Type::Open, Wire::Bytes(bytes)) => match first_bytes(bytes)? {
            Some(raw) => {
                serde_json::from_slice(raw).map_err(|_| ProtobufError("an embedded object is no JSON"))?
            }
            None => Value::Null,
        },
        (_, Wire::Bytes(bytes)) => {
            let mut object = Map::new();
            message(ty, &definition_name(ty)?, bytes, depth, &mut object)?;
            Value::Object(object)
        }
    })
}

fn utf8(bytes: &[u8]) -> Decoded<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| ProtobufError("a text is not UTF-8"))
}

/// The first field of a message, if it is a text.
fn first_bytes(bytes: &[u8]) -> Decoded<Option<&[u8]>> {
    for field in Fields(bytes) {
        if let (1, Wire::Bytes(inner)) = field? {
            return Ok(Some(inner));
        }
    }
    Ok(None)
}

/// Seconds and nanoseconds since 1970; the zero time is no time.
fn moment(bytes: &[u8]) -> Decoded<Option<Timestamp>> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Number(n)) => seconds = n.cast_signed(),
            (2, Wire::Number(n)) => nanos = i32::try_from(n).unwrap_or(0),
            _ => {}
        }
    }
    Ok(Timestamp::new(seconds, nanos).ok().filter(|at| at.as_second() != 0))
}

fn int_or_string(bytes: &[u8]) -> Decoded<Value> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Number(n)) => is_text = n == 1,
            (2, Wire::Number(n)) => number = n.cast_signed(),
            (3, Wire::Bytes(bytes)) => text = utf8(bytes)?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

enum Wire<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

/// The fields of a message in order.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Decoded<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first().ok_or(ProtobufError("it ends inside a number"))?;
            self.0 = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(ProtobufError("a number is too long"))
    }

    fn take(&mut self, length: u64) -> Decoded<&'a [u8]> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ProtobufError("it ends inside a field"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn field(&mut self) -> Decoded<(u64, Wire<'a>)> {
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Double(f64::from_le_bytes(self.take(8)?.try_into().unwrap_or_default())),
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Double(f32::from_le_bytes(self.take(4)?.try_into().unwrap_or_default()).into()),
            _ => return Err(ProtobufError("a field has an unknown form")),
        };
        Ok((tag >> 3, wire))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Decoded<(u64, Wire<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::ObjectExt;

    fn text(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    #[test]
    fn reads_a_config_map() {
        let data = text(2, &[text(1, b"k"), text(2, b"v")].concat());
        let raw = [text(1, &text(1, b"name")), data].concat();
        let meta = [text(1, b"v1"), text(2, b"ConfigMap")].concat();
        let body = [MAGIC.to_vec(), text(1, &meta), text(2, &raw)].concat();
        let object = decode(&body).unwrap();
        assert_eq!((object.kind(), object.name(), &object["data"]["k"]), ("ConfigMap", "name", &json!("v")));
    }

    #[test]
    fn broken_bodies_are_refused() {
        for body in [&b"x"[..], b"k8s\0\x0a\xff", b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"] {
            assert!(decode(body).is_err());
        }
    }
}
