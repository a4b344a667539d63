//! What one ApplicationSet may take. A matrix of two long lists fits in one object of the cluster and means
//! more Applications than any memory holds; it fails, and every other set goes on.

use std::{cell::Cell, time::Instant};

use serde_json::Value as Json;
use tiphys_gotemplate::{Env, Limits, Map, Value};
use tiphys_value::RenderLimits;

/// What an entry of a map or list takes beside its text, in bytes, about.
const ENTRY: u64 = 100;
/// Deeper trees are not gone through; templates and generators refuse them, or take them as they are.
const MAX_DEPTH: usize = 128;

/// What generating one set has taken so far.
pub(crate) struct Account {
    until: Instant,
    bytes: Cell<u64>,
    made: Cell<u64>,
    worked: Cell<u64>,
}

impl Account {
    /// An account that begins now.
    #[allow(clippy::disallowed_methods, reason = "a deadline stops, and changes no output")]
    pub(crate) fn open() -> Self {
        Self {
            until: Instant::now() + RenderLimits::current().time,
            bytes: Cell::new(0),
            made: Cell::new(0),
            worked: Cell::new(0),
        }
    }

    /// Counts a set of parameters.
    ///
    /// # Errors
    /// It is too much.
    pub(crate) fn count(&self, set: &Map) -> Result<(), String> {
        self.add(of_map(set, 0))
    }

    /// Counts an Application.
    ///
    /// # Errors
    /// It is too much.
    pub(crate) fn count_application(&self, application: &Json) -> Result<(), String> {
        self.add(of_json(application, 0))
    }

    /// What a template of the set is executed with; give it back by [`Self::executed`].
    pub(crate) fn env(&self) -> Env<'static> {
        let limits = Limits { deadline: Some(self.until), ..Limits::default() };
        Env { limits, made: self.made.clone(), worked: self.worked.clone(), ..Env::system() }
    }

    /// Counts what a template made.
    pub(crate) fn charge_template(&self, env: &Env<'_>) {
        self.made.set(env.made.get());
        self.worked.set(env.worked.get());
    }

    #[allow(clippy::disallowed_methods, reason = "a deadline stops, and changes no output")]
    fn add(&self, bytes: u64) -> Result<(), String> {
        let all = self.bytes.get().saturating_add(bytes);
        self.bytes.set(all);
        let RenderLimits { memory, time, .. } = RenderLimits::current();
        let [memory_flag, time_flag, _] = RenderLimits::FLAGS;
        if all > memory {
            return Err(format!(
                "the set yields more parameters and Applications than {} MiB hold; make it several sets, or raise \
                 the limit by {memory_flag}",
                memory >> 20
            ));
        }
        if Instant::now() >= self.until {
            RenderLimits::note_expired();
            let seconds = time.as_secs();
            return Err(format!("generating took longer than {seconds} s; {time_flag} raises the limit"));
        }
        Ok(())
    }
}

fn of_map(map: &Map, depth: usize) -> u64 {
    map.entries().iter().map(|entry| ENTRY + entry.key.len() as u64 + of_value(&entry.value, depth)).sum()
}

fn of_value(value: &Value, depth: usize) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Map(map) if depth < MAX_DEPTH => of_map(map, depth + 1),
        Value::List(list) if depth < MAX_DEPTH => {
            list.items().iter().map(|item| ENTRY + of_value(item, depth + 1)).sum()
        }
        _ => 0,
    }
}

fn of_json(value: &Json, depth: usize) -> u64 {
    match value {
        Json::String(text) => text.len() as u64,
        Json::Object(map) if depth < MAX_DEPTH => {
            map.iter().map(|(key, value)| ENTRY + key.len() as u64 + of_json(value, depth + 1)).sum()
        }
        Json::Array(list) if depth < MAX_DEPTH => {
            list.iter().map(|item| ENTRY + of_json(item, depth + 1)).sum()
        }
        _ => 0,
    }
}
