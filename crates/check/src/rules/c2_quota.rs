//! # Pods that a quota refuses
//!
//! A ResourceQuota limits processor or memory, and pods of its namespace do not say how much they need, or
//! all of them together need more than there is. The workload is applied; its pods are refused.
//!
//! People see: `Error creating: pods "web-…" is forbidden: failed quota: compute: must specify limits.memory
//! for: web`, `exceeded quota: compute, requested: limits.cpu=2, used: limits.cpu=3, limited: limits.cpu=4`.
//!
//! ## Bad
//! ```yaml
//! kind: ResourceQuota
//! spec: {hard: {limits.memory: 4Gi}}        # and a container in the namespace without a memory limit
//! ```
//! ## Good
//! Every container has the resources, or a LimitRange gives defaults.
//!
//! ## When to suppress
//! Where something else adds the resources to each pod.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        pods::{Container, Pod, list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-quota",
    incident: "C2",
    severity: Severity::Error,
    title: "pods that a ResourceQuota refuses",
    page: page!("c2_quota.rs"),
    check,
};

/// What a quota limits, and where a container says how much it takes.
const LIMITED: [(&str, &str, &str); 6] = [
    ("requests.cpu", "requests", "cpu"),
    ("cpu", "requests", "cpu"),
    ("requests.memory", "requests", "memory"),
    ("memory", "requests", "memory"),
    ("limits.cpu", "limits", "cpu"),
    ("limits.memory", "limits", "memory"),
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        let quotas =
            cluster.objects.iter().filter(|it| it.key.kind == "ResourceQuota" && it.key.group.is_empty());
        for quota in quotas.filter(|quota| is_general(quota)) {
            for pod in cluster.pods.iter().filter(|pod| pod.object.key.namespace == quota.key.namespace) {
                silent(context, cluster, quota, pod, &mut once);
            }
        }
    }
    once.report(report);
}

/// Whether a quota is for all pods of its namespace.
fn is_general(quota: &Object) -> bool {
    let spec = &quota.value()["spec"];
    list(spec, "scopes").is_empty() && spec.get("scopeSelector").is_none_or(Value::is_null)
}

/// Containers that do not say what the quota has to know.
fn silent(context: &Context<'_>, cluster: &Cluster<'_>, quota: &Object, pod: &Pod<'_>, once: &mut Once) {
    for (resource, kind, name) in LIMITED {
        if quota.value().at(&["spec", "hard", resource]).is_none() {
            continue;
        }
        let says = |container: &Container<'_>| {
            let of = |field: &str| container.value.at(&["resources", field, name]).is_some();
            of(kind) || kind == "requests" && of("limits")
        };
        let Some(container) = pod.containers().find(|it| !says(it)) else { continue };
        if pod.spec().at(&["resources", kind, name]).is_some() || has_default(cluster, quota, kind, name) {
            continue;
        }
        let of = pod.object.title();
        let diagnostic = RULE
            .diagnostic(format!(
                "pods of {of} are forbidden: failed quota: {}: must specify {resource} for: {}",
                quota.key.name,
                container.name()
            ))
            .at(context.survey.span(pod.object, &container.path), format!("has no resources.{kind}.{name}"))
            .see(
                context.survey.span(quota, &keys(&["spec", "hard"]).key(resource)),
                "every pod of the namespace has to say how much it takes",
            )
            .because("the API server takes the workload and refuses its pods")
            .help(format!("set resources.{kind}.{name}, or give a default with a LimitRange"));
        once.add(&of, RULE.finding(context, pod.object, diagnostic));
        return;
    }
}

/// Whether a LimitRange of the namespace, seen or not, gives what containers leave out.
fn has_default(cluster: &Cluster<'_>, quota: &Object, kind: &str, name: &str) -> bool {
    let mut ranges = cluster.objects.iter().filter(|it| {
        it.key.kind == "LimitRange" && it.key.group.is_empty() && it.key.namespace == quota.key.namespace
    });
    let gives = |range: &Object| {
        let items = list(&range.value()["spec"], "limits");
        items.iter().filter(|item| text(item, "type") == "Container").any(|item| {
            let of = |field: &str| item.at(&[field, name]).is_some();
            of("default") || of("max") || kind == "requests" && (of("defaultRequest") || of("min"))
        })
    };
    ranges.any(|range| gives(range)) || cluster.is_partly_hidden(&quota.key.namespace)
}
