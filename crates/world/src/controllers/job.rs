//! Job: pods that run to their end (batch/v1 Job).

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::{
    own_or_owner,
    workload::{count, delete_pod, is_active, is_ready, pods_of, stable_suffix},
};
use crate::{
    Change, Controller, Key, Outcome, Propagation, View, Write,
    controller::Context,
    object::{is_condition_true, pod_from_template, resources, set_condition, status_of, time, with_status},
};

/// Runs Jobs to their end.
pub struct JobController;

impl Controller for JobController {
    fn name(&self) -> &'static str {
        "job"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        own_or_owner(change, &resources::jobs(), "Job")
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(job) = context.view.get(&resources::jobs(), key) else { return Outcome::done() };
        if job.is_terminating() {
            return Outcome::done();
        }
        if is_condition_true(&job, "Complete") || is_condition_true(&job, "Failed") {
            return expire(&job, context);
        }
        let pods = pods_of(&job, context.view);
        let phase =
            |wanted: &'static str| move |pod: &Value| pod.str_at(&["status", "phase"]) == Some(wanted);
        let (succeeded, failed) = (count(&pods, phase("Succeeded")), count(&pods, phase("Failed")));
        let active: Vec<_> = pods.iter().filter(|pod| is_active(pod)).collect();
        let completions = job.int_at(&["spec", "completions"]).unwrap_or(1);
        let is_suspended = job.at(&["spec", "suspend"]) == Some(&Value::Bool(true));
        let has_failed = failed > job.int_at(&["spec", "backoffLimit"]).unwrap_or(6);
        let is_complete = succeeded >= completions;
        let mut writes = Vec::new();
        if is_suspended || has_failed {
            writes.extend(active.iter().map(|pod| delete_pod(pod)));
        } else if !is_complete {
            let parallelism = job.int_at(&["spec", "parallelism"]).unwrap_or(1);
            let wanted = parallelism.min(completions - succeeded) - active.len() as i64;
            writes.extend((0..wanted).map(|number| create(&job, pods.len() as i64 + number)));
        }
        let mut status = status_of(&job);
        status.entry("startTime").or_insert_with(|| time(context.now));
        let ready = active.iter().filter(|pod| is_ready(pod)).count();
        let remaining = if is_suspended || has_failed || is_complete { 0 } else { active.len() };
        for (field, count) in [("active", remaining as i64), ("succeeded", succeeded), ("failed", failed)] {
            match count {
                0 => status.remove(field),
                count => status.insert(field.into(), count.into()),
            };
        }
        status.insert("ready".into(), json!(ready));
        status.insert("terminating".into(), 0.into());
        if is_complete {
            status.insert("completionTime".into(), time(context.now));
            let reason = ("CompletionsReached", "Reached expected number of succeeded pods");
            finish(&mut status, ["SuccessCriteriaMet", "Complete"], reason, context);
        } else if has_failed {
            let reason = ("BackoffLimitExceeded", "Job has reached the specified backoff limit");
            finish(&mut status, ["FailureTarget", "Failed"], reason, context);
        }
        let updated = with_status(&job, status.into());
        writes.extend(updated.map(|object| Write::UpdateStatus { resource: resources::jobs(), object }));
        writes.into()
    }
}

fn finish(
    status: &mut serde_json::Map<String, Value>,
    conditions: [&str; 2],
    (reason, message): (&str, &str),
    context: &Context<'_>,
) {
    for kind in conditions {
        let condition = json!({"type": kind, "status": "True", "lastProbeTime": time(context.now), "reason": reason, "message": message});
        set_condition(status, condition, context.now);
    }
}

/// Deletes a finished Job once `ttlSecondsAfterFinished` has passed.
fn expire(job: &Value, context: &Context<'_>) -> Outcome {
    let Some(ttl) = job.int_at(&["spec", "ttlSecondsAfterFinished"]) else { return Outcome::done() };
    let conditions = job.at(&["status", "conditions"]).and_then(Value::as_array);
    let finished = conditions.into_iter().flatten().filter_map(|c| c.str_at(&["lastTransitionTime"]));
    let Some(finished) = finished.filter_map(|at| at.parse::<jiff::Timestamp>().ok()).max() else {
        return Outcome::done();
    };
    let due = finished.as_second().saturating_add(ttl);
    let left = due.saturating_sub(context.now.as_second());
    if left > 0 {
        return Outcome::after(std::time::Duration::from_secs(left.unsigned_abs()));
    }
    Write::Delete {
        resource: resources::jobs(),
        key: Key::of(job),
        uid: job.uid().to_owned(),
        propagation: Propagation::Background,
    }
    .into()
}

fn create(job: &Value, number: i64) -> Write {
    let name = format!("{}-{}", job.name(), stable_suffix(&[job.uid(), &number.to_string()], 5));
    let mut pod = pod_from_template(job, &job["spec"]["template"], &name);
    for (key, value) in [("job-name", job.name()), ("controller-uid", job.uid())] {
        pod["metadata"]["labels"][key] = value.into();
        pod["metadata"]["labels"][format!("batch.kubernetes.io/{key}")] = value.into();
    }
    Write::Create { resource: resources::pods(), object: pod }
}
