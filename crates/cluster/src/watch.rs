//! One kind's list and watch, for ever.

use std::time::Duration;

use futures::TryStreamExt;
use http::Request;
use kube::core::WatchEvent;
use tiphys_value::{ObjectExt, Value};

use crate::{Cluster, ClusterError, List, Resource, client::with_type, object::Object};

/// The API server ends a watch after this many seconds; it is then taken up again.
const WATCH_SECONDS: u32 = 290;
/// First and longest wait after a failure.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// What a watch reports.
pub enum Report {
    /// All objects that there are; whatever else was known is gone.
    All(List),
    /// An object was created or changed.
    Upsert(Value),
    /// An object was deleted.
    Delete(Value),
    /// The list could not be had or the watch broke off; it is taken up again.
    Failed(ClusterError),
}

impl Cluster {
    /// Reports a kind's objects, of one namespace or (empty) of all, until `report` returns `false`. What
    /// breaks off is taken up again.
    pub async fn watch(&self, resource: &Resource, namespace: &str, report: impl FnMut(Report) -> bool) {
        follow(self.clone(), resource.clone(), namespace.to_owned(), report).await;
    }
}

/// Reports a kind's objects until `report` returns `false`.
pub(crate) async fn follow(
    cluster: Cluster,
    resource: Resource,
    namespace: String,
    mut report: impl FnMut(Report) -> bool,
) {
    let mut wait = BACKOFF.0;
    loop {
        let failure = match cluster.list(&resource, &namespace).await {
            Ok(list) => {
                wait = BACKOFF.0;
                let from = list.resource_version.clone();
                if !report(Report::All(list)) {
                    return;
                }
                match follow_from(&cluster, &resource, &namespace, from, &mut report).await {
                    Ok(()) => return,
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        if !failure.is_gone() {
            tracing::debug!(kind = %resource.gvk.kind, error = %failure, "watch broke off");
            if !report(Report::Failed(failure)) {
                return;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(BACKOFF.1);
        }
    }
}

/// Watches from a resource version; `Ok` when nobody listens any more.
async fn follow_from(
    cluster: &Cluster,
    resource: &Resource,
    namespace: &str,
    mut from: String,
    report: &mut impl FnMut(Report) -> bool,
) -> Result<(), ClusterError> {
    loop {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={from}",
            resource.path(namespace, "")
        );
        let request = Request::builder()
            .uri(path)
            .header("accept", "application/json")
            .body(Vec::new())
            .map_err(|e| ClusterError::Transport(e.to_string()))?;
        let mut events = std::pin::pin!(cluster.client().request_events::<Object>(request).await?);
        let mut heard = false;
        while let Some(event) = events.try_next().await? {
            heard = true;
            let goes_on = match event {
                WatchEvent::Added(Object(object)) | WatchEvent::Modified(Object(object)) => {
                    object.resource_version().clone_into(&mut from);
                    report(Report::Upsert(with_type(object, resource)))
                }
                WatchEvent::Deleted(Object(object)) => {
                    object.resource_version().clone_into(&mut from);
                    report(Report::Delete(with_type(object, resource)))
                }
                WatchEvent::Bookmark(bookmark) => {
                    from = bookmark.metadata.resource_version;
                    true
                }
                WatchEvent::Error(status) => return Err((*status).into()),
            };
            if !goes_on {
                return Ok(());
            }
        }
        if !heard {
            // A server that ends watches at once must not be asked in a tight loop.
            tokio::time::sleep(BACKOFF.0).await;
        }
    }
}
