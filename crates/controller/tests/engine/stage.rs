//! A repository, an embedded cluster with everything behind it, and the engine; under a paused clock hours
//! pass in no time.

use std::{fs, sync::Arc, time::Duration};

use jiff::Timestamp;
use tempfile::TempDir;
use tiphys_apiserver::{ApiServer, ApiServerOptions};
use tiphys_cluster::{ApplyOptions, Cluster, PatchType, Propagation, Resource};
use tiphys_controller::{Clock, Controller, Settings, crds};
use tiphys_source::{Repositories, WorkingTree};
use tiphys_value::{GroupVersionKind, ObjectExt, Value, json};
use tiphys_world::Driver;
use tokio::{task::JoinHandle, time::Instant};

/// The address under which manifests of the tests name their repository.
pub const URL: &str = "https://git.example.com/acme/shop.git";
/// Namespace of the engine.
pub const ENGINE: &str = "argocd";
/// The kind Application.
pub const APPLICATION: (&str, &str) = ("argoproj.io/v1alpha1", "Application");
/// The kind ApplicationSet.
pub const SET: (&str, &str) = ("argoproj.io/v1alpha1", "ApplicationSet");
/// The kind ConfigMap.
pub const CONFIG_MAP: (&str, &str) = ("v1", "ConfigMap");

/// How much virtual time passes before a test gives up.
const PATIENCE: Duration = Duration::from_secs(8 * 3600);

pub struct Stage {
    dir: TempDir,
    pub server: ApiServer,
    pub cluster: Cluster,
    repositories: Arc<Repositories>,
    settings: Settings,
    pub engine: Option<Controller>,
    world: JoinHandle<()>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.world.abort();
    }
}

impl Stage {
    /// With the engine at work and default settings.
    pub async fn new(files: &[(&str, &str)]) -> Self {
        Self::with(files, |_| {}).await
    }

    /// With the engine at work.
    pub async fn with(files: &[(&str, &str)], change: impl FnOnce(&mut Settings)) -> Self {
        let mut stage = Self::idle(files, change).await;
        stage.start().await;
        stage
    }

    /// Without the engine.
    pub async fn idle(files: &[(&str, &str)], change: impl FnOnce(&mut Settings)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let repositories = Arc::new(Repositories::new(None, false));
        let options = ApiServerOptions { seed: Some(7), ..ApiServerOptions::default() };
        let server = ApiServer::new(options).unwrap();
        let driver = Driver::new(&server, tiphys_world::Settings::default()).unwrap();
        let world = tokio::spawn(driver.run());
        let cluster = Cluster::new(server.service());
        let clock = server.clone();
        let mut settings = Settings { clock: Clock::new(move || clock.now()), ..Settings::default() };
        change(&mut settings);
        let stage = Self { dir, server, cluster, repositories, settings, engine: None, world };
        for (path, text) in files {
            stage.put(path, text);
        }
        stage.repositories.give_working_tree(Arc::new(WorkingTree::open(stage.dir.path()).unwrap()));
        stage.repositories.add_address(URL);
        for definition in crds::definitions() {
            stage.apply(definition).await;
        }
        stage.cluster.discover().await.unwrap();
        stage.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ENGINE}})).await;
        stage
    }

    /// Starts the engine.
    pub async fn start(&mut self) {
        let settings = self.settings.clone();
        self.engine =
            Some(Controller::start(self.cluster.clone(), self.repositories.clone(), settings).await.unwrap());
    }

    /// Kills the engine as SIGKILL would: whatever it was doing ends here.
    pub fn kill(&mut self) {
        self.engine = None;
    }

    /// Changes settings for the next start.
    pub fn set(&mut self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings);
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Edits a file of the repository.
    pub fn write(&self, path: &str, text: &str) {
        self.put(path, text);
        self.edited(path);
    }

    /// Deletes a file of the repository.
    pub fn remove(&self, path: &str) {
        fs::remove_file(self.dir.path().join(path)).unwrap();
        self.edited(path);
    }

    fn edited(&self, path: &str) {
        if let Some(engine) = &self.engine {
            engine.changed(&[path.to_owned()]);
        }
    }

    pub fn now(&self) -> Timestamp {
        self.server.now()
    }

    /// Server-side apply by a person.
    pub async fn apply(&self, object: Value) -> Value {
        self.apply_as(object, "kubectl").await
    }

    pub async fn apply_as(&self, object: Value, manager: &str) -> Value {
        let options =
            ApplyOptions { field_manager: manager.into(), force: true, dry_run: false, validate: false };
        let shown = format!("{} {}", object.kind(), object.name());
        self.cluster.apply(&object, &options).await.unwrap_or_else(|error| panic!("{shown}: {error}"))
    }

    /// Applies every document of a YAML text.
    pub async fn apply_yaml(&self, text: &str) {
        for document in text.split("\n---\n") {
            self.apply(tiphys_yaml::from_yaml(document).unwrap()).await;
        }
    }

    async fn resource(&self, (api_version, kind): (&str, &str)) -> Resource {
        self.cluster.resource(&GroupVersionKind::from_api_version(api_version, kind)).await.unwrap()
    }

    pub async fn get(&self, kind: (&str, &str), namespace: &str, name: &str) -> Option<Value> {
        self.cluster.get(&self.resource(kind).await, namespace, name).await.unwrap()
    }

    pub async fn list(&self, kind: (&str, &str)) -> Vec<Value> {
        self.cluster.list(&self.resource(kind).await, "").await.unwrap().items
    }

    pub async fn names(&self, kind: (&str, &str), namespace: &str) -> Vec<String> {
        let items = self.cluster.list(&self.resource(kind).await, namespace).await.unwrap().items;
        items.iter().map(|item| item.name().to_owned()).collect()
    }

    /// `kubectl patch --type merge`.
    pub async fn patch(&self, kind: (&str, &str), namespace: &str, name: &str, patch: Value) -> Value {
        let resource = self.resource(kind).await;
        self.cluster
            .patch(&resource, (namespace, name), "", PatchType::Merge, &patch, "kubectl-edit")
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub async fn patch_status(&self, kind: (&str, &str), namespace: &str, name: &str, patch: Value) {
        let resource = self.resource(kind).await;
        self.cluster
            .patch(&resource, (namespace, name), "status", PatchType::Merge, &patch, "test")
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    pub async fn delete(&self, kind: (&str, &str), namespace: &str, name: &str) {
        let resource = self.resource(kind).await;
        self.cluster.delete(&resource, (namespace, name), Propagation::Background, "", false).await.unwrap();
    }

    /// Waits until something holds of the cluster.
    pub async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            let revision = self.server.revision();
            if let Some(found) = look().await {
                return found;
            }
            if start.elapsed() > PATIENCE {
                panic!("never: {what}\n{}", self.report().await);
            }
            let _ = tokio::time::timeout(Duration::from_secs(600), self.server.changed_after(revision)).await;
        }
    }

    /// Waits until an object is there and something holds of it.
    pub async fn until_object(
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
    pub async fn until_app(&self, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.until_object(APPLICATION, ENGINE, name, holds).await
    }

    /// Waits until an Application is Synced and Healthy and nothing runs.
    pub async fn until_green(&self, name: &str) -> Value {
        self.until_app(name, is_green).await
    }

    /// Waits until an object is gone.
    pub async fn until_gone(&self, kind: (&str, &str), namespace: &str, name: &str) {
        let what = format!("{} {name} is gone", kind.1);
        self.until(&what, async || self.get(kind, namespace, name).await.is_none().then_some(())).await;
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
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

pub fn is_green(app: &Value) -> bool {
    app.str_at(&["status", "sync", "status"]) == Some("Synced")
        && app.str_at(&["status", "health", "status"]) == Some("Healthy")
        && app.get("operation").is_none()
        && !matches!(phase(app), "Running" | "Terminating")
}

pub fn phase(app: &Value) -> &str {
    app.str_at(&["status", "operationState", "phase"]).unwrap_or_default()
}

pub fn message(app: &Value) -> &str {
    app.str_at(&["status", "operationState", "message"]).unwrap_or_default()
}

/// The message of a condition of an Application or set.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = object.at(&["status", "conditions"])?.as_array()?;
    conditions.iter().find(|c| c.str_at(&["type"]) == Some(kind))?.str_at(&["message"])
}

/// An automated Application with prune and self-heal, of a folder of the repository.
pub fn application(name: &str, path: &str) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": ENGINE, "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {"project": "default", "source": {"repoURL": URL, "path": path},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": name},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"]}}})
}

/// A ConfigMap as text.
pub fn config_map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: \"{value}\"\n")
}
