//! HorizontalPodAutoscaler: nothing is measured here, so it keeps its target between the bounds and says
//! what it cannot have (autoscaling/v2).

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tiphys_apiserver::Object;
use tiphys_value::{GroupVersionResource, ObjectExt};

use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    object::{resources, set_condition, status_of, time, with_status},
};

const SCALE_READ: &str = "the HPA controller was able to get the target's current scale";
const SIGNATURE: &str = "horizontal-pod-autoscaler";
const NO_METRICS: &str = "unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)";

/// Keeps autoscalers.
pub struct AutoscalerController;

impl Controller for AutoscalerController {
    fn name(&self) -> &'static str {
        "horizontalpodautoscaler"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::autoscalers() {
            return vec![Key::of(&change.object)];
        }
        if change.object.at(&["spec", "replicas"]).is_none() && !change.is_deleted {
            return Vec::new();
        }
        let scalers = view.list(&resources::autoscalers(), Some(change.object.namespace()));
        let is_target = |scaler: &Value| {
            scaler.str_at(&["spec", "scaleTargetRef", "name"]) == Some(change.object.name())
                && scaler.str_at(&["spec", "scaleTargetRef", "kind"]) == Some(change.object.kind())
        };
        scalers.iter().filter(|scaler| is_target(scaler)).map(|scaler| Key::of(scaler)).collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(scaler) = context.view.get(&resources::autoscalers(), key) else { return Outcome::done() };
        if scaler.is_terminating() {
            return Outcome::done();
        }
        let mut status = status_of(&scaler);
        let writes = match target(&scaler, context.view) {
            Some((resource, target)) => scale(&scaler, &resource, &target, &mut status, context),
            None => {
                let kind = scaler.str_at(&["spec", "scaleTargetRef", "kind"]).unwrap_or_default();
                let name = scaler.str_at(&["spec", "scaleTargetRef", "name"]).unwrap_or_default();
                let why = format!("{}s \"{name}\" not found", kind.to_lowercase());
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
    target: &Value,
    status: &mut Map<String, Value>,
    context: &Context<'_>,
) -> Vec<Write> {
    let current = target.int_at(&["spec", "replicas"]).unwrap_or(1);
    let least = scaler.int_at(&["spec", "minReplicas"]).unwrap_or(1);
    let most = scaler.int_at(&["spec", "maxReplicas"]).unwrap_or(current);
    status.insert("currentReplicas".into(), target.int_at(&["status", "replicas"]).unwrap_or(0).into());
    status.insert("observedGeneration".into(), scaler.generation().into());
    let wanted = if current == 0 { 0 } else { current.clamp(least, most.max(least)) };
    status.insert("desiredReplicas".into(), wanted.into());
    let tell = |is_warning: bool, reason: &str, message: String| -> Write {
        let reporter = Reporter::Controller(SIGNATURE);
        match is_warning {
            true => Event::warning(scaler, reporter, reason, message).into(),
            false => Event::normal(scaler, reporter, reason, message).into(),
        }
    };
    if current == 0 {
        let message = "scaling is disabled since the replica count of the target is zero";
        set(status, "AbleToScale", true, "SucceededGetScale", SCALE_READ, context);
        set(status, "ScalingActive", false, "ScalingDisabled", message, context);
        return Vec::new();
    }
    if wanted != current {
        let message = format!("the HPA controller was able to update the target scale to {wanted}");
        set(status, "AbleToScale", true, "SucceededRescale", &message, context);
        status.insert("lastScaleTime".into(), time(context.now));
        let bound = if wanted < current {
            "Current number of replicas above Spec.MaxReplicas"
        } else {
            "Current number of replicas below Spec.MinReplicas"
        };
        let mut object = target.clone();
        object["spec"]["replicas"] = wanted.into();
        let told = tell(false, "SuccessfulRescale", format!("New size: {wanted}; reason: {bound}"));
        return vec![Write::Update { resource: resource.clone(), object }, told];
    }
    set(status, "AbleToScale", true, "SucceededGetScale", SCALE_READ, context);
    let (reason, why) = missing_metric(scaler);
    let message = format!("the HPA was unable to compute the replica count: {why}");
    set(status, "ScalingActive", false, reason, &message, context);
    vec![
        tell(true, reason, why.clone()),
        tell(
            true,
            "FailedComputeMetricsReplicas",
            format!("invalid metrics (1 invalid out of 1), first error is: {why}"),
        ),
    ]
}

/// The reason and the text of what cannot be measured, for the first metric.
fn missing_metric(scaler: &Value) -> (&'static str, String) {
    let metric = scaler.at(&["spec", "metrics"]).and_then(|metrics| metrics.get(0));
    let kind = metric.and_then(|metric| metric.str_at(&["type"])).unwrap_or("Resource");
    match kind {
        "Resource" | "ContainerResource" => {
            let field = if kind == "Resource" { "resource" } else { "containerResource" };
            let name = metric.and_then(|metric| metric.str_at(&[field, "name"])).unwrap_or("cpu");
            let text = format!(
                "failed to get {name} utilization: unable to get metrics for resource {name}: {NO_METRICS}"
            );
            if kind == "Resource" {
                ("FailedGetResourceMetric", text)
            } else {
                ("FailedGetContainerResourceMetric", text)
            }
        }
        "External" => (
            "FailedGetExternalMetric",
            "unable to get external metric: no external metrics API is served".to_owned(),
        ),
        "Object" => (
            "FailedGetObjectMetric",
            "unable to get object metric: no custom metrics API is served".to_owned(),
        ),
        _ => ("FailedGetPodsMetric", "unable to get pods metric: no custom metrics API is served".to_owned()),
    }
}
