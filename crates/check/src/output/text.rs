//! The form for people.

use std::fmt::Write as _;

use tiphys_diag::{Severity, render::full, sanitize::line};

use super::{Shown, count_text, family};
use crate::{Confidence, Finding};

/// Every finding as rustc shows its errors, then a summary by incident family and what was not seen.
pub fn text(shown: &Shown<'_>, color: bool) -> String {
    let mut out = String::new();
    for fault in &shown.checked.faults {
        let _ = writeln!(out, "{}\n", full(fault, shown.sources, color));
    }
    for finding in shown.findings() {
        let _ = writeln!(out, "{}\n", finding_text(finding, shown, color));
    }
    summary(&mut out, shown);
    out
}

fn finding_text(finding: &Finding, shown: &Shown<'_>, color: bool) -> String {
    let mut diagnostic = finding.diagnostic.clone();
    if let Some(fix) = &finding.fix {
        let how = match (finding.patch(), finding.patch_confidence()) {
            (None, _) => "",
            (Some(_), Confidence::Certain) => " (tiphys check --fix does it)",
            (Some(_), Confidence::Likely) => " (tiphys check --fix-likely does it)",
        };
        diagnostic.help.push(format!("{}{how}", fix.description));
    }
    if shown.is_unreached(finding) && !diagnostic.mechanism.contains("no Application") {
        let why = std::mem::take(&mut diagnostic.mechanism);
        let between = if why.is_empty() { "" } else { "; " };
        diagnostic.mechanism = format!("{why}{between}no Application reaches this");
    }
    full(&diagnostic, shown.sources, color)
}

// Writing to a String cannot fail.
fn summary(out: &mut String, shown: &Shown<'_>) {
    for (letter, severities) in shown.families() {
        let counts: Vec<String> =
            severities.iter().map(|(severity, count)| count_text(*count, &severity.0.to_string())).collect();
        let _ = writeln!(out, "{letter}  {}: {}", family(&letter.to_string()), counts.join(", "));
    }
    let total = shown.findings().count();
    let verdict = if total == 0 { "nothing found".to_owned() } else { count_text(total, "finding") };
    let _ = writeln!(out, "{verdict} in {}", shown.surveyed_line());
    let hidden = shown.hidden_count();
    if hidden > 0 {
        let infos = shown.count(Severity::Info);
        let level = if infos == 0 { "warning" } else { "info" };
        let _ = writeln!(out, "{hidden} below --severity {}; --severity {level} shows them", shown.threshold);
    }
    for (count, why) in
        [(shown.checked.suppressed, "suppressed by comment"), (shown.checked.known, "known from before")]
    {
        if count > 0 {
            let _ = writeln!(out, "{count} {why}");
        }
    }
    for url in &shown.survey.adopted {
        let url = line(&url.to_string()).into_owned();
        let _ =
            writeln!(out, "{url} is taken to be this repository: the paths that are named there are here");
    }
    for unseen in shown.unseen_lines() {
        let _ = writeln!(out, "not seen: {}", line(&unseen));
    }
}
