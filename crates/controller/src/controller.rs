//! The loops: Applications and ApplicationSets are handed to workers.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tiphys_cluster::{Cluster, ClusterError, LiveCache};
use tiphys_source::Repositories;
use tiphys_value::GroupKind;
use tokio::{
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use crate::{
    AppKey, Refresh,
    affected_apps::{follow_home, route},
    engine::Engine,
    installation::Installation,
    metrics::exposition::exposition,
    projects::follow_projects,
    replicas::{follow_share, is_theirs, turn_at, turn_of_set_at},
    settings::Settings,
    sources::GATHER_EDITS,
    webhook::{self, WebhookError},
};

/// The engine at work. Dropping it ends its tasks.
pub struct Controller {
    engine: Arc<Engine>,
    tasks: Vec<JoinHandle<()>>,
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
        let cluster = match &settings.share {
            Some(share) => cluster.fenced(share.fence()),
            None => cluster,
        };
        let kube_version = cluster.version().await?;
        let argo = Installation::first(&cluster, &settings).await;
        let settings = settings.with_tracking(&argo);
        let tracking = settings.tracking.clone();
        let installation = Installation::new(&settings, argo);
        let cache = LiveCache::start(cluster, move |object| tracking.owner(object)).await?;
        let changes = cache.subscribe();
        cache.ready().await;
        let engine = Engine::new(cache, kube_version, repositories, settings, installation);
        engine.read_clusters();
        engine.read_credentials();
        engine.add_all(Refresh::Sources);
        let tasks = vec![
            tokio::spawn(route(engine.clone(), changes)),
            tokio::spawn(work(engine.clone())),
            tokio::spawn(work_on_sets(engine.clone())),
            tokio::spawn(follow_home(engine.clone())),
            tokio::spawn(follow_projects(engine.home.clone(), engine.projects.clone())),
            tokio::spawn(follow_share(engine.clone())),
        ];
        Ok(Self { engine, tasks })
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The live state that the engine sees.
    pub fn cache(&self) -> &LiveCache {
        &self.engine.home.cache
    }

    /// What is measured, in Prometheus' text form.
    pub fn metrics(&self) -> String {
        exposition(&self.engine)
    }

    /// Whether the body of a request that may tell of a push is worth reading, by its head alone.
    ///
    /// # Errors
    /// No host that is known says so, or it cannot be proved.
    pub fn may_tell(&self, header: &dyn Fn(&str) -> Option<String>) -> Result<(), WebhookError> {
        webhook::may_tell(&self.engine, header)
    }

    /// Takes up what a Git host tells of a push: `header` gives the request's headers by their names in lower
    /// case. How many Applications and ApplicationSets are looked at for it.
    ///
    /// # Errors
    /// No host that is known says so, or it does not prove what `argocd-secret` has for it.
    pub fn heard(&self, header: &dyn Fn(&str) -> Option<String>, body: &[u8]) -> Result<usize, WebhookError> {
        webhook::heard(&self.engine, header, body)
    }

    /// Tells of edits of the working tree: paths relative to its root; an empty one means that
    /// anything may have changed. Only who read what changed is looked at.
    pub fn changed(&self, paths: &[String]) {
        // Before anything is looked through: what is rendered meanwhile asks for it afterwards.
        self.engine.sources.edited();
        for key in self.engine.apps.outdated_by(paths) {
            self.engine.queue.add(key, Refresh::Sources, Instant::now() + GATHER_EDITS);
        }
        self.engine.sets.edited(paths, GATHER_EDITS);
    }

    /// Whether an Application was looked at since the engine started.
    pub fn has_seen(&self, key: &AppKey) -> bool {
        self.engine.apps.has_seen(key)
    }

    /// Whether an Application cannot get on before somebody changes its sources or what it meets in the
    /// cluster: they do not render, or what they render to is refused for good.
    pub fn is_broken(&self, key: &AppKey) -> bool {
        let Some(known) = self.engine.apps.known_rendering(key) else { return false };
        match &known.targets {
            Err(error) => !error.is_transient(),
            Ok(_) => self.engine.home.was_refused(key, known.revision()),
        }
    }

    /// Whether an Application's sources could not be had: nothing is fetched, a host does not answer, a
    /// plugin would have to run.
    pub fn is_out_of_reach(&self, key: &AppKey) -> bool {
        self.engine.apps.is_out_of_reach(key)
    }

    /// The live state of every cluster that is followed, the engine's own first.
    pub fn caches(&self) -> Vec<LiveCache> {
        let clusters = self.engine.clusters.statuses().into_iter().filter_map(|seen| seen.cluster);
        clusters.map(|cluster| cluster.cache.clone()).collect()
    }

    /// The objects of Applications that wait for an operator that is not there
    /// ([`HealthSettings::attended`](tiphys_health::HealthSettings)): how many of each kind.
    pub fn unattended(&self) -> BTreeMap<GroupKind, usize> {
        let installation = self.engine.home.installation();
        let mut kinds = BTreeMap::new();
        for (cluster, key) in self.engine.apps.wanted_objects() {
            // No kind of Kubernetes itself is without somebody.
            let object = key.group.contains('.').then(|| cluster.cache.get(&key)).flatten();
            if object.is_some_and(|object| installation.is_unattended(&object)) {
                *kinds.entry(key.group_kind()).or_default() += 1;
            }
        }
        kinds
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.engine.queue.close();
        self.engine.sets.queue.close();
        self.engine.clusters.close();
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Hands Applications to workers. What they are at ends with it: an engine that was dropped must write
/// nothing more beside the one that takes over.
async fn work(engine: Arc<Engine>) {
    let workers = Arc::new(Semaphore::new(engine.home.settings.workers));
    let mut looks = JoinSet::new();
    while let Some((key, level)) = engine.queue.next().await {
        engine.rested.compact_when_due(engine.home.settings.rest_after, &engine.clusters, &engine.apps);
        // Not even the cluster of what another replica has is connected to.
        if is_theirs(&engine.home, &key) {
            engine.queue.done(&key, false);
            continue;
        }
        // Applications of other clusters wait for workers of their own, where they hold up nobody else.
        let remote = engine.remote_workers(&key, level);
        let own = match &remote {
            Some(_) => None,
            None => workers.clone().acquire_owned().await.ok(),
        };
        let engine = engine.clone();
        while looks.try_join_next().is_some() {}
        looks.spawn(async move {
            let permit = match remote {
                Some(workers) => workers.acquire_owned().await.ok(),
                None => own,
            };
            let Some(look) = turn_at(&engine, &key, level).await else { return };
            let began = std::time::Instant::now();
            let next = match unbroken(engine.reconcile(&key, level)).await {
                Ok(next) => engine.apps.after_losses(&key, next, engine.home.now()),
                Err(panic) => engine.after_panic(&key, &panic).await,
            };
            look.note(&key, next.is_under_way);
            engine.metrics.looked(&key.namespace, engine.server_of(&key), began.elapsed());
            engine.queue.done(&key, next.is_under_way);
            if next.again {
                engine.queue.add(key, Refresh::LiveState, Instant::now());
            } else if let Some(at) = next.at {
                let wait = tiphys_model::time::elapsed(engine.home.now(), at);
                engine.queue.add(key, Refresh::LiveState, Instant::now() + wait);
            }
            drop(permit);
        });
    }
}

/// What a look leads to, or what it panicked with: a fault of ours at one Application must not keep it from
/// being looked at again, nor end the others.
async fn unbroken<T>(look: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(look).catch_unwind().await.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text").to_owned()
    })
}

/// Hands ApplicationSets to workers, as [`work`] does Applications.
async fn work_on_sets(engine: Arc<Engine>) {
    let workers = Arc::new(Semaphore::new(engine.home.settings.workers));
    let mut looks = JoinSet::new();
    while let Some((key, level)) = engine.sets.queue.next().await {
        let Ok(permit) = workers.clone().acquire_owned().await else { return };
        let engine = engine.clone();
        while looks.try_join_next().is_some() {}
        looks.spawn(async move {
            let Some(look) = turn_of_set_at(&engine, &key, level) else { return };
            let began = std::time::Instant::now();
            let next = match unbroken(engine.set_reconciler.reconcile(&key, level)).await {
                Ok(next) => next,
                Err(panic) => engine.set_reconciler.after_panic(&key, &panic).await,
            };
            drop(look);
            engine.metrics.looked_at_set(&key.namespace, &key.name, began.elapsed());
            engine.sets.queue.done(&key, false);
            if let Some(at) = next.at {
                let wait = tiphys_model::time::elapsed(engine.home.now(), at);
                engine.sets.queue.add(key, Refresh::Sources, Instant::now() + wait);
            }
            drop(permit);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::unbroken;

    #[tokio::test]
    async fn a_panic_of_one_look_is_heard_of() {
        let fails = |at: usize| async move {
            tokio::task::yield_now().await;
            [1, 2][at]
        };
        assert_eq!(unbroken(fails(1)).await, Ok(2));
        let panic = unbroken(fails(2)).await.expect_err("there is no third");
        assert!(panic.contains("index out of bounds"), "{panic}");
    }
}
