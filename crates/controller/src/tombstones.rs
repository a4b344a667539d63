//! What pruning deletes is kept for some time, so that it can be brought back (`tiphys app undo`). The
//! records are Secrets of the engine's namespace, because what was pruned may have been one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tiphys_cluster::{ClusterError, Propagation};
use tiphys_model::{Application, Time, Timestamp, names};
use tiphys_sync::{Batch, LiveObject, Verb};
use tiphys_value::{GroupKind, GroupVersionKind, Map, ObjectExt, ResourceKey, Value, json};

use crate::{destinations::ConnectedCluster, home::Home};

/// How many records of one Application are kept.
const KEPT: usize = 20;
/// What one record may hold, in bytes of JSON: an API server takes 1 MiB with everything around it.
const MAX_BYTES: usize = 640 * 1024;
/// Who writes them.
const FIELD_MANAGER: &str = "tiphys-controller";

/// Records the objects that a batch is about to prune. That they cannot be kept is said in the log, and
/// holds up nothing.
pub(crate) async fn keep_pruned(
    home: &Home,
    app: &Application,
    batch: &Batch,
    live: &BTreeMap<ResourceKey, LiveObject>,
    cluster: &ConnectedCluster,
) {
    let kept_for = home.settings.tombstones;
    let pruned: Vec<Arc<Value>> = batch
        .iter()
        .flatten()
        .filter(|action| {
            action.hook_type.is_empty() && matches!(action.verb, Verb::Delete { dry_run: false, .. })
        })
        .filter_map(|action| live.get(&action.task.key).map(|live| live.object.clone()))
        .collect();
    if pruned.is_empty() || kept_for.is_zero() {
        return;
    }
    let now = home.now();
    for (number, record) in
        records(app, &pruned, &cluster.server, &home.settings.namespace, now).iter().enumerate()
    {
        let created = home.cache.cluster().create(record, FIELD_MANAGER, false).await;
        match created {
            Ok(created) => home.cache.observe(created),
            Err(error) => {
                tracing::warn!(app = %app.metadata.name, number, %error, "what is pruned cannot be recorded");
            }
        }
    }
    drop_old_records(home, now, kept_for).await;
}

/// Deletes records whose time is over, and those of an Application that has too many.
async fn drop_old_records(home: &Home, now: Timestamp, kept_for: Duration) {
    let mut secrets = home.cache.of_kind(&GroupKind::new("", "Secret"));
    secrets.retain(|object| {
        object.namespace() == home.settings.namespace && object.label(names::TOMBSTONE).is_some()
    });
    let at = |object: &Value| object.annotation(names::TOMBSTONE_TIME).and_then(Time::parse);
    secrets.sort_by_key(|object| std::cmp::Reverse(at(object)));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for record in secrets {
        let app = record.annotation(names::TOMBSTONE_APP).unwrap_or_default().to_owned();
        let count = counts.entry(app).or_default();
        *count += 1;
        let is_old = at(&record).is_none_or(|at| tiphys_model::time::elapsed(at.timestamp(), now) > kept_for);
        if (is_old || *count > KEPT)
            && let Err(error) = drop_record(home, &record).await
        {
            tracing::debug!(record = %record.name(), %error, "an old record stays");
        }
    }
}

async fn drop_record(home: &Home, record: &Value) -> Result<(), ClusterError> {
    let cluster = home.cache.cluster();
    let resource = cluster.resource(&GroupVersionKind::new("", "v1", "Secret")).await?;
    let name = (record.namespace(), record.name());
    cluster.delete(&resource, name, Propagation::Background, record.uid(), false).await.map(|_| ())
}

/// The records of what is pruned in one step; several if it is much.
fn records(
    app: &Application,
    pruned: &[Arc<Value>],
    server: &str,
    namespace: &str,
    now: Timestamp,
) -> Vec<Value> {
    let mut parts: Vec<Vec<(String, String)>> = vec![Vec::new()];
    let mut size = 0;
    let mut seen = BTreeSet::new();
    for object in pruned {
        let text = bare(object).to_string();
        if !seen.insert(object.resource_key()) || text.len() > MAX_BYTES {
            continue;
        }
        if size + text.len() > MAX_BYTES {
            parts.push(Vec::new());
            size = 0;
        }
        size += text.len();
        if let Some(part) = parts.last_mut() {
            let name = format!("{:04}", part.len());
            part.push((name, data_encoding::BASE64.encode(text.as_bytes())));
        }
    }
    let Application { metadata, .. } = app;
    let who = format!("{}/{}", metadata.namespace, metadata.name);
    let filled = parts.into_iter().filter(|part| !part.is_empty());
    filled
        .enumerate()
        .map(|(number, part)| {
            let data: Map<String, Value> = part.into_iter().map(|(name, text)| (name, text.into())).collect();
            let short: String = metadata.name.chars().take(180).collect();
            json!({"apiVersion": "v1", "kind": "Secret", "type": "tiphys.dev/tombstone",
                "metadata": {
                    "name": format!("tiphys-undo-{short}-{:x}-{number}", now.as_nanosecond()), "namespace": namespace,
                    "labels": {names::TOMBSTONE: "true"},
                    "annotations": {names::TOMBSTONE_APP: who, names::TOMBSTONE_TIME: Time::from(now),
                        names::TOMBSTONE_SERVER: server},
                },
                "data": data})
        })
        .collect()
}

/// An object as it could be applied again.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in [
            "managedFields",
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            metadata.remove(field);
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_is_split_and_every_part_can_be_applied() {
        let app = Application::from_value(&json!({"metadata": {"name": "shop", "namespace": "argocd"}}))
            .expect("valid");
        let object = |name: &str, size: usize| {
            Arc::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "uid": "u"},
                "data": {"k": "x".repeat(size)}, "status": {}}))
        };
        let pruned =
            [object("a", 400 * 1024), object("b", 400 * 1024), object("a", 1), object("huge", 2 << 20)];
        let now = "2026-01-01T00:00:00Z".parse().expect("valid");
        let records = records(&app, &pruned, "https://kubernetes.default.svc", "argocd", now);
        assert_eq!(records.len(), 2, "the same object once, and one that fits nowhere not at all");
        let data =
            data_encoding::BASE64.decode(records[0]["data"]["0000"].as_str().expect("text").as_bytes());
        let object: Value = serde_json::from_slice(&data.expect("base64")).expect("JSON");
        assert_eq!((object.name(), object.uid(), object.get("status")), ("a", "", None));
        assert_ne!(records[0].name(), records[1].name());
    }
}
