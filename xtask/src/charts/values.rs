//! `cargo xtask charts values FOLDER`: the tables of the values that charts know, one file a chart.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use super::{for_each_chart, value_facts::ValueFacts, value_tree::ValueTree};

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

/// Writes into the tables that are there of what kind the values are, by all charts of a folder.
///
/// # Errors
/// The folder cannot be read, or the tables cannot be written.
pub(super) fn write_kinds(folder: &Path) -> anyhow::Result<()> {
    let found = for_each_chart(folder, |chart, _, folders| {
        let (oldest, _, tree) = tree_of(chart, folders)?;
        Ok((oldest, tree))
    })?;
    let mut count = 0;
    for ((chart, owners), (oldest, tree)) in &found {
        for owner in owners.split(',') {
            let path = Path::new(TABLES).join(format!("{owner}/{chart}.txt"));
            let Ok(table) = fs::read_to_string(&path) else { continue };
            let (head, lines) = table.split_once('\n').context("a table has a head")?;
            let head = head.split(' ').take(4).collect::<Vec<_>>().join(" ");
            let mut known = ValueTree::from_table(lines);
            known.take_kinds(tree);
            fs::write(&path, format!("{head} {oldest}\n{}", known.to_table()))?;
            count += 1;
        }
    }
    println!("{count} tables");
    Ok(())
}

/// The table of a chart: what any of its versions knows.
fn table_of(chart: &str, owners: &str, folders: &[PathBuf]) -> anyhow::Result<String> {
    let (oldest, newest, tree) = tree_of(chart, folders)?;
    // `CHART@3` is the chart in its third major version: versions that have little in common have tables apart.
    let name = chart.split('@').next().unwrap_or(chart);
    Ok(format!("{name} {owners} {oldest} {newest} {oldest}\n{}", tree.to_table()))
}

/// The oldest and the newest version of a chart that can be read, and what any of its versions knows.
fn tree_of(chart: &str, folders: &[PathBuf]) -> anyhow::Result<(String, String, ValueTree)> {
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
    Ok((oldest, newest, all))
}

/// What versions are sorted by.
fn order(version: &str) -> Vec<u64> {
    let parts = version.trim_start_matches('v').split(['.', '-', '+']);
    parts.map(|part| part.parse().unwrap_or_default()).collect()
}
