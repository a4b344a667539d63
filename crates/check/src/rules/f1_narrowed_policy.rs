//! # A kustomization adds its labels to the peers of a network policy
//!
//! `commonLabels`, and `labels` with `includeSelectors`, go into every selector of the kustomization, also
//! into those by which a NetworkPolicy names the pods of other Applications. Pods that come from elsewhere do
//! not have the labels: what they send is dropped. Where the labels go into the policy's own `podSelector`,
//! it is about no pod at all.
//!
//! People see: timeouts between pods, though the policy in Git names them by the right labels.
//!
//! ## Bad
//! ```yaml
//! # kustomization.yaml
//! commonLabels: {team: edge}
//! # NetworkPolicy
//! ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]      # web is of another kustomization
//! ```
//! ## Good
//! ```yaml
//! # kustomization.yaml
//! labels: [{pairs: {team: edge}}]
//! ```
//! ## When to suppress
//! Where pods with all of the labels are made by what the repository does not show.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::FieldPath;

use crate::{
    Context, Report, Rule,
    support::{
        cluster::Cluster,
        field_paths::keys,
        placeholders,
        pods::{Pod, list},
        selectors::{self, Labels},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F1-narrowed-policy",
    incident: "F1",
    severity: Severity::Warning,
    title: "a kustomization adds its labels to the peers of a network policy",
    page: page!("f1_narrowed_policy.rs"),
    check,
};

/// A selector of a policy to which labels were added, and the pods that it finds without them.
struct Narrowed<'c, 'a> {
    place: FieldPath,
    added: String,
    direction: &'static str,
    pods: Vec<&'c Pod<'a>>,
    /// The namespace that a peer names, where its pods are not seen.
    unseen: Option<String>,
}

fn check(context: &Context<'_>, report: &mut Report) {
    // By where the labels stand and what they are; the same policies of another environment are the same.
    let mut found: BTreeMap<(String, String), Vec<(&Object, Narrowed<'_, '_>)>> = BTreeMap::new();
    for cluster in context.clusters() {
        let is_policy = |it: &&Object| it.key.group == "networking.k8s.io" && it.key.kind == "NetworkPolicy";
        for policy in cluster.objects.iter().copied().filter(is_policy) {
            for it in selectors_of(policy).into_iter().filter_map(|it| narrowed(cluster, policy, it)) {
                let place = context.survey.span(policy, &it.place).to_string();
                let known = found.entry((place, it.added.clone())).or_default();
                if !known
                    .iter()
                    .any(|(other, same)| other.key.name == policy.key.name && same.place == it.place)
                {
                    known.push((policy, it));
                }
            }
        }
    }
    found.values().for_each(|all| add(context, all, report));
}

/// The selectors of pods in a policy: what they are for, where they stand, and whether they are of other
/// namespaces, too.
fn selectors_of(policy: &Object) -> Vec<(&'static str, FieldPath, bool)> {
    let spec = &policy.value()["spec"];
    let mut found = vec![("to and from the pods of the policy", keys(&["spec", "podSelector"]), false)];
    for (rules, peers, direction) in [("ingress", "from", "from"), ("egress", "to", "to")] {
        for (at, rule) in list(spec, rules).iter().enumerate() {
            for (number, peer) in list(rule, peers).iter().enumerate() {
                let place = keys(&["spec", rules]).index(at).key(peers).index(number).key("podSelector");
                let is_elsewhere = peer.get("namespaceSelector").is_some();
                found.extend(peer.get("podSelector").map(|_| (direction, place, is_elsewhere)));
            }
        }
    }
    found
}

fn narrowed<'c, 'a>(
    cluster: &'c Cluster<'a>,
    policy: &Object,
    (direction, place, is_elsewhere): (&'static str, FieldPath, bool),
) -> Option<Narrowed<'c, 'a>> {
    let selector = place.get(policy.value()).filter(|it| !placeholders::has_placeholder(it))?;
    let wanted = selectors::match_labels(selector)?;
    let place = place.key("matchLabels");
    let (own, added) = selectors::without_transformed(policy, &place, &wanted);
    let has =
        |pod: &Pod<'_>, labels: &Labels<'_>| labels.iter().all(|(key, value)| pod.label(key) == Some(*value));
    let is_here = |pod: &&Pod<'a>| is_elsewhere || pod.object.key.namespace == policy.key.namespace;
    let pods: Vec<&Pod<'a>> =
        cluster.pods.iter().filter(is_here).filter(|pod| !own.is_empty() && has(pod, &own)).collect();
    // Where some have the labels they are what is meant.
    // The pods of another namespace come from elsewhere, and nothing there has the label.
    let unseen = other_namespace(policy, &place).filter(|namespace| {
        let labelled = |it: &&Object| {
            it.key.namespace == *namespace
                && it.value().to_string().contains(added.first().map_or("", |it| it.0))
        };
        pods.is_empty() && !own.is_empty() && !cluster.objects.iter().any(labelled)
    });
    let is_unmet = !pods.is_empty() && !pods.iter().any(|pod| has(pod, &added)) || unseen.is_some();
    let is_cut_off = !added.is_empty() && is_unmet;
    let shown: Vec<String> = added.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let place = place.key(added.first()?.0);
    is_cut_off.then(|| Narrowed { place, added: shown.join(", "), direction, pods, unseen })
}

/// The namespace that a peer names by its name, if it is not the policy's own.
fn other_namespace(policy: &Object, selector: &FieldPath) -> Option<String> {
    let mut peer = selector.clone();
    // `podSelector`, and `matchLabels` in it.
    peer.0.truncate(peer.0.len().checked_sub(2)?);
    let name = peer
        .key("namespaceSelector")
        .key("matchLabels")
        .key("kubernetes.io/metadata.name")
        .get(policy.value())?
        .as_str()?;
    (name != policy.key.namespace).then(|| name.to_owned())
}

/// Tells of all policies into which the labels of one place went.
fn add(context: &Context<'_>, all: &[(&Object, Narrowed<'_, '_>)], report: &mut Report) {
    const MOST: usize = 4;
    let survey = context.survey;
    let [(policy, first), ..] = all else { return };
    let mut titles: Vec<String> = all.iter().map(|(policy, _)| policy.title()).collect();
    titles.dedup();
    let of = match titles.len() {
        1 => titles[0].clone(),
        number => format!("{} and {} more", titles[0], number - 1),
    };
    let mut diagnostic = RULE
        .diagnostic(format!(
            "{of}: {} is asked for, which the kustomization adds, and pods without it are cut off",
            first.added
        ))
        .at(survey.span(policy, &first.place), "added to every selector")
        .because(
            "labels of a kustomization go into selectors, and into the pods of this kustomization alone",
        );
    for (policy, it) in all {
        let mut pods: Vec<String> = it.pods.iter().map(|pod| pod.object.title()).collect();
        pods.extend(it.unseen.iter().map(|namespace| format!("the pods of namespace {namespace}")));
        let flow = match it.direction {
            "from" | "to" => format!("{} {}", it.direction, pods.join(", ")),
            own => format!("{own}, which are meant to be {}", pods.join(", ")),
        };
        diagnostic = diagnostic.help(format!("{} drops what goes {flow}", policy.title()));
    }
    let mut shown: Vec<&Pod<'_>> = Vec::new();
    for pod in all.iter().flat_map(|(_, it)| it.pods.first()) {
        if shown.len() < MOST && !shown.iter().any(|it| it.object.id == pod.object.id) {
            shown.push(pod);
        }
    }
    for pod in shown {
        let place = survey.span(pod.object, &pod.path.key("metadata").key("labels"));
        diagnostic = diagnostic.see(place, format!("{} has no such label", pod.object.title()));
    }
    diagnostic = diagnostic
        .help("use `labels` with `includeSelectors: false`, so that the selectors stay as they are written");
    report.add(RULE.finding(context, policy, diagnostic).likely());
}
