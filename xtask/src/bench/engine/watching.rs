//! Until Applications are Synced.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::bail;
use parking_lot::Mutex;
use serde_json::Value;
use tiphys_cluster::Report;
use tiphys_value::ObjectExt;

use super::{
    platform::{ENGINE, Platform},
    process::Engine,
};

/// A run that takes longer measures nothing.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Whether an Application is Synced by an operation that succeeded, to a revision if one is wanted.
fn is_synced(app: &Value, revision: &str) -> bool {
    let operation =
        |path: &[&str]| app.at(&["status", "operationState"]).and_then(|state| state.str_at(path));
    app.str_at(&["status", "sync", "status"]) == Some("Synced")
        && operation(&["phase"]) == Some("Succeeded")
        && (revision.is_empty() || operation(&["syncResult", "revision"]) == Some(revision))
}

impl Platform {
    /// Waits until so many Applications are Synced, to a revision if one is given; returns how long that took
    /// since an instant.
    pub(super) async fn until_synced(
        &self,
        count: usize,
        revision: &str,
        engine: &Engine,
        began: Instant,
    ) -> anyhow::Result<Duration> {
        let resource = self.applications().await?;
        let done: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let see = |app: &Value| {
            let mut done = done.lock();
            if is_synced(app, revision) {
                done.insert(app.name().to_owned());
            }
            done.len() < count
        };
        let watch = self.cluster.watch(&resource, ENGINE, |report| match report {
            Report::All(list) => list.items.iter().all(&see),
            Report::Upsert(app) => see(&app),
            Report::Delete(_) | Report::Failed(_) => true,
        });
        if tokio::time::timeout(PATIENCE, watch).await.is_err() {
            let seen = done.lock().len();
            bail!("after {PATIENCE:?} only {seen} of {count}; the engine used {:?}", engine.usage()?.cpu);
        }
        Ok(began.elapsed())
    }
}
