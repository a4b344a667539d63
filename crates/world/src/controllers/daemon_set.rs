//! DaemonSet: a pod on every node that takes it (apps/v1 DaemonSet).

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::{
    own_or_owner,
    workload::{count, delete_pod, is_active, is_ready, pods_of, stable_suffix, template_hash},
};
use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    object::{pod_from_template, resources, status_of, with_status},
};

const HASH: &str = "controller-revision-hash";

/// Keeps a pod of every DaemonSet on every node.
pub struct DaemonSetController;

impl Controller for DaemonSetController {
    fn name(&self) -> &'static str {
        "daemonset"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::nodes() {
            return view.list(&resources::daemon_sets(), None).iter().map(|set| Key::of(set)).collect();
        }
        own_or_owner(change, &resources::daemon_sets(), "DaemonSet")
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(set) = context.view.get(&resources::daemon_sets(), key) else { return Outcome::done() };
        if set.is_terminating() {
            return Outcome::done();
        }
        let hash = template_hash(&set["spec"]["template"]);
        let nodes = context.view.list(&resources::nodes(), None);
        let nodes: Vec<_> =
            nodes.iter().filter(|node| wants(&set, node)).map(|node| node.name().to_owned()).collect();
        let pods = pods_of(&set, context.view);
        let mut writes = Vec::new();
        for node in &nodes {
            let on_node = |pod: &Value| pod.str_at(&["spec", "nodeName"]) == Some(node);
            if !pods.iter().any(|pod| on_node(pod)) {
                writes.push(create(&set, node, &hash));
            }
        }
        let is_unwanted =
            |pod: &Value| !nodes.iter().any(|node| pod.str_at(&["spec", "nodeName"]) == Some(node.as_str()));
        writes.extend(
            pods.iter().filter(|pod| is_unwanted(pod) && !pod.is_terminating()).map(|pod| delete_pod(pod)),
        );
        // One outdated pod at a time, and only while all others are Ready.
        let is_rolling = set.str_at(&["spec", "updateStrategy", "type"]) != Some("OnDelete");
        if writes.is_empty() && is_rolling && pods.iter().all(|pod| is_ready(pod)) {
            let outdated = pods.iter().find(|pod| pod.label(HASH) != Some(&hash));
            writes.extend(outdated.map(|pod| delete_pod(pod)));
        }
        let is_updated = |pod: &Value| is_active(pod) && pod.label(HASH) == Some(&hash);
        let ready = count(&pods, is_ready);
        let mut status = status_of(&set);
        status.insert("observedGeneration".into(), set.generation().into());
        status.insert("desiredNumberScheduled".into(), json!(nodes.len()));
        status.insert("currentNumberScheduled".into(), count(&pods, is_active).into());
        status.insert("numberMisscheduled".into(), 0.into());
        status.insert("numberReady".into(), ready.into());
        let counts = [
            ("updatedNumberScheduled", count(&pods, is_updated)),
            ("numberAvailable", ready),
            ("numberUnavailable", nodes.len() as i64 - ready),
        ];
        for (field, count) in counts {
            match count {
                ..=0 => status.remove(field),
                count => status.insert(field.into(), count.into()),
            };
        }
        let updated = with_status(&set, status.into());
        writes
            .extend(updated.map(|object| Write::UpdateStatus { resource: resources::daemon_sets(), object }));
        writes.into()
    }
}

/// Whether a node matches the template's nodeSelector.
fn wants(set: &Value, node: &Value) -> bool {
    let selector = set.at(&["spec", "template", "spec", "nodeSelector"]).and_then(Value::as_object);
    selector.into_iter().flatten().all(|(key, value)| node.label(key) == value.as_str())
}

fn create(set: &Value, node: &str, hash: &str) -> Write {
    let name = format!("{}-{}", set.name(), stable_suffix(&[set.uid(), node, hash], 5));
    let mut pod = pod_from_template(set, &set["spec"]["template"], &name);
    pod["metadata"]["labels"][HASH] = hash.into();
    pod["spec"]["nodeName"] = node.into();
    Write::Create { resource: resources::pods(), object: pod }
}
