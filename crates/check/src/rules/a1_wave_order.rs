//! # A wave needs what a later wave of the same Application brings
//!
//! An operation waits for the health of everything in a wave before it applies the next one. An object of an
//! early wave that needs an object of a later one – a Secret that its pods mount, a service account, a claim
//! that is bound only when a pod uses it, the store of an ExternalSecret, or for a PreSync hook anything that
//! is no hook – never becomes healthy, and the later wave never comes. On a cluster where the later object is
//! there already, nothing is to be seen; the next new cluster does not come up.
//!
//! People see: `waiting for healthy state of apps/Deployment/web`,
//! `waiting for completion of hook batch/Job/migrate`, and at the pods
//! `MountVolume.SetUp failed for volume … secret "db" not found`, `CreateContainerConfigError`, or
//! `error looking up service account shop/migrate: serviceaccount "migrate" not found`.
//!
//! ## Bad
//! ```yaml
//! kind: Job
//! metadata: {name: migrate, annotations: {argocd.argoproj.io/hook: PreSync}}
//! spec: {template: {spec: {serviceAccountName: migrate}}}
//! ---
//! kind: ServiceAccount            # no hook: applied after all PreSync hooks are through
//! metadata: {name: migrate}
//! ```
//! ## Good
//! What is needed is applied first: in an earlier wave, or as a hook of the same phase with a lower wave.
//!
//! ## When to suppress
//! When something outside of the repository brings it before the first sync.

use tiphys_diag::Severity;
use tiphys_graph::waits::{Need, Stall, Unmet};

use crate::{Context, Report, Rule, rule_helpers};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "A1-wave-order",
    incident: "A1",
    severity: Severity::Error,
    title: "a wave needs what a later wave of the same operation brings",
    page: page!("a1_wave_order.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    for unmet in context.analyses().unmet.iter().filter(|unmet| unmet.stall == Some(Stall::Own)) {
        add(context, report, unmet);
    }
}

fn add(context: &Context<'_>, report: &mut Report, unmet: &Unmet) {
    let survey = context.survey;
    let (object, provider) = (survey.object(unmet.object), survey.object(unmet.provider));
    let second = survey.object(unmet.meeting.second);
    let (early, late) = (unmet.meeting.first_step, unmet.meeting.second_step);
    let (early, late) = (rule_helpers::step(early, late), rule_helpers::step(late, early));
    let outcome = if unmet.need.refuses() {
        refusal(unmet.need, &object.title(), &provider.title())
    } else {
        rule_helpers::waiting_for(object)
    };
    let message = format!(
        "{} of {early} needs {}, which comes only in {late}: {outcome}",
        object.title(),
        provider.title()
    );
    let what = match unmet.need {
        Need::Consumer => "a claim of this storage class is bound when a pod uses it",
        _ => "needed here",
    };
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(survey.span(object, &unmet.field), what)
        .see(rule_helpers::wave(context, object), format!("applied in {early}"))
        .see(rule_helpers::wave(context, second), format!("{} is applied in {late}", second.title()));
    if second.id != provider.id {
        diagnostic =
            diagnostic.see(survey.start(provider), format!("{} is rendered by it", provider.title()));
    }
    let mut diagnostic = diagnostic
        .because(format!(
            "{}: nothing of {late} is applied before everything of {early} is there and healthy",
            format_args!("{early} comes before {late}")
        ))
        .help(advice(object.hooks.is_empty(), &second.title(), unmet.meeting.first_step.wave));
    // The manifest of somebody else's chart cannot be mended here, and its author saw it come up.
    if is_foreign(context, object) {
        diagnostic.severity = Severity::Warning;
    }
    let finding = RULE.finding(context, object, diagnostic);
    report.add(if is_foreign(context, object) { finding.likely() } else { finding });
}

fn is_foreign(context: &Context<'_>, object: &tiphys_graph::Object) -> bool {
    !context.survey.files.contains(&object.rendered.location.file)
}

fn refusal(need: Need, object: &str, provider: &str) -> String {
    match need {
        Need::Namespace => format!("`namespaces … not found` for {object}"),
        _ => format!("`The Kubernetes API could not find …` for {object} without {provider}"),
    }
}

fn advice(is_plain: bool, provider: &str, wave: i64) -> String {
    if is_plain {
        format!("give {provider} a wave before {wave}, or the same")
    } else {
        format!("make {provider} a hook of the same phase with a wave before {wave}, or the hook a later one")
    }
}
