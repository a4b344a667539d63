//! CronJob: Jobs on a schedule (batch/v1 CronJob).

use std::{sync::Arc, time::Duration};

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_gocompat::{cron::Schedule, time::zone};
use tiphys_value::ObjectExt;

use super::{adoption::own_or_owner, workload::delete};
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    object::{
        is_condition_true, is_controlled_by, is_job_finished, owner_reference, resources, status_of, time,
        with_status,
    },
};

const SIGNATURE: &str = "cronjob-controller";
/// How many missed starts are looked back at.
const MOST_MISSED: usize = 100;

/// Starts Jobs when they are due.
pub(super) struct CronJobController;

impl Controller for CronJobController {
    fn name(&self) -> &'static str {
        "cronjob"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        if change.resource == resources::jobs() || change.resource == resources::cron_jobs() {
            return own_or_owner(change, &resources::cron_jobs(), "CronJob");
        }
        Vec::new()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(cron) = context.view.get(&resources::cron_jobs(), key) else { return Outcome::done() };
        if cron.is_terminating() {
            return Outcome::done();
        }
        let dependents = context.view.dependents(cron.uid()).into_iter();
        let mine = dependents.filter(|(r, job)| *r == resources::jobs() && is_controlled_by(job, &cron));
        let mut jobs: Vec<_> = mine.map(|(_, job)| job).filter(|job| !job.is_terminating()).collect();
        jobs.sort_by_cached_key(|job| {
            (job.str_at(&["metadata", "creationTimestamp"]).map(str::to_owned), Key::from_object(job))
        });
        Look { cron: &cron, jobs: &jobs, context, writes: Vec::new(), again: None }.run()
    }
}

/// The Job of a name that a CronJob makes of its template.
pub fn job_of_cron_job(cron_job: &Value, name: &str) -> Value {
    let template = &cron_job["spec"]["jobTemplate"];
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": template.get("metadata").filter(|m| m.is_object()).cloned().unwrap_or_else(|| json!({})),
        "spec": template["spec"],
    });
    job["metadata"]["name"] = name.into();
    job["metadata"]["namespace"] = cron_job.namespace().into();
    job["metadata"]["ownerReferences"] = json!([owner_reference(cron_job)]);
    job
}

struct Look<'a> {
    cron: &'a Arc<Object>,
    jobs: &'a [Arc<Object>],
    context: &'a Context<'a>,
    writes: Vec<Write>,
    again: Option<Duration>,
}

impl Look<'_> {
    fn run(mut self) -> Outcome {
        let mut status = status_of(self.cron);
        self.forget_history("successfulJobsHistoryLimit", 3, "Complete", &mut status);
        self.forget_history("failedJobsHistoryLimit", 1, "Failed", &mut status);
        self.see_finished(&mut status);
        let is_suspended = self.cron.at(&["spec", "suspend"]) == Some(&Value::Bool(true));
        if !is_suspended && let Some(due) = self.due() {
            self.start(due, &mut status);
        }
        let updated = with_status(self.cron, status.into());
        let update = updated.map(|object| Write::UpdateStatus { resource: resources::cron_jobs(), object });
        let mut writes: Vec<_> = update.into_iter().collect();
        writes.append(&mut self.writes);
        Outcome::from(writes).requeue_after(self.again)
    }

    fn tell(&mut self, is_warning: bool, reason: &str, message: String) {
        let reporter = Reporter::Controller(SIGNATURE);
        let event = match is_warning {
            true => Event::warning(self.cron, reporter, reason, message),
            false => Event::normal(self.cron, reporter, reason, message),
        };
        self.writes.push(event.into());
    }

    /// Takes the Jobs that are done off the list of active ones.
    fn see_finished(&mut self, status: &mut serde_json::Map<String, Value>) {
        let listed = status.get("active").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_active = |reference: &Value| {
            self.jobs.iter().any(|job| reference.str_at(&["uid"]) == Some(job.uid()) && !is_job_finished(job))
        };
        let (active, done): (Vec<_>, Vec<_>) = listed.into_iter().partition(is_active);
        for reference in &done {
            let name = reference.str_at(&["name"]).unwrap_or_default();
            let Some(job) = self.jobs.iter().find(|job| job.name() == name) else {
                self.tell(false, "MissingJob", format!("Active job went missing: {name}"));
                continue;
            };
            let kind = if is_condition_true(job, "Complete") { "Complete" } else { "Failed" };
            if kind == "Complete" {
                status.insert("lastSuccessfulTime".into(), time(self.context.now));
            }
            self.tell(false, "SawCompletedJob", format!("Saw completed job: {name}, condition: {kind}"));
        }
        if self.jobs.iter().any(|job| is_condition_true(job, "Complete"))
            && !status.contains_key("lastSuccessfulTime")
        {
            status.insert("lastSuccessfulTime".into(), time(self.context.now));
        }
        let unlisted = self.jobs.iter().filter(|job| !is_job_finished(job));
        let missing = unlisted.filter(|job| !active.iter().any(|r| r.str_at(&["uid"]) == Some(job.uid())));
        let all: Vec<_> = active.iter().cloned().chain(missing.map(|job| reference(job))).collect();
        match all.is_empty() {
            true => status.remove("active"),
            false => status.insert("active".into(), all.into()),
        };
    }

    /// Deletes a Job, which is active no longer.
    fn delete(&mut self, job: &Object, status: &mut serde_json::Map<String, Value>) {
        self.writes.push(delete(resources::jobs(), job));
        self.tell(false, "SuccessfulDelete", format!("Deleted job {}", job.name()));
        if let Some(active) = status.get_mut("active").and_then(Value::as_array_mut) {
            active.retain(|reference| reference.str_at(&["uid"]) != Some(job.uid()));
        }
    }

    fn forget_history(
        &mut self,
        field: &str,
        default: i64,
        kind: &str,
        status: &mut serde_json::Map<String, Value>,
    ) {
        let limit = self.cron.int_at(&["spec", field]).unwrap_or(default).max(0) as usize;
        let done: Vec<_> = self.jobs.iter().filter(|job| is_condition_true(job, kind)).collect();
        for job in done.iter().take(done.len().saturating_sub(limit)) {
            self.delete(job, status);
        }
    }

    /// The latest start that is due and was not made; sets when the next one is.
    fn due(&mut self) -> Option<Timestamp> {
        let text = self.cron.str_at(&["spec", "schedule"]).unwrap_or_default();
        let schedule = match Schedule::parse(text) {
            Ok(schedule) => schedule,
            Err(error) => {
                self.tell(true, "UnparseableSchedule", format!("unparseable schedule: \"{text}\" : {error}"));
                return None;
            }
        };
        let zone = match self.cron.str_at(&["spec", "timeZone"]).map(|name| (name, zone(name))) {
            None => TimeZone::UTC,
            Some((_, Some(zone))) => zone,
            Some((name, None)) => {
                let message = format!("invalid timeZone: \"{name}\": unknown time zone {name}");
                self.tell(true, "UnknownTimeZone", message);
                return None;
            }
        };
        let now = self.context.now;
        let moment = |path: &[&str]| self.cron.str_at(path).and_then(|at| at.parse::<Timestamp>().ok());
        let mut from = moment(&["status", "lastScheduleTime"])
            .or_else(|| moment(&["metadata", "creationTimestamp"]))
            .unwrap_or(now);
        if let Some(seconds) = self.cron.int_at(&["spec", "startingDeadlineSeconds"]) {
            let earliest = now.checked_sub(Duration::from_secs(seconds.unsigned_abs())).unwrap_or(now);
            from = from.max(earliest);
        }
        let mut due = None;
        let mut missed = 0;
        let mut next = schedule.next_after(from, &zone);
        while let Some(at) = next.filter(|at| *at <= now) {
            due = Some(at);
            missed += 1;
            if missed > MOST_MISSED {
                let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
                self.tell(true, "TooManyMissedTimes", message.to_owned());
                // Those in between do not count any more.
                next = schedule.next_after(now, &zone);
                break;
            }
            next = schedule.next_after(at, &zone);
        }
        self.again = next.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
        due
    }

    fn start(&mut self, due: Timestamp, status: &mut serde_json::Map<String, Value>) {
        // The name says for which minute: a Job that was made is not made again.
        let name = format!("{}-{}", self.cron.name(), due.as_second() / 60);
        let key = Key { namespace: self.cron.namespace().to_owned(), name: name.clone() };
        if self.context.view.get(&resources::jobs(), &key).is_some() {
            status.insert("lastScheduleTime".into(), time(due));
            return;
        }
        let active: Vec<_> = self.jobs.iter().filter(|job| !is_job_finished(job)).cloned().collect();
        match self.cron.str_at(&["spec", "concurrencyPolicy"]) {
            Some("Forbid") if !active.is_empty() => {
                let message =
                    "Not starting job because prior execution is running and concurrency policy is Forbid";
                if self.cron.str_at(&["status", "lastScheduleTime"]).is_some() {
                    self.tell(false, "JobAlreadyActive", message.to_owned());
                }
                return;
            }
            Some("Replace") => {
                for job in &active {
                    self.delete(job, status);
                }
            }
            _ => {}
        }
        if let Some(why) = self.context.failure {
            self.tell(true, "FailedCreate", format!("Error creating job: {why}"));
        }
        let mut job = job_of_cron_job(self.cron, &name);
        job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"] = time(due);
        self.writes.push(Write::Create { resource: resources::jobs(), object: job });
        self.tell(false, "SuccessfulCreate", format!("Created job {name}"));
        status.insert("lastScheduleTime".into(), time(due));
    }
}

fn reference(job: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": job.name(), "namespace": job.namespace(), "uid": job.uid(),
        "resourceVersion": job.resource_version(),
    })
}
