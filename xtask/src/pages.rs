//! `cargo xtask tidy`, last part: every page of the documentation is in the book, and none is longer than
//! what one reads at once.

use anyhow::{Context as _, bail};

use crate::git_files;

const MOST_LINES: usize = 150;
/// Pages that a command of this repository writes, wholly or for the most part: the reference of the command
/// line, the contents of the book, and the tables of the embedded cluster.
const GENERATED: &[&str] = &["docs/cli.md", "docs/SUMMARY.md", "docs/conformance.md"];

/// Looks at every page below `docs`.
///
/// # Errors
/// Names each page that is too long or that the book does not have.
pub(crate) fn run() -> anyhow::Result<()> {
    let pages = git_files::matching("docs/*.md")?;
    let contents =
        &pages.iter().find(|(path, _)| path == "docs/SUMMARY.md").context("the book has contents")?.1;
    let faults: Vec<String> = pages.iter().filter_map(|(path, text)| fault(path, text, contents)).collect();
    if faults.is_empty() {
        println!("tidy: the book has all pages, and none is too long");
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

/// What is wrong with a page. Those of rules are generated and listed by `cargo xtask docs`.
fn fault(path: &str, text: &str, contents: &str) -> Option<String> {
    let name = path.strip_prefix("docs/")?;
    let lines = text.lines().count();
    if lines > MOST_LINES && !GENERATED.contains(&path) && !name.starts_with("rules/") {
        return Some(format!("{path}: {lines} lines are more than {MOST_LINES}: split it by subject"));
    }
    let is_listed = name == "SUMMARY.md" || contents.contains(&format!("({name})"));
    (!is_listed).then(|| format!("{path}: docs/SUMMARY.md does not list it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pages_and_pages_that_the_book_lacks_are_faults() {
        let contents = "[First](first.md)";
        assert_eq!(fault("docs/first.md", "text\n", contents), None);
        assert!(fault("docs/other.md", "text\n", contents).is_some_and(|it| it.contains("does not list it")));
        assert!(
            fault("docs/first.md", &"line\n".repeat(151), contents)
                .is_some_and(|it| it.contains("151 lines"))
        );
        assert_eq!(fault("docs/SUMMARY.md", &"line\n".repeat(300), contents), None);
    }
}
