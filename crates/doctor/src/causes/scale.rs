//! Autoscalers and rollouts.

use tiphys_cause::{Cause, ScaleFault, scale_fault};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    calls::{Caller, explain_text},
    cluster::{condition, condition_text, conditions, items, pods},
    finding::Finding,
    search_context::{Ill, Look},
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> =
        look.cluster.all("HorizontalPodAutoscaler").iter().filter_map(|it| autoscaler(look, it)).collect();
    found.extend(look.cluster.all("HorizontalPodAutoscaler").iter().filter_map(|it| at_maximum(look, it)));
    found.extend(look.cluster.all("VerticalPodAutoscaler").iter().filter_map(|it| vertical(look, it)));
    found.extend(look.cluster.all("Deployment").iter().filter_map(|it| paused(look, it)));
    found.extend(look.cluster.all("Rollout").iter().filter_map(|it| aborted(look, it)));
    found
}

/// An autoscaler that does not scale.
fn autoscaler(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let object = Object::from_live(live);
    let bad = conditions(live).find(|it| {
        matches!(it.str_at(&["type"]), Some("ScalingActive" | "AbleToScale"))
            && it.str_at(&["status"]) == Some("False")
    })?;
    let message = bad.str_at(&["message"]).unwrap_or_default();
    let (reason, low) = (bad.str_at(&["reason"]).unwrap_or_default(), message.to_ascii_lowercase());
    let reference = |key| live.str_at(&["spec", "scaleTargetRef", key]).unwrap_or_default();
    let target = Object::new(reference("kind"), live.namespace(), reference("name"));
    if reason == "AmbiguousSelector" {
        return Some(doubled(look, live, bad));
    }
    let fault = scale_fault(reason, message);
    let mut finding = if reason == "FailedGetScale" {
        if look.cluster.live(&target).is_some() && fault.is_none() {
            return None;
        }
        Finding::new(
            Cause::ScaleTarget,
            object.clone(),
            0.94,
            format!("{object} scales {target}, which does not exist"),
        )
        .field("spec.scaleTargetRef")
        .remedy("Correct the target's kind, name or apiVersion.", &[])
    } else if let Some(ScaleFault::NoRequest { resource }) = &fault {
        Finding::new(
            Cause::ScaleNoRequests,
            object.clone(),
            0.94,
            format!("{object} scales by {resource}, and a container of {target} requests none"),
        )
        .field("spec.metrics")
        .remedy(format!("Set resources.requests.{resource} on every container of {target}."), &[])
    } else if reason.starts_with("FailedGet") || reason == "InvalidMetricSourceType" {
        let group = if reason.contains("External") {
            "v1beta1.external.metrics.k8s.io"
        } else if reason.contains("Resource") {
            "v1beta1.metrics.k8s.io"
        } else {
            "v1beta1.custom.metrics.k8s.io"
        };
        let service = Object::new("APIService", "", group);
        let of_pods = low.contains("no metrics known for pod")
            || low.contains("did not receive metrics")
            || low.contains("no metrics returned from")
            || low.contains("no recommendation");
        // Each group of metrics has servers of its own.
        let names: &[&str] = match group {
            "v1beta1.metrics.k8s.io" => &["metrics-server", "prometheus-adapter"],
            "v1beta1.external.metrics.k8s.io" => {
                &["metrics-apiserver", "metrics-adapter", "prometheus-adapter"]
            }
            _ => &["prometheus-adapter", "custom-metrics", "metrics-adapter"],
        };
        let mut servers = look.cluster.all("Deployment").iter();
        let server = servers.find(|it| names.iter().any(|name| it.name().contains(name)));
        let is_down = look.cluster.live(&service).is_none_or(|it| {
            condition(it, "Available").is_some_and(|it| it.str_at(&["status"]) == Some("False"))
        });
        // The metrics of pods that do not run are nobody's.
        let runs = pods::of_workload(look.cluster, &target).iter().any(|pod| pods::is_ready(pod));
        if of_pods && (!runs || look.is_red(&target) || look.ill.iter().any(|ill| ill.workload == target)) {
            return None;
        }
        let at = match (look.cluster.live(&service), server) {
            (Some(_), _) if is_down => service.clone(),
            (_, Some(server)) => Object::from_live(server),
            _ => service.clone(),
        };
        let absent = look.cluster.has_kind("APIService") && look.cluster.live(&service).is_none();
        // Whoever answers with an error of his own is there.
        let is_silent =
            ["unable to handle the request", "could not find the requested resource", "no matches for"]
                .iter()
                .any(|word| low.contains(word))
                || absent && !low.contains("rpc error") && !low.contains("metric values");
        // A server that is well does not answer for a reason that its API would tell.
        let is_untold = !look.cluster.has_kind("APIService")
            && server.is_some_and(|it| pods::replicas(it) != 0 && !look.is_red(&Object::from_live(it)));
        let confidence = match (is_down && is_silent, of_pods && absent || is_untold) {
            // Somebody answered, though nobody is known who could.
            (_, true) => 0.45,
            (true, _) => 0.9,
            (false, _) if is_silent => 0.6,
            (false, _) => 0.45,
        };
        let mut finding = Finding::new(
            Cause::ScaleMetricsDown,
            at.clone(),
            confidence,
            format!(
                "{object} gets no metrics: {service} {}",
                if absent { "does not exist" } else { "does not answer" }
            ),
        )
        .suffers(object.clone(), "has no metrics")
        .remedy("Install or repair the metrics server.", &[format!("kubectl get apiservice {group}")]);
        // Why an API that is there does not answer is told by itself.
        if look.cluster.live(&service).is_some() && is_down {
            finding = finding.shallow();
        }
        if let Some(server) = server {
            let named = Object::from_live(server);
            if pods::replicas(server) == 0 {
                finding = finding.evidence(named.to_string(), "spec.replicas: 0");
            }
            if named != at {
                finding = finding.below(named);
            } else {
                finding = pods::of_workload(look.cluster, &named)
                    .into_iter()
                    .fold(finding, |finding, pod| finding.below(Object::from_live(pod)));
            }
        }
        finding
    } else {
        return None;
    };
    // An autoscaler that an operator made asks that operator's resource for its metric.
    if let Some(owner) = crate::cluster::controller(live) {
        finding = finding.below(owner);
    }
    Some(finding.evidence(
        format!("{object}, condition {}", bad.str_at(&["type"]).unwrap_or_default()),
        condition_text(bad),
    ))
}

/// An autoscaler of sizes whose target does not exist.
fn vertical(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let object = Object::from_live(live);
    let told = conditions(live).find(|it| {
        it.str_at(&["type"]) == Some("ConfigUnsupported") && it.str_at(&["status"]) == Some("True")
            || it.str_at(&["reason"]) == Some("NoPodsMatched")
    })?;
    let reference = |key| live.str_at(&["spec", "targetRef", key]).unwrap_or_default();
    let target = Object::new(reference("kind"), live.namespace(), reference("name"));
    let is_absent = look.cluster.has_kind(&target.kind) && look.cluster.live(&target).is_none();
    is_absent.then(|| {
        Finding::new(
            Cause::ScaleTarget,
            object.clone(),
            0.9,
            format!("{object} sizes {target}, which does not exist"),
        )
        .field("spec.targetRef")
        .evidence(
            format!("{object}, condition {}", told.str_at(&["type"]).unwrap_or_default()),
            condition_text(told),
        )
        .remedy("Correct the target's kind or name.", &[])
    })
}

/// Two autoscalers of the same pods: neither of them scales.
fn doubled(look: &Look<'_>, live: &Value, told: &Value) -> Finding {
    let target = live.at(&["spec", "scaleTargetRef", "name"]);
    let rivals = look.cluster.all("HorizontalPodAutoscaler").iter().filter(|it| {
        it.namespace() == live.namespace() && it.at(&["spec", "scaleTargetRef", "name"]) == target
    });
    let made = |it: &Value| crate::cluster::time(it, &["metadata", "creationTimestamp"]);
    let mut rivals: Vec<&Value> = rivals.copied().collect();
    rivals.sort_by_key(|it| (std::cmp::Reverse(made(it)), it.name()));
    let newest = rivals.first().map_or_else(|| Object::from_live(live), |it| Object::from_live(it));
    let summary = format!("{newest} and another autoscaler scale the same pods, so neither does");
    let finding = Finding::new(Cause::OperatorTwoOwners, newest, 0.88, summary)
        .field("spec.scaleTargetRef")
        .evidence(Object::from_live(live).to_string(), condition_text(told))
        .remedy("Delete one of the autoscalers.", &[]);
    rivals.into_iter().fold(finding, |finding, it| finding.suffers(Object::from_live(it), "does not scale"))
}

/// An autoscaler at its maximum while its pods fail.
fn at_maximum(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let limited = condition(live, "ScalingLimited").filter(|it| {
        it.str_at(&["status"]) == Some("True") && it.str_at(&["reason"]) == Some("TooManyReplicas")
    })?;
    let object = Object::from_live(live);
    let reference = |key| live.str_at(&["spec", "scaleTargetRef", key]).unwrap_or_default();
    let target = Object::new(reference("kind"), live.namespace(), reference("name"));
    let ill = look.ill.iter().find(|ill| ill.workload == target)?;
    let is_slow = ill.pods.iter().any(|pod| {
        look.cluster.events(&Object::from_live(pod)).any(|event| {
            event.reason == "Unhealthy"
                && tiphys_cause::probe_fault(&event.message).is_some_and(|it| {
                    matches!(
                        it.failure,
                        Some(tiphys_cause::Failure::Timeout | tiphys_cause::Failure::Status(500..=599))
                    )
                })
        })
    });
    if !is_slow {
        return None;
    }
    let finding = Finding::new(
        Cause::ScaleMax,
        object.clone(),
        0.8,
        format!(
            "{object} is at its maximum of {}, and the pods of {target} do not keep up",
            live.int_at(&["spec", "maxReplicas"]).unwrap_or_default()
        ),
    )
    .field("spec.maxReplicas")
    .evidence(format!("{object}, condition ScalingLimited"), condition_text(limited))
    .evidence(
        object.to_string(),
        live.at(&["status", "currentMetrics"]).map(ToString::to_string).unwrap_or_default(),
    )
    .remedy("Raise maxReplicas, or what each pod may use.", &[]);
    let finding = ill
        .pods
        .iter()
        .fold(finding, |finding, pod| finding.suffers(Object::from_live(pod), "does not keep up"));
    Some(finding.suffers(target, "does not keep up"))
}

/// Whether the pods that get no node are those of a rollout that may take no old pod away, and ask for no
/// more than they.
pub(crate) fn is_blocked_rollout(look: &Look<'_>, ill: &Ill<'_>) -> bool {
    let Some(live) = look.cluster.live(&ill.workload).filter(|it| it.kind() == "Deployment") else {
        return false;
    };
    let unavailable = live.at(&["spec", "strategy", "rollingUpdate", "maxUnavailable"]);
    let is_none =
        unavailable.is_some_and(|it| it.as_i64() == Some(0) || matches!(it.as_str(), Some("0" | "0%")));
    let old: Vec<&Value> = pods::of_workload(look.cluster, &ill.workload)
        .into_iter()
        .filter(|pod| pods::is_ready(pod))
        .collect();
    let hash = |pod: &Value| pod.label("pod-template-hash").map(str::to_owned);
    let Some(new) = ill.pods.first() else { return false };
    let asks = |pod: &Value, resource| {
        pod.get("spec").map_or(0, |spec| super::scheduling::requested(spec, resource))
    };
    let fits = old.first().is_some_and(|old| {
        asks(new, "cpu") <= asks(old, "cpu")
            && asks(new, "memory") <= asks(old, "memory")
            && hash(new) != hash(old)
    });
    is_none && i64::try_from(old.len()).is_ok_and(|count| count >= pods::replicas(live)) && fits
}

/// A Rollout of Argo whose analysis failed, so that the new version is not taken.
fn aborted(look: &Look<'_>, live: &Value) -> Option<Finding> {
    if live.at(&["status", "abort"]).and_then(Value::as_bool) != Some(true) {
        return None;
    }
    let object = Object::from_live(live);
    let message = live.str_at(&["status", "message"]).unwrap_or_default();
    let summary = format!("the rollout of {object} was aborted: {message}");
    let finding = Finding::new(Cause::ScaleRollout, object.clone(), 0.8, summary)
        .field("spec.strategy")
        .evidence(object.to_string(), message)
        .remedy("Correct the new version, or what its analysis measures, and retry.", &[]);
    let runs = look.cluster.all("AnalysisRun").iter().filter(|run| {
        run.namespace() == live.namespace()
            && run.name().starts_with(live.name())
            && matches!(run.str_at(&["status", "phase"]), Some("Failed" | "Error" | "Inconclusive"))
    });
    let finding = runs.fold(finding, |finding, run| {
        let words = run.str_at(&["status", "message"]).unwrap_or_default();
        finding
            .evidence(Object::from_live(run).to_string(), words)
            .suffers(Object::from_live(run), "measured too many failures")
    });
    let calls = calls_of_analysis(look, &object, message, &finding);
    if let Some(call) = calls.iter().find(|call| call.confidence >= SURE_CALL) {
        return Some(failed_measurement(call.clone(), &finding));
    }
    // What is asked may be ill itself.
    let below = calls.into_iter().flat_map(|call| call.upstream);
    let finding = below.fold(finding, Finding::below);
    let is_unseen = tiphys_cause::failed_calls(message).iter().any(|call| !call.targets.is_empty())
        && !look.cluster.knows_services();
    let finding = if is_unseen { finding.not_known() } else { finding };
    let pods = pods::of_workload(look.cluster, &object).into_iter().map(Object::from_live);
    Some(pods.filter(|pod| look.is_red(pod)).fold(finding, Finding::below))
}

/// From this confidence on a call tells why an analysis got no numbers.
const SURE_CALL: f64 = 0.6;

/// What explains why calls of an analysis for its numbers fail.
fn calls_of_analysis(look: &Look<'_>, rollout: &Object, message: &str, aborted: &Finding) -> Vec<Finding> {
    let caller = Caller::of_workload(look.cluster, rollout.clone());
    let told = (format!("{rollout}, status"), message.to_owned());
    let runs = aborted.evidence.iter().map(|it| (it.source.clone(), it.text.clone()));
    let found = [told].into_iter().chain(runs).flat_map(|(source, text)| {
        let sufferer = (rollout, "its analysis gets no numbers");
        explain_text(look, &caller, (&source, &text), sufferer)
    });
    found.collect()
}

/// A failed call of an analysis breaks all that the aborted rollout breaks.
fn failed_measurement(call: Finding, aborted: &Finding) -> Finding {
    let suffers = aborted.suffers.iter().cloned();
    suffers.fold(call, |call, (object, symptom)| call.suffers(object, symptom))
}

/// A rollout that somebody paused, with a newer template waiting.
fn paused(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let object = Object::from_live(live);
    let is_paused = live.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true);
    let updated = live.int_at(&["status", "updatedReplicas"]).unwrap_or(0);
    // While all pods of the older template serve, it may be on purpose.
    let confidence = if look.is_red(&object) { 0.85 } else { 0.45 };
    (is_paused && updated < pods::replicas(live))
        .then(|| {
            Finding::new(
                Cause::ScaleRollout,
                object.clone(),
                confidence,
                format!("the rollout of {object} is paused"),
            )
            .field("spec.paused")
            .evidence(
                object.to_string(),
                format!("paused: true, {updated} of {} pods are updated", pods::replicas(live)),
            )
            .remedy(
                "Resume it.",
                &[format!("kubectl -n {} rollout resume deployment {}", object.namespace, object.name)],
            )
        })
        .filter(|_| items(live, &["status", "conditions"]).next().is_some())
}
