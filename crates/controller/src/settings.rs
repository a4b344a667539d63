//! How the engine behaves.

use std::{sync::Arc, time::Duration};

use tiphys_cluster::Cluster;
use tiphys_health::HealthSettings;
use tiphys_model::{ArgoSettings, Clock, Destination, Tracking, names};
use tiphys_sync::{AutoSettings, SyncSettings};
use tiphys_worker::Workers;

use crate::{Shadow, Share};

/// Which destinations there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Destinations {
    /// Every destination is the one cluster that the engine has.
    #[default]
    AllHere,
    /// The cluster of the engine itself, by its address or name, and those that Secrets declare.
    InCluster,
    /// As [`Self::InCluster`]; and each namespace with Applications is that of an engine of its own, as with
    /// [`Self::AllHere`].
    Apart,
}

/// Opens declared clusters by other means than their address: embedded ones, by the address that stands for
/// them.
#[derive(Clone)]
pub struct Opener(Arc<Open>);

type Open = dyn Fn(&str) -> Option<Cluster> + Send + Sync;

impl Opener {
    /// An opener that asks a function; it answers `None` for clusters that are reached as usual.
    pub fn new(open: impl Fn(&str) -> Option<Cluster> + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }

    /// The cluster of an address.
    pub(crate) fn open(&self, server: &str) -> Option<Cluster> {
        (self.0)(server)
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Opener")
    }
}

/// Processes that render.
#[derive(Clone)]
pub struct Renderers(pub Arc<Workers>);

impl std::fmt::Debug for Renderers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Renderers")
    }
}

/// How the engine behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Namespace of the engine: Applications in it are called by name alone.
    pub namespace: String,
    /// How objects are marked.
    pub tracking: Tracking,
    /// Rules of the planner.
    pub sync: SyncSettings,
    /// Rules of automated sync.
    pub auto: AutoSettings,
    /// Rules of health.
    pub health: HealthSettings,
    /// Which destinations there are.
    pub destinations: Destinations,
    /// Who opens declared clusters, if not all of them are reached by their addresses.
    pub opener: Option<Opener>,
    /// How many Applications are worked on at once.
    pub workers: usize,
    /// The processes that render, where what renders is not trusted with this one; `None` renders here.
    pub renderers: Option<Renderers>,
    /// How often remote repositories are asked for news.
    pub refresh: Duration,
    /// Nobody waits for Applications whose sources cannot be had: where a repository is tried out away from
    /// the hosts that it names, what comes after them is tried too.
    pub pass_out_of_reach: bool,
    /// How long what was pruned is kept as a record; zero keeps none.
    pub tombstones: Duration,
    /// Where time comes from.
    pub clock: Clock,
    /// Changes of live objects are gathered for so long before an Application is looked at.
    pub gather_live: Duration,
    /// How long nobody has to have asked for an object until it is kept in less memory; `None` keeps all as
    /// they are.
    pub rest_after: Option<Duration>,
    /// What happens to Applications is recorded as Kubernetes Events.
    pub events: bool,
    /// What this engine has of the work, where several share it; `None` has all of it.
    pub share: Option<Arc<Share>>,
    /// Another engine is in charge: decisions are told, and nothing is written.
    pub shadow: Option<Shadow>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "argocd".into(),
            tracking: Tracking::default(),
            sync: SyncSettings::default(),
            auto: AutoSettings::default(),
            health: HealthSettings::default(),
            destinations: Destinations::default(),
            opener: None,
            workers: 16,
            renderers: None,
            refresh: Duration::from_secs(120),
            pass_out_of_reach: false,
            tombstones: Duration::from_secs(7 * 24 * 3600),
            clock: Clock::default(),
            gather_live: Duration::from_millis(10),
            rest_after: None,
            events: false,
            share: None,
            shadow: None,
        }
    }
}

impl Settings {
    /// The settings with the tracking that `argocd-cm` asks for, where it asks for one.
    #[must_use]
    pub fn with_tracking(mut self, argo: &ArgoSettings) -> Self {
        if argo.tracking != Tracking::default() {
            self.tracking = argo.tracking.clone();
        }
        self
    }

    /// Checks that a destination is one, known or not.
    ///
    /// # Errors
    /// With what is wrong with it.
    pub fn check_destination(&self, destination: &Destination) -> Result<(), String> {
        let Destination { server, name, .. } = destination;
        match (server.is_empty(), name.is_empty()) {
            (true, true) => Err("the destination has neither server nor name".into()),
            (false, false) => Err(format!(
                "the destination has both server {server:?} and name {name:?}; only one may be set"
            )),
            _ => Ok(()),
        }
    }
}

/// Whether a destination is the cluster of the engine itself by its address or name.
pub(crate) fn is_own(destination: &Destination) -> bool {
    destination.server.trim_end_matches('/') == names::IN_CLUSTER_SERVER
        || destination.name == names::IN_CLUSTER_NAME
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(server: &str, name: &str) -> Destination {
        Destination { server: server.into(), name: name.into(), namespace: String::new() }
    }

    #[test]
    fn destinations_must_be_one() {
        let all = Settings::default();
        assert!(all.check_destination(&destination("https://prod.example.com", "")).is_ok());
        assert!(all.check_destination(&destination("", "")).is_err());
        assert!(all.check_destination(&destination("https://a", "b")).is_err());
        assert!(is_own(&destination("https://kubernetes.default.svc/", "")));
        assert!(is_own(&destination("", "in-cluster")) && !is_own(&destination("", "prod")));
    }
}
