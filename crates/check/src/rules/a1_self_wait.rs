//! # An Application waits for itself
//!
//! An Application renders its own declaration (a documented pattern, and harmless by itself), its objects
//! are spread over several waves, and a health check for `argoproj.io/Application` calls it Progressing
//! until it is Synced. Its operation applies the declaration, waits for it to become healthy before the
//! next wave, and it can only become healthy after that wave. The operation runs for ever, and while it runs
//! no later commit is synced. The same happens when two Applications render each other.
//!
//! People see: `waiting for healthy state of argoproj.io/Application/root`, for hours, and an operation
//! that stays `Running`.
//!
//! The health check is executed on an Application in exactly this state; if it says Healthy then, nothing
//! is reported. Without a health check of that kind Argo CD (since 1.8) does not assess Applications.
//!
//! ## Bad
//! ```yaml
//! # apps/root.yaml: renders the folder that it lies in
//! kind: Application
//! metadata: {name: root}
//! spec: {source: {path: apps}}
//! # apps/shop.yaml
//! metadata: {name: shop, annotations: {argocd.argoproj.io/sync-wave: "5"}}
//! # argocd-cm.yaml
//! data:
//!   resource.customizations.health.argoproj.io_Application: |
//!     if obj.status.sync.status == "Synced" then return {status = "Healthy"} end
//!     return {status = "Progressing"}
//! ```
//! ## Good
//! The Application lies outside of the folder that it renders, or is excluded from it:
//! ```yaml
//! spec: {source: {path: apps, directory: {exclude: root.yaml}}}
//! ```
//! or the health check says what Argo CD found itself: `return {status = obj.status.health.status}`.
//!
//! ## When to suppress
//! Never: the operation cannot end.

use tiphys_diag::{Diagnostic, Severity};
use tiphys_graph::waits::{Cycle, Hop, cycles};

use crate::{Context, Finding, Report, Rule, rule_helpers};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "A1-self-wait",
    incident: "A1",
    severity: Severity::Error,
    title: "an operation waits for what waits for it",
    page: page!("a1_self_wait.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let analyses = context.analyses();
    for cycle in cycles(context.survey, &analyses.order, &analyses.health) {
        report.add(finding(context, &cycle));
    }
}

fn finding(context: &Context<'_>, cycle: &Cycle) -> Finding {
    let survey = context.survey;
    let first = cycle.hops[0];
    let awaited = survey.object(first.awaited);
    let names: Vec<&str> = cycle.hops.iter().map(|hop| survey.app(hop.app).name()).collect();
    let message = match names[..] {
        [only] => format!("Application {only} waits for itself: {}", rule_helpers::waiting_for(awaited)),
        _ => format!(
            "the Applications {} wait for each other: {}",
            names.join(", "),
            rule_helpers::waiting_for(awaited)
        ),
    };
    let mut diagnostic = RULE.diagnostic(message);
    for (at, hop) in cycle.hops.iter().enumerate() {
        diagnostic = describe(context, diagnostic, hop, at == 0);
    }
    let health = context.analyses().health.of_applications(survey.app(first.app).environment);
    if let Some(health) = health {
        diagnostic = diagnostic.see(
            health.span,
            "this check, executed, does not call an Application Healthy while its own operation runs",
        );
    }
    let diagnostic = diagnostic
        .because("an operation waits for the health of everything in a wave before it applies the next one; this Application becomes healthy only when that very operation is through")
        .help("leave the Application out of what it renders: move its file, or name it in `source.directory.exclude`")
        .help("or let the health check repeat what Argo CD found: `hs.status = obj.status.health.status`");
    RULE.finding(context, awaited, diagnostic)
}

fn describe(context: &Context<'_>, diagnostic: Diagnostic, hop: &Hop, is_first: bool) -> Diagnostic {
    let survey = context.survey;
    let (app, awaited) = (survey.app(hop.app), survey.object(hop.awaited));
    let text = if awaited.key.name == app.name() {
        format!("{} renders its own declaration, in {}", app.name(), hop.step)
    } else {
        format!("{} renders {}, in {}", app.name(), awaited.key.name, hop.step)
    };
    let mut diagnostic = if is_first {
        diagnostic.at(rule_helpers::wave(context, awaited), text)
    } else {
        diagnostic.see(rule_helpers::wave(context, awaited), text)
    };
    diagnostic = diagnostic.see(rule_helpers::source(context, app), format!("what {} renders", app.name()));
    match hop.later {
        Some(later) => {
            let later = survey.object(later);
            let step = tiphys_graph::order::step_of(later).unwrap_or(hop.step);
            let text = format!("{} is applied only afterwards, in {step}", later.title());
            diagnostic.see(rule_helpers::wave(context, later), text)
        }
        None => diagnostic,
    }
}
