//! What an autoscaler learns of its metrics. Nothing is measured here and nobody knows the load, so the
//! resource metrics API says of every pod that is ready that it uses what it is meant to: the one figure that
//! asks for no other number of pods. Metrics that need an adapter of somebody's own cannot be had.

use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_schema::Quantity;
use tiphys_value::ObjectExt;

use super::super::workload::{is_finished, is_ready};
use crate::{
    View,
    labels::{selector_in_go, selects},
    object::resources,
};

/// Why there are no metrics of objects.
const NO_CUSTOM_METRICS: &str = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered";
/// What the resource metrics API says of pods that are not up.
const NONE: &str = "no metrics returned from resource metrics API";

/// The pods that an autoscaler scales, by name.
pub(super) struct Pods {
    /// Whether the target tells by a selector which they are.
    are_known: bool,
    all: Vec<Arc<Object>>,
}

impl Pods {
    /// The pods that a target selects.
    pub(super) fn from_target(target: &Value, view: &View<'_>) -> Self {
        let Some(selector) = target.at(&["spec", "selector"]) else {
            return Self { are_known: false, all: Vec::new() };
        };
        let mut all = view.list(&resources::pods(), Some(target.namespace()));
        all.retain(|pod| selects(Some(selector), pod) && !pod.is_terminating() && !is_finished(pod));
        Self { are_known: true, all }
    }

    /// Whether metrics of a pod can be had; where nobody knows which pods there are, they are taken to be up.
    pub(super) fn are_up(&self) -> bool {
        !self.are_known || self.all.iter().any(|pod| is_ready(pod))
    }
}

/// A metric that was measured.
pub(super) struct Measured {
    /// As `status.currentMetrics` has it.
    pub status: Value,
    /// What it is called in conditions.
    pub name: String,
}

/// A metric that cannot be had.
pub(super) struct Missing {
    /// The reason of the condition and of the event.
    pub reason: &'static str,
    /// Their text.
    pub why: String,
    /// What failed, for the summary of all metrics.
    pub prefix: String,
}

/// Looks at one of `spec.metrics`.
///
/// # Errors
/// With what the controller says of one that cannot be had.
pub(super) fn measure(metric: &Value, namespace: &str, pods: &Pods) -> Result<Measured, Missing> {
    let text = |path: &[&str]| metric.str_at(path).unwrap_or_default();
    let kind = text(&["type"]);
    let (field, reason, subject) = match kind {
        "Resource" => {
            ("resource", "FailedGetResourceMetric", format!("{} resource", text(&["resource", "name"])))
        }
        "ContainerResource" => {
            let container = text(&["containerResource", "container"]);
            ("containerResource", "FailedGetContainerResourceMetric", format!("{container} container"))
        }
        _ => return Err(unserved(metric, namespace)),
    };
    let (name, container) = (text(&[field, "name"]), metric.str_at(&[field, "container"]));
    let fail = |why: String| Missing { reason, why, prefix: format!("failed to get {subject}") };
    let target = &metric[field]["target"];
    let current = current(target, name, container, pods).map_err(fail)?;
    let by_value = current.get("averageUtilization").is_none();
    let of = if kind == "Resource" { "" } else { "container " };
    let called = match by_value {
        true => format!("{name} resource"),
        false => format!("{name} {of}resource utilization (percentage of request)"),
    };
    let mut measured = json!({"name": name, "current": current});
    if let Some(container) = container {
        measured["container"] = container.into();
    }
    Ok(Measured { status: json!({"type": kind, field: measured}), name: called })
}

/// The value of a resource that is at its target, or why there is none.
fn current(target: &Value, name: &str, container: Option<&str>, pods: &Pods) -> Result<Value, String> {
    let up = |what: &str| match pods.are_up() {
        true => Ok(()),
        false => {
            Err(format!("failed to get {name} {what}: unable to get metrics for resource {name}: {NONE}"))
        }
    };
    if let Some(value) = target.at(&["averageValue"]).filter(|value| !value.is_null()) {
        up("usage")?;
        return Ok(
            json!({"averageValue": quantity(value).map_or_else(|| value.to_string(), |it| it.to_string())}),
        );
    }
    let percent = target.int_at(&["averageUtilization"]).unwrap_or_default();
    up("utilization")?;
    let mut requested: i128 = 0;
    for pod in &pods.all {
        let request = request(pod, name, container)
            .map_err(|why| format!("failed to get {name} utilization: {why}"))?;
        requested += i128::from(request);
    }
    let used = requested * i128::from(percent) / 100 / (pods.all.len().max(1) as i128);
    Ok(
        json!({"averageUtilization": percent, "averageValue": amount_text(name, i64::try_from(used).unwrap_or(i64::MAX))}),
    )
}

/// What a pod, or one container of it, requests of a resource, in thousandths.
fn request(pod: &Value, name: &str, container: Option<&str>) -> Result<i64, String> {
    let requests = |of: &Value| of.at(&["resources", "requests", name]).and_then(quantity);
    if let (None, Some(whole)) = (container, pod.at(&["spec"]).and_then(requests)) {
        return Ok(whole.milli());
    }
    let list = |field: &str| pod.at(&["spec", field]).and_then(Value::as_array).into_iter().flatten();
    let sidecars = list("initContainers").filter(|it| it.str_at(&["restartPolicy"]) == Some("Always"));
    let mut sum: i64 = 0;
    let mut is_found = container.is_none();
    for one in list("containers").chain(sidecars) {
        let called = one.str_at(&["name"]).unwrap_or_default();
        if container.is_some_and(|container| container != called) {
            continue;
        }
        is_found = true;
        let request = requests(one).ok_or_else(|| {
            format!("missing request for {name} in container {called} of Pod {}", pod.name())
        })?;
        sum = sum.saturating_add(request.milli());
    }
    match container {
        Some(container) if !is_found => Err(format!("container {container} not found in Pod {}", pod.name())),
        _ => Ok(sum),
    }
}

fn quantity(value: &Value) -> Option<Quantity> {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned).parse().ok()
}

/// An amount in thousandths as the controller writes it: memory in binary notation.
fn amount_text(name: &str, milli: i64) -> String {
    let units = milli / 1000;
    if name != "memory" || milli % 1000 != 0 {
        return Quantity::from_milli(milli).to_string();
    }
    let binary =
        (units % 1024 == 0).then(|| format!("{}Ki", units / 1024).parse::<Quantity>().ok()).flatten();
    binary.map_or_else(|| units.to_string(), |binary| binary.to_string())
}

/// A metric of an API that nothing here serves.
fn unserved(metric: &Value, namespace: &str) -> Missing {
    let text = |path: &[&str]| metric.str_at(path).unwrap_or_default();
    match text(&["type"]) {
        "External" => {
            let name = text(&["external", "metric", "name"]);
            let selector =
                selector_in_go(metric.at(&["external", "metric", "selector"]).unwrap_or(&Value::Null));
            let why = format!(
                "unable to get external metric {namespace}/{name}/{selector}: unable to fetch metrics from external \
                 metrics API: the server could not find the requested resource (get {name}.external.metrics.k8s.io)"
            );
            let prefix = format!("failed to get {name} external");
            Missing { reason: "FailedGetExternalMetric", why, prefix }
        }
        "Object" => {
            let name = text(&["object", "metric", "name"]);
            let object = |field: &str| text(&["object", "describedObject", field]);
            let (of, object) = (object("kind"), object("name"));
            let why =
                format!("unable to get metric {name}: {NO_CUSTOM_METRICS} on {of} {namespace}/{object}");
            Missing { reason: "FailedGetObjectMetric", why, prefix: "failed to get object".into() }
        }
        _ => {
            let why =
                format!("unable to get metric {}: {NO_CUSTOM_METRICS}", text(&["pods", "metric", "name"]));
            Missing { reason: "FailedGetPodsMetric", why, prefix: "failed to get pods".into() }
        }
    }
}
