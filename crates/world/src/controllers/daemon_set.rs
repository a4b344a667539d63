//! DaemonSet: a pod on every node that takes it (apps/v1 DaemonSet).

use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{
    adoption,
    revision::{HASH, Revisions},
    scheduler::{has_untolerated_taint, is_driven_away, wants_node},
    workload::{
        Availability, count, count_or_percent, created, delete_pod, deleted, failed_create, is_active,
        is_finished, is_ready, stable_suffix,
    },
};
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    object::{is_controlled_by, pod_from_template, resources, status_of, with_status},
};

const SIGNATURE: &str = "daemonset-controller";
/// What pods of DaemonSets tolerate whatever their template says.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// Keeps a pod of every DaemonSet on every node.
pub(super) struct DaemonSetController;

impl Controller for DaemonSetController {
    fn name(&self) -> &'static str {
        "daemonset"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::nodes() {
            let sets = view.list(&resources::daemon_sets(), None);
            let concerns = |set: &Arc<Object>| change.is_deleted || changes_for(set, &change.object, view);
            return sets.iter().filter(|set| concerns(set)).map(|set| Key::from_object(set)).collect();
        }
        adoption::keys(change, &resources::daemon_sets(), "DaemonSet", adoption::selector_of, view)
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(set) = context.view.get(&resources::daemon_sets(), key) else { return Outcome::done() };
        if set.is_terminating() {
            return Outcome::done();
        }
        let selector = adoption::selector_of(&set);
        let claims = adoption::claim(&set, &resources::pods(), &selector, |_| true, context.view);
        let adopted = [claims.adopted, Revisions::adopt(&set, context.view)].concat();
        if !adopted.is_empty() {
            return adopted.into();
        }
        let revisions = Revisions::from_owner(&set, context.view);
        let pods = claims.mine;
        let sample = pod_for(&set, "", "", &revisions.hash);
        let nodes = context.view.list(&resources::nodes(), None);
        let wanted: Vec<_> = nodes
            .iter()
            .filter(|node| wants_node(&sample, node) && !has_untolerated_taint(&sample, node))
            .collect();
        let availability = Availability::from_owner(&set, context.now);
        let now = context.now.as_nanosecond().to_string();
        let stays = |node: &&Arc<Object>| wants_node(&sample, node) && !is_driven_away(&sample, node);
        let keeping: Vec<_> = nodes.iter().filter(stays).map(|node| node.name()).collect();
        let look = Look {
            set: &set,
            pods: &pods,
            keeping: &keeping,
            hash: &revisions.hash,
            availability,
            now: &now,
        };
        let mut writes = claims.released;
        writes.extend(revisions.keep(&set, &pods));
        let names: Vec<_> = wanted.iter().map(|node| node.name()).collect();
        let updated = with_status(&set, look.status(&names));
        writes
            .extend(updated.map(|object| Write::UpdateStatus { resource: resources::daemon_sets(), object }));
        if let Some(why) = context.failure {
            writes.push(failed_create(&set, SIGNATURE, why));
        }
        writes.extend(look.next(&names));
        Outcome::from(writes).requeue_after(availability.next(&pods))
    }
}

/// Whether a change of a node changes something for a set: it takes a pod and has none, or has one that
/// has to go.
fn changes_for(set: &Value, node: &Value, view: &View<'_>) -> bool {
    let sample = pod_for(set, "", "", "");
    let fits = wants_node(&sample, node);
    let has_pod = view.pods_on(node.name()).iter().any(|pod| is_controlled_by(pod, set));
    match has_pod {
        true => !fits || is_driven_away(&sample, node),
        false => fits && !has_untolerated_taint(&sample, node),
    }
}

/// The node that a pod is on, or is meant for.
fn node_of(pod: &Value) -> Option<&str> {
    let terms = &[
        "spec",
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    ];
    let meant = || pod.at(terms)?.get(0)?.get("matchFields")?.get(0)?.get("values")?.get(0)?.as_str();
    pod.str_at(&["spec", "nodeName"]).filter(|node| !node.is_empty()).or_else(meant)
}

struct Look<'a> {
    set: &'a Value,
    pods: &'a [Arc<Object>],
    /// The nodes whose pods stay: a taint that only keeps new ones away changes nothing for them.
    keeping: &'a [&'a str],
    hash: &'a str,
    availability: Availability,
    /// The time; a pod that comes after another one has a name of its own.
    now: &'a str,
}

impl Look<'_> {
    fn pods_on(&self, node: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.pods.iter().filter(move |pod| node_of(pod) == Some(node))
    }

    fn is_updated(&self, pod: &Value) -> bool {
        pod.label(HASH) == Some(self.hash)
    }

    /// Pods for nodes that have none, none for nodes that want none, and then the next step of an update.
    fn next(&self, nodes: &[&str]) -> Vec<Write> {
        let mut writes = Vec::new();
        for node in nodes.iter().filter(|node| self.pods_on(node).next().is_none()) {
            writes.extend(self.create(node));
        }
        for pod in self.pods.iter().filter(|pod| !pod.is_terminating()) {
            if is_finished(pod) {
                let message = format!(
                    "Found failed daemon pod {}/{} on node {}, will try to kill it",
                    pod.namespace(),
                    pod.name(),
                    node_of(pod).unwrap_or_default()
                );
                writes.push(
                    Event::warning(self.set, Reporter::Controller(SIGNATURE), "FailedDaemonPod", message)
                        .into(),
                );
                writes.push(delete_pod(pod));
            } else if !node_of(pod).is_some_and(|node| self.keeping.contains(&node)) {
                writes.extend([delete_pod(pod), deleted(self.set, SIGNATURE, pod.name())]);
            }
        }
        let rolls = self.set.str_at(&["spec", "updateStrategy", "type"]) != Some("OnDelete");
        if writes.is_empty() && rolls { self.roll(nodes) } else { writes }
    }

    /// Replaces outdated pods: with `maxSurge` a new one comes first, else an old one goes first.
    fn roll(&self, nodes: &[&str]) -> Vec<Write> {
        let rolling = self.set.at(&["spec", "updateStrategy", "rollingUpdate"]);
        let total = nodes.len() as i64;
        let limit = |field: &str, default| {
            count_or_percent(rolling.and_then(|rolling| rolling.get(field)), total, default, true)
        };
        let surge = limit("maxSurge", 0);
        let most = if surge == 0 { limit("maxUnavailable", 1).max(1) } else { limit("maxUnavailable", 0) };
        let is_down = |node: &&&str| !self.pods_on(node).any(|pod| self.availability.has(pod));
        let mut down = nodes.iter().filter(is_down).count() as i64;
        let mut surging = nodes.iter().filter(|node| self.pods_on(node).count() > 1).count() as i64;
        let mut writes = Vec::new();
        for node in nodes {
            let Some(old) = self.pods_on(node).find(|pod| !self.is_updated(pod) && !pod.is_terminating())
            else {
                continue;
            };
            let new = self.pods_on(node).find(|pod| self.is_updated(pod));
            let is_free = new.is_some_and(|new| self.availability.has(new)) || !self.availability.has(old);
            if new.is_none() && surge > 0 && is_ready(old) {
                if surging < surge {
                    surging += 1;
                    writes.extend(self.create(node));
                }
            } else if is_free || down < most {
                down += i64::from(!is_free);
                writes.extend([delete_pod(old), deleted(self.set, SIGNATURE, old.name())]);
            }
        }
        writes
    }

    fn create(&self, node: &str) -> Vec<Write> {
        let number = self.pods.iter().filter(|pod| pod.is_terminating()).count().to_string();
        let name = format!(
            "{}-{}",
            self.set.name(),
            stable_suffix(&[self.set.uid(), node, self.hash, &number, self.now], 5)
        );
        let object = pod_for(self.set, node, &name, self.hash);
        vec![Write::Create { resource: resources::pods(), object }, created(self.set, SIGNATURE, &name)]
    }

    fn status(&self, nodes: &[&str]) -> Value {
        let here = |pod: &Value| is_active(pod) && node_of(pod).is_some_and(|node| nodes.contains(&node));
        let with = |test: &dyn Fn(&Value) -> bool| {
            nodes.iter().filter(|node| self.pods_on(node).any(|pod| here(pod) && test(pod))).count() as i64
        };
        let available = with(&|pod| self.availability.has(pod));
        let misplaced = count(self.pods, |pod| is_active(pod) && !here(pod));
        let mut status = status_of(self.set);
        status.insert("observedGeneration".into(), self.set.generation().into());
        status.insert("desiredNumberScheduled".into(), json!(nodes.len()));
        status.insert("currentNumberScheduled".into(), with(&|_| true).into());
        status.insert("numberMisscheduled".into(), misplaced.into());
        status.insert("numberReady".into(), with(&is_ready).into());
        let counts = [
            ("updatedNumberScheduled", with(&|pod| self.is_updated(pod))),
            ("numberAvailable", available),
            ("numberUnavailable", nodes.len() as i64 - available),
        ];
        for (field, count) in counts {
            match count {
                ..=0 => status.remove(field),
                count => status.insert(field.into(), count.into()),
            };
        }
        status.into()
    }
}

/// The pod for a node: it names the node by affinity, so that the scheduler puts it there, and tolerates what
/// every pod of a DaemonSet tolerates.
fn pod_for(set: &Value, node: &str, name: &str, hash: &str) -> Value {
    let mut pod = pod_from_template(set, &set["spec"]["template"], name);
    pod["metadata"]["generateName"] = format!("{}-", set.name()).into();
    pod["metadata"]["labels"][HASH] = hash.into();
    let generation = set
        .annotation("deprecated.daemonset.template.generation")
        .map_or_else(|| set.generation().to_string(), str::to_owned);
    pod["metadata"]["labels"]["pod-template-generation"] = generation.into();
    let mut tolerated: Vec<_> = TOLERATED.to_vec();
    if pod.at(&["spec", "hostNetwork"]) == Some(&Value::Bool(true)) {
        tolerated.push(("node.kubernetes.io/network-unavailable", "NoSchedule"));
    }
    let tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    let more =
        tolerated.iter().map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect}));
    pod["spec"]["tolerations"] = tolerations.into_iter().chain(more).collect();
    if !node.is_empty() {
        name_node(&mut pod, node);
    }
    pod
}

fn name_node(pod: &mut Value, node: &str) {
    let field = json!([{"key": "metadata.name", "operator": "In", "values": [node]}]);
    let required =
        &mut pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    match required["nodeSelectorTerms"].as_array_mut() {
        Some(terms) => terms.iter_mut().for_each(|term| term["matchFields"] = field.clone()),
        None => required["nodeSelectorTerms"] = json!([{"matchFields": field}]),
    }
}
