//! An engine at rest: what nobody asks for takes less memory.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tiphys_value::ResourceKey;
use tokio::time::Instant;

use crate::{app_state::AppMemory, blocking::blocking, destinations::Clusters};

/// When what nobody asked for was last let rest.
pub(crate) struct LastRest(Mutex<Instant>);

impl Default for LastRest {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl LastRest {
    /// Whether that is due, which it is not again for a while then.
    fn is_due(&self, after: Duration) -> bool {
        let mut last = self.0.lock();
        if last.elapsed() < after {
            return false;
        }
        *last = Instant::now();
        true
    }

    /// Lets rest what nobody has asked for, if that was not done for a while; never if there is no such time.
    pub(crate) fn compact_when_due(
        &self,
        after: Option<Duration>,
        clusters: &Arc<Clusters>,
        apps: &Arc<AppMemory>,
    ) {
        if !after.is_some_and(|after| self.is_due(after)) {
            return;
        }
        let (clusters, apps) = (clusters.clone(), apps.clone());
        tokio::spawn(async move {
            // What was not let rest now is the next time.
            let _ = blocking(move || compact_idle_caches(&clusters, &apps)).await;
        });
    }
}

fn compact_idle_caches(clusters: &Clusters, apps: &AppMemory) {
    clusters
        .statuses()
        .iter()
        .filter_map(|seen| seen.cluster.as_ref())
        .for_each(|cluster| cluster.cache.pack_idle(may_rest));
    apps.targets().iter().for_each(|targets| targets.rest());
}

/// Whether an object may rest. All Secrets are looked through again and again, and most of one is a few long
/// texts, which take no more memory than what they are packed into.
fn may_rest(key: &ResourceKey) -> bool {
    !(key.group.is_empty() && key.kind == "Secret")
}
