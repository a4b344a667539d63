//! JSON read within a [`Budget`]: two bytes of text may mean hundreds of memory.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::{Budget, OverBudget, VALUE_BYTES, map_bytes};

/// Why a JSON text could not be read.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// It is no JSON.
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
    /// It means more than the budget allows.
    #[error(transparent)]
    Budget(#[from] OverBudget),
}

/// Reads a JSON text as [`serde_json::from_slice`] does, within a budget.
///
/// # Errors
/// It is no JSON, or means too much.
pub fn json_within(text: &[u8], budget: &Budget) -> Result<Value, JsonError> {
    let fault = Cell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = Seed { budget, fault: &fault }.deserialize(&mut reader);
    match (fault.get(), read) {
        (Some(fault), _) => Err(fault.into()),
        (None, Err(error)) => Err(error.into()),
        (None, Ok(value)) => {
            reader.end()?;
            Ok(value)
        }
    }
}

/// Reads JSON texts that stand one after the other. Behind one that is no JSON nothing is read.
pub fn json_stream_within<'t>(
    text: &'t str,
    budget: &'t Budget,
) -> impl Iterator<Item = Result<Value, JsonError>> + 't {
    let mut rest = text;
    std::iter::from_fn(move || {
        let read = json_prefix_within(rest, budget);
        rest = read.as_ref().ok().and_then(Option::as_ref).map_or("", |(_, length)| &rest[*length..]);
        Some(read.transpose()?.map(|(value, _)| value))
    })
}

/// The JSON text that a text begins with, and its length in bytes; `None` if there are only blanks.
///
/// # Errors
/// It does not begin with JSON, or that takes more than the budget has.
pub fn json_prefix_within(text: &str, budget: &Budget) -> Result<Option<(Value, usize)>, JsonError> {
    // Where it ends is known before anything is made of it.
    let mut ends = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    if ends.next().transpose()?.is_none() {
        return Ok(None);
    }
    let length = ends.byte_offset();
    Ok(Some((json_within(&text.as_bytes()[..length], budget)?, length)))
}

#[derive(Clone, Copy)]
struct Seed<'b> {
    budget: &'b Budget,
    /// Set when the budget ended the reading: errors of serde carry nothing but text.
    fault: &'b Cell<Option<OverBudget>>,
}

impl Seed<'_> {
    fn take<E: serde::de::Error>(&self, bytes: u64) -> Result<(), E> {
        self.budget.take(bytes).map_err(|fault| {
            self.fault.set(Some(fault));
            E::custom(fault)
        })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
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

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.take(value.len() as u64)?;
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            self.take(VALUE_BYTES)?;
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let so_far = map.len();
            self.take(key.len() as u64 + map_bytes(so_far + 1) - map_bytes(so_far))?;
            let value = entries.next_value_seed(self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_serde_json_reads() {
        for text in [
            "{\"a\": [1, -2, 1.5, 1e400, \"x\\u00e9\", null, true, {}]}",
            "[",
            "1 2",
            "18446744073709551615",
            "{\"a\":1,\"a\":2}",
        ] {
            let ours = json_within(text.as_bytes(), &Budget::of_text()).map_err(|error| error.to_string());
            let theirs = serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
            assert_eq!(ours, theirs, "{text}");
        }
    }

    #[test]
    fn reads_one_text_after_the_other() {
        let budget = Budget::of_text();
        let read = |text| -> Vec<String> {
            let shown =
                |it: Result<Value, JsonError>| it.map_or_else(|error| error.to_string(), |it| it.to_string());
            json_stream_within(text, &budget).map(shown).collect()
        };
        assert_eq!(read(" {\"a\":1}\n[2]3 "), ["{\"a\":1}", "[2]", "3"]);
        let cut = read("{\"a\":1} {\"b\":");
        assert!(cut.len() == 2 && cut[1].contains("EOF"), "{cut:?}");
        let deep = read(Box::leak("[".repeat(100_000).into_boxed_str()));
        assert_eq!(deep.len(), 1);
    }

    #[test]
    fn ends_where_the_budget_does() {
        let dense = format!("[{}1]", "{\"a\":1},".repeat(1000));
        let budget = Budget::new(100_000);
        assert!(matches!(json_within(dense.as_bytes(), &budget), Err(JsonError::Budget(_))));
        assert!(json_within(dense.as_bytes(), &Budget::new(1_000_000)).is_ok());
    }
}
