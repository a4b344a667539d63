//! A cluster that can be forked.

use std::sync::Arc;

use jiff::Timestamp;
use tiphys_apiserver::{
    ApiError, ApiServer, ApiServerOptions, Outbound, ServiceNetwork, SharedClock, StateError, TokioClock,
};
use tiphys_cluster::Cluster;
use tiphys_world::{Behaviours, Driver, Settings};
use tokio::task::JoinHandle;

/// When the clock of a fresh site starts: 2026-01-05T08:00:00Z, a Monday. Begun during a second, two runs of
/// one seed would differ in which times are equal.
pub(crate) const STARTS_AT: i64 = 1_767_600_000;

/// How a fresh site is.
#[derive(Clone, Debug, Default)]
pub struct SiteOptions {
    /// Makes uids and generated names repeatable.
    pub seed: u64,
    /// Where Services get their addresses from; the usual range if not given.
    pub service_network: Option<ServiceNetwork>,
    /// How the world behind the API server is.
    pub world: Settings,
    /// Nothing outside of the process is called: webhooks that name a URL, or a Service without pods, count
    /// as allowing.
    pub is_isolated: bool,
}

/// Why a site cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The API server does not start.
    #[error("the embedded API server does not start: {0}")]
    State(#[from] StateError),
    /// The API server refuses the first objects.
    #[error("the embedded API server refuses what every cluster has: {0}")]
    Api(String),
}

impl From<ApiError> for SiteError {
    fn from(error: ApiError) -> Self {
        Self::Api(error.to_string())
    }
}

/// A cluster at work in the present runtime. Dropping it ends its world.
pub struct Site {
    server: ApiServer,
    settings: Settings,
    world: JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.world.abort();
    }
}

impl Site {
    /// A cluster with nodes and nothing else. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// The API server does not start.
    pub fn fresh(options: SiteOptions) -> Result<Self, SiteError> {
        let now = Timestamp::from_second(STARTS_AT).unwrap_or_default();
        let server = ApiServer::new(ApiServerOptions {
            seed: Some(options.seed),
            clock: Some(clock_from(now)),
            service_network: options.service_network,
            outbound: if options.is_isolated { Outbound::Assume } else { Outbound::Call },
            ..ApiServerOptions::default()
        })?;
        Self::start(server, options.world)
    }

    pub(crate) fn start(server: ApiServer, settings: Settings) -> Result<Self, SiteError> {
        let driver = Driver::new(&server, settings.clone())?;
        let world = tokio::spawn(driver.run());
        Ok(Self { server, settings, world })
    }

    /// The API server.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The cluster as people reach it.
    pub fn cluster(&self) -> Cluster {
        Cluster::new(self.server.service())
    }

    /// The present, by the clock of the cluster.
    pub fn now(&self) -> Timestamp {
        self.server.now()
    }

    /// The clock of the cluster, for an engine on it.
    pub fn clock(&self) -> tiphys_model::Clock {
        let server = self.server.clone();
        tiphys_model::Clock::new(move || server.now())
    }

    /// The cluster as it is now, in which no time passes.
    pub fn still(&self) -> Still {
        Still { at: self.now(), server: self.server.fork(), settings: self.settings.clone() }
    }
}

/// A cluster in which no time passes, from which any number of sites start, each on its own.
#[derive(Clone)]
pub struct Still {
    server: ApiServer,
    settings: Settings,
    at: Timestamp,
}

impl Still {
    /// A cluster that was found as it is, such as one that a dump was imported into.
    #[must_use]
    pub fn found(server: ApiServer, at: Timestamp, world: Settings) -> Self {
        Self { server, settings: world, at }
    }

    /// A site that goes on from here. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// The API server refuses what every cluster has.
    pub fn resume(&self) -> Result<Site, SiteError> {
        Site::start(self.server.fork_with_clock(clock_from(self.at)), self.settings.clone())
    }

    /// The same cluster in a world with other rules.
    #[must_use]
    pub fn with_rules(&self, rules: Behaviours) -> Self {
        let mut still = self.clone();
        still.settings.behaviours = rules;
        still
    }

    /// The API server, which nobody writes to.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// When it was.
    pub fn at(&self) -> Timestamp {
        self.at
    }
}

pub(crate) fn clock_from(at: Timestamp) -> SharedClock {
    Arc::new(TokioClock::starting_at(at))
}

/// A runtime of one thread whose clock stands still while anything is to be done, and otherwise jumps to what
/// comes next.
///
/// # Errors
/// The system gives no timers.
pub fn virtual_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()
}
