//! A plan for people: as text, and as Markdown for a pull request or a wiki.

use std::{cmp::Reverse, collections::BTreeMap, fmt::Write as _};

use super::plan::{Entry, Finding, Plan, Verdict};
use crate::counted::counted;

/// What findings of one subject say, and who has them.
struct Group<'p> {
    finding: &'p Finding,
    /// Who uses it, and what of it.
    users: Vec<(String, &'p str)>,
}

impl Verdict {
    fn words(self) -> &'static str {
        match self {
            Self::Same => "the same",
            Self::Differs => "differs",
            Self::NotSupported => "not supported",
        }
    }
}

impl Entry {
    fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl Plan {
    /// The plan as text.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\n", self.summary());
        for (what, entries) in self.kinds() {
            for entry in entries {
                let _ = writeln!(text, "\n{what} {}: {}", entry.full_name(), entry.verdict.words());
                for finding in &entry.findings {
                    let _ = writeln!(
                        text,
                        "  {} ({}): {}",
                        finding.verdict.words(),
                        finding.used,
                        finding.subject
                    );
                    if !finding.todo.is_empty() {
                        let _ = writeln!(text, "    do: {}", finding.todo);
                    }
                }
                for before in &entry.before {
                    let _ = writeln!(text, "  first: {before}");
                }
            }
        }
        text.push_str("\nWhat that means\n");
        for group in self.grouped() {
            push_meaning(&mut text, group.finding);
        }
        for finding in &self.everywhere {
            push_meaning(&mut text, finding);
        }
        if !self.settings.is_empty() {
            text.push_str("\nSettings\n");
        }
        for finding in &self.settings {
            let _ = writeln!(text, "  {} ({}): {}", finding.verdict.words(), finding.used, finding.tiphys);
            if !finding.todo.is_empty() {
                let _ = writeln!(text, "    do: {}", finding.todo);
            }
        }
        text.push_str("\nSteps\n");
        for (number, step) in (1..).zip(&self.steps) {
            let _ = writeln!(text, "  {number}. {}", step.what);
            step.commands.iter().for_each(|command| {
                let _ = writeln!(text, "     {command}");
            });
        }
        for why in &self.not_read {
            let _ = writeln!(text, "\nnot looked at: {why}");
        }
        text
    }

    /// The plan as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("# From Argo CD to Tiphys\n\n{}\n", self.summary());
        for (what, entries) in self.kinds() {
            if entries.is_empty() {
                continue;
            }
            let _ = writeln!(text, "\n## {what}s\n\n| {what} | verdict | because of |\n|---|---|---|");
            for entry in entries {
                let mut why: Vec<String> = entry
                    .findings
                    .iter()
                    .filter(|finding| finding.verdict == entry.verdict)
                    .map(|finding| finding.used.clone())
                    .collect();
                why.dedup();
                why.extend(entry.before.clone());
                let verdict = entry.verdict.words();
                let _ = writeln!(
                    text,
                    "| `{}` | {verdict} | {} |",
                    cell(&entry.full_name()),
                    cell(&why.join("; "))
                );
            }
        }
        text.push_str(
            "\n## What that means\n\n| subject | who | Argo CD | Tiphys | do |\n|---|---|---|---|---|\n",
        );
        for group in self.grouped() {
            let who: Vec<&str> = group.users.iter().map(|(name, _)| name.as_str()).collect();
            push_row(&mut text, group.finding, &who.join(", "));
        }
        self.everywhere
            .iter()
            .for_each(|finding| push_row(&mut text, finding, "every Application that uses it"));
        if !self.settings.is_empty() {
            text.push_str("\n## Settings\n\n| setting | Tiphys | do |\n|---|---|---|\n");
        }
        for finding in &self.settings {
            let cells = [&finding.used, &finding.tiphys, &finding.todo].map(|text| cell(text));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text.push_str("\n## Steps\n");
        for (number, step) in (1..).zip(&self.steps) {
            let _ = writeln!(
                text,
                "\n{number}. {}\n\n   ```sh\n   {}\n   ```",
                step.what,
                step.commands.join("\n   ")
            );
        }
        for why in &self.not_read {
            let _ = writeln!(text, "\nNot looked at: {}", cell(why));
        }
        text
    }

    fn kinds(&self) -> [(&'static str, &[Entry]); 2] {
        [("Application", &self.applications), ("ApplicationSet", &self.application_sets)]
    }

    /// Findings by their subject, the worst first.
    fn grouped(&self) -> Vec<Group<'_>> {
        let mut groups: BTreeMap<(Reverse<Verdict>, &str), Group<'_>> = BTreeMap::new();
        for entry in self.kinds().into_iter().flat_map(|(_, entries)| entries) {
            for finding in &entry.findings {
                let key = (Reverse(finding.verdict), finding.subject.as_str());
                let group = groups.entry(key).or_insert_with(|| Group { finding, users: Vec::new() });
                group.users.push((entry.full_name(), &finding.used));
            }
        }
        groups.into_values().collect()
    }

    fn summary(&self) -> String {
        let counts = self.counts();
        let count = |verdict| counts.get(&verdict).copied().unwrap_or_default();
        format!(
            "{} in the installation of namespace {}: {} the same, {} differ, {} use what is not supported",
            counted(self.applications.len(), "Application"),
            self.namespace,
            count(Verdict::Same),
            count(Verdict::Differs),
            count(Verdict::NotSupported)
        )
    }
}

fn push_meaning(text: &mut String, finding: &Finding) {
    let _ = writeln!(text, "  {}", finding.subject);
    if !finding.argocd.is_empty() {
        let _ = writeln!(text, "    Argo CD: {}", finding.argocd);
    }
    let _ = writeln!(text, "    Tiphys:  {}", finding.tiphys);
}

fn push_row(text: &mut String, finding: &Finding, who: &str) {
    let cells = [&finding.subject, who, &finding.argocd, &finding.tiphys, &finding.todo].map(cell);
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// A text as a table's cell may have it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}
