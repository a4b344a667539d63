//! # Pods that a LimitRange refuses
//!
//! A LimitRange says how much a container of its namespace may take at most and has to take at least, and
//! gives what a container leaves out. A container that takes more, or that asks for more than the limit which
//! it is given by default, is refused with its pod. The workload is applied; no pod of it comes.
//!
//! People see: `Error creating: pods "web-…" is forbidden: maximum memory usage per Container is 512Mi, but
//! limit is 1Gi`, `Invalid value: "1Gi": must be less than or equal to memory limit of 512Mi`.
//!
//! ## Bad
//! ```yaml
//! kind: LimitRange
//! spec: {limits: [{type: Container, max: {memory: 512Mi}}]}
//! ---
//! resources: {limits: {memory: 1Gi}}       # of a container in the namespace
//! ```
//! ## Good
//! ```yaml
//! resources: {limits: {memory: 512Mi}}
//! ```
//! ## When to suppress
//! Where something else changes the resources of each pod.

use std::cmp::Ordering;

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_schema::Quantity;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        pods::{Container, Pod, list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-limit-range",
    incident: "C2",
    severity: Severity::Error,
    title: "pods that a LimitRange refuses",
    page: page!("c2_limit_range.rs"),
    check,
};

const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        let ranges: Vec<&Object> = cluster
            .objects
            .iter()
            .copied()
            .filter(|it| it.key.kind == "LimitRange" && it.key.group.is_empty())
            .collect();
        for range in &ranges {
            let here = |namespace: &str| namespace == range.key.namespace;
            // Which of several gives what is left out is not told.
            let is_only = ranges.iter().filter(|it| here(&it.key.namespace)).count() == 1;
            for pod in cluster.pods.iter().filter(|pod| here(&pod.object.key.namespace)) {
                pod.containers().for_each(|it| judge(context, (range, is_only), pod, &it, &mut once));
            }
        }
    }
    once.report(report);
}

/// An amount that stands somewhere.
struct Amount {
    amount: Quantity,
    path: FieldPath,
}

fn amount(value: &Value, path: FieldPath) -> Option<Amount> {
    let found = path.get(value)?;
    let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
    Some(Amount { amount: text.parse().ok()?, path })
}

fn judge(
    context: &Context<'_>,
    (range, is_only): (&Object, bool),
    pod: &Pod<'_>,
    container: &Container<'_>,
    once: &mut Once,
) {
    let items = list(&range.value()["spec"], "limits").iter().enumerate();
    for (at, _) in items.filter(|(_, item)| text(item, "type") == "Container") {
        for resource in RESOURCES {
            let of_range = |field: &str| {
                amount(range.value(), keys(&["spec", "limits"]).index(at).key(field).key(resource))
            };
            let own = |field: &str| {
                amount(pod.object.value(), container.path.key("resources").key(field).key(resource))
            };
            // What a pod says of all its containers together takes the place of what is left out.
            if pod.spec().at(&["resources"]).is_some() {
                continue;
            }
            let Some((why, taken, bound)) = refusal(resource, &own, &of_range, is_only) else { continue };
            let diagnostic = RULE
                .diagnostic(format!("pods of {} are forbidden: {why}", pod.object.title()))
                .at(
                    context.survey.span(pod.object, &taken.path),
                    format!("of container {}", container.name()),
                )
                .see(context.survey.span(range, &bound.path), format!("{} bounds it here", range.title()))
                .because("the API server takes the workload and refuses its pods")
                .help(format!("take no more than {} there allows, or change it", range.title()));
            once.add(&why, RULE.finding(context, pod.object, diagnostic));
        }
    }
}

/// What the API server says of a container's amounts, of which one is refused, and what bounds it (Kubernetes
/// docs, "Limit Ranges"; defaults come from `max` where there are none, and requests from limits).
fn refusal(
    resource: &str,
    own: &dyn Fn(&str) -> Option<Amount>,
    of_range: &dyn Fn(&str) -> Option<Amount>,
    is_only: bool,
) -> Option<(String, Amount, Amount)> {
    for (field, word, beyond, parts) in [
        ("max", "maximum", Ordering::Greater, ["limits", "requests"]),
        ("min", "minimum", Ordering::Less, ["requests", "limits"]),
    ] {
        let Some(bound) = of_range(field) else { continue };
        let is_beyond = |found: &Amount| found.amount.partial_cmp(&bound.amount) == Some(beyond);
        let found = parts.into_iter().find_map(|part| Some((part, own(part).filter(is_beyond)?)));
        if let Some((part, found)) = found {
            let why = format!(
                "{word} {resource} usage per Container is {}, but {} is {}",
                bound.amount,
                part.trim_end_matches('s'),
                found.amount
            );
            return Some((why, found, bound));
        }
    }
    let (limit, request) = (own("limits"), own("requests"));
    let given = of_range("default").or_else(|| of_range("max")).filter(|_| is_only && limit.is_none())?;
    let request = request.filter(|it| it.amount > given.amount)?;
    let why = format!(
        "Invalid value: \"{}\": must be less than or equal to {resource} limit of {}",
        request.amount, given.amount
    );
    Some((why, request, given))
}
