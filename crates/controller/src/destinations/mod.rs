//! The clusters that Applications are synced to: the engine's own, and those that Secrets of its namespace
//! declare (Argo CD docs, "Declarative Setup", "Clusters"). A declared one is connected to when the first
//! Application wants it, in a task of its own, and has workers of its own: one that cannot be reached holds
//! up nobody but the Applications that are synced to it.

mod cluster_secret;
mod connect;
mod one_shot;
mod schemas;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard, RwLock};

pub(crate) use cluster_secret::Declared;
pub use one_shot::open_destination;
use schemas::Schemas;
use tiphys_cluster::{Change, LiveCache};
use tiphys_model::{Application, Destination, names};
use tiphys_schema::StructuralSchema;
use tiphys_value::{GroupKind, GroupVersionKind, ResourceKey, Value};
use tokio::{
    sync::{Notify, Semaphore},
    task::JoinHandle,
    time::Instant,
};

use crate::{
    AppKey,
    settings::{Destinations, Settings, is_own},
};

/// A cluster that is reached.
pub(crate) struct ConnectedCluster {
    /// Address, as destinations give it.
    pub server: String,
    /// Its live state.
    pub cache: LiveCache,
    /// The version of Kubernetes.
    pub kube_version: String,
    /// The engine's own.
    pub is_home: bool,
    /// How many of its Applications are worked on at once.
    pub workers: Arc<Semaphore>,
    /// Which Applications want an object, whether it is there or not.
    wanted: RwLock<HashMap<ResourceKey, BTreeSet<AppKey>>>,
    /// Which Applications want to know what comes and goes in a namespace.
    watched: RwLock<BTreeSet<(String, AppKey)>>,
    /// Kinds were defined or withdrawn since it was last asked what it serves.
    kinds: Notify,
    /// It is not asked that again before.
    kinds_rest: Mutex<Instant>,
    schemas: Schemas,
    /// Since when it is followed.
    since: Instant,
    /// How many changes of objects of each kind were heard of.
    changes: Mutex<BTreeMap<GroupKind, u64>>,
}

/// First and longest pause after a cluster did not say what it serves.
const KINDS_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How many times as long as an answer took a cluster is not asked again what it serves, and how long at
/// most. Where definitions come by the thousand, each answer is long, and nearly the same.
const KINDS_REST: (u32, Duration) = (5, Duration::from_secs(3));

impl ConnectedCluster {
    pub(crate) fn new(
        server: &str,
        is_home: bool,
        cache: LiveCache,
        kube_version: String,
        workers: usize,
    ) -> Self {
        Self {
            server: server.to_owned(),
            cache,
            kube_version,
            is_home,
            workers: Arc::new(Semaphore::new(workers)),
            wanted: RwLock::default(),
            watched: RwLock::default(),
            kinds: Notify::new(),
            kinds_rest: Mutex::new(Instant::now()),
            schemas: Schemas::default(),
            since: Instant::now(),
            changes: Mutex::default(),
        }
    }

    /// How long it has been followed.
    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Counts a change of one of its objects.
    pub(crate) fn count_change(&self, object: &ResourceKey) {
        let mut changes = self.changes.lock();
        *changes.entry(object.group_kind()).or_default() += 1;
    }

    /// How many changes of objects of each kind were heard of.
    pub(crate) fn changes(&self) -> BTreeMap<GroupKind, u64> {
        self.changes.lock().clone()
    }

    /// The schema of a custom resource; `None` if it is none, or not known.
    pub(crate) fn schema(&self, kind: &GroupVersionKind) -> Option<StructuralSchema> {
        self.schemas.schema_of(&self.cache, kind)
    }

    /// Asks for the cluster to be asked what it serves: once for all kinds that are defined meanwhile.
    pub(crate) fn ask_for_kinds(&self) {
        self.kinds.notify_one();
    }

    /// Returns when kinds were defined or withdrawn, and are followed, or no longer.
    pub(crate) async fn new_kinds(&self) {
        self.kinds.notified().await;
        let rest = *self.kinds_rest.lock();
        tokio::time::sleep_until(rest).await;
        let began = Instant::now();
        let mut pause = KINDS_PAUSE.0;
        while let Err(error) = self.cache.follow_new_kinds().await {
            tracing::warn!(server = %self.server, %error, "cannot discover what the cluster serves; it is asked again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(KINDS_PAUSE.1);
        }
        let rest = (began.elapsed() * KINDS_REST.0).min(KINDS_REST.1);
        *self.kinds_rest.lock() = Instant::now() + rest;
    }

    /// The Applications that watch a namespace.
    pub(crate) fn watching(&self, namespace: &str) -> Vec<AppKey> {
        let watched = self.watched.read();
        let first = (namespace.to_owned(), AppKey { namespace: String::new(), name: String::new() });
        let inside = watched.range(first..).take_while(|(known, _)| known == namespace);
        inside.map(|(_, app)| app.clone()).collect()
    }

    /// Notes which namespace an Application watches.
    pub(crate) fn watch(&self, app: &AppKey, namespace: Option<&str>) {
        {
            let watched = self.watched.read();
            let is_known = namespace.map_or_else(
                || watched.is_empty(),
                |namespace| watched.contains(&(namespace.to_owned(), app.clone())),
            );
            if is_known {
                return;
            }
        }
        let mut watched = self.watched.write();
        watched.retain(|(_, known)| known != app);
        watched.extend(namespace.map(|namespace| (namespace.to_owned(), app.clone())));
    }

    /// The Applications that want an object.
    pub(crate) fn wanting(&self, object: &ResourceKey) -> BTreeSet<AppKey> {
        self.wanted.read().get(object).cloned().unwrap_or_default()
    }

    /// Notes which objects an Application wants now, and which it wanted before.
    pub(crate) fn index(&self, app: &AppKey, before: &BTreeSet<ResourceKey>, now: &BTreeSet<ResourceKey>) {
        let mut wanted = self.wanted.write();
        for gone in before.difference(now) {
            if let Some(apps) = wanted.get_mut(gone) {
                apps.remove(app);
                if apps.is_empty() {
                    wanted.remove(gone);
                }
            }
        }
        for new in now.difference(before) {
            wanted.entry(new.clone()).or_default().insert(app.clone());
        }
    }
}

/// Why a destination cannot be worked on now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// No such cluster is known.
    Unknown(String),
    /// It is known and does not answer.
    Unreachable(String),
    /// It is being connected to for the first time.
    Pending,
}

/// How a declared cluster stands.
enum State {
    /// Nobody wanted it yet.
    Idle,
    /// A connection is tried; why the last attempt failed.
    Connecting(Option<String>),
    /// Connected.
    Ready(Arc<ConnectedCluster>),
    /// Was connected; why it is no longer.
    Lost(Arc<ConnectedCluster>, String),
}

struct Entry {
    declared: Declared,
    state: State,
    task: Option<JoinHandle<()>>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The address of the cluster that a destination means, of clusters with address and name.
fn find<'a>(
    destination: &Destination,
    known: impl Iterator<Item = (&'a str, &'a str)> + Clone,
) -> Result<String, String> {
    let server = destination.server.trim_end_matches('/');
    let is_meant = |(address, name): &(&str, &str)| match server.is_empty() {
        true => *name == destination.name,
        false => *address == server,
    };
    let hits: Vec<&str> = known.clone().filter(is_meant).map(|(address, _)| address).collect();
    match hits.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => {
            let wanted = if server.is_empty() { &destination.name } else { server };
            let names: Vec<&str> =
                std::iter::once(names::IN_CLUSTER_NAME).chain(known.map(|(_, name)| name)).collect();
            Err(format!("there is no cluster {wanted:?}; known are {}", names.join(", ")))
        }
        many => Err(format!("there are {} clusters with the name {:?}", many.len(), destination.name)),
    }
}

/// How a cluster is shown in metrics.
pub(crate) struct ClusterStatus {
    pub server: String,
    pub name: String,
    /// `None` while it is not connected.
    pub cluster: Option<Arc<ConnectedCluster>>,
    /// Whether it answers.
    pub answers: bool,
}

/// Who is told what happens in declared clusters.
pub(crate) trait Follower: Send + Sync {
    /// An object of a cluster changed.
    fn object_changed(&self, cluster: &ConnectedCluster, change: &Change);
    /// Anything may be otherwise in the cluster of an address, or it answers no longer, or again.
    fn cluster_changed(&self, server: &str);
}

/// All clusters.
pub(crate) struct Clusters {
    home: Arc<ConnectedCluster>,
    settings: Settings,
    entries: Mutex<BTreeMap<String, Entry>>,
    follower: Weak<dyn Follower>,
}

impl Clusters {
    pub(crate) fn new(home: Arc<ConnectedCluster>, settings: Settings, follower: Weak<dyn Follower>) -> Self {
        Self { home, settings, entries: Mutex::default(), follower }
    }

    /// The engine's own cluster.
    pub(crate) fn home(&self) -> &Arc<ConnectedCluster> {
        &self.home
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock()
    }

    /// Ends every connection.
    pub(crate) fn close(&self) {
        self.lock().clear();
    }

    /// Ends the connections to clusters that none of these destinations means.
    pub(crate) fn leave_all_but(&self, destinations: &[Destination]) {
        let wanted: BTreeSet<String> =
            destinations.iter().filter_map(|destination| self.server_of(destination).ok()).collect();
        let mut entries = self.lock();
        for (_, entry) in entries.iter_mut().filter(|(server, _)| !wanted.contains(*server)) {
            if let Some(task) = entry.task.take() {
                task.abort();
            }
            entry.state = State::Idle;
        }
    }

    /// Takes up what the cluster Secrets say now. Returns whether anything changed.
    fn declare(&self, all: Vec<Declared>) -> bool {
        let mut entries = self.lock();
        let mut changed = false;
        let wanted: BTreeMap<String, Declared> =
            all.into_iter().map(|declared| (declared.info.server.clone(), declared)).collect();
        entries.retain(|server, entry| {
            let stays = wanted.get(server) == Some(&entry.declared);
            changed |= !stays;
            stays
        });
        for (server, declared) in wanted {
            entries.entry(server).or_insert_with(|| {
                changed = true;
                Entry { declared, state: State::Idle, task: None }
            });
        }
        changed
    }

    /// The address of the cluster that a destination means.
    fn server_of(&self, destination: &Destination) -> Result<String, String> {
        if is_own(destination) {
            return Ok(names::IN_CLUSTER_SERVER.to_owned());
        }
        let entries = self.lock();
        find(
            destination,
            entries.iter().map(|(server, entry)| (server.as_str(), entry.declared.info.name.as_str())),
        )
    }

    /// A destination with address and name of its cluster where they are known, and the project that the
    /// cluster is for.
    pub(crate) fn resolve(&self, destination: &Destination) -> (Destination, String) {
        let mut resolved = destination.clone();
        let Ok(server) = self.server_of(destination) else { return (resolved, String::new()) };
        let (name, project) = self.lock().get(&server).map_or_else(Default::default, |entry| {
            (entry.declared.info.name.clone(), entry.declared.info.project.clone())
        });
        resolved.name = match name.is_empty() && server == names::IN_CLUSTER_SERVER {
            true => names::IN_CLUSTER_NAME.to_owned(),
            false => name,
        };
        resolved.server = server;
        (resolved, project)
    }

    /// What a project may deploy to because the Secrets of clusters name it.
    pub(crate) fn of_project(&self, project: &str) -> Vec<Destination> {
        let entries = self.lock();
        let own = entries.values().filter(|entry| entry.declared.info.project == project);
        own.flat_map(|entry| entry.declared.destinations()).collect()
    }

    /// Every cluster, for metrics.
    pub(crate) fn statuses(&self) -> Vec<ClusterStatus> {
        let entries = self.lock();
        let own = entries.get(names::IN_CLUSTER_SERVER).map(|entry| entry.declared.info.name.clone());
        let mut all = vec![ClusterStatus {
            server: self.home.server.clone(),
            name: own.unwrap_or_else(|| names::IN_CLUSTER_NAME.to_owned()),
            cluster: Some(self.home.clone()),
            answers: true,
        }];
        for (server, entry) in entries.iter().filter(|(server, _)| *server != names::IN_CLUSTER_SERVER) {
            let (cluster, answers) = match &entry.state {
                State::Ready(cluster) => (Some(cluster.clone()), true),
                State::Lost(cluster, _) => (Some(cluster.clone()), false),
                State::Idle | State::Connecting(_) => (None, false),
            };
            all.push(ClusterStatus {
                server: server.clone(),
                name: entry.declared.info.name.clone(),
                cluster,
                answers,
            });
        }
        all
    }
}

impl Clusters {
    /// The cluster of an Application. Begins to connect to one that nobody wanted so far.
    pub(crate) fn cluster_of(self: &Arc<Self>, app: &Application) -> Result<Arc<ConnectedCluster>, Absent> {
        self.place_at(&app.spec.destination)
    }

    fn place_at(self: &Arc<Self>, destination: &Destination) -> Result<Arc<ConnectedCluster>, Absent> {
        if self.settings.destinations == Destinations::AllHere {
            return Ok(self.home.clone());
        }
        let server = self.server_of(destination).map_err(Absent::Unknown)?;
        if server == names::IN_CLUSTER_SERVER {
            return Ok(self.home.clone());
        }
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(&server) else {
            return Err(Absent::Unknown(format!("there is no cluster {server:?}")));
        };
        match &entry.state {
            State::Ready(cluster) => Ok(cluster.clone()),
            State::Lost(_, why) | State::Connecting(Some(why)) => Err(Absent::Unreachable(format!(
                "cluster {:?} ({server}) cannot be reached: {why}",
                entry.declared.info.name
            ))),
            State::Connecting(None) => Err(Absent::Pending),
            State::Idle => {
                entry.state = State::Connecting(None);
                entry.task = Some(tokio::spawn(connect::keep(Arc::downgrade(self), entry.declared.clone())));
                Err(Absent::Pending)
            }
        }
    }

    /// The workers that an Application needs: `None` are those of the engine's own cluster. `last` is the
    /// cluster that it was last compared with, where that may be taken to be still its own.
    pub(crate) fn remote_workers(
        self: &Arc<Self>,
        last: Option<Arc<ConnectedCluster>>,
        object: impl FnOnce() -> Option<Arc<Value>>,
    ) -> Option<Arc<Semaphore>> {
        if self.settings.destinations == Destinations::AllHere {
            return None;
        }
        // Most are at rest, and so is their object.
        let cluster = match last {
            Some(cluster) => cluster,
            None => self.place_at(&destination_of(&*object()?)?).ok()?,
        };
        (!cluster.is_home).then(|| cluster.workers.clone())
    }

    /// What is wrong with a destination.
    pub(crate) fn destination_fault(&self, destination: &Destination) -> Option<String> {
        if let Err(fault) = self.settings.check_destination(destination) {
            return Some(fault);
        }
        match self.settings.destinations {
            Destinations::AllHere => None,
            Destinations::InCluster | Destinations::Apart => self.server_of(destination).err(),
        }
    }

    /// Reads the cluster Secrets again. Returns whether anything changed.
    pub(crate) fn read(&self, cache: &LiveCache, namespace: &str) -> bool {
        let secrets = crate::clusters::cluster_secrets(cache, namespace);
        self.declare(secrets.iter().filter_map(|secret| Declared::read(secret)).collect())
    }

    /// Whether an Application's object is synced to the cluster of an address.
    pub(crate) fn is_inhabitant(&self, app: &Value, server: &str) -> bool {
        destination_of(app).is_some_and(|d| self.server_of(&d).as_deref() == Ok(server))
    }

    /// Notes how a declared cluster stands, and tells of it.
    fn set_state(&self, server: &str, state: State) {
        if let Some(entry) = self.lock().get_mut(server) {
            entry.state = state;
        }
        if let Some(follower) = self.follower.upgrade() {
            follower.cluster_changed(server);
        }
    }
}

/// The cluster that an Application names.
pub(crate) fn destination_of(app: &Value) -> Option<Destination> {
    use tiphys_value::ObjectExt;
    let field = |name: &str| app.str_at(&["spec", "destination", name]).unwrap_or_default().to_owned();
    Some(Destination { server: field("server"), name: field("name"), namespace: String::new() })
        .filter(|destination| !(destination.server.is_empty() && destination.name.is_empty()))
}
