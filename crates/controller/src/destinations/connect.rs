//! Keeping the connection to a declared cluster: connect, follow, ask now and then whether it is still there.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tiphys_cluster::{Change, ClusterError, LiveCache};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::{Clusters, ConnectedCluster, Declared, Follower, State};
use crate::settings::Settings;

/// First and longest wait between attempts to connect.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long an attempt may take, the first lists included.
const ATTEMPT: Duration = Duration::from_secs(180);
/// How often a connected cluster is asked whether it is there, and how long it may take to say so.
const HEARTBEAT: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(15));

/// Connects to a declared cluster, and follows it for as long as the engine lives.
pub(super) async fn keep(shared: Weak<Clusters>, declared: Declared) {
    let server = declared.info.server.clone();
    let mut wait = BACKOFF.0;
    let (cluster, changes) = loop {
        let why = match tokio::time::timeout(ATTEMPT, open(&shared, &declared)).await {
            Ok(Ok(Some(opened))) => break opened,
            Ok(Ok(None)) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {ATTEMPT:?}"),
        };
        let Some(clusters) = shared.upgrade() else { return };
        tracing::warn!(cluster = %declared.info.name, %server, "cannot be reached: {why}");
        clusters.set_state(&server, State::Connecting(Some(why)));
        drop(clusters);
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(BACKOFF.1);
    };
    let Some(clusters) = shared.upgrade() else { return };
    tracing::info!(cluster = %declared.info.name, %server, "connected");
    clusters.set_state(&server, State::Ready(cluster.clone()));
    drop(clusters);
    tokio::join!(
        route(&shared, &cluster, changes),
        watch(&shared, &cluster),
        follow_kinds(&shared, &cluster)
    );
}

type Opened = (Arc<ConnectedCluster>, Receiver<Arc<Change>>);

async fn open(shared: &Weak<Clusters>, declared: &Declared) -> Result<Option<Opened>, ClusterError> {
    let Some((tracking, shadow, workers, opener, share)) = shared.upgrade().map(|clusters| {
        let Settings { tracking, shadow, workers, opener, share, .. } = clusters.settings.clone();
        (tracking, shadow.is_some(), workers, opener, share)
    }) else {
        return Ok(None);
    };
    let cluster = match opener.and_then(|opener| opener.open(&declared.info.server)) {
        Some(cluster) => cluster,
        None => declared.access()?.open().await?,
    };
    let cluster = if shadow { cluster.read_only() } else { cluster };
    let cluster = match &share {
        Some(share) => cluster.fenced(share.fence()),
        None => cluster,
    };
    let version = cluster.version().await?;
    let mark = move |object: &tiphys_value::Value| tracking.owner(object);
    let cache = LiveCache::start_in(cluster, declared.scope.clone(), mark).await?;
    let changes = cache.subscribe();
    cache.ready().await;
    let cluster = ConnectedCluster::new(&declared.info.server, false, cache, version, workers);
    Ok(Some((Arc::new(cluster), changes)))
}

/// Takes changes of the live state to the Applications that they concern.
async fn route(shared: &Weak<Clusters>, cluster: &Arc<ConnectedCluster>, mut changes: Receiver<Arc<Change>>) {
    loop {
        let change = changes.recv().await;
        let Some(follower) = follower_of(shared) else { return };
        match change {
            Ok(change) => follower.object_changed(cluster, &change),
            Err(RecvError::Lagged(_)) => follower.cluster_changed(&cluster.server),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Follows what a cluster serves.
async fn follow_kinds(shared: &Weak<Clusters>, cluster: &Arc<ConnectedCluster>) {
    loop {
        cluster.new_kinds().await;
        let Some(follower) = follower_of(shared) else { return };
        follower.cluster_changed(&cluster.server);
    }
}

fn follower_of(clusters: &Weak<Clusters>) -> Option<Arc<dyn Follower>> {
    clusters.upgrade()?.follower.upgrade()
}

/// Notices that a cluster is gone, and that it is back.
async fn watch(shared: &Weak<Clusters>, cluster: &Arc<ConnectedCluster>) {
    let mut lost = false;
    loop {
        tokio::time::sleep(HEARTBEAT.0).await;
        let why = match tokio::time::timeout(HEARTBEAT.1, cluster.cache.cluster().version()).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {:?}", HEARTBEAT.1)),
        };
        if why.is_some() == lost {
            continue;
        }
        lost = why.is_some();
        let Some(clusters) = shared.upgrade() else { return };
        tracing::info!(server = %cluster.server, "{}", why.as_deref().unwrap_or("answers again"));
        clusters.set_state(
            &cluster.server,
            match why {
                Some(why) => State::Lost(cluster.clone(), why),
                None => State::Ready(cluster.clone()),
            },
        );
    }
}
