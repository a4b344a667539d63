//! # Operations that wait for each other through what they bring
//!
//! An operation waits until the objects of a wave are healthy before it applies the next. Where an object of
//! one Application needs what another Application brings only in a later wave, and that one waits in the same
//! way for something of the first, neither comes to its later wave. All that has to happen in a sync to an
//! empty cluster is followed here to the end: what never happens, and holds a circle, is reported.
//!
//! People see: two Applications that stay in `Progressing` side by side, `waiting for healthy state of
//! apps/Deployment/web` in both, `secret "…" not found` in the events of their pods. A cluster that was built
//! step by step does not show it; one that is built anew does.
//!
//! ## Bad
//! ```yaml
//! # Application a: Deployment in wave 0 needs Secret s-b; Secret s-a in wave 1
//! # Application b: Deployment in wave 0 needs Secret s-a; Secret s-b in wave 1
//! ```
//! ## Good
//! The Secrets come in an earlier wave than what needs them, or in the same one.
//!
//! ## When to suppress
//! Where something outside of the repository makes one of them.

use std::collections::BTreeSet;

use tiphys_diag::{Diagnostic, Severity, Span};
use tiphys_graph::{
    AppId, Owner,
    waits::{Event, Events, Link, blocked, cycles},
};

use crate::{Context, Finding, Report, Rule, rule_helpers, support::field_paths::keys};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "A1-circle",
    incident: "A1",
    severity: Severity::Warning,
    title: "Applications wait for each other through what they bring",
    page: page!("a1_circle.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let (survey, analyses) = (context.survey, context.analyses());
    let events = Events::from_survey(survey, &analyses.edges, &analyses.order, &analyses.health);
    if events.stalled().next().is_none() {
        return;
    }
    let told = apps_reported_elsewhere(context);
    for circle in events.circles() {
        let apps: BTreeSet<AppId> = circle.iter().filter_map(|link| app_of(context, link.event)).collect();
        if apps.is_disjoint(&told) {
            report.add(finding(context, &circle, &apps));
        }
    }
}

/// The Applications of whose waits other rules tell.
fn apps_reported_elsewhere(context: &Context<'_>) -> BTreeSet<AppId> {
    let (survey, analyses) = (context.survey, context.analyses());
    let hops = cycles(survey, &analyses.order, &analyses.health).into_iter().flat_map(|cycle| cycle.hops);
    let mut told: BTreeSet<AppId> = hops.map(|hop| hop.app).collect();
    for unmet in analyses.unmet.iter().filter(|unmet| unmet.stall.is_some()) {
        told.insert(unmet.meeting.app);
        for id in [unmet.object, unmet.provider] {
            if let Owner::App(app) = survey.object(id).owner {
                told.insert(app);
            }
        }
    }
    let blocked = blocked(survey, &analyses.edges, &analyses.order);
    told.extend(
        blocked
            .iter()
            .filter(|it| it.stalls)
            .filter_map(|it| survey.app_of(survey.object(it.object)))
            .map(|app| app.id),
    );
    told
}

fn app_of(context: &Context<'_>, event: Event) -> Option<AppId> {
    match event {
        Event::Started(app, _) | Event::Done(app) => Some(app),
        Event::Applied(id) | Event::Ready(id) => match context.survey.object(id).owner {
            Owner::App(app) => Some(app),
            Owner::Unit(_) => None,
        },
    }
}

fn finding(context: &Context<'_>, circle: &[Link], apps: &BTreeSet<AppId>) -> Finding {
    let names: Vec<&str> = apps.iter().map(|id| context.survey.app(*id).name()).collect();
    let message = match names[..] {
        [only] => {
            format!("the operation of Application {only} never ends: each of its steps waits for the next")
        }
        _ => format!(
            "the operations of the Applications {} wait for each other and never end",
            names.join(", ")
        ),
    };
    let told: Vec<&Link> = circle.iter().filter(|link| !is_plain(link)).collect();
    let mut diagnostic: Diagnostic = RULE.diagnostic(message);
    for (at, link) in told.iter().enumerate() {
        let mut text =
            format!("{} only when {}", event_text(context, link.event), event_text(context, link.on));
        if link.webhook.is_some() {
            text.push_str(", which answers the webhook");
        }
        let span = place(context, link.event);
        diagnostic = if at == 0 { diagnostic.at(span, text) } else { diagnostic.see(span, text) };
        if let Some(configuration) = link.webhook {
            let span = context.survey.start(context.survey.object(configuration));
            diagnostic = diagnostic.see(span, "asks about it, and fails closed");
        }
    }
    let diagnostic = diagnostic
        .because("an operation applies a wave only when everything of the waves before is healthy; in an empty cluster none of these comes first")
        .help("give what is needed an earlier wave than what needs it, or the same one");
    let first = names.first().copied().unwrap_or_default().to_owned();
    Finding::new(RULE.incident, diagnostic).app(first).likely()
}

/// Whether a link says nothing that a reader would not know: what is healthy was applied, and that in its
/// step.
fn is_plain(link: &Link) -> bool {
    match (link.event, link.on) {
        (Event::Ready(one), Event::Applied(other)) => one == other,
        (Event::Applied(_), Event::Started(..)) => true,
        _ => false,
    }
}

fn event_text(context: &Context<'_>, event: Event) -> String {
    let survey = context.survey;
    match event {
        Event::Applied(id) => format!("{} is applied", survey.object(id).title()),
        Event::Ready(id) => format!("{} is healthy", survey.object(id).title()),
        Event::Started(app, step) => format!("{} comes to {step}", survey.app(app).name()),
        Event::Done(app) => format!("the operation of {} ends", survey.app(app).name()),
    }
}

fn place(context: &Context<'_>, event: Event) -> Span {
    let survey = context.survey;
    match event {
        Event::Applied(id) | Event::Ready(id) => rule_helpers::wave(context, survey.object(id)),
        Event::Started(app, _) | Event::Done(app) => {
            survey.app_span(survey.app(app), &keys(&["metadata", "name"]))
        }
    }
}
