//! A baseline: findings that are known and not to be shown again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Finding;

/// The version of the format.
const VERSION: u32 = 1;

/// Why a baseline cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// It is no baseline.
    #[error("this is no baseline: {0}")]
    Syntax(#[from] serde_json::Error),
    /// It was written by a newer Tiphys.
    #[error("the baseline has version {0}; this Tiphys reads version {VERSION}")]
    Version(u32),
}

/// Findings that are known, by fingerprint, each with how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    version: u32,
    findings: BTreeMap<String, usize>,
}

impl Baseline {
    /// Takes down findings.
    pub fn from_findings(findings: &[Finding]) -> Self {
        let mut known = BTreeMap::new();
        for finding in findings {
            *known.entry(finding.fingerprint()).or_default() += 1;
        }
        Self { version: VERSION, findings: known }
    }

    /// Reads the text of a baseline.
    ///
    /// # Errors
    /// It is none, or a newer one.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let baseline: Self = serde_json::from_str(text)?;
        if baseline.version != VERSION {
            return Err(BaselineError::Version(baseline.version));
        }
        Ok(baseline)
    }

    /// The text of it.
    pub fn text(&self) -> String {
        format!("{:#}\n", serde_json::json!({"version": self.version, "findings": self.findings}))
    }

    /// Leaves out the findings that it knows; of several alike as many as it knows.
    pub fn subtract(&self, findings: Vec<Finding>) -> Vec<Finding> {
        let mut left = self.findings.clone();
        let is_new = |finding: &Finding| match left.get_mut(&finding.fingerprint()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        findings.into_iter().filter(is_new).collect()
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
        assert!(matches!(Baseline::parse(r#"{"version":2,"findings":{}}"#), Err(BaselineError::Version(2))));
    }
}
