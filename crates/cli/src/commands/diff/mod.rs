//! `tiphys diff REV..REV [PATH]`.

mod markdown;
mod text;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use serde_json::{Value, json};
use tiphys_diag::sanitize;
use tiphys_diff::{mask_secret, readable, unified};
use tiphys_graph::Kept;
use tiphys_render::out_of_reach;
use tiphys_source::WorkingTree;
use tiphys_value::{ObjectExt, ResourceKey};

use crate::{
    exit::{Reported, WrongUse},
    repository::{self, Given},
    revisions::{self, AppChange, Change, Range, Subject, SubjectKind},
};

/// Show what a change of a repository does to every rendered object of every Application
///
/// Both states are rendered, those of Applications that other Applications and ApplicationSets lead to
/// too. Objects of which nothing but a label with the chart's version changed are counted, not shown;
/// those with a hash of their content in the name are one object before and after; values of Secrets
/// are masked. What renders in neither state is told of: nothing is known of it.
///
/// Exit codes: 0 compared; 1 with --exit-code something differs, or an Application that rendered no longer
/// does; 2 wrong use.
///
/// Examples:
///   tiphys diff main..HEAD
///   tiphys diff origin/main...HEAD
///   tiphys diff HEAD
///   tiphys diff main..HEAD envs/prod --output markdown
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Two revisions REV..REV (REV...REV: from their common commit), or one to compare the files as they are
    /// with.
    #[arg(value_name = "REV..REV")]
    range: String,
    /// Look for Applications in this folder of the repository only.
    path: Option<String>,
    /// The repository: a folder (a bare repository, too), or an address that Git takes.
    #[arg(long, default_value = ".", value_name = "PATH_OR_URL")]
    repo: String,
    /// A file with the clusters that ApplicationSets may name: their Secrets, or a YAML list of {name,
    /// server, labels}.
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    /// Only one of several environments that stand side by side: its name, or the end of that.
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,
    /// Fetch nothing.
    #[arg(long)]
    offline: bool,
    /// Show the values of Secrets, and of the annotations that `argocd-cm` masks.
    #[arg(long)]
    show_secrets: bool,
    /// Exit with 1 if something differs.
    #[arg(long)]
    exit_code: bool,
    /// How the result is written.
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// One JSON text.
    Json,
    /// For a comment on a pull request.
    Markdown,
}

/// Prints the differences.
///
/// # Errors
/// A revision cannot be read, or the exit code tells that something differs.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let range = Range::parse(&args.range).map_err(WrongUse)?;
    if range.new.is_none() && WorkingTree::is_bare(Path::new(&args.repo)) {
        return Err(WrongUse(format!(
            "a bare repository has no files beside its commits; name two revisions, as in {}..HEAD",
            range.old
        ))
        .into());
    }
    let clusters = args.clusters.as_deref().map(crate::clusters::read).transpose()?.unwrap_or_default();
    let open = |revision: Option<&str>, other: &Kept| {
        let path = args.path.as_deref();
        let given =
            Given { place: &args.repo, revision, path, respect_revisions: false, offline: args.offline };
        revisions::open(&given, &clusters, args.environment.as_deref(), other)
    };
    // One after the other: what both say is in memory once.
    let (old, kept) = open(Some(&range.before(&args.repo)?), &Kept::default())?;
    let (new, _) = open(range.new.as_deref(), &kept)?;
    drop(kept);
    if let (Some(why), Some(_)) = (&new.no_environment, &old.no_environment) {
        return Err(WrongUse(why.clone()).into());
    }
    let faults: BTreeSet<String> = [&old, &new].into_iter().flat_map(repository::faults).collect();
    faults.iter().for_each(|fault| eprintln!("note: {fault}"));
    // What stands side by side in one state is distinguished in both.
    let environments: BTreeSet<&String> = [&old, &new].into_iter().flat_map(|it| it.choices.keys()).collect();
    let annotations: BTreeSet<String> =
        [&old, &new].into_iter().flat_map(revisions::masked_annotations).collect();
    let are_several = environments.len() > 1;
    let beside = revisions::changed_beside(&old, &new);
    let digests = [&old, &new].map(|it| revisions::digests_of(it, are_several));
    let [old, new] = [(&old, &digests[0], &digests[1]), (&new, &digests[1], &digests[0])]
        .map(|(survey, own, other)| revisions::state_of(survey, are_several, (own, other)));
    if old.is_empty() && new.is_empty() {
        let place = args.path.as_deref().unwrap_or("the repository");
        return Err(WrongUse(format!("no Application found in {place}")).into());
    }
    let annotations: Vec<String> = annotations.into_iter().collect();
    let gone = old.keys().filter(|subject| !new.contains_key(subject));
    let count = new.keys().chain(gone).filter(|subject| subject.kind == SubjectKind::Application).count();
    let (unknown, mut apps): (Vec<AppChange>, Vec<AppChange>) =
        revisions::compare(old, new).into_iter().partition(AppChange::is_unknown);
    // What nobody runs, and nobody can render, says nothing of a change.
    let unknown: Vec<AppChange> = unknown.into_iter().filter(|app| !app.subject.is_unit()).collect();
    if !args.show_secrets {
        apps.iter_mut().flat_map(|app| &mut app.changes).for_each(|change| mask(change, &annotations));
    }
    let found = Found { apps, unknown, count, beside };
    let text = match args.output {
        Output::Text => sanitize::terminal(&text::write(&found)).into_owned(),
        Output::Json => {
            let all = found.apps.iter().chain(&found.unknown);
            let files = found.beside.iter().map(|file| {
                json!({"kind": "File", "namespace": "", "name": file, "environment": "",
                    "fate": "changed, and nothing here reads it", "faults": [], "objects": []})
            });
            crate::output::json_text(&Value::Array(all.map(value).chain(files).collect()))
        }
        Output::Markdown => markdown::write(&found, &args.range),
    };
    crate::output::write(text.as_bytes())?;
    let breaks = found.apps.iter().any(|app| app.faults.1.is_some() && app.faults.0.is_none());
    if breaks || (args.exit_code && !found.apps.is_empty()) { Err(Reported.into()) } else { Ok(()) }
}

/// What is to be told.
struct Found {
    /// What differs.
    apps: Vec<AppChange>,
    /// What renders in neither state.
    unknown: Vec<AppChange>,
    /// How many Applications there are before or after.
    count: usize,
    /// The changed files that nothing which was compared reads.
    beside: Vec<String>,
}

impl Found {
    /// How many Applications differ, in words; and how many of the sets of which no Application is known.
    fn differ(&self) -> String {
        let count = |kind: SubjectKind| self.apps.iter().filter(|app| app.subject.kind == kind).count();
        let compared = self.count - self.unknown_apps();
        let mut told = format!("{} of {compared} Applications", count(SubjectKind::Application));
        let sets = match count(SubjectKind::ApplicationSet) {
            0 => None,
            1 => Some("1 ApplicationSet".to_owned()),
            count => Some(format!("{count} ApplicationSets")),
        };
        let units = count(SubjectKind::Chart) + count(SubjectKind::Kustomization);
        let units = match units {
            0 => None,
            1 => Some("1 chart or kustomization that no Application reaches".to_owned()),
            count => Some(format!("{count} charts and kustomizations that no Application reaches")),
        };
        let more: Vec<String> = sets.into_iter().chain(units).collect();
        if !more.is_empty() {
            told = format!("{told} and {}", more.join(" and "));
        }
        format!("{told} differ")
    }

    /// How many Applications cannot be compared.
    fn unknown_apps(&self) -> usize {
        self.unknown.iter().filter(|app| app.subject.kind == SubjectKind::Application).count()
    }

    /// What is told of Applications that cannot be compared.
    fn not_compared(&self) -> Option<String> {
        let count = self.unknown_apps();
        let fails = if count == 1 { "it fails" } else { "they fail" };
        (count > 0)
            .then(|| format!("{count} more cannot be compared: {fails} to render both before and after"))
    }

    /// What is told of changed files that nothing accounts for.
    fn beside_told(&self) -> String {
        let count = self.beside.len();
        let files = if count == 1 { "file" } else { "files" };
        format!("{count} changed {files} that nothing here reads")
    }

    /// The reasons for which nothing is known of something, with what.
    fn reasons(&self) -> BTreeMap<&str, Vec<String>> {
        let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for app in &self.unknown {
            let why = in_short(app.faults.1.as_deref().unwrap_or_default());
            reasons.entry(why).or_default().push(name(app));
        }
        reasons
    }
}

/// Of a source that cannot be had, the request that failed: who asked for it, and through how many
/// kustomizations, says nothing of a change.
fn in_short(why: &str) -> &str {
    out_of_reach(why).map_or(why, |found| found.text)
}

fn mask(change: &mut Change, annotations: &[String]) {
    let mut sides: Vec<&mut Value> = change.old.iter_mut().chain(&mut change.new).collect();
    mask_secret(&mut sides, annotations);
}

fn name(app: &AppChange) -> String {
    let Subject { environment, kind, id: (namespace, name) } = &app.subject;
    let place = if environment.is_empty() { String::new() } else { format!(" in {environment}") };
    match kind {
        SubjectKind::Application => format!("{namespace}/{name}{place}"),
        SubjectKind::ApplicationSet => format!("ApplicationSet {namespace}/{name}{place}"),
        SubjectKind::Chart => format!("chart {name}"),
        SubjectKind::Kustomization => format!("kustomization {name}"),
    }
}

/// What became of an Application, in a word.
fn fate(app: &AppChange) -> &'static str {
    match (app.sides, &app.faults) {
        ((false, true), _) => "added",
        ((true, false), _) => "removed",
        _ if app.is_unknown() => "unknown",
        _ if app.fails_alike() => "changed, its objects unknown",
        (_, (None, Some(_))) => "no longer renders",
        (_, (Some(_), None)) => "renders again",
        (_, (Some(_), Some(_))) => "fails otherwise",
        _ => "changed",
    }
}

fn verb(change: &Change) -> &'static str {
    match (&change.old, &change.new) {
        (None, _) => "added",
        (_, None) => "removed",
        _ => "changed",
    }
}

fn object(change: &Change) -> String {
    let ResourceKey { group, kind, namespace, name } = &change.key;
    let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    let before = change.old.as_ref().map(ObjectExt::name).filter(|before| before != name && !name.is_empty());
    let before = before.map(|before| format!(", before {before}")).unwrap_or_default();
    format!("{kind}{group} {place}{name}{before}")
}

fn diff(change: &Change) -> String {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => unified(old, new, "before", "after"),
        (None, Some(new)) => signed('+', new),
        (Some(old), None) => signed('-', old),
        (None, None) => String::new(),
    }
}

fn signed(sign: char, object: &Value) -> String {
    readable(object).lines().map(|line| format!("{sign}{line}\n")).collect()
}

fn visible_changes(app: &AppChange) -> impl Iterator<Item = &Change> {
    app.changes.iter().filter(|change| !change.is_noise)
}

fn noise(app: &AppChange) -> usize {
    app.changes.iter().filter(|change| change.is_noise).count()
}

fn faults(app: &AppChange) -> Vec<String> {
    if app.fails_alike() {
        return app.faults.1.clone().into_iter().collect();
    }
    let (before, after) = (&app.faults.0, &app.faults.1);
    let before = before.as_ref().map(|fault| format!("before: {fault}"));
    before.into_iter().chain(after.as_ref().map(|fault| format!("after: {fault}"))).collect()
}

fn value(app: &AppChange) -> Value {
    let changes: Vec<Value> = app
        .changes
        .iter()
        .map(|change| {
            let ResourceKey { group, kind, namespace, name } = &change.key;
            json!({"group": group, "kind": kind, "namespace": namespace, "name": name,
                "action": verb(change), "noise": change.is_noise, "diff": diff(change)})
        })
        .collect();
    let Subject { environment, kind, id: (namespace, name) } = &app.subject;
    let kind = format!("{kind:?}");
    json!({"kind": kind, "namespace": namespace, "name": name, "environment": environment,
        "fate": fate(app), "faults": faults(app), "objects": changes,
        "digests": {"before": app.digests.0, "after": app.digests.1}})
}
