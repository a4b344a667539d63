//! # An object of an API group that is nearly another
//!
//! A kind belongs to the group that its definition has. Where an object asks for a group that nothing
//! defines, and others of its kind ask for one that is nearly the same, the API server knows no such kind,
//! and the object is never there: neither is what reads from it.
//!
//! People see: `no matches for kind "HelmRepository" in version "sources.toolkit.fluxcd.io/v1"`.
//!
//! ## Bad
//! ```yaml
//! apiVersion: sources.toolkit.fluxcd.io/v1      # the group is source.toolkit.fluxcd.io
//! kind: HelmRepository
//! ```
//! ## Good
//! ```yaml
//! apiVersion: source.toolkit.fluxcd.io/v1
//! kind: HelmRepository
//! ```
//! ## When to suppress
//! Where an operator of your own defines the other group.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::{Severity, similar_names};
use tiphys_value::ObjectExt;

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, known_kinds, placeholders, unrendered_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-misspelt-group",
    incident: "C2",
    severity: Severity::Error,
    title: "an object of an API group that is nearly another",
    page: page!("c2_misspelt_group.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut by_kind = GroupsByKind::new();
    let mut defined: BTreeSet<&str> = BTreeSet::new();
    for object in &survey.objects {
        *by_kind.entry(&object.key.kind).or_default().entry(&object.key.group).or_default() += 1;
        if object.key.kind == "CustomResourceDefinition" {
            defined.extend(object.value().str_at(&["spec", "group"]));
        }
    }
    let slips = slips(&by_kind, &defined);
    let mut once = Once::default();
    for object in &survey.objects {
        let (group, kind) = (object.key.group.as_str(), object.key.kind.as_str());
        let Some(meant) = slips.get(&(kind, group)) else { continue };
        if unrendered_files::is_from_unused_chart(survey, object) {
            continue;
        }
        let version = object.value().api_version().to_owned();
        let diagnostic = RULE
            .diagnostic(format!(
                "no matches for kind {kind:?} in version {version:?}: nothing defines the group"
            ))
            .at(survey.span(object, &keys(&["apiVersion"])), format!("the group of {kind} is {meant}"))
            .because("the API server has no such resource: the object is refused, and what needs it waits")
            .help(format!("write {meant}"));
        once.add(group, RULE.finding(context, object, diagnostic).likely().with_spelling(group, *meant));
    }
    once.report(report);
}

/// How many objects ask for each group, by kind.
type GroupsByKind<'s> = BTreeMap<&'s str, BTreeMap<&'s str, usize>>;

/// The groups that nothing defines and that are nearly another one, each with that one, by kind and group.
fn slips<'s>(by_kind: &GroupsByKind<'s>, defined: &BTreeSet<&str>) -> BTreeMap<(&'s str, &'s str), &'s str> {
    let mut found = BTreeMap::new();
    for (kind, groups) in by_kind {
        for (group, own) in groups.iter().filter(|(group, _)| group.contains('.')) {
            if defined.contains(group) || known_kinds::is_group(group) || placeholders::is_in(group) {
                continue;
            }
            // A group that many objects ask for is one.
            let others = groups.iter().filter(|(_, count)| *count > own).map(|(group, _)| *group);
            let candidates = others
                .chain(known_kinds::groups_of(kind).map(|it| -> &'s str { it }))
                .filter(|it| it.contains('.'));
            let Some(meant) = similar_names::nearest_slip(group, candidates) else { continue };
            // `v1.example.com` and `v2.example.com` are two groups.
            if !similar_names::differ_in_digits_only(group, meant) {
                found.insert((*kind, *group), meant);
            }
        }
    }
    found
}
