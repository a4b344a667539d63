//! # A Job that self-heal runs for ever
//!
//! A Job with `ttlSecondsAfterFinished` is deleted some time after it has ended. To an Application with
//! self-heal that is an object missing from the cluster: it is made again, and runs again, without end.
//!
//! People see: a migration that runs every few minutes, an Application that flips between Synced and
//! OutOfSync.
//!
//! ## Bad
//! ```yaml
//! kind: Job
//! spec: {ttlSecondsAfterFinished: 300}      # in an Application with selfHeal: true
//! ```
//! ## Good
//! ```yaml
//! metadata: {annotations: {argocd.argoproj.io/hook: Sync, argocd.argoproj.io/hook-delete-policy: BeforeHookCreation}}
//! ```
//! ## When to suppress
//! Where the Job is meant to run again and again.

use tiphys_diag::Severity;
use tiphys_value::ObjectExt;

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B5-endless-job",
    incident: "B5",
    severity: Severity::Warning,
    title: "a Job that deletes itself, in an Application that makes it again",
    page: page!("b5_endless_job.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        let is_job = object.key.group == "batch" && object.key.kind == "Job" && object.hooks.is_empty();
        let Some(seconds) = object.value().int_at(&["spec", "ttlSecondsAfterFinished"]).filter(|_| is_job)
        else {
            continue;
        };
        let Some(app) = context.survey.app_of(object) else { continue };
        let Some(automated) = app.application.automated_policy().filter(|it| it.self_heal == Some(true))
        else {
            continue;
        };
        let is_suspended = object.value()["spec"]["suspend"] == true;
        if is_suspended || automated.enabled == Some(false) || object.key.name.is_empty() {
            continue;
        }
        let place = keys(&["spec", "ttlSecondsAfterFinished"]);
        let diagnostic = RULE
            .diagnostic(format!(
                "{} is deleted {seconds} s after it has ended, and Application {} makes it again: it runs for ever",
                object.title(),
                app.name()
            ))
            .at(context.survey.span(object, &place), "the cluster deletes it")
            .see(
                context.survey.app_span(app, &keys(&["spec", "syncPolicy", "automated", "selfHeal"])),
                "what is missing is made again",
            )
            .because("an object that is gone is a difference, and self-heal takes every difference back")
            .help("make it a hook: `argocd.argoproj.io/hook: Sync`")
            .help("or leave `ttlSecondsAfterFinished` out");
        once.add("", RULE.finding(context, object, diagnostic));
    }
    once.report(report);
}
