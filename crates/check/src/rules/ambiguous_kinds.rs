//! Commands that name a kind which several installed operators have.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use tiphys_diag::Span;
use tiphys_value::Location;

use super::g1_command_target::RULE;
use crate::{
    Context, Finding, Report,
    support::{dedup::Once, known_kinds, placeholders, unused_files},
};

/// What a command of kubectl asks for, without its group.
static ASKED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"\bkubectl\b[^|;&#]*?\s(?:get|wait|patch|delete|describe|annotate|label|edit)\s+([a-z]+)[\s/]",
    )
    .ok()
});

/// Kinds of Kubernetes itself, which come before those of operators.
const BUILT_IN: [&str; 12] = [
    "Deployment",
    "Event",
    "Ingress",
    "Job",
    "Lease",
    "Namespace",
    "Node",
    "Pod",
    "Role",
    "Secret",
    "Service",
    "Volume",
];

pub(super) fn check(context: &Context<'_>, report: &mut Report) {
    const SCRIPTS: [&str; 6] = [".sh", ".bash", "Makefile", "justfile", "Taskfile.yml", "Taskfile.yaml"];
    let Some(asked) = ASKED.as_ref() else { return };
    let files = &context.survey.files;
    let present: BTreeSet<&str> = context.survey.objects.iter().map(|it| it.key.group.as_str()).collect();
    let mut once = Once::default();
    for path in files.ending(&SCRIPTS) {
        if placeholders::is_skeleton(path) || unused_files::is_in_unused_folder(path) {
            continue;
        }
        let Some(text) = files.text(path).filter(|text| text.contains("kubectl")) else { continue };
        let small = text.to_ascii_lowercase();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with('#'))
        {
            for word in asked.captures_iter(line).filter_map(|found| found.get(1)) {
                let kind = kind_of(word.as_str());
                let groups: BTreeSet<&str> =
                    known_kinds::groups_of(&kind).filter(|group| present.contains(group)).collect();
                // Of several groups of the same priority kubectl takes the first by name.
                let Some(first) = groups.first().filter(|_| groups.len() > 1) else { continue };
                let is_spoken_of = |group: &str| small.contains(&mark_of(group));
                let meant = groups.iter().find(|group| *group != first && is_spoken_of(group));
                let Some(meant) =
                    meant.filter(|_| !is_spoken_of(first) && !BUILT_IN.contains(&kind.as_str()))
                else {
                    continue;
                };
                let column = u32::try_from(word.start()).unwrap_or_default() + 1;
                let span = files.span(&Location::new(path.clone(), number, column));
                // One habit of a repository, in however many scripts.
                once.add_by(format!("{kind} {meant}"), finding(word.as_str(), (&kind, first, meant), span));
            }
        }
    }
    once.report(report);
}

fn finding(word: &str, (kind, first, meant): (&str, &str, &str), span: Span) -> Finding {
    let plural = if word.ends_with('s') { word.to_owned() } else { format!("{word}s") };
    let diagnostic = RULE
        .diagnostic(format!("{word:?} is {kind} of {first} to kubectl, and this script is about {meant}"))
        .at(span, "two operators of this repository have this kind")
        .because(
            "of several groups with a resource of one name kubectl takes the first by name: it finds nothing, or another object",
        )
        .help(format!("write {plural}.{meant}"));
    Finding::new(RULE.incident, diagnostic).likely()
}

/// The kind that a word in small letters stands for: `backups` is `Backup`.
fn kind_of(word: &str) -> String {
    let one = match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word.strip_suffix('s').unwrap_or(word).to_owned(),
    };
    let mut letters = one.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

/// The word of a group by which texts speak of it: `cnpg` of `postgresql.cnpg.io`.
fn mark_of(group: &str) -> String {
    match group.strip_suffix(".k8s.io") {
        Some(own) => own.to_owned(),
        None => group.rsplit('.').nth(1).unwrap_or(group).to_owned(),
    }
}
