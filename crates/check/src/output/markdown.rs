//! The form for a comment on a pull request.

use std::fmt::Write as _;

use tiphys_diag::{
    Diagnostic,
    sanitize::{code, html, markdown as markdown_text, markdown_fence},
};

use super::{ReportContents, count_text, family};
use crate::{Finding, patch};

/// A heading, a table by incident family, and every finding folded.
pub fn markdown(shown: &ReportContents<'_>) -> String {
    let mut out = String::new();
    let total = shown.findings().count();
    let verdict = if total == 0 { "nothing found".to_owned() } else { count_text(total, "finding") };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "## tiphys check: {verdict}\n\nLooked at {}.", shown.surveyed_line());
    if total > 0 {
        let _ = writeln!(out, "\n| | family | found |\n|---|---|---|");
        for (letter, severities) in shown.families() {
            let counts: Vec<String> =
                severities.iter().map(|(it, count)| count_text(*count, &it.0.to_string())).collect();
            let _ = writeln!(out, "| {letter} | {} | {} |", family(&letter.to_string()), counts.join(", "));
        }
    }
    let verdict = shown.verdict_lines();
    if verdict.len() > 1 {
        out.push('\n');
    }
    for line in verdict.iter().skip(1) {
        let _ = writeln!(out, "- {}", markdown_text(line));
    }
    for fault in &shown.checked.faults {
        write_entry(&mut out, fault, None, &[], shown);
    }
    for group in shown.groups() {
        let finding = &shown.checked.findings[group.findings[0]];
        let also = group.also_in(&shown.checked.findings);
        write_entry(&mut out, &finding.diagnostic, Some(finding), &also, shown);
    }
    if let Some(unreached) = shown.unreached_line() {
        let _ = writeln!(out, "\n{}", markdown_text(&unreached));
    }
    let unseen = shown.unseen_lines();
    if !unseen.is_empty() {
        let _ = writeln!(out, "\n**Not seen**\n");
        for line in unseen {
            let _ = writeln!(out, "- {}", markdown_text(&line));
        }
    }
    out
}

fn write_entry(
    out: &mut String,
    diagnostic: &Diagnostic,
    finding: Option<&Finding>,
    also: &[String],
    shown: &ReportContents<'_>,
) {
    let place =
        diagnostic.primary.as_ref().map(|label| format!(" – <code>{}</code>", html(&label.span.to_string())));
    let place = place.unwrap_or_default();
    let _ = writeln!(
        out,
        "\n<details><summary><b>{}</b> <code>{}</code> {}{place}</summary>\n",
        diagnostic.severity,
        html(&diagnostic.rule),
        html(&diagnostic.message)
    );
    let primary = diagnostic.primary.iter().chain(&diagnostic.related);
    for label in primary {
        let line = shown.sources.line(&label.span).unwrap_or_default().trim_end();
        let _ = writeln!(
            out,
            "{} {}\n{}",
            code(&label.span.to_string()),
            markdown_text(&label.text),
            markdown_fence("yaml", line)
        );
    }
    if !diagnostic.mechanism.is_empty() {
        let _ = writeln!(out, "**Why:** {}\n", markdown_text(&diagnostic.mechanism));
    }
    if finding.is_some_and(|finding| shown.is_unreached(finding)) {
        let _ = writeln!(out, "No Application reaches this.\n");
    }
    if !also.is_empty() {
        let _ = writeln!(out, "**Also in:** {}\n", markdown_text(&also.join(", ")));
    }
    for help in &diagnostic.help {
        let _ = writeln!(out, "**What to do:** {}\n", markdown_text(help));
    }
    if let Some(fix) = finding.and_then(|finding| finding.fix.as_ref()) {
        let _ = writeln!(out, "**Fix:** {}\n", markdown_text(&fix.description));
        let diff = patch::unified(fix, shown.sources);
        if !diff.is_empty() {
            let _ = writeln!(out, "{}", markdown_fence("diff", diff.trim_end()));
        }
    }
    let _ = writeln!(out, "</details>");
}
