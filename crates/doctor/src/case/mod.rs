//! What was saved of a cluster.

mod describe;
mod event;
mod event_tables;
mod folder;
mod log_paths;
mod objects;
mod salvage;
mod told_objects;
mod told_resources;

use std::collections::BTreeSet;

pub use event::Event;
pub use folder::ReadError;
use jiff::Timestamp;
use tiphys_value::{ObjectExt as _, Value};

use crate::cluster::conditions;

/// The state of a cluster at one moment: everything that a diagnosis is made from.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Objects of every kind but events.
    pub objects: Vec<Value>,
    /// Events of both APIs.
    pub events: Vec<Event>,
    /// Tails of container logs.
    pub logs: Vec<Log>,
    /// What nodes say about services that the API does not know.
    pub host_notes: Vec<HostNote>,
    /// When the state was saved, if that is known; otherwise it is the newest time in the state.
    pub at: Option<Timestamp>,
    /// What could not be read, and why.
    pub unreadable: Vec<Unreadable>,
    /// Kinds of which everything was read: where none is here, there is none.
    pub listed: BTreeSet<String>,
    /// Kinds of which only descriptions of single objects were read: that another one is absent proves
    /// nothing.
    pub in_part: BTreeSet<String>,
}

/// The tail of a container's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The container; empty if it is not known.
    pub container: String,
    /// Of the instance that ran before this one.
    pub previous: bool,
    /// Its last lines.
    pub text: String,
}

impl Log {
    /// Lines from the end that are read: what a program said long before is not why it is ill now.
    pub(crate) const LINES: usize = 180;

    /// What evidence names as its source.
    pub(crate) fn source(&self) -> String {
        let names = [self.namespace.as_str(), &self.pod, &self.container];
        format!("log {}", names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join("/"))
    }

    /// The lines that are read, the last one first.
    pub(crate) fn last_lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().rev().take(Self::LINES)
    }
}

/// What a node says about one of its services, as `systemctl status` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostNote {
    /// The node.
    pub node: String,
    /// The service.
    pub service: String,
    /// Its words.
    pub text: String,
}

/// Something that was there to be read and could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// A file, or a request such as `GET /apis/metrics.k8s.io/v1beta1`.
    pub what: String,
    /// Why, in the words of who refused.
    pub why: String,
}

impl Case {
    /// When the state was saved: as told, or the newest time of an event, a lease or a heartbeat. Where only
    /// changes bear a time, some minutes after the newest one: nobody saves a state while it changes.
    #[must_use]
    pub fn now(&self) -> Option<Timestamp> {
        if self.at.is_some() {
            return self.at;
        }
        let events = self.events.iter().filter_map(|event| event.last);
        let clock = events.chain(self.objects.iter().flat_map(clock_times)).max();
        let change = self.objects.iter().flat_map(change_times).max();
        match clock {
            Some(clock) => Some(change.map_or(clock, |change| change.max(clock))),
            None => change.map(|change| change.checked_add(UNTIL_SAVED).unwrap_or(change)),
        }
    }
}

/// How long after its last change a state is saved, if nothing tells.
const UNTIL_SAVED: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// The times of an object that go on while nothing changes.
fn clock_times(object: &Value) -> impl Iterator<Item = Timestamp> {
    let own: [&[&str]; 3] = [&["spec", "renewTime"], &["status", "reconciledAt"], &["status", "observedAt"]];
    let own = own.into_iter().filter_map(|path| object.str_at(path));
    let beats = conditions(object).filter_map(|condition| condition.str_at(&["lastHeartbeatTime"]));
    own.chain(beats).filter_map(|text| text.parse().ok())
}

/// The times at which an object changed.
fn change_times(object: &Value) -> impl Iterator<Item = Timestamp> {
    let created = object.str_at(&["metadata", "creationTimestamp"]);
    let changed = conditions(object).filter_map(|condition| condition.str_at(&["lastTransitionTime"]));
    created.into_iter().chain(changed).filter_map(|text| text.parse().ok())
}
