//! What the engine's loops share.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use tiphys_cluster::LiveCache;
use tiphys_model::{names, tiphys_status};
use tiphys_source::{DeclaredAccess, Repositories};
use tiphys_value::{ObjectExt, Value};
use tokio::{sync::Notify, time::Instant};

use crate::{
    AppKey, Refresh,
    app_state::Memory,
    destinations::Places,
    idle::Sightings,
    installation::{Installation, Shared},
    metrics::Metrics,
    queue::Queue,
    sets::{Sets, set_kind},
    settings::Settings,
    source_integrity::Keys,
    status_writer::application_kind,
};

/// Edits of files are gathered for so long: editors write in several steps.
pub(crate) const GATHER_EDITS: Duration = Duration::from_millis(120);

/// What is known while the engine runs; what must outlive it is in the cluster.
pub(crate) struct Engine {
    pub cache: LiveCache,
    pub repositories: Arc<Repositories>,
    pub settings: Settings,
    pub places: Places,
    /// The credentials that were declared when they were last read.
    pub credentials: Mutex<Vec<DeclaredAccess>>,
    /// The keys whose signatures are believed.
    pub keys: Mutex<Keys>,
    pub sets: Sets,
    pub queue: Queue,
    /// How often edits were told of.
    pub edits: AtomicU64,
    pub memory: Mutex<HashMap<AppKey, Memory>>,
    pub installation: Shared,
    pub metrics: Metrics,
    /// When what nobody asked for was last let rest.
    pub rested: Mutex<Instant>,
    /// Where revisions were seen a moment ago.
    pub sightings: Sightings,
    /// A deleted project may be free to go.
    pub projects: Notify,
    /// The commit that each revision of a repository (by its address) was last seen to have left.
    pub left: Mutex<HashMap<(String, String), String>>,
}

impl Engine {
    /// The address of the cluster that an Application was last compared with.
    pub(crate) fn server_of(&self, key: &AppKey) -> String {
        let place = self.last_place(key);
        place.map_or_else(|| names::IN_CLUSTER_SERVER.to_owned(), |place| place.server.clone())
    }

    /// The settings in force.
    pub(crate) fn installation(&self) -> Arc<Installation> {
        self.installation.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes up changed settings, and lets every Application be looked at under them.
    pub(crate) fn read_installation(&self) {
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
            self.drop_renderings();
        }
        self.add_all(Refresh::Sources);
    }

    /// Lets an Application be looked at.
    pub(crate) fn add(&self, app: &Value) {
        self.queue.add(AppKey::of_object(app), Refresh::LiveState, Instant::now());
    }

    pub(crate) fn add_all(&self, level: Refresh) {
        for key in self.cache.keys_of(&application_kind()) {
            self.queue.add(AppKey { namespace: key.namespace, name: key.name }, level, Instant::now());
        }
        for key in self.cache.keys_of(&set_kind()) {
            self.sets.queue.add(AppKey { namespace: key.namespace, name: key.name }, level, Instant::now());
        }
    }

    /// Whether the last operation of an Application brought a revision that was refused for good.
    pub(crate) fn was_refused(&self, key: &AppKey, revision: &str) -> bool {
        self.cache.peek(&key.of_application()).is_some_and(|app| {
            let app = tiphys_status::put_back(&app);
            let state =
                |path: &[&str]| app.at(&["status", "operationState"]).and_then(|state| state.str_at(path));
            matches!(state(&["phase"]), Some("Failed" | "Error"))
                && state(&["tiphys", "ending"]).is_some()
                && state(&["syncResult", "revision"]) == Some(revision)
        })
    }

    /// The present, by the engine's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }

    /// Lets the sources of an Application be asked for news after a while.
    pub(crate) fn refresh_later(&self, key: &AppKey, wait: Duration) {
        self.queue.add(key.clone(), Refresh::Poll, Instant::now() + wait);
    }

    /// How often edits were told of so far.
    pub(crate) fn edits(&self) -> u64 {
        self.edits.load(Ordering::SeqCst)
    }
}
