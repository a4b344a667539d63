//! `cargo xtask charts derive|check FOLDER`: the table of what known charts make, from their sources.
//!
//! FOLDER holds `OWNER/CHART+VERSION/`, each a chart with its dependencies in `charts/`. OWNER is one word or
//! several with commas between: parts of the addresses that the chart is published under.

mod facts;
mod naming;
mod probe;
mod reads;
mod schemas;
mod sensitivity;
mod value_facts;
mod value_tree;
mod values;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
};

use anyhow::{Context, bail};
use facts::Facts;
use probe::ChartVersion;

/// What to do with the table.
#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Write what the table says of charts anew, and leave what it says of others, and of versions outside of
    /// those that are in the folder.
    Derive(Args),
    /// Say which lines of the table charts contradict.
    Check(Args),
    /// Write the tables of the values that charts know anew, from any number of their versions.
    Values(Args),
    /// Write into the tables of values of what kind each value is, and leave the rest of them.
    Kinds(Args),
}

/// Options of both.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder with `OWNER/CHART+VERSION/`.
    folder: PathBuf,
}

const TABLE: &str = "crates/check/data/known-charts.txt";

const HEADER: &str = "\
# What charts make with their default values: for charts that are out of reach.
# Made by `cargo xtask charts derive FOLDER` from renderings under several release names; `charts check` compares.
# A line without indent: the chart, parts of addresses that it is published under, and the oldest and the newest
# version that was looked at. These and several between agree on the Services below. Of several lines of a chart the
# first that has a version between its two counts: runs of versions that make the same, and behind them what all make.
# service: its name, the ports that any version gives it (name=number, with :PATH of the value that sets it; none
# where it is headless), and behind `if` the values that decide whether it is there and how, with their defaults.
# Names: [CHART] is the usual full name: fullnameOverride; or the release's name if it contains CHART or
# nameOverride; or both with a dash. [CHART@PATH] has its overrides below PATH, [CHART|26] is cut to 26 characters.
# {} is the release's name.
";

/// Writes the table, or compares it.
///
/// # Errors
/// The folder or the table cannot be read or written, or the table is contradicted.
pub(crate) fn run(action: &Action) -> anyhow::Result<()> {
    match action {
        Action::Derive(args) => {
            let mut lines = known_lines(&fs::read_to_string(TABLE)?);
            for (chart, derived) in derive(&args.folder)? {
                let others = lines.remove(&chart).unwrap_or_default();
                let others = others.into_iter().filter(|line| !derived.covers(line));
                lines.insert(chart, std::iter::once(derived.text.clone()).chain(others).collect());
            }
            let text: String = lines.into_values().flatten().collect();
            fs::write(TABLE, format!("{HEADER}{text}"))?;
            Ok(())
        }
        Action::Values(args) => values::write(&args.folder),
        Action::Kinds(args) => values::write_kinds(&args.folder),
        Action::Check(args) => {
            let table = fs::read_to_string(TABLE)?;
            let derived = derive(&args.folder)?;
            let wrong = derived.iter().filter(|(_, derived)| !table.contains(derived.text.as_str()));
            let wrong: Vec<&str> = wrong.map(|(chart, _)| chart.as_str()).collect();
            if wrong.is_empty() {
                println!("{} charts agree with {TABLE}", derived.len());
                return Ok(());
            }
            bail!("{TABLE} says otherwise of {}: run `cargo xtask charts derive`", wrong.join(", "))
        }
    }
}

/// What the table is to say of a chart.
struct Derived {
    text: String,
    /// The oldest and the newest version of all.
    versions: (Vec<u64>, Vec<u64>),
}

impl Derived {
    /// Whether a chart's line of the table, with the Services below it, is of no other versions.
    fn covers(&self, line: &str) -> bool {
        let head: Vec<&str> = line.lines().next().unwrap_or_default().split(' ').collect();
        let [_, _, oldest, newest] = head[..] else { return true };
        self.versions.0 <= version_order(oldest) && version_order(newest) <= self.versions.1
    }
}

/// What the table says, by the chart's name and owner: each of its lines with the Services below it.
fn known_lines(table: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut last = String::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if !line.starts_with(' ') {
            last = line.split(' ').take(2).collect::<Vec<_>>().join(" ");
            found.entry(last.clone()).or_default().push(String::new());
        }
        if let Some(block) = found.get_mut(&last).and_then(|blocks| blocks.last_mut()) {
            block.push_str(line);
            block.push('\n');
        }
    }
    found
}

/// The lines of each chart, by its name and owner.
fn derive(folder: &Path) -> anyhow::Result<BTreeMap<String, Derived>> {
    let found = for_each_chart(folder, |chart, owner, paths| {
        let facts = facts_of(paths);
        let (oldest, newest) = facts.last().context("no version can be read")?.versions();
        let versions = (version_order(oldest), version_order(newest));
        Ok(Derived { text: facts.iter().map(|facts| facts.to_lines(chart, owner)).collect(), versions })
    })?;
    Ok(found.into_iter().map(|((chart, owner), derived)| (format!("{chart} {owner}"), derived)).collect())
}

/// What a function gives for each chart, by name and owner, from the folders of its versions. Charts that it
/// fails for are told and left out.
fn for_each_chart<T: Send>(
    folder: &Path,
    look_at: impl Fn(&str, &str, &[PathBuf]) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<BTreeMap<(String, String), T>> {
    let mut versions: BTreeMap<(String, String), Vec<PathBuf>> = BTreeMap::new();
    for owner in folders(folder)? {
        for path in folders(&owner)? {
            let Some((chart, _)) = name_of(&path).split_once('+').map(|(a, b)| (a.to_owned(), b.to_owned()))
            else {
                continue;
            };
            versions.entry((chart, name_of(&owner))).or_default().push(path);
        }
    }
    let waiting = Mutex::new(versions.into_iter());
    let found = Mutex::new(BTreeMap::new());
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().ok().and_then(|mut waiting| waiting.next());
                    let Some(((chart, owner), paths)) = next else { return };
                    match look_at(&chart, &owner, &paths) {
                        Ok(facts) => {
                            if let Ok(mut found) = found.lock() {
                                found.insert((chart, owner), facts);
                            }
                        }
                        Err(error) => eprintln!("{chart} of {owner}: {error:#}"),
                    }
                }
            });
        }
    });
    Ok(found.into_inner().unwrap_or_default())
}

/// What is known of the versions of a chart.
fn facts_of(paths: &[PathBuf]) -> Vec<Facts> {
    let mut versions: Vec<ChartVersion> = Vec::new();
    for path in paths {
        match ChartVersion::open(path) {
            Ok(version) => versions.push(version),
            Err(error) => eprintln!("{}: {error:#}", path.display()),
        }
    }
    versions.sort_by_key(|it| version_order(&it.version));
    Facts::from_versions(&versions)
}

/// What versions are sorted by.
fn version_order(version: &str) -> Vec<u64> {
    let parts = version.trim_start_matches('v').split(['.', '-', '+']);
    parts.map(|part| part.parse().unwrap_or_default()).collect()
}

fn folders(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut found: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    found.retain(|path| path.is_dir());
    found.sort();
    Ok(found)
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
