//! Namespaces: what every one of them holds, and their end (core/v1 Namespace).

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::{GroupVersionResource, ObjectExt};

use crate::{
    Change, Controller, Key, Outcome, Propagation, View, Write,
    controller::Context,
    object::{finalizers, resources, set_condition, status_of, with_status},
};

const ROOT_CA: &str = "kube-root-ca.crt";

/// Fills namespaces and empties those that are going.
pub(super) struct NamespaceController;

impl Controller for NamespaceController {
    fn name(&self) -> &'static str {
        "namespace"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::namespaces() {
            return vec![Key::from_object(&change.object)];
        }
        let is_root_ca = change.resource == resources::config_maps() && change.object.name() == ROOT_CA;
        if change.object.namespace().is_empty() || !(change.is_deleted || is_root_ca) {
            return Vec::new();
        }
        // Something in a namespace went: the namespace may be empty now, or lack what it must hold.
        let key = Key { namespace: String::new(), name: change.object.namespace().to_owned() };
        view.get(&resources::namespaces(), &key).map(|_| key).into_iter().collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(namespace) = context.view.get(&resources::namespaces(), key) else { return Outcome::done() };
        if !namespace.is_terminating() {
            return fill(namespace.name(), context).into();
        }
        let content = context.view.content(namespace.name());
        if content.is_empty() {
            return Write::Finalize { key: key.clone() }.into();
        }
        // Pods go first, so that nothing that they use is taken from under them.
        let has_pods = content.iter().any(|(resource, _)| *resource == resources::pods());
        let mut writes: Vec<_> = content
            .iter()
            .filter(|(resource, object)| {
                !object.is_terminating() && (!has_pods || *resource == resources::pods())
            })
            .map(|(resource, object)| Write::Delete {
                resource: resource.clone(),
                key: Key::from_object(object),
                uid: object.uid().to_owned(),
                propagation: Propagation::Background,
            })
            .collect();
        // What else is left is counted once the pods are gone.
        let counted = if has_pods { &[] } else { content.as_slice() };
        let status = remaining(&namespace, counted, context.now);
        let updated = with_status(&namespace, status);
        writes
            .extend(updated.map(|object| Write::UpdateStatus { resource: resources::namespaces(), object }));
        writes.into()
    }
}

fn fill(namespace: &str, context: &Context<'_>) -> Vec<Write> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace},
    });
    let root_ca = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": ROOT_CA, "namespace": namespace, "annotations": {
            "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
        }},
        "data": {"ca.crt": context.settings.root_ca},
    });
    let wanted = [(resources::service_accounts(), account), (resources::config_maps(), root_ca)];
    let write = |(resource, wanted): (GroupVersionResource, Value)| {
        let Some(found) = context.view.get(&resource, &Key::from_object(&wanted)) else {
            return Some(Write::Create { resource, object: wanted });
        };
        // Somebody changed the authority: it is what it was.
        let is_changed = wanted.get("data").is_some_and(|data| found.get("data") != Some(data));
        is_changed.then(|| {
            let mut object = found.value().clone();
            object["data"] = wanted["data"].clone();
            Write::Update { resource, object }
        })
    };
    wanted.into_iter().filter_map(write).collect()
}

type Content = [(GroupVersionResource, Arc<Object>)];

/// The status of a namespace that is going: what is left, and what holds it.
fn remaining(namespace: &Value, content: &Content, now: Timestamp) -> Value {
    let mut counts = BTreeMap::<String, usize>::new();
    let mut held = BTreeMap::<String, usize>::new();
    for (resource, object) in content {
        *counts.entry(format!("{}.{}", resource.resource, resource.group)).or_default() += 1;
        for finalizer in finalizers(object) {
            *held.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    let mut status = status_of(namespace);
    status.insert("phase".into(), "Terminating".into());
    let mut set = |kind: &str, holds: bool, reason: &str, message: &str| {
        let state = if holds { "True" } else { "False" };
        let condition = json!({"type": kind, "status": state, "reason": reason, "message": message});
        set_condition(&mut status, condition, now);
    };
    let discovered = "All resources successfully discovered";
    set("NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered", discovered);
    let parsed = "All legacy kube types successfully parsed";
    set("NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions", parsed);
    let deleted = "All content successfully deleted, may be waiting on finalization";
    set("NamespaceDeletionContentFailure", false, "ContentDeleted", deleted);
    let list = |counts: &BTreeMap<String, usize>, verb: &str| {
        let texts: Vec<_> =
            counts.iter().map(|(name, n)| format!("{name} {verb} {n} resource instances")).collect();
        texts.join(", ")
    };
    let message = format!("Some resources are remaining: {}", list(&counts, "has"));
    match content.is_empty() {
        true => set("NamespaceContentRemaining", false, "ContentRemoved", "All content successfully removed"),
        false => set("NamespaceContentRemaining", true, "SomeResourcesRemain", &message),
    }
    if held.is_empty() {
        let message = "All content-preserving finalizers finished";
        set("NamespaceFinalizersRemaining", false, "ContentHasNoFinalizers", message);
    } else {
        let message =
            format!("Some content in the namespace has finalizers remaining: {}", list(&held, "in"));
        set("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", &message);
    }
    status.into()
}
