//! What an execution may take: steps, time, output, memory. A template that takes more fails where it does
//! so; the process that renders it, and with it every other chart, goes on.

use tiphys_value::{VALUE_BYTES, map_bytes};

use super::{Context, Frame, Run};
use crate::parse::Quoted;
use crate::{CallError, Limit, Value};

/// The clock is read once in so many steps, and once in so many calls of functions, some of which take long.
const STEPS_PER_LOOK: u64 = 1024;
const CALLS_PER_LOOK: u64 = 16;
/// What the result of a call takes beside what it holds, and each item of it, in bytes, about.
const RESULT: u64 = 64;
const ITEM: u64 = 24;
/// What a list or map takes beside its items, and each entry of a map, in bytes, about.
const COLLECTION: u64 = 100;
const ENTRY: u64 = 72;
/// Values nested deeper are left to what goes through them, which has its own words for that.
const MAX_DEPTH: usize = 1000;

impl Context<'_> {
    /// Counts a step and looks at the limits now and then.
    pub(super) fn step(&mut self, frame: &Frame<'_>) -> Run<()> {
        self.steps += 1;
        if !self.steps.is_multiple_of(STEPS_PER_LOOK) {
            return Ok(());
        }
        let steps = self.env.limits.steps;
        if self.steps > steps {
            return self.limit_error(frame, Limit::Steps, steps);
        }
        self.look_at_the_clock(frame)
    }

    #[allow(clippy::disallowed_methods, reason = "a deadline stops, and changes no output")]
    fn look_at_the_clock(&self, frame: &Frame<'_>) -> Run<()> {
        if self.env.limits.deadline.is_some_and(|deadline| std::time::Instant::now() >= deadline) {
            return self.limit_error(frame, Limit::Time, "the deadline has passed");
        }
        Ok(())
    }

    /// Counts output that was appended since `before`.
    pub(super) fn wrote(&mut self, frame: &Frame<'_>, before: usize) -> Run<()> {
        let bytes = self.out.len() - before;
        self.written += bytes;
        if self.written > self.env.limits.output {
            return self.limit_error(frame, Limit::Output, format!("{} bytes", self.env.limits.output));
        }
        self.take(frame, bytes as u64)
    }

    /// Counts what a call made.
    pub(super) fn count_result<'t>(&mut self, frame: &Frame<'t>, node: Quoted<'t>, value: &Value) -> Run<()> {
        let held = match value {
            Value::String(text) => text.len() as u64,
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::List(list) => list.len() as u64 * ITEM,
            _ => 0,
        };
        self.calls += 1;
        if self.calls.is_multiple_of(CALLS_PER_LOOK) {
            frame.meanwhile(node, || self.look_at_the_clock(frame))?;
        }
        if held <= RESULT {
            return self.take(frame, RESULT + held);
        }
        frame.meanwhile(node, || {
            if held > self.env.limits.output as u64 {
                return self.limit_error(frame, Limit::Output, format!("a value of {held} bytes"));
            }
            self.take(frame, RESULT + held)
        })
    }

    fn take(&self, frame: &Frame<'_>, bytes: u64) -> Run<()> {
        let made = self.env.made.get().saturating_add(bytes);
        self.env.made.set(made);
        if made > self.env.limits.memory {
            return self.limit_error(frame, Limit::Memory, format!("{} bytes", self.env.limits.memory));
        }
        Ok(())
    }

    /// Fails if there is too much to go through in a value, and counts it if it is going to be copied.
    pub(super) fn weigh(&self, frame: &Frame<'_>, value: &Value, copies: bool) -> Run<()> {
        let mut weight = Weight { left: self.env.limits.values, text: 0, made: 0, copied: 0 };
        if !weight.add(value, 0) {
            let limit = self.env.limits.values;
            return self.limit_error(
                frame,
                Limit::Memory,
                format!("a value that holds more than {limit} others"),
            );
        }
        if weight.text > self.env.limits.output as u64 {
            return self.limit_error(
                frame,
                Limit::Output,
                format!("a value that is written with {} bytes of text", weight.text),
            );
        }
        if weight.made > self.env.limits.memory / 2 {
            return self.limit_error(
                frame,
                Limit::Memory,
                format!("a value of {} MiB, with what it shares", weight.made >> 20),
            );
        }
        if copies { self.take(frame, weight.copied) } else { Ok(()) }
    }

    /// Counts bytes that a function is about to make beside its result.
    ///
    /// # Errors
    /// The limit.
    pub fn claim(&self, bytes: u64) -> Result<(), CallError> {
        let made = self.env.made.get().saturating_add(bytes);
        self.env.made.set(made);
        let limit = self.env.limits.memory;
        if made <= limit {
            return Ok(());
        }
        Err(CallError {
            message: format!("what the templates make takes more than the limit of {limit} bytes of memory"),
            limit: Some(Limit::Memory),
        })
    }

    /// Counts a map of so many entries that a function is about to make of others.
    pub(crate) fn claim_entries(&self, entries: usize) -> Result<(), CallError> {
        self.claim(entries as u64 * ENTRY)
    }

    /// Counts the value that is made of one of JSON.
    ///
    /// # Errors
    /// The limit.
    pub fn claim_json(&self, value: &serde_json::Value) -> Result<(), CallError> {
        self.claim(of_json(value, 0))
    }

    /// Counts a list of so many items and bytes of text that a function is about to make.
    ///
    /// # Errors
    /// The limit.
    pub(crate) fn claim_items(&self, items: usize, text: usize) -> Result<(), CallError> {
        if items as u64 > self.env.limits.values {
            let limit = self.env.limits.values;
            return Err(CallError {
                message: format!("a list of {items} items passes the limit of {limit}"),
                limit: Some(Limit::Memory),
            });
        }
        self.claim(items as u64 * VALUE_BYTES + text as u64)
    }

    /// The items that one value may have.
    pub(crate) fn most_items(&self) -> usize {
        usize::try_from(self.env.limits.values).unwrap_or(usize::MAX)
    }

    /// The bytes that may still be made.
    pub fn memory_left(&self) -> u64 {
        self.env.limits.memory.saturating_sub(self.env.made.get())
    }

    /// Counts work that takes about so many milliseconds whatever its arguments: finding keys, hashing
    /// passwords.
    ///
    /// # Errors
    /// The limit.
    pub fn work(&self, milliseconds: u64) -> Result<(), CallError> {
        let worked = self.env.worked.get().saturating_add(milliseconds);
        self.env.worked.set(worked);
        let limit = self.env.limits.work;
        if worked <= limit {
            return Ok(());
        }
        Err(CallError {
            message: format!(
                "keys and password hashes take more than the limit of about {} s: make fewer of them, or keep them in a Secret",
                limit / 1000
            ),
            limit: Some(Limit::Time),
        })
    }

    /// Fails if a value of so many bytes would pass the output limit.
    ///
    /// # Errors
    /// The limit.
    pub fn check_size(&self, bytes: usize) -> Result<(), CallError> {
        if bytes <= self.largest_value() { Ok(()) } else { Err(self.too_large(bytes)) }
    }

    /// The bytes that one value may have.
    pub(crate) fn largest_value(&self) -> usize {
        self.env.limits.output
    }

    /// The error of a value of so many bytes.
    pub(crate) fn too_large(&self, bytes: usize) -> CallError {
        CallError {
            message: format!("a value of {bytes} bytes passes the limit of {}", self.env.limits.output),
            limit: Some(Limit::Output),
        }
    }
}

/// What is in a value, with all that it shares as often as it does.
struct Weight {
    /// Values that may still be in it.
    left: u64,
    /// Bytes of its texts, and of the indentation that YAML gives them.
    text: u64,
    /// Bytes of memory that it takes as JSON, which what prints it makes of it.
    made: u64,
    /// Bytes of memory of a copy.
    copied: u64,
}

impl Weight {
    /// Adds what a value holds; whether there is no more of it than may be.
    fn add(&mut self, value: &Value, depth: usize) -> bool {
        let text = match value {
            Value::String(string) => string.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        } as u64;
        self.text = self.text.saturating_add(text + 2 * depth as u64);
        self.made = self.made.saturating_add(text);
        match value {
            Value::List(list) => {
                self.copied = self.copied.saturating_add(COLLECTION + list.len() as u64 * ITEM);
                self.made = self.made.saturating_add(list.len() as u64 * VALUE_BYTES);
                list.items().iter().all(|item| self.add_below(item, depth))
            }
            Value::Map(map) => {
                self.copied = self.copied.saturating_add(COLLECTION + map.len() as u64 * ENTRY);
                self.made = self.made.saturating_add(map_bytes(map.len()));
                map.entries().iter().all(|entry| {
                    self.text = self.text.saturating_add(entry.key.len() as u64);
                    self.add_below(&entry.value, depth)
                })
            }
            _ => true,
        }
    }

    fn add_below(&mut self, value: &Value, depth: usize) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0 && (depth >= MAX_DEPTH || self.add(value, depth + 1))
    }
}

/// The bytes that the value takes which is made of one of JSON.
fn of_json(value: &serde_json::Value, depth: usize) -> u64 {
    use serde_json::Value as Json;
    match value {
        _ if depth > MAX_DEPTH => 0,
        Json::String(text) => text.len() as u64,
        Json::Array(items) => {
            let inside: u64 = items.iter().map(|item| of_json(item, depth + 1)).sum();
            COLLECTION + items.len() as u64 * ITEM + inside
        }
        Json::Object(map) => {
            let inside: u64 =
                map.iter().map(|(key, value)| key.len() as u64 + of_json(value, depth + 1)).sum();
            COLLECTION + map.len() as u64 * ENTRY + inside
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
    }
}
