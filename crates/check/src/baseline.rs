//! A baseline: findings that are known and not to be shown again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Finding;

/// The version of the format. Version 1 holds how often alone.
const VERSION: u32 = 2;

/// Why a baseline cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// It is no baseline.
    #[error("this is no baseline, as --write-baseline writes them")]
    Syntax(#[from] serde_json::Error),
    /// It was written by a newer Tiphys.
    #[error("the baseline has version {0}; this Tiphys reads version {VERSION}")]
    Version(u32),
}

/// Findings that are known, by fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    version: u32,
    findings: BTreeMap<String, Entry>,
}

/// What is known of findings of one fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Entry {
    /// How often there is one, as version 1 has it.
    Count(usize),
    /// The same with what a reader of the file wants to know.
    Described(Described),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    rule: String,
    file: String,
    message: String,
    count: usize,
}

impl Entry {
    fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count,
            Self::Described(entry) => entry.count,
        }
    }
}

impl Baseline {
    /// Takes down findings.
    pub fn from_findings(findings: &[Finding]) -> Self {
        let mut known: BTreeMap<String, Entry> = BTreeMap::new();
        for finding in findings {
            let diagnostic = &finding.diagnostic;
            let file = diagnostic.primary.as_ref().map(|label| label.span.file.to_string());
            let entry = known.entry(finding.fingerprint()).or_insert_with(|| {
                Entry::Described(Described {
                    rule: diagnostic.rule.clone(),
                    file: file.unwrap_or_default(),
                    message: diagnostic.message.clone(),
                    count: 0,
                })
            });
            match entry {
                Entry::Count(count) => *count += 1,
                Entry::Described(entry) => entry.count += 1,
            }
        }
        Self { version: VERSION, findings: known }
    }

    /// Reads the text of a baseline.
    ///
    /// # Errors
    /// It is none, or a newer one.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Versioned { version } = serde_json::from_str(text)?;
        if !(1..=VERSION).contains(&version) {
            return Err(BaselineError::Version(version));
        }
        Ok(serde_json::from_str(text)?)
    }

    /// The text of it.
    pub fn text(&self) -> String {
        format!("{:#}\n", serde_json::json!({"version": VERSION, "findings": self.findings}))
    }

    /// Leaves out the findings that it knows; of several alike as many as it knows.
    pub fn subtract(&self, findings: Vec<Finding>) -> Vec<Finding> {
        let counts = self.findings.iter().map(|(fingerprint, entry)| (fingerprint.as_str(), entry.count()));
        let mut left: BTreeMap<&str, usize> = counts.collect();
        let is_new = |finding: &Finding| match left.get_mut(finding.fingerprint().as_str()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        findings.into_iter().filter(is_new).collect()
    }

    /// The entries that none of these findings is, of rules that ran: each in one line for people.
    pub fn unneeded(&self, findings: &[Finding], has_run: &dyn Fn(&str) -> bool) -> Vec<String> {
        let found: BTreeSet<String> = findings.iter().map(Finding::fingerprint).collect();
        let is_unneeded = |entry: &(&String, &Entry)| !found.contains(entry.0);
        let unneeded = self.findings.iter().filter(is_unneeded);
        let line = |(fingerprint, entry): (&String, &Entry)| match entry {
            Entry::Count(_) => Some(fingerprint.clone()),
            Entry::Described(it) if !has_run(&it.rule) => None,
            Entry::Described(it) => Some(format!("{} {}: {}", it.rule, it.file, it.message)),
        };
        unneeded.filter_map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use tiphys_diag::{Diagnostic, Span};

    use super::*;

    fn finding(line: u32, message: &str) -> Finding {
        Finding::new("B3", Diagnostic::error("B3-two-owners", message).at(Span::point("a.yaml", line, 1), ""))
    }

    #[test]
    fn what_only_moved_is_known() {
        let baseline = Baseline::parse(&Baseline::from_findings(&[finding(3, "one")]).text()).unwrap();
        let left = baseline.subtract(vec![finding(9, "one"), finding(9, "one"), finding(3, "two")]);
        assert_eq!(left.iter().map(|f| f.diagnostic.message.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn what_is_no_baseline_is_refused() {
        assert!(Baseline::parse("[]").is_err());
        assert!(matches!(Baseline::parse(r#"{"version":3,"findings":{}}"#), Err(BaselineError::Version(3))));
    }

    #[test]
    fn the_first_version_is_still_read() {
        let fingerprint = finding(3, "one").fingerprint();
        let text = format!(r#"{{"version":1,"findings":{{"{fingerprint}":1}}}}"#);
        let baseline = Baseline::parse(&text).unwrap();
        assert!(baseline.subtract(vec![finding(9, "one")]).is_empty());
        assert_eq!(baseline.unneeded(&[], &|_| true), [fingerprint]);
    }

    #[test]
    fn an_entry_that_nothing_needs_is_named_if_its_rule_ran() {
        let baseline = Baseline::from_findings(&[finding(3, "one"), finding(4, "two")]);
        let found = [finding(5, "two")];
        assert_eq!(baseline.unneeded(&found, &|_| true), ["B3-two-owners a.yaml: one"]);
        assert!(baseline.unneeded(&found, &|_| false).is_empty());
    }
}
