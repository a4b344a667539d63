//! Running the rules.

use crate::{Context, Finding, Report, Rule};

/// What a run of the rules found.
pub struct Checked {
    /// The findings, worst first, then by place.
    pub findings: Vec<Finding>,
}

/// Runs rules.
pub fn check(context: &Context<'_>, rules: &[&Rule]) -> Checked {
    let mut report = Report::default();
    for rule in rules {
        (rule.check)(context, &mut report);
    }
    let mut findings = report.findings;
    findings.sort_by(|a, b| {
        let place = |finding: &Finding| finding.diagnostic.primary.as_ref().map(|label| label.span.clone());
        (b.diagnostic.severity.cmp(&a.diagnostic.severity))
            .then_with(|| a.diagnostic.rule.cmp(&b.diagnostic.rule))
            .then_with(|| place(a).cmp(&place(b)))
    });
    findings.dedup();
    Checked { findings }
}
