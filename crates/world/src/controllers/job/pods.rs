//! The pods of a Job: how they are made, and what their ends mean.

use std::{collections::BTreeSet, fmt, sync::Arc};

use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{Verdict, has_phase};
use crate::{
    controllers::workload::{is_active, stable_suffix},
    object::pod_from_template,
};

const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Completion indexes of an Indexed Job.
pub struct Indexes(BTreeSet<i64>);

impl Indexes {
    /// Those whose pod has succeeded.
    pub fn succeeded(pods: &[Arc<Object>]) -> Self {
        Self(pods.iter().filter(|pod| has_phase("Succeeded")(pod)).filter_map(|pod| index(pod)).collect())
    }

    /// Those below `completions` that have no pod at work and none that succeeded, lowest first.
    pub fn free(pods: &[Arc<Object>], completions: i64) -> impl Iterator<Item = i64> {
        let taken: BTreeSet<_> = pods
            .iter()
            .filter(|pod| is_active(pod) || has_phase("Succeeded")(pod))
            .filter_map(|pod| index(pod))
            .collect();
        (0..completions).filter(move |index| !taken.contains(index))
    }

    /// How many they are.
    pub fn count(&self) -> i64 {
        self.0.len() as i64
    }
}

/// `0-2,5`.
impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(i64, i64)> = Vec::new();
        for index in &self.0 {
            match ranges.last_mut() {
                Some((_, end)) if *end + 1 == *index => *end = *index,
                _ => ranges.push((*index, *index)),
            }
        }
        let range = |(first, last): &(i64, i64)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        };
        f.write_str(&ranges.iter().map(range).collect::<Vec<_>>().join(","))
    }
}

fn index(pod: &Value) -> Option<i64> {
    pod.annotation(INDEX)?.parse().ok()
}

/// A pod of a Job that only counts.
pub fn plain(job: &Value, number: i64) -> Value {
    pod(job, &format!("{}-{}", job.name(), stable_suffix(&[job.uid(), &number.to_string()], 5)))
}

/// A pod of an Indexed Job.
pub fn indexed(job: &Value, index: i64, pods: &[Arc<Object>]) -> Value {
    let prefix = format!("{}-{index}", job.name());
    let attempt = pods.iter().filter(|pod| self::index(pod) == Some(index)).count().to_string();
    let mut pod =
        pod(job, &format!("{prefix}-{}", stable_suffix(&[job.uid(), &index.to_string(), &attempt], 5)));
    pod["metadata"]["generateName"] = format!("{prefix}-").into();
    pod["metadata"]["annotations"][INDEX] = index.to_string().into();
    pod["metadata"]["labels"][INDEX] = index.to_string().into();
    pod["spec"]["hostname"] = prefix.into();
    for field in ["containers", "initContainers"] {
        for container in pod["spec"][field].as_array_mut().into_iter().flatten() {
            let path = format!("metadata.labels['{INDEX}']");
            let variable =
                json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}});
            match container["env"].as_array_mut() {
                Some(env) => env.push(variable),
                None => container["env"] = json!([variable]),
            }
        }
    }
    if pod["spec"]["initContainers"].is_null() {
        drop(pod["spec"].as_object_mut().map(|spec| spec.remove("initContainers")));
    }
    pod
}

fn pod(job: &Value, name: &str) -> Value {
    let mut pod = pod_from_template(job, &job["spec"]["template"], name);
    pod["metadata"]["generateName"] = format!("{}-", job.name()).into();
    for (key, value) in [("job-name", job.name()), ("controller-uid", job.uid())] {
        pod["metadata"]["labels"][key] = value.into();
        pod["metadata"]["labels"][format!("batch.kubernetes.io/{key}")] = value.into();
    }
    pod
}

fn container_statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainerStatuses", "containerStatuses"].into_iter();
    lists.filter_map(|list| pod.at(&["status", list])?.as_array()).flatten()
}

/// When the last container of a pod ended.
pub fn finished_at(pod: &Value) -> Option<Timestamp> {
    container_statuses(pod)
        .filter_map(|s| s.str_at(&["state", "terminated", "finishedAt"])?.parse().ok())
        .max()
}

/// How often the containers at work were started again, if the Job counts that (`restartPolicy: OnFailure`).
pub fn restarts(job: &Value, active: &[&Arc<Object>]) -> Option<i64> {
    if job.str_at(&["spec", "template", "spec", "restartPolicy"]) != Some("OnFailure") {
        return None;
    }
    let all = active.iter().flat_map(|pod| container_statuses(pod));
    Some(all.filter_map(|status| status.int_at(&["restartCount"])).sum())
}

/// Whether a rule of the pod failure policy fails the Job by an exit code.
pub fn policy_verdict(job: &Value, pods: &[Arc<Object>]) -> Option<Verdict> {
    let rules = job.at(&["spec", "podFailurePolicy", "rules"]).and_then(Value::as_array)?;
    for pod in pods.iter().filter(|pod| has_phase("Failed")(pod)) {
        for (number, rule) in rules.iter().enumerate() {
            let Some(codes) = rule.get("onExitCodes") else { continue };
            let wanted = codes.str_at(&["containerName"]);
            let listed: Vec<_> =
                codes["values"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
            let is_in = codes["operator"] == "In";
            let hit = container_statuses(pod).find_map(|status| {
                let code = status.int_at(&["state", "terminated", "exitCode"]).filter(|code| *code != 0)?;
                let is_meant = wanted.is_none_or(|name| status["name"] == name);
                (is_meant && listed.contains(&code) == is_in).then(|| (status["name"].clone(), code))
            });
            let Some((container, code)) = hit else { continue };
            if rule["action"] == "FailJob" {
                let container = container.as_str().unwrap_or_default();
                let message = format!(
                    "Container {container} for pod {}/{} failed with exit code {code} matching FailJob rule at index {number}",
                    pod.namespace(),
                    pod.name()
                );
                return Some(("PodFailurePolicy", message));
            }
            break;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_as_ranges() {
        let text = |indexes: &[i64]| Indexes(indexes.iter().copied().collect()).to_string();
        assert_eq!(text(&[0, 1, 2, 5, 7, 8]), "0-2,5,7,8");
        assert_eq!(text(&[]), "");
    }
}
