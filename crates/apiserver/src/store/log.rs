//! A bounded log of changes. Who lags its beginning must start over from a snapshot.

use std::{collections::VecDeque, sync::Arc};

use tiphys_value::Value;
use tokio::sync::Notify;

use super::{Object, ResourceId};

/// So many changes are kept however heavy they are: watches would start over for ever otherwise.
const ALWAYS_KEPT: usize = 32;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It came into being.
    Added,
    /// It was changed.
    Modified,
    /// It was removed.
    Deleted,
}

/// One change in the store.
#[derive(Clone, Debug)]
pub struct Change {
    /// The revision that the change made.
    pub revision: u64,
    /// The resource whose object changed.
    pub resource: ResourceId,
    /// What happened.
    pub kind: ChangeKind,
    /// The object after the change; for a removal its last state with the revision of the removal.
    pub object: Arc<Object>,
    /// The object before the change.
    pub previous: Option<Arc<Object>>,
    /// About how many bytes of memory the object takes.
    pub(super) weight: usize,
}

/// About how many bytes of memory a value takes: each node is an entry of a map or list, with what lies
/// beside it.
pub(super) fn weight(value: &Value) -> usize {
    const NODE: usize = 96;
    NODE + match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(weight).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + weight(value)).sum(),
        _ => 0,
    }
}

/// The log does not reach back to the revision asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub struct TooOld {
    /// The revision asked for.
    pub asked: u64,
    /// The oldest revision that changes can be had from.
    pub oldest: u64,
}

pub(super) struct Log {
    changes: VecDeque<Arc<Change>>,
    /// About how many bytes the objects in `changes` take.
    weight: usize,
    /// Every change with a greater revision is in `changes`.
    floor: u64,
    first_floor: u64,
    capacity: usize,
    signal: Arc<Notify>,
}

impl Log {
    pub(super) fn starting_at(floor: u64, capacity: usize) -> Self {
        Self {
            changes: VecDeque::new(),
            weight: 0,
            floor,
            first_floor: floor,
            capacity,
            signal: Arc::new(Notify::new()),
        }
    }

    /// The revision at which the log was begun.
    pub(super) fn first_floor(&self) -> u64 {
        self.first_floor
    }

    pub(super) fn signal(&self) -> &Arc<Notify> {
        &self.signal
    }

    pub(super) fn push(&mut self, change: Arc<Change>) {
        if self.changes.len() == self.capacity {
            self.forget_oldest();
        }
        self.weight += change.weight;
        self.changes.push_back(change);
        self.signal.notify_waiters();
    }

    /// Forgets the oldest change if all together are heavier than `limit` bytes, and not but a few.
    pub(super) fn forget_beyond(&mut self, limit: usize) -> Option<Arc<Change>> {
        let is_due = self.weight > limit && self.changes.len() > ALWAYS_KEPT;
        if is_due { self.forget_oldest() } else { None }
    }

    /// Forgets all changes up to a revision.
    pub(super) fn forget_through(&mut self, revision: u64) {
        while self.changes.front().is_some_and(|oldest| oldest.revision <= revision) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) -> Option<Arc<Change>> {
        let oldest = self.changes.pop_front()?;
        self.weight -= oldest.weight;
        self.floor = oldest.revision;
        Some(oldest)
    }

    pub(super) fn since(&self, revision: u64, limit: usize) -> Result<Vec<Arc<Change>>, TooOld> {
        if revision < self.floor {
            return Err(TooOld { asked: revision, oldest: self.floor });
        }
        let start = self.changes.partition_point(|change| change.revision <= revision);
        Ok(self.changes.range(start..).take(limit).cloned().collect())
    }
}
