//! A table of the Applications: whether each renders, applies, starts and is reached.

use std::{collections::BTreeMap, fmt::Write as _};

use tiphys_diag::{Severity, sanitize::line};
use tiphys_graph::{AppId, Outcome};

use super::{ReportContents, is_certain_error};
use crate::impact::{Effect, Impacts};

/// What is known of one step of an Application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Nothing is found against it.
    Yes,
    /// It depends on what was not seen, or on what failed before.
    Unknown,
    /// Something may keep it from it.
    Perhaps,
    /// It does not.
    No,
}

impl Step {
    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Unknown => "?",
            Self::Perhaps => "perhaps",
            Self::No => "no",
        }
    }
}

/// One Application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name with its environment, where there are several.
    pub title: String,
    /// Whether it renders, applies, starts and is reached, in this order.
    pub steps: [Step; 4],
}

/// What the columns are called.
pub const COLUMNS: [&str; 4] = ["renders", "applies", "starts", "reached"];

impl ReportContents<'_> {
    /// All Applications, those that break first.
    pub fn applications(&self) -> Vec<Row> {
        let impacts = Impacts::new(self.survey);
        let mut found: BTreeMap<AppId, [Step; 4]> = BTreeMap::new();
        for finding in self.checked.findings.iter().filter(|it| it.diagnostic.severity > Severity::Info) {
            let impact = impacts.of_finding(finding);
            let Some(column) = column(impact.effect) else { continue };
            for app in impact.apps {
                let steps = found.entry(app).or_insert([Step::Yes; 4]);
                steps[column] =
                    steps[column].max(if is_certain_error(finding.diagnostic.severity, finding.confidence) {
                        Step::No
                    } else {
                        Step::Perhaps
                    });
            }
        }
        let mut rows: Vec<Row> = self
            .survey
            .apps
            .iter()
            .filter(|app| self.is_wanted(app))
            .map(|app| {
                let mut steps = found.get(&app.id).copied().unwrap_or([Step::Yes; 4]);
                match app.outcome {
                    Outcome::Rendered => {}
                    Outcome::Failed(_) => steps[0] = Step::No,
                    Outcome::Unseen(_) | Outcome::Duplicate(_) => steps[0] = steps[0].max(Step::Unknown),
                }
                // What did not come out cannot be judged.
                for at in 1..steps.len() {
                    if matches!(steps[at - 1], Step::No | Step::Unknown) && steps[at] == Step::Yes {
                        steps[at] = Step::Unknown;
                    }
                }
                Row { title: impacts.title(app), steps }
            })
            .collect();
        rows.sort_by(|a, b| b.steps.cmp(&a.steps).then_with(|| a.title.cmp(&b.title)));
        rows
    }
}

/// The step that an effect concerns.
fn column(effect: Effect) -> Option<usize> {
    match effect {
        Effect::CannotRender => Some(0),
        Effect::CannotApply | Effect::NeverEnds => Some(1),
        Effect::CannotStart | Effect::Removes => Some(2),
        Effect::Unreachable => Some(3),
        Effect::Fights | Effect::Tools | Effect::NotAsMeant => None,
    }
}

/// The table as text.
pub fn applications(shown: &ReportContents<'_>) -> String {
    let rows = shown.applications();
    let width =
        rows.iter().map(|row| row.title.chars().count()).max().unwrap_or_default().max("APPLICATION".len());
    let mut out = String::new();
    let mut write_row = |title: &str, cells: [&str; 4]| {
        let cells = cells.map(|cell| format!("{cell:<8}"));
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}", format!("{title:<width$}  {}", cells.join(" ")).trim_end());
    };
    write_row("APPLICATION", COLUMNS.map(str::to_uppercase).each_ref().map(String::as_str));
    for row in &rows {
        write_row(&line(&row.title), row.steps.map(Step::word));
    }
    out
}
