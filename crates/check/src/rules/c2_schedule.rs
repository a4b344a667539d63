//! # A schedule that is no cron expression
//!
//! Operators take schedules as texts, so that the API server stores any. A field too few, a number that the
//! field does not have or a stray quote is noticed only when the controller reads it: nothing ever runs.
//!
//! People see: nothing, and no backup; `failed to parse schedule`, `expected exactly 5 fields, found 6`.
//!
//! ## Bad
//! ```yaml
//! kind: ReplicationSource
//! spec: {trigger: {schedule: 0 * * * *"}}
//! ```
//! ## Good
//! ```yaml
//! kind: ReplicationSource
//! spec: {trigger: {schedule: "0 * * * *"}}
//! ```
//! ## When to suppress
//! Where something rewrites the schedule before it is applied.

use tiphys_diag::Severity;
use tiphys_gocompat::cron::Schedule;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders, pods::list, unrendered_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-schedule",
    incident: "C2",
    severity: Severity::Warning,
    title: "a schedule that is no cron expression",
    page: page!("c2_schedule.rs"),
    check,
};

/// Kinds with a schedule: group, kind, the keys to it.
const KINDS: [(&str, &str, &[&str]); 6] = [
    ("argoproj.io", "CronWorkflow", &["spec", "schedule"]),
    ("longhorn.io", "RecurringJob", &["spec", "cron"]),
    ("postgresql.cnpg.io", "ScheduledBackup", &["spec", "schedule"]),
    ("velero.io", "Schedule", &["spec", "schedule"]),
    ("volsync.backube", "ReplicationDestination", &["spec", "trigger", "schedule"]),
    ("volsync.backube", "ReplicationSource", &["spec", "trigger", "schedule"]),
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        if unrendered_files::is_from_unused_chart(context.survey, object) {
            continue;
        }
        for (text, path, fault) in unreadable(object) {
            let diagnostic = RULE
                .diagnostic(format!("{} has the schedule {text:?}: {fault}", object.title()))
                .at(context.survey.span(object, &path), "this is no cron expression")
                .because("the API server takes any text; the controller cannot read it, and runs nothing")
                .help("five fields: minute, hour, day of the month, month, day of the week");
            once.add(text, RULE.finding(context, object, diagnostic).likely());
        }
    }
    once.report(report);
}

/// The schedules of an object that cannot be read, each with its place and why.
pub(super) fn unreadable(object: &Object) -> impl Iterator<Item = (&str, FieldPath, String)> {
    let schedules = schedules(object).into_iter();
    schedules.filter_map(|(text, path)| Some((text, path, fault(object, text)?)))
}

fn schedules(object: &Object) -> Vec<(&str, FieldPath)> {
    let key = &object.key;
    let Some((.., steps)) = KINDS.iter().find(|(group, kind, _)| *group == key.group && *kind == key.kind)
    else {
        return Vec::new();
    };
    let value = object.value();
    let mut found: Vec<(&str, FieldPath)> =
        value.str_at(steps).map(|text| (text, keys(steps))).into_iter().collect();
    let several = list(&value["spec"], "schedules").iter().enumerate();
    found.extend(several.filter_map(|(at, it)| Some((it.as_str()?, keys(&["spec", "schedules"]).index(at)))));
    found.retain(|(text, _)| !text.is_empty() && !text.contains('$') && !placeholders::is_in(text));
    found
}

/// What is wrong with a schedule.
fn fault(object: &Object, text: &str) -> Option<String> {
    // CloudNativePG counts seconds, in a field before the others.
    let read = match text.split_once(' ') {
        Some((_, rest))
            if object.key.group == "postgresql.cnpg.io" && text.split_whitespace().count() == 6 =>
        {
            rest
        }
        _ => text,
    };
    Schedule::parse(read.trim()).err().map(|error| error.to_string())
}
