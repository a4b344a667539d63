//! CronJobs are tried once at the end, in a fork: they run at times that a rehearsal does not reach, and no
//! Application turns red when they fail.

use std::{collections::BTreeSet, time::Duration};

use tiphys_apiserver::ResourceId;
use tiphys_model::Tracking;
use tiphys_stage::{
    Recorder, Site, Still,
    causes::Cause,
    fault::MANAGER,
    mechanism::Mechanism,
    symptoms::{Symptom, symptoms},
};
use tiphys_value::{GroupVersionResource, ObjectExt, ResourceKey, Value};
use tiphys_world::{is_job_finished, job_of_cron_job};

use crate::ENGINE_NAMESPACE;

/// How long the Jobs have; one that has neither ended nor anything wrong with it by then is at work.
const LASTS: Duration = Duration::from_secs(10 * 60);
/// How often it is looked whether all have ended.
const LOOK: Duration = Duration::from_secs(10);
/// What the name of a Job has behind that of its CronJob.
const SUFFIX: &str = "-trial";

/// What keeps the CronJobs of a cluster from doing their work, those that are suspended left out. Must be
/// called on a runtime of virtual time.
///
/// # Errors
/// The cluster cannot be set up.
pub(super) async fn failures(end: &Still, tracking: &Tracking) -> anyhow::Result<Vec<Cause>> {
    let snapshot = end.server().snapshot();
    let all = snapshot.list(&ResourceId::new("batch", "cronjobs"), None).map(|object| object.value());
    let of_git = all.filter(|it| tracking.owner(it).is_some() && !it.is_terminating());
    let due: Vec<&Value> = of_git.filter(|it| it.at(&["spec", "suspend"]) != Some(&true.into())).collect();
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let site = end.resume()?;
    let recorder = Recorder::start(vec![site.server().clone()], tracking.clone());
    let jobs = GroupVersionResource::new("batch", "v1", "jobs");
    let client = site.server().client(MANAGER);
    let mut found = Vec::new();
    for cron_job in &due {
        if let Err(refused) = client.create(
            &jobs,
            cron_job.namespace(),
            job_of_cron_job(cron_job, &trial_name(cron_job.name())),
        ) {
            found.push(cause(cron_job.resource_key(), None, refused.to_string()));
        }
    }
    let mut left = LASTS;
    while !left.is_zero() && !have_ended(&site) {
        tokio::time::sleep(LOOK).await;
        left = left.saturating_sub(LOOK);
    }
    let all = symptoms(&site.server().snapshot(), 0, &recorder.record(), ENGINE_NAMESPACE);
    let keys: BTreeSet<ResourceKey> = due.iter().map(|it| it.resource_key()).collect();
    found.extend(keys.into_iter().filter_map(|key| failure(key, &all)));
    Ok(found)
}

/// What was wrong with the Job of a CronJob: what its pod says comes before what the Job says.
fn failure(cron_job: ResourceKey, all: &[Symptom]) -> Option<Cause> {
    let name = trial_name(&cron_job.name);
    let is_of_trial = |symptom: &&Symptom| {
        symptom.object.namespace == cron_job.namespace
            && (symptom.object.name == name || symptom.object.name.starts_with(&format!("{name}-")))
            && symptom.made_by.as_ref() == Some(&cron_job)
            && !symptom.because.is_empty()
    };
    let mut own: Vec<&Symptom> = all.iter().filter(is_of_trial).collect();
    own.sort_by_key(|symptom| (symptom.object.kind != "Pod", symptom.mechanism.is_none()));
    own.first().map(|first| cause(cron_job, first.mechanism.clone(), first.because.clone()))
}

fn cause(cron_job: ResourceKey, mechanism: Option<Mechanism>, text: String) -> Cause {
    let sources = BTreeSet::from([cron_job.clone()]);
    Cause { sources, ..Cause::of_object(cron_job, mechanism, text, "fails when it runs") }
}

fn trial_name(cron_job: &str) -> String {
    format!("{cron_job}{SUFFIX}")
}

/// Whether all Jobs of trials have completed or failed.
fn have_ended(site: &Site) -> bool {
    let snapshot = site.server().snapshot();
    let mut jobs = snapshot.list(&ResourceId::new("batch", "jobs"), None).map(|object| object.value());
    jobs.all(|job| is_job_finished(job) || !job.name().ends_with(SUFFIX))
}
