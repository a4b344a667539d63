//! A limit on the memory that reading or evaluating somebody's input may fill. Little text can mean many
//! values (aliases, dense lists, copies), so what counts is the values, where they are made, before they are
//! kept.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use serde_json::{Map, Value};

use crate::RenderLimits;

/// Bytes that may be made, counted over all that share the budget, whether they are still used or not.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: AtomicU64,
}

/// More was made than a [`Budget`] allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBudget {
    /// Bytes of the whole budget.
    pub limit: u64,
}

/// What a value takes in a list or a map, in bytes.
pub const VALUE_BYTES: u64 = size_of::<Value>() as u64;
/// What the first entry of a map takes, which makes room for eleven, and each of all entries, about.
const MAP_BYTES: u64 = 640;
const ENTRY_BYTES: u64 = 64;
/// What a node's place takes, with its share of the maps above it, about.
const ORIGIN_BYTES: u64 = 192;

impl Budget {
    /// A budget of so many bytes.
    #[must_use]
    pub const fn new(limit: u64) -> Self {
        Self { limit, used: AtomicU64::new(0) }
    }

    /// The budget of a text of many documents: by default twice what the largest bundle of definitions in
    /// use (a few MiB of YAML) makes.
    #[must_use]
    pub fn of_text() -> Self {
        Self::new(RenderLimits::current().memory)
    }

    /// The budget of the saved state of a cluster: twice that of a text, 512 MiB by default, which some
    /// 40,000 objects of usual size fill.
    #[must_use]
    pub fn of_saved_state() -> Self {
        Self::new(RenderLimits::current().memory.saturating_mul(2))
    }

    /// The budget of one document: by default three times what the largest object makes that an API server
    /// takes (1.5 MiB). Whoever reads it makes a few times as much of it.
    #[must_use]
    pub fn of_document() -> Self {
        Self::new(of_document(RenderLimits::current().memory))
    }

    /// The budget of one document where so many bytes are left of another budget.
    #[must_use]
    pub fn of_document_within(left: u64) -> Self {
        Self::new(of_document(RenderLimits::current().memory).min(left))
    }

    /// Counts bytes that are about to be made.
    ///
    /// # Errors
    /// There are too many of them.
    #[inline]
    pub fn take(&self, bytes: u64) -> Result<(), OverBudget> {
        let used = self.used.fetch_add(bytes, Relaxed);
        if used.saturating_add(bytes) <= self.limit {
            return Ok(());
        }
        self.used.store(self.limit, Relaxed);
        Err(OverBudget { limit: self.limit })
    }

    /// Counts a list of so many items, beside what these hold.
    ///
    /// # Errors
    /// It is too large.
    pub fn charge_list(&self, items: usize) -> Result<(), OverBudget> {
        self.take((items as u64).saturating_mul(VALUE_BYTES))
    }

    /// Counts a map of so many entries, beside what these hold.
    ///
    /// # Errors
    /// It is too large.
    pub fn charge_map(&self, entries: usize) -> Result<(), OverBudget> {
        self.take(map_bytes(entries))
    }

    /// Counts a whole value.
    ///
    /// # Errors
    /// It is too large.
    pub fn charge_value(&self, value: &Value) -> Result<(), OverBudget> {
        self.take(value_bytes(value))
    }

    /// The bytes counted so far.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// The bytes that may still be made.
    #[must_use]
    pub fn remaining_bytes(&self) -> u64 {
        self.limit.saturating_sub(self.used_bytes())
    }
}

/// What a map of so many entries takes beside what these hold, in bytes, about.
#[must_use]
pub fn map_bytes(entries: usize) -> u64 {
    if entries == 0 { 0 } else { MAP_BYTES + ENTRY_BYTES * entries as u64 }
}

/// What a value takes in memory beside its own place, in bytes, about. It stops at a depth that no reader
/// lets through.
#[must_use]
pub fn value_bytes(value: &Value) -> u64 {
    fn nested_bytes(value: &Value, depth: usize) -> u64 {
        const MAX_DEPTH: usize = 10_000;
        let of_map = |map: &Map<String, Value>| -> u64 {
            map.iter().map(|(key, value)| key.len() as u64 + nested_bytes(value, depth + 1)).sum()
        };
        match value {
            _ if depth > MAX_DEPTH => 0,
            Value::String(text) => text.len() as u64,
            Value::Array(items) => {
                let inside: u64 = items.iter().map(|item| nested_bytes(item, depth + 1)).sum();
                VALUE_BYTES * items.len() as u64 + inside
            }
            Value::Object(map) => map_bytes(map.len()) + of_map(map),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }
    nested_bytes(value, 0)
}

/// What the places of a value's parts take, where it is noted for each where it came from, in bytes, about.
#[must_use]
pub fn origin_bytes(value: &Value) -> u64 {
    fn nodes(value: &Value, depth: usize) -> u64 {
        const MAX_DEPTH: usize = 10_000;
        match value {
            _ if depth > MAX_DEPTH => 1,
            Value::Array(items) => 1 + items.iter().map(|item| nodes(item, depth + 1)).sum::<u64>(),
            Value::Object(map) => 1 + map.values().map(|value| nodes(value, depth + 1)).sum::<u64>(),
            _ => 1,
        }
    }
    ORIGIN_BYTES.saturating_mul(nodes(value, 0))
}

/// What one document may make where a text may make so many bytes.
fn of_document(memory: u64) -> u64 {
    memory / 8 * 3
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "what it holds takes more than {} of memory", in_units(self.limit))?;
        let memory = RenderLimits::current().memory;
        let [flag, ..] = RenderLimits::FLAGS;
        match self.limit == memory || self.limit == of_document(memory) {
            true => write!(f, " ({flag} raises the limit)"),
            false => Ok(()),
        }
    }
}

impl std::error::Error for OverBudget {}

fn in_units(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_over_all_who_share_it() {
        let budget = Budget::new(2000);
        assert_eq!(budget.take(1500), Ok(()));
        assert_eq!(budget.charge_map(1), Err(OverBudget { limit: 2000 }));
        assert_eq!(budget.remaining_bytes(), 0, "what failed once goes on failing");
        assert_eq!(budget.take(1).unwrap_err().to_string(), "what it holds takes more than 1 KiB of memory");
    }

    #[test]
    fn never_wraps() {
        let budget = Budget::new(u64::MAX);
        assert_eq!(budget.take(u64::MAX - 1), Ok(()));
        assert!(budget.take(5).is_ok() || budget.remaining_bytes() == 0);
        assert!(Budget::new(10).take(u64::MAX).is_err());
    }

    #[test]
    fn a_value_counts_texts_and_maps() {
        let bytes = value_bytes(&json!({"key": ["0123456789", 1]}));
        assert_eq!(bytes, map_bytes(1) + 3 + 2 * VALUE_BYTES + 10);
    }
}
