//! The form for programs. `docs/check-json.md` describes it.

use std::collections::HashMap;

use serde_json::{Value, json as object};
use tiphys_diag::render::json as diagnostic;

use super::{COLUMNS, ReportContents, Row, family};
use crate::{Finding, causes::CauseGroup, patch};

/// The version of the form: it is raised when a field is removed or changes its meaning.
pub const JSON_VERSION: u32 = 1;

/// One JSON object: version, findings, summary, what was not seen.
pub fn json(shown: &ReportContents<'_>) -> Value {
    let survey = shown.survey;
    let groups = shown.all_groups();
    let of_groups = groups.iter().enumerate();
    let cause_of: HashMap<usize, usize> =
        of_groups.flat_map(|(at, group)| group.findings.iter().map(move |finding| (*finding, at))).collect();
    let findings = shown.positions().map(|at| {
        let mut value = finding_json(&shown.checked.findings[at], shown);
        value["cause"] = cause_of.get(&at).copied().into();
        value
    });
    object!({
        "version": JSON_VERSION,
        "tool": {"name": "tiphys", "version": env!("CARGO_PKG_VERSION")},
        "verdict": shown.verdict_lines(),
        "findings": findings.collect::<Vec<_>>(),
        "causes": groups.iter().map(|group| cause_json(group, shown)).collect::<Vec<_>>(),
        "applications": shown.applications().iter().map(application_json).collect::<Vec<_>>(),
        "faults": shown.checked.faults.iter().map(|it| diagnostic(it, shown.sources)).collect::<Vec<_>>(),
        "summary": {
            "findings": shown.findings().count(),
            "belowSeverity": shown.hidden_count(),
            "suppressed": shown.checked.suppressed,
            "known": shown.checked.known,
            "files": survey.files.count(),
            "applications": survey.apps.len(),
            "renderedApplications": survey.apps.iter().filter(|app| app.is_rendered()).count(),
            "applicationSets": survey.sets.len(),
            "unreachable": survey.units.len(),
            "objects": survey.objects.len(),
            "causes": groups.len(),
        },
        "assumed": shown.checked.assumed,
        "unneeded": shown.checked.unneeded,
        "notices": survey.notices.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "unseen": survey.unseen.iter().map(|it| object!({"what": it.what, "why": it.why, "apps": it.apps})).collect::<Vec<_>>(),
    })
}

fn cause_json(group: &CauseGroup, shown: &ReportContents<'_>) -> Value {
    let findings = group.findings.iter().map(|at| shown.checked.findings[*at].fingerprint());
    object!({
        "effect": group.effect,
        "reach": group.reach,
        "severity": group.severity,
        "confidence": group.confidence,
        "findings": findings.collect::<Vec<_>>(),
        "applications": group.titles,
        "environments": group.environments,
    })
}

fn application_json(row: &Row) -> Value {
    let mut value = object!({"application": row.title});
    for (column, step) in COLUMNS.iter().zip(row.steps) {
        value[*column] = step.word().into();
    }
    value
}

fn finding_json(finding: &Finding, shown: &ReportContents<'_>) -> Value {
    let mut value = diagnostic(&finding.diagnostic, shown.sources);
    let description = || finding.diagnostic.help.join("; or ");
    let fix = match &finding.fix {
        Some(fix) if fix.patch.is_empty() => object!({"description": fix.description}),
        Some(fix) => object!({"description": fix.description, "patch": patch::unified(fix, shown.sources)}),
        None if finding.diagnostic.help.is_empty() => Value::Null,
        None => object!({"description": description()}),
    };
    value["incident"] = finding.incident.into();
    value["family"] = family(finding.incident).into();
    value["app"] = finding.app.clone().into();
    value["object"] = finding.object.clone().into();
    value["confidence"] = object!(finding.confidence);
    value["fingerprint"] = finding.fingerprint().into();
    value["fix"] = fix;
    value["unreachable"] = shown.is_unreached(finding).into();
    label_places(&mut value);
    value
}

/// In related places what is to be seen there is called `label`.
fn label_places(value: &mut Value) {
    let places = value.get_mut("related").and_then(Value::as_array_mut).into_iter().flatten();
    for place in places {
        if let Some(text) = place.as_object_mut().and_then(|place| place.remove("text")) {
            place["label"] = text;
        }
    }
}
