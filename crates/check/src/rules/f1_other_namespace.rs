//! # A network policy looks for its peer in another namespace than it lives in
//!
//! A peer with a `namespaceSelector` and a `podSelector` is a pod with these labels in this very namespace.
//! When the pods move, the policy stays behind: it admits pods that are not there, and drops those that are.
//!
//! People see: timeouts between two pods, though a policy names both.
//!
//! The rule speaks where pods with all of the labels are in one other namespace alone, and nothing hidden
//! that is called like them goes to the namespace that is named.
//!
//! ## Bad
//! ```yaml
//! from:                                        # the pods with app: mcp are in namespace tools
//!   - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ai}}
//!     podSelector: {matchLabels: {app: mcp}}
//! ```
//! ## Good
//! ```yaml
//! from:
//!   - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: tools}}
//!     podSelector: {matchLabels: {app: mcp}}
//! ```
//! ## When to suppress
//! Where pods come to the namespace by hand, or not yet.

use std::collections::{BTreeSet, HashMap};

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F1-other-namespace",
    incident: "F1",
    severity: Severity::Warning,
    title: "a network policy looks for its peer in another namespace than it lives in",
    page: page!("f1_other_namespace.rs"),
    check,
};

/// The label that every namespace has, with its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// A peer of a policy: pods with labels in one namespace.
struct Peer<'a> {
    namespace: &'a str,
    /// Labels, each with the values of which one has to be there.
    labels: Vec<(&'a str, Vec<&'a str>)>,
    field: FieldPath,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        let hidden = hidden_names(context, cluster);
        let is_policy = |it: &&Object| it.key.group == "networking.k8s.io" && it.key.kind == "NetworkPolicy";
        for policy in cluster.objects.iter().copied().filter(is_policy) {
            for peer in peers(policy) {
                if let Some(namespace) = real_namespace(cluster, &hidden, &peer) {
                    add(context, policy, &peer, namespace, &mut once);
                }
            }
        }
    }
    once.report(report);
}

fn peers(policy: &Object) -> Vec<Peer<'_>> {
    let spec = &policy.value()["spec"];
    let mut found = Vec::new();
    for (rules, side) in [("ingress", "from"), ("egress", "to")] {
        for (at, rule) in list(spec, rules).iter().enumerate() {
            for (number, peer) in list(rule, side).iter().enumerate() {
                let field = keys(&["spec", rules]).index(at).key(side).index(number);
                found.extend(peer_of(peer, field.key("namespaceSelector")));
            }
        }
    }
    found
}

fn peer_of(peer: &Value, field: FieldPath) -> Option<Peer<'_>> {
    let namespaces = peer.get("namespaceSelector")?.get("matchLabels")?.as_object()?;
    let is_one = namespaces.len() == 1 && peer["namespaceSelector"].get("matchExpressions").is_none();
    let namespace = namespaces.get(NAME_LABEL)?.as_str().filter(|_| is_one)?;
    let labels = wanted_labels(peer.get("podSelector")?)?;
    let is_plain = !labels.is_empty() && !placeholders::has_placeholder(peer);
    is_plain.then_some(Peer { namespace, labels, field })
}

/// The labels that a selector asks for; `None` if it asks for more than that they are there.
fn wanted_labels(selector: &Value) -> Option<Vec<(&str, Vec<&str>)>> {
    let plain = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut labels: Vec<(&str, Vec<&str>)> =
        plain.filter_map(|(key, value)| Some((key.as_str(), vec![value.as_str()?]))).collect();
    for expression in list(selector, "matchExpressions") {
        let values: Vec<&str> = list(expression, "values").iter().filter_map(Value::as_str).collect();
        if text(expression, "operator") != "In" {
            return None;
        }
        labels.push((text(expression, "key"), values));
    }
    Some(labels)
}

/// What Applications that are not seen bring into a cluster: by namespace their names, and those of their
/// charts and folders. What they do not say the namespace of stands under none.
type HiddenNames<'a> = HashMap<&'a str, Vec<String>>;

fn hidden_names<'a>(context: &'a Context<'_>, cluster: &Cluster<'_>) -> HiddenNames<'a> {
    let mut found = HiddenNames::new();
    let hidden = context.survey.apps.iter().filter(|app| !app.is_rendered() && cluster.is_filled_by(app));
    for app in hidden {
        let spec = &app.application.spec;
        let names = found.entry(spec.destination.namespace.as_str()).or_default();
        names.push(app.name().to_lowercase());
        for source in spec.effective_sources() {
            let folder = source.path.rsplit('/').find(|it| !it.is_empty()).unwrap_or_default();
            let of_source = [source.chart.as_str(), folder].map(str::to_lowercase);
            names.extend(of_source.into_iter().filter(|it| !it.is_empty()));
        }
    }
    found
}

/// Whether something that is not seen may bring pods with the labels into a namespace: it is called like one
/// of their values, or is a folder with anything in it.
fn may_hold(hidden: &HiddenNames<'_>, cluster: &Cluster<'_>, peer: &Peer<'_>) -> bool {
    let Some(names) = hidden.get(peer.namespace) else { return cluster.is_partly_hidden(peer.namespace) };
    let values = peer.labels.iter().flat_map(|(_, values)| values);
    let is_like =
        |value: &str| names.iter().any(|name| name.contains(value) || value.contains(name.as_str()));
    hidden.contains_key("") || cluster.has_open_names(peer.namespace) || values.copied().any(is_like)
}

/// The one namespace that has pods with the labels, if the one that is named has none.
fn real_namespace<'a>(cluster: &Cluster<'a>, hidden: &HiddenNames<'_>, peer: &Peer<'_>) -> Option<&'a str> {
    let fitting = cluster.pods.iter().filter(|pod| {
        let fits = |values: &[&str], key: &str| pod.label(key).is_some_and(|it| values.contains(&it));
        peer.labels.iter().all(|(key, values)| fits(values, key))
    });
    let namespaces: BTreeSet<&str> = fitting.map(|pod| pod.object.key.namespace.as_str()).collect();
    let [namespace] = namespaces.into_iter().collect::<Vec<_>>()[..] else { return None };
    let asked: Vec<(&str, &str)> =
        peer.labels.iter().filter_map(|(key, values)| Some((*key, *values.first()?))).collect();
    let may_be_there = namespace == peer.namespace
        || may_hold(hidden, cluster, peer)
        || cluster.may_have_operated_pods(peer.namespace, &asked);
    (!may_be_there).then_some(namespace)
}

fn add(context: &Context<'_>, policy: &Object, peer: &Peer<'_>, namespace: &str, once: &mut Once) {
    let labels: Vec<String> =
        peer.labels.iter().map(|(key, values)| format!("{key}={}", values.join(" or "))).collect();
    let (labels, wrong) = (labels.join(", "), peer.namespace);
    let what =
        format!("{} is about pods with {labels} in {wrong}, and they are in {namespace}", policy.title());
    let kind = text(policy.value(), "kind");
    let diagnostic = RULE
        .diagnostic(what.clone())
        .at(
            context.survey.span(policy, &peer.field.key("matchLabels").key(NAME_LABEL)),
            "no such pod lives there",
        )
        .because(format!("a {kind} admits a pod whose labels and whose namespace both fit"))
        .help(format!("write {NAME_LABEL}: {namespace}"));
    once.add(&what, RULE.finding(context, policy, diagnostic).likely());
}
