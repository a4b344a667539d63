//! How what was found is shown. One file per form.

mod applications;
mod github;
mod html;
mod json;
mod junit;
mod markdown;
mod sarif;
mod summary;
mod text;
mod verdict;

use std::collections::BTreeSet;

use tiphys_diag::{Severity, SourceMap};
use tiphys_graph::{App, Survey};

use crate::{
    Checked, Confidence, Finding,
    causes::CauseGroup,
    impact::{Reach, is_run_by_applications},
};

pub use applications::{COLUMNS, Row, Step, applications};
pub use github::github;
pub use html::html;
pub use json::{JSON_VERSION, json};
pub use junit::junit;
pub use markdown::markdown;
pub use sarif::sarif;
pub use text::{brief, text};
pub use tiphys_render::mask_secrets;

/// What is shown.
pub struct ReportContents<'a> {
    /// What was found.
    pub checked: &'a Checked,
    /// The repository.
    pub survey: &'a Survey,
    /// The texts of its files.
    pub sources: &'a SourceMap,
    /// The least severity that is shown.
    pub threshold: Severity,
    /// What of it is asked for.
    pub view: View,
}

/// What is asked for of what was found.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Only what hits the Application of this name.
    pub app: Option<String>,
    /// Also what no Application reaches, and everything that was not seen, one by one.
    pub is_all: bool,
    /// Only Argo CD's behaviour counts: nothing is said of where Tiphys does otherwise.
    pub is_argo_cd: bool,
}

impl ReportContents<'_> {
    /// The findings at or above the threshold, of the Application that is asked for.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.positions().map(|at| &self.checked.findings[at])
    }

    /// Their positions.
    fn positions(&self) -> impl Iterator<Item = usize> {
        let findings = &self.checked.findings;
        let of_app: Option<BTreeSet<usize>> = self
            .view
            .app
            .as_ref()
            .map(|_| self.all_groups().into_iter().flat_map(|group| &group.findings).copied().collect());
        (0..findings.len()).filter(move |at| {
            findings[*at].diagnostic.severity >= self.threshold
                && of_app.as_ref().is_none_or(|all| all.contains(at))
        })
    }

    /// How many findings lie below the threshold.
    pub fn hidden_count(&self) -> usize {
        let is_below = |finding: &&Finding| finding.diagnostic.severity < self.threshold;
        self.checked.findings.iter().filter(is_below).count()
    }

    /// The causes at or above the threshold, of the Application that is asked for.
    pub fn all_groups(&self) -> Vec<&CauseGroup> {
        let is_shown = |group: &&CauseGroup| group.severity >= self.threshold && self.hits_wanted(group);
        self.checked.causes.iter().filter(is_shown).collect()
    }

    /// The same without those that no Application reaches, unless they are asked for.
    pub fn groups(&self) -> Vec<&CauseGroup> {
        let mut groups = self.all_groups();
        groups.retain(|group| !self.is_left_out(group));
        groups
    }

    /// Whether a cause is only counted: no Application reaches it, in a repository of Applications.
    fn is_left_out(&self, group: &CauseGroup) -> bool {
        group.reach == Reach::Nothing && !self.view.is_all && is_run_by_applications(self.survey)
    }

    fn hits_wanted(&self, group: &CauseGroup) -> bool {
        let Some(wanted) = &self.view.app else { return true };
        let is_named = |finding: &usize| self.checked.findings[*finding].app.as_ref() == Some(wanted);
        group.apps.iter().any(|id| self.survey.app(*id).name() == wanted)
            || group.findings.iter().any(is_named)
    }

    fn is_wanted(&self, app: &App) -> bool {
        self.view.app.as_deref().is_none_or(|wanted| app.name() == wanted)
    }
}

/// Whether something breaks for sure.
fn is_certain_error(severity: Severity, confidence: Confidence) -> bool {
    severity == Severity::Error && confidence == Confidence::Certain
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
