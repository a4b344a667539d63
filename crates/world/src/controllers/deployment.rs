//! Deployment: a ReplicaSet per pod template, rolled over within maxSurge and maxUnavailable
//! (apps/v1 Deployment, "Rolling update").

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{
    own_or_owner,
    workload::{count_or_percent, template_hash},
};
use crate::{
    Change, Controller, Key, Outcome, Propagation, View, Write,
    controller::Context,
    object::{is_controlled_by, owner_reference, resources, set_condition, status_of, time, with_status},
};

const REVISION: &str = "deployment.kubernetes.io/revision";
const HASH: &str = "pod-template-hash";

/// Rolls Deployments.
pub struct DeploymentController;

impl Controller for DeploymentController {
    fn name(&self) -> &'static str {
        "deployment"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        own_or_owner(change, &resources::deployments(), "Deployment")
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(deployment) = context.view.get(&resources::deployments(), key) else {
            return Outcome::done();
        };
        if deployment.is_terminating() {
            return Outcome::done();
        }
        let mut sets = context.view.list(&resources::replica_sets(), Some(deployment.namespace()));
        sets.retain(|set| is_controlled_by(set, &deployment));
        let hash = template_hash(&deployment["spec"]["template"]);
        let new = sets.iter().find(|set| set.label(HASH) == Some(&hash)).cloned();
        let old: Vec<_> = sets.iter().filter(|set| set.label(HASH) != Some(&hash)).cloned().collect();
        let is_paused = deployment.at(&["spec", "paused"]) == Some(&Value::Bool(true));
        let mut writes = match (&new, is_paused) {
            (_, true) => Vec::new(),
            (None, false) => vec![create_replica_set(&deployment, &hash, &sets)],
            (Some(new), false) => scale(&deployment, new, &old),
        };
        let new_revision = new.as_ref().map_or_else(|| next_revision(&sets), |set| revision(set));
        if !is_paused && deployment.annotation(REVISION) != Some(&new_revision.to_string()) {
            let mut annotated = (*deployment).clone();
            annotated["metadata"]["annotations"][REVISION] = new_revision.to_string().into();
            // The write makes a change, which brings the deployment back here for its status.
            writes.push(Write::Update { resource: resources::deployments(), object: annotated });
            return writes.into();
        }
        let status = status(&deployment, new.as_deref().map(Object::value), &old, context.now);
        let updated = with_status(&deployment, status);
        writes
            .extend(updated.map(|object| Write::UpdateStatus { resource: resources::deployments(), object }));
        writes.extend(surplus_history(&deployment, &old));
        writes.into()
    }
}

fn wanted(deployment: &Value) -> i64 {
    deployment.int_at(&["spec", "replicas"]).unwrap_or(1).max(0)
}

fn replicas(set: &Value) -> i64 {
    set.int_at(&["spec", "replicas"]).unwrap_or(1)
}

fn in_status(set: &Value, field: &str) -> i64 {
    set.int_at(&["status", field]).unwrap_or(0)
}

fn revision(set: &Value) -> i64 {
    set.annotation(REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn next_revision(sets: &[Arc<Object>]) -> i64 {
    sets.iter().map(|set| revision(set)).max().unwrap_or(0) + 1
}

/// Bounds of a rolling update: how many pods may exist, how many must be available. `Recreate`
/// allows no old pod beside a new one, which [`scale`] sees to.
fn bounds(deployment: &Value) -> (i64, i64) {
    let wanted = wanted(deployment);
    let rolling = deployment.at(&["spec", "strategy", "rollingUpdate"]);
    let limit = |field, default: i64, up| {
        count_or_percent(rolling.and_then(|rolling| rolling.get(field)), wanted, default, up)
    };
    let surge = limit("maxSurge", (wanted + 3) / 4, true);
    let mut unavailable = limit("maxUnavailable", wanted / 4, false);
    if surge == 0 && unavailable == 0 {
        unavailable = 1;
    }
    (wanted + surge, wanted - unavailable)
}

fn is_recreate(deployment: &Value) -> bool {
    deployment.str_at(&["spec", "strategy", "type"]) == Some("Recreate")
}

fn create_replica_set(deployment: &Value, hash: &str, sets: &[Arc<Object>]) -> Write {
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"][HASH] = hash.into();
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][HASH] = hash.into();
    let existing: i64 = sets.iter().map(|set| replicas(set)).sum();
    let first = match (is_recreate(deployment), existing) {
        (_, 0) => wanted(deployment),
        (true, _) => 0,
        (false, _) => (bounds(deployment).0 - existing).clamp(0, wanted(deployment)),
    };
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", deployment.name()),
            "namespace": deployment.namespace(),
            "labels": template["metadata"]["labels"],
            "annotations": {
                REVISION: next_revision(sets).to_string(),
                "deployment.kubernetes.io/desired-replicas": wanted(deployment).to_string(),
                "deployment.kubernetes.io/max-replicas": bounds(deployment).0.to_string(),
            },
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {"replicas": first, "selector": selector, "template": template},
    });
    Write::Create { resource: resources::replica_sets(), object }
}

/// The next step of a roll-over: raise the new set as far as the surge allows, lower old ones as
/// far as availability allows.
fn scale(deployment: &Value, new: &Arc<Object>, old: &[Arc<Object>]) -> Vec<Write> {
    let (most, least_available) = bounds(deployment);
    let of_old: i64 = old.iter().map(|set| replicas(set)).sum();
    let goal = match (is_recreate(deployment), of_old) {
        (true, 1..) => 0,
        _ => (most - of_old).clamp(0, wanted(deployment)),
    };
    let mut writes = Vec::new();
    if replicas(new) != goal && (replicas(new) < goal || replicas(new) > wanted(deployment)) {
        writes.push(resize(new, goal));
    }
    let available: i64 = in_status(new, "availableReplicas")
        + old.iter().map(|set| in_status(set, "availableReplicas")).sum::<i64>();
    let mut spare = if is_recreate(deployment) { of_old } else { (available - least_available).max(0) };
    for set in old.iter().filter(|set| replicas(set) > 0) {
        // A pod that is not available costs nothing to take away.
        let unavailable = (replicas(set) - in_status(set, "availableReplicas")).max(0);
        let taken = (unavailable + spare).min(replicas(set));
        spare -= (taken - unavailable).max(0);
        if taken > 0 {
            writes.push(resize(set, replicas(set) - taken));
        }
    }
    writes
}

fn resize(set: &Value, replicas: i64) -> Write {
    let mut object = set.clone();
    object["spec"]["replicas"] = replicas.into();
    Write::Update { resource: resources::replica_sets(), object }
}

/// Old, empty sets beyond `spec.revisionHistoryLimit` (default 10), oldest first.
fn surplus_history(deployment: &Value, old: &[Arc<Object>]) -> Vec<Write> {
    let limit = deployment.int_at(&["spec", "revisionHistoryLimit"]).unwrap_or(10).max(0) as usize;
    let is_empty =
        |set: &Value| replicas(set) == 0 && in_status(set, "replicas") == 0 && !set.is_terminating();
    let mut empty: Vec<_> = old.iter().filter(|set| is_empty(set)).collect();
    empty.sort_by_key(|set| revision(set));
    let surplus = empty.len().saturating_sub(limit);
    let delete = |set: &&Arc<Object>| Write::Delete {
        resource: resources::replica_sets(),
        key: Key::of(set),
        uid: set.uid().to_owned(),
        propagation: Propagation::Background,
    };
    empty.iter().take(surplus).map(delete).collect()
}

fn status(deployment: &Value, new: Option<&Value>, old: &[Arc<Object>], now: Timestamp) -> Value {
    let all = || new.into_iter().chain(old.iter().map(|set| set.value()));
    let total = |field| all().map(|set| in_status(set, field)).sum::<i64>();
    let updated = new.map_or(0, |set| in_status(set, "replicas"));
    let available = total("availableReplicas");
    let wanted = wanted(deployment);
    let mut status = status_of(deployment);
    status.insert("observedGeneration".into(), deployment.generation().into());
    let counts = [
        ("replicas", total("replicas")),
        ("updatedReplicas", updated),
        ("readyReplicas", total("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", (wanted - available).max(0)),
    ];
    for (field, count) in counts {
        match count {
            0 => status.remove(field),
            count => status.insert(field.into(), count.into()),
        };
    }
    let is_complete = updated == wanted && total("replicas") == wanted && available == wanted;
    conditions(&mut status, deployment, new, is_complete, available >= bounds(deployment).1, now);
    status.into()
}

fn conditions(
    status: &mut Map<String, Value>,
    deployment: &Value,
    new: Option<&Value>,
    is_complete: bool,
    is_available: bool,
    now: Timestamp,
) {
    let (available, reason, message) = match is_available {
        true => ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        false => ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
    };
    let condition = json!({"type": "Available", "status": available, "lastUpdateTime": time(now), "reason": reason, "message": message});
    set_condition(status, condition, now);
    let set = new.map_or_else(|| deployment.name().to_owned(), |set| set.name().to_owned());
    let (reason, message) = match is_complete {
        true => ("NewReplicaSetAvailable", format!("ReplicaSet \"{set}\" has successfully progressed.")),
        false => ("ReplicaSetUpdated", format!("ReplicaSet \"{set}\" is progressing.")),
    };
    let progressing = json!({"type": "Progressing", "status": "True", "lastUpdateTime": time(now), "reason": reason, "message": message});
    set_condition(status, progressing, now);
}
