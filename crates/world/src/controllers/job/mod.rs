//! Job: pods that run to their end (batch/v1 Job).

mod pods;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use self::pods::Indexes;
use super::{
    own_or_owner,
    workload::{count, created, delete, delete_pod, deleted, failed_create, is_active, is_ready, pods_of},
};
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    object::{condition, is_condition_true, resources, set_condition, status_of, time, with_status},
};

const SIGNATURE: &str = "job-controller";
/// From a pod's failure until the next one; doubles.
const BACK_OFF: u64 = 10;
/// The longest such delay.
const MAX_BACK_OFF: u64 = 600;

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
        if job.is_terminating()
            || job.at(&["spec", "managedBy"]).is_some_and(|by| by != "kubernetes.io/job-controller")
        {
            return Outcome::done();
        }
        if is_condition_true(&job, "Complete") || is_condition_true(&job, "Failed") {
            return expire(&job, context);
        }
        let pods = pods_of(&job, context.view);
        Look::new(&job, &pods, context).run()
    }
}

/// Why a Job has failed: reason and message.
type Verdict = (&'static str, String);

struct Look<'a> {
    job: &'a Value,
    pods: &'a [Arc<Object>],
    active: Vec<&'a Arc<Object>>,
    succeeded: i64,
    failed: i64,
    context: &'a Context<'a>,
    again: Option<Duration>,
}

fn has_phase(wanted: &'static str) -> impl Fn(&Value) -> bool {
    move |pod| pod.str_at(&["status", "phase"]) == Some(wanted)
}

impl<'a> Look<'a> {
    fn new(job: &'a Value, pods: &'a [Arc<Object>], context: &'a Context<'a>) -> Self {
        let active = pods.iter().filter(|pod| is_active(pod)).collect();
        let (succeeded, failed) = (count(pods, has_phase("Succeeded")), count(pods, has_phase("Failed")));
        Self { job, pods, active, succeeded, failed, context, again: None }
    }

    fn spec(&self, field: &str) -> Option<i64> {
        self.job.int_at(&["spec", field])
    }

    fn is_indexed(&self) -> bool {
        self.job.str_at(&["spec", "completionMode"]) == Some("Indexed")
    }

    fn is_suspended(&self) -> bool {
        self.job.at(&["spec", "suspend"]) == Some(&Value::Bool(true))
    }

    fn run(mut self) -> Outcome {
        let mut status = status_of(self.job);
        let mut writes = Vec::new();
        if let Some(why) = self.context.failure {
            writes.push(failed_create(self.job, SIGNATURE, why));
        }
        self.suspension(&mut status, &mut writes);
        if !self.is_suspended() {
            status.entry("startTime").or_insert_with(|| time(self.context.now));
        }
        let verdict = self.verdict(&status);
        let is_complete = verdict.is_none() && self.is_complete();
        let mut changes = Vec::new();
        if verdict.is_some() || is_complete || self.is_suspended() {
            for pod in &self.active {
                changes.push(delete_pod(pod));
                changes.push(deleted(self.job, SIGNATURE, pod.name()));
            }
        } else {
            changes.extend(self.start());
        }
        let remaining =
            if changes.is_empty() || !(verdict.is_some() || is_complete) { self.active.len() } else { 0 };
        let remaining = if self.is_suspended() { 0 } else { remaining };
        self.counts(&mut status, remaining as i64);
        if is_complete {
            status.insert("completionTime".into(), time(self.context.now));
            let reason = ("CompletionsReached", "Reached expected number of succeeded pods".to_owned());
            finish(&mut status, ["SuccessCriteriaMet", "Complete"], &reason, self.context.now);
            writes.push(
                Event::normal(self.job, Reporter::Controller(SIGNATURE), "Completed", "Job completed").into(),
            );
        } else if let Some(verdict) = &verdict {
            finish(&mut status, ["FailureTarget", "Failed"], verdict, self.context.now);
            let (reason, message) = verdict;
            writes.push(
                Event::warning(self.job, Reporter::Controller(SIGNATURE), reason, message.clone()).into(),
            );
        }
        let updated = with_status(self.job, status.into());
        writes.extend(updated.map(|object| Write::UpdateStatus { resource: resources::jobs(), object }));
        writes.extend(changes);
        Outcome::from(writes).again(self.again)
    }

    /// Keeps the condition Suspended, which is there once a Job was.
    fn suspension(&self, status: &mut Map<String, Value>, writes: &mut Vec<Write>) {
        let before = condition(self.job, "Suspended").map(|condition| condition["status"] == "True");
        let now = self.context.now;
        let (state, reason, message) = match (self.is_suspended(), before) {
            (true, Some(true)) | (false, None | Some(false)) => return,
            (true, _) => ("True", "JobSuspended", "Job suspended"),
            (false, Some(true)) => ("False", "JobResumed", "Job resumed"),
        };
        let condition = json!({"type": "Suspended", "status": state, "lastProbeTime": time(now), "reason": reason, "message": message});
        set_condition(status, condition, now);
        if self.is_suspended() {
            status.remove("startTime");
        } else {
            status.insert("startTime".into(), time(now));
        }
        let told = if self.is_suspended() { "Suspended" } else { "Resumed" };
        writes.push(Event::normal(self.job, Reporter::Controller(SIGNATURE), told, message).into());
    }

    /// Why the Job has failed, if it has.
    fn verdict(&mut self, status: &Map<String, Value>) -> Option<Verdict> {
        if let Some(verdict) = pods::policy_verdict(self.job, self.pods) {
            return Some(verdict);
        }
        let limit = self.spec("backoffLimit").unwrap_or(6);
        let restarts = pods::restarts(self.job, &self.active);
        if self.failed > limit || restarts.is_some_and(|restarts| restarts > 0 && restarts >= limit) {
            return Some(("BackoffLimitExceeded", "Job has reached the specified backoff limit".to_owned()));
        }
        let seconds = self.spec("activeDeadlineSeconds").filter(|_| !self.is_suspended())?;
        let began = status.get("startTime").and_then(Value::as_str)?.parse::<Timestamp>().ok()?;
        let left = began.as_second().saturating_add(seconds).saturating_sub(self.context.now.as_second());
        if left > 0 {
            self.again = Some(Duration::from_secs(left.unsigned_abs()));
            return None;
        }
        Some(("DeadlineExceeded", "Job was active longer than specified deadline".to_owned()))
    }

    fn is_complete(&self) -> bool {
        match self.spec("completions") {
            Some(completions) if self.is_indexed() => Indexes::succeeded(self.pods).count() >= completions,
            Some(completions) => self.succeeded >= completions,
            // A work queue: one success and nothing left at work.
            None => self.succeeded > 0 && self.active.is_empty(),
        }
    }

    /// The pods that are missing, unless the last failure was too short a while ago.
    fn start(&mut self) -> Vec<Write> {
        let parallelism = self.spec("parallelism").unwrap_or(1).max(0);
        let active = self.active.len() as i64;
        let wanted = match self.spec("completions") {
            Some(completions) => parallelism.min(completions - self.succeeded),
            None if self.succeeded > 0 => active,
            None => parallelism,
        };
        if active > wanted {
            let surplus = self.active.iter().rev().take((active - wanted).unsigned_abs() as usize);
            return surplus
                .flat_map(|pod| [delete_pod(pod), deleted(self.job, SIGNATURE, pod.name())])
                .collect();
        }
        if wanted > active
            && let Some(left) = self.back_off()
        {
            self.again = Some(self.again.map_or(left, |earlier| earlier.min(left)));
            return Vec::new();
        }
        let missing = (wanted - active).max(0);
        let new: Vec<_> = if self.is_indexed() {
            let free = Indexes::free(self.pods, self.spec("completions").unwrap_or(0));
            free.take(missing as usize).map(|index| pods::indexed(self.job, index, self.pods)).collect()
        } else {
            (0..missing).map(|n| pods::plain(self.job, self.pods.len() as i64 + n)).collect()
        };
        let create = |pod: Value| {
            let told = created(self.job, SIGNATURE, pod.name());
            [Write::Create { resource: resources::pods(), object: pod }, told]
        };
        new.into_iter().flat_map(create).collect()
    }

    /// What is left of the delay after the last failure.
    fn back_off(&self) -> Option<Duration> {
        let failed = self.pods.iter().filter(|pod| has_phase("Failed")(pod));
        let last = failed.filter_map(|pod| pods::finished_at(pod)).max()?;
        let doublings = u32::try_from(self.failed - 1).unwrap_or(0).min(6);
        let delay = (BACK_OFF * 2u64.pow(doublings)).min(MAX_BACK_OFF);
        let left = last.as_second() + delay as i64 - self.context.now.as_second();
        (left > 0).then(|| Duration::from_secs(left.unsigned_abs()))
    }

    fn counts(&self, status: &mut Map<String, Value>, active: i64) {
        let ready =
            if active == 0 { 0 } else { self.active.iter().filter(|pod| is_ready(pod)).count() as i64 };
        for (field, count) in [("active", active), ("succeeded", self.succeeded), ("failed", self.failed)] {
            match count {
                0 => status.remove(field),
                count => status.insert(field.into(), count.into()),
            };
        }
        status.insert("ready".into(), ready.into());
        status.insert("terminating".into(), count(self.pods, |pod| pod.is_terminating()).into());
        status.insert("uncountedTerminatedPods".into(), json!({}));
        if self.is_indexed() {
            let done = Indexes::succeeded(self.pods).to_string();
            match done.as_str() {
                "" => status.remove("completedIndexes"),
                done => status.insert("completedIndexes".into(), done.into()),
            };
        }
    }
}

fn finish(status: &mut Map<String, Value>, kinds: [&str; 2], (reason, message): &Verdict, now: Timestamp) {
    for kind in kinds {
        let condition = json!({"type": kind, "status": "True", "lastProbeTime": time(now), "reason": reason, "message": message});
        set_condition(status, condition, now);
    }
}

/// Deletes a finished Job once `ttlSecondsAfterFinished` has passed.
fn expire(job: &Value, context: &Context<'_>) -> Outcome {
    let Some(ttl) = job.int_at(&["spec", "ttlSecondsAfterFinished"]) else { return Outcome::done() };
    let finished = ["Complete", "Failed"].iter().find_map(|kind| {
        condition(job, kind)
            .filter(|c| c["status"] == "True")?
            .str_at(&["lastTransitionTime"])?
            .parse::<Timestamp>()
            .ok()
    });
    let Some(finished) = finished else { return Outcome::done() };
    let left = finished.as_second().saturating_add(ttl).saturating_sub(context.now.as_second());
    if left > 0 {
        return Outcome::after(Duration::from_secs(left.unsigned_abs()));
    }
    delete(resources::jobs(), job).into()
}
