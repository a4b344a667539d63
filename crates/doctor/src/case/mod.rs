//! What was saved of a cluster.

mod event;
mod event_tables;
mod folder;
mod log_paths;
mod objects;

use std::collections::BTreeSet;

pub use event::Event;
pub use folder::ReadError;
use jiff::Timestamp;
use tiphys_value::{ObjectExt as _, Value};

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
    /// When the state was saved: as told, or the newest time of an event, a lease or a condition.
    #[must_use]
    pub fn now(&self) -> Option<Timestamp> {
        if self.at.is_some() {
            return self.at;
        }
        let events = self.events.iter().filter_map(|event| event.last);
        let objects = self.objects.iter().filter_map(newest_time);
        events.chain(objects).max()
    }
}

/// The newest time that an object names: its lease's renewal or a condition's change.
fn newest_time(object: &Value) -> Option<Timestamp> {
    let lease = object.str_at(&["spec", "renewTime"]);
    let created = object.str_at(&["metadata", "creationTimestamp"]);
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).into_iter().flatten();
    let changed = conditions.flat_map(|condition| {
        ["lastTransitionTime", "lastHeartbeatTime"].into_iter().filter_map(|key| condition.str_at(&[key]))
    });
    lease.into_iter().chain(created).chain(changed).filter_map(|text| text.parse().ok()).max()
}
