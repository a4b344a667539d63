//! # An Application lies in a project that only its own sync makes
//!
//! Argo CD looks an Application's project up before it does anything with it. The first Application of a
//! cluster is applied by hand; if its project is one of the objects that it brings itself, the project is
//! never made.
//!
//! People see: `application references project shop which does not exist`, an Application that never syncs.
//!
//! ## Bad
//! ```yaml
//! kind: Application                   # applied by hand
//! spec: {project: shop, source: {path: cluster}}
//! ---
//! # cluster/project.yaml
//! kind: AppProject
//! metadata: {name: shop}
//! ```
//! ## Good
//! ```yaml
//! kind: Application
//! spec: {project: default, source: {path: cluster}}
//! ```
//! ## When to suppress
//! Where the project is applied by hand before the Application.

use tiphys_diag::Severity;
use tiphys_graph::{Object, Owner};
use tiphys_vfs::base_name;

use crate::{
    Context, Finding, Report, Rule,
    support::{field_paths::keys, placeholders, scripted_objects::is_spoken_of},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "A1-own-project",
    incident: "A1",
    severity: Severity::Warning,
    title: "an Application lies in a project that only its own sync makes",
    page: page!("a1_own_project.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    if survey.is_of_flux {
        return;
    }
    let of_kind = |kind: &'static str| {
        survey.objects.iter().filter(move |it| it.key.group == "argoproj.io" && it.key.kind == kind)
    };
    for app in survey.apps.iter().filter(|app| app.above.is_none()) {
        let project = app.application.spec.project.as_str();
        if matches!(project, "" | "default") || placeholders::is_in(project) {
            continue;
        }
        let made: Vec<&Object> = of_kind("AppProject").filter(|it| it.key.name == project).collect();
        let is_own = |it: &&Object| match it.owner {
            Owner::App(owner) => survey.root_of(survey.app(owner)).id == app.id,
            Owner::Unit(_) => false,
        };
        let is_only_own = !made.is_empty() && made.iter().all(is_own);
        // Who applies the file by hand says so somewhere.
        let file = made.first().map(|it| it.rendered.location.file.as_ref()).unwrap_or_default();
        if !is_only_own || is_spoken_of(context, project) || is_spoken_of(context, base_name(file)) {
            continue;
        }
        let diagnostic = RULE
            .diagnostic(format!("Application {} lies in project {project}, which only its own sync makes", app.name()))
            .at(survey.app_span(app, &keys(&["spec", "project"])), "this project is not there yet")
            .see(survey.start(made[0]), "made by what the Application brings")
            .because("Argo CD syncs no Application of a project that does not exist, and so never makes the project")
            .help("write `project: default` for the first Application, or apply the project before it");
        report.add(Finding::new(RULE.incident, diagnostic).app(app.name()).likely());
    }
}
