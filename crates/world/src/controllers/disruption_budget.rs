//! PodDisruptionBudget: how many pods may be taken away (policy/v1).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tiphys_apiserver::Object;
use tiphys_value::{FieldPath, GroupVersionResource, ObjectExt};

use super::workload::{count_or_percent, is_ready};
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    labels::{selector_in_go, selects},
    object::{resources, set_condition, status_of, with_status},
};

/// How long a pod that is being evicted counts as gone before its deletion has begun.
const DELETION_TIMEOUT: i64 = 120;

/// Keeps the status of PodDisruptionBudgets.
pub(super) struct DisruptionBudgetController;

impl Controller for DisruptionBudgetController {
    fn name(&self) -> &'static str {
        "poddisruptionbudget"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::disruption_budgets() {
            return vec![Key::from_object(&change.object)];
        }
        if change.resource != resources::pods() {
            return Vec::new();
        }
        let budgets = view.list(&resources::disruption_budgets(), Some(change.object.namespace()));
        let concerns = |budget: &Value| selects(budget.at(&["spec", "selector"]), &change.object);
        budgets.iter().filter(|budget| concerns(budget)).map(|budget| Key::from_object(budget)).collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(budget) = context.view.get(&resources::disruption_budgets(), key) else {
            return Outcome::done();
        };
        let mut pods = context.view.list(&resources::pods(), Some(budget.namespace()));
        pods.retain(|pod| selects(budget.at(&["spec", "selector"]), pod));
        match Expected::from_budget(&budget, &pods, context.view) {
            Ok(expected) => {
                let (disrupted, recheck) = still_disrupted(&budget, &pods, context.now);
                let healthy = |pod: &&Arc<Object>| {
                    !pod.is_terminating() && !disrupted.contains_key(pod.name()) && is_ready(pod)
                };
                let healthy = pods.iter().filter(healthy).count() as i64;
                let outcome = tally(&budget, &expected, healthy, disrupted, pods.is_empty(), context);
                outcome.requeue_after(recheck)
            }
            Err(why) => failed(&budget, &why, context),
        }
    }
}

/// How many pods there should be, and how many of them healthy.
struct Expected {
    pods: i64,
    healthy: i64,
    /// Whether pods without a controller are among those that should be counted by their controllers.
    has_unmanaged: bool,
}

impl Expected {
    fn from_budget(budget: &Value, pods: &[Arc<Object>], view: &View<'_>) -> Result<Self, String> {
        let most = budget.at(&["spec", "maxUnavailable"]).filter(|most| !most.is_null());
        let least = budget.at(&["spec", "minAvailable"]).filter(|least| !least.is_null());
        match (most, least) {
            (Some(most), _) => {
                let (pods, has_unmanaged) = scale_of_controllers(pods, view)?;
                let healthy = (pods - count_or_percent(Some(most), pods, 0, true)).max(0);
                Ok(Self { pods, healthy, has_unmanaged })
            }
            (None, Some(least @ Value::String(_))) => {
                let (pods, has_unmanaged) = scale_of_controllers(pods, view)?;
                Ok(Self { pods, healthy: count_or_percent(Some(least), pods, 0, true), has_unmanaged })
            }
            (None, Some(least)) => Ok(Self {
                pods: pods.len() as i64,
                healthy: least.as_i64().unwrap_or(0),
                has_unmanaged: false,
            }),
            (None, None) => Ok(Self { pods: 0, healthy: 0, has_unmanaged: false }),
        }
    }
}

/// The replicas that the controllers of pods want together, and whether some pod has none.
fn scale_of_controllers(pods: &[Arc<Object>], view: &View<'_>) -> Result<(i64, bool), String> {
    let mut scales = BTreeMap::new();
    let mut has_unmanaged = false;
    for pod in pods {
        let Some(owner) = pod.controller_reference() else {
            has_unmanaged = true;
            continue;
        };
        let (uid, replicas) = scale_of(owner, pod.namespace(), view)?
            .ok_or_else(|| format!("found no controllers for pod \"{}\"", pod.name()))?;
        scales.insert(uid, replicas);
    }
    Ok((scales.values().sum(), has_unmanaged))
}

/// Uid and replicas of a pod's controller; of its Deployment if that is a ReplicaSet of one.
fn scale_of(reference: &Value, namespace: &str, view: &View<'_>) -> Result<Option<(String, i64)>, String> {
    let found = |reference: &Value| -> Result<Option<(GroupVersionResource, Arc<Object>)>, String> {
        let (api_version, kind) = (reference.api_version(), reference.kind());
        let resource = view
            .resource_of(api_version, kind)
            .ok_or_else(|| format!("no matches for kind \"{kind}\" in version \"{api_version}\""))?;
        let key = Key {
            namespace: namespace.to_owned(),
            name: reference["name"].as_str().unwrap_or_default().to_owned(),
        };
        let object = view.get(&resource, &key).filter(|object| reference["uid"] == object.uid());
        Ok(object.map(|object| (resource, object)))
    };
    let Some((mut resource, mut object)) = found(reference)? else { return Ok(None) };
    if resource == resources::replica_sets()
        && let Some(owner) = object.controller_reference().filter(|owner| owner["kind"] == "Deployment")
    {
        match found(owner)? {
            Some(deployment) => (resource, object) = deployment,
            None => return Ok(None),
        }
    }
    let replicas = replicas_of(&resource, &object, view)?;
    Ok(Some((object.uid().to_owned(), replicas)))
}

fn replicas_of(resource: &GroupVersionResource, object: &Value, view: &View<'_>) -> Result<i64, String> {
    let scalable = [
        resources::deployments(),
        resources::replica_sets(),
        resources::stateful_sets(),
        resources::replication_controllers(),
    ];
    if scalable.contains(resource) {
        return Ok(object.int_at(&["spec", "replicas"]).unwrap_or(1));
    }
    let name = match resource.group.as_str() {
        "" => resource.resource.clone(),
        group => format!("{}.{group}", resource.resource),
    };
    let key = Key { namespace: String::new(), name: name.clone() };
    let definition = view.get(&resources::definitions(), &key);
    let versions = definition.as_ref().and_then(|crd| crd.at(&["spec", "versions"])?.as_array());
    let version = versions.into_iter().flatten().find(|version| version["name"] == *resource.version);
    let path = version.and_then(|version| version.str_at(&["subresources", "scale", "specReplicasPath"]));
    let path: FieldPath = path
        .and_then(|path| path.trim_start_matches('.').parse().ok())
        .ok_or_else(|| format!("{name} does not implement the scale subresource"))?;
    Ok(path.get(object).and_then(Value::as_i64).unwrap_or(0))
}

/// The pods whose eviction has been allowed and whose deletion has not begun, and when to look again.
fn still_disrupted(
    budget: &Value,
    pods: &[Arc<Object>],
    now: Timestamp,
) -> (Map<String, Value>, Option<Duration>) {
    let known = budget.at(&["status", "disruptedPods"]).and_then(Value::as_object);
    let mut kept = Map::new();
    let mut soonest: Option<i64> = None;
    for (name, at) in known.into_iter().flatten() {
        let is_there = pods.iter().any(|pod| pod.name() == name && !pod.is_terminating());
        let since = at.as_str().and_then(|at| at.parse::<Timestamp>().ok()).unwrap_or(now);
        let left = since.as_second() + DELETION_TIMEOUT - now.as_second();
        if is_there && left > 0 {
            soonest = Some(soonest.map_or(left, |soonest| soonest.min(left)));
            kept.insert(name.clone(), at.clone());
        }
    }
    (kept, soonest.map(|left| Duration::from_secs(left.unsigned_abs())))
}

fn tally(
    budget: &Value,
    expected: &Expected,
    healthy: i64,
    disrupted: Map<String, Value>,
    selects_none: bool,
    context: &Context<'_>,
) -> Outcome {
    let allowed = if expected.pods <= 0 { 0 } else { (healthy - expected.healthy).max(0) };
    let mut status = status_of(budget);
    for (field, value) in [
        ("currentHealthy", healthy),
        ("desiredHealthy", expected.healthy),
        ("disruptionsAllowed", allowed),
        ("expectedPods", expected.pods),
        ("observedGeneration", budget.generation()),
    ] {
        status.insert(field.into(), value.into());
    }
    status.remove("disruptedPods");
    if !disrupted.is_empty() {
        status.insert("disruptedPods".into(), disrupted.into());
    }
    let (state, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let condition = json!({
        "type": "DisruptionAllowed", "status": state, "reason": reason, "message": "",
        "observedGeneration": budget.generation(),
    });
    set_condition(&mut status, condition, context.now);
    let Some(object) = with_status(budget, status.into()) else { return Outcome::done() };
    let mut writes = vec![Write::UpdateStatus { resource: resources::disruption_budgets(), object }];
    if selects_none {
        writes.push(Event::normal(budget, REPORTER, "NoPods", "No matching pods found").into());
    }
    if expected.has_unmanaged {
        let selector = selector_in_go(&budget["spec"]["selector"]);
        let message = format!(
            "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a \
             result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. \
             To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value."
        );
        writes.push(Event::warning(budget, REPORTER, "UnmanagedPods", message).into());
    }
    writes.into()
}

const REPORTER: Reporter = Reporter::Controller("controllermanager");

/// Nothing may be taken away while it is not known how many pods there should be.
fn failed(budget: &Value, why: &str, context: &Context<'_>) -> Outcome {
    let mut status = status_of(budget);
    status.insert("disruptionsAllowed".into(), 0.into());
    for field in ["currentHealthy", "desiredHealthy", "expectedPods"] {
        status.entry(field).or_insert_with(|| 0.into());
    }
    let seen = status.get("observedGeneration").cloned();
    let mut condition =
        json!({"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": why});
    if let Some(seen) = seen {
        condition["observedGeneration"] = seen;
    }
    set_condition(&mut status, condition, context.now);
    let Some(object) = with_status(budget, status.into()) else { return Outcome::done() };
    let told = format!("Failed to calculate the number of expected pods: {why}");
    let told = Event::warning(budget, REPORTER, "CalculateExpectedPodCountFailed", told).into();
    vec![Write::UpdateStatus { resource: resources::disruption_budgets(), object }, told].into()
}
