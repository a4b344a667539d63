//! # A finalizer that the engine does not know
//!
//! An Application may ask for its objects to be deleted with it by a finalizer. Argo CD takes away those that
//! it knows; one that is misspelt stays, so that the Application can never be deleted, and neither can its
//! namespace or the ApplicationSet that made it.
//!
//! People see: an Application that stays in `Deleting`, a preview environment that is never cleaned up,
//! `metadata.finalizers: "…": prefer a domain-qualified finalizer name`.
//!
//! ## Bad
//! ```yaml
//! finalizers: [resources-finalizer.argoproj.io]
//! ```
//! ## Good
//! ```yaml
//! finalizers: [resources-finalizer.argocd.argoproj.io]
//! ```
//! ## When to suppress
//! Where a controller of your own serves the finalizer.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "A2-unknown-finalizer",
    incident: "A2",
    severity: Severity::Error,
    title: "a finalizer of an Application that the engine does not know",
    page: page!("a2_unknown_finalizer.rs"),
    check,
};

/// Those that Argo CD serves (docs, "App Deletion" and "Resource Hooks"); a path may follow each.
const KNOWN: [&str; 3] = [
    "resources-finalizer.argocd.argoproj.io",
    "post-delete-finalizer.argocd.argoproj.io",
    "pre-delete-finalizer.argocd.argoproj.io",
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in context.survey.objects.iter().filter(|it| it.key.group == "argoproj.io") {
        let metadata = match object.key.kind.as_str() {
            "Application" => keys(&["metadata"]),
            "ApplicationSet" => keys(&["spec", "template", "metadata"]),
            _ => continue,
        };
        add(context, object, &metadata.key("finalizers"), &mut once);
    }
    once.report(report);
}

fn add(context: &Context<'_>, object: &Object, list: &FieldPath, once: &mut Once) {
    let names = list.get(object.value()).and_then(Value::as_array).into_iter().flatten();
    for (at, name) in names.enumerate().filter_map(|(at, name)| Some((at, name.as_str()?))) {
        let domain = name.split('/').next().unwrap_or_default();
        let nearest = similar_names::nearest_slip(domain, KNOWN.into_iter());
        // Others' finalizers are others' business.
        let is_ours = domain.ends_with("argoproj.io") || nearest.is_some();
        if KNOWN.contains(&domain) || !is_ours || name.contains(['{', '$']) {
            continue;
        }
        let meant = nearest.unwrap_or(KNOWN[0]);
        let diagnostic = RULE
            .diagnostic(format!("{} has the finalizer {name}, which nobody serves", object.title()))
            .at(context.survey.span(object, &list.index(at)), "Argo CD does not know it")
            .because("what has a finalizer is deleted only when it is taken away: the Application stays for ever, and its objects are not deleted")
            .help(format!("write {meant}"));
        once.add(name, RULE.finding(context, object, diagnostic).with_spelling(name, meant));
    }
}
