//! What a controller is.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tiphys_value::{GroupVersionResource, ObjectExt};

use crate::{Behaviours, Change, Event, View, settings::Settings};

/// One object of a resource. The namespace is empty for cluster-scoped objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Namespace, or empty.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// The key of an object.
    pub fn from_object(object: &Value) -> Self {
        Self { namespace: object.namespace().to_owned(), name: object.name().to_owned() }
    }
}

/// What becomes of what a deleted object owns (API concepts, "Cascading deletion").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// It is deleted afterwards.
    Background,
    /// It is deleted first; the owner stays, terminating, until then.
    Foreground,
}

/// Something that a controller wants done. Updates carry the `resourceVersion` that was seen, so a
/// write on stale knowledge fails and the object is looked at again.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Create an object.
    Create {
        /// Where it belongs.
        resource: GroupVersionResource,
        /// The object, with name and namespace.
        object: Value,
    },
    /// Replace an object, leaving its status.
    Update {
        /// Where it belongs.
        resource: GroupVersionResource,
        /// The whole object.
        object: Value,
    },
    /// Replace the status of an object, leaving the rest.
    UpdateStatus {
        /// Where it belongs.
        resource: GroupVersionResource,
        /// The whole object with its new status.
        object: Value,
    },
    /// Put a pod on a node.
    Bind {
        /// Which pod.
        key: Key,
        /// Name of the node.
        node: String,
    },
    /// Delete an object if it still is the one that was seen.
    Delete {
        /// Where it belongs.
        resource: GroupVersionResource,
        /// Which one.
        key: Key,
        /// Its uid.
        uid: String,
        /// What becomes of what it owns.
        propagation: Propagation,
    },
    /// Tell something about an object. It is not kept if that is not possible (its namespace is going).
    Tell(Box<Event>),
    /// Let go of a terminating namespace whose content is gone (its `finalize` subresource).
    Finalize {
        /// Which one.
        key: Key,
    },
    /// Take a pod off its node: it is gone at once, without grace.
    Forget {
        /// Where it belongs.
        resource: GroupVersionResource,
        /// Which one.
        key: Key,
        /// Its uid.
        uid: String,
    },
}

/// Something that a look waits for: when it changes, the look is taken again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// An object: that it comes, changes or goes.
    Object {
        /// API group.
        group: String,
        /// Kind.
        kind: String,
        /// Which one.
        key: Key,
    },
    /// That something behind a Service changes.
    Endpoints(Key),
    /// That a pod with an image of this pattern is Ready.
    ReadyPod(String),
}

/// What one look at an object led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What to do, in order.
    pub writes: Vec<Write>,
    /// Look again after this long even if nothing changes.
    pub requeue_after: Option<Duration>,
    /// Look again when one of these changes.
    pub awaits: Vec<Awaited>,
    /// Look again no sooner than after this long, whatever changes.
    pub rest: Option<Duration>,
}

impl Outcome {
    /// Nothing to do.
    pub fn done() -> Self {
        Self::default()
    }

    /// Look again later.
    pub fn after(delay: Duration) -> Self {
        Self { requeue_after: Some(delay), ..Self::default() }
    }
}

impl Outcome {
    /// The same, looking again when one of these changes.
    #[must_use]
    pub fn until(mut self, awaits: impl IntoIterator<Item = Awaited>) -> Self {
        self.awaits.extend(awaits);
        self
    }

    /// The same, looking again no sooner than after this long.
    #[must_use]
    pub fn resting(mut self, pause: Duration) -> Self {
        self.rest = Some(pause);
        self
    }

    /// The same, looking again no later than after this long.
    #[must_use]
    pub fn requeue_after(mut self, delay: Option<Duration>) -> Self {
        self.requeue_after = match (self.requeue_after, delay) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self
    }
}

impl From<Event> for Write {
    fn from(event: Event) -> Self {
        Self::Tell(Box::new(event))
    }
}

/// One write and nothing else.
impl From<Write> for Outcome {
    fn from(write: Write) -> Self {
        Self { writes: vec![write], ..Self::default() }
    }
}

impl From<Vec<Write>> for Outcome {
    fn from(writes: Vec<Write>) -> Self {
        Self { writes, ..Self::default() }
    }
}

/// What a controller knows while it looks at an object.
pub struct Context<'a> {
    /// The cluster as it is.
    pub view: &'a View<'a>,
    /// The time.
    pub now: Timestamp,
    /// How the world is set.
    pub settings: &'a Settings,
    /// How everything behaves that is no controller.
    pub behaviours: &'a Behaviours,
    /// Why the last attempt at this object failed, in the API server's words.
    pub failure: Option<&'a str>,
}

/// A function from the state of the cluster and one key to writes.
pub trait Controller: Send + Sync {
    /// A stable name, for logs and for the order among controllers.
    fn name(&self) -> &'static str;

    /// The field manager under which its writes are recorded.
    fn manager(&self) -> &'static str {
        "kube-controller-manager"
    }

    /// The objects of this controller that a change concerns.
    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key>;

    /// What to do about one object.
    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome;
}
