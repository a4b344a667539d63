//! # An Application waits for a child that needs what comes later
//!
//! A parent renders its children in waves, and a health check for `argoproj.io/Application` makes it wait
//! for the children of each wave. A child of an early wave needs something that only a later wave brings: a
//! Secret, a custom resource definition, a namespace, its project. So the child cannot become healthy before
//! the parent goes on, and the parent does not go on before the child is healthy.
//!
//! People see: `waiting for healthy state of argoproj.io/Application/shop` at the parent; at the child
//! `secret "db" not found`, `The Kubernetes API could not find …`, or
//! `Application referencing project … which does not exist`.
//!
//! Nothing is reported where Applications have no health check (Argo CD's default since 1.8): the parent
//! then does not wait.
//!
//! ## Bad
//! ```yaml
//! # wave 0: Application shop, whose Deployment mounts Secret db
//! # wave 5: Application secrets, whose ExternalSecret makes Secret db
//! ```
//! ## Good
//! The Application that brings something comes in an earlier wave than those that need it.
//!
//! ## When to suppress
//! When something outside of the repository brings it.

use tiphys_diag::Severity;
use tiphys_graph::waits::{Need, Stall, Unmet};

use crate::{Context, Report, Rule, rule_helpers};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "A1-parent-wait",
    incident: "A1",
    severity: Severity::Error,
    title: "a parent waits for a child that needs what the parent brings later",
    page: page!("a1_parent_wait.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    for unmet in &context.analyses().unmet {
        if let Some(Stall::Child(health)) = &unmet.stall {
            add(context, report, unmet, &health.span);
        }
    }
}

fn add(context: &Context<'_>, report: &mut Report, unmet: &Unmet, check: &tiphys_diag::Span) {
    let survey = context.survey;
    let (object, provider) = (survey.object(unmet.object), survey.object(unmet.provider));
    let (first, second) = (survey.object(unmet.meeting.first), survey.object(unmet.meeting.second));
    let parent = survey.app(unmet.meeting.app).name();
    let (early, late) = (unmet.meeting.first_step, unmet.meeting.second_step);
    let (early, late) = (rule_helpers::step(early, late), rule_helpers::step(late, early));
    let message = format!(
        "{parent} waits for {}, which needs {} of a later wave: {}",
        first.key.name,
        provider.title(),
        rule_helpers::waiting_for(first)
    );
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(survey.span(object, &unmet.field), format!("{} needs it here", object.title()))
        .see(survey.start(provider), format!("{} {}", provider.title(), verb(unmet.need)))
        .see(rule_helpers::wave(context, first), format!("{} is applied in {early}", first.title()));
    if second.id != provider.id {
        diagnostic = diagnostic
            .see(rule_helpers::wave(context, second), format!("{} is applied in {late}", second.title()));
    }
    let diagnostic = diagnostic
        .see(check.clone(), "because of this health check the parent waits for its children")
        .because(format!(
            "{}, and {parent} applies nothing of {late} before {} is healthy",
            format_args!("{early} comes before {late}"),
            first.key.name
        ))
        .help(format!("give {} a wave before {}", second.title(), unmet.meeting.first_step.wave));
    report.add(RULE.finding(context, first, diagnostic));
}

fn verb(need: Need) -> &'static str {
    match need {
        Need::Consumer => "uses it, only then is the claim bound",
        _ => "brings it",
    }
}
