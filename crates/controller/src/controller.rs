//! The loops: changes come in, Applications are looked at.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use tiphys_cluster::{Change, Cluster, ClusterError, LiveCache};
use tiphys_model::{Application, names};
use tiphys_source::{DeclaredAccess, Footprint, Repositories};
use tiphys_value::{ObjectExt, ResourceKey, Value};
use tokio::{
    sync::{Semaphore, broadcast::error::RecvError},
    task::JoinHandle,
    time::Instant,
};

use crate::{
    AppKey, Level,
    checkouts::Read,
    clusters::is_cluster_secret,
    credentials,
    installation::{Installation, Shared},
    metrics::Metrics,
    places::{Place, Places},
    policy::{project_kind, project_name},
    predict::Answers,
    prevent::rivals::{self, Rival},
    queue::Queue,
    rendering::Rendering,
    sets::{Sets, set_kind},
    settings::Settings,
    status::application_kind,
};

/// Changes of live objects are gathered for so long before an Application is looked at.
const GATHER_LIVE: Duration = Duration::from_millis(10);
/// Changes of a set's Applications are gathered for so long.
const GATHER_SETS: Duration = Duration::from_millis(50);
/// Edits of files are gathered for so long: editors write in several steps.
pub(crate) const GATHER_EDITS: Duration = Duration::from_millis(120);

/// The engine at work. Dropping it ends its tasks.
pub struct Controller {
    inner: Arc<Inner>,
    tasks: Vec<JoinHandle<()>>,
}

pub(crate) struct Inner {
    pub cache: LiveCache,
    pub repositories: Arc<Repositories>,
    pub settings: Settings,
    pub places: Places,
    /// The credentials that were declared when they were last read.
    pub credentials: Mutex<Vec<DeclaredAccess>>,
    pub sets: Sets,
    queue: Queue,
    /// How often edits were told of.
    edits: AtomicU64,
    memory: Mutex<HashMap<AppKey, Memory>>,
    installation: Shared,
    pub metrics: Metrics,
    /// The commit that each revision of a repository (by its address) was last seen to have left.
    left: Mutex<HashMap<(String, String), String>>,
}

/// What is known of an Application beyond its object.
#[derive(Default)]
pub(crate) struct Memory {
    rendering: Option<Arc<Rendering>>,
    /// The last one that has objects.
    good: Option<Arc<Rendering>>,
    /// The rendering that the operation under way brings about.
    operation: Option<Arc<Rendering>>,
    /// The keys of its targets.
    wants: BTreeSet<ResourceKey>,
    /// The cluster in which it wants them.
    place: Option<Arc<Place>>,
    /// What the API server said of its targets.
    answers: Answers,
    /// It was looked at by this engine.
    seen: bool,
    /// A repository that it reads has another commit now.
    moved: bool,
    /// Another engine that works on it too.
    pub(crate) rival: Option<Rival>,
}

impl AppKey {
    /// The key of an Application.
    pub fn of(app: &Application) -> Self {
        Self { namespace: app.metadata.namespace.clone(), name: app.metadata.name.clone() }
    }

    fn of_key(key: &ResourceKey) -> Self {
        Self { namespace: key.namespace.clone(), name: key.name.clone() }
    }
}

impl Controller {
    /// Starts to work on every Application of a cluster.
    ///
    /// # Errors
    /// The cluster does not say what it serves.
    pub async fn start(
        cluster: Cluster,
        repositories: Arc<Repositories>,
        settings: Settings,
    ) -> Result<Self, ClusterError> {
        // A promise that is kept where requests leave, not where they are made.
        let cluster = if settings.shadow.is_some() { cluster.read_only() } else { cluster };
        let kube_version = cluster.version().await?;
        let argo = Installation::first(&cluster, &settings).await;
        let settings = settings.with_tracking(&argo);
        let tracking = settings.tracking.clone();
        let installation = Installation::new(&settings, argo);
        let cache = LiveCache::start(cluster, move |object| tracking.owner(object)).await?;
        let changes = cache.subscribe();
        cache.ready().await;
        let home = Place::new(names::IN_CLUSTER_SERVER, true, cache.clone(), kube_version, settings.workers);
        let inner = Arc::new(Inner {
            cache,
            repositories,
            settings,
            places: Places::new(Arc::new(home)),
            credentials: Mutex::default(),
            sets: Sets::default(),
            queue: Queue::default(),
            edits: AtomicU64::default(),
            memory: Mutex::default(),
            metrics: Metrics::default(),
            installation: RwLock::new(Arc::new(installation)),
            left: Mutex::default(),
        });
        inner.read_clusters();
        inner.read_credentials();
        inner.add_all(Level::Sources);
        let tasks = vec![
            tokio::spawn(route(inner.clone(), changes)),
            tokio::spawn(work(inner.clone())),
            tokio::spawn(work_on_sets(inner.clone())),
        ];
        Ok(Self { inner, tasks })
    }

    /// The live state that the engine sees.
    pub fn cache(&self) -> &LiveCache {
        &self.inner.cache
    }

    /// What is measured, in Prometheus' text form.
    pub fn metrics(&self) -> String {
        self.inner.exposition()
    }

    /// Tells of edits of the working tree: paths relative to its root; an empty one means that
    /// anything may have changed. Only who read what changed is looked at.
    pub fn changed(&self, paths: &[String]) {
        // Before anything is looked through: what is rendered meanwhile asks for it afterwards.
        self.inner.edits.fetch_add(1, Ordering::SeqCst);
        let everything = paths.iter().any(String::is_empty);
        let mut concerned = Vec::new();
        {
            let mut memory = self.inner.memory();
            for (key, known) in memory.iter_mut() {
                let Some(rendering) = &known.rendering else { continue };
                if everything || paths.iter().any(|path| rendering.footprint.concerns(path)) {
                    known.rendering = None;
                    concerned.push(key.clone());
                }
            }
        }
        for key in concerned {
            self.inner.queue.add(key, Level::Sources, Instant::now() + GATHER_EDITS);
        }
        self.inner.sets.edited(paths, GATHER_EDITS);
    }

    /// Whether an Application was looked at since the engine started.
    pub fn has_seen(&self, key: &AppKey) -> bool {
        self.inner.memory().get(key).is_some_and(|known| known.seen)
    }

    /// Whether an Application cannot get on before somebody changes its sources or what it meets in the
    /// cluster: they do not render, or what they render to is refused for good.
    pub fn is_broken(&self, key: &AppKey) -> bool {
        let Some(known) = self.inner.known_rendering(key) else { return false };
        match &known.targets {
            Err(error) => !error.is_transient(),
            Ok(_) => self.inner.was_refused(key, known.revision()),
        }
    }

    /// Lets every Application be looked at again.
    pub fn refresh_all(&self) {
        self.inner.add_all(Level::Sources);
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.inner.queue.close();
        self.inner.sets.queue.close();
        self.inner.places.close();
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Hands Applications to workers.
async fn work(inner: Arc<Inner>) {
    let workers = Arc::new(Semaphore::new(inner.settings.workers));
    while let Some((key, level)) = inner.queue.next().await {
        // Applications of other clusters wait for workers of their own, where they hold up nobody else.
        let remote = inner.remote_workers(&key);
        let own = match &remote {
            Some(_) => None,
            None => workers.clone().acquire_owned().await.ok(),
        };
        let inner = inner.clone();
        tokio::spawn(async move {
            let permit = match remote {
                Some(workers) => workers.acquire_owned().await.ok(),
                None => own,
            };
            let began = std::time::Instant::now();
            let next = inner.reconcile(&key, level).await;
            inner.metrics.looked(&key.namespace, inner.server_of(&key), began.elapsed());
            inner.queue.done(&key);
            if next.again {
                inner.queue.add(key, Level::Live, Instant::now());
            } else if let Some(at) = next.at {
                let wait = tiphys_model::time::elapsed(inner.now(), at);
                inner.queue.add(key, Level::Live, Instant::now() + wait);
            }
            drop(permit);
        });
    }
}

/// Hands ApplicationSets to workers.
async fn work_on_sets(inner: Arc<Inner>) {
    let workers = Arc::new(Semaphore::new(inner.settings.workers));
    while let Some((key, level)) = inner.sets.queue.next().await {
        let Ok(permit) = workers.clone().acquire_owned().await else { return };
        let inner = inner.clone();
        tokio::spawn(async move {
            let next = inner.reconcile_set(&key, level).await;
            inner.sets.queue.done(&key);
            if let Some(at) = next.at {
                let wait = tiphys_model::time::elapsed(inner.now(), at);
                inner.sets.queue.add(key, Level::Sources, Instant::now() + wait);
            }
            drop(permit);
        });
    }
}

/// Takes changes of the live state to the Applications that they concern.
async fn route(inner: Arc<Inner>, mut changes: tokio::sync::broadcast::Receiver<Arc<Change>>) {
    loop {
        match changes.recv().await {
            Ok(change) => inner.take(&change).await,
            Err(RecvError::Lagged(_)) => inner.add_all(Level::Live),
            Err(RecvError::Closed) => return,
        }
    }
}

impl Inner {
    async fn take(self: &Arc<Self>, change: &Change) {
        self.sets.take(change, GATHER_SETS);
        if change.key.group_kind() == application_kind() {
            let key = AppKey::of_key(&change.key);
            if let (Some(old), Some(new)) = (&change.old, &change.new)
                && let Some(manager) = rivals::writer(old, new)
                && self.settings.shadow.is_none()
            {
                self.note_rival(&key, manager);
                self.queue.add(key.clone(), Level::Live, Instant::now());
            }
            match &change.new {
                None => self.forget(&key),
                Some(new) if is_request(change.old.as_deref(), new) => {
                    self.queue.add(key, Level::Live, Instant::now());
                }
                Some(_) => {}
            }
        }
        if Installation::is_changed_by(change, &self.settings) {
            self.read_installation();
        }
        if credentials::is_changed_by(change, &self.settings.namespace) {
            self.read_credentials();
        }
        let states = [&change.old, &change.new];
        if change.key.namespace == self.settings.namespace
            && states.into_iter().flatten().any(|object| is_cluster_secret(object))
        {
            self.read_clusters();
        }
        if change.key.group_kind() == project_kind() && changes_spec(change) {
            self.add_members(&change.key.name);
        }
        if defines_kinds(change) {
            if let Err(error) = self.cache.follow_new_kinds().await {
                tracing::warn!(%error, "cannot discover what the cluster serves");
            }
            self.add_all(Level::Live);
            return;
        }
        for app in self.concerned(self.places.home(), change) {
            self.queue.add(app, Level::Live, Instant::now() + GATHER_LIVE);
        }
    }

    /// Takes a change in another cluster to the Applications that it concerns.
    pub(crate) async fn take_at(&self, place: &Place, change: &Change) {
        if defines_kinds(change) {
            if let Err(error) = place.cache.follow_new_kinds().await {
                tracing::warn!(server = %place.server, %error, "cannot discover what the cluster serves");
            }
            self.add_inhabitants(&place.server);
            return;
        }
        for app in self.concerned(place, change) {
            self.queue.add(app, Level::Live, Instant::now() + GATHER_LIVE);
        }
    }

    /// The address of the cluster that an Application was last compared with.
    fn server_of(&self, key: &AppKey) -> String {
        let memory = self.memory();
        let place = memory.get(key).and_then(|known| known.place.as_ref());
        place.map_or_else(|| names::IN_CLUSTER_SERVER.to_owned(), |place| place.server.clone())
    }

    /// The settings in force.
    pub(crate) fn installation(&self) -> Arc<Installation> {
        self.installation.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes up changed settings, and lets every Application be looked at under them.
    fn read_installation(&self) {
        let argo = Installation::present(&self.cache, &self.settings);
        let known = self.installation();
        if argo == known.argo {
            return;
        }
        if argo.tracking != known.argo.tracking {
            tracing::warn!("how objects are tracked has changed in argocd-cm; it counts after a restart");
        }
        let renders_anew = argo.rendering != known.argo.rendering;
        let new = Arc::new(Installation::new(&self.settings, argo));
        *self.installation.write().unwrap_or_else(PoisonError::into_inner) = new;
        if renders_anew {
            self.memory().values_mut().for_each(|known| known.rendering = None);
        }
        self.add_all(Level::Sources);
    }

    /// The Applications that an object of a cluster belongs to or that want it.
    fn concerned(&self, place: &Place, change: &Change) -> BTreeSet<AppKey> {
        let marks = [&change.old, &change.new].into_iter().flatten();
        let mut apps: BTreeSet<AppKey> = marks
            .filter_map(|object| self.settings.tracking.owner(object))
            .map(|instance| self.app_of(&instance))
            .collect();
        apps.extend(place.wanting(&change.key));
        if change.old.is_none() || change.new.is_none() {
            apps.extend(place.watching(&change.key.namespace));
        }
        apps
    }

    /// The Application that a mark names.
    pub(crate) fn app_of(&self, instance: &str) -> AppKey {
        // Names of namespaces hold no underscore.
        let (namespace, name) = instance.split_once('_').unwrap_or((&self.settings.namespace, instance));
        AppKey { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Lets an Application be looked at.
    pub(crate) fn add(&self, app: &Value) {
        let key = AppKey { namespace: app.namespace().to_owned(), name: app.name().to_owned() };
        self.queue.add(key, Level::Live, Instant::now());
    }

    pub(crate) fn add_all(&self, level: Level) {
        for object in self.cache.of_kind(&application_kind()) {
            let key = AppKey { namespace: object.namespace().to_owned(), name: object.name().to_owned() };
            self.queue.add(key, level, Instant::now());
        }
        for object in self.cache.of_kind(&set_kind()) {
            let key = AppKey { namespace: object.namespace().to_owned(), name: object.name().to_owned() };
            self.sets.queue.add(key, level, Instant::now());
        }
    }

    /// Whether the last operation of an Application brought a revision that was refused for good.
    fn was_refused(&self, key: &AppKey, revision: &str) -> bool {
        let at = ResourceKey::new(application_kind().group, "Application", &key.namespace, &key.name);
        self.cache.get(&at).is_some_and(|app| {
            let state =
                |path: &[&str]| app.at(&["status", "operationState"]).and_then(|state| state.str_at(path));
            matches!(state(&["phase"]), Some("Failed" | "Error"))
                && state(&["tiphys", "ending"]).is_some()
                && state(&["syncResult", "revision"]) == Some(revision)
        })
    }

    /// Lets every Application of a project be looked at.
    fn add_members(&self, project: &str) {
        let apps = self.cache.of_kind(&application_kind());
        for object in apps.iter().filter(|object| project_name(object) == project) {
            let key = AppKey { namespace: object.namespace().to_owned(), name: object.name().to_owned() };
            self.queue.add(key, Level::Live, Instant::now() + GATHER_LIVE);
        }
    }

    /// A revision of a repository was seen at another commit: who read the old one is looked at too, not only
    /// when its own turn to ask comes.
    pub(crate) fn moved(&self, read: &Read) {
        let place = (read.url.clone(), read.revision.clone());
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.insert(place, read.commit.clone()).as_ref() == Some(&read.commit) {
            return;
        }
        drop(left);
        let mut concerned = Vec::new();
        for (key, known) in self.memory().iter_mut() {
            let rendering = known.rendering.as_ref();
            if rendering.is_some_and(|known| known.read(&read.url, &read.revision, &read.commit)) {
                known.moved = true;
                concerned.push(key.clone());
            }
        }
        for key in concerned {
            self.queue.add(key, Level::Sources, Instant::now());
        }
    }

    /// Whether a repository that an Application reads was seen to have moved since this was last asked.
    pub(crate) fn has_moved(&self, key: &AppKey) -> bool {
        self.memory().get_mut(key).is_some_and(|known| std::mem::take(&mut known.moved))
    }

    /// The present, by the engine's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }

    pub(crate) fn refresh_later(&self, key: &AppKey, wait: Duration) {
        self.queue.add(key.clone(), Level::Sources, Instant::now() + wait);
    }

    pub(crate) fn memory(&self) -> std::sync::MutexGuard<'_, HashMap<AppKey, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn known_rendering(&self, key: &AppKey) -> Option<Arc<Rendering>> {
        self.memory().get(key)?.rendering.clone()
    }

    pub(crate) fn remember(&self, key: &AppKey, rendering: Arc<Rendering>) {
        let mut memory = self.memory();
        let known = memory.entry(key.clone()).or_default();
        if rendering.targets.is_ok() {
            known.good = Some(rendering.clone());
        }
        known.rendering = Some(rendering);
    }

    /// How often edits were told of so far.
    pub(crate) fn edits(&self) -> u64 {
        self.edits.load(Ordering::SeqCst)
    }

    /// What was rendered while edits came may be of before them, and nobody knew then what it read: it is
    /// made again.
    pub(crate) fn doubt(&self, key: &AppKey) {
        if let Some(known) = self.memory().get_mut(key) {
            known.rendering = None;
        }
        self.queue.add(key.clone(), Level::Sources, Instant::now() + GATHER_EDITS);
    }

    /// The last rendering that has objects, if it was made for the same spec as one that has none.
    pub(crate) fn last_good_rendering(&self, key: &AppKey, failed: &Rendering) -> Option<Arc<Rendering>> {
        let good = self.memory().get(key)?.good.clone()?;
        good.is_for_the_spec_of(failed).then_some(good)
    }

    /// Who asks for a look means now: edits of a working tree are told a moment later, and remotes are not
    /// asked every time.
    pub(crate) fn ask_anew(&self, key: &AppKey) {
        let mut memory = self.memory();
        let Some(known) = memory.get_mut(key) else { return };
        let Some(rendering) = &known.rendering else { return };
        if rendering.reads_remotes {
            self.repositories.expire();
        }
        match rendering.reads_remotes && rendering.footprint == Footprint::default() {
            true => known.moved = true,
            false => known.rendering = None,
        }
    }

    pub(crate) fn operation_rendering(&self, key: &AppKey) -> Option<Arc<Rendering>> {
        self.memory().get(key)?.operation.clone()
    }

    pub(crate) fn keep_operation_rendering(&self, key: &AppKey, rendering: Arc<Rendering>) {
        self.memory().entry(key.clone()).or_default().operation = Some(rendering);
    }

    pub(crate) fn drop_operation_rendering(&self, key: &AppKey) {
        if let Some(known) = self.memory().get_mut(key) {
            known.operation = None;
        }
    }

    pub(crate) fn answers(&self, key: &AppKey) -> Answers {
        self.memory().get(key).map(|known| known.answers.clone()).unwrap_or_default()
    }

    pub(crate) fn keep_answers(&self, key: &AppKey, answers: Answers) {
        self.memory().entry(key.clone()).or_default().answers = answers;
    }

    pub(crate) fn mark_seen(&self, key: &AppKey) {
        self.memory().entry(key.clone()).or_default().seen = true;
    }

    /// Notes which objects of a cluster an Application wants.
    pub(crate) fn index_targets(&self, app: &Application, wants: BTreeSet<ResourceKey>, place: &Arc<Place>) {
        let key = AppKey::of(app);
        let mut memory = self.memory();
        let known = memory.entry(key.clone()).or_default();
        let is_same = known.place.as_ref().is_some_and(|known| Arc::ptr_eq(known, place));
        if is_same && known.wants == wants {
            return;
        }
        let mut old = std::mem::replace(&mut known.wants, wants.clone());
        let before = known.place.replace(place.clone());
        drop(memory);
        if let Some(before) = before.filter(|_| !is_same) {
            before.index(&key, &old, &BTreeSet::new());
            before.watch(&key, None);
            old.clear();
        }
        place.index(&key, &old, &wants);
    }

    pub(crate) fn forget(&self, key: &AppKey) {
        let Some(known) = self.memory().remove(key) else { return };
        if let Some(place) = known.place {
            place.index(key, &known.wants, &BTreeSet::new());
            place.watch(key, None);
        }
    }
}

/// Whether somebody other than the engine changed an Application: all but the status counts.
fn is_request(old: Option<&Value>, new: &Value) -> bool {
    let Some(old) = old else { return true };
    let metadata = |object: &Value, field: &str| object.at(&["metadata", field]).cloned();
    ["annotations", "labels", "finalizers", "deletionTimestamp"]
        .iter()
        .any(|field| metadata(old, field) != metadata(new, field))
        || old.get("spec") != new.get("spec")
        || (new.get("operation").is_some() && old.get("operation") != new.get("operation"))
        || terminating(old) != terminating(new)
}

/// Whether the end of the operation under way was asked for.
fn terminating(object: &Value) -> bool {
    object.str_at(&["status", "operationState", "phase"]) == Some("Terminating")
}

fn changes_spec(change: &Change) -> bool {
    let spec = |object: &Option<Arc<Value>>| object.as_ref().and_then(|object| object.get("spec").cloned());
    change.old.is_none() || change.new.is_none() || spec(&change.old) != spec(&change.new)
}

/// Whether a change may change what the cluster serves.
fn defines_kinds(change: &Change) -> bool {
    let is_definition = match change.key.kind.as_str() {
        "CustomResourceDefinition" => change.key.group == "apiextensions.k8s.io",
        "APIService" => change.key.group == "apiregistration.k8s.io",
        _ => false,
    };
    let part = |object: &Option<Arc<Value>>, field: &str| {
        object.as_ref().and_then(|object| object.get(field).cloned())
    };
    is_definition
        && (change.old.is_none()
            || change.new.is_none()
            || ["spec", "status"].iter().any(|field| part(&change.old, field) != part(&change.new, field)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn writes_of_the_engine_are_no_requests() {
        let old = json!({"metadata": {"resourceVersion": "1"}, "spec": {"a": 1}, "operation": {"sync": {}}});
        let mut new = json!({"metadata": {"resourceVersion": "2"}, "spec": {"a": 1}, "status": {"x": 1}});
        assert!(!is_request(Some(&old), &new));
        new["operation"] = json!({"sync": {"prune": true}});
        assert!(is_request(Some(&old), &new));
        let annotated = json!({"metadata": {"annotations": {names::REFRESH: "hard"}}, "spec": {"a": 1}});
        assert!(is_request(Some(&old), &annotated));
        assert!(is_request(None, &old));
    }
}
