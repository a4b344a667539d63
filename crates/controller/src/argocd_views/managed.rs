//! Managed objects as they are and as they should be.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_diff::{encoded_secret, mask_secret};
use tiphys_model::{Application, ResourceDiff, hook};
use tiphys_sync::target_key;
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::{
    home::Home,
    live_state::Kinds,
    reconcile::compare::{Compared, Comparer},
};

/// The objects that an Application wants, and those that are its own though it no longer wants them.
pub(super) fn managed_resources(
    home: &Home,
    comparer: &Comparer,
    app: &Application,
    compared: &Compared,
) -> Vec<ResourceDiff> {
    let targets = targets_of(app, compared);
    let listed = compared.comparison.resources.iter();
    let listed =
        listed.map(|entry| ResourceKey::new(&entry.group, &entry.kind, &entry.namespace, &entry.name));
    let keys: BTreeSet<ResourceKey> = targets.keys().cloned().chain(listed).collect();
    let mut all: Vec<_> =
        keys.into_iter().map(|key| resource_diff(home, comparer, app, compared, &targets, key)).collect();
    all.sort_by(|a, b| {
        (&a.group, &a.kind, &a.namespace, &a.name).cmp(&(&b.group, &b.kind, &b.namespace, &b.name))
    });
    all
}

/// Targets by the keys of their objects; a hook whose name is made up when it is created has none.
fn targets_of(app: &Application, compared: &Compared) -> BTreeMap<ResourceKey, Arc<Value>> {
    let kinds = Kinds(compared.cluster.cache.cluster().discovery());
    let namespace = &app.spec.destination.namespace;
    let named = compared.comparison.targets.iter().filter(|target| !target.name().is_empty());
    named.map(|target| (target_key(target, namespace, &kinds), target.clone())).collect()
}

fn resource_diff(
    home: &Home,
    comparer: &Comparer,
    app: &Application,
    compared: &Compared,
    targets: &BTreeMap<ResourceKey, Arc<Value>>,
    key: ResourceKey,
) -> ResourceDiff {
    let live = compared.live.get(&key).map(|live| &*live.object);
    let target = targets.get(&key).map(|target| as_applied(target, &key));
    let is_hook = target.as_ref().or(live).is_some_and(hook::is_hook);
    let (mut normalized, mut predicted, modified) = match (&target, live) {
        (Some(target), Some(live)) => {
            let difference =
                comparer.difference(app, (target, live), &compared.predictions, &compared.cluster);
            let modified = difference.is_modified();
            (difference.live, difference.predicted, modified)
        }
        (target, live) => (live.cloned().unwrap_or_default(), target.clone().unwrap_or_default(), true),
    };
    let version = live.map(|live| live.resource_version().to_owned()).unwrap_or_default();
    let (mut target, mut live) = (target.unwrap_or_default(), live.cloned().unwrap_or_default());
    let masked = &home.installation().argo.masked_annotations;
    mask_secret(&mut [&mut live, &mut target, &mut normalized, &mut predicted], masked);
    ResourceDiff {
        group: key.group,
        kind: key.kind,
        namespace: key.namespace,
        name: key.name,
        target_state: target.to_string(),
        live_state: live.to_string(),
        hook: is_hook,
        normalized_live_state: normalized.to_string(),
        predicted_live_state: predicted.to_string(),
        resource_version: version,
        modified,
    }
}

/// A target as it is applied: sources often leave the namespace to the destination, and plain values of
/// Secrets are encoded.
fn as_applied(target: &Value, key: &ResourceKey) -> Value {
    let mut target = encoded_secret(target).unwrap_or_else(|| target.clone());
    if let Some(metadata) = target.get_mut("metadata").and_then(Value::as_object_mut)
        && !key.namespace.is_empty()
    {
        metadata.insert("namespace".to_owned(), key.namespace.clone().into());
    }
    target
}
