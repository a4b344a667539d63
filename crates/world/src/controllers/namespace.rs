//! Namespaces: what every one of them holds, and their end (core/v1 Namespace).

use jiff::Timestamp;
use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::{GroupVersionResource, ObjectExt};

use crate::{
    Change, Controller, Key, Outcome, Propagation, View, Write,
    controller::Context,
    object::{resources, set_condition, status_of, with_status},
};

const ROOT_CA: &str = "kube-root-ca.crt";

/// Fills namespaces and empties those that are going.
pub struct NamespaceController;

impl Controller for NamespaceController {
    fn name(&self) -> &'static str {
        "namespace"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::namespaces() {
            return vec![Key::of(&change.object)];
        }
        if !change.is_deleted || change.object.namespace().is_empty() {
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
        let mut writes: Vec<_> = content
            .iter()
            .filter(|(_, object)| !object.is_terminating())
            .map(|(resource, object)| Write::Delete {
                resource: resource.clone(),
                key: Key::of(object),
                uid: object.uid().to_owned(),
                propagation: Propagation::Background,
            })
            .collect();
        let status = remaining(&namespace, &content, context.now);
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
    let is_missing = |(resource, object): &(GroupVersionResource, Value)| {
        context.view.get(resource, &Key::of(object)).is_none()
    };
    let missing = wanted.into_iter().filter(is_missing);
    missing.map(|(resource, object)| Write::Create { resource, object }).collect()
}

type Content = [(GroupVersionResource, Arc<Object>)];

fn remaining(namespace: &Value, content: &Content, now: Timestamp) -> Value {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    let mut finalizers = std::collections::BTreeMap::<String, usize>::new();
    for (resource, object) in content {
        let group = if resource.group.is_empty() { "" } else { &resource.group };
        *counts.entry(format!("{}.{group}", resource.resource)).or_default() += 1;
        let held = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
        for finalizer in held.into_iter().flatten().filter_map(Value::as_str) {
            *finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    let mut status = status_of(namespace);
    status.insert("phase".into(), "Terminating".into());
    let content: Vec<_> =
        counts.iter().map(|(name, n)| format!("{name} has {n} resource instances")).collect();
    let message = format!("Some resources are remaining: {}", content.join(", "));
    let condition = json!({"type": "NamespaceContentRemaining", "status": "True", "reason": "SomeResourcesRemain", "message": message});
    set_condition(&mut status, condition, now);
    if !finalizers.is_empty() {
        let held: Vec<_> =
            finalizers.iter().map(|(name, n)| format!("{name} in {n} resource instances")).collect();
        let message = format!("Some content in the namespace has finalizers remaining: {}", held.join(", "));
        let condition = json!({"type": "NamespaceFinalizersRemaining", "status": "True", "reason": "SomeFinalizersRemain", "message": message});
        set_condition(&mut status, condition, now);
    }
    status.into()
}
