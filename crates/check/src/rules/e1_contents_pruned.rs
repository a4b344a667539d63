//! # A change prunes what holds other objects
//!
//! Deleting a Namespace deletes everything in it, and deleting a CustomResourceDefinition deletes every
//! resource of the kind: databases with their claims, certificates, Applications. Where a change takes one of
//! the two out of an Application that prunes, and other Applications still render objects into it, the sync
//! deletes them all; their own Applications make them again, empty, or cannot, since the namespace or the
//! definition is gone.
//!
//! This is told with `--diff`.
//!
//! People see: `namespaces "data" not found`, `unable to create new content in namespace data because it is
//! being terminated`, `no matches for kind "Cluster" in version "postgresql.cnpg.io/v1"`, and volumes that
//! are gone.
//!
//! ## Bad
//! ```yaml
//! # namespaces/data.yaml is deleted, and the Application that renders it has automated: {prune: true},
//! # while the Application db deploys into data
//! ```
//! ## Good
//! ```yaml
//! metadata:
//!   annotations: {argocd.argoproj.io/sync-options: Prune=false}    # in the change before
//! ```
//! ## When to suppress
//! Where everything in it is to go, and comes back elsewhere.

use tiphys_diag::Severity;
use tiphys_graph::{App, Declaration, Object, Owner, Survey};
use tiphys_model::{Cascade, DeletionPolicy, options::deletion_policy};
use tiphys_value::ObjectExt;

use crate::{Context, Finding, Report, Rule, rule_helpers};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E1-contents-pruned",
    incident: "E1",
    severity: Severity::Error,
    title: "a change prunes a namespace or definition with what others have in it",
    page: page!("e1_contents_pruned.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let Some(base) = context.base else { return };
    for app in &base.apps {
        for object in base.objects_of(app.id) {
            let is_holder = is_namespace(object) || is_definition(object);
            if is_holder && is_pruned(context.survey, base, app, object) {
                add(context, report, base, app, object);
            }
        }
    }
}

fn is_namespace(object: &Object) -> bool {
    object.key.kind == "Namespace" && object.key.group.is_empty()
}

fn is_definition(object: &Object) -> bool {
    object.key.kind == "CustomResourceDefinition"
}

/// Whether the change takes an object out of the cluster: nothing renders it any more, and its Application
/// prunes or goes with all that it has.
fn is_pruned(now: &Survey, base: &Survey, app: &App, object: &Object) -> bool {
    let options = app.application.sync_options();
    let is_kept = ["Prune", "Delete"]
        .iter()
        .any(|option| deletion_policy(option, object.value(), &options) != DeletionPolicy::Allowed);
    let left: Option<&App> = now.apps.iter().find(|it| it.name() == app.name());
    let goes = match left {
        // What could not be rendered prunes nothing.
        Some(left) => {
            left.is_rendered() && left.application.automated_policy().is_some_and(|it| it.prune == Some(true))
        }
        None => {
            matches!(app.declaration, Declaration::Set(_)) || app.application.cascade() != Cascade::Orphan
        }
    };
    // What was not seen may bring it now.
    let may_come = is_definition(object)
        && now.apps.iter().any(|it| {
            !it.is_rendered() && base.apps.iter().all(|before| before.application.spec != it.application.spec)
        });
    goes && !is_kept && !may_come && object.hooks.is_empty() && now.with_key(&object.key).next().is_none()
}

fn add(context: &Context<'_>, report: &mut Report, base: &Survey, app: &App, object: &Object) {
    let environment = |survey: &Survey, object: &Object| {
        object.environment.map(|environment| survey.environments[environment.0].name.clone())
    };
    let here = environment(base, object);
    let group = object.value().str_at(&["spec", "group"]).unwrap_or_default();
    let kind = object.value().str_at(&["spec", "names", "kind"]).unwrap_or_default();
    let is_inside = |it: &&Object| match is_namespace(object) {
        true => it.key.namespace == object.key.name,
        false => it.key.group == group && it.key.kind == kind,
    };
    let survey = context.survey;
    let held: Vec<&Object> = survey
        .objects
        .iter()
        .filter(|it| matches!(it.owner, Owner::App(_)) && it.cluster == object.cluster)
        .filter(|it| environment(survey, it) == here)
        .filter(is_inside)
        .collect();
    let Some(first) = held.first() else { return };
    let Some(holder) = survey.app_of(first) else { return };
    let more = match held.len() {
        1 => String::new(),
        number => format!(" and {} more", number - 1),
    };
    let message = format!(
        "the change prunes {} of Application {}: {}{more} of Application {} are deleted with it",
        object.title(),
        app.name(),
        first.title(),
        holder.name()
    );
    let why = if is_namespace(object) {
        "a namespace is deleted with everything in it, whoever made it"
    } else {
        "a definition is deleted with every resource of its kind, whoever made it"
    };
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(survey.start(first), "this is still rendered, and is deleted with what holds it")
        .see(rule_helpers::source(context, holder), format!("Application {} renders it", holder.name()))
        .because(why)
        .help("keep it in Git; or annotate it with argocd.argoproj.io/sync-options: Prune=false, sync, and take it out after that");
    // Of an Application that nothing renders it is not told that somebody deletes it in the cluster, too.
    let is_left = survey.apps.iter().any(|it| it.name() == app.name());
    if !is_left && matches!(app.declaration, Declaration::File | Declaration::Unit(_)) {
        diagnostic.severity = Severity::Warning;
    }
    report.add(Finding::new(RULE.incident, diagnostic).app(holder.name()).object(object.title()));
}
