//! A repository, a cluster, and the engine. The cluster is an embedded one with everything behind it, where
//! under a paused clock hours pass in no time; inside [`on_real`] it is a real kube-apiserver with nothing
//! behind it.

use std::{cell::Cell, fs, sync::Arc, time::Duration};

use jiff::Timestamp;
use tempfile::TempDir;
use tiphys_cluster::{ApplyOptions, Cluster, PatchType, Propagation, Resource};
use tiphys_controller::{Controller, Settings, Share, crds};
use tiphys_source::{Fetcher, LocalRepositories, Repositories, WorkingTree};
use tiphys_stage::{Site, SiteOptions, request_faults::Faults};
use tiphys_value::{GroupVersionKind, ObjectExt, Value, json};
use tokio::{task::JoinHandle, time::Instant};

use crate::cleanup;

/// The address under which manifests of the tests name their repository.
pub(crate) const URL: &str = "https://git.example.com/acme/shop.git";
/// Namespace of the engine.
pub(crate) const ENGINE: &str = "argocd";
/// The kind Application.
pub(crate) const APPLICATION: (&str, &str) = ("argoproj.io/v1alpha1", "Application");
/// The kind ApplicationSet.
pub(crate) const SET: (&str, &str) = ("argoproj.io/v1alpha1", "ApplicationSet");
/// The kind ConfigMap.
pub(crate) const CONFIG_MAP: (&str, &str) = ("v1", "ConfigMap");

/// How much virtual time passes before a test gives up.
const PATIENCE: Duration = Duration::from_secs(8 * 3600);

/// The longest that a scenario lets pass where time is real.
const REAL_PASS: Duration = Duration::from_secs(1);
/// How long a scenario waits for something where time is real.
const REAL_PATIENCE: Duration = Duration::from_secs(300);
/// How often it looks.
const REAL_LOOK: Duration = Duration::from_millis(50);

tokio::task_local! {
    static REAL: (Cluster, Cluster);
}

/// Runs a scenario on a real API server. One at a time: each begins with what it may meet cleared away.
pub(crate) async fn on_real(cluster: &Cluster, scenario: impl Future<Output = ()>) {
    on_real_as(cluster, cluster, scenario).await;
}

/// The same with an engine that reaches the cluster as somebody else than people do.
pub(crate) async fn on_real_as(people: &Cluster, engine: &Cluster, scenario: impl Future<Output = ()>) {
    REAL.scope((people.clone(), engine.clone()), scenario).await;
}

/// Whether stages stand on a real API server here.
pub(crate) fn stage_is_real() -> bool {
    REAL.try_with(|_| ()).is_ok()
}

/// What a stage stands on.
enum Ground {
    Embedded(Box<Site>),
    Real { collector: JoinHandle<()> },
}

pub(crate) struct Stage {
    dir: TempDir,
    ground: Ground,
    /// The cluster as people reach it.
    pub cluster: Cluster,
    /// What goes wrong between the engine and the cluster.
    pub faults: Faults,
    /// The cluster as the engine reaches it.
    reached: Cluster,
    repositories: Arc<Repositories>,
    settings: Settings,
    pub engine: Option<Controller>,
    held: Cell<bool>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Ground::Real { collector } = &self.ground {
            collector.abort();
        }
    }
}

impl Stage {
    /// With the engine at work and default settings.
    pub(crate) async fn new(files: &[(&str, &str)]) -> Self {
        Self::with(files, |_| {}).await
    }

    /// With the engine at work.
    pub(crate) async fn with(files: &[(&str, &str)], change: impl FnOnce(&mut Settings)) -> Self {
        let mut stage = Self::idle(files, change).await;
        stage.start().await;
        stage
    }

    /// Without the engine.
    pub(crate) async fn idle(files: &[(&str, &str)], change: impl FnOnce(&mut Settings)) -> Self {
        Self::built(files, None, change).await
    }

    /// With the engine at work, which fetches other repositories than its own too, into a folder.
    pub(crate) async fn fetching(cache: &std::path::Path) -> Self {
        // A host that is silent costs each test that has one this much of real time. One that is slow is
        // asked again.
        let limit = Duration::from_secs(3);
        let fetcher = Fetcher::new(cache, Duration::ZERO, false, |_| None)
            .with_git_limit(limit)
            .with_local_repositories(LocalRepositories::any());
        let mut stage = Self::built(&[], Some(Arc::new(fetcher)), |_| {}).await;
        stage.start().await;
        stage
    }

    async fn built(
        files: &[(&str, &str)],
        fetcher: Option<Arc<Fetcher>>,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let repositories = Arc::new(Repositories::new(fetcher, false));
        let faults = Faults::logging();
        // All that is tested holds for what has rested, too.
        let mut settings = Settings { rest_after: Some(Duration::from_secs(5)), ..Settings::default() };
        let (ground, cluster, reached) = match REAL.try_with(Clone::clone) {
            Ok((people, engine)) => {
                cleanup::everything(&people).await;
                let collector = tokio::spawn(cleanup::collect(people.clone()));
                (Ground::Real { collector }, people, engine)
            }
            Err(_) => {
                let site = Site::fresh(SiteOptions { seed: 7, ..SiteOptions::default() }).unwrap();
                settings.clock = site.clock();
                let reached = Cluster::new(faults.before(site.server().service()));
                let cluster = site.cluster();
                (Ground::Embedded(Box::new(site)), cluster, reached)
            }
        };
        change(&mut settings);
        let stage = Self {
            dir,
            ground,
            cluster,
            faults,
            reached,
            repositories,
            settings,
            engine: None,
            held: Cell::new(false),
        };
        for (path, text) in files {
            stage.put(path, text);
        }
        stage.repositories.give_working_tree(Arc::new(WorkingTree::open(stage.dir.path()).unwrap()));
        stage.repositories.add_address(URL);
        for definition in crds::definitions() {
            stage.apply(definition).await;
        }
        stage.until_served("AppProject").await;
        stage.namespace(ENGINE).await;
        stage
    }

    /// Starts the engine.
    pub(crate) async fn start(&mut self) {
        let settings = self.settings.clone();
        self.engine =
            Some(Controller::start(self.reached.clone(), self.repositories.clone(), settings).await.unwrap());
    }

    /// The embedded cluster as one more engine reaches it, with faults of its own.
    pub(crate) fn reached_by(&self, faults: &Faults) -> Cluster {
        match &self.ground {
            Ground::Embedded(site) => Cluster::new(faults.before(site.server().service())),
            Ground::Real { .. } => self.reached.clone(),
        }
    }

    /// Starts one more engine, which has a share of the work.
    pub(crate) async fn start_replica(
        &self,
        cluster: Cluster,
        share: Arc<Share>,
        change: impl FnOnce(&mut Settings),
    ) -> Controller {
        let mut settings = Settings { share: Some(share), ..self.settings.clone() };
        change(&mut settings);
        Controller::start(cluster, self.repositories.clone(), settings).await.unwrap()
    }

    /// Kills the engine as SIGKILL would: whatever it was doing ends here.
    pub(crate) fn kill(&mut self) {
        self.engine = None;
    }

    /// Edits are not told of from now on.
    pub(crate) fn hold(&self) {
        self.held.set(true);
    }

    /// Tells of what was edited since [`Self::hold`], as one change.
    pub(crate) fn resume(&self) {
        self.held.set(false);
        self.edited("");
    }

    /// Changes settings for the next start.
    pub(crate) fn set(&mut self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings);
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Edits a file of the repository.
    pub(crate) fn write(&self, path: &str, text: &str) {
        self.put(path, text);
        self.edited(path);
    }

    /// Deletes a file of the repository.
    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.dir.path().join(path)).unwrap();
        self.edited(path);
    }

    /// Puts a symbolic link into the repository.
    #[cfg(unix)]
    pub(crate) fn link(&self, path: &str, to: &std::path::Path) {
        std::os::unix::fs::symlink(to, self.dir.path().join(path)).unwrap();
        self.edited("");
    }

    /// Deletes a file of the repository if there is one.
    pub(crate) fn remove_if_there(&self, path: &str) {
        if self.dir.path().join(path).is_file() {
            self.remove(path);
        }
    }

    fn edited(&self, path: &str) {
        if let Some(engine) = self.engine.as_ref().filter(|_| !self.held.get()) {
            engine.changed(&[path.to_owned()]);
        }
    }

    /// The present, by the clock of the cluster.
    pub(crate) fn now(&self) -> Timestamp {
        match &self.ground {
            Ground::Embedded(site) => site.now(),
            Ground::Real { .. } => Timestamp::now(),
        }
    }

    /// Makes a namespace.
    pub(crate) async fn namespace(&self, name: &str) {
        self.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
    }

    /// Waits until a kind is served.
    pub(crate) async fn until_served(&self, kind: &str) {
        self.until(kind, async || {
            self.cluster.discover().await.unwrap().kinds().any(|k| k.gvk.kind == kind).then_some(())
        })
        .await;
    }

    /// Server-side apply by a person.
    pub(crate) async fn apply(&self, object: Value) -> Value {
        self.apply_as(object, "kubectl").await
    }

    pub(crate) async fn apply_as(&self, object: Value, manager: &str) -> Value {
        let options =
            ApplyOptions { field_manager: manager.into(), force: true, dry_run: false, validate: false };
        let shown = format!("{} {}", object.kind(), object.name());
        self.cluster.apply(&object, &options).await.unwrap_or_else(|error| panic!("{shown}: {error}"))
    }

    /// Applies every document of a YAML text.
    pub(crate) async fn apply_yaml(&self, text: &str) {
        for document in text.split("\n---\n") {
            self.apply(tiphys_yaml::from_yaml(document).unwrap()).await;
        }
    }

    async fn resource(&self, (api_version, kind): (&str, &str)) -> Resource {
        self.cluster.resource(&GroupVersionKind::from_api_version(api_version, kind)).await.unwrap()
    }

    pub(crate) async fn get(&self, kind: (&str, &str), namespace: &str, name: &str) -> Option<Value> {
        self.cluster.get(&self.resource(kind).await, namespace, name).await.unwrap()
    }

    pub(crate) async fn list(&self, kind: (&str, &str)) -> Vec<Value> {
        self.cluster.list(&self.resource(kind).await, "").await.unwrap().items
    }

    pub(crate) async fn names(&self, kind: (&str, &str), namespace: &str) -> Vec<String> {
        let items = self.cluster.list(&self.resource(kind).await, namespace).await.unwrap().items;
        items.iter().map(|item| item.name().to_owned()).collect()
    }

    /// `kubectl patch --type merge`.
    pub(crate) async fn patch(&self, kind: (&str, &str), namespace: &str, name: &str, patch: Value) -> Value {
        self.patch_as(kind, namespace, name, patch, "kubectl-edit").await
    }

    /// The same under another field manager.
    pub(crate) async fn patch_as(
        &self,
        kind: (&str, &str),
        namespace: &str,
        name: &str,
        patch: Value,
        manager: &str,
    ) -> Value {
        let resource = self.resource(kind).await;
        self.cluster
            .patch(&resource, (namespace, name), "", PatchType::Merge, &patch, manager)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) async fn patch_status(&self, kind: (&str, &str), namespace: &str, name: &str, patch: Value) {
        let resource = self.resource(kind).await;
        self.cluster
            .patch(&resource, (namespace, name), "status", PatchType::Merge, &patch, "test")
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    pub(crate) async fn delete(&self, kind: (&str, &str), namespace: &str, name: &str) {
        let resource = self.resource(kind).await;
        self.cluster.delete(&resource, (namespace, name), Propagation::Background, "", false).await.unwrap();
    }

    /// Waits until something holds of the cluster.
    pub(crate) async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let start = Instant::now();
        let patience = if self.is_real() { REAL_PATIENCE } else { PATIENCE };
        loop {
            let changed = self.changed();
            if let Some(found) = look().await {
                return found;
            }
            if start.elapsed() > patience {
                panic!("never: {what}\n{}", self.report().await);
            }
            changed.await;
        }
    }

    /// Whether time is real.
    pub(crate) fn is_real(&self) -> bool {
        matches!(self.ground, Ground::Real { .. })
    }

    /// Returns when the cluster may have changed since this was called.
    fn changed(&self) -> impl Future<Output = ()> + use<> {
        let server = match &self.ground {
            Ground::Embedded(site) => Some((site.server().clone(), site.server().revision())),
            Ground::Real { .. } => None,
        };
        async move {
            match server {
                Some((server, revision)) => {
                    let changed = server.changed_after(revision);
                    let _ = tokio::time::timeout(Duration::from_secs(600), changed).await;
                }
                None => tokio::time::sleep(REAL_LOOK).await,
            }
        }
    }

    /// Waits until an object is there and something holds of it.
    pub(crate) async fn until_object(
        &self,
        kind: (&str, &str),
        namespace: &str,
        name: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let what = format!("{} {name}", kind.1);
        self.until(&what, async || self.get(kind, namespace, name).await.filter(|object| holds(object))).await
    }

    /// Waits until something holds of an Application of the engine's namespace.
    pub(crate) async fn until_app(&self, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.until_object(APPLICATION, ENGINE, name, holds).await
    }

    /// Waits until an Application is Synced and Healthy and nothing runs.
    pub(crate) async fn until_green(&self, name: &str) -> Value {
        self.until_app(name, is_green).await
    }

    /// Waits until an object is gone.
    pub(crate) async fn until_gone(&self, kind: (&str, &str), namespace: &str, name: &str) {
        let what = format!("{} {name} is gone", kind.1);
        self.until(&what, async || self.get(kind, namespace, name).await.is_none().then_some(())).await;
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::sleep(if self.is_real() { time.min(REAL_PASS) } else { time }).await;
    }

    /// What there is to know when a test fails.
    async fn report(&self) -> String {
        let mut text = String::new();
        for kind in [APPLICATION, SET] {
            for mut object in self.list(kind).await {
                object["metadata"]["managedFields"] = Value::Null;
                text.push_str(&format!("{} {}: {:#}\n", object.kind(), object.name(), object["status"]));
            }
        }
        text
    }
}

pub(crate) fn is_green(app: &Value) -> bool {
    app.str_at(&["status", "sync", "status"]) == Some("Synced")
        && app.str_at(&["status", "health", "status"]) == Some("Healthy")
        && app.get("operation").is_none()
        && !matches!(phase(app), "Running" | "Terminating")
}

pub(crate) fn phase(app: &Value) -> &str {
    app.str_at(&["status", "operationState", "phase"]).unwrap_or_default()
}

pub(crate) fn message(app: &Value) -> &str {
    app.str_at(&["status", "operationState", "message"]).unwrap_or_default()
}

/// The message of a condition of an Application or set.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = object.at(&["status", "conditions"])?.as_array()?;
    conditions.iter().find(|c| c.str_at(&["type"]) == Some(kind))?.str_at(&["message"])
}

/// An automated Application with prune and self-heal, of a folder of the repository.
pub(crate) fn application(name: &str, path: &str) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": ENGINE, "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {"project": "default", "source": {"repoURL": URL, "path": path},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": name},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"]}}})
}

/// A ConfigMap as text.
pub(crate) fn config_map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: \"{value}\"\n")
}
