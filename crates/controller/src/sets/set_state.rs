//! What is known of each set beyond its object, and which sets a change concerns.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tiphys_appset::{GenerateError, Generated};
use tiphys_cluster::Change;
use tiphys_model::names;
use tiphys_value::{GroupKind, ObjectExt, Value};
use tokio::time::Instant;

use super::generator_inputs::Dependencies;
use crate::{AppKey, Refresh, clusters::is_cluster_secret, queue::Queue, status_writer::application_kind};

/// What a set yielded.
pub(crate) struct Yield {
    /// The spec that it was made from.
    pub spec: Value,
    /// The Applications, or why there are none.
    pub generated: Result<Vec<Generated>, GenerateError>,
    /// What it was made from beside the spec.
    pub depends_on: Dependencies,
    /// When.
    pub made_at: Instant,
}

/// Looks at a set that failed, one after the other.
struct Failures {
    count: u32,
    /// When the last one was counted.
    at: Instant,
}

/// All sets: who waits to be looked at, and what each yielded.
#[derive(Default)]
pub(crate) struct Sets {
    pub queue: Queue,
    known: Mutex<HashMap<AppKey, Arc<Yield>>>,
    failures: Mutex<HashMap<AppKey, Failures>>,
}

/// The kind ApplicationSet.
pub(crate) fn set_kind() -> GroupKind {
    GroupKind::new(names::GROUP, "ApplicationSet")
}

impl Sets {
    fn lock(&self) -> MutexGuard<'_, HashMap<AppKey, Arc<Yield>>> {
        self.known.lock()
    }

    /// What a set yielded last.
    pub(crate) fn last(&self, key: &AppKey) -> Option<Arc<Yield>> {
        self.lock().get(key).cloned()
    }

    pub(crate) fn keep(&self, key: &AppKey, made: Arc<Yield>) {
        self.lock().insert(key.clone(), made);
    }

    pub(crate) fn forget(&self, key: &AppKey) {
        self.lock().remove(key);
        self.succeeded(key);
    }

    /// How long after a look that failed a set is looked at again: `first`, and twice as long after each
    /// further one, up to `longest`. Looks that come sooner, for other reasons, are no further attempts.
    pub(crate) fn pause_after_failure(&self, key: &AppKey, first: Duration, longest: Duration) -> Duration {
        let mut failures = self.failures.lock();
        let now = Instant::now();
        let known = failures.entry(key.clone()).or_insert(Failures { count: 0, at: now });
        if known.count == 0 || now.duration_since(known.at) >= first {
            (known.count, known.at) = (known.count.saturating_add(1), now);
        }
        first
            .saturating_mul(2_u32.saturating_pow(known.count.saturating_sub(1).min(16)))
            .min(longest.max(first))
    }

    /// A look at a set found nothing wrong.
    pub(crate) fn succeeded(&self, key: &AppKey) {
        self.failures.lock().remove(key);
    }

    /// Sets that read an edited path.
    pub(crate) fn edited(&self, paths: &[String], gather: Duration) {
        let everything = paths.iter().any(String::is_empty);
        let known = self.lock();
        for (key, made) in known.iter() {
            let footprint = &made.depends_on.footprint;
            if everything || paths.iter().any(|path| footprint.concerns(path)) {
                self.queue.add(key.clone(), Refresh::Sources, Instant::now() + gather);
            }
        }
    }

    /// The sets whose generators looked into repositories that are meant, with these; and those that ask a
    /// plugin.
    pub(crate) fn reading(
        &self,
        is_meant: &dyn Fn(&str) -> bool,
    ) -> (Vec<(AppKey, BTreeSet<String>)>, Vec<AppKey>) {
        let known = self.lock();
        let read = |made: &Yield| -> BTreeSet<String> {
            made.depends_on.addresses.iter().filter(|url| is_meant(url)).cloned().collect()
        };
        let readers = known.iter().map(|(key, made)| (key.clone(), read(made)));
        let readers = readers.filter(|(_, urls)| !urls.is_empty()).collect();
        let asking = known.iter().filter(|(_, made)| made.depends_on.asks_plugin);
        (readers, asking.map(|(key, _)| key.clone()).collect())
    }

    /// Puts the sets in that a change of the live state concerns.
    pub(crate) fn take(&self, change: &Change, gather: Duration) {
        let kind = change.key.group_kind();
        if kind == set_kind() {
            let key = AppKey { namespace: change.key.namespace.clone(), name: change.key.name.clone() };
            match &change.new {
                None => self.forget(&key),
                Some(new) if is_request(change.old.as_deref(), new) => {
                    self.queue.add(key, Refresh::LiveState, Instant::now());
                }
                Some(_) => {}
            }
            return;
        }
        if kind == application_kind() {
            self.take_child(change, gather);
            return;
        }
        let is_cluster =
            [&change.old, &change.new].into_iter().flatten().any(|object| is_cluster_secret(object));
        let is_project = kind == crate::project_objects::project_kind();
        for (key, made) in self.lock().iter() {
            let is_read = made.depends_on.kinds.contains(&kind) && (kind.kind != "Secret" || is_cluster);
            if is_read {
                self.queue.add(key.clone(), Refresh::Sources, Instant::now() + gather);
            } else if is_project {
                self.queue.add(key.clone(), Refresh::LiveState, Instant::now() + gather);
            }
        }
    }

    /// An Application of a set came, went or changed.
    fn take_child(&self, change: &Change, gather: Duration) {
        let status = |object: &Option<Arc<Value>>| {
            let object = object.as_ref()?;
            let text = |path: &[&str]| object.str_at(path).unwrap_or_default().to_owned();
            Some([
                text(&["status", "sync", "status"]),
                text(&["status", "sync", "revision"]),
                text(&["status", "health", "status"]),
                text(&["status", "operationState", "phase"]),
                text(&["status", "operationState", "startedAt"]),
            ])
        };
        let changed = change.new.as_ref().is_none_or(|new| is_request(change.old.as_deref(), new))
            || status(&change.old) != status(&change.new);
        let owners = [&change.old, &change.new].into_iter().flatten();
        for owner in owners.filter(|_| changed).filter_map(|object| tiphys_appset::owner_of(object)) {
            let key = AppKey { namespace: change.key.namespace.clone(), name: owner.to_owned() };
            self.queue.add(key, Refresh::LiveState, Instant::now() + gather);
        }
    }
}

/// Whether somebody other than the engine changed a set: all but its status counts.
fn is_request(old: Option<&Value>, new: &Value) -> bool {
    let Some(old) = old else { return true };
    let metadata = |object: &Value, field: &str| object.at(&["metadata", field]).cloned();
    ["annotations", "labels", "finalizers", "deletionTimestamp", "ownerReferences"]
        .iter()
        .any(|field| metadata(old, field) != metadata(new, field))
        || old.get("spec") != new.get("spec")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_with_each_attempt_until_one_succeeds() {
        let (sets, key) = (Sets::default(), AppKey { namespace: "argocd".into(), name: "all".into() });
        let seconds =
            || sets.pause_after_failure(&key, Duration::from_secs(30), Duration::from_secs(120)).as_secs();
        assert_eq!([seconds(), seconds()], [30, 30], "a look that comes sooner is no attempt");
        for expected in [60, 120, 120] {
            tokio::time::advance(Duration::from_secs(30)).await;
            assert_eq!(seconds(), expected);
        }
        sets.succeeded(&key);
        assert_eq!(seconds(), 30);
    }
}
