//! Kyverno: once it runs, it has the API server ask it about the kinds that policies name (Kyverno
//! documentation, "How Kyverno Works"). What it answers is in `webhooks.rs`.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_policy::webhook_kinds;
use tiphys_schema::Catalog;
use tiphys_value::{GroupVersionResource, ObjectExt};

use super::{operator::is_at_work, workload::delete};
use crate::{
    Awaited, Change, Controller, Key, Outcome, View, Write, behaviour::Pattern, controller::Context,
    labels::service_selects, object::resources,
};

/// The image of the part of Kyverno that answers the API server.
const IMAGE: &str = "*kyverno/kyverno:*";
/// The configuration that Kyverno makes.
const CONFIGURATION: &str = "kyverno-resource-validating-webhook-cfg";
/// The port of its Service.
const PORT: i64 = 443;

/// How long until a Service that is missing is looked for again.
const RETRY: Duration = Duration::from_secs(10);

/// Plays the part of Kyverno that writes its webhook's configuration. One key stands for all policies.
pub(super) struct PolicyEngine;

impl Controller for PolicyEngine {
    fn name(&self) -> &'static str {
        "policy-engine"
    }

    fn manager(&self) -> &'static str {
        "kyverno"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        let is_policy =
            change.resource.group == GROUP && POLICIES.contains(&change.resource.resource.as_str());
        if is_policy { vec![Key::default()] } else { Vec::new() }
    }

    fn reconcile(&self, _: &Key, context: &Context<'_>) -> Outcome {
        let (view, image) = (context.view, Pattern::from(IMAGE));
        let pods = view.list(&resources::pods(), None);
        let Some(pod) = pods.iter().find(|pod| is_at_work(pod, &image, context)) else {
            return Outcome::default().until([Awaited::ReadyPod(IMAGE.to_owned())]);
        };
        let services = view.list(&resources::services(), Some(pod.namespace()));
        let has_port = |service: &Value| {
            let ports = service.at(&["spec", "ports"]).and_then(Value::as_array);
            ports.into_iter().flatten().any(|port| port.int_at(&["port"]) == Some(PORT))
        };
        let service = services.iter().find(|service| service_selects(service, pod) && has_port(service));
        let Some(service) = service else { return Outcome::after(RETRY) };
        let key = Key { namespace: String::new(), name: CONFIGURATION.to_owned() };
        let found = view.get(&configurations(), &key);
        let wanted = configuration(view, pod.namespace(), service.name());
        match (found, wanted) {
            (None, Some(object)) => Write::Create { resource: configurations(), object }.into(),
            (Some(found), Some(wanted)) if found["webhooks"] != wanted["webhooks"] => {
                let mut object = found.value().clone();
                object["webhooks"] = wanted["webhooks"].clone();
                Write::Update { resource: configurations(), object }.into()
            }
            (Some(found), None) => delete(configurations(), &found).into(),
            _ => Outcome::done(),
        }
    }
}

const GROUP: &str = "kyverno.io";
const POLICIES: [&str; 2] = ["clusterpolicies", "policies"];

fn configurations() -> GroupVersionResource {
    GroupVersionResource::new("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
}

/// Every policy of Kyverno.
fn policies(view: &View<'_>) -> Vec<Arc<Object>> {
    let kinds = ["ClusterPolicy", "Policy"].iter().filter_map(|kind| view.resource_of("kyverno.io/v1", kind));
    kinds.flat_map(|resource| view.list(&resource, None)).collect()
}

/// The configuration for all policies: one webhook for those that refuse what cannot be asked about, one for
/// the others. `None` without policies.
fn configuration(view: &View<'_>, namespace: &str, service: &str) -> Option<Value> {
    let all = policies(view);
    let webhook = |mode: &str| {
        let fitting = all.iter().filter(|it| it.str_at(&["spec", "failurePolicy"]).unwrap_or("Fail") == mode);
        let rules: BTreeSet<Rule> =
            fitting.flat_map(|policy| webhook_kinds(policy)).flat_map(|kind| rules(view, kind)).collect();
        let rules: Vec<Value> = rules.into_iter().map(value).collect();
        let low = mode.to_lowercase();
        // As API servers store it, so that what is there already is known again.
        (!rules.is_empty()).then(|| {
            json!({
                "name": format!("validate.kyverno.svc-{low}"),
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "service": {"name": service, "namespace": namespace, "path": format!("/validate/{low}"), "port": PORT},
                },
                "failurePolicy": mode,
                "matchPolicy": "Equivalent",
                "namespaceSelector": {"matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", namespace]},
                ]},
                "objectSelector": {},
                "rules": rules,
                "sideEffects": "NoneOnDryRun",
                "timeoutSeconds": 10,
            })
        })
    };
    let webhooks: Vec<Value> = ["Fail", "Ignore"].into_iter().filter_map(webhook).collect();
    (!webhooks.is_empty()).then(|| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": CONFIGURATION, "labels": {"webhook.kyverno.io/managed-by": "kyverno"}},
            "webhooks": webhooks,
        })
    })
}

/// A group, version and resource, each of which may be any.
type Rule = (String, String, String);

/// What a kind of a policy stands for: built-in ones and those of definitions; a pattern is any.
fn rules(view: &View<'_>, selector: &str) -> Vec<Rule> {
    let any = || "*".to_owned();
    let parts: Vec<&str> = selector.split('/').collect();
    let kind = parts.last().copied().unwrap_or_default();
    if kind.contains(['*', '?']) {
        return vec![(any(), any(), any())];
    }
    let built_in = Catalog::latest().kinds().iter().filter(|it| it.gvk.kind == kind);
    let mut found: Vec<Rule> = built_in.map(|it| (it.gvk.group.clone(), any(), it.plural.clone())).collect();
    let definitions = view.list(&resources::definitions(), None);
    let of_kind = definitions.iter().filter(|it| it.str_at(&["spec", "names", "kind"]) == Some(kind));
    found.extend(of_kind.filter_map(|it| {
        let text = |path: &[&str]| it.str_at(path).map(str::to_owned);
        Some((text(&["spec", "group"])?, any(), text(&["spec", "names", "plural"])?))
    }));
    // A selector may name the group.
    if let [group, _, _] = parts[..] {
        found.retain(|(own, ..)| group == "*" || group == own);
    }
    found
}

fn value((group, version, resource): Rule) -> Value {
    json!({
        "apiGroups": [group], "apiVersions": [version], "operations": ["CREATE", "UPDATE"],
        "resources": [resource], "scope": "*",
    })
}
