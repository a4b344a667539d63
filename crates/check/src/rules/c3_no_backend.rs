//! # A fail-closed webhook asks a Service that is not there
//!
//! The API server asks a webhook by the name, namespace and port of a Service. Where there is no such
//! Service, or it has another port, every request that the webhook's rules match is refused, for ever:
//! `failurePolicy` is `Fail` unless it says otherwise.
//!
//! People see: `failed calling webhook "…": failed to call webhook: Post "https://…": service "webhook" not
//! found`, `no service port 443 found for service "webhook"`.
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

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{Pod, list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C3-no-backend",
    incident: "C3",
    severity: Severity::Error,
    title: "a fail-closed webhook whose Service is not there",
    page: page!("c3_no_backend.rs"),
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
                    check_webhook(
                        context,
                        cluster,
                        object,
                        (text(webhook, "name"), service, &path),
                        &mut once,
                    );
                }
            }
        }
    }
    once.report(report);
}

/// A Service that selects no pods, or those of a workload without replicas.
fn without_pods(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    object: &Object,
    service: &Object,
    (webhook, path): (&str, &FieldPath),
    once: &mut Once,
) {
    let namespace = &service.key.namespace;
    let Some(selector) = service.value().at(&["spec", "selector"]).and_then(Value::as_object) else { return };
    // Something else may scale a workload.
    let is_scaled = cluster.objects.iter().any(|it| {
        it.key.namespace == *namespace
            && matches!(
                it.key.kind.as_str(),
                "HorizontalPodAutoscaler" | "ScaledObject" | "EndpointSlice" | "Endpoints"
            )
    });
    if selector.is_empty()
        || is_scaled
        || service.owner != object.owner
        || placeholders::has_placeholder(service.value())
        || cluster.has_operated_pods(namespace)
    {
        return;
    }
    let is_selected = |pod: &&Pod<'_>| {
        pod.object.key.namespace == *namespace
            && selector.iter().all(|(key, value)| pod.label(key) == value.as_str())
    };
    let selected: Vec<&Pod<'_>> = cluster.pods.iter().filter(is_selected).collect();
    let is_stopped = |pod: &&Pod<'_>| pod.object.value().int_at(&["spec", "replicas"]) == Some(0);
    if !selected.iter().all(is_stopped) {
        return;
    }
    let name = &service.key.name;
    let what = format!("no endpoints available for service {name:?}");
    let mut diagnostic = RULE
        .diagnostic(format!("failed calling webhook {webhook:?}: {what}"))
        .at(context.survey.span(object, &path.key("name")), "asked here, and it fails closed")
        .because("whatever the rules of the webhook match is refused as long as it is not answered");
    diagnostic = match selected.first() {
        Some(pod) => diagnostic.see(context.survey.start(pod.object), "this has no replicas"),
        None => diagnostic.see(context.survey.start(service), "this selects no pods"),
    };
    let diagnostic =
        diagnostic.help("take the configuration of the webhook away together with what answers it");
    once.add(&what, RULE.finding(context, object, diagnostic).likely());
}

fn check_webhook(
    context: &Context<'_>,
    cluster: &Cluster<'_>,
    object: &Object,
    (webhook, service, path): (&str, &Value, &FieldPath),
    once: &mut Once,
) {
    let (name, namespace) = (text(service, "name"), text(service, "namespace"));
    // Who brings the configuration and the Service brings the pods, too.
    let is_own = |it: &Object| it.owner == object.owner;
    let is_seen = cluster.pods.iter().any(|pod| pod.object.key.namespace == namespace)
        || cluster.core("Service", namespace, name).is_some_and(is_own);
    if !is_seen || placeholders::has_placeholder(service) || cluster.is_partly_hidden(namespace) {
        return;
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    let mut meant = None;
    let (what, field, help) = match cluster.core("Service", namespace, name) {
        None if cluster.may_be_made(namespace, name) || cluster.has_operated_pods(namespace) => return,
        None => {
            let beside = cluster.objects.iter().filter(|it| {
                it.key.kind == "Service" && it.key.group.is_empty() && it.key.namespace == namespace
            });
            meant = similar_names::nearest_slip(name, beside.map(|it| it.key.name.as_str()));
            (format!("service {name:?} not found in {namespace}"), "name", None)
        }
        Some(found) => {
            let ports = list(&found.value()["spec"], "ports");
            if ports.iter().any(|it| it["port"].as_i64() == Some(port)) {
                return without_pods(context, cluster, object, found, (webhook, path), once);
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
    once.add(&what, RULE.finding(context, object, diagnostic).likely().perhaps(name, meant));
}
