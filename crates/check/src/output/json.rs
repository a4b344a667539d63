//! The form for programs. `docs/check-json.md` describes it.

use serde_json::{Value, json as object};
use tiphys_diag::render::json as diagnostic;

use super::{Shown, family};
use crate::{Finding, patch};

/// The version of the form: it is raised when a field is removed or changes its meaning.
pub const JSON_VERSION: u32 = 1;

/// One JSON object: version, findings, summary, what was not seen.
pub fn json(shown: &Shown<'_>) -> Value {
    let survey = shown.survey;
    object!({
        "version": JSON_VERSION,
        "tool": {"name": "tiphys", "version": env!("CARGO_PKG_VERSION")},
        "findings": shown.findings().map(|finding| finding_json(finding, shown)).collect::<Vec<_>>(),
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
        },
        "unseen": survey.unseen.iter().map(|it| object!({"what": it.what, "why": it.why, "apps": it.apps})).collect::<Vec<_>>(),
    })
}

fn finding_json(finding: &Finding, shown: &Shown<'_>) -> Value {
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
