//! One finding for one cause: what several Applications render from one line is said once.

use std::collections::HashMap;

use tiphys_diag::Diagnostic;

use crate::{Finding, Report};

/// Gathers findings by place and message.
#[derive(Default)]
pub struct Once {
    findings: Vec<(Finding, usize)>,
    known: HashMap<String, usize>,
}

impl Once {
    /// Adds a finding, or counts it if its place and `what` are known.
    pub fn add(&mut self, what: &str, finding: Finding) {
        let place = finding.diagnostic.primary.as_ref().map(|label| label.span.to_string());
        self.add_by(format!("{}\n{what}", place.unwrap_or_default()), finding);
    }

    /// Adds a finding, or counts it if its cause is known, wherever it shows.
    pub fn add_by(&mut self, key: String, finding: Finding) {
        match self.known.get(&key) {
            Some(at) => self.findings[*at].1 += 1,
            None => {
                self.known.insert(key, self.findings.len());
                self.findings.push((finding, 0));
            }
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Hands the findings on; those that stand for several say so.
    pub fn report(self, report: &mut Report) {
        for (mut finding, more) in self.findings {
            if more > 0 {
                let times = if more == 1 { "once more".to_owned() } else { format!("{more} times more") };
                let Diagnostic { help, .. } = &mut finding.diagnostic;
                help.push(format!("the same has the same effect {times}, in other Applications or objects"));
            }
            report.add(finding);
        }
    }
}
