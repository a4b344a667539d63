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
    /// Write the table anew from charts.
    Derive(Args),
    /// Say which lines of the table charts contradict.
    Check(Args),
    /// Write the tables of the values that charts know anew, from any number of their versions.
    Values(Args),
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
# version that was looked at. These and several between agree on the Services below.
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
            let derived = derive(&args.folder)?;
            let text: String = derived.values().map(String::as_str).collect();
            fs::write(TABLE, format!("{HEADER}{text}"))?;
            Ok(())
        }
        Action::Values(args) => values::write(&args.folder),
        Action::Check(args) => {
            let table = fs::read_to_string(TABLE)?;
            let derived = derive(&args.folder)?;
            let wrong = derived.iter().filter(|(_, text)| !table.contains(text.as_str()));
            let wrong: Vec<&str> = wrong.map(|(chart, _)| chart.as_str()).collect();
            if wrong.is_empty() {
                println!("{} charts agree with {TABLE}", derived.len());
                return Ok(());
            }
            bail!("{TABLE} says otherwise of {}: run `cargo xtask charts derive`", wrong.join(", "))
        }
    }
}

/// The lines of each chart, by its name and owner.
fn derive(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let found = for_each_chart(folder, |chart, owner, paths| Ok(facts_of(paths)?.to_lines(chart, owner)))?;
    Ok(found.into_iter().map(|((chart, owner), lines)| (format!("{chart} {owner}"), lines)).collect())
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

/// What all versions of a chart have in common.
fn facts_of(paths: &[PathBuf]) -> anyhow::Result<Facts> {
    let mut versions: Vec<ChartVersion> = Vec::new();
    for path in paths {
        match ChartVersion::open(path) {
            Ok(version) => versions.push(version),
            Err(error) => eprintln!("{}: {error:#}", path.display()),
        }
    }
    versions.sort_by_key(ChartVersion::order);
    Facts::from_versions(&versions).context("no version renders")
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
