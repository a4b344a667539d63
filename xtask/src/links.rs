//! `cargo xtask tidy`, sixth part: links between documents lead to files and headings that exist.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use anyhow::bail;

use crate::git_files;

/// Looks at every link of every document that leads to a file or a heading of this repository.
///
/// # Errors
/// Names each line with a link that leads nowhere.
pub(crate) fn run() -> anyhow::Result<()> {
    let documents = git_files::matching("*.md")?;
    let headings: BTreeMap<&str, BTreeSet<String>> =
        documents.iter().map(|(file, text)| (file.as_str(), headings(text))).collect();
    let mut faults = Vec::new();
    for (file, text) in &documents {
        for (line, target) in links(text) {
            if let Some(fault) = fault(file, target, &headings) {
                faults.push(format!("{file}:{line}: {fault}"));
            }
        }
    }
    if faults.is_empty() {
        println!("tidy: links between documents lead somewhere");
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

/// What is wrong with a link of a document.
fn fault(file: &str, target: &str, headings: &BTreeMap<&str, BTreeSet<String>>) -> Option<String> {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let meant = if path.is_empty() { file.to_owned() } else { resolved(file, path) };
    if !Path::new(&meant).exists() {
        return Some(format!("there is no {meant}"));
    }
    let known = headings.get(meant.as_str()).filter(|_| !heading.is_empty())?;
    (!known.contains(heading)).then(|| format!("{meant} has no heading #{heading}"))
}

/// The path from the root of the repository of what a document names.
fn resolved(file: &str, path: &str) -> String {
    let mut steps = PathBuf::from(file);
    steps.pop();
    for step in Path::new(path).components() {
        match step {
            Component::ParentDir => drop(steps.pop()),
            Component::Normal(name) => steps.push(name),
            _ => {}
        }
    }
    steps.to_string_lossy().into_owned()
}

/// The lines outside of blocks of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The links of a document to what is no address, with their lines.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(number, line)| {
        // What stands in backticks is no link.
        let outside = line.split('`').step_by(2);
        outside
            .flat_map(|part| part.split("](").skip(1))
            .filter_map(|rest| rest.split(')').next())
            .filter(|target| !target.contains(':') && !target.is_empty())
            .map(move |target| (number, target))
    })
}

/// The headings of a document as links name them.
fn headings(text: &str) -> BTreeSet<String> {
    let titles = prose(text).filter(|(_, line)| line.starts_with('#'));
    let name = |title: &str| {
        let kept = title.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    titles.map(|(_, line)| name(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "see [one](a.md), `[no](b.md)` and [web](https://example.com)\n```\n[no](c.md)\n```\n[two](#a-part)";
        assert_eq!(links(text).collect::<Vec<_>>(), [(1, "a.md"), (5, "#a-part")]);
    }

    #[test]
    fn a_heading_is_named_by_its_words() {
        assert_eq!(
            headings("## `up` and *more*: all, of it\ntext"),
            BTreeSet::from(["up-and-more-all-of-it".into()])
        );
    }

    #[test]
    fn a_path_is_seen_from_the_document() {
        assert_eq!(resolved("docs/rules/README.md", "../check.md"), "docs/check.md");
        let headings = BTreeMap::from([("Cargo.toml", BTreeSet::new())]);
        assert!(fault("README.md", "none.md", &headings).is_some());
        assert!(fault("README.md", "Cargo.toml#part", &headings).is_some());
    }
}
