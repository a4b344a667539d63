//! The form for people.

use std::fmt::Write as _;

use tiphys_diag::{Severity, render::full, sanitize::line};

use super::{ReportContents, applications, summary::shortened};
use crate::{Confidence, Finding, causes::CauseGroup};

/// How many places of one cause are named.
const PLACES: usize = 5;

/// The verdict, then every cause as rustc shows its errors, then what was left out.
pub fn text(shown: &ReportContents<'_>, color: bool) -> String {
    let mut out = String::new();
    let groups = shown.groups();
    for verdict in shown.verdict_lines() {
        let _ = writeln!(out, "{verdict}");
    }
    out.push('\n');
    for fault in &shown.checked.faults {
        let _ = writeln!(out, "{}\n", full(fault, shown.sources, color));
    }
    for group in &groups {
        let _ = writeln!(out, "{}\n", cause_text(group, shown, color));
    }
    if shown.view.is_all && !shown.survey.apps.is_empty() {
        let _ = writeln!(out, "{}", applications(shown));
    }
    write_rest(&mut out, shown);
    if out.ends_with("\n\n") {
        out.pop();
    }
    out
}

/// The verdict, and every cause in one line.
pub fn brief(shown: &ReportContents<'_>) -> String {
    let mut out = String::new();
    let groups = shown.groups();
    let _ = writeln!(out, "{}", shown.headline(&groups));
    for fault in &shown.checked.faults {
        let _ = writeln!(out, "{}", tiphys_diag::render::concise(fault));
    }
    for group in &groups {
        let _ = writeln!(out, "{}", shown.cause_line(group));
    }
    if let Some(what) = shown.unseen_line() {
        let _ = writeln!(out, "not seen: {what}");
    }
    write_counts(&mut out, shown);
    out
}

/// The finding that stands for a cause, then where else it shows and whom it hits.
fn cause_text(group: &CauseGroup, shown: &ReportContents<'_>, color: bool) -> String {
    let findings = &shown.checked.findings;
    let mut out = finding_text(&findings[group.findings[0]], shown, color);
    let indent: String = out.lines().last().unwrap_or_default().chars().take_while(|c| *c == ' ').collect();
    let others = group.also_in(findings);
    if !others.is_empty() {
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        let more = others.len().saturating_sub(PLACES);
        let more = if more == 0 { String::new() } else { format!(", and {more} more") };
        let named = others.iter().take(PLACES).copied().collect::<Vec<_>>().join(", ");
        let _ = write!(out, "\n{indent}= also in: {}{more}", line(&named));
    }
    if group.titles.len() > 1 {
        let titles: Vec<&str> = group.titles.iter().map(String::as_str).collect();
        let hits = format!("{} Applications: {}", titles.len(), shortened(&titles));
        let _ = write!(out, "\n{indent}= hits: {}", line(&hits));
    }
    out
}

impl CauseGroup {
    /// Where else it shows: the Application or object and the place of each finding but the first.
    pub fn also_in(&self, findings: &[Finding]) -> Vec<String> {
        let shown = |at: &usize| {
            let finding = &findings[*at];
            let name = finding.app.as_deref().or(finding.object.as_deref()).unwrap_or_default();
            let place = finding.diagnostic.primary.as_ref();
            let place = place.map(|label| format!("{}:{}", label.span.file, label.span.start.line));
            [name.to_owned(), place.unwrap_or_default()].join(" ").trim().to_owned()
        };
        let mut others: Vec<String> = self.findings.iter().skip(1).map(shown).collect();
        others.dedup();
        others
    }
}

fn finding_text(finding: &Finding, shown: &ReportContents<'_>, color: bool) -> String {
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

/// What was left out, and what the silence about the rest stands on.
fn write_rest(out: &mut String, shown: &ReportContents<'_>) {
    write_counts(out, shown);
    for url in &shown.survey.adopted {
        let url = line(&url.to_string()).into_owned();
        let _ = writeln!(
            out,
            "assuming that {url} is this repository, which has the paths that Applications read from there"
        );
    }
    if let Some(what) = shown.argo_cd_line() {
        let _ = writeln!(out, "{what}");
    }
    if !shown.checked.assumed.is_empty() {
        let names: Vec<&str> = shown.checked.assumed.iter().map(String::as_str).collect();
        let named = if shown.view.is_all { names.join(", ") } else { shortened(&names) };
        let _ = writeln!(out, "taken to be in the cluster: {}", line(&named));
    }
    if shown.view.is_all {
        for notice in shown.survey.notices.iter().map(ToString::to_string).chain(shown.unseen_lines()) {
            let _ = writeln!(out, "not seen: {}", line(&notice));
        }
    }
}

// Writing to a String cannot fail.
fn write_counts(out: &mut String, shown: &ReportContents<'_>) {
    let hidden = shown.hidden_count();
    if hidden > 0 {
        let infos = shown.count(Severity::Info);
        let level = if infos == 0 { "warning" } else { "info" };
        let _ = writeln!(out, "{hidden} below --severity {}; --severity {level} shows them", shown.threshold);
    }
    if let Some(unreached) = shown.unreached_line() {
        let _ = writeln!(out, "{unreached}");
    }
    for (count, why) in
        [(shown.checked.suppressed, "suppressed by comment"), (shown.checked.known, "known from before")]
    {
        if count > 0 {
            let _ = writeln!(out, "{count} {why}");
        }
    }
    for entry in &shown.checked.unneeded {
        let _ = writeln!(out, "no longer needed in the baseline: {}", line(entry));
    }
}
