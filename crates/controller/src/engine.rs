//! The engine: the parts that it is made of, and what makes all Applications be looked at.

use std::sync::{Arc, Weak};

use tiphys_cluster::LiveCache;
use tiphys_model::names;
use tiphys_source::Repositories;
use tokio::{
    sync::{Notify, Semaphore},
    time::Instant,
};

use crate::{
    AppKey, Refresh,
    app_state::AppMemory,
    destinations::{Clusters, ConnectedCluster, Follower},
    finalize::Finalizer,
    home::{Home, SettingsChange},
    idle::LastRest,
    installation::Installation,
    metrics::Metrics,
    project_policy::Policies,
    queue::Queue,
    reconcile::{Operator, Writer, compare::Comparer, render::Renderer},
    sets::{SetReconciler, Sets, set_kind},
    settings::Settings,
    sources::Sources,
    status_writer::application_kind,
};

/// What is known while the engine runs, and who works with it; what must outlive it is in the cluster.
pub(crate) struct Engine {
    /// The engine's own cluster, and how the engine is set up in it.
    pub home: Arc<Home>,
    /// The repositories.
    pub sources: Arc<Sources>,
    /// The clusters that Applications are synced to.
    pub clusters: Arc<Clusters>,
    /// What projects permit.
    pub policies: Arc<Policies>,
    /// What is remembered of Applications.
    pub apps: Arc<AppMemory>,
    /// The Applications that wait to be looked at.
    pub queue: Arc<Queue>,
    /// The ApplicationSets.
    pub sets: Arc<Sets>,
    pub metrics: Arc<Metrics>,
    pub renderer: Arc<Renderer>,
    pub comparer: Arc<Comparer>,
    pub writer: Arc<Writer>,
    pub operator: Operator,
    pub finalizer: Finalizer,
    pub set_reconciler: SetReconciler,
    /// When what nobody asked for was last let rest.
    pub rested: LastRest,
    /// A deleted project may be free to go.
    pub projects: Arc<Notify>,
}

impl Engine {
    /// An engine that has not looked at anything yet. `kube_version` is that of its own cluster.
    pub(crate) fn new(
        cache: LiveCache,
        kube_version: String,
        repositories: Arc<Repositories>,
        settings: Settings,
        installation: Installation,
    ) -> Arc<Self> {
        let workers = settings.workers;
        let own = ConnectedCluster::new(names::IN_CLUSTER_SERVER, true, cache.clone(), kube_version, workers);
        Arc::new_cyclic(|engine: &Weak<Self>| {
            let follower: Weak<dyn Follower> = engine.clone();
            let clusters = Arc::new(Clusters::new(Arc::new(own), settings.clone(), follower));
            let home = Arc::new(Home::new(cache, settings, installation));
            let sources = Arc::new(Sources::new(repositories));
            let policies = Arc::new(Policies::new(home.clone(), sources.clone(), clusters.clone()));
            let apps = Arc::new(AppMemory::default());
            let queue = Arc::new(Queue::default());
            let sets = Arc::new(Sets::default());
            let metrics = Arc::new(Metrics::default());
            let renderer = Arc::new(Renderer::new(home.clone(), sources.clone(), apps.clone()));
            let comparer = Arc::new(Comparer::new(home.clone(), policies.clone(), apps.clone()));
            let writer = Arc::new(Writer::new(home.clone(), apps.clone(), queue.clone(), metrics.clone()));
            let operator = Operator {
                home: home.clone(),
                sources: sources.clone(),
                policies: policies.clone(),
                apps: apps.clone(),
                renderer: renderer.clone(),
                comparer: comparer.clone(),
                writer: writer.clone(),
            };
            let finalizer = Finalizer::new(
                home.clone(),
                clusters.clone(),
                policies.clone(),
                apps.clone(),
                renderer.clone(),
                writer.clone(),
            );
            let set_reconciler = SetReconciler {
                home: home.clone(),
                sources: sources.clone(),
                clusters: clusters.clone(),
                policies: policies.clone(),
                sets: sets.clone(),
            };
            Self {
                home,
                sources,
                clusters,
                policies,
                apps,
                queue,
                sets,
                metrics,
                renderer,
                comparer,
                writer,
                operator,
                finalizer,
                set_reconciler,
                rested: LastRest::default(),
                projects: Arc::default(),
            }
        })
    }

    /// The address of the cluster that an Application was last compared with.
    pub(crate) fn server_of(&self, key: &AppKey) -> String {
        let cluster = self.apps.last_cluster(key);
        cluster.map_or_else(|| names::IN_CLUSTER_SERVER.to_owned(), |cluster| cluster.server.clone())
    }

    /// The workers that an Application needs: `None` are those of the engine's own cluster.
    pub(crate) fn remote_workers(&self, key: &AppKey, level: Refresh) -> Option<Arc<Semaphore>> {
        let last = (level == Refresh::Poll).then(|| self.apps.last_cluster(key)).flatten();
        self.clusters.remote_workers(last, || self.home.cache.peek(&key.of_application()))
    }

    /// Takes up changed settings, and lets every Application be looked at under them.
    pub(crate) fn read_installation(&self) {
        match self.home.read_installation() {
            SettingsChange::Nothing => return,
            SettingsChange::Rules => {}
            SettingsChange::Rendering => self.apps.drop_renderings(),
        }
        self.add_all(Refresh::Sources);
    }

    /// Reads all credentials again; what could not be fetched before is tried again.
    pub(crate) fn read_credentials(&self) {
        let (cache, namespace) = (&self.home.cache, &self.home.settings.namespace);
        let has_other_keys = self.sources.read_keys(cache, namespace);
        if self.sources.read_credentials(cache, namespace) || has_other_keys {
            self.add_all(Refresh::Sources);
        }
    }

    /// Reads the cluster Secrets again; Applications are looked at if any changed.
    pub(crate) fn read_clusters(&self) {
        if self.clusters.read(&self.home.cache, &self.home.settings.namespace) {
            self.add_all(Refresh::LiveState);
        }
    }

    /// Lets all Applications and ApplicationSets be looked at.
    pub(crate) fn add_all(&self, level: Refresh) {
        let app_key = |namespace, name| AppKey { namespace, name };
        for key in self.home.cache.keys_of(&application_kind()) {
            self.queue.add(app_key(key.namespace, key.name), level, Instant::now());
        }
        for key in self.home.cache.keys_of(&set_kind()) {
            self.sets.queue.add(app_key(key.namespace, key.name), level, Instant::now());
        }
    }
}
