//! HorizontalPodAutoscaler: it keeps its target between the bounds, finds every pod at the usage that it is
//! meant to have, and says which metrics it cannot have (autoscaling/v2).

mod metrics;

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use tiphys_apiserver::Object;
use tiphys_value::{GroupVersionResource, ObjectExt};

use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    labels::selects,
    object::{created_at, resources, set_condition, status_of, time, with_status},
};

use metrics::{Missing, Pods, measure};

const SCALE_READ: &str = "the HPA controller was able to get the target's current scale";
const SIGNATURE: &str = "horizontal-pod-autoscaler";
/// How long after its creation an autoscaler says nothing of pods that are still starting: it looks every
/// quarter of a minute, and the metrics of a pod come after it is up.
const FIRST_LOOKS: Duration = Duration::from_secs(60);

/// Keeps autoscalers.
pub(super) struct AutoscalerController;

impl Controller for AutoscalerController {
    fn name(&self) -> &'static str {
        "horizontalpodautoscaler"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::autoscalers() {
            return vec![Key::from_object(&change.object)];
        }
        if change.resource == resources::pods() {
            return of_pod(&change.object, view);
        }
        if change.object.at(&["spec", "replicas"]).is_none() && !change.is_deleted {
            return Vec::new();
        }
        let scalers = view.list(&resources::autoscalers(), Some(change.object.namespace()));
        let is_target = |scaler: &Value| {
            scaler.str_at(&["spec", "scaleTargetRef", "name"]) == Some(change.object.name())
                && scaler.str_at(&["spec", "scaleTargetRef", "kind"]) == Some(change.object.kind())
        };
        scalers.iter().filter(|scaler| is_target(scaler)).map(|scaler| Key::from_object(scaler)).collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(scaler) = context.view.get(&resources::autoscalers(), key) else { return Outcome::done() };
        if scaler.is_terminating() {
            return Outcome::done();
        }
        let mut status = status_of(&scaler);
        let writes = match target(&scaler, context.view) {
            Some((resource, target)) => {
                let pods = Pods::from_target(&target, context.view);
                if let Some(left) = still_starting(&scaler, &target, &pods, context) {
                    return Outcome::after(left);
                }
                scale(&scaler, &resource, (&target, &pods), &mut status, context)
            }
            None => {
                let kind = scaler.str_at(&["spec", "scaleTargetRef", "kind"]).unwrap_or_default();
                let name = scaler.str_at(&["spec", "scaleTargetRef", "name"]).unwrap_or_default();
                let api_version =
                    scaler.str_at(&["spec", "scaleTargetRef", "apiVersion"]).unwrap_or_default();
                let group = api_version.split_once('/').map(|(group, _)| format!(".{group}"));
                let why =
                    format!("{}s{} \"{name}\" not found", kind.to_lowercase(), group.unwrap_or_default());
                let message =
                    format!("the HPA controller was unable to get the target's current scale: {why}");
                set(&mut status, "AbleToScale", false, "FailedGetScale", &message, context);
                vec![Event::warning(&scaler, Reporter::Controller(SIGNATURE), "FailedGetScale", why).into()]
            }
        };
        // What is told goes with a change of the status: nothing is told twice for the same state.
        let Some(object) = with_status(&scaler, status.into()) else {
            return writes
                .into_iter()
                .filter(|write| !matches!(write, Write::Tell(_)))
                .collect::<Vec<_>>()
                .into();
        };
        let update = Write::UpdateStatus { resource: resources::autoscalers(), object };
        std::iter::once(update).chain(writes).collect::<Vec<_>>().into()
    }
}

/// The autoscalers whose target a pod belongs to.
fn of_pod(pod: &Value, view: &View<'_>) -> Vec<Key> {
    let scalers = view.list(&resources::autoscalers(), Some(pod.namespace()));
    let selects_it = |scaler: &Value| {
        target(scaler, view).is_some_and(|(_, target)| {
            target.at(&["spec", "selector"]).is_some_and(|selector| selects(Some(selector), pod))
        })
    };
    scalers.iter().filter(|scaler| selects_it(scaler)).map(|scaler| Key::from_object(scaler)).collect()
}

/// How long the pods of a target may still take before the autoscaler says that it has no metrics of them.
/// What it knows without metrics it does at once.
fn still_starting(scaler: &Value, target: &Value, pods: &Pods, context: &Context<'_>) -> Option<Duration> {
    let current = target.int_at(&["spec", "replicas"]).unwrap_or(1);
    let (least, most) = bounds(scaler, current);
    if current == 0 || !(least..=most).contains(&current) || pods.are_up() {
        return None;
    }
    let until = created_at(scaler)?.checked_add(FIRST_LOOKS).ok()?;
    Duration::try_from(until.duration_since(context.now)).ok().filter(|left| !left.is_zero())
}

/// How few and how many pods there may be.
fn bounds(scaler: &Value, current: i64) -> (i64, i64) {
    let least = scaler.int_at(&["spec", "minReplicas"]).unwrap_or(1);
    (least, scaler.int_at(&["spec", "maxReplicas"]).unwrap_or(current).max(least))
}

fn target(scaler: &Value, view: &View<'_>) -> Option<(GroupVersionResource, Arc<Object>)> {
    let target = &scaler["spec"]["scaleTargetRef"];
    let resource = view.resource_of(target.api_version(), target.kind())?;
    let name = target.str_at(&["name"])?.to_owned();
    let object = view.get(&resource, &Key { namespace: scaler.namespace().to_owned(), name })?;
    Some((resource, object))
}

fn set(
    status: &mut Map<String, Value>,
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    context: &Context<'_>,
) {
    let condition = json!({
        "type": kind, "status": if holds { "True" } else { "False" }, "reason": reason, "message": message,
    });
    set_condition(status, condition, context.now);
}

fn scale(
    scaler: &Value,
    resource: &GroupVersionResource,
    (target, pods): (&Value, &Pods),
    status: &mut Map<String, Value>,
    context: &Context<'_>,
) -> Vec<Write> {
    let current = target.int_at(&["spec", "replicas"]).unwrap_or(1);
    let (least, most) = bounds(scaler, current);
    status.insert("currentReplicas".into(), current.into());
    status.remove("currentMetrics");
    let wanted = if current == 0 { 0 } else { current.clamp(least, most) };
    if current == 0 {
        let message = "scaling is disabled since the replica count of the target is zero";
        set(status, "AbleToScale", true, "SucceededGetScale", SCALE_READ, context);
        set(status, "ScalingActive", false, "ScalingDisabled", message, context);
        status.insert("desiredReplicas".into(), 0.into());
        return Vec::new();
    }
    if wanted != current {
        let message = format!("the HPA controller was able to update the target scale to {wanted}");
        set(status, "AbleToScale", true, "SucceededRescale", &message, context);
        status.insert("lastScaleTime".into(), time(context.now));
        status.insert("desiredReplicas".into(), wanted.into());
        let bound = if wanted < current {
            "Current number of replicas above Spec.MaxReplicas"
        } else {
            "Current number of replicas below Spec.MinReplicas"
        };
        let mut object = target.clone();
        object["spec"]["replicas"] = wanted.into();
        let told = format!("New size: {wanted}; reason: {bound}");
        let told = Event::normal(scaler, Reporter::Controller(SIGNATURE), "SuccessfulRescale", told);
        return vec![Write::Update { resource: resource.clone(), object }, told.into()];
    }
    set(status, "AbleToScale", true, "SucceededGetScale", SCALE_READ, context);
    look_at_metrics(scaler, (current, pods), status, context)
}

/// What the metrics say of a number of pods that is within the bounds.
fn look_at_metrics(
    scaler: &Value,
    (current, pods): (i64, &Pods),
    status: &mut Map<String, Value>,
    context: &Context<'_>,
) -> Vec<Write> {
    let warning = |reason: &str, message: String| -> Write {
        Event::warning(scaler, Reporter::Controller(SIGNATURE), reason, message).into()
    };
    let metrics = scaler.at(&["spec", "metrics"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let all: Vec<_> = metrics.iter().map(|metric| measure(metric, scaler.namespace(), pods)).collect();
    // What could not be measured leaves a blank behind.
    let current_metrics =
        all.iter().map(|one| one.as_ref().map_or_else(|_| json!({"type": ""}), |it| it.status.clone()));
    status.insert("currentMetrics".into(), current_metrics.collect());
    let missing: Vec<&Missing> = all.iter().filter_map(|one| one.as_ref().err()).collect();
    let mut told: Vec<Write> =
        missing.iter().map(|missing| warning(missing.reason, missing.why.clone())).collect();
    match (all.iter().find_map(|one| one.as_ref().ok()), missing.first()) {
        (Some(measured), _) => {
            status.insert("desiredReplicas".into(), current.into());
            let ready = "recommended size matches current size";
            set(status, "AbleToScale", true, "ReadyForNewScale", ready, context);
            let found =
                format!("the HPA was able to successfully calculate a replica count from {}", measured.name);
            set(status, "ScalingActive", true, "ValidMetricFound", &found, context);
            let within = "the desired count is within the acceptable range";
            set(status, "ScalingLimited", false, "DesiredWithinRange", within, context);
        }
        (None, Some(first)) => {
            status.entry("desiredReplicas").or_insert_with(|| 0.into());
            let message = format!("the HPA was unable to compute the replica count: {}", first.why);
            set(status, "ScalingActive", false, first.reason, &message, context);
            let count = missing.len();
            let failed = format!(
                "invalid metrics ({count} invalid out of {count}), first error is: {} metric value: {}",
                first.prefix, first.why
            );
            told.push(warning("FailedComputeMetricsReplicas", failed));
        }
        (None, None) => drop(status.entry("desiredReplicas").or_insert_with(|| 0.into())),
    }
    told
}
