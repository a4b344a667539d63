//! The revisioned object store: a persistent ordered map per resource, one revision counter, and a
//! bounded log of changes. A snapshot is a pointer; so is a fork.

mod allocation;
mod durable;
mod log;
mod network;
mod object;
mod snapshot;

use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

pub(crate) use allocation::{AllocationConflict, needs_health_check_port};
pub use durable::StateError;
use durable::{Journal, Record};
use log::Log;
pub use log::{Change, ChangeKind, TooOld};
pub use network::{ServiceNetwork, ServiceNetworkError};
pub use object::{Object, ResourceId};
pub use snapshot::Snapshot;
pub(crate) use snapshot::key;
use tiphys_value::Value;

/// How many changes of one resource are kept for watches.
const RESOURCE_LOG: usize = 4096;
/// How many changes of all resources together are kept for change feeds.
const GLOBAL_LOG: usize = 16384;
/// How heavy the objects of all kept changes may be, in bytes of memory. An object of which each change is
/// kept would otherwise take thousands of times its own size.
const LOG_WEIGHT: usize = 32 << 20;
/// How many past contents are kept; they share all that did not change.
const PAST: usize = 4096;
/// How far revisions jump when a state folder is opened again: revisions that were seen by a watch
/// but not yet on disk when the process died are never given out a second time.
const RESTART_GAP: u64 = 1000;

/// What must hold for a commit to happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expect {
    /// The key is free.
    Absent,
    /// The object has this revision.
    Revision(u64),
}

/// Why a commit did not happen.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// The key holds something else than expected.
    Changed,
    /// An address or port that the object wants is taken.
    Allocation(AllocationConflict),
}

/// One write.
pub(crate) struct Write<'a> {
    pub resource: &'a ResourceId,
    /// `namespace/name`, or `name` of a cluster-scoped object.
    pub key: &'a str,
    pub expect: Expect,
    /// The new object; `None` removes it, leaving this as its last state in the log.
    pub value: Value,
    pub remove: bool,
}

struct State {
    snapshot: Snapshot,
    /// The content after each of the last writes, oldest first: what exact and continued lists read.
    past: VecDeque<Snapshot>,
    global: Log,
    by_resource: BTreeMap<ResourceId, Log>,
}

/// The store. Cheap to share behind an `Arc`.
pub(crate) struct Store {
    state: Mutex<State>,
    any_change: Arc<Notify>,
    journal: Option<Journal>,
}

impl Store {
    /// An empty store in memory.
    pub(crate) fn in_memory() -> Self {
        Self::from_snapshot(Snapshot::default(), None)
    }

    /// A store that keeps every write in a folder and starts with what is there.
    pub(crate) fn open(folder: &Path) -> Result<Self, StateError> {
        let (journal, records) = Journal::open(folder)?;
        let mut snapshot = Snapshot::default();
        let mut newest = 0;
        for (resource, key, object) in records {
            newest = newest.max(object.revision());
            snapshot.insert(&resource, &key, Arc::new(object));
        }
        let newest = newest.max(journal.newest());
        if newest > 0 {
            snapshot.set_revision(newest + RESTART_GAP);
        }
        Ok(Self::from_snapshot(snapshot, Some(journal)))
    }

    fn from_snapshot(snapshot: Snapshot, journal: Option<Journal>) -> Self {
        let global = Log::starting_at(snapshot.revision(), GLOBAL_LOG);
        let past = VecDeque::from([snapshot.clone()]);
        let state = State { snapshot, past, global, by_resource: BTreeMap::new() };
        Self { state: Mutex::new(state), any_change: Arc::new(Notify::new()), journal }
    }

    /// Gives Services their addresses from a network from now on.
    pub(crate) fn set_network(&self, network: ServiceNetwork) {
        let mut state = self.lock();
        state.snapshot.allocations.network = network;
    }

    /// An independent store in memory with the same content; its change log starts empty.
    pub(crate) fn fork(&self) -> Self {
        Self::from_snapshot(self.snapshot(), None)
    }

    /// The present content.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.lock().snapshot.clone()
    }

    /// The content at a revision; `None` if that is too long ago or has not happened.
    pub(crate) fn snapshot_at(&self, revision: u64) -> Option<Snapshot> {
        let state = self.lock();
        let next = state.past.partition_point(|past| past.revision() <= revision);
        let found = state.past.get(next.checked_sub(1)?)?;
        (revision <= state.snapshot.revision()).then(|| found.clone())
    }

    /// The newest revision.
    pub(crate) fn revision(&self) -> u64 {
        self.lock().snapshot.revision()
    }

    /// Carries out a write if its expectation holds; stamps the new revision into the object.
    pub(crate) fn commit(&self, mut write: Write<'_>) -> Result<Arc<Object>, CommitError> {
        let mut state = self.lock();
        let previous = state.snapshot.find(write.resource, write.key).cloned();
        let holds = match (write.expect, &previous) {
            (Expect::Absent, None) => true,
            (Expect::Revision(revision), Some(object)) => object.revision() == revision,
            _ => false,
        };
        if !holds {
            return Err(CommitError::Changed);
        }
        let kept = (!write.remove).then_some(&mut write.value);
        state
            .snapshot
            .allocate(write.resource, previous.as_deref(), kept)
            .map_err(CommitError::Allocation)?;
        let object = self.apply(&mut state, write, previous);
        drop(state);
        self.any_change.notify_waiters();
        Ok(object)
    }

    /// Puts an object in the place of whatever is there, keeping its addresses and ports as they are.
    pub(crate) fn import(&self, resource: &ResourceId, key: &str, value: Value) -> Arc<Object> {
        let mut state = self.lock();
        let previous = state.snapshot.find(resource, key).cloned();
        if resource.group().is_empty() && resource.resource() == "services" {
            if let Some(previous) = &previous {
                state.snapshot.allocations.release(previous);
            }
            state.snapshot.allocations.adopt(&value);
        }
        let write = Write { resource, key, expect: Expect::Absent, value, remove: false };
        let object = self.apply(&mut state, write, previous);
        drop(state);
        self.any_change.notify_waiters();
        object
    }

    /// Carries out a write that has been found to hold.
    fn apply(&self, state: &mut State, write: Write<'_>, previous: Option<Arc<Object>>) -> Arc<Object> {
        let revision = state.snapshot.revision() + 1;
        let object = Arc::new(Object::stamped(write.value, revision));
        state.snapshot.set_revision(revision);
        let kind = match (&previous, write.remove) {
            (_, true) => ChangeKind::Deleted,
            (None, false) => ChangeKind::Added,
            (Some(_), false) => ChangeKind::Modified,
        };
        if write.remove {
            state.snapshot.remove(write.resource, write.key);
        } else {
            state.snapshot.insert(write.resource, write.key, Arc::clone(&object));
        }
        if let Some(journal) = &self.journal {
            let stored = (!write.remove).then(|| Arc::clone(&object));
            journal.append(Record::new(write.resource, write.key, revision, stored));
        }
        let change = Arc::new(Change {
            revision,
            resource: write.resource.clone(),
            kind,
            weight: log::weight(&object),
            object: Arc::clone(&object),
            previous,
        });
        state.log_change(change);
        state.remember();
        object
    }

    /// Changes after a revision: of one resource, or of all.
    pub(crate) fn changes_since(
        &self,
        resource: Option<&ResourceId>,
        revision: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Change>>, TooOld> {
        let mut state = self.lock();
        match resource {
            None => state.global.since(revision, limit),
            Some(resource) => state.log_of(resource).since(revision, limit),
        }
    }

    /// Wakes up whoever waits when one resource changes.
    pub(crate) fn signal(&self, resource: &ResourceId) -> Arc<Notify> {
        Arc::clone(self.lock().log_of(resource).signal())
    }

    /// Wakes up whoever waits when anything changes.
    pub(crate) fn any_signal(&self) -> Arc<Notify> {
        Arc::clone(&self.any_change)
    }

    /// Forgets old changes of a resource and ends its watches from there (its definition is gone).
    pub(crate) fn wake(&self, resource: &ResourceId) {
        self.lock().log_of(resource).signal().notify_waiters();
    }

    /// Waits until everything up to a revision would survive the death of the process.
    pub(crate) async fn durable(&self, revision: u64) -> Result<(), StateError> {
        match &self.journal {
            Some(journal) => journal.durable(revision).await,
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn remember(&mut self) {
        if self.past.len() >= PAST {
            self.past.pop_front();
        }
        self.past.push_back(self.snapshot.clone());
    }

    fn log_of(&mut self, resource: &ResourceId) -> &mut Log {
        // A log made now knows nothing before now, except that a resource without a log never changed.
        let floor = self.global.first_floor();
        self.by_resource.entry(resource.clone()).or_insert_with(|| Log::starting_at(floor, RESOURCE_LOG))
    }

    fn log_change(&mut self, change: Arc<Change>) {
        self.log_of(&change.resource.clone()).push(Arc::clone(&change));
        self.global.push(change);
        while let Some(oldest) = self.global.forget_beyond(LOG_WEIGHT) {
            self.log_of(&oldest.resource).forget_through(oldest.revision);
            // The newest content is never that old.
            while self.past.front().is_some_and(|past| past.revision() <= oldest.revision) {
                self.past.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests;
