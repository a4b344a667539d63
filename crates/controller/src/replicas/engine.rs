//! Where the engine asks whose turn it is, and what it does when its share changes.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use tiphys_cluster::{Cluster, ClusterError, PatchType};
use tiphys_model::names;
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey, Value, json};
use tokio::time::Instant;

use super::{
    leases::FIELD_MANAGER,
    ownership::is_ours,
    share::{Look, Turn},
    slots::{Slot, SlotSet},
};
use crate::{
    AppKey, Refresh, Settings,
    destinations::destination_of,
    engine::Engine,
    home::Home,
    sets::{Sets, set_kind},
    status_writer::application_kind,
};

/// How many owners are asked at once to look at something.
const PARALLEL: usize = 16;
/// How long after an Application could not be read it is tried again.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// Takes up what comes to this replica, and forgets what goes.
pub(crate) async fn follow_share(engine: Arc<Engine>) {
    let Some(share) = engine.home.settings.share.clone() else { return };
    loop {
        let new = share.news().await;
        engine.metrics.apps.invalidate();
        let mut destinations = Vec::new();
        for key in engine.home.cache.keys_of(&application_kind()) {
            let key = AppKey { namespace: key.namespace, name: key.name };
            let Some(object) = engine.home.cache.peek(&key.of_application()) else { continue };
            let slot = Slot::of_application(&object);
            if !share.holds(slot) {
                engine.apps.forget(&key);
                continue;
            }
            destinations.extend(destination_of(&object));
            if new.contains(&slot) {
                engine.queue.add(key, Refresh::Sources, Instant::now());
            }
        }
        engine.clusters.leave_all_but(&destinations);
        take_up_sets(&engine.home, &engine.sets, &new);
        if new.contains(&Slot::EXCLUSIVE) {
            engine.projects.notify_one();
        }
    }
}

/// Whether another replica has an Application, or will have it.
pub(crate) fn is_theirs(home: &Home, key: &AppKey) -> bool {
    let object = home.settings.share.as_ref().and_then(|_| home.cache.peek(&key.of_application()));
    object.is_some_and(|object| !is_ours(&home.settings, &object))
}

/// Begins a look at an Application that came out of the queue. `None` if it is another replica's, or not
/// to be looked at yet; it is given back to the queue then.
pub(crate) async fn turn_at(engine: &Engine, key: &AppKey, level: Refresh) -> Option<Look> {
    let later = match turn(&engine.home, key) {
        Turn::Now(look) => match read_anew(engine, key, &look).await {
            Ok(true) => return Some(look),
            Ok(false) => None,
            Err(error) => {
                tracing::warn!(app = %key.name, %error, "cannot be read; it is tried again");
                Some(Instant::now() + READ_PAUSE)
            }
        },
        Turn::From(at) => Some(at),
        Turn::NotOurs => None,
    };
    engine.queue.done(key, false);
    if let Some(at) = later {
        engine.queue.add(key.clone(), level, at);
    }
    None
}

/// As [`turn_at`], of an ApplicationSet.
pub(crate) fn turn_of_set_at(engine: &Engine, key: &AppKey, level: Refresh) -> Option<Look> {
    let later = match turn_of_set(&engine.home.settings, key) {
        Turn::Now(look) => return Some(look),
        Turn::From(at) => Some(at),
        Turn::NotOurs => None,
    };
    engine.sets.queue.done(key, false);
    if let Some(at) = later {
        engine.sets.queue.add(key.clone(), level, at);
    }
    None
}

/// Whether an Application may be looked at now.
fn turn(home: &Home, key: &AppKey) -> Turn {
    let object = home.settings.share.as_ref().and_then(|_| home.cache.peek(&key.of_application()));
    let (Some(share), Some(object)) = (&home.settings.share, object) else {
        // Of one that is gone nothing is written.
        return Turn::Now(Look::unshared());
    };
    share.begin(Slot::of_application(&object), Some(key))
}

/// Whether an ApplicationSet may be looked at now.
fn turn_of_set(settings: &Settings, key: &AppKey) -> Turn {
    match &settings.share {
        None => Turn::Now(Look::unshared()),
        Some(share) => share.begin(Slot::of_set(key), None),
    }
}

/// Makes sure that a look begins with the newest state of an Application: what is followed here may be of
/// before the last replica wrote it. `false` if it is no longer this replica's.
///
/// # Errors
/// The cluster does not say.
async fn read_anew(engine: &Engine, key: &AppKey, look: &Look) -> Result<bool, ClusterError> {
    let Some(share) = &engine.home.settings.share else { return Ok(true) };
    if look.may_be_old && !engine.apps.has_seen(key) {
        let resource = crate::status_writer::application_resource(engine.home.cache.cluster()).await?;
        if let Some(now) = engine.home.cache.cluster().get(&resource, &key.namespace, &key.name).await? {
            engine.home.cache.observe(now);
        }
    }
    let Some(object) = engine.home.cache.peek(&key.of_application()) else { return Ok(true) };
    share.note_version(key, object.resource_version());
    Ok(share.holds(Slot::of_application(&object)))
}

fn take_up_sets(home: &Home, sets: &Sets, new: &SlotSet) {
    for key in home.cache.keys_of(&set_kind()) {
        let key = AppKey { namespace: key.namespace, name: key.name };
        match &home.settings.share {
            Some(share) if !share.holds(Slot::of_set(&key)) => sets.forget(&key),
            _ if new.contains(&Slot::of_set(&key)) => {
                sets.queue.add(key, Refresh::Sources, Instant::now());
            }
            _ => {}
        }
    }
}

/// Has the other replicas look at what is theirs: a Git host tells one replica alone of a push. They are
/// asked as a person would ask them.
pub(crate) fn ask_owners<'k>(
    home: &Home,
    apps: impl Iterator<Item = &'k AppKey>,
    sets: impl Iterator<Item = &'k AppKey>,
) {
    let Some(share) = &home.settings.share else { return };
    let cluster = home.cache.cluster();
    let mut asked = Vec::new();
    for key in apps.filter(|key| is_theirs(home, key)) {
        asked.push(ask(cluster.clone(), "Application", key.clone(), json!({names::REFRESH: "normal"})));
    }
    for key in sets {
        let at = ResourceKey::new(names::GROUP, "ApplicationSet", &key.namespace, &key.name);
        if !share.holds(Slot::of_set(key)) && home.cache.peek(&at).is_some() {
            let annotations = json!({names::APPLICATION_SET_REFRESH: "true"});
            asked.push(ask(cluster.clone(), "ApplicationSet", key.clone(), annotations));
        }
    }
    if !asked.is_empty() {
        tokio::spawn(stream::iter(asked).buffer_unordered(PARALLEL).collect::<()>());
    }
}

/// Asks the replica that has something to look at it.
async fn ask(cluster: Cluster, kind: &'static str, key: AppKey, annotations: Value) {
    if let Err(error) = annotate(&cluster, kind, &key, annotations).await {
        tracing::warn!(%kind, name = %key.name, %error, "the replica that has it cannot be asked to look at it");
    }
}

async fn annotate(
    cluster: &Cluster,
    kind: &str,
    key: &AppKey,
    annotations: Value,
) -> Result<(), ClusterError> {
    let resource = cluster.resource(&GroupVersionKind::from_api_version(names::API_VERSION, kind)).await?;
    let patch = json!({"metadata": {"annotations": annotations}});
    let name = (key.namespace.as_str(), key.name.as_str());
    match cluster.patch(&resource, name, "", PatchType::Merge, &patch, FIELD_MANAGER).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
