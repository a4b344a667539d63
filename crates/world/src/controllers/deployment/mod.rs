//! Deployment: a ReplicaSet per pod template, rolled over within maxSurge and maxUnavailable
//! (apps/v1 Deployment, "Rolling update").

use std::sync::Arc;

mod proportional_scaling;
mod status;

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{
    adoption,
    workload::{count_or_percent, delete, template_hash},
};
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    object::{owner_reference, resources, with_status},
};

const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";
const HASH: &str = "pod-template-hash";
const SIGNATURE: &str = "deployment-controller";

/// Rolls Deployments.
pub(super) struct DeploymentController;

impl Controller for DeploymentController {
    fn name(&self) -> &'static str {
        "deployment"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        adoption::keys(change, &resources::deployments(), "Deployment", adoption::selector_of, view)
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(deployment) = context.view.get(&resources::deployments(), key) else {
            return Outcome::done();
        };
        let selector = adoption::selector_of(&deployment);
        let claims =
            adoption::claim(&deployment, &resources::replica_sets(), &selector, |_| true, context.view);
        if !claims.adopted.is_empty() && !deployment.is_terminating() {
            return claims.adopted.into();
        }
        let mut sets = claims.mine;
        sets.sort_by_cached_key(|set| {
            (set.str_at(&["metadata", "creationTimestamp"]).map(str::to_owned), Key::from_object(set))
        });
        let hash = template_hash(&deployment["spec"]["template"]);
        let is_of_template =
            |set: &&Arc<Object>| set.label(HASH) == Some(&hash) || has_template_of(set, &deployment);
        let new = sets.iter().find(is_of_template).cloned();
        let is_new = |set: &Object| new.as_ref().is_some_and(|new| new.uid() == set.uid());
        let old: Vec<_> = sets.iter().filter(|set| !is_new(set)).cloned().collect();
        let is_paused = deployment.at(&["spec", "paused"]) == Some(&Value::Bool(true));
        let revision = wanted_revision(new.as_deref().map(Object::value), &old);
        let mut writes = if deployment.is_terminating() { Vec::new() } else { claims.released };
        if !is_paused
            && !deployment.is_terminating()
            && deployment.annotation(REVISION) != Some(&revision.to_string())
        {
            let mut annotated = (*deployment).clone();
            annotated["metadata"]["annotations"][REVISION] = revision.to_string().into();
            // By the status the generation stays as it is. The write makes a change, which brings the
            // deployment back here.
            return Write::UpdateStatus { resource: resources::deployments(), object: annotated }.into();
        }
        let (status, again) =
            status::deployment_status(&deployment, new.as_deref().map(Object::value), &old, context);
        let updated = with_status(&deployment, status);
        writes
            .extend(updated.map(|object| Write::UpdateStatus { resource: resources::deployments(), object }));
        if deployment.is_terminating() {
            // Whoever looks at it still sees what is left of it.
            return Outcome::from(writes);
        }
        match (&new, is_paused) {
            (new, true) => writes.extend(proportional_scaling::rescale(&deployment, new.as_ref(), &old)),
            (new, false) if proportional_scaling::is_rescaled(&deployment, new.as_ref(), &old) => {
                writes.extend(proportional_scaling::rescale(&deployment, new.as_ref(), &old));
            }
            // Nothing new comes before the old pods are gone.
            (None, false) if is_recreate(&deployment) && is_in_the_way(&old) => {
                writes.extend(stop_old(&deployment, &old));
            }
            (None, false) => writes.extend(create_replica_set(&deployment, &hash, &sets, revision)),
            (Some(new), false) => match relabelled(&deployment, new, revision) {
                Some(write) => writes.push(write),
                None => writes.extend(scale(&deployment, new, &old)),
            },
        }
        writes.extend(surplus_history(&deployment, &old));
        Outcome::from(writes).requeue_after(again)
    }
}

/// Whether a set was made from a deployment's present template: they differ in the label of the hash alone.
fn has_template_of(set: &Value, deployment: &Value) -> bool {
    let mut template = set["spec"]["template"].clone();
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH);
    }
    template == deployment["spec"]["template"]
}

/// The revision of the present template: one more than the newest of the others, which also makes a set the
/// newest again whose template came back.
fn wanted_revision(new: Option<&Value>, old: &[Arc<Object>]) -> i64 {
    let newest_old = old.iter().map(|set| revision(set)).max().unwrap_or(0);
    match new.map(revision) {
        Some(revision) if revision > newest_old => revision,
        _ => newest_old + 1,
    }
}

/// The new set with the annotations that it should have, if it lacks one.
fn relabelled(deployment: &Value, new: &Value, wanted_revision: i64) -> Option<Write> {
    let mut object = new.clone();
    let before = revision(new);
    let annotations = &mut object["metadata"]["annotations"];
    if before != wanted_revision {
        let mut history: Vec<_> =
            annotations[HISTORY].as_str().map(|text| vec![text.to_owned()]).unwrap_or_default();
        history.push(before.to_string());
        annotations[HISTORY] = history.join(",").into();
        annotations[REVISION] = wanted_revision.to_string().into();
    }
    for (key, value) in passed_on(deployment) {
        annotations[key] = value;
    }
    (object["metadata"]["annotations"] != new["metadata"]["annotations"])
        .then(|| Write::Update { resource: resources::replica_sets(), object })
}

/// The annotations of a Deployment that its sets get too.
fn passed_on(deployment: &Value) -> Vec<(&String, Value)> {
    let own = [
        REVISION,
        HISTORY,
        DESIRED,
        MAXIMUM,
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
    ];
    let all = deployment.at(&["metadata", "annotations"]).and_then(Value::as_object);
    let passed = all.into_iter().flatten().filter(|(key, _)| !own.contains(&key.as_str()));
    passed.map(|(key, value)| (key, value.clone())).collect()
}

fn desired_replicas(deployment: &Value) -> i64 {
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

/// Bounds of a rolling update: how many pods may exist, how many must be available. `Recreate`
/// allows no old pod beside a new one, which [`scale`] sees to.
fn bounds(deployment: &Value) -> (i64, i64) {
    let wanted = desired_replicas(deployment);
    if is_recreate(deployment) {
        return (wanted, wanted);
    }
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

/// Whether sets have pods left, terminating ones included: with `Recreate` no new one may run beside them.
fn has_pods(sets: &[Arc<Object>]) -> bool {
    let left = |set: &Value| in_status(set, "replicas") + in_status(set, "terminatingReplicas");
    sets.iter().any(|set| left(set) > 0)
}

/// Whether sets have pods, or are about to.
fn is_in_the_way(sets: &[Arc<Object>]) -> bool {
    sets.iter().any(|set| replicas(set) > 0) || has_pods(sets)
}

/// Takes every pod from sets.
fn stop_old(deployment: &Value, sets: &[Arc<Object>]) -> Vec<Write> {
    sets.iter().filter(|set| replicas(set) > 0).flat_map(|set| resize(deployment, set, 0)).collect()
}

fn is_recreate(deployment: &Value) -> bool {
    deployment.str_at(&["spec", "strategy", "type"]) == Some("Recreate")
}

fn create_replica_set(deployment: &Value, hash: &str, sets: &[Arc<Object>], revision: i64) -> Vec<Write> {
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"][HASH] = hash.into();
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][HASH] = hash.into();
    let existing: i64 = sets.iter().map(|set| replicas(set)).sum();
    let first = match (is_recreate(deployment), existing) {
        (true, _) => {
            if has_pods(sets) {
                0
            } else {
                desired_replicas(deployment)
            }
        }
        (_, 0) => desired_replicas(deployment),
        (false, _) => (bounds(deployment).0 - existing).clamp(0, desired_replicas(deployment)),
    };
    let name = format!("{}-{hash}", deployment.name());
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": deployment.namespace(),
            "labels": template["metadata"]["labels"],
            "annotations": {
                REVISION: revision.to_string(),
                DESIRED: desired_replicas(deployment).to_string(),
                MAXIMUM: bounds(deployment).0.to_string(),
            },
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {"replicas": first, "selector": selector, "template": template},
    });
    for (key, value) in passed_on(deployment) {
        object["metadata"]["annotations"][key] = value;
    }
    if let Some(seconds) = deployment.at(&["spec", "minReadySeconds"]) {
        object["spec"]["minReadySeconds"] = seconds.clone();
    }
    let mut writes = vec![Write::Create { resource: resources::replica_sets(), object }];
    if first > 0 {
        writes.push(scaled(deployment, &name, 0, first));
    }
    writes
}

fn scaled(deployment: &Value, set: &str, from: i64, to: i64) -> Write {
    let direction = if to > from { "up" } else { "down" };
    let message = format!("Scaled {direction} replica set {set} from {from} to {to}");
    Event::normal(deployment, Reporter::Controller(SIGNATURE), "ScalingReplicaSet", message).into()
}

/// The next step of a roll-over: raise the new set as far as the surge allows, then lower old ones as
/// far as availability allows.
fn scale(deployment: &Value, new: &Arc<Object>, old: &[Arc<Object>]) -> Vec<Write> {
    let (most, least_available) = bounds(deployment);
    let of_old: i64 = old.iter().map(|set| replicas(set)).sum();
    let goal = match (is_recreate(deployment), of_old) {
        (true, _) if of_old > 0 || has_pods(old) => 0,
        _ => (most - of_old).clamp(0, desired_replicas(deployment)),
    };
    let mut writes = Vec::new();
    if replicas(new) != goal && (replicas(new) < goal || replicas(new) > desired_replicas(deployment)) {
        writes.extend(resize(deployment, new, goal));
    }
    match is_recreate(deployment) {
        true => writes.extend(stop_old(deployment, old)),
        // The new set is raised first: what it lacks is known once it has been told.
        false if writes.is_empty() => writes = lower(deployment, new, old, least_available),
        false => {}
    }
    writes
}

/// Lowers old sets as far as enough pods stay available: those that are not available go first, as they cost
/// nothing. What the new set still lacks is never made up for by what an old one loses.
fn lower(deployment: &Value, new: &Arc<Object>, old: &[Arc<Object>], least_available: i64) -> Vec<Write> {
    // Of a set that was just made smaller the status may still count those that go.
    let available = |set: &Value| in_status(set, "availableReplicas").min(replicas(set));
    let all: i64 = replicas(new) + old.iter().map(|set| replicas(set)).sum::<i64>();
    let most = all - least_available - (replicas(new) - available(new));
    if most <= 0 {
        return Vec::new();
    }
    let mut sizes: Vec<i64> = old.iter().map(|set| replicas(set)).collect();
    let mut left = most;
    for (size, set) in sizes.iter_mut().zip(old) {
        let unavailable = (*size - available(set)).clamp(0, left);
        (*size, left) = (*size - unavailable, left - unavailable);
    }
    let there: i64 = available(new) + old.iter().map(|set| available(set)).sum::<i64>();
    let mut spare = there - least_available;
    for size in &mut sizes {
        let taken = spare.clamp(0, *size);
        (*size, spare) = (*size - taken, spare - taken);
    }
    let changed = old.iter().zip(sizes).filter(|(set, size)| replicas(set) != *size);
    changed.flat_map(|(set, size)| resize(deployment, set, size)).collect()
}

fn resize(deployment: &Value, set: &Value, to: i64) -> Vec<Write> {
    let mut object = set.clone();
    object["spec"]["replicas"] = to.into();
    object["metadata"]["annotations"][DESIRED] = desired_replicas(deployment).to_string().into();
    object["metadata"]["annotations"][MAXIMUM] = bounds(deployment).0.to_string().into();
    vec![
        Write::Update { resource: resources::replica_sets(), object },
        scaled(deployment, set.name(), replicas(set), to),
    ]
}

/// Old, empty sets beyond `spec.revisionHistoryLimit` (default 10), oldest first.
fn surplus_history(deployment: &Value, old: &[Arc<Object>]) -> Vec<Write> {
    let limit = deployment.int_at(&["spec", "revisionHistoryLimit"]).unwrap_or(10).max(0) as usize;
    let is_empty =
        |set: &Value| replicas(set) == 0 && in_status(set, "replicas") == 0 && !set.is_terminating();
    let mut empty: Vec<_> = old.iter().filter(|set| is_empty(set)).collect();
    empty.sort_by_key(|set| revision(set));
    let surplus = empty.len().saturating_sub(limit);
    empty.iter().take(surplus).map(|set| delete(resources::replica_sets(), set)).collect()
}
