//! # Two Applications have one name
//!
//! The name of an Application is unique in its namespace. Of two declarations the one that is applied
//! last wins; where both are applied again and again, the Application changes its source back and forth,
//! and with pruning the objects of the one are deleted for those of the other.
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

use tiphys_diag::Severity;
use tiphys_graph::{App, AppId, Declaration, Outcome, Survey};

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders},
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
        let together =
            of_one_set || root(survey, app).is_some_and(|above| Some(above) == root(survey, first));
        let folder =
            |app: &App| app.declared.location.file.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        // Of what another tool fills in, it may apply one or the other.
        let is_chosen = placeholders::has_placeholder(&app.declared.value)
            || placeholders::has_placeholder(&first.declared.value);
        if (is_chosen && !together)
            || survey.is_symbolic(app)
            || survey.is_symbolic(first)
            || (!together && folder(app) != folder(first))
        {
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
        let finding = if together { finding } else { finding.likely() };
        match app.declaration {
            // One template that leaves out what tells two clusters apart is one cause.
            Declaration::Set(set) if of_one_set => once.add_by(format!("set {}", set.0), finding),
            _ => once.add(app.name(), finding),
        }
    }
    once.report(report);
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
