//! What an execution may take: steps, time, output, memory. A template that takes more fails where it does so; the
//! process that renders it, and with it every other chart, goes on.

use super::{Context, Frame, Run};
use crate::parse::Quoted;
use crate::{CallError, Limit, Value};

/// The clock is read once in so many steps, and once in so many calls of functions, some of which take long.
const STEPS_PER_LOOK: u64 = 1024;
const CALLS_PER_LOOK: u64 = 16;
/// What the result of a call takes beside what it holds, and each item of it, in bytes, about.
const RESULT: u64 = 64;
const ITEM: u64 = 24;
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

    /// Fails if there is too much to go through in a value.
    pub(super) fn weigh(&self, frame: &Frame<'_>, value: &Value) -> Run<()> {
        let mut left = self.env.limits.values;
        let mut text = 0;
        if !weigh(value, 0, &mut left, &mut text) {
            let limit = self.env.limits.values;
            return self.limit_error(
                frame,
                Limit::Memory,
                format!("a value that holds more than {limit} others"),
            );
        }
        if text > self.env.limits.output as u64 {
            return self.limit_error(
                frame,
                Limit::Output,
                format!("a value that holds {text} bytes of text"),
            );
        }
        Ok(())
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

/// Whether no more values are in a value than are left.
fn weigh(value: &Value, depth: usize, left: &mut u64, text: &mut u64) -> bool {
    match value {
        Value::String(string) => *text = text.saturating_add(string.len() as u64),
        Value::Bytes(bytes) => *text = text.saturating_add(bytes.len() as u64),
        _ => {}
    }
    let is_in = |value: &Value, left: &mut u64, text: &mut u64| {
        *left = left.saturating_sub(1);
        *left > 0 && (depth >= MAX_DEPTH || weigh(value, depth + 1, left, text))
    };
    match value {
        Value::List(list) => list.items().iter().all(|item| is_in(item, left, text)),
        Value::Map(map) => map.entries().iter().all(|entry| is_in(&entry.value, left, text)),
        _ => true,
    }
}
