//! The live state of a cluster, kept current by watches.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};
use tiphys_value::{GroupKind, ObjectExt, ResourceKey, Value};
use tokio::{
    sync::{broadcast, watch},
    task::JoinHandle,
};

use crate::{
    Cluster, ClusterError, List, Resource,
    index::Index,
    watch::{Report, follow},
};

/// How many changes a slow listener may fall behind before it is told that it missed some.
const BACKLOG: usize = 16 * 1024;

/// Kinds that nobody syncs and that change all the time (`argo-cd-behaviour`: hard-coded exclusions).
fn is_excluded(resource: &Resource) -> bool {
    let kind = &resource.gvk;
    matches!(kind.group.as_str(), "events.k8s.io" | "metrics.k8s.io")
        || matches!(kind.kind.as_str(), "Event" | "Lease")
        || !resource.has_verb("list")
        || !resource.has_verb("watch")
}

/// Which part of a cluster is followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchScope {
    /// Only these namespaces; empty means all.
    pub namespaces: Vec<String>,
    /// Objects without a namespace are followed though namespaces are given.
    pub cluster_resources: bool,
}

impl WatchScope {
    /// The places in which objects of a kind are followed; an empty name means everywhere.
    fn places(&self, resource: &Resource) -> Vec<String> {
        match (self.namespaces.is_empty(), resource.namespaced) {
            (true, _) => vec![String::new()],
            (false, true) => self.namespaces.clone(),
            (false, false) if self.cluster_resources => vec![String::new()],
            (false, false) => Vec::new(),
        }
    }
}

/// One change of the live state.
#[derive(Clone, Debug)]
pub struct Change {
    /// Which object.
    pub key: ResourceKey,
    /// As it was before; `None` if it is new.
    pub old: Option<Arc<Value>>,
    /// As it is now; `None` if it is gone.
    pub new: Option<Arc<Value>>,
}

/// Tells which Application an object says it belongs to.
pub(crate) type Mark = dyn Fn(&Value) -> Option<String> + Send + Sync;

/// The live objects of a cluster. Cheap to clone; ends its watches when the last clone goes.
#[derive(Clone)]
pub struct LiveCache {
    inner: Arc<Inner>,
}

struct Inner {
    cluster: Cluster,
    scope: WatchScope,
    mark: Box<Mark>,
    index: RwLock<Index>,
    changes: broadcast::Sender<Arc<Change>>,
    followed: Mutex<BTreeMap<GroupKind, Followed>>,
    /// The latest resource version that each kind's watch delivered.
    seen: Mutex<BTreeMap<GroupKind, u64>>,
    /// Counts kinds whose first list has not come in yet.
    pending: watch::Sender<usize>,
}

struct Followed {
    resource: Resource,
    tasks: Vec<JoinHandle<()>>,
}

impl Followed {
    fn end(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let followed = self.followed.get_mut();
        followed.values().for_each(Followed::end);
    }
}

impl LiveCache {
    /// Starts to follow every kind that the cluster serves. `mark` tells whose an object is.
    ///
    /// # Errors
    /// The cluster does not say what it serves.
    pub async fn start(
        cluster: Cluster,
        mark: impl Fn(&Value) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, ClusterError> {
        Self::start_in(cluster, WatchScope::default(), mark).await
    }

    /// The same for a part of a cluster.
    ///
    /// # Errors
    /// The cluster does not say what it serves.
    pub async fn start_in(
        cluster: Cluster,
        scope: WatchScope,
        mark: impl Fn(&Value) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, ClusterError> {
        let inner = Inner {
            cluster,
            scope,
            mark: Box::new(mark),
            index: RwLock::default(),
            changes: broadcast::channel(BACKLOG).0,
            followed: Mutex::default(),
            seen: Mutex::default(),
            pending: watch::channel(0).0,
        };
        let cache = Self { inner: Arc::new(inner) };
        cache.follow_new_kinds().await?;
        Ok(cache)
    }

    /// Waits until the first list of every kind followed so far came in, or was refused by the API server.
    pub async fn ready(&self) {
        let mut pending = self.inner.pending.subscribe();
        // The sender lives as long as `self`.
        let _ = pending.wait_for(|count| *count == 0).await;
    }

    /// Asks what the cluster serves, follows kinds that are new, forgets kinds that are gone.
    ///
    /// # Errors
    /// The cluster does not say what it serves.
    pub async fn follow_new_kinds(&self) -> Result<(), ClusterError> {
        let discovery = self.inner.cluster.discover().await?;
        let mut followed = self.inner.followed.lock();
        let gone: Vec<GroupKind> = followed
            .iter()
            .filter(|(kind, known)| discovery.preferred_resource(kind) != Some(&known.resource))
            .map(|(kind, _)| kind.clone())
            .collect();
        for kind in gone {
            if let Some(known) = followed.remove(&kind) {
                known.end();
                self.inner.replace_all(&known.resource, "", List::default());
            }
        }
        for resource in discovery.kinds().filter(|resource| !is_excluded(resource)) {
            let kind = resource.gvk.group_kind();
            followed.entry(kind).or_insert_with(|| {
                let places = self.inner.scope.places(resource);
                let tasks = places.into_iter().map(|place| self.follow(resource.clone(), place)).collect();
                Followed { resource: resource.clone(), tasks }
            });
        }
        Ok(())
    }

    fn follow(&self, resource: Resource, namespace: String) -> JoinHandle<()> {
        let cluster = self.inner.cluster.clone();
        let weak = Arc::downgrade(&self.inner);
        let mut first = true;
        self.inner.pending.send_modify(|count| *count += 1);
        let (kind, place) = (resource.clone(), namespace.clone());
        tokio::spawn(follow(cluster, resource, namespace, move |report| {
            let Some(inner) = weak.upgrade() else { return false };
            match report {
                Report::All(list) => {
                    inner.pass(&kind, &list.resource_version);
                    inner.replace_all(&kind, &place, list);
                    if std::mem::take(&mut first) {
                        inner.pending.send_modify(|count| *count -= 1);
                    }
                }
                // A kind that may not be listed, or whose conversion is broken, must not stop all others.
                Report::Failed(error) => {
                    if is_refusal(&error) && std::mem::take(&mut first) {
                        tracing::warn!(kind = %kind.gvk.kind, %error, "cannot be followed yet");
                        inner.pending.send_modify(|count| *count -= 1);
                    }
                }
                Report::Upsert(object) => {
                    inner.pass(&kind, object.resource_version());
                    inner.upsert(object);
                }
                Report::Delete(object) => {
                    inner.pass(&kind, object.resource_version());
                    inner.remove(&object.resource_key());
                }
            }
            true
        }))
    }

    /// Every change from now on. A listener that falls too far behind gets
    /// [`broadcast::error::RecvError::Lagged`] and must look at everything.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Change>> {
        self.inner.changes.subscribe()
    }

    /// One object.
    pub fn get(&self, key: &ResourceKey) -> Option<Arc<Value>> {
        self.read(|index| index.get(key))
    }

    /// One object for whoever does not ask for it again and again, as for a definition: it rests on.
    pub fn peek(&self, key: &ResourceKey) -> Option<Arc<Value>> {
        self.read(|index| index.peek(key))
    }

    /// The objects that say they belong to an Application, in key order.
    pub fn tracked_by(&self, mark: &str) -> Vec<Arc<Value>> {
        self.read(|index| index.tracked_by(mark))
    }

    /// Whose an object says it is.
    pub fn mark_of(&self, object: &Value) -> Option<String> {
        (self.inner.mark)(object)
    }

    /// The objects that an object owns directly, in key order.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<Value>> {
        self.read(|index| index.owned_by(uid))
    }

    /// The keys of all objects of a kind, in order.
    pub fn keys_of(&self, kind: &GroupKind) -> Vec<ResourceKey> {
        self.read(|index| index.keys_of(kind).cloned().collect())
    }

    /// All objects of a kind, in key order, one after the other as they are then.
    pub fn each_of(&self, kind: &GroupKind) -> impl Iterator<Item = Arc<Value>> + use<'_> {
        self.keys_of(kind).into_iter().filter_map(|key| self.peek(&key))
    }

    /// All objects of a kind, in key order.
    pub fn of_kind(&self, kind: &GroupKind) -> Vec<Arc<Value>> {
        self.read(|index| index.of_kind(kind))
    }

    /// The objects of a namespace that nothing owns, in key order. Walks through all keys.
    pub fn top_level_of(&self, namespace: &str) -> Vec<(ResourceKey, Arc<Value>)> {
        let is_top = |object: &Value| object.owner_references().is_empty();
        let mut found: Vec<_> = self.inside(namespace).filter(|(_, object)| is_top(object)).collect();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        found
    }

    /// The objects of a namespace, in no order, one after the other as they are then. Walks through all keys.
    pub fn inside(&self, namespace: &str) -> impl Iterator<Item = (ResourceKey, Arc<Value>)> {
        self.walk(move |key| key.namespace == namespace)
    }

    /// All objects, in no order, one after the other as they are then.
    pub fn all(&self) -> impl Iterator<Item = (ResourceKey, Arc<Value>)> {
        self.walk(|_| true)
    }

    fn walk(&self, wanted: impl Fn(&ResourceKey) -> bool) -> impl Iterator<Item = (ResourceKey, Arc<Value>)> {
        let keys: Vec<ResourceKey> =
            self.read(|index| index.keys().filter(|key| wanted(key)).cloned().collect());
        keys.into_iter().filter_map(|key| {
            let object = self.peek(&key)?;
            Some((key, object))
        })
    }

    /// Lets objects of some kinds rest ([`Resting`](tiphys_value::Resting)) that nobody asked for since this
    /// was last called.
    pub fn pack_idle(&self, may_rest: impl Fn(&ResourceKey) -> bool) {
        // One by one, so that watches are not held up.
        let awake = self.read(Index::drain_awake).into_iter().filter(may_rest);
        awake.for_each(|key| self.read(|index| index.pack_if_idle(key)));
    }

    /// Takes over the answer of a write at once, so that the engine never decides on a state that is
    /// older than its own writes. What the watch has already passed (and may have seen deleted since)
    /// is ignored.
    pub fn observe(&self, object: Value) {
        let key = object.resource_key();
        let passed = self.inner.seen.lock();
        let passed = passed.get(&key.group_kind()).copied().unwrap_or_default();
        if object.resource_version().parse::<u64>().is_ok_and(|version| version > passed) {
            self.inner.upsert(object);
        }
    }

    /// How many objects are known.
    pub fn len(&self) -> usize {
        self.read(Index::len)
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.inner.cluster
    }

    fn read<T>(&self, ask: impl FnOnce(&Index) -> T) -> T {
        ask(&self.inner.index.read())
    }
}

impl Inner {
    fn pass(&self, kind: &Resource, version: &str) {
        if let Ok(version) = version.parse::<u64>() {
            let mut seen = self.seen.lock();
            let latest = seen.entry(kind.gvk.group_kind()).or_default();
            *latest = version.max(*latest);
        }
    }

    fn upsert(&self, object: Value) {
        let key = object.resource_key();
        let mark = (self.mark)(&object);
        let new = Arc::new(object);
        let old = {
            let mut index = self.index.write();
            if index.peek(&key).is_some_and(|known| !is_newer(&new, &known)) {
                return;
            }
            index.insert(key.clone(), mark, new.clone())
        };
        self.announce(Change { key, old, new: Some(new) });
    }

    fn remove(&self, key: &ResourceKey) {
        let old = self.index.write().remove(key);
        if old.is_some() {
            self.announce(Change { key: key.clone(), old, new: None });
        }
    }

    /// Makes the known objects of a kind, in one namespace or (empty) everywhere, equal to a list.
    fn replace_all(&self, resource: &Resource, namespace: &str, list: List) {
        let listed: HashSet<ResourceKey> = list.items.iter().map(ObjectExt::resource_key).collect();
        let gone: Vec<ResourceKey> = {
            let index = self.index.read();
            index
                .keys_of(&resource.gvk.group_kind())
                .filter(|key| namespace.is_empty() || key.namespace == namespace)
                .filter(|key| !listed.contains(key))
                .cloned()
                .collect()
        };
        gone.iter().for_each(|key| self.remove(key));
        list.items.into_iter().for_each(|object| self.upsert(object));
    }

    fn announce(&self, change: Change) {
        // No listener is no fault.
        let _ = self.changes.send(Arc::new(change));
    }
}

/// Whether the API server will not list the kind for now; a server that is busy or starts up will.
fn is_refusal(error: &ClusterError) -> bool {
    match error {
        ClusterError::Api { code, .. } => !matches!(code, 410 | 429 | 502..=504),
        ClusterError::Answer(_) => true,
        _ => false,
    }
}

/// Whether a state of an object is later than the known one. Resource versions of one kind are
/// comparable numbers (KEP-5504); where one is not, the newcomer wins. Another uid is another object.
fn is_newer(new: &Value, known: &Value) -> bool {
    if new.uid() != known.uid() {
        return true;
    }
    match (new.resource_version().parse::<u64>(), known.resource_version().parse::<u64>()) {
        (Ok(new), Ok(known)) => new > known,
        _ => true,
    }
}
