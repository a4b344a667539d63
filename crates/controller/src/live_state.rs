//! The live objects that concern an Application.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_cluster::{Cluster, Discovery, LiveCache};
use tiphys_model::Application;
use tiphys_sync::{KindCatalog, KindInfo, LiveObject, target_key};
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey, Value};

use crate::installation::Installation;

/// The kinds that a cluster serves, as the planner asks for them.
pub(crate) struct Kinds(pub Arc<Discovery>);

impl KindCatalog for Kinds {
    fn lookup(&self, gvk: &GroupVersionKind) -> Option<KindInfo> {
        self.0.resource(gvk).map(|known| KindInfo { namespaced: known.namespaced })
    }
}

/// The keys of targets.
pub(crate) fn target_keys(
    targets: &[Arc<Value>],
    namespace: &str,
    kinds: &dyn KindCatalog,
) -> BTreeSet<ResourceKey> {
    targets
        .iter()
        .filter(|target| !target.name().is_empty())
        .map(|target| target_key(target, namespace, kinds))
        .collect()
}

/// The objects that an Application's operation is about beside its targets: the destination namespace
/// and whatever it has a result for.
pub(crate) fn also_concerned(app: &Application) -> BTreeSet<ResourceKey> {
    let mut keys = BTreeSet::new();
    let namespace = &app.spec.destination.namespace;
    if !namespace.is_empty() {
        keys.insert(ResourceKey::new("", "Namespace", "", namespace));
    }
    let result = app.status.operation_state.as_ref().and_then(|state| state.sync_result.as_ref());
    for entry in result.iter().flat_map(|result| &result.resources) {
        keys.insert(ResourceKey::new(&entry.group, &entry.kind, &entry.namespace, &entry.name));
    }
    keys
}

/// Objects that an Application tracks, those at the keys of its targets and those of `also`, with
/// their health. An object is given in the version in which its target is written.
pub(crate) async fn gather(
    cache: &LiveCache,
    installation: &Installation,
    instance: &str,
    namespace: &str,
    targets: &[Arc<Value>],
    also: &BTreeSet<ResourceKey>,
) -> BTreeMap<ResourceKey, LiveObject> {
    let kinds = Kinds(cache.cluster().discovery());
    let mut live: BTreeMap<ResourceKey, Arc<Value>> =
        cache.tracked_by(instance).into_iter().map(|object| (object.resource_key(), object)).collect();
    live.extend(also.iter().filter_map(|key| Some((key.clone(), cache.peek(key)?))));
    for target in targets.iter().filter(|target| !target.name().is_empty()) {
        let key = target_key(target, namespace, &kinds);
        let Some(object) = cache.peek(&key) else { continue };
        let object = if object.api_version() == target.api_version() {
            object
        } else {
            in_version(cache.cluster(), &target.gvk(), &key).await.unwrap_or(object)
        };
        live.insert(key, object);
    }
    live.into_iter()
        .map(|(key, object)| {
            let health = installation.health(&object);
            (key, LiveObject { object, health })
        })
        .collect()
}

/// An object in another version than the one that is followed.
async fn in_version(cluster: &Cluster, gvk: &GroupVersionKind, key: &ResourceKey) -> Option<Arc<Value>> {
    let resource = cluster.discovery().resource(gvk)?.clone();
    cluster.get(&resource, &key.namespace, &key.name).await.ok().flatten().map(Arc::new)
}
