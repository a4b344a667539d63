//! JUnit's XML, which test reporters of CI systems read: one suite an incident family, one case a finding.

use std::{collections::BTreeMap, fmt::Write as _};

use tiphys_diag::{render::full, sanitize::xml};

use super::{ReportContents, family};
use crate::Finding;

/// The findings as failures; a check without findings is one case that passes.
pub fn junit(shown: &ReportContents<'_>) -> String {
    let mut suites: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in shown.findings() {
        suites.entry(family(finding.incident)).or_default().push(finding);
    }
    let total = shown.findings().count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String cannot fail.
    let _ =
        writeln!(out, "<testsuites name=\"tiphys check\" tests=\"{}\" failures=\"{total}\">", total.max(1));
    if suites.is_empty() {
        out.push_str("  <testsuite name=\"tiphys check\" tests=\"1\" failures=\"0\">\n    <testcase name=\"nothing found\" classname=\"tiphys\"/>\n  </testsuite>\n");
    }
    for (name, findings) in suites {
        let count = findings.len();
        let _ = writeln!(out, "  <testsuite name=\"{name}\" tests=\"{count}\" failures=\"{count}\">");
        findings.iter().for_each(|finding| case(&mut out, finding, shown));
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn case(out: &mut String, finding: &Finding, shown: &ReportContents<'_>) {
    let diagnostic = &finding.diagnostic;
    let (file, line) = match &diagnostic.primary {
        Some(label) => (label.span.file.as_ref(), label.span.start.line),
        None => ("", 0),
    };
    let _ = write!(
        out,
        "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" line=\"{line}\">\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
        xml(&diagnostic.rule),
        xml(&diagnostic.message),
        xml(file),
        diagnostic.severity,
        xml(&diagnostic.message),
        xml(&full(diagnostic, shown.sources, false)),
    );
}
