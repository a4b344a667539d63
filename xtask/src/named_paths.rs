//! `cargo xtask tidy`, fifth part: paths of this repository that documents name have to exist, so that a
//! claim leads to its test and a newcomer to the file.

use std::path::Path;

use anyhow::bail;

use crate::git_files;

/// The folders whose files documents name.
const FOLDERS: &[&str] =
    &["crates/", "xtask/", "deploy/", "integrations/", "packaging/", "examples/", "fuzz/"];

/// Looks at every path in backticks of every page.
///
/// # Errors
/// Names each line with a path that is not there.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut faults = Vec::new();
    for (file, text) in git_files::matching("*.md")? {
        for (line, content) in (1..).zip(text.lines()) {
            let missing = named_paths(content).filter(|path| !Path::new(path).exists());
            faults.extend(missing.map(|path| format!("{file}:{line}: there is no {path}")));
        }
    }
    if faults.is_empty() {
        println!("tidy: the paths that documents name exist");
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

/// The paths of this repository that a line names in backticks. Patterns and words to be replaced are none.
fn named_paths(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|text| {
        FOLDERS.iter().any(|folder| text.starts_with(folder))
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter))
            && !text.split('/').any(is_to_be_replaced)
    })
}

/// Whether a step of a path stands for any name, as in `crates/schema/data/vMINOR.txt`.
fn is_to_be_replaced(step: &str) -> bool {
    let capitals = step.split(|letter: char| !letter.is_ascii_uppercase()).map(str::len).max();
    capitals.is_some_and(|run| run > 2) && !step.ends_with(".md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_backticks_are_found_and_patterns_are_not() {
        let line =
            "see `crates/cli/src/main.rs` and `xtask`, `crates/*/tests`, `crates/schema/data/vMINOR.txt`";
        assert_eq!(named_paths(line).collect::<Vec<_>>(), ["crates/cli/src/main.rs"]);
        assert_eq!(named_paths("`fuzz/README.md`").collect::<Vec<_>>(), ["fuzz/README.md"]);
        assert_eq!(named_paths("crates/none/at/all").count(), 0, "not in backticks");
    }
}
