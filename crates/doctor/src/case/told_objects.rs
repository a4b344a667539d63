//! Objects of kinds that were not saved, known by the warnings about them: a dump of pods and events has no
//! claims and no Ingresses, and its events speak of them.

use std::collections::BTreeMap;

use tiphys_value::{ObjectExt as _, Value, json};

use super::{Case, Event};
use crate::{Object, cluster::pods::is_ready, symptoms::mounts};

/// Seconds after which a warning that was not said again is history.
const OLD: i64 = 15 * 60;

impl Case {
    /// Adds what is known of claims for which pods wait, and of Ingresses, if none was saved.
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
        self.in_part.extend(added.iter().map(|object| object.kind().to_owned()));
        self.objects.extend(added);
    }

    /// The objects of a kind about which a warning was said of late, each with the last one.
    fn last_warnings(&self, kind: &str) -> BTreeMap<Object, Event> {
        let now = self.now();
        let is_recent = |event: &&Event| match (event.last, now) {
            (Some(last), Some(now)) => now.as_second() - last.as_second() < OLD,
            _ => true,
        };
        let warnings = self.events.iter().filter(|event| event.is_warning() && event.object.kind == kind);
        warnings.filter(is_recent).map(|event| (event.object.clone(), event.clone())).collect()
    }

    /// Whether a pod that is not ready mounts a claim.
    fn is_waited_for(&self, claim: &Object) -> bool {
        let mut pods = self.objects.iter().filter(|object| object.kind() == "Pod");
        pods.any(|pod| pod.namespace() == claim.namespace && mounts(pod, &claim.name) && !is_ready(pod))
    }
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
