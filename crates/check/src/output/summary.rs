//! What was seen, what was not, and how much was found.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::Severity;
use tiphys_graph::{Outcome, Unit, UnitKind, Unseen};

use tiphys_vfs::is_below;

use super::{ReportContents, count_text};
use crate::Finding;

impl ReportContents<'_> {
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
    pub(super) fn surveyed_line(&self) -> String {
        let survey = self.survey;
        let rendered = survey.apps.iter().filter(|app| app.is_rendered()).count();
        let mut parts = vec![count_text(survey.files.count(), "file")];
        parts.push(match rendered == survey.apps.len() {
            true => count_text(rendered, "Application"),
            false => format!("{} ({rendered} rendered)", count_text(survey.apps.len(), "Application")),
        });
        if !survey.sets.is_empty() {
            parts.push(count_text(survey.sets.len(), "ApplicationSet"));
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
        parts.push(count_text(survey.objects.len(), "object"));
        parts.join(", ")
    }

    /// Whether a finding lies in a chart or kustomization that no Application reaches.
    pub(super) fn is_unreached(&self, finding: &Finding) -> bool {
        let Some(label) = finding.diagnostic.primary.as_ref().filter(|_| finding.app.is_none()) else {
            return false;
        };
        let file = &label.span.file;
        let holds = |unit: &&Unit| {
            unit.kind != UnitKind::Manifest && (unit.path.is_empty() || is_below(file, &unit.path))
        };
        let clusters = std::iter::once(self.survey).chain(self.survey.flux.as_deref());
        self.survey.units.iter().any(|unit| holds(&unit))
            && !clusters.flat_map(|survey| &survey.apps).any(|app| app.read.contains(file))
    }

    /// What was named but not seen: what, why, and who needs it.
    pub(super) fn unseen_lines(&self) -> Vec<String> {
        let survey = self.survey;
        let mut reasons: BTreeMap<String, Vec<&Unseen>> = BTreeMap::new();
        for unseen in &survey.unseen {
            reasons.entry(without_addresses(&unseen.why)).or_default().push(unseen);
        }
        let mut lines: Vec<String> = reasons.iter().map(|(why, all)| of_one_reason(why, all)).collect();
        for set in survey.sets.iter().filter(|set| set.symbolic) {
            lines.push(format!(
                "what the generators of ApplicationSet {} ask for: a placeholder stands for it (--clusters FILE names clusters)",
                tiphys_value::ObjectExt::name(&set.declared.value)
            ));
        }
        let mut silent: BTreeMap<(bool, &str), Vec<String>> = BTreeMap::new();
        for app in &survey.apps {
            let Outcome::Unseen(why) = &app.outcome else { continue };
            if !survey.unseen.iter().any(|unseen| unseen.apps.contains(app.name())) {
                silent.entry((app.objects.is_empty(), why)).or_default().push(app.name().to_owned());
            }
        }
        for unit in &survey.units {
            let Outcome::Unseen(why) = &unit.outcome else { continue };
            if !survey.unseen.iter().any(|unseen| unseen.why == *why) {
                silent.entry((unit.objects.is_empty(), why)).or_default().push(unit_title(unit));
            }
        }
        for ((is_all, why), named) in &silent {
            let named: Vec<&str> = named.iter().map(String::as_str).collect();
            let because = if why.is_empty() { String::new() } else { format!(": {}", innermost(why)) };
            let of = if *is_all { "what" } else { "parts of what" };
            lines.push(format!("{of} {} renders to{because}", shortened(&named)));
        }
        lines
    }
}

/// What could not be had for one reason, in one line with a count.
fn of_one_reason(why: &str, all: &[&Unseen]) -> String {
    let apps: BTreeSet<&str> = all.iter().flat_map(|unseen| &unseen.apps).map(String::as_str).collect();
    let apps: Vec<&str> = apps.into_iter().collect();
    let of = if apps.is_empty() { String::new() } else { format!(" (for {})", shortened(&apps)) };
    match all {
        [one] => format!("{}{of}: {}", one.what, one.why),
        all => {
            let what: Vec<&str> = all.iter().map(|unseen| unseen.what.as_str()).collect();
            format!("{} sources: {}{of}: {why}", all.len(), shortened(&what))
        }
    }
}

/// A reason without the addresses in it, so that the same reason is the same text.
fn without_addresses(why: &str) -> String {
    let is_address = |word: &&str| word.contains("://") || word.contains('@');
    let shown = |word: &str| match is_address(&word) {
        // What stands behind an address belongs to the sentence.
        true => format!("…{}", &word[word.trim_end_matches([':', ',', ';', '.']).len()..]),
        false => word.to_owned(),
    };
    why.split(' ').map(shown).collect::<Vec<_>>().join(" ")
}

/// What Kustomize could not have of all that led to it: its texts repeat every kustomization on the way. The
/// file of the innermost comes first of all.
fn innermost(why: &str) -> String {
    const STEP: &str = "accumulating resources from '";
    const WAY: &str = "recursed accumulation of path '";
    let last = match why.rsplit_once(WAY) {
        Some((_, below)) => below.split_once("': ").map_or(below, |(_, rest)| rest),
        None => why,
    };
    let reason = last.rsplit_once(STEP).and_then(|(_, tried)| tried.split("': ").nth(1));
    match (why.split_once(": "), reason.unwrap_or(last)) {
        (Some((place, _)), reason) if reason.len() < why.len() => format!("{place}: {reason}"),
        _ => why.to_owned(),
    }
}

fn unit_title(unit: &Unit) -> String {
    let place = tiphys_vfs::shown_path(&unit.path);
    match unit.kind {
        UnitKind::Chart => format!("the chart {place}"),
        UnitKind::Kustomization => format!("the kustomization {place}"),
        UnitKind::Manifest => place.to_owned(),
    }
}

/// The first names, and how many more.
pub(super) fn shortened(names: &[&str]) -> String {
    const SHOWN: usize = 4;
    match names.len() {
        0..=SHOWN => names.join(", "),
        count => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::innermost;

    #[test]
    fn of_nested_kustomizations_the_last_is_told() {
        let nested = "base/kustomization.yaml:2:3: accumulating resources: accumulation err='accumulating resources from '../base': 'base' must resolve to a file': recursed accumulation of path 'base': accumulating resources: accumulation err='accumulating resources from 'https://h/i.yaml': cannot fetch https://h/i.yaml: offline': cannot fetch https://h: offline";
        assert_eq!(innermost(nested), "base/kustomization.yaml:2:3: cannot fetch https://h/i.yaml: offline");
        let chart = "base/kustomization.yaml:9:5: accumulating resources: accumulation err='accumulating resources from '../base': read base: is a directory': recursed accumulation of path 'base': helmCharts: cannot pull chart 'c' of https://h: offline";
        assert_eq!(
            innermost(chart),
            "base/kustomization.yaml:9:5: helmCharts: cannot pull chart 'c' of https://h: offline"
        );
        assert_eq!(innermost("no such thing"), "no such thing");
    }
}
