//! The pods of a Job: how they are made, and when they ended.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{
    indexes::{FAILURES, IGNORED_FAILURES, INDEX, failures_after},
    pod_counts::{FINALIZER, has_failed, has_succeeded},
};
use crate::{
    Key, View,
    controllers::workload::stable_suffix,
    object::{condition, created_at, pod_from_template, resources},
};

/// From a pod's failure until the next one; doubles.
const BACK_OFF: i64 = 10;
/// The longest such delay.
const MAX_BACK_OFF: i64 = 600;

/// Names for new pods that no pod has.
pub(super) fn free_names<'a>(
    job: &'a Value,
    prefix: &'a str,
    view: &'a View<'a>,
) -> impl Iterator<Item = String> + 'a {
    let name = move |n: u32| format!("{prefix}{}", stable_suffix(&[job.uid(), prefix, &n.to_string()], 5));
    (0u32..).map(name).filter(move |name| {
        let key = Key { namespace: job.namespace().to_owned(), name: name.clone() };
        view.get(&resources::pods(), &key).is_none()
    })
}

/// A pod of a Job that only counts.
pub(super) fn plain(job: &Value, name: &str) -> Value {
    let mut pod = pod_from_template(job, &job["spec"]["template"], name);
    pod["metadata"]["generateName"] = format!("{}-", job.name()).into();
    match pod["metadata"]["finalizers"].as_array_mut() {
        Some(finalizers) => finalizers.push(FINALIZER.into()),
        None => pod["metadata"]["finalizers"] = json!([FINALIZER]),
    }
    for (key, value) in [("job-name", job.name()), ("controller-uid", job.uid())] {
        pod["metadata"]["labels"][key] = value.into();
        pod["metadata"]["labels"][format!("batch.kubernetes.io/{key}")] = value.into();
    }
    pod
}

/// What the names of the pods of an index begin with.
pub(super) fn prefix_of(job: &Value, index: i64) -> String {
    format!("{}-{index}-", job.name())
}

/// A pod of an Indexed Job, in place of one that failed if indexes have limits of their own.
pub(super) fn indexed(job: &Value, index: i64, name: &str, replaced: Option<&Value>) -> Value {
    let mut pod = plain(job, name);
    pod["metadata"]["generateName"] = prefix_of(job, index).into();
    pod["metadata"]["annotations"][INDEX] = index.to_string().into();
    pod["metadata"]["labels"][INDEX] = index.to_string().into();
    if job.at(&["spec", "backoffLimitPerIndex"]).is_some() {
        let (counted, ignored) = replaced.map_or((0, 0), |pod| failures_after(job, pod));
        pod["metadata"]["annotations"][FAILURES] = counted.to_string().into();
        if ignored > 0 {
            pod["metadata"]["annotations"][IGNORED_FAILURES] = ignored.to_string().into();
        }
    }
    pod["spec"]["hostname"] = format!("{}-{index}", job.name()).into();
    for field in ["containers", "initContainers"] {
        let Some(containers) = pod["spec"].get_mut(field).and_then(Value::as_array_mut) else { continue };
        for container in containers {
            tell_index(container);
        }
    }
    pod
}

/// Gives a container its index in the environment, unless it has something else there.
fn tell_index(container: &mut Value) {
    let name = "JOB_COMPLETION_INDEX";
    let path = format!("metadata.labels['{INDEX}']");
    let variable = json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    match container["env"].as_array_mut() {
        Some(env) if env.iter().any(|known| known["name"] == name) => {}
        Some(env) => env.push(variable),
        None => container["env"] = json!([variable]),
    }
}

/// The statuses of a pod's containers, and of its init containers.
pub(super) fn container_statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["containerStatuses", "initContainerStatuses"].into_iter();
    lists.filter_map(|list| pod.at(&["status", list])?.as_array()).flatten()
}

/// When a pod ended: its last container, or when it ceased to be Ready, or was told to go.
fn finished_at(pod: &Value) -> Option<Timestamp> {
    let statuses = pod.at(&["status", "containerStatuses"]).and_then(Value::as_array);
    let ends: Option<Vec<Timestamp>> = statuses
        .into_iter()
        .flatten()
        .map(|status| status.str_at(&["state", "terminated", "finishedAt"])?.parse().ok())
        .collect();
    let last = ends.and_then(|ends| ends.into_iter().max());
    let not_ready = || condition(pod, "Ready").filter(|ready| ready["status"] == "False");
    let since = || not_ready()?.str_at(&["lastTransitionTime"])?.parse().ok();
    last.or_else(since).or_else(|| created_at(pod))
}

/// What is left of the delay after failures: of the whole Job, those since its last success.
pub(super) fn back_off(job: &Value, pods: &[Arc<Object>], now: Timestamp) -> Option<Duration> {
    let ends = |ended: &dyn Fn(&Value) -> bool| -> Vec<Timestamp> {
        pods.iter().filter(|pod| ended(pod)).filter_map(|pod| finished_at(pod)).collect()
    };
    let last_success = ends(&has_succeeded).into_iter().max();
    let mut failures = ends(&|pod| has_failed(job, pod));
    failures.retain(|at| last_success.is_none_or(|success| *at > success));
    delay_left(failures.len() as i64, failures.into_iter().max()?, now)
}

/// What is left of the delay after the failures of one index.
pub(super) fn back_off_of_index(job: &Value, replaced: &Value, now: Timestamp) -> Option<Duration> {
    let (counted, ignored) = failures_after(job, replaced);
    delay_left(counted + ignored, finished_at(replaced)?, now)
}

fn delay_left(failures: i64, last: Timestamp, now: Timestamp) -> Option<Duration> {
    let doublings = u32::try_from(failures - 1).ok()?.min(6);
    let delay = (BACK_OFF * 2i64.pow(doublings)).min(MAX_BACK_OFF);
    let left = last.as_second() + delay - now.as_second();
    (left > 0).then(|| Duration::from_secs(left.unsigned_abs()))
}

/// How often the containers of pods that have not ended were started again, if the Job counts that
/// (`restartPolicy: OnFailure`).
pub(super) fn restarts(job: &Value, pods: &[Arc<Object>]) -> Option<i64> {
    if job.str_at(&["spec", "template", "spec", "restartPolicy"]) != Some("OnFailure") {
        return None;
    }
    let phases = BTreeSet::from([Some("Running"), Some("Pending")]);
    let at_work = pods.iter().filter(|pod| phases.contains(&pod.str_at(&["status", "phase"])));
    let all = at_work.flat_map(|pod| container_statuses(pod));
    Some(all.filter_map(|status| status.int_at(&["restartCount"])).sum())
}
