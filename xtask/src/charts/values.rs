//! `cargo xtask charts values FOLDER`: the tables of the values that charts know, one file a chart.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use super::{for_each_chart, value_facts::ValueFacts};

const TABLES: &str = "crates/check/data/chart-values";

/// Writes the tables of all charts of a folder.
///
/// # Errors
/// The folder cannot be read or holds no chart, or the tables cannot be written.
pub(super) fn write(folder: &Path) -> anyhow::Result<()> {
    let tables = for_each_chart(folder, table_of)?;
    anyhow::ensure!(!tables.is_empty(), "{} holds no chart: the tables stay as they are", folder.display());
    for ((chart, owners), table) in &tables {
        let owner = owners.split(',').next().unwrap_or(owners);
        let path = Path::new(TABLES).join(format!("{owner}/{chart}.txt"));
        fs::create_dir_all(path.parent().context("has a folder")?)?;
        fs::write(&path, table)?;
    }
    println!("{} charts", tables.len());
    Ok(())
}

/// The table of a chart: what any of its versions knows.
fn table_of(chart: &str, owners: &str, folders: &[PathBuf]) -> anyhow::Result<String> {
    let mut versions = Vec::new();
    for folder in folders {
        match ValueFacts::open(folder) {
            Ok(facts) => versions.push(facts),
            Err(error) => eprintln!("{}: {error:#}", folder.display()),
        }
    }
    versions.sort_by_key(|facts| order(&facts.version));
    let newest = versions.last().context("no version can be read")?;
    if !newest.unread.is_empty() {
        eprintln!("{chart} {}: not seen to be read: {}", newest.version, newest.unread.join(" "));
    }
    let (oldest, newest) = (versions[0].version.clone(), newest.version.clone());
    let mut trees = versions.into_iter().map(|facts| facts.tree);
    let mut all = trees.next().context("no version can be read")?;
    trees.for_each(|tree| all.add_version(tree));
    all.prune();
    // `CHART@3` is the chart in its third major version: versions that have little in common have tables apart.
    let name = chart.split('@').next().unwrap_or(chart);
    Ok(format!("{name} {owners} {oldest} {newest}\n{}", all.to_table()))
}

/// What versions are sorted by.
fn order(version: &str) -> Vec<u64> {
    let parts = version.trim_start_matches('v').split(['.', '-', '+']);
    parts.map(|part| part.parse().unwrap_or_default()).collect()
}
