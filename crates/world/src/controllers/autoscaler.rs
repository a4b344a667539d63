//! HorizontalPodAutoscaler: nothing is measured here, so it keeps its target between the bounds and says
//! what it cannot have (autoscaling/v2).

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tiphys_apiserver::Object;
use tiphys_value::{GroupVersionResource, ObjectExt};

use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    labels::selector_in_go,
    object::{resources, set_condition, status_of, time, with_status},
};

const SCALE_READ: &str = "the HPA controller was able to get the target's current scale";
const SIGNATURE: &str = "horizontal-pod-autoscaler";
/// Why there are no metrics of pods.
const NO_RESOURCE_METRICS: &str = "unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)";
/// Why there are no metrics of objects.
const NO_CUSTOM_METRICS: &str = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered";

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
    status.insert("currentReplicas".into(), current.into());
    status.remove("currentMetrics");
    let wanted = if current == 0 { 0 } else { current.clamp(least, most.max(least)) };
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
        let told = tell(false, "SuccessfulRescale", format!("New size: {wanted}; reason: {bound}"));
        return vec![Write::Update { resource: resource.clone(), object }, told];
    }
    set(status, "AbleToScale", true, "SucceededGetScale", SCALE_READ, context);
    status.entry("desiredReplicas").or_insert_with(|| 0.into());
    let metrics = scaler.at(&["spec", "metrics"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    // What could not be measured leaves a blank behind.
    status.insert("currentMetrics".into(), metrics.iter().map(|_| json!({"type": ""})).collect());
    let missing: Vec<_> = metrics.iter().map(|metric| missing(metric, scaler.namespace())).collect();
    let Some(first) = missing.first() else { return Vec::new() };
    let message = format!("the HPA was unable to compute the replica count: {}", first.why);
    set(status, "ScalingActive", false, first.reason, &message, context);
    let count = missing.len();
    let told = missing.iter().map(|missing| tell(true, missing.reason, missing.why.clone()));
    let failed = format!(
        "invalid metrics ({count} invalid out of {count}), first error is: {} metric value: {}",
        first.prefix, first.why
    );
    told.chain([tell(true, "FailedComputeMetricsReplicas", failed)]).collect()
}

/// A metric that cannot be had.
struct Missing {
    /// The reason of the condition and of the event.
    reason: &'static str,
    /// Their text.
    why: String,
    /// What failed, for the summary of all metrics.
    prefix: String,
}

fn missing(metric: &Value, namespace: &str) -> Missing {
    let text = |path: &[&str]| metric.str_at(path).unwrap_or_default();
    let kind = text(&["type"]);
    let field =
        format!("{}{}", kind.chars().take(1).collect::<String>().to_lowercase(), kind.get(1..).unwrap_or(""));
    let by_value = metric.at(&[&field, "target", "averageValue"]).is_some();
    let resource = |name: &str| {
        let what = if by_value { "usage" } else { "utilization" };
        format!(
            "failed to get {name} {what}: unable to get metrics for resource {name}: {NO_RESOURCE_METRICS}"
        )
    };
    let name = text(&[&field, "metric", "name"]);
    match kind {
        "Resource" => {
            let name = text(&["resource", "name"]);
            let prefix = format!("failed to get {name} resource");
            Missing { reason: "FailedGetResourceMetric", why: resource(name), prefix }
        }
        "ContainerResource" => {
            let prefix = format!("failed to get {} container", text(&["containerResource", "container"]));
            let why = resource(text(&["containerResource", "name"]));
            Missing { reason: "FailedGetContainerResourceMetric", why, prefix }
        }
        "External" => {
            let selector =
                selector_in_go(metric.at(&["external", "metric", "selector"]).unwrap_or(&Value::Null));
            let why = format!(
                "unable to get external metric {namespace}/{name}/{selector}: unable to fetch metrics from external \
                 metrics API: the server could not find the requested resource (get {name}.external.metrics.k8s.io)"
            );
            Missing {
                reason: "FailedGetExternalMetric",
                why,
                prefix: format!("failed to get {name} external"),
            }
        }
        "Object" => {
            let object = |field: &str| text(&["object", "describedObject", field]);
            let (of, object) = (object("kind"), object("name"));
            let why =
                format!("unable to get metric {name}: {NO_CUSTOM_METRICS} on {of} {namespace}/{object}");
            Missing { reason: "FailedGetObjectMetric", why, prefix: "failed to get object".into() }
        }
        _ => {
            let why = format!("unable to get metric {name}: {NO_CUSTOM_METRICS}");
            Missing { reason: "FailedGetPodsMetric", why, prefix: "failed to get pods".into() }
        }
    }
}
