//! What a look at an Application leads to: a value that the stages fill, and that `write.rs` carries out.

use std::time::Duration;

use jiff::Timestamp;
use tiphys_model::Application;

use crate::{AppKey, Refresh, journal::Entry, metrics::Count};

/// How long after a fault of the engine's own an Application or ApplicationSet is looked at again.
pub(crate) const PANIC_PAUSE: Duration = Duration::from_secs(300);

/// What a status says of a panic.
pub(crate) fn panic_message(panic: &str) -> String {
    format!("a fault of the engine, please report it: {panic}; it is tried again")
}

/// When an Application is looked at next.
#[derive(Default)]
pub(crate) struct Next {
    /// When to look again though nothing changes.
    pub at: Option<Timestamp>,
    /// Look again at once.
    pub again: bool,
    /// An operation is under way.
    pub is_under_way: bool,
}

impl Next {
    /// Another look at once.
    pub(crate) fn at_once() -> Self {
        Self { again: true, ..Self::default() }
    }

    /// Another look after a while.
    pub(crate) fn after(wait: Duration, now: Timestamp) -> Self {
        Self { at: Some(tiphys_model::time::after(now, wait)), ..Self::default() }
    }
}

/// The sooner of two times.
pub(crate) fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// An Application that is to be looked at, whatever else leads to a look at it.
pub(crate) struct Look {
    /// Which.
    pub key: AppKey,
    /// How thoroughly.
    pub level: Refresh,
    /// After how long.
    pub wait: Duration,
}

impl Look {
    /// At once, by its sources.
    pub(crate) fn at_sources(key: AppKey) -> Self {
        Self { key, level: Refresh::Sources, wait: Duration::ZERO }
    }
}

/// What a look has found out beside the status of its Application.
#[derive(Default)]
pub(crate) struct Report {
    /// What is recorded as Kubernetes Events of the Application.
    pub events: Vec<Entry>,
    /// What is counted.
    pub counts: Vec<Count>,
    /// Looks that have to follow: at the Application itself by time, at others by what was seen.
    pub looks: Vec<Look>,
    /// The Application as this look has last written it: what was told of with that is not told again.
    pub written: Option<Application>,
}
