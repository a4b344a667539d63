//! Node selectors, node affinity, and affinity between pods.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tiphys_schema::LabelSelector;
use tiphys_value::ObjectExt;

use super::{misfit::Misfit, node::Candidate};
use crate::{Key, View, object::resources};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn items<'a>(value: &'a Value, path: &[&str]) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.at(path).and_then(Value::as_array).into_iter().flatten()
}

/// Whether labels meet `matchExpressions` in the form of a label selector.
fn meets(expressions: &Value, labels: &Value) -> bool {
    let selector = LabelSelector::from_object(&json!({"matchExpressions": expressions}));
    selector.ok().flatten().is_some_and(|selector| selector.matches(labels))
}

/// Whether a term of a node selector is for a node. An empty term is for none.
fn term_is_for(term: &Value, node: &Value) -> bool {
    let (expressions, fields) = (&term["matchExpressions"], &term["matchFields"]);
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    if is_empty(expressions) && is_empty(fields) {
        return false;
    }
    let labels = node.at(&["metadata", "labels"]).unwrap_or(&Value::Null);
    (is_empty(expressions) || meets(expressions, labels))
        && (is_empty(fields) || meets(fields, &json!({"metadata.name": node.name()})))
}

/// Whether a pod that names its node in `matchFields` (as those of DaemonSets do) names this one.
pub(super) fn names_node(pod: &Value, node: &Value) -> bool {
    let mut terms =
        items(pod, &["spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"]).peekable();
    if terms.peek().is_none() {
        return true;
    }
    let name = json!({"metadata.name": node.name()});
    terms.any(|term| {
        term["matchFields"].as_array().is_none_or(Vec::is_empty) || meets(&term["matchFields"], &name)
    })
}

/// Whether a pod's node selector and required node affinity allow a node.
pub(crate) fn wants_node(pod: &Value, node: &Value) -> bool {
    let selector = pod.at(&["spec", "nodeSelector"]).and_then(Value::as_object);
    if !selector.into_iter().flatten().all(|(key, value)| node.label(key) == value.as_str()) {
        return false;
    }
    let required = pod.at(&["spec", "affinity", "nodeAffinity", REQUIRED]);
    required
        .is_none_or(|required| items(required, &["nodeSelectorTerms"]).any(|term| term_is_for(term, node)))
}

/// The weights of the preferred node affinity that a node meets.
pub(super) fn preference(pod: &Value, node: &Value) -> i64 {
    let preferred = items(pod, &["spec", "affinity", "nodeAffinity", PREFERRED]);
    let met = preferred.filter(|term| term_is_for(&term["preference"], node));
    met.map(|term| term.int_at(&["weight"]).unwrap_or(0)).sum()
}

/// Where in a topology something is: the key and its value.
type Domain = (String, String);

/// What a pod, and the pods that are there, demand of each other.
pub(super) struct PodTerms {
    /// For each required affinity term its topology key, the domains with a pod that it selects, and
    /// whether the pod itself would be the first.
    needed: Vec<(String, BTreeSet<Domain>, bool)>,
    /// Domains with a pod that the pod keeps away from.
    avoided: BTreeSet<Domain>,
    /// Domains with a pod that keeps this one away.
    refused: BTreeSet<Domain>,
    /// Domains that the pod likes or dislikes, by weight.
    liked: Vec<(Domain, i64)>,
}

impl PodTerms {
    /// Looks at the pods on all nodes.
    pub(super) fn from_pod(pod: &Value, candidates: &[Candidate], view: &View<'_>) -> Self {
        let required = |kind: &'static str| items(pod, &["spec", "affinity", kind, REQUIRED]);
        let needed = required("podAffinity").map(|term| {
            let domains = domains(term, pod, candidates, view);
            let is_first = domains.is_empty() && selects(term, pod, pod, view);
            (topology_key(term), domains, is_first)
        });
        let needed = needed.collect();
        let avoided =
            required("podAntiAffinity").flat_map(|term| domains(term, pod, candidates, view)).collect();
        let mut liked = Vec::new();
        for (kind, sign) in [("podAffinity", 1), ("podAntiAffinity", -1)] {
            for weighted in items(pod, &["spec", "affinity", kind, PREFERRED]) {
                let weight = sign * weighted.int_at(&["weight"]).unwrap_or(0);
                let domains = domains(&weighted["podAffinityTerm"], pod, candidates, view);
                liked.extend(domains.into_iter().map(|domain| (domain, weight)));
            }
        }
        Self { needed, avoided, refused: refused(pod, candidates, view), liked }
    }

    /// Why the pod may not be on a node.
    pub(super) fn misfit(&self, node: &Value) -> Option<Misfit> {
        let is_in = |domains: &BTreeSet<Domain>| {
            domains.iter().any(|(key, value)| node.label(key) == Some(value.as_str()))
        };
        let meets = |(key, domains, is_first): &(String, BTreeSet<Domain>, bool)| match is_first {
            true => node.label(key).is_some(),
            false => is_in(domains),
        };
        if !self.needed.iter().all(meets) {
            return Some(Misfit::lasting("node(s) didn't match pod affinity rules"));
        }
        if is_in(&self.avoided) {
            return Some(Misfit::resolvable("node(s) didn't match pod anti-affinity rules"));
        }
        is_in(&self.refused)
            .then(|| Misfit::resolvable("node(s) didn't satisfy existing pods anti-affinity rules"))
    }

    /// The weights of what the pod prefers that a node meets.
    pub(super) fn preference(&self, node: &Value) -> i64 {
        let here = self.liked.iter().filter(|((key, value), _)| node.label(key) == Some(value.as_str()));
        here.map(|(_, weight)| weight).sum()
    }
}

fn topology_key(term: &Value) -> String {
    term.str_at(&["topologyKey"]).unwrap_or_default().to_owned()
}

/// The domains in which there is a pod that a term of `owner` selects.
fn domains(term: &Value, owner: &Value, candidates: &[Candidate], view: &View<'_>) -> BTreeSet<Domain> {
    let key = topology_key(term);
    let found = candidates.iter().filter_map(|candidate| {
        let value = candidate.node.label(&key)?;
        let is_there = candidate.pods.iter().any(|pod| selects(term, owner, pod, view));
        is_there.then(|| (key.clone(), value.to_owned()))
    });
    found.collect()
}

/// The domains from which pods that are there keep another away.
fn refused(pod: &Value, candidates: &[Candidate], view: &View<'_>) -> BTreeSet<Domain> {
    let mut found = BTreeSet::new();
    for candidate in candidates {
        for existing in &candidate.repelling {
            for term in items(existing, &["spec", "affinity", "podAntiAffinity", REQUIRED]) {
                let key = topology_key(term);
                if let Some(value) = candidate.node.label(&key).filter(|_| selects(term, existing, pod, view))
                {
                    found.insert((key, value.to_owned()));
                }
            }
        }
    }
    found
}

/// Whether a pod keeps others away from where it is.
pub(super) fn repels(pod: &Value) -> bool {
    items(pod, &["spec", "affinity", "podAntiAffinity", REQUIRED]).next().is_some()
}

/// Whether a term of `owner` selects a pod: by labels, among the namespaces that it names.
fn selects(term: &Value, owner: &Value, pod: &Value, view: &View<'_>) -> bool {
    let labels = pod.at(&["metadata", "labels"]).unwrap_or(&Value::Null);
    let by = |selector: &Value, labels: &Value| {
        LabelSelector::from_object(selector).ok().flatten().is_some_and(|selector| selector.matches(labels))
    };
    if pod.is_terminating() || !by(&term["labelSelector"], labels) {
        return false;
    }
    let mut named = items(term, &["namespaces"]).peekable();
    let by_selector = &term["namespaceSelector"];
    if named.peek().is_none() && !by_selector.is_object() {
        return pod.namespace() == owner.namespace();
    }
    let key = Key { namespace: String::new(), name: pod.namespace().to_owned() };
    let namespace = || view.get(&resources::namespaces(), &key);
    named.any(|name| name == pod.namespace())
        || (by_selector.is_object()
            && namespace()
                .is_some_and(|n| by(by_selector, n.at(&["metadata", "labels"]).unwrap_or(&Value::Null))))
}
