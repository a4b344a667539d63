//! One finding for one cause: what several Applications render from one line is said once.

use std::collections::HashMap;

use tiphys_diag::Diagnostic;

use crate::{Finding, Report};

/// The same findings, those that say the same of one place as one: several Applications lead to one line.
/// They are in order.
pub(crate) fn by_place(findings: Vec<Finding>) -> Vec<Finding> {
    let mut left: Vec<(Finding, usize)> = Vec::new();
    for finding in findings {
        match left.last_mut() {
            Some((last, more)) if says_the_same(last, &finding) => *more += 1,
            _ => left.push((finding, 0)),
        }
    }
    left.into_iter().map(with_number).collect()
}

fn says_the_same(one: &Finding, other: &Finding) -> bool {
    let (one, other) = (&one.diagnostic, &other.diagnostic);
    let span = |diagnostic: &Diagnostic| diagnostic.primary.as_ref().map(|label| label.span.clone());
    one.rule == other.rule
        && one.message == other.message
        && one.severity == other.severity
        && one.primary.is_some()
        && span(one) == span(other)
}

/// Says of a finding how many others it stands for.
fn with_number((mut finding, more): (Finding, usize)) -> Finding {
    if more > 0 {
        let others =
            if more == 1 { "one other Application or object" } else { "other Applications or objects" };
        let help = match more {
            1 => format!("the same fault is in {others}"),
            _ => format!("the same fault is in {more} {others}"),
        };
        finding.diagnostic.help.push(help);
    }
    finding
}

/// Gathers findings by place and message.
#[derive(Default)]
pub(crate) struct Once {
    findings: Vec<(Finding, usize)>,
    known: HashMap<String, usize>,
}

impl Once {
    /// Adds a finding, or counts it if its place and `what` are known.
    pub(crate) fn add(&mut self, what: &str, finding: Finding) {
        let place = finding.diagnostic.primary.as_ref().map(|label| label.span.to_string());
        self.add_by(format!("{}\n{what}", place.unwrap_or_default()), finding);
    }

    /// Adds a finding, or counts it if its cause is known, wherever it shows.
    pub(crate) fn add_by(&mut self, key: String, finding: Finding) {
        match self.known.get(&key) {
            Some(at) => self.findings[*at].1 += 1,
            None => {
                self.known.insert(key, self.findings.len());
                self.findings.push((finding, 0));
            }
        }
    }

    /// Whether nothing was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Hands the findings on; those that stand for several say so.
    pub(crate) fn report(self, report: &mut Report) {
        self.findings.into_iter().map(with_number).for_each(|finding| report.add(finding));
    }
}
