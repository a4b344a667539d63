//! How what was found is shown. One file per form.

mod github;
mod json;
mod junit;
mod markdown;
mod sarif;
mod summary;
mod text;

use tiphys_diag::{Severity, SourceMap};
use tiphys_graph::Survey;

use crate::{Checked, Finding};

pub use github::github;
pub use json::{JSON_VERSION, json};
pub use junit::junit;
pub use markdown::markdown;
pub use sarif::sarif;
pub use text::text;
pub use tiphys_render::mask_secrets;

/// What is shown.
pub struct Shown<'a> {
    /// What was found.
    pub checked: &'a Checked,
    /// The repository.
    pub survey: &'a Survey,
    /// The texts of its files.
    pub sources: &'a SourceMap,
    /// The least severity that is shown.
    pub threshold: Severity,
}

impl Shown<'_> {
    /// The findings at or above the threshold.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.checked.findings.iter().filter(|finding| finding.diagnostic.severity >= self.threshold)
    }

    /// How many findings lie below the threshold.
    pub fn hidden_count(&self) -> usize {
        self.checked.findings.len() - self.findings().count()
    }
}

/// What a family of incidents is about.
pub fn family(incident: &str) -> &'static str {
    match incident.as_bytes().first() {
        Some(b'A') => "operations that never end",
        Some(b'B') => "two owners for one object",
        Some(b'C') => "the API server refuses",
        Some(b'D') => "the manifests cannot be produced",
        Some(b'E') => "pods cannot run",
        Some(b'F') => "the network says no",
        _ => "around the cluster",
    }
}

/// `3 errors`, `1 error`.
pub(crate) fn count_text(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
