//! Reading values whose lists and maps need more than [`Value`] itself makes of them: keys that occur twice,
//! depth.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::{Number, Value};

/// What becomes of lists and maps while a value is read.
pub trait ValueReader<'de>: Sized {
    /// A list.
    ///
    /// # Errors
    /// Those of the text, and whatever is not to be read.
    fn list<A: SeqAccess<'de>>(self, items: A) -> Result<Value, A::Error>;

    /// A map.
    ///
    /// # Errors
    /// Those of the text, and whatever is not to be read.
    fn map<A: MapAccess<'de>>(self, entries: A) -> Result<Value, A::Error>;
}

/// A value that is read so.
#[derive(Clone, Copy, Debug)]
pub struct Reading<R>(pub R);

impl<'de, R: ValueReader<'de>> DeserializeSeed<'de> for Reading<R> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, R: ValueReader<'de>> Visitor<'de> for Reading<R> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Value, A::Error> {
        self.0.list(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Value, A::Error> {
        self.0.map(entries)
    }
}
