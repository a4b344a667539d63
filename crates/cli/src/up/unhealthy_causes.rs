//! Why objects are not healthy, as far as the cluster tells: the last warning of them, of their pods or
//! claims.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_cluster::{Cluster, LiveCache};
use tiphys_model::HealthCode;
use tiphys_sync::WaitKind;
use tiphys_value::{GroupKind, GroupVersionKind, ObjectExt, ResourceKey, Value};

use super::{
    app_rows::Row,
    reason::{Reason, State},
};

/// How far down from an object it is looked: CronJob, Job, Pod, claim.
const MAX_DEPTH: usize = 4;
/// What of a cluster is looked through: whatever a workload makes.
const MADE: [(&str, &str); 5] = [
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "Job"),
    ("", "Pod"),
    ("", "PersistentVolumeClaim"),
];
/// How long a cause may be.
const MAX_LENGTH: usize = 300;

/// Adds what clusters know of the causes to the reasons of rows, and to what their operations wait for.
pub(super) async fn add(rows: &mut [Row], sites: &[(Cluster, LiveCache)]) {
    for (cluster, cache) in sites {
        let known = ClusterEvidence::gather(cluster, cache).await;
        for row in &mut *rows {
            known.add_to(row, cache);
        }
    }
}

/// What the cluster tells.
struct ClusterEvidence {
    /// The last warning of each object.
    warnings: BTreeMap<ResourceKey, String>,
    /// What each object, by its uid, has made.
    made: BTreeMap<String, Vec<ResourceKey>>,
}

impl ClusterEvidence {
    async fn gather(cluster: &Cluster, cache: &LiveCache) -> Self {
        let mut made: BTreeMap<String, Vec<ResourceKey>> = BTreeMap::new();
        for (group, kind) in MADE {
            for object in cache.of_kind(&GroupKind::new(group, kind)) {
                for owner in object.owner_references().iter().filter_map(|owner| owner.str_at(&["uid"])) {
                    made.entry(owner.to_owned()).or_default().push(object.resource_key());
                }
            }
        }
        Self { warnings: warnings(cluster).await, made }
    }

    fn add_to(&self, row: &mut Row, cache: &LiveCache) {
        // Applications of several clusters have objects of one name.
        let instance = row.instance.clone();
        let is_its = |object: &Value| cache.mark_of(object).is_none_or(|mark| mark == instance);
        let is_here = |key: &ResourceKey| cache.get(key).is_some_and(|object| is_its(&object));
        let objects = row.reasons.iter_mut().filter_map(|reason| match reason {
            Reason::Object(object) => Some(object),
            Reason::Other(_) => None,
        });
        let is_unhealthy = |state| matches!(state, State::Unhealthy(code) if code != HealthCode::Missing);
        for object in objects.filter(|object| is_unhealthy(object.state) && is_here(&object.key)) {
            // Clusters are asked one after the other: the first that has the object tells.
            if object.underlying.is_none() {
                object.underlying = self.cause(cache, &object.key);
            }
        }
        for wait in row.waits.iter_mut().filter(|wait| matches!(wait.kind, WaitKind::Health | WaitKind::Hook))
        {
            let key = wait.object.as_ref().filter(|key| is_here(key));
            if let Some(cause) = key.and_then(|key| self.cause(cache, key)) {
                wait.cause.push_str(if wait.cause.is_empty() { "" } else { "; " });
                wait.cause.push_str(&cause);
            }
        }
    }

    /// The warning nearest to an object: claims first, for pods wait for them.
    fn cause(&self, cache: &LiveCache, key: &ResourceKey) -> Option<String> {
        let mut told = Vec::new();
        let mut seen = BTreeSet::new();
        let mut open = vec![(key.clone(), 0)];
        while let Some((key, depth)) = open.pop() {
            let Some(object) = cache.get(&key).filter(|_| seen.insert(key.clone())) else { continue };
            if !is_at_rest(&object)
                && let Some(text) = self.warnings.get(&key).or(waiting(&object).as_ref())
            {
                told.push((
                    key.kind != "PersistentVolumeClaim",
                    depth,
                    format!("{}/{}: {text}", key.kind, key.name),
                ));
            }
            if depth < MAX_DEPTH {
                let made = self.made.get(object.uid()).into_iter().flatten().cloned();
                open.extend(made.chain(claims_of(&object)).map(|key| (key, depth + 1)));
            }
        }
        told.into_iter().min().map(|(_, _, text)| text)
    }
}

/// Whether an object is where it should be, so that its old warnings say nothing.
fn is_at_rest(object: &Value) -> bool {
    let is_true = |kind: &str| {
        let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array);
        let mut of_kind = conditions.into_iter().flatten().filter(|c| c.str_at(&["type"]) == Some(kind));
        of_kind.any(|condition| condition.str_at(&["status"]) == Some("True"))
    };
    match object.kind() {
        "Pod" => is_true("Ready"),
        "PersistentVolumeClaim" => object.str_at(&["status", "phase"]) == Some("Bound"),
        // That pods could not be made is past once they are there; what they lack is theirs to tell.
        "ReplicaSet" | "StatefulSet" => {
            let wanted = object.int_at(&["spec", "replicas"]).unwrap_or(1);
            object.int_at(&["status", "replicas"]).unwrap_or_default() >= wanted
        }
        _ => false,
    }
}

/// The claims that a pod uses.
fn claims_of(object: &Value) -> Vec<ResourceKey> {
    let volumes = object.at(&["spec", "volumes"]).and_then(Value::as_array).into_iter().flatten();
    let names = volumes.filter_map(|volume| volume.str_at(&["persistentVolumeClaim", "claimName"]));
    names.map(|name| ResourceKey::new("", "PersistentVolumeClaim", object.namespace(), name)).collect()
}

/// Why a container of a pod does not run.
fn waiting(pod: &Value) -> Option<String> {
    let statuses = ["initContainerStatuses", "containerStatuses"];
    let mut all = statuses.iter().filter_map(|field| pod.at(&["status", field])?.as_array()).flatten();
    all.find_map(|status| {
        let state = status.at(&["state", "waiting"])?;
        let reason =
            state.str_at(&["reason"]).filter(|r| !["ContainerCreating", "PodInitializing"].contains(r))?;
        let message = state.str_at(&["message"]).unwrap_or_default();
        Some(format!("container {}: {reason} {message}", status.str_at(&["name"])?).trim_end().to_owned())
    })
}

/// The last warning of each object of a cluster; none if it does not tell.
async fn warnings(cluster: &Cluster) -> BTreeMap<ResourceKey, String> {
    let mut last: BTreeMap<ResourceKey, (String, String)> = BTreeMap::new();
    let Ok(resource) = cluster.resource(&GroupVersionKind::new("", "v1", "Event")).await else {
        return BTreeMap::new();
    };
    let events = cluster.list(&resource, "").await.map(|list| list.items).unwrap_or_default();
    // That a claim waits for a pod is no warning, and why it is not bound all the same.
    let tells = |event: &&Value| {
        event.str_at(&["type"]) == Some("Warning")
            || event.str_at(&["reason"]) == Some("WaitForFirstConsumer")
    };
    for event in events.iter().filter(tells) {
        let of = |field: &str| event.str_at(&["involvedObject", field]).unwrap_or_default();
        let group = of("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        let key = ResourceKey::new(group, of("kind"), of("namespace"), of("name"));
        let time =
            event.str_at(&["lastTimestamp"]).or(event.str_at(&["eventTime"])).unwrap_or_default().to_owned();
        let text = shortened(event.str_at(&["message"]).unwrap_or_default());
        let entry = last.entry(key).or_default();
        if time >= entry.0 {
            *entry = (time, text);
        }
    }
    last.into_iter().map(|(key, (_, text))| (key, text)).collect()
}

/// A message of the scheduler goes on with what preemption would do, which it never does here.
fn shortened(message: &str) -> String {
    let end = [". no new claims to deallocate", ". preemption:", ", preemption:"];
    let end = end.iter().filter_map(|mark| message.find(mark)).min().unwrap_or(message.len());
    let line = message[..end].replace('\n', " ");
    match line.char_indices().nth(MAX_LENGTH) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn messages_of_the_scheduler_end_where_it_says_why() {
        let message = "0/3 nodes are available: persistentvolumeclaim \"data\" not found. no new claims to deallocate, preemption: 0/3 nodes are available.";
        assert_eq!(shortened(message), "0/3 nodes are available: persistentvolumeclaim \"data\" not found");
        assert_eq!(shortened(&"x".repeat(400)).chars().count(), MAX_LENGTH + 1);
    }

    #[test]
    fn a_set_with_all_its_pods_has_nothing_to_tell() {
        let set =
            |made: i64| json!({"kind": "ReplicaSet", "spec": {"replicas": 2}, "status": {"replicas": made}});
        assert!(is_at_rest(&set(2)) && !is_at_rest(&set(1)));
    }

    #[test]
    fn containers_that_are_being_made_say_nothing_others_do() {
        let pod = |reason: &str| json!({"kind": "Pod", "status": {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": reason, "message": "no such image"}}}]}});
        assert_eq!(waiting(&pod("ContainerCreating")), None);
        assert_eq!(
            waiting(&pod("ImagePullBackOff")).as_deref(),
            Some("container c: ImagePullBackOff no such image")
        );
    }
}
