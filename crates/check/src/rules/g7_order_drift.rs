//! # The order is not the one that was written down
//!
//! A file `tiphys-order.yaml` says in which wave each Application comes; the annotations say something else.
//! Orders that are only in people's heads drift, until something comes before what it needs.
//!
//! `tiphys graph` prints the order as it is, also in this form (`--output waves`).
//!
//! ## Bad
//! ```yaml
//! # tiphys-order.yaml
//! waves: {foundations: -1, monitoring: 40}
//! # apps/monitoring.yaml: argocd.argoproj.io/sync-wave: "20"
//! ```
//! ## Good
//! Both say the same.
//!
//! ## When to suppress
//! Never: change one of the two.

use tiphys_diag::{Diagnostic, Severity, Span};
use tiphys_graph::{
    EnvironmentId,
    order::{Drift, Plan, expectation},
    survey::environment_of,
};
use tiphys_value::Location;

use crate::{Context, Finding, Report, Rule, rule_helpers};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G7-order-drift",
    incident: "G7",
    severity: Severity::Warning,
    title: "the waves differ from the committed order",
    page: page!("g7_order_drift.rs"),
    check,
};

const FILE: &str = "tiphys-order.yaml";

fn check(context: &Context<'_>, report: &mut Report) {
    let paths: Vec<_> = context.survey.files.ending(&[FILE]).cloned().collect();
    for path in paths {
        let Some(text) = context.survey.files.text(&path) else { continue };
        match expectation(&text) {
            Ok(expected) => compare(context, report, &path, &text, &expected),
            Err(why) => {
                let span = Span::point(path.clone(), 1, 1);
                let diagnostic = RULE.diagnostic(format!("{FILE} {why}")).at(span, "");
                report.add(Finding::new(RULE.incident, diagnostic));
            }
        }
    }
}

/// Compares with the environment whose folder holds the file, or with all.
fn compare(
    context: &Context<'_>,
    report: &mut Report,
    path: &str,
    text: &str,
    expected: &std::collections::BTreeMap<String, i64>,
) {
    let (survey, analyses) = (context.survey, context.analyses());
    let own = environment_of(path);
    for at in 0..survey.environments.len() {
        if !own.is_empty() && survey.environments[at].name != own {
            continue;
        }
        let plan = Plan::for_environment(survey, &analyses.edges, &analyses.order, EnvironmentId(at));
        for drift in plan.drift(survey, expected) {
            let diagnostic = describe(context, &plan, path, text, &drift);
            let (Drift::Wave { app, .. } | Drift::Missing { app }) = &drift;
            report.add(Finding::new(RULE.incident, diagnostic).app(app));
        }
    }
}

fn describe(context: &Context<'_>, plan: &Plan, path: &str, text: &str, drift: &Drift) -> Diagnostic {
    let (Drift::Wave { app, .. } | Drift::Missing { app }) = drift;
    let line = text
        .lines()
        .position(|line| line.trim_start().trim_start_matches(['"', '\'']).starts_with(app.as_str()));
    let line = u32::try_from(line.unwrap_or_default()).unwrap_or_default() + 1;
    let span = context.survey.files.span(&Location::new(path, line, 0));
    match drift {
        Drift::Missing { .. } => RULE
            .diagnostic(format!("Application {app} is in the committed order, but not in the repository"))
            .at(span, "expected here"),
        Drift::Wave { expected, found, .. } => {
            let diagnostic = RULE
                .diagnostic(format!(
                    "Application {app} comes in wave {found}; the committed order says {expected}"
                ))
                .at(span, format!("expected in wave {expected}"));
            let survey = context.survey;
            let row = plan.rows.iter().find(|row| survey.app(row.app).name() == app);
            match row.and_then(|row| context.analyses().order.parent(row.app)) {
                Some((_, object)) => diagnostic
                    .see(rule_helpers::wave(context, survey.object(object)), format!("wave {found}")),
                None => diagnostic,
            }
        }
    }
}
