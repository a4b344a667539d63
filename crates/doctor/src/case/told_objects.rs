//! Objects of kinds that were not saved, known by the warnings about them and by the pods on them: a dump of
//! pods and events has no claims, no Ingresses and no nodes.

use std::collections::BTreeMap;

use tiphys_value::{ObjectExt as _, Value, json};

use super::{Case, Event};
use crate::{
    Object,
    cluster::{
        condition, items,
        pods::{has_ended, is_ready},
    },
    symptoms::mounts,
};

impl Case {
    /// Adds what is known of claims for which pods wait, of Ingresses, and of nodes that are silent, if none
    /// was saved.
    pub(super) fn add_told_objects(&mut self) {
        let mut added = Vec::new();
        if !self.objects.iter().any(|object| object.kind() == "PersistentVolumeClaim") {
            let told = self.last_warnings("PersistentVolumeClaim");
            let waited_for = told.into_iter().filter(|(claim, _)| self.is_waited_for(claim));
            added.extend(waited_for.map(|(claim, event)| told_claim(&claim, &event)));
        }
        if !self.objects.iter().any(|object| object.kind() == "Ingress") {
            let told = self.last_warnings("Ingress").into_keys();
            added.extend(told.map(|ingress| described(&ingress, "networking.k8s.io/v1")));
        }
        if !self.objects.iter().any(|object| object.kind() == "Node") {
            added.extend(silent_nodes(&self.objects));
        }
        self.in_part.extend(added.iter().map(|object| object.kind().to_owned()));
        self.objects.extend(added);
    }

    /// The objects of a kind about which a warning was said of late, each with the last one.
    fn last_warnings(&self, kind: &str) -> BTreeMap<Object, Event> {
        let now = self.now();
        let warnings = self.events.iter().filter(|event| event.is_warning() && event.object.kind == kind);
        warnings
            .filter(|event| event.is_recent(now))
            .map(|event| (event.object.clone(), event.clone()))
            .collect()
    }

    /// Whether a pod that is not ready mounts a claim.
    fn is_waited_for(&self, claim: &Object) -> bool {
        let mut pods = self.objects.iter().filter(|object| object.kind() == "Pod");
        pods.any(|pod| pod.namespace() == claim.namespace && mounts(pod, &claim.name) && !is_ready(pod))
    }
}

/// The nodes that are silent, as their pods tell: whoever looks after nodes marks all pods of one that does
/// not report as not ready, and leaves the statuses of their containers as they were.
fn silent_nodes(objects: &[Value]) -> Vec<Value> {
    /// Fewer pods may have a reason of their own.
    const FEWEST: usize = 3;
    let mut nodes: BTreeMap<&str, Vec<(&Value, bool)>> = BTreeMap::new();
    for pod in objects.iter().filter(|object| object.kind() == "Pod" && !has_ended(object)) {
        let Some(node) = pod.str_at(&["spec", "nodeName"]).filter(|node| !node.is_empty()) else { continue };
        nodes.entry(node).or_default().push((pod, is_marked(pod)));
    }
    let silent = nodes.into_iter().filter(|(_, pods)| {
        let running = pods.iter().filter(|(pod, _)| pod.str_at(&["status", "phase"]) == Some("Running"));
        running.clone().count() >= FEWEST && running.into_iter().all(|(_, is_marked)| *is_marked)
    });
    silent
        .map(|(node, pods)| {
            let ready = pods.iter().filter_map(|(pod, _)| condition(pod, "Ready"));
            let since = ready.filter_map(|it| it.str_at(&["lastTransitionTime"])).min();
            let mut live = described(&Object::new("Node", "", node), "v1");
            live["status"]["conditions"] = json!([{
                "type": "Ready",
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "message": "all its pods are marked not ready, and none of their containers is",
                "lastTransitionTime": since.unwrap_or_default(),
            }]);
            live
        })
        .collect()
}

/// Whether a pod is marked not ready while its containers are ready, and nothing else keeps it.
fn is_marked(pod: &Value) -> bool {
    let is_gated = items(pod, &["spec", "readinessGates"]).next().is_some();
    let mut containers = items(pod, &["status", "containerStatuses"]).peekable();
    let are_ready = containers.peek().is_some()
        && containers.all(|status| status.at(&["ready"]).and_then(Value::as_bool) == Some(true));
    !is_gated && are_ready && condition(pod, "Ready").is_some_and(|it| it.str_at(&["status"]) != Some("True"))
}

fn described(object: &Object, version: &str) -> Value {
    json!({
        "apiVersion": version,
        "kind": object.kind,
        "metadata": {"name": object.name, "namespace": object.namespace},
        "spec": {},
        "status": {},
    })
}

fn told_claim(claim: &Object, event: &Event) -> Value {
    let mut live = described(claim, "v1");
    live["status"]["phase"] = json!("Pending");
    if let Some(class) = absent_class(&event.message) {
        live["spec"]["storageClassName"] = json!(class);
    }
    live
}

/// The class that a message says does not exist.
fn absent_class(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("storageclass.storage.k8s.io \"")?;
    let (name, rest) = rest.split_once('"')?;
    rest.contains("not found").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_only_its_pods_tell_of() {
        let pod = |name: &str, ready: &str, container: bool| {
            json!({"kind": "Pod", "metadata": {"name": name, "namespace": "a"}, "spec": {"nodeName": "n1"},
                "status": {"phase": "Running", "containerStatuses": [{"name": "c", "ready": container}],
                    "conditions": [{"type": "Ready", "status": ready}]}})
        };
        let marked = |name: &str| pod(name, "False", true);
        let nodes = |pods: &[Value]| silent_nodes(pods).len();
        assert_eq!(nodes(&[marked("a"), marked("b"), marked("c")]), 1);
        assert_eq!(nodes(&[marked("a"), marked("b"), pod("c", "True", true)]), 0, "one is well");
        assert_eq!(nodes(&[marked("a"), marked("b"), pod("c", "False", false)]), 0, "one has its own reason");
        assert_eq!(nodes(&[marked("a"), marked("b")]), 0, "too few");
    }

    #[test]
    fn a_claim_that_only_events_speak_of() {
        let event = |message: &str| Event {
            object: Object::new("PersistentVolumeClaim", "data", "db"),
            kind: "Warning".into(),
            reason: "ProvisioningFailed".into(),
            message: message.into(),
            ..Event::default()
        };
        let pod = json!({"kind": "Pod", "metadata": {"name": "db-0", "namespace": "data"},
            "spec": {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "db"}}]}, "status": {}});
        let mut case = Case {
            objects: vec![pod],
            events: vec![event("storageclass.storage.k8s.io \"fast\" not found")],
            ..Case::default()
        };
        case.add_told_objects();
        assert_eq!(case.objects[1].str_at(&["spec", "storageClassName"]), Some("fast"));
        assert!(case.in_part.contains("PersistentVolumeClaim"));
        let mut nobody = Case { events: case.events.clone(), ..Case::default() };
        nobody.add_told_objects();
        assert!(nobody.objects.is_empty());
    }
}
