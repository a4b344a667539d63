//! Custom resources of kinds of which none was saved, known by what others say of them: `kubectl get all`
//! leaves them out, while warnings, Applications and the logs of controllers speak of them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use tiphys_value::{ObjectExt as _, Value, json};

use super::Case;
use crate::{
    Object,
    cluster::{
        items,
        pods::{has_ended, is_ready},
    },
};

/// Groups of kinds that tables of events name without them.
const GROUPS: &[(&str, &str)] = &[
    ("Certificate", "cert-manager.io/v1"),
    ("CertificateRequest", "cert-manager.io/v1"),
    ("ClusterIssuer", "cert-manager.io/v1"),
    ("ClusterSecretStore", "external-secrets.io/v1"),
    ("ExternalSecret", "external-secrets.io/v1"),
    ("GitRepository", "source.toolkit.fluxcd.io/v1"),
    ("HelmChart", "source.toolkit.fluxcd.io/v1"),
    ("HelmRelease", "helm.toolkit.fluxcd.io/v2"),
    ("HelmRepository", "source.toolkit.fluxcd.io/v1"),
    ("Issuer", "cert-manager.io/v1"),
    ("Kustomization", "kustomize.toolkit.fluxcd.io/v1"),
    ("NodeClaim", "karpenter.sh/v1"),
    ("OCIRepository", "source.toolkit.fluxcd.io/v1"),
    ("SecretStore", "external-secrets.io/v1"),
];
/// More of them are no evidence for anything, and cost time.
const MOST: usize = 500;

/// What is said of a resource that was not saved.
struct Told {
    version: String,
    reason: String,
    message: String,
    since: Option<Timestamp>,
}

impl Case {
    /// Adds custom resources that are told to fail, if none of their kind was saved.
    pub(super) fn add_told_resources(&mut self) {
        let saved: BTreeSet<&str> = self.objects.iter().map(|object| object.kind()).collect();
        let is_unknown = |object: &Object, told: &Told| {
            !object.name.is_empty()
                && is_of_operator(&told.version)
                && !saved.contains(object.kind.as_str())
                && !self.listed.contains(&object.kind)
        };
        let mut told: BTreeMap<Object, Told> = BTreeMap::new();
        let all = self.told_by_health().into_iter().chain(self.told_by_warnings()).chain(self.told_by_logs());
        for (object, words) in all.filter(|(object, told)| is_unknown(object, told)) {
            told.entry(object).or_insert(words);
        }
        let added: Vec<Value> = told.iter().take(MOST).map(|(object, told)| failing(object, told)).collect();
        self.in_part.extend(added.iter().map(|object| object.kind().to_owned()));
        self.objects.extend(added);
    }

    /// What the last warnings say, about resources near which something does not run.
    fn told_by_warnings(&self) -> Vec<(Object, Told)> {
        let now = self.now();
        let mut newest: BTreeMap<&Object, &super::Event> = BTreeMap::new();
        for event in &self.events {
            let known = newest.entry(&event.object).or_insert(event);
            if event.last >= known.last {
                *known = event;
            }
        }
        // What was said later is good news.
        let warnings = newest.into_values().filter(|event| event.is_warning() && event.is_recent(now));
        let near = warnings.filter(|event| self.is_missed_in(&event.object.namespace));
        near.map(|event| {
            let told = Told {
                version: version(event),
                reason: event.reason.clone(),
                message: event.message.clone(),
                since: event.first.or(event.last),
            };
            (event.object.clone(), told)
        })
        .collect()
    }

    /// What Applications say of the health of what they deliver.
    fn told_by_health(&self) -> Vec<(Object, Told)> {
        let apps = self.objects.iter().filter(|object| object.kind() == "Application");
        let resources = apps.flat_map(|app| {
            let since = app.str_at(&["status", "health", "lastTransitionTime"]);
            let since: Option<Timestamp> = since.and_then(|since| since.parse().ok());
            items(app, &["status", "resources"]).map(move |resource| (resource, since))
        });
        let failing = resources.filter(|(it, _)| it.str_at(&["health", "status"]) == Some("Degraded"));
        failing
            .map(|(resource, since)| {
                let text = |key: &str| resource.str_at(&[key]).unwrap_or_default();
                let told = Told {
                    version: format!("{}/{}", text("group"), text("version")),
                    reason: "Degraded".to_owned(),
                    message: resource.str_at(&["health", "message"]).unwrap_or_default().to_owned(),
                    since,
                };
                (Object::new(text("kind"), text("namespace"), text("name")), told)
            })
            .filter(|(_, told)| !told.message.is_empty())
            .collect()
    }

    /// What controllers say in their logs of what they cannot reconcile, the last words first.
    fn told_by_logs(&self) -> Vec<(Object, Told)> {
        let lines = self.logs.iter().flat_map(|log| log.last_lines());
        let told = lines.filter_map(reconciler_error);
        told.filter(|(object, _)| self.is_missed_in(&object.namespace)).collect()
    }

    /// Whether a pod of a namespace does not run; of any, if none is named.
    fn is_missed_in(&self, namespace: &str) -> bool {
        let mut pods = self.objects.iter().filter(|object| object.kind() == "Pod");
        pods.any(|pod| {
            (namespace.is_empty() || pod.namespace() == namespace) && !is_ready(pod) && !has_ended(pod)
        })
    }
}

/// The version of what an event is about.
fn version(event: &super::Event) -> String {
    let known = || GROUPS.iter().find(|(kind, _)| *kind == event.object.kind).map(|(_, version)| *version);
    let told = Some(event.version.as_str()).filter(|version| !version.is_empty());
    told.or_else(known).unwrap_or_default().to_owned()
}

/// Whether a version is of a group that is not of Kubernetes itself.
fn is_of_operator(version: &str) -> bool {
    let group = version.split_once('/').map_or("", |(group, _)| group);
    group.contains('.') && !group.ends_with("k8s.io")
}

/// Reads a line in which a controller tells what it cannot reconcile, and why: its fields are named alike in
/// all controllers that are built with the usual library.
fn reconciler_error(line: &str) -> Option<(Object, Told)> {
    let fields: serde_json::Value = serde_json::from_str(line.get(line.find('{')?..)?).ok()?;
    let text = |key: &str| fields.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
    let (kind, group, error) = (text("controllerKind"), text("controllerGroup"), text("error"));
    // Somebody else wrote it first: it is tried again at once.
    let is_conflict = error.contains("the object has been modified");
    if kind.is_empty() || error.is_empty() || is_conflict {
        return None;
    }
    let told = Told {
        version: format!("{group}/v1"),
        reason: "ReconcileError".to_owned(),
        message: error.to_owned(),
        since: None,
    };
    Some((Object::new(kind, text("namespace"), text("name")), told))
}

/// A resource of which no more is known than how it fails, and which store it says that it reads.
fn failing(object: &Object, told: &Told) -> Value {
    let mut live = json!({
        "apiVersion": told.version,
        "kind": object.kind,
        "metadata": {"name": object.name, "namespace": object.namespace},
        "spec": {},
        "status": {"conditions": [
            {"type": "Ready", "status": "False", "reason": told.reason, "message": told.message},
        ]},
    });
    if let Some(since) = told.since {
        live["status"]["conditions"][0]["lastTransitionTime"] = json!(since.to_string());
    }
    if let Some((kind, name)) = store(&told.message).filter(|(_, name)| *name != object.name) {
        live["spec"]["secretStoreRef"] = json!({"kind": kind, "name": name});
    }
    live
}

/// The store of secrets that a message names.
fn store(message: &str) -> Option<(&str, &str)> {
    const KINDS: &[&str] = &["ClusterSecretStore", "SecretStore"];
    KINDS.iter().find_map(|kind| {
        let (_, rest) = message.split_once(&format!("{kind} \""))?;
        Some((*kind, rest.split('"').next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;

    fn warning(kind: &str, name: &str, message: &str) -> Event {
        Event {
            object: Object::new(kind, "shop", name),
            version: "external-secrets.io/v1".into(),
            kind: "Warning".into(),
            reason: "UpdateFailed".into(),
            message: message.into(),
            ..Event::default()
        }
    }

    fn pod(ready: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "namespace": "shop"},
            "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": ready}]}})
    }

    fn case_with_warning(objects: Vec<Value>) -> Case {
        let event = warning("ExternalSecret", "db", "ClusterSecretStore \"vault\" is not ready");
        let mut case = Case { objects, events: vec![event], ..Case::default() };
        case.add_told_resources();
        case
    }

    #[test]
    fn a_warning_about_a_resource_that_was_not_saved() {
        let case = case_with_warning(vec![pod("False")]);
        let live = case.objects.last().unwrap();
        assert_eq!((live.kind(), live.name()), ("ExternalSecret", "db"));
        assert_eq!(live.str_at(&["spec", "secretStoreRef", "name"]), Some("vault"));
        assert!(case.in_part.contains("ExternalSecret"));
        // Nobody misses it, or its kind was saved.
        assert_eq!(case_with_warning(vec![pod("True")]).objects.len(), 1);
        let other = json!({"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
            "metadata": {"name": "mail", "namespace": "shop"}});
        assert_eq!(case_with_warning(vec![pod("False"), other]).objects.len(), 2);
    }

    #[test]
    fn the_health_that_an_application_tells() {
        let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "infra", "namespace": "argocd"},
        "status": {"resources": [
            {"group": "rds.example.org", "version": "v1", "kind": "Instance", "name": "db",
                "health": {"status": "Degraded", "message": "ReconcileError: create failed"}},
            {"group": "apps", "version": "v1", "kind": "Deployment", "name": "web", "namespace": "shop",
                "health": {"status": "Degraded", "message": "exceeded its progress deadline"}},
        ]}});
        let case = case_with_warning(vec![app]);
        assert_eq!(case.objects.len(), 2);
        assert_eq!(case.objects[1].kind(), "Instance");
    }

    #[test]
    fn what_a_controller_cannot_reconcile() {
        let line = r#"2026-01-01T10:00:00Z ERROR Reconciler error {"controller": "queue", "controllerGroup": "mq.example.org", "controllerKind": "Queue", "Queue": {"name":"jobs","namespace":"shop"}, "namespace": "shop", "name": "jobs", "error": "no such exchange"}"#;
        let (object, told) = reconciler_error(line).unwrap();
        assert_eq!(object, Object::new("Queue", "shop", "jobs"));
        assert_eq!((told.version.as_str(), told.message.as_str()), ("mq.example.org/v1", "no such exchange"));
        assert!(reconciler_error(r#"{"level":"info","msg":"started"}"#).is_none());
    }
}
