//! `tiphys diff REV..REV [PATH]`.

use std::{fmt::Write as _, io::Write as _};

use clap::ValueEnum;
use serde_json::{Value, json};
use tiphys_diff::{mask_secret, unified};
use tiphys_value::ResourceKey;

use crate::{
    exit::{Reported, WrongUse},
    revisions::{self, AppChange, Change, Range},
};

/// How much a comment of a pull request may hold, with room for what is around it.
const MARKDOWN_LIMIT: usize = 60_000;

/// Show what a change of a repository does to every rendered object of every Application
///
/// Both states are rendered, those of Applications that other Applications and ApplicationSets lead to
/// too. Objects of which nothing but a label with the chart's version changed are counted, not shown;
/// values of Secrets are masked.
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
pub struct Args {
    /// Two revisions REV..REV (REV...REV: from their common commit), or one to compare the files as they are
    /// with.
    #[arg(value_name = "REV..REV")]
    range: String,
    /// Look for Applications in this folder of the repository only.
    path: Option<String>,
    /// The repository: a folder, or an address that Git takes.
    #[arg(long, default_value = ".", value_name = "PATH_OR_URL")]
    repo: String,
    /// Fetch nothing.
    #[arg(long)]
    offline: bool,
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
pub fn run(args: &Args) -> anyhow::Result<()> {
    let range = Range::parse(&args.range).map_err(WrongUse)?;
    let render =
        |revision: Option<&str>| revisions::render(&args.repo, revision, args.path.as_deref(), args.offline);
    let (old, new) = std::thread::scope(|scope| {
        let old = scope.spawn(|| render(Some(&range.before(&args.repo)?)));
        let new = render(range.new.as_deref());
        let old = old.join().unwrap_or_else(|_| Err(anyhow::anyhow!("rendering broke off")));
        anyhow::Ok((old?, new?))
    })?;
    if old.is_empty() && new.is_empty() {
        let place = args.path.as_deref().unwrap_or("the repository");
        return Err(WrongUse(format!("no Application found in {place}")).into());
    }
    let count = new.len();
    let mut apps = revisions::compare(old, new);
    apps.iter_mut().flat_map(|app| &mut app.changes).for_each(mask);
    let text = match args.output {
        Output::Text => text(&apps, count),
        Output::Json => format!("{:#}\n", Value::Array(apps.iter().map(value).collect())),
        Output::Markdown => markdown(&apps, count, &args.range),
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    let breaks = apps.iter().any(|app| app.faults.1.is_some() && app.faults.0.is_none());
    if breaks || (args.exit_code && !apps.is_empty()) { Err(Reported.into()) } else { Ok(()) }
}

fn mask(change: &mut Change) {
    let mut sides: Vec<&mut Value> = change.old.iter_mut().chain(&mut change.new).collect();
    mask_secret(&mut sides, &[]);
}

fn name(app: &AppChange) -> String {
    format!("{}/{}", app.id.0, app.id.1)
}

/// What became of an Application, in a word.
fn fate(app: &AppChange) -> &'static str {
    match (app.sides, &app.faults) {
        ((false, true), _) => "added",
        ((true, false), _) => "removed",
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

fn object(key: &ResourceKey) -> String {
    let place = if key.namespace.is_empty() { String::new() } else { format!("{}/", key.namespace) };
    let group = if key.group.is_empty() { String::new() } else { format!(".{}", key.group) };
    format!("{}{group} {place}{}", key.kind, key.name)
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
    tiphys_yaml::to_yaml(object).lines().map(|line| format!("{sign}{line}\n")).collect()
}

fn shown(app: &AppChange) -> impl Iterator<Item = &Change> {
    app.changes.iter().filter(|change| !change.is_noise)
}

fn noise(app: &AppChange) -> usize {
    app.changes.iter().filter(|change| change.is_noise).count()
}

fn faults(app: &AppChange) -> Vec<String> {
    let (before, after) = (&app.faults.0, &app.faults.1);
    let before = before.as_ref().map(|fault| format!("before: {fault}"));
    before.into_iter().chain(after.as_ref().map(|fault| format!("after: {fault}"))).collect()
}

fn text(apps: &[AppChange], count: usize) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for app in apps {
        let _ = writeln!(text, "=== {} ({}) ===", name(app), fate(app));
        for fault in faults(app) {
            let _ = writeln!(text, "{fault}");
        }
        for change in shown(app) {
            let _ = writeln!(text, "--- {} ({}) ---\n{}", object(&change.key), verb(change), diff(change));
        }
        if noise(app) > 0 {
            let _ = writeln!(
                text,
                "{} more objects differ in the label of the chart's version only\n",
                noise(app)
            );
        }
    }
    let _ = writeln!(text, "{} of {count} Applications differ", apps.len());
    text
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
    json!({"namespace": app.id.0, "name": app.id.1, "fate": fate(app), "faults": faults(app),
        "objects": changes})
}

fn markdown(apps: &[AppChange], count: usize, range: &str) -> String {
    let mut text = format!("### {} of {count} Applications differ in `{range}`\n\n", apps.len());
    if apps.is_empty() {
        return text;
    }
    text.push_str("| Application | | added | changed | removed |\n|---|---|---|---|---|\n");
    for app in apps {
        let of = |word: &str| shown(app).filter(|change| verb(change) == word).count();
        let (added, changed, removed) = (of("added"), of("changed"), of("removed"));
        let _ = writeln!(text, "| {} | {} | {added} | {changed} | {removed} |", name(app), fate(app));
    }
    let mut left_out = 0;
    for app in apps {
        let part = section(app);
        if text.len() + part.len() > MARKDOWN_LIMIT {
            left_out += 1;
        } else {
            text.push_str(&part);
        }
    }
    if left_out > 0 {
        let _ =
            writeln!(text, "\n{left_out} Applications are too large for this comment: `tiphys diff {range}`");
    }
    text
}

fn section(app: &AppChange) -> String {
    let mut text = format!("\n<details><summary>{} ({})</summary>\n\n", name(app), fate(app));
    for fault in faults(app) {
        let _ = writeln!(text, "```text\n{fault}\n```\n");
    }
    for change in shown(app) {
        let diff = diff(change);
        // A fence must be longer than any in what it holds.
        let fence = if diff.contains("```") { "````" } else { "```" };
        let _ =
            writeln!(text, "**{}** {}\n\n{fence}diff\n{diff}{fence}\n", object(&change.key), verb(change));
    }
    if noise(app) > 0 {
        let _ =
            writeln!(text, "{} more objects differ in the label of the chart's version only.\n", noise(app));
    }
    text.push_str("</details>\n");
    text
}
