//! # A custom resource comes before the definition of its kind
//!
//! An Application has custom resources whose definition another Application brings in a later wave. The API
//! server does not know the kind yet and refuses them; the sync fails and is repeated, by default five times
//! in about five minutes, and not at all where a person started it. If the definition is not there by then,
//! the Application stays OutOfSync.
//!
//! People see: `The Kubernetes API could not find cert-manager.io/Certificate for requested resource
//! shop/web. Make sure the "Certificate" CRD is installed on the destination cluster.`, or
//! `no matches for kind "Certificate" in version "cert-manager.io/v1"`.
//!
//! A definition and its resources in one Application are fine: Argo CD applies definitions first. Kinds
//! whose definition is nowhere in the repository are not reported.
//!
//! ## Bad
//! ```yaml
//! # wave 0: Application shop with a Certificate
//! # wave 5: Application cert-manager with the definitions
//! ```
//! ## Good
//! The Application with the definitions has the earlier wave.
//!
//! ## When to suppress
//! When the definitions come from outside of the repository too.

use tiphys_diag::Severity;
use tiphys_graph::waits::{Need, Unmet, retries};
use tiphys_model::SyncOptions;

use crate::{Context, Report, Rule, rule_helpers};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C5-cr-before-crd",
    incident: "C5",
    severity: Severity::Warning,
    title: "custom resources are synced before or beside the definition of their kind",
    page: page!("c5_cr_before_crd.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let unmet = context.analyses().unmet.iter();
    for unmet in unmet.filter(|unmet| unmet.need == Need::Definition && unmet.stall.is_none()) {
        add(context, report, unmet);
    }
}

fn add(context: &Context<'_>, report: &mut Report, unmet: &Unmet) {
    let survey = context.survey;
    let (object, provider) = (survey.object(unmet.object), survey.object(unmet.provider));
    let (Some(app), Some(bringing)) = (survey.app_of(object), survey.app_of(provider)) else { return };
    let skips = SyncOptions::of_object(object.value()).is_on("SkipDryRunOnMissingResource")
        || app.application.sync_options().is_on("SkipDryRunOnMissingResource");
    let retries = retries(app);
    // Whoever says so knows that the definition comes with the same wave.
    if unmet.same_step && (skips || retries != 0) {
        return;
    }
    let (early, late) = (unmet.meeting.first_step, unmet.meeting.second_step);
    let (early, late) = (rule_helpers::step(early, late), rule_helpers::step(late, early));
    let order = if unmet.same_step {
        format!("in the same {early} as")
    } else {
        format!("in {early}, before {late} with")
    };
    let message = format!(
        "{} of Application {} is synced {order} Application {}, which brings the definition of {}",
        object.title(),
        app.name(),
        bringing.name(),
        object.key.group_kind()
    );
    let first = survey.object(unmet.meeting.first);
    let second = survey.object(unmet.meeting.second);
    let mut diagnostic = RULE.diagnostic(message).at(survey.start(object), more(unmet.others));
    if first.id != object.id {
        diagnostic = diagnostic
            .see(rule_helpers::wave(context, first), format!("{} is applied in {early}", first.title()));
    }
    let attempts = match retries {
        0 => "and is not repeated".to_owned(),
        below if below < 0 => "and is repeated without end".to_owned(),
        times => format!("and is repeated {times} times"),
    };
    let diagnostic = diagnostic
        .see(rule_helpers::wave(context, second), format!("{} is applied in {late}", second.title()))
        .because(format!(
            "the API server refuses a kind that it does not know: the sync of {} fails {attempts}",
            app.name()
        ))
        .help(format!("give {} a wave before {}", second.title(), unmet.meeting.first_step.wave));
    report.add(RULE.finding(context, object, diagnostic));
}

fn more(others: usize) -> String {
    match others {
        0 => "this kind is not known yet".to_owned(),
        more => format!("this kind is not known yet; nor is that of {more} more objects"),
    }
}
