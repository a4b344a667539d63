//! # Two Applications have one name
//!
//! The name of an Application is unique in its namespace. Of two declarations the one that is applied
//! last wins; where both are applied again and again, the Application changes its source back and forth,
//! and with pruning the objects of the one are deleted for those of the other. An Application that renders
//! one of its own name with another source gives itself that source, and what it should bring never comes.
//!
//! People see: an Application whose `spec.source` changes by itself, `SharedResourceWarning: Application/x`.
//!
//! ## Bad
//! Two files below one root, both with `metadata: {name: web}`.
//! ## Good
//! `metadata: {name: web-eu}` and `metadata: {name: web-us}`.
//!
//! ## When to suppress
//! Where the two are meant for different clusters, each with an engine of its own.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::{App, AppId, Declaration, Outcome, Set, Survey, survey::declared_span};
use tiphys_value::ObjectExt;
use tiphys_vfs::parent;

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths::keys, kustomization_entries, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-duplicate-name",
    incident: "D2",
    severity: Severity::Error,
    title: "two Applications of one name in one environment",
    page: page!("d2_duplicate_name.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    for app in &survey.apps {
        let Outcome::Duplicate(first) = app.outcome else { continue };
        let first = survey.app(first);
        if app.declared.value["spec"] == first.declared.value["spec"] {
            continue;
        }
        // Only what one root brings about is certain to meet in one cluster; what lies in one folder, likely.
        let of_one_set =
            app.declaration == first.declaration && matches!(app.declaration, Declaration::Set(_));
        // What renders another under its own name is replaced by it, wherever that is.
        let is_own = matches!(app.declaration, Declaration::App(above) if above == first.id)
            && app.declared.value["spec"]["source"] != first.declared.value["spec"]["source"];
        let together =
            is_own || of_one_set || root(survey, app).is_some_and(|above| Some(above) == root(survey, first));
        let folder = |app: &App| parent(&app.declared.location.file).unwrap_or_default().to_owned();
        // Of what another tool fills in, it may apply one or the other.
        let is_chosen = placeholders::has_placeholder(&app.declared.value)
            || placeholders::has_placeholder(&first.declared.value);
        let is_open = !is_own && (survey.is_symbolic(app) || survey.is_symbolic(first));
        if (is_chosen && !together) || is_open || (!together && folder(app) != folder(first)) {
            continue;
        }
        let place = |app| survey.app_span(app, &keys(&["metadata", "name"]));
        let mut diagnostic = RULE
            .diagnostic(format!("two Applications are called {}", app.name()))
            .at(place(app), "declared here")
            .see(place(first), "and here")
            .because(
                "the name is unique in the engine's namespace, so that one of the two overwrites the other",
            )
            .help("give one of them another name");
        if !together {
            diagnostic.severity = Severity::Warning;
        }
        let finding = Finding::new(RULE.incident, diagnostic).app(app.name());
        let is_certain = together && !(is_own && survey.is_symbolic(first));
        let finding = if is_certain { finding } else { finding.likely() };
        match app.declaration {
            // One template that leaves out what tells two clusters apart is one cause.
            Declaration::Set(set) if of_one_set => once.add_by(format!("set {}", set.0), finding),
            _ => once.add(app.name(), finding),
        }
    }
    for finding in of_sets(survey).into_iter().chain(sets_of_one_name(survey)) {
        report.add(finding);
    }
    once.report(report);
}

/// ApplicationSets of one folder whose Applications have one name, which no parameter completes. Where their
/// generators are seen, the Applications tell.
fn of_sets(survey: &Survey) -> Vec<Finding> {
    let mut first: BTreeMap<(&str, &str), &Set> = BTreeMap::new();
    let mut found = Vec::new();
    for set in survey.sets.iter().filter(|set| set.apps.is_empty() || set.symbolic || set.unseen) {
        let name = set.declared.value.str_at(&["spec", "template", "metadata", "name"]).unwrap_or_default();
        let folder = parent(&set.declared.location.file).unwrap_or_default();
        if name.is_empty() || name.contains(['{', '$']) {
            continue;
        }
        let Some(other) = first.get(&(folder, name)) else {
            first.insert((folder, name), set);
            continue;
        };
        let source = |set: &Set| set.declared.value["spec"]["template"]["spec"]["source"].clone();
        if other.declared.value.name() == set.declared.value.name() || source(other) == source(set) {
            continue;
        }
        let place = |set: &Set| {
            let field = keys(&["spec", "template", "metadata", "name"]);
            declared_span(&survey.files, &set.declared, &field)
        };
        let mut diagnostic = RULE
            .diagnostic(format!("two ApplicationSets make an Application called {name}"))
            .at(place(set), "made here")
            .see(place(other), "and here")
            .because(
                "the name is unique in the engine's namespace, so that one of the two overwrites the other",
            )
            .help("give one of them another name");
        diagnostic.severity = Severity::Warning;
        let title = format!("ApplicationSet/{}", set.declared.value.name());
        found.push(Finding::new(RULE.incident, diagnostic).object(title).likely());
    }
    found
}

/// ApplicationSets of one folder with one name that say different things: who applies the folder keeps the
/// one that comes last.
fn sets_of_one_name(survey: &Survey) -> Vec<Finding> {
    let mut first: BTreeMap<(&str, &str, &str), &Set> = BTreeMap::new();
    let mut found = Vec::new();
    for set in survey.sets.iter().filter(|set| !set.declared.value.name().is_empty()) {
        let (file, value) = (&set.declared.location.file, &set.declared.value);
        let folder = parent(file).unwrap_or_default();
        let Some(other) = first.get(&(folder, value.namespace(), value.name())) else {
            first.insert((folder, value.namespace(), value.name()), set);
            continue;
        };
        // A template yields one after the other, and a variant may be chosen by its file's name.
        let is_one_file = other.declared.location.file == *file;
        if is_one_file
            || other.declared.value["spec"] == value["spec"]
            || placeholders::is_in(value.name())
            || kustomization_entries::of_folder(&survey.files, folder).next().is_some()
        {
            continue;
        }
        let place = |set: &Set| declared_span(&survey.files, &set.declared, &keys(&["metadata", "name"]));
        let mut diagnostic = RULE
            .diagnostic(format!("two ApplicationSets are called {}", value.name()))
            .at(place(set), "declared here")
            .see(place(other), "and here")
            .because("one of the two overwrites the other, and the Applications of that one are deleted")
            .help("give one of them another name");
        diagnostic.severity = Severity::Warning;
        found.push(
            Finding::new(RULE.incident, diagnostic)
                .object(format!("ApplicationSet/{}", value.name()))
                .likely(),
        );
    }
    found
}

/// The outermost Application that renders an Application; `None` if nothing does.
fn root(survey: &Survey, app: &App) -> Option<AppId> {
    let mut root = None;
    let mut at = app;
    // No chain is longer than there are Applications.
    for _ in 0..survey.apps.len() {
        let Declaration::App(above) = at.declaration else { break };
        root = Some(above);
        at = survey.app(above);
    }
    root
}
