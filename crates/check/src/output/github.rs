//! Annotations of GitHub Actions (GitHub docs, "Workflow commands", Setting an error message).

use std::fmt::Write as _;

use tiphys_diag::{
    Severity,
    sanitize::{workflow_message, workflow_property},
};

use super::ReportContents;

/// One workflow command a finding.
pub fn github(shown: &ReportContents<'_>) -> String {
    let mut out = String::new();
    let faults = shown.checked.faults.iter();
    for diagnostic in faults.chain(shown.findings().map(|finding| &finding.diagnostic)) {
        let command = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        let mut properties = Vec::new();
        if let Some(label) = &diagnostic.primary {
            let span = &label.span;
            properties.push(format!("file={}", workflow_property(&span.file)));
            properties.push(format!("line={}", span.start.line));
            properties.push(format!("endLine={}", span.end.line));
            properties.push(format!("col={}", span.start.column));
        }
        properties.push(format!("title={}", workflow_property(&diagnostic.rule)));
        let mut message = diagnostic.message.clone();
        for more in std::iter::once(&diagnostic.mechanism).chain(&diagnostic.help).filter(|it| !it.is_empty())
        {
            // Writing to a String cannot fail.
            let _ = write!(message, "\n{more}");
        }
        let _ = writeln!(out, "::{command} {}::{}", properties.join(","), workflow_message(&message));
    }
    out
}
