//! # A kustomization names a file outside of its folder
//!
//! Kustomize reads *files* only in or below the folder that it builds. A path such as
//! `../namespaces/all.yaml` stops the whole build, so that nothing of the Application is produced: what
//! is in the cluster stays as it is, what is missing stays missing, and whatever waits for it waits on.
//!
//! People see: `accumulating resources from '../namespaces/all.yaml': security; file '…' is not in or
//! below '…'`, as a `ComparisonError` of the Application.
//!
//! ## Bad
//! ```yaml
//! # foundations/kustomization.yaml
//! resources: [../namespaces/all.yaml]
//! ```
//! ## Good
//! ```yaml
//! # namespaces/kustomization.yaml
//! resources: [all.yaml]
//! # foundations/kustomization.yaml: a folder with a kustomization of its own may lie anywhere
//! resources: [../namespaces]
//! ```
//! ## When to suppress
//! Where the engine is told `kustomize.buildOptions: --load-restrictor LoadRestrictionsNone`.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::{App, Outcome, UnitKind};
use tiphys_render::{Cause, RenderError};

use super::d2_cannot_render;
use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, render_fault::RenderFault},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D1-load-restriction",
    incident: "D1",
    severity: Severity::Error,
    title: "a kustomization names a file outside of its folder",
    page: page!("d1_load_restriction.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let (mut once, mut ours) = (Once::default(), Once::default());
    for app in &context.survey.apps {
        if let Outcome::Failed(error) = &app.outcome
            && error.cause() == Cause::LoadRestricted
        {
            once.add(error.headline(), finding(context, app, error));
        }
    }
    for unit in context.survey.units.iter().filter(|unit| unit.kind == UnitKind::Kustomization) {
        if let Outcome::Failed(error) = &unit.outcome
            && error.cause() == Cause::LoadRestricted
        {
            let fault = RenderFault::from_error(context, error, None);
            let mut diagnostic = explain(
                RULE.diagnostic(format!(
                    "kustomization {} does not build: {}",
                    unit.path,
                    kernel(&fault.text)
                )),
                fault,
            );
            diagnostic.severity = Severity::Warning;
            ours.add(error.headline(), Finding::new(RULE.incident, diagnostic).likely());
        }
    }
    if !ours.is_empty() && !is_lifted(context) && !is_lifted_by_script(context) {
        ours.report(report);
    }
    if !once.is_empty() && !is_lifted(context) {
        once.report(report);
    }
}

fn finding(context: &Context<'_>, app: &App, error: &RenderError) -> Finding {
    let fault = RenderFault::from_error(context, error, Some(app));
    let text = format!("Application {} cannot be rendered: {}", app.name(), kernel(&fault.text));
    let mut diagnostic = explain(RULE.diagnostic(text), fault);
    diagnostic = diagnostic.see(d2_cannot_render::source(context, app), "the source is named here");
    Finding::new(RULE.incident, diagnostic).app(app.name())
}

/// The part of kustomize's message that says what is wrong: it tries a path as a folder too, and tells both.
fn kernel(text: &str) -> &str {
    static KERNEL: LazyLock<Regex> = LazyLock::new(|| {
        let pattern =
            "accumulating resources from '[^']*': security; file '[^']*' is not in or below '[^']*'";
        Regex::new(pattern).expect("the pattern is well formed")
    });
    KERNEL.find(text).map_or(text, |found| found.as_str())
}

fn explain(diagnostic: crate::Diagnostic, fault: RenderFault) -> crate::Diagnostic {
    let mut diagnostic = diagnostic
        .because("kustomize reads files only in or below the folder that it builds; with one file refused, nothing of the Application is produced")
        .help("give the folder of that file a kustomization of its own and name the folder: folders may lie elsewhere")
        .help("or move the file into the folder that is built");
    if let Some(span) = fault.span {
        diagnostic = diagnostic.at(span, "this path leads out of the folder");
    }
    diagnostic
}

/// Whether people, or what runs for them, build without the restriction what no Application renders.
fn is_lifted_by_script(context: &Context<'_>) -> bool {
    const ENDINGS: [&str; 9] =
        [".sh", ".bash", ".mk", "Makefile", "justfile", "Justfile", ".yml", ".yaml", ".py"];
    let files = &context.survey.files;
    files
        .ending(&ENDINGS)
        .any(|path| files.text(path).is_some_and(|text| LIFTING.iter().any(|option| text.contains(option))))
}

/// How kustomize's restriction is lifted, in its present and its former spelling.
const LIFTING: [&str; 2] = ["LoadRestrictionsNone", "load_restrictor none"];

/// Whether the repository tells its engine to build without the restriction.
fn is_lifted(context: &Context<'_>) -> bool {
    d2_cannot_render::build_options(context).contains("LoadRestrictionsNone")
}
