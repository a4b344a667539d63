//! Another number of replicas while more than one set has pods: each set gets its share of the difference
//! (kubernetes.io, "Proportional scaling").

use std::{cmp::Reverse, sync::Arc};

use serde_json::Value;
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{DESIRED, MAXIMUM, bounds, desired_replicas, in_status, is_recreate, replicas, resize, revision};
use crate::{Write, object::resources};

fn number(set: &Value, annotation: &str) -> Option<i64> {
    set.annotation(annotation)?.parse().ok()
}

fn all<'a>(new: Option<&'a Arc<Object>>, old: &'a [Arc<Object>]) -> impl Iterator<Item = &'a Arc<Object>> {
    old.iter().chain(new)
}

/// Whether the number of replicas has changed since the sets that have pods were given theirs.
pub(super) fn is_rescaled(deployment: &Value, new: Option<&Arc<Object>>, old: &[Arc<Object>]) -> bool {
    let mut active = all(new, old).filter(|set| replicas(set) > 0);
    active.any(|set| number(set, DESIRED).is_some_and(|desired| desired != desired_replicas(deployment)))
}

/// Gives every set its share of the replicas; nothing rolls meanwhile.
pub(super) fn rescale(deployment: &Value, new: Option<&Arc<Object>>, old: &[Arc<Object>]) -> Vec<Write> {
    let desired_replicas = desired_replicas(deployment);
    let mut active: Vec<_> = all(new, old).filter(|set| replicas(set) > 0).collect();
    match active.as_slice() {
        [] => {
            let latest = new.or_else(|| old.iter().max_by_key(|set| revision(set)));
            return latest.map_or_else(Vec::new, |set| sized(deployment, set, desired_replicas));
        }
        [only] => return sized(deployment, only, desired_replicas),
        _ => {}
    }
    if new.is_some_and(|new| is_saturated(new, desired_replicas)) {
        return old
            .iter()
            .filter(|set| replicas(set) > 0)
            .flat_map(|set| sized(deployment, set, 0))
            .collect();
    }
    if is_recreate(deployment) {
        return Vec::new();
    }
    let most = if desired_replicas == 0 { 0 } else { bounds(deployment).0 };
    let difference = most - active.iter().map(|set| replicas(set)).sum::<i64>();
    let created = |set: &Value| set.str_at(&["metadata", "creationTimestamp"]).unwrap_or_default().to_owned();
    match difference > 0 {
        true => active.sort_by_key(|set| (Reverse(replicas(set)), Reverse(created(set)))),
        false => active.sort_by_key(|set| (Reverse(replicas(set)), created(set))),
    }
    let mut given = 0;
    let mut sizes = Vec::new();
    for set in &active {
        let left = difference - given;
        let share = share(deployment, set, most);
        let share = if difference > 0 { share.min(left) } else { share.max(left) };
        given += if left == 0 { 0 } else { share };
        sizes.push(replicas(set) + if left == 0 { 0 } else { share });
    }
    // What rounding has left over is the largest set's.
    if let Some(first) = sizes.first_mut() {
        *first = (*first + difference - given).max(0);
    }
    active.iter().zip(sizes).flat_map(|(set, size)| sized(deployment, set, size)).collect()
}

/// Whether the new set has all that the Deployment wants.
fn is_saturated(new: &Value, desired_replicas: i64) -> bool {
    replicas(new) == desired_replicas
        && number(new, DESIRED) == Some(desired_replicas)
        && in_status(new, "availableReplicas") == desired_replicas
}

/// How much a set is to grow so that its part of all pods stays the same.
fn share(deployment: &Value, set: &Value, most: i64) -> i64 {
    if desired_replicas(deployment) == 0 {
        return -replicas(set);
    }
    let before = number(set, MAXIMUM).filter(|before| *before > 0);
    let before = before.unwrap_or_else(|| in_status(deployment, "replicas"));
    if before <= 0 {
        return 0;
    }
    // Rounded half up, as all of these are positive.
    (2 * replicas(set) * most + before) / (2 * before) - replicas(set)
}

/// A set of another size, or with the numbers that it was given noted.
fn sized(deployment: &Value, set: &Arc<Object>, to: i64) -> Vec<Write> {
    if replicas(set) != to {
        return resize(deployment, set, to);
    }
    let (desired, maximum) = (desired_replicas(deployment), bounds(deployment).0);
    if number(set, DESIRED) == Some(desired) && number(set, MAXIMUM) == Some(maximum) {
        return Vec::new();
    }
    let mut object = set.value().clone();
    object["metadata"]["annotations"][DESIRED] = desired.to_string().into();
    object["metadata"]["annotations"][MAXIMUM] = maximum.to_string().into();
    vec![Write::Update { resource: resources::replica_sets(), object }]
}
