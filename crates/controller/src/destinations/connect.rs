//! Keeping the connection to a declared cluster: connect, follow, ask now and then whether it is still there.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tiphys_cluster::{Change, ClusterError, LiveCache};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::{ConnectedCluster, Declared, Follower, Places, State};
use crate::settings::Settings;

/// First and longest wait between attempts to connect.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long an attempt may take, the first lists included.
const ATTEMPT: Duration = Duration::from_secs(180);
/// How often a connected cluster is asked whether it is there, and how long it may take to say so.
const HEARTBEAT: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(15));

/// Connects to a declared cluster, and follows it for as long as the engine lives.
pub(super) async fn keep(shared: Weak<Places>, declared: Declared) {
    let server = declared.info.server.clone();
    let mut wait = BACKOFF.0;
    let (place, changes) = loop {
        let why = match tokio::time::timeout(ATTEMPT, open(&shared, &declared)).await {
            Ok(Ok(Some(opened))) => break opened,
            Ok(Ok(None)) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {ATTEMPT:?}"),
        };
        let Some(places) = shared.upgrade() else { return };
        tracing::warn!(cluster = %declared.info.name, %server, "cannot be reached: {why}");
        places.set_state(&server, State::Connecting(Some(why)));
        drop(places);
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(BACKOFF.1);
    };
    let Some(places) = shared.upgrade() else { return };
    tracing::info!(cluster = %declared.info.name, %server, "connected");
    places.set_state(&server, State::Ready(place.clone()));
    drop(places);
    tokio::join!(route(&shared, &place, changes), watch(&shared, &place), follow_kinds(&shared, &place));
}

type Opened = (Arc<ConnectedCluster>, Receiver<Arc<Change>>);

async fn open(shared: &Weak<Places>, declared: &Declared) -> Result<Option<Opened>, ClusterError> {
    let Some((tracking, shadow, workers, opener, share)) = shared.upgrade().map(|places| {
        let Settings { tracking, shadow, workers, opener, share, .. } = places.settings.clone();
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
    let place = ConnectedCluster::new(&declared.info.server, false, cache, version, workers);
    Ok(Some((Arc::new(place), changes)))
}

/// Takes changes of the live state to the Applications that they concern.
async fn route(shared: &Weak<Places>, place: &Arc<ConnectedCluster>, mut changes: Receiver<Arc<Change>>) {
    loop {
        let change = changes.recv().await;
        let Some(follower) = follower_of(shared) else { return };
        match change {
            Ok(change) => follower.object_changed(place, &change),
            Err(RecvError::Lagged(_)) => follower.cluster_changed(&place.server),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Follows what a cluster serves.
async fn follow_kinds(shared: &Weak<Places>, place: &Arc<ConnectedCluster>) {
    loop {
        place.new_kinds().await;
        let Some(follower) = follower_of(shared) else { return };
        follower.cluster_changed(&place.server);
    }
}

fn follower_of(places: &Weak<Places>) -> Option<Arc<dyn Follower>> {
    places.upgrade()?.follower.upgrade()
}

/// Notices that a cluster is gone, and that it is back.
async fn watch(shared: &Weak<Places>, place: &Arc<ConnectedCluster>) {
    let mut lost = false;
    loop {
        tokio::time::sleep(HEARTBEAT.0).await;
        let why = match tokio::time::timeout(HEARTBEAT.1, place.cache.cluster().version()).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {:?}", HEARTBEAT.1)),
        };
        if why.is_some() == lost {
            continue;
        }
        lost = why.is_some();
        let Some(places) = shared.upgrade() else { return };
        tracing::info!(server = %place.server, "{}", why.as_deref().unwrap_or("answers again"));
        places.set_state(
            &place.server,
            match why {
                Some(why) => State::Lost(place.clone(), why),
                None => State::Ready(place.clone()),
            },
        );
    }
}
