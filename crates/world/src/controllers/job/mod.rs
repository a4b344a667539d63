//! Job: pods that run to their end (batch/v1 Job).

mod finish;
mod indexes;
mod orphans;
mod pod_counts;
mod pods;
mod policy;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

pub(super) use self::orphans::OrphanController;
use self::{
    finish::Finish,
    indexes::{Indexes, index},
    pod_counts::{FINALIZER, Tally, has_failed, has_succeeded, is_tracked, untracked, waits_for_end},
};
use super::{
    adoption,
    workload::{
        BURST, created, delete, delete_pod, deleted, failed_create, going_first, is_active, is_finished,
        is_ready,
    },
};
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    object::{condition, is_job_finished, resources, set_condition, status_of, time, with_status},
};

const SIGNATURE: &str = "job-controller";

/// Runs Jobs to their end.
pub(super) struct JobController;

impl Controller for JobController {
    fn name(&self) -> &'static str {
        "job"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        adoption::keys(change, &resources::jobs(), "Job", adoption::selector_of, view)
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(job) = context.view.get(&resources::jobs(), key) else { return Outcome::done() };
        if job.at(&["spec", "managedBy"]).is_some_and(|by| by != "kubernetes.io/job-controller") {
            return Outcome::done();
        }
        if is_job_finished(&job) {
            return if job.is_terminating() { Outcome::done() } else { expire(&job, context) };
        }
        let selector = adoption::selector_of(&job);
        let claims = adoption::claim(&job, &resources::pods(), &selector, |_| true, context.view);
        if !claims.adopted.is_empty() && !job.is_terminating() {
            return with_finalizers(claims.adopted).into();
        }
        let mut outcome = Look::new(&job, &claims.mine, context).run();
        outcome.writes.splice(..0, claims.released);
        outcome
    }
}

/// What is taken up is counted like what was made.
fn with_finalizers(mut adopted: Vec<Write>) -> Vec<Write> {
    for write in &mut adopted {
        let Write::Update { object, .. } = write else { continue };
        match object["metadata"]["finalizers"].as_array_mut() {
            Some(finalizers) if finalizers.iter().any(|known| known == FINALIZER) => {}
            Some(finalizers) => finalizers.push(FINALIZER.into()),
            None => object["metadata"]["finalizers"] = json!([FINALIZER]),
        }
    }
    adopted
}

/// One look at a Job that has not ended.
struct Look<'a> {
    job: &'a Value,
    pods: &'a [Arc<Object>],
    active: Vec<&'a Arc<Object>>,
    tally: Tally,
    /// The indexes that have failed for good, if indexes do by themselves.
    failed_indexes: Option<Indexes>,
    context: &'a Context<'a>,
    again: Option<Duration>,
    /// Pods that are told to go by this look.
    going: usize,
    /// Pods that this look makes.
    coming: usize,
}

impl<'a> Look<'a> {
    fn new(job: &'a Value, pods: &'a [Arc<Object>], context: &'a Context<'a>) -> Self {
        let mut active: Vec<_> = pods.iter().filter(|pod| is_active(pod)).collect();
        active.sort_by_cached_key(|pod| going_first(pod));
        let is_indexed = job.str_at(&["spec", "completionMode"]) == Some("Indexed");
        let tally = Tally::from_job(job, pods, is_indexed);
        let failed_indexes = is_indexed.then(|| indexes::failed(job, pods)).flatten();
        Self { job, pods, active, tally, failed_indexes, context, again: None, going: 0, coming: 0 }
    }

    fn spec(&self, field: &str) -> Option<i64> {
        self.job.int_at(&["spec", field])
    }

    fn is_suspended(&self) -> bool {
        self.job.at(&["spec", "suspend"]) == Some(&Value::Bool(true))
    }

    fn terminating(&self) -> usize {
        self.pods.iter().filter(|pod| pod.is_terminating() && !is_finished(pod)).count()
    }

    fn run(mut self) -> Outcome {
        let mut status = status_of(self.job);
        let mut writes = Vec::new();
        if let Some(why) = self.context.failure {
            writes.push(failed_create(self.job, SIGNATURE, why));
        }
        if !self.is_suspended() {
            status.entry("startTime").or_insert_with(|| time(self.context.now));
        }
        let mut finish = self.finish(&status);
        let (mut changes, mut told) = (Vec::new(), Vec::new());
        if finish.is_some() {
            changes.extend(self.active.iter().flat_map(|pod| self.stop(pod, false)));
            self.going = self.active.len();
        } else {
            if !self.job.is_terminating() {
                changes.extend(self.manage());
            }
            if self.is_complete() {
                finish = Some(Finish::complete());
            } else if !self.job.is_terminating() {
                self.suspension(&mut status, &mut told);
            }
        }
        let counted = self.count(finish.as_ref());
        if let Some(finish) = &finish {
            finish.announce(&mut status, self.context.now);
            let is_over =
                counted.is_empty() && self.tally.is_settled() && self.terminating() + self.going == 0;
            if is_over {
                finish.conclude(&mut status, self.context.now);
                writes.push(finish.event(self.job));
            }
        }
        // What failed before may fail again: it is not counted ahead.
        if self.context.failure.is_some() {
            self.coming = 0;
        }
        self.tell(&mut status);
        let updated = with_status(self.job, status.into());
        writes.extend(updated.map(|object| Write::UpdateStatus { resource: resources::jobs(), object }));
        writes.extend(counted);
        writes.extend(changes);
        writes.extend(told);
        Outcome::from(writes).requeue_after(self.again)
    }

    /// How the Job ends, if that is decided.
    fn finish(&mut self, status: &Map<String, Value>) -> Option<Finish> {
        if let Some(decided) = Finish::decided(self.job) {
            return Some(decided);
        }
        let failed = self.pods.iter().filter(|pod| has_failed(self.job, pod));
        if let Some(why) = failed.into_iter().find_map(|pod| policy::fails_job(self.job, pod)) {
            return Some(Finish::failed("PodFailurePolicy", why));
        }
        let limit = self.spec("backoffLimit").unwrap_or(6);
        let restarts = pods::restarts(self.job, self.pods).unwrap_or(0);
        if self.tally.failed > limit || (restarts > 0 && restarts >= limit) {
            return Some(Finish::failed(
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            ));
        }
        if self.is_too_late(status) {
            let message = "Job was active longer than specified deadline";
            return Some(Finish::failed("DeadlineExceeded", message));
        }
        let succeeded = self.tally.indexes.as_ref()?;
        if let Some(failed) = self.failed_indexes.as_ref().map(Indexes::count) {
            if self.spec("maxFailedIndexes").is_some_and(|most| failed > most) {
                let message = "Job has exceeded the specified maximal number of failed indexes";
                return Some(Finish::failed("MaxFailedIndexesExceeded", message));
            }
            if failed > 0 && failed + succeeded.count() >= self.spec("completions").unwrap_or(0) {
                return Some(Finish::failed("FailedIndexes", "Job has failed indexes"));
            }
        }
        policy::success(self.job, succeeded).map(Finish::by_policy)
    }

    fn is_too_late(&mut self, status: &Map<String, Value>) -> bool {
        let deadline = || {
            let seconds = self.spec("activeDeadlineSeconds").filter(|_| !self.is_suspended())?;
            let began = status.get("startTime").and_then(Value::as_str)?.parse::<Timestamp>().ok()?;
            Some(began.as_second().saturating_add(seconds).saturating_sub(self.context.now.as_second()))
        };
        match deadline() {
            Some(left) if left > 0 => {
                self.look_again(Duration::from_secs(left.unsigned_abs()));
                false
            }
            left => left.is_some(),
        }
    }

    fn look_again(&mut self, delay: Duration) {
        self.again = Some(self.again.map_or(delay, |earlier| earlier.min(delay)));
    }

    fn is_complete(&self) -> bool {
        let active = self.active.len() + self.coming - self.going;
        let is_enough = match self.spec("completions") {
            Some(completions) => self.tally.succeeded >= completions,
            // A work queue: one success and nothing left at work.
            None => self.tally.succeeded > 0,
        };
        is_enough && active == 0
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

    /// Takes a pod away; one that is only too many counts neither as succeeded nor as failed.
    fn stop(&self, pod: &Object, is_surplus: bool) -> Vec<Write> {
        let free = (is_surplus && is_tracked(pod))
            .then(|| Write::Update { resource: resources::pods(), object: untracked(pod) });
        free.into_iter().chain([delete_pod(pod), deleted(self.job, SIGNATURE, pod.name())]).collect()
    }

    /// Takes away the pods that are too many, or makes those that are missing.
    fn manage(&mut self) -> Vec<Write> {
        let parallelism = self.spec("parallelism").unwrap_or(1).max(0);
        let active = self.active.len() as i64;
        let wanted = match self.spec("completions") {
            _ if self.is_suspended() => 0,
            Some(completions) => parallelism.min(completions - self.tally.succeeded).max(0),
            None if self.tally.succeeded > 0 => active,
            None => parallelism,
        };
        let surplus = self.surplus((active - wanted).max(0) as usize);
        if !surplus.is_empty() {
            self.going = surplus.len();
            return surplus.iter().flat_map(|pod| self.stop(pod, true)).collect();
        }
        let ending = if waits_for_end(self.job) { self.terminating() as i64 } else { 0 };
        let missing = ((wanted - active - ending).max(0) as usize).min(BURST);
        let new = if missing == 0 { Vec::new() } else { self.new_pods(missing) };
        self.coming = new.len();
        let create = |pod: Value| {
            let told = created(self.job, SIGNATURE, pod.name());
            [Write::Create { resource: resources::pods(), object: pod }, told]
        };
        new.into_iter().flat_map(create).collect()
    }

    /// The pods that go: those of no index or of one that another pod has, and as many more as are too many.
    fn surplus(&self, number: usize) -> Vec<&'a Arc<Object>> {
        if self.tally.indexes.is_none() {
            return self.active.iter().copied().take(number).collect();
        }
        let completions = self.spec("completions").unwrap_or(0);
        let mut seen = BTreeSet::new();
        // The last of those that would go stays.
        let (kept, mut going): (Vec<_>, Vec<_>) = self
            .active
            .iter()
            .copied()
            .rev()
            .partition(|pod| index(pod).is_some_and(|index| index < completions && seen.insert(index)));
        let more = number.saturating_sub(going.len());
        going.extend(kept.into_iter().rev().take(more));
        going
    }

    /// The pods that are missing, unless the last failure was too short a while ago.
    fn new_pods(&mut self, missing: usize) -> Vec<Value> {
        let now = self.context.now;
        let by_index = self.spec("backoffLimitPerIndex").is_some();
        if !by_index && let Some(left) = pods::back_off(self.job, self.pods, now) {
            self.look_again(left);
            return Vec::new();
        }
        let (job, view) = (self.job, self.context.view);
        let Some(succeeded) = &self.tally.indexes else {
            let prefix = format!("{}-", job.name());
            let names = pods::free_names(job, &prefix, view).take(missing);
            return names.map(|name| pods::plain(job, &name)).collect();
        };
        let none = Indexes::default();
        let failed = self.failed_indexes.as_ref().unwrap_or(&none);
        let replaced =
            if by_index { indexes::to_replace(job, self.pods, succeeded, failed) } else { Vec::new() };
        let is_taken = |pod: &Object| is_active(pod) || (waits_for_end(job) && !is_finished(pod));
        let taken: BTreeSet<_> =
            self.pods.iter().filter(|pod| is_taken(pod)).filter_map(|pod| index(pod)).collect();
        let free = (0..self.spec("completions").unwrap_or(0))
            .filter(|at| !taken.contains(at) && !succeeded.has(*at) && !failed.has(*at));
        let (mut new, mut soonest) = (Vec::new(), None);
        for at in free.take(missing) {
            let before = replaced.iter().find(|pod| index(pod) == Some(at)).map(|pod| pod.value());
            if let Some(left) = before.and_then(|pod| pods::back_off_of_index(job, pod, now)) {
                soonest = Some(soonest.map_or(left, |soonest: Duration| soonest.min(left)));
                continue;
            }
            let prefix = pods::prefix_of(job, at);
            let name = pods::free_names(job, &prefix, view).next().unwrap_or_default();
            new.push(pods::indexed(job, at, &name, before));
        }
        if let Some(left) = soonest {
            self.look_again(left);
        }
        new
    }

    /// Counts the pods that have ended, and lets go of them. Those that this look tells to go are counted
    /// later.
    fn count(&mut self, finish: Option<&Finish>) -> Vec<Write> {
        let none = Indexes::default();
        let succeeded = self.tally.indexes.clone().unwrap_or_default();
        let failed = self.failed_indexes.as_ref().unwrap_or(&none);
        let held = match self.spec("backoffLimitPerIndex") {
            Some(_) => indexes::to_replace(self.job, self.pods, &succeeded, failed),
            None => Vec::new(),
        };
        let is_held = |pod: &Object| held.iter().any(|held| held.uid() == pod.uid());
        let may_go = |pod: &&Arc<Object>| {
            let is_over = finish.is_some() || self.job.is_terminating();
            has_succeeded(pod) || (is_over && !is_active(pod)) || (has_failed(self.job, pod) && !is_held(pod))
        };
        let all_failed = finish.is_some_and(|finish| !finish.is_success());
        let ended: Vec<_> = self.pods.iter().filter(may_go).collect();
        let counted = self.tally.take(self.job, ended.into_iter(), all_failed);
        let release =
            |pod: &Arc<Object>| Write::Update { resource: resources::pods(), object: untracked(pod) };
        counted.into_iter().map(release).collect()
    }

    fn tell(&self, status: &mut Map<String, Value>) {
        self.tally.tell(status);
        match self.active.len() + self.coming - self.going {
            0 => status.remove("active"),
            active => status.insert("active".into(), active.into()),
        };
        let is_staying = |pod: &&Arc<Object>| self.going == 0 && is_ready(pod);
        let ready = self.active.iter().copied().filter(is_staying).count();
        status.insert("ready".into(), ready.into());
        status.insert("terminating".into(), (self.terminating() + self.going).into());
        match &self.failed_indexes {
            Some(failed) => status.insert("failedIndexes".into(), failed.to_string().into()),
            None => status.remove("failedIndexes"),
        };
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
