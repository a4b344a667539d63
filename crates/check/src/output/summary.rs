//! What was seen, what was not, and how much was found.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::{Outcome, UnitKind};

use super::{Shown, counted};

impl Shown<'_> {
    /// How many findings each incident family has at each severity, worst first.
    pub(super) fn families(&self) -> BTreeMap<char, BTreeMap<std::cmp::Reverse<Severity>, usize>> {
        let mut families: BTreeMap<char, BTreeMap<_, usize>> = BTreeMap::new();
        for finding in &self.checked.findings {
            let family = finding.incident.chars().next().unwrap_or('G');
            let severity = std::cmp::Reverse(finding.diagnostic.severity);
            *families.entry(family).or_default().entry(severity).or_default() += 1;
        }
        families
    }

    /// How many findings there are of a severity.
    pub(super) fn count(&self, severity: Severity) -> usize {
        self.checked.findings.iter().filter(|finding| finding.diagnostic.severity == severity).count()
    }

    /// What was looked at, in one line.
    pub(super) fn seen(&self) -> String {
        let survey = self.survey;
        let rendered = survey.apps.iter().filter(|app| app.is_rendered()).count();
        let mut parts = vec![counted(survey.files.count(), "file")];
        parts.push(match rendered == survey.apps.len() {
            true => counted(rendered, "Application"),
            false => format!("{} ({rendered} rendered)", counted(survey.apps.len(), "Application")),
        });
        if !survey.sets.is_empty() {
            parts.push(counted(survey.sets.len(), "ApplicationSet"));
        }
        if let Some(flux) = &survey.flux {
            let rendered = flux.apps.iter().filter(|app| app.is_rendered()).count();
            let all = flux.apps.len();
            parts.push(format!("{all} Kustomizations and HelmReleases of Flux ({rendered} rendered)"));
        }
        let unreached = survey.units.iter().filter(|unit| unit.kind != UnitKind::Manifest).count();
        if unreached > 0 {
            parts.push(format!("{unreached} charts and kustomizations that no Application reaches"));
        }
        parts.push(counted(survey.objects.len(), "object"));
        parts.join(", ")
    }

    /// What was named but not seen: what, why, and who needs it.
    pub(super) fn unseen(&self) -> Vec<String> {
        let survey = self.survey;
        let mut lines: Vec<String> = survey
            .unseen
            .iter()
            .map(|unseen| {
                let apps: Vec<&str> = unseen.apps.iter().map(String::as_str).collect();
                let of = if apps.is_empty() { String::new() } else { format!(" (for {})", shortened(&apps)) };
                format!("{}{of}: {}", unseen.what, unseen.why)
            })
            .collect();
        for set in survey.sets.iter().filter(|set| set.symbolic) {
            lines.push(format!(
                "the clusters that ApplicationSet {} asks for: one stands for all (--clusters FILE names them)",
                tiphys_value::ObjectExt::name(&set.declared.value)
            ));
        }
        let mut silent: BTreeMap<(bool, &str), Vec<&str>> = BTreeMap::new();
        for app in &survey.apps {
            let Outcome::Unseen(why) = &app.outcome else { continue };
            if !survey.unseen.iter().any(|unseen| unseen.apps.contains(app.name())) {
                silent.entry((app.objects.is_empty(), why)).or_default().push(app.name());
            }
        }
        for ((is_all, why), named) in silent {
            let because = if why.is_empty() { String::new() } else { format!(": {why}") };
            let of = if is_all { "what" } else { "parts of what" };
            lines.push(format!("{of} {} renders to{because}", shortened(&named)));
        }
        lines
    }
}

/// The first names, and how many more.
fn shortened(names: &[&str]) -> String {
    const SHOWN: usize = 4;
    match names.len() {
        0..=SHOWN => names.join(", "),
        count => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
    }
}
