//! What is shown of a diagnosis, in the order in which people read it. Each form (text, Markdown, HTML) only
//! sets it.
//!
//! Every text is made harmless here: credentials are masked and control characters become visible.

mod consequences;
mod html;
mod json;
mod markdown;
mod sanitize;
#[cfg(test)]
mod tests;
mod text;

use jiff::{SignedDuration, Timestamp};
use tiphys_doctor::{Case, Diagnosis, Evidence, Root};

pub(super) use html::html;
pub(super) use json::{json, visible_json};
pub(super) use markdown::markdown;
pub(super) use text::text;

use crate::counted::counted;
use consequences::{Group, Tracker};
use sanitize::{is_safe_command, one_line};
pub(super) use sanitize::{sanitize, visible};

/// From this confidence on a cause is asserted.
const ASSERTED: f64 = 0.5;
/// The longest evidence that is shown.
const EVIDENCE: usize = 400;

/// What was looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiagnosedCluster {
    /// A cluster's address, or the files.
    pub name: String,
    /// The context of the kubeconfig, if it was named.
    pub context: Option<String>,
    /// The version of Kubernetes; empty if it is not known.
    pub version: String,
    /// What was asked for alone: a namespace, an Application.
    pub scope: Vec<String>,
}

/// Whether something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Nothing is wrong.
    Well,
    /// Something is, and nobody knows why for sure.
    Unsure,
    /// Causes were found.
    Wrong,
}

/// A diagnosis as it is shown.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub level: Level,
    /// One line: whether something is wrong, and where.
    pub verdict: String,
    /// What was looked at, and when.
    pub head: String,
    /// Causes, the surest first.
    pub causes: Vec<CauseView>,
    /// What was considered and why it is none, one line each.
    pub ruled_out: Vec<String>,
    /// What is red and not explained, one line each.
    pub unexplained: Vec<String>,
    /// What could not be looked at, one line each.
    pub not_seen: Vec<String>,
}

/// One cause as it is shown.
#[derive(Clone, Debug)]
pub(super) struct CauseView {
    /// The id, such as `image/not-found`.
    pub id: &'static str,
    /// What the id means.
    pub meaning: &'static str,
    /// The object at fault.
    pub object: String,
    /// Whether it is asserted, or only possible.
    pub is_asserted: bool,
    /// In per cent.
    pub confidence: String,
    /// What is wrong.
    pub summary: String,
    pub field: Option<String>,
    pub since: Option<String>,
    /// Where it is written in the repository, and the commits that changed it.
    pub written: Vec<String>,
    pub evidence: Vec<Quote>,
    pub consequences: Vec<Group>,
    /// How many objects are broken because of it.
    pub broken: usize,
    /// What to do.
    pub remedy: String,
    pub commands: Vec<String>,
    /// A merge patch, as YAML.
    pub patch: Option<String>,
    /// Whether the remedy was tried out, and what came of it.
    pub proof: String,
}

/// A quoted text and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Quote {
    pub source: String,
    pub text: String,
}

/// What is said of a remedy that was not tried out.
const NOT_TRIED: &str = "not proved: it was not tried out on a copy of the cluster";

impl Report {
    /// Everything that is to be shown.
    pub(super) fn new(diagnosis: &Diagnosis, case: &Case, place: &DiagnosedCluster) -> Self {
        let level = match (diagnosis.causes.iter().any(is_asserted), diagnosis.unexplained.is_empty()) {
            (true, _) => Level::Wrong,
            (false, true) if diagnosis.causes.is_empty() => Level::Well,
            (false, _) => Level::Unsure,
        };
        let tracker = Tracker::new(case);
        let line =
            |subject: &dyn std::fmt::Display, text: &str| sanitize(&one_line(&format!("{subject}: {text}")));
        Self {
            level,
            verdict: verdict(diagnosis, case, place),
            head: head(diagnosis, case),
            causes: diagnosis
                .causes
                .iter()
                .map(|root| CauseView::new(root, diagnosis.now, &tracker))
                .collect(),
            ruled_out: diagnosis.ruled_out.iter().map(|it| line(&it.object, &it.why)).collect(),
            unexplained: diagnosis.unexplained.iter().map(|it| line(&it.object, &it.symptom)).collect(),
            not_seen: diagnosis.not_seen.iter().map(|text| sanitize(&one_line(text))).collect(),
        }
    }
}

impl Report {
    /// What tells this report from another one of the same cluster, whatever time has passed.
    pub(super) fn identity(&self) -> Vec<String> {
        let causes =
            self.causes.iter().map(|cause| format!("{} {} {}", cause.id, cause.object, cause.is_asserted));
        let mut parts: Vec<String> = causes.collect();
        for list in [&self.unexplained, &self.not_seen] {
            parts.push(String::new());
            parts.extend(list.iter().cloned());
        }
        parts
    }
}

fn is_asserted(root: &Root) -> bool {
    root.confidence >= ASSERTED
}

/// The first line.
fn verdict(diagnosis: &Diagnosis, case: &Case, place: &DiagnosedCluster) -> String {
    let asserted = diagnosis.causes.iter().filter(|root| is_asserted(root)).count();
    let possible = diagnosis.causes.len() - asserted;
    let unexplained = diagnosis.unexplained.len();
    let mut parts = Vec::new();
    if asserted > 0 {
        parts.push(format!("{} found", counted(asserted, "cause")));
    }
    if possible > 0 {
        parts.push(format!("{possible} possible {}", if possible == 1 { "cause" } else { "causes" }));
    }
    if unexplained > 0 {
        parts.push(format!("{} not explained", counted(unexplained, "symptom")));
    }
    if parts.is_empty() {
        let is_whole = case.unreadable.is_empty() && diagnosis.not_seen.is_empty();
        parts.push(
            if is_whole { "Nothing is wrong" } else { "Nothing is wrong in what could be seen" }.to_owned(),
        );
    }
    let mut name = place.name.clone();
    let mut about: Vec<String> = place.context.iter().map(|context| format!("context {context}")).collect();
    if !place.version.is_empty() {
        about.push(format!("Kubernetes {}", place.version));
    }
    if !about.is_empty() {
        name.push_str(&format!(" ({})", about.join(", ")));
    }
    for scope in &place.scope {
        name.push_str(&format!(", {scope}"));
    }
    sanitize(&one_line(&format!("{} in {name}", parts.join(", "))))
}

/// What the diagnosis was made from.
fn head(diagnosis: &Diagnosis, case: &Case) -> String {
    let mut text = format!(
        "looked at {}, {} and {}",
        counted(case.objects.len(), "object"),
        counted(case.events.len(), "event"),
        counted(case.logs.len(), "log")
    );
    if let Some(now) = diagnosis.now {
        text.push_str(&format!(", as of {}", second(now)));
    }
    text
}

/// A time without fractions of seconds.
fn second(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

impl CauseView {
    fn new(root: &Root, now: Option<Timestamp>, tracker: &Tracker<'_>) -> Self {
        let line = |text: &str| sanitize(&one_line(text));
        let commands = &root.remedy.commands;
        let (safe, unsafe_count) = commands.iter().fold((Vec::new(), 0), |(mut safe, count), command| {
            if is_safe_command(command) {
                safe.push(sanitize(command.trim_end()));
                (safe, count)
            } else {
                (safe, count + 1)
            }
        });
        let mut remedy = line(&root.remedy.text);
        if unsafe_count > 0 {
            remedy.push_str(&format!(
                " ({} not shown: a name in it would be read as a command by a shell)",
                counted(unsafe_count, "command")
            ));
        }
        let confidence = format!("{:.0}", root.confidence.clamp(0.0, 1.0) * 100.0);
        Self {
            id: root.cause.id(),
            meaning: root.cause.summary(),
            object: line(&root.object.to_string()),
            is_asserted: is_asserted(root),
            confidence,
            summary: line(&root.summary),
            field: root.field.as_deref().map(line),
            since: root.since.map(|since| since_words(since, now)),
            written: written(root, now),
            evidence: quotes(&root.evidence),
            consequences: consequences::groups(&root.consequences, tracker),
            broken: root.consequences.len(),
            remedy,
            commands: safe,
            patch: root.remedy.patch.as_ref().map(sanitize::patch),
            proof: root.proof.as_ref().map_or_else(
                || NOT_TRIED.to_owned(),
                |proof| {
                    line(&format!(
                        "{}: {}",
                        if proof.is_proved { "proved" } else { "not proved" },
                        proof.text
                    ))
                },
            ),
        }
    }
}

/// Where the fault, or what names it, is written: the place, then the commits.
fn written(root: &Root, now: Option<Timestamp>) -> Vec<String> {
    let Some(written) = &root.written else { return Vec::new() };
    let line = |text: &str| sanitize(&one_line(text));
    let mut place = written.file.clone();
    if written.line > 0 {
        place.push_str(&format!(":{}", written.line));
    }
    let mut about = Vec::new();
    if written.object != root.object {
        about.push(written.object.to_string());
    }
    if !written.by.is_empty() {
        about.push(format!("delivered by {}", written.by));
    }
    if !about.is_empty() {
        place.push_str(&format!(" ({})", about.join(", ")));
    }
    let changes = written.changes.iter().map(|change| {
        let commit: String = change.commit.chars().take(12).collect();
        let at = change.at.map(|at| format!(", {}", since_words(at, now))).unwrap_or_default();
        format!("changed by {commit} of {}: {}{at}", change.author, change.subject)
    });
    std::iter::once(place).chain(changes).map(|text| line(&text)).collect()
}

/// The evidence; words that stand in several places are quoted once.
fn quotes(evidence: &[Evidence]) -> Vec<Quote> {
    let mut quotes: Vec<Quote> = Vec::new();
    for one in evidence {
        let (text, source) = (quoted(&one.text), sanitize(&one_line(&one.source)));
        match quotes.iter_mut().find(|quote| quote.text == text) {
            Some(quote) => quote.source.push_str(&format!("; {source}")),
            None => quotes.push(Quote { source, text }),
        }
    }
    quotes
}

/// One line of evidence, not longer than people read.
fn quoted(text: &str) -> String {
    let line = sanitize(&one_line(text));
    match line.char_indices().nth(EVIDENCE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Since when, and how long that is.
fn since_words(since: Timestamp, now: Option<Timestamp>) -> String {
    let age = now.map(|now| now.duration_since(since)).filter(|age| !age.is_negative());
    match age {
        Some(age) => format!("{} ({} ago)", second(since), age_words(age)),
        None => second(since),
    }
}

/// A duration in its two largest units.
fn age_words(age: SignedDuration) -> String {
    let seconds = age.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m"),
        (0, _, _) => format!("{hours}h{minutes:02}m"),
        _ => format!("{days}d{hours:02}h"),
    }
}
