//! Where the engine is at home: the live state of its own cluster, the settings that it was started with,
//! and what ConfigMaps of that cluster say. Nearly everything is decided by these, and nothing here decides.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::RwLock;
use tiphys_cluster::LiveCache;
use tiphys_model::tiphys_status;
use tiphys_value::ObjectExt;

use crate::{AppKey, installation::Installation, settings::Settings};

/// The engine's own cluster, and how the engine is set up in it.
pub(crate) struct Home {
    /// The live state of the engine's own cluster.
    pub cache: LiveCache,
    /// What the engine was started with.
    pub settings: Settings,
    installation: RwLock<Arc<Installation>>,
}

/// What changed settings make necessary.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingsChange {
    /// They are what they were.
    Nothing,
    /// Every Application has to be looked at.
    Rules,
    /// Every Application has to be rendered, too.
    Rendering,
}

impl Home {
    pub(crate) fn new(cache: LiveCache, settings: Settings, installation: Installation) -> Self {
        Self { cache, settings, installation: RwLock::new(Arc::new(installation)) }
    }

    /// The settings in force.
    pub(crate) fn installation(&self) -> Arc<Installation> {
        self.installation.read().clone()
    }

    /// Takes up changed settings.
    pub(crate) fn read_installation(&self) -> SettingsChange {
        let argo = Installation::present(&self.cache, &self.settings);
        let known = self.installation();
        if argo == known.argo {
            return SettingsChange::Nothing;
        }
        if argo.tracking != known.argo.tracking {
            tracing::warn!("how objects are tracked has changed in argocd-cm; it counts after a restart");
        }
        let renders_anew = argo.rendering != known.argo.rendering;
        let new = Arc::new(Installation::new(&self.settings, argo));
        *self.installation.write() = new;
        if renders_anew { SettingsChange::Rendering } else { SettingsChange::Rules }
    }

    /// The present, by the engine's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }

    /// The Application that a mark names.
    pub(crate) fn app_of(&self, instance: &str) -> AppKey {
        // Names of namespaces hold no underscore.
        let (namespace, name) = instance.split_once('_').unwrap_or((&self.settings.namespace, instance));
        AppKey { namespace: namespace.to_owned(), name: name.to_owned() }
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
}
