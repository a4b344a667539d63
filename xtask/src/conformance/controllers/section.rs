//! The section of `docs/conformance.md`, and the list of all differences.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use anyhow::Context;

use super::compare::{Comparison, Count, Difference, Score};

/// What became of one sequence.
pub(super) struct Outcome {
    /// The file that it stands in.
    pub family: String,
    /// Its name.
    pub name: String,
    /// The comparison.
    pub comparison: Comparison,
}

/// Why some differences are there.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Explanation {
    kind: String,
    /// Which part of the comparison; any if empty.
    #[serde(default)]
    part: String,
    /// What the path starts with; any if empty.
    #[serde(default)]
    path: String,
    /// What the name of the sequence starts with; any if empty.
    #[serde(default)]
    sequence: String,
    why: String,
}

impl Explanation {
    fn is_about(&self, difference: &Difference, sequence: &str) -> bool {
        self.kind == difference.kind
            && (self.part.is_empty() || self.part == difference.part)
            && difference.path.starts_with(&self.path)
            && sequence.starts_with(&self.sequence)
    }
}

/// Reads explanations.
///
/// # Errors
/// The text is of another form.
pub(super) fn explanations(text: &str) -> anyhow::Result<Vec<Explanation>> {
    let value = tiphys_yaml::from_yaml(text).context("differences.yaml")?;
    serde_json::from_value(value).context("differences.yaml")
}

/// The section.
pub(super) fn section(outcomes: &[Outcome], explanations: &[Explanation]) -> String {
    let (mut total, mut kinds, mut families) = (Score::default(), BTreeMap::new(), BTreeMap::new());
    for outcome in outcomes {
        let family: &mut (usize, Score) = families.entry(outcome.family.as_str()).or_default();
        family.0 += 1;
        for (kind, score) in &outcome.comparison.scores {
            total.take(score);
            family.1.take(score);
            let of_kind: &mut Score = kinds.entry(kind.as_str()).or_default();
            of_kind.take(score);
        }
    }
    let mut text = String::from(
        "## The same steps on a real control plane\n\nMade by `cargo xtask conformance controllers --publish`: kube-controller-manager and kube-scheduler 1.36.1 beside kube-apiserver, with KWOK 0.8.0 in the place of the kubelets. What a kubelet itself does is not compared: containers, their statuses, the conditions of a pod but PodScheduled and DisruptionTarget, and its Events.\n\nThe real one waits in real time until a namespace is still for four seconds, the embedded one in virtual time. Left out, wherever they stand: uids, times, resource versions, addresses, the node that was chosen, generated parts of names. Events of one object are compared by type and reason, in order; the same one told again counts once.\n\n",
    );
    let _ = writeln!(
        text,
        "{} sequences: fields of statuses equal {}; messages of conditions {}; other fields {}; Events {}; their messages {}; answers {}.\n",
        outcomes.len(),
        percent(total.status),
        percent(total.messages),
        percent(total.other),
        percent(total.events),
        percent(total.event_messages),
        percent(total.answers),
    );
    text.push_str("| sequences | number | fields of statuses | equal | other fields | equal | Events | equal |\n|---|--:|--:|--:|--:|--:|--:|--:|\n");
    for (family, (number, score)) in &families {
        let _ = writeln!(text, "| {family} | {number} | {} |", cells(score));
    }
    let _ = writeln!(text, "| all | {} | {} |", outcomes.len(), cells(&total));
    text.push_str("\n| kind | objects | fields of statuses | equal | other fields | equal | Events | equal |\n|---|--:|--:|--:|--:|--:|--:|--:|\n");
    for (kind, score) in kinds.iter().filter(|(kind, _)| **kind != "requests") {
        let _ = writeln!(text, "| {kind} | {} | {} |", score.objects.all, cells(score));
    }
    text.push_str(&table_of_differences(outcomes, explanations));
    text
}

fn cells(score: &Score) -> String {
    let Score { status, other, events, .. } = score;
    format!(
        "{} | {} | {} | {} | {} | {}",
        status.all, status.equal, other.all, other.equal, events.all, events.equal
    )
}

fn percent(Count { all, equal }: Count) -> String {
    format!("{:.2} % of {all}", equal as f64 * 100.0 / all.max(1) as f64)
}

/// Differences that are alike: how many, and the first of them.
struct Group<'a> {
    times: usize,
    first: &'a Difference,
    sequence: &'a str,
    why: Option<&'a str>,
}

fn table_of_differences(outcomes: &[Outcome], explanations: &[Explanation]) -> String {
    let mut groups = BTreeMap::<(&str, &str, String, Option<&str>), Group<'_>>::new();
    for outcome in outcomes {
        for difference in &outcome.comparison.differences {
            let why = explanations.iter().find(|it| it.is_about(difference, &outcome.name));
            let why = why.map(|it| it.why.as_str());
            let path =
                if difference.part == "object" { String::new() } else { without_numbers(&difference.path) };
            let key = (difference.part, difference.kind.as_str(), path, why);
            let first = || Group { times: 0, first: difference, sequence: &outcome.name, why };
            groups.entry(key).or_insert_with(first).times += 1;
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(key, group)| (std::cmp::Reverse(group.times), key.clone()));
    let mut text = String::from(
        "\nWhat differs, the most frequent first:\n\n| times | what | real | ours | for example in | why |\n|--:|---|---|---|---|---|\n",
    );
    for ((part, kind, path, _), Group { times, first, sequence, why }) in &groups {
        let (real, ours) = (cell(&first.real), cell(&first.ours));
        let why = cell(why.unwrap_or("not explained"));
        let _ = writeln!(
            text,
            "| {times} | {part}: {kind} {} | {real} | {ours} | {sequence} | {why} |",
            cell(path)
        );
    }
    text
}

fn without_numbers(path: &str) -> String {
    let parts = path.split('[').map(|part| match part.split_once(']') {
        Some((index, rest)) if index.bytes().all(|byte| byte.is_ascii_digit()) => format!("]{rest}"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("[")
}

/// Text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    const MOST: usize = 160;
    let short: String = text.chars().take(MOST).collect();
    let end = if short.len() < text.len() { "…" } else { "" };
    format!("{}{end}", short.replace('|', "\\|").replace('\n', " ").replace('<', "&lt;"))
}

/// Writes every difference to a file.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_details(path: &Path, outcomes: &[Outcome]) -> anyhow::Result<()> {
    let mut text = String::new();
    for outcome in outcomes {
        for Difference { part, kind, path, real, ours } in &outcome.comparison.differences {
            writeln!(text, "[{}] {part}: {kind} {path}\n  real {real}\n  ours {ours}", outcome.name)?;
        }
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text).with_context(|| path.display().to_string())?;
    println!("every difference: {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_left_out_of_paths_and_names_stay() {
        assert_eq!(without_numbers(".a[0].b[Ready].c[12]"), ".a[].b[Ready].c[]");
    }
}
