//! Pods that wait to be counted by a Job that counts no more.

use serde_json::Value;
use tiphys_value::ObjectExt;

use super::pod_counts::{is_tracked, untracked};
use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    object::{is_job_finished, resources},
};

/// Lets go of pods whose Job is gone or has ended.
pub(crate) struct OrphanController;

impl Controller for OrphanController {
    fn name(&self) -> &'static str {
        "job-orphans"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::pods() {
            let is_left = !change.is_deleted && is_orphan(&change.object, view);
            return is_left.then(|| Key::from_object(&change.object)).into_iter().collect();
        }
        if change.resource != resources::jobs() || !(change.is_deleted || is_job_finished(&change.object)) {
            return Vec::new();
        }
        let dependents = view.dependents(change.object.uid()).into_iter();
        let pods = dependents.filter(|(resource, pod)| *resource == resources::pods() && is_tracked(pod));
        pods.map(|(_, pod)| Key::from_object(&pod)).collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        match context.view.get(&resources::pods(), key).filter(|pod| is_orphan(pod, context.view)) {
            Some(pod) => Write::Update { resource: resources::pods(), object: untracked(&pod) }.into(),
            None => Outcome::done(),
        }
    }
}

fn is_orphan(pod: &Value, view: &View<'_>) -> bool {
    if !is_tracked(pod) {
        return false;
    }
    let Some(owner) = pod.controller_reference() else { return true };
    if owner["kind"] != "Job" {
        return false;
    }
    let name = owner.str_at(&["name"]).unwrap_or_default().to_owned();
    let job = view.get(&resources::jobs(), &Key { namespace: pod.namespace().to_owned(), name });
    job.filter(|job| owner["uid"] == job.uid()).is_none_or(|job| is_job_finished(&job))
}
