//! Kinds of the group `batch`.

use tiphys_value::{ObjectExt, Value, json};

use super::kind::{Generation, Kind, PLAIN};
use crate::meta;

const GROUP: &str = "batch";

pub(super) const KINDS: &[Kind] = &[
    Kind {
        group: GROUP,
        plural: "cronjobs",
        generation: Generation::Spec,
        pod_template: Some(&["spec", "jobTemplate", "spec", "template"]),
        ..PLAIN
    },
    Kind {
        group: GROUP,
        plural: "jobs",
        generation: Generation::Spec,
        selectable: &["status.successful"],
        orphans_dependents: true,
        deletion_warning: Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
        ),
        pod_template: Some(&["spec", "template"]),
        before_record: take_template_labels,
        on_create: |job, _| select_own_pods(job),
        ..PLAIN
    },
];

/// A job without labels has those of its template. Says whether it got them.
fn take_template_labels(job: &mut Value) -> bool {
    let is_bare = job["metadata"]["labels"].as_object().is_none_or(|labels| labels.is_empty());
    let labels =
        job.at(&["spec", "template", "metadata", "labels"]).filter(|labels| labels.is_object()).cloned();
    let Some(labels) = labels.filter(|_| is_bare) else { return false };
    meta::metadata_mut(job).insert("labels".into(), labels);
    true
}

/// A job selects its pods by labels of its own, unless its author knows better.
fn select_own_pods(job: &mut Value) {
    if job["spec"]["manualSelector"] == true || !job["spec"]["template"].is_object() {
        return;
    }
    let (name, uid) = (job.name().to_owned(), job.uid().to_owned());
    let labels = json!({
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
        "controller-uid": uid, "job-name": name,
    });
    let template = &mut job["spec"]["template"];
    for (key, value) in labels.as_object().into_iter().flatten() {
        meta::label(template, key, value.as_str().unwrap_or_default());
    }
    let all = job["spec"]["template"]["metadata"]["labels"].clone();
    if job.at(&["metadata", "labels"]).is_none() {
        meta::metadata_mut(job).insert("labels".into(), all);
    }
    let selector = &mut job["spec"]["selector"];
    if !selector.is_object() {
        *selector = json!({});
    }
    selector["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid.into();
}
