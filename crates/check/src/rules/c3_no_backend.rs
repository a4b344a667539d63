//! # A fail-closed webhook asks a Service that is not there
//!
//! The API server asks a webhook by the name, namespace and port of a Service. Where there is no such Service, or it has
//! another port, every request that the webhook's rules match is refused, for ever: `failurePolicy` is `Fail` unless it says
//! otherwise.
//!
//! People see: `failed calling webhook "…": failed to call webhook: Post "https://…": service "webhook" not found`,
//! `no service port 443 found for service "webhook"`.
//!
//! ## Bad
//! ```yaml
//! webhooks: [{name: check.example.com, clientConfig: {service: {name: policy-webhook, namespace: policy}}}]
//! # the Service is called policy
//! ```
//! ## Good
//! ```yaml
//! webhooks: [{name: check.example.com, clientConfig: {service: {name: policy, namespace: policy}}}]
//! ```
//! ## When to suppress
//! Where something else makes the Service.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cluster::Cluster,
        fields::keys,
        once::Once,
        placeholders,
        pods::{list, text},
        similar,
    },
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "C3-no-backend",
    incident: "C3",
    severity: Severity::Error,
    title: "a fail-closed webhook whose Service is not there",
    source: include_str!("c3_no_backend.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        for object in cluster.objects.iter().filter(|it| it.key.group == "admissionregistration.k8s.io") {
            for (at, webhook) in list(object.value(), "webhooks").iter().enumerate() {
                let path = keys(&["webhooks"]).index(at).key("clientConfig").key("service");
                if text(webhook, "failurePolicy") != "Ignore"
                    && let Some(service) = webhook.at(&["clientConfig", "service"])
                {
                    look(context, cluster, object, (text(webhook, "name"), service, &path), &mut once);
                }
            }
        }
    }
    once.report(report);
}

fn look(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    object: &Object,
    (webhook, service, path): (&str, &Value, &FieldPath),
    once: &mut Once,
) {
    let (name, namespace) = (text(service, "name"), text(service, "namespace"));
    let is_seen = cluster.pods.iter().any(|pod| pod.object.key.namespace == namespace);
    if !is_seen || placeholders::has(service) || cluster.is_partly_hidden(namespace) {
        return;
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    let (what, field, help) = match cluster.core("Service", namespace, name) {
        None if cluster.may_be_made(namespace, name) || cluster.has_operated_pods(namespace) => return,
        None => {
            let beside = cluster.objects.iter().filter(|it| {
                it.key.kind == "Service" && it.key.group.is_empty() && it.key.namespace == namespace
            });
            let nearest = similar::nearest(name, beside.map(|it| it.key.name.as_str()));
            let help = nearest.map(|nearest| format!("perhaps {nearest} is meant"));
            (format!("service {name:?} not found in {namespace}"), "name", help)
        }
        Some(found) => {
            let ports = list(&found.value()["spec"], "ports");
            if ports.iter().any(|it| it["port"].as_i64() == Some(port)) {
                return;
            }
            let known: Vec<String> =
                ports.iter().filter_map(|it| Some(it.get("port")?.to_string())).collect();
            let help = format!("its ports are {}", known.join(", "));
            (format!("no service port {port} found for service {name:?}"), "port", Some(help))
        }
    };
    let mut diagnostic = RULE
        .diagnostic(format!("failed calling webhook {webhook:?}: {what}"))
        .at(context.survey.span(object, &path.key(field)), "asked here, and it fails closed")
        .because("whatever the rules of the webhook match is refused as long as it is not answered");
    diagnostic.help.extend(help);
    once.add(&what, RULE.finding(context, object, diagnostic).likely());
}
