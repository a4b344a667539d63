//! # An entry of a project that fits nothing
//!
//! An AppProject lists the groups and kinds that its Applications may have, or may not. A group that is no
//! group (`core`, `apps/v1`, one with a colon behind it, or none for a kind that has one) and a kind in the
//! plural are taken, and fit nothing: what was to be allowed is refused, and what was to be refused is
//! allowed.
//!
//! People see: `resource rbac.authorization.k8s.io:ClusterRole is not permitted in project team`, though the
//! project lists it; a kind on the black list that is synced.
//!
//! ## Bad
//! ```yaml
//! clusterResourceWhitelist:
//! - {group: 'rbac.authorization.k8s.io:', kind: ClusterRole}
//! ```
//! ## Good
//! ```yaml
//! clusterResourceWhitelist:
//! - {group: rbac.authorization.k8s.io, kind: ClusterRole}
//! ```
//! ## When to suppress
//! Where a kind of that name and group is served by something that the repository does not have.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_model::names;
use tiphys_schema::{Catalog, names::dns1123_subdomain};
use tiphys_value::Value;

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        kind_groups::{KindGroups, UnknownKind},
        placeholders,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-project-entry",
    incident: "D2",
    severity: Severity::Warning,
    title: "a group or kind in an AppProject that fits nothing",
    page: page!("d2_project_entry.rs"),
    check,
};

/// The lists of a project, and what comes of an entry that fits nothing.
const LISTS: [(&str, &str); 4] = [
    ("clusterResourceWhitelist", "what it was to allow is refused"),
    ("namespaceResourceWhitelist", "what it was to allow is refused"),
    ("clusterResourceBlacklist", "what it was to refuse is allowed"),
    ("namespaceResourceBlacklist", "what it was to refuse is allowed"),
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let known = KindGroups::from_survey(context.survey);
    for object in &context.survey.objects {
        if object.key.kind != "AppProject" || object.key.group != names::GROUP {
            continue;
        }
        for (field, effect) in LISTS {
            for (at, entry) in list(&object.value()["spec"], field).iter().enumerate() {
                if let Some(fault) = fault(&known, entry) {
                    once.add(field, finding(context, object, (field, at), entry, fault, effect));
                } else if field == "namespaceResourceWhitelist" && is_of_clusters(entry) {
                    once.add(field, misplaced(context, object, at, entry));
                }
            }
        }
    }
    once.report(report);
}

/// Whether an entry names a kind that lives in no namespace.
fn is_of_clusters(entry: &Value) -> bool {
    let (group, kind) = (text(entry, "group"), text(entry, "kind"));
    let known = Catalog::latest().kinds().iter().find(|it| it.gvk.group == group && it.gvk.kind == kind);
    known.is_some_and(|it| !it.namespaced)
}

/// A kind of clusters in the list of kinds of namespaces, which the list of those of clusters does not have.
fn misplaced(context: &Context<'_>, object: &Object, at: usize, entry: &Value) -> crate::Finding {
    let place = keys(&["spec", "namespaceResourceWhitelist"]).index(at).key("kind");
    let kind = text(entry, "kind");
    let permits = |it: &Value| {
        let fits = |field: &str| matches!(text(it, field), "*") || text(it, field) == text(entry, field);
        fits("group") && fits("kind")
    };
    let is_permitted = list(&object.value()["spec"], "clusterResourceWhitelist").iter().any(permits);
    let mut diagnostic = RULE
        .diagnostic(format!(
            "{} lists {kind} in namespaceResourceWhitelist, which lives in no namespace",
            object.title()
        ))
        .at(context.survey.span(object, &place), "a kind of the cluster")
        .because("the engine looks for it in clusterResourceWhitelist: the entry permits nothing")
        .help("move the entry to clusterResourceWhitelist");
    if is_permitted {
        diagnostic.severity = Severity::Info;
    }
    RULE.finding(context, object, diagnostic)
}

fn fault(known: &KindGroups<'_>, entry: &Value) -> Option<UnknownKind> {
    let (group, kind) = (text(entry, "group"), text(entry, "kind"));
    if [group, kind].into_iter().any(placeholders::is_in) {
        return None;
    }
    let is_pattern = group.contains(['*', '?', '[', '{', '!']);
    if !group.is_empty() && !is_pattern && !group.contains('/') && !dns1123_subdomain(group).is_empty() {
        let plain = group.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        return Some(UnknownKind { field: "group", help: format!("write `group: {plain}`") });
    }
    known.fault(group, kind)
}

fn finding(
    context: &Context<'_>,
    object: &Object,
    (field, at): (&str, usize),
    entry: &Value,
    fault: UnknownKind,
    effect: &str,
) -> crate::Finding {
    let place = keys(&["spec", field]).index(at).key(fault.field);
    let (group, kind) = (text(entry, "group"), text(entry, "kind"));
    let diagnostic = RULE
        .diagnostic(format!(
            "{} lists {kind} of group {group:?} in {field}, which fits nothing",
            object.title()
        ))
        .at(context.survey.span(object, &place), "nothing is of this group and kind")
        .because(format!("the engine compares group and kind as they are written: {effect}"))
        .help(fault.help);
    RULE.finding(context, object, diagnostic)
}
