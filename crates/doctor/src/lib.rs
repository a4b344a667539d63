//! Root causes of a broken cluster, found in what was saved of it: objects, events, logs. Text and objects in, a
//! diagnosis out: no network, no clock.

mod case;
mod diagnosis;

pub use case::{Case, Event, HostNote, Log, ReadError, Unreadable};
pub use diagnosis::{Consequence, Diagnosis, Evidence, Object, Remedy, Root, RuledOut, Unexplained};
pub use tiphys_cause::Cause;

/// What is wrong in a case, the surest root first.
#[must_use]
pub fn diagnose(case: &Case) -> Diagnosis {
    Diagnosis { now: case.now(), ..Diagnosis::default() }
}
