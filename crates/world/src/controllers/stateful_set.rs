//! StatefulSet: numbered pods with claims of their own, one after the other (apps/v1 StatefulSet,
//! "Deployment and Scaling Guarantees").

use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{
    own_or_owner,
    workload::{count, delete_pod, is_active, is_ready, pods_of, template_hash},
};
use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    object::{pod_from_template, resources, status_of, with_status},
};

const REVISION: &str = "controller-revision-hash";

/// Keeps the pods of StatefulSets.
pub struct StatefulSetController;

impl Controller for StatefulSetController {
    fn name(&self) -> &'static str {
        "statefulset"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        own_or_owner(change, &resources::stateful_sets(), "StatefulSet")
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(set) = context.view.get(&resources::stateful_sets(), key) else { return Outcome::done() };
        if set.is_terminating() {
            return Outcome::done();
        }
        let revision = format!("{}-{}", set.name(), template_hash(&set["spec"]["template"]));
        let pods = pods_of(&set, context.view);
        let mut writes = next_step(&set, &pods, &revision, context.view);
        let status = status(&set, &pods, &revision);
        let updated = with_status(&set, status);
        writes.extend(
            updated.map(|object| Write::UpdateStatus { resource: resources::stateful_sets(), object }),
        );
        writes.into()
    }
}

fn wanted(set: &Value) -> i64 {
    set.int_at(&["spec", "replicas"]).unwrap_or(1).max(0)
}

fn first_ordinal(set: &Value) -> i64 {
    set.int_at(&["spec", "ordinals", "start"]).unwrap_or(0)
}

fn ordinal(set: &Value, pod: &Value) -> Option<i64> {
    pod.name().strip_prefix(set.name())?.strip_prefix('-')?.parse().ok()
}

/// What comes next: the lowest missing pod, else the highest surplus one, else the highest one of an
/// old revision. With `OrderedReady` a pod that is not Ready holds everything up.
fn next_step(set: &Value, pods: &[Arc<Object>], revision: &str, view: &View<'_>) -> Vec<Write> {
    let is_parallel = set.str_at(&["spec", "podManagementPolicy"]) == Some("Parallel");
    let (first, end) = (first_ordinal(set), first_ordinal(set) + wanted(set));
    let mut writes = Vec::new();
    for number in first..end {
        let pod = pods.iter().find(|pod| ordinal(set, pod) == Some(number));
        match pod {
            None => writes.extend(create(set, number, revision, view)),
            Some(pod) if is_ready(pod) || is_parallel => continue,
            Some(_) => {}
        }
        if !is_parallel {
            return writes;
        }
    }
    if !writes.is_empty() {
        return writes;
    }
    let surplus =
        |pod: &&Arc<Object>| ordinal(set, pod).is_some_and(|number| number < first || number >= end);
    if let Some(pod) = pods.iter().filter(surplus).max_by_key(|pod| ordinal(set, pod)) {
        return if pod.is_terminating() { Vec::new() } else { vec![delete_pod(pod)] };
    }
    let strategy = &["spec", "updateStrategy", "rollingUpdate", "partition"];
    let partition = set.int_at(strategy).unwrap_or(0);
    if set.str_at(&["spec", "updateStrategy", "type"]) == Some("OnDelete") {
        return Vec::new();
    }
    let is_outdated = |pod: &&Arc<Object>| {
        pod.label(REVISION) != Some(revision) && ordinal(set, pod).is_some_and(|number| number >= partition)
    };
    let outdated = pods.iter().filter(is_outdated).max_by_key(|pod| ordinal(set, pod));
    outdated.filter(|pod| !pod.is_terminating()).map(|pod| delete_pod(pod)).into_iter().collect()
}

fn create(set: &Value, number: i64, revision: &str, view: &View<'_>) -> Vec<Write> {
    let name = format!("{}-{number}", set.name());
    let mut pod = pod_from_template(set, &set["spec"]["template"], &name);
    pod["metadata"]["labels"][REVISION] = revision.into();
    pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = name.clone().into();
    pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = number.to_string().into();
    pod["spec"]["hostname"] = name.clone().into();
    pod["spec"]["subdomain"] = set.str_at(&["spec", "serviceName"]).unwrap_or_default().into();
    let mut writes = Vec::new();
    let templates = set.at(&["spec", "volumeClaimTemplates"]).and_then(Value::as_array);
    for template in templates.into_iter().flatten() {
        let volume = template.name();
        let claim_name = format!("{volume}-{name}");
        mount(&mut pod, volume, &claim_name);
        let key = Key { namespace: set.namespace().to_owned(), name: claim_name };
        if view.get(&resources::claims(), &key).is_none() {
            writes.push(create_claim(set, template, &key.name));
        }
    }
    writes.push(Write::Create { resource: resources::pods(), object: pod });
    writes
}

/// Points a pod's volume at a claim, in place of a volume of that name in the template.
fn mount(pod: &mut Value, volume: &str, claim: &str) {
    let volumes = &mut pod["spec"]["volumes"];
    if !volumes.is_array() {
        *volumes = json!([]);
    }
    if let Some(volumes) = volumes.as_array_mut() {
        volumes.retain(|existing| existing["name"] != volume);
        volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
    }
}

fn create_claim(set: &Value, template: &Value, name: &str) -> Write {
    let mut claim = template.clone();
    claim["apiVersion"] = "v1".into();
    claim["kind"] = "PersistentVolumeClaim".into();
    claim["metadata"]["name"] = name.into();
    claim["metadata"]["namespace"] = set.namespace().into();
    let labels = set.at(&["spec", "selector", "matchLabels"]).and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        claim["metadata"]["labels"][key] = value.clone();
    }
    if let Some(claim) = claim.as_object_mut() {
        claim.remove("status");
    }
    Write::Create { resource: resources::claims(), object: claim }
}

fn status(set: &Value, pods: &[Arc<Object>], revision: &str) -> Value {
    let is_current = |pod: &Value| is_active(pod) && pod.label(REVISION) == Some(revision);
    let updated = count(pods, is_current);
    let mut status = status_of(set);
    let before = set.str_at(&["status", "currentRevision"]).unwrap_or(revision).to_owned();
    let is_complete =
        updated == wanted(set) && count(pods, |pod| is_current(pod) && is_ready(pod)) == wanted(set);
    let current = if is_complete { revision } else { &before };
    let counts = [
        ("replicas", count(pods, is_active)),
        ("readyReplicas", count(pods, is_ready)),
        ("availableReplicas", count(pods, is_ready)),
        ("currentReplicas", count(pods, |pod| is_active(pod) && pod.label(REVISION) == Some(current))),
        ("updatedReplicas", updated),
    ];
    for (field, count) in counts {
        match (field, count) {
            ("replicas" | "availableReplicas", count) => status.insert(field.into(), count.into()),
            (_, 0) => status.remove(field),
            (_, count) => status.insert(field.into(), count.into()),
        };
    }
    status.insert("observedGeneration".into(), set.generation().into());
    status.insert("currentRevision".into(), current.into());
    status.insert("updateRevision".into(), revision.into());
    status.insert("collisionCount".into(), 0.into());
    status.into()
}
