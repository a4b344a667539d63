//! A site with the engine at work on a repository.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tiphys_cluster::{Cluster, ClusterError};
use tiphys_controller::{Controller, Opener, Settings};
use tiphys_source::{Outages, Repositories};
use tokio::time::{Instant, sleep_until};

use crate::{
    Recorder, Site,
    request_faults::{Faults, RequestFault},
};

/// Changes are gathered for so long before they are looked at.
const GATHER: Duration = Duration::from_secs(1);

/// What a watcher wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To look again a moment after something changed, or after this long.
    Wait(Option<Duration>),
    /// The end.
    End,
}

/// Who looks at a stage whenever something changed, and decides when it is over.
pub trait Watcher {
    /// Looks once.
    fn next_step(&mut self, stage: &mut Stage) -> impl Future<Output = Next>;
}

/// A cluster and the engine at work on it.
pub struct Stage {
    site: Site,
    /// Further clusters, by the address that stands for each.
    beside: Arc<Mutex<BTreeMap<String, Cluster>>>,
    /// The same with what moves them.
    sites_beside: Vec<(String, Site)>,
    /// What goes wrong between the engine and the cluster.
    pub faults: Faults,
    /// Hosts of Git and of charts that are away.
    pub outages: Outages,
    repositories: Arc<Repositories>,
    settings: Settings,
    engine: Option<Controller>,
    began: Timestamp,
}

impl Stage {
    /// A stage on which nothing happens before [`Self::start`]. The engine takes its time from the site,
    /// works on one Application at a time so that its history is that of the seed, and dials no cluster.
    pub fn new(site: Site, repositories: &Repositories, mut settings: Settings) -> Self {
        let beside: Arc<Mutex<BTreeMap<String, Cluster>>> = Arc::default();
        let away = {
            let faults = Faults::default();
            faults.plan(|_, _, _| Some(RequestFault::Unreachable));
            Cluster::new(faults.before(site.server().service()))
        };
        let known = beside.clone();
        settings.opener = Some(Opener::new(move |server| {
            let known = known.lock();
            Some(known.get(server).unwrap_or(&away).clone())
        }));
        settings.clock = site.clock();
        settings.workers = 1;
        let began = site.now();
        let outages = Outages::default();
        Self {
            site,
            beside,
            sites_beside: Vec::new(),
            faults: Faults::default(),
            repositories: Arc::new(repositories.with_outages(outages.clone())),
            outages,
            settings,
            engine: None,
            began,
        }
    }

    /// The cluster of the engine.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// All clusters, the engine's own first.
    pub fn sites(&self) -> impl Iterator<Item = &Site> {
        std::iter::once(&self.site).chain(self.sites_beside.iter().map(|(_, site)| site))
    }

    /// Puts another cluster beside the engine's own, which the engine reaches under an address.
    pub fn put_beside(&mut self, server: &str, site: Site) {
        let mut beside = self.beside.lock();
        beside.insert(server.to_owned(), site.cluster());
        self.sites_beside.push((server.to_owned(), site));
    }

    /// The clusters beside the engine's own, by the address that stands for each.
    pub fn beside(&self) -> impl Iterator<Item = (&str, &Site)> {
        self.sites_beside.iter().map(|(server, site)| (server.as_str(), site))
    }

    /// The engine, while it lives.
    pub fn engine(&self) -> Option<&Controller> {
        self.engine.as_ref()
    }

    /// Starts the engine.
    ///
    /// # Errors
    /// The cluster does not answer it.
    pub async fn start(&mut self) -> Result<(), ClusterError> {
        let cluster = Cluster::new(self.faults.before(self.site.server().service()));
        let engine = Controller::start(cluster, self.repositories.clone(), self.settings.clone()).await?;
        self.engine = Some(engine);
        Ok(())
    }

    /// Kills the engine as SIGKILL would: whatever it was doing ends here.
    pub fn kill(&mut self) {
        self.engine = None;
    }

    /// How much time has passed on the stage.
    pub fn elapsed(&self) -> Duration {
        Duration::try_from(self.site.now().duration_since(self.began)).unwrap_or_default()
    }

    /// When it was at the beginning.
    pub fn began(&self) -> Timestamp {
        self.began
    }

    /// Lets time pass until the watcher ends it, or `until` has passed since the beginning. Returns whether
    /// the watcher ended it.
    pub async fn play(&mut self, until: Duration, watcher: &mut impl Watcher) -> bool {
        let end = self.began.checked_add(SignedDuration::try_from(until).unwrap_or(SignedDuration::MAX));
        let left = end.unwrap_or(Timestamp::MAX).duration_since(self.site.now());
        let end = Instant::now() + Duration::try_from(left).unwrap_or_default();
        loop {
            let revisions: Vec<u64> = self.sites().map(|site| site.server().revision()).collect();
            let wait = match watcher.next_step(self).await {
                Next::End => return true,
                Next::Wait(wait) => wait,
            };
            if Instant::now() >= end {
                return false;
            }
            let due = wait.map_or(end, |wait| end.min(Instant::now() + wait));
            let changes = self.sites().zip(revisions).map(|(site, revision)| {
                let server = site.server().clone();
                Box::pin(async move { server.changed_after(revision).await })
            });
            let changed = futures::future::select_all(changes.collect::<Vec<_>>());
            tokio::select! {
                biased;
                _ = changed => sleep_until(due.min(Instant::now() + GATHER)).await,
                () = sleep_until(due) => {}
            }
        }
    }

    /// Writes down what happens in every cluster from now on.
    pub fn recorder(&self) -> Recorder {
        Recorder::start(
            self.sites().map(|site| site.server().clone()).collect(),
            self.settings.tracking.clone(),
        )
    }
}
