//! Folders whose files nobody applies as they are: what tests work on, and what is kept though it is no
//! longer in use.

/// Folder names that say so.
const NAMES: [&str; 21] = [
    "__snapshots__",
    "archive",
    "archived",
    "archives",
    "attic",
    "chainsaw-test",
    "deprecated",
    "disabled",
    "exclude",
    "excluded",
    "fixtures",
    "graveyard",
    "inactive",
    "not-used",
    "notused",
    "obsolete",
    "retired",
    "testcases",
    "testdata",
    "tests",
    "unused",
];
/// Parts of folder names that say the same, as in `z-archive`, `archived-apps`, `helm-tests` and
/// `invalid-examples`.
const MARKS: [&str; 7] = ["archive", "archived", "deprecated", "disabled", "invalid", "obsolete", "tests"];

/// Folder names that say: this is to be read, or copied, or belongs to a test. `test` and `demo` are names of
/// environments too.
const EXAMPLES: [&str; 8] = ["doc", "docs", "e2e", "example", "examples", "sample", "samples", "website"];

/// Whether a file is an example or belongs to a test, by the folders above it or by its own name.
pub fn is_example(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let words = name.split(['-', '_', '.']);
    put_away(path).is_some()
        || lies_below(path, &EXAMPLES)
        || words.into_iter().any(|word| matches!(word, "example" | "sample"))
}

/// The folder above a file that says that what lies below it is put away, if there is one.
pub fn put_away(path: &str) -> Option<&str> {
    let ends = path.match_indices('/').map(|(at, _)| &path[..at]);
    ends.into_iter().find(|folder| says_so(folder.rsplit('/').next().unwrap_or_default(), &NAMES))
}

/// Whether one of the folders above a file has one of these names, or a name that says that it was put away.
pub fn lies_below(path: &str, names: &[&str]) -> bool {
    path.split('/').rev().skip(1).any(|step| says_so(step, names))
}

fn says_so(step: &str, names: &[&str]) -> bool {
    let step = step.to_ascii_lowercase();
    let bare = step.trim_matches(['.', '_']);
    let is_marked = bare.split(['-', '_']).any(|part| MARKS.contains(&part));
    names.contains(&step.as_str()) || names.contains(&bare) || is_marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_say_that_they_are_put_away() {
        for (path, folder) in [
            ("apps/.archive/web/app.yaml", Some("apps/.archive")),
            ("tf/.notused/main.tf", Some("tf/.notused")),
            ("argocd/disabled/app.yaml", Some("argocd/disabled")),
            ("a/tests/b/fixtures/app.yaml", Some("a/tests")),
            ("addons/exclude/app.yaml", Some("addons/exclude")),
            ("src/__snapshots__/app.yaml", Some("src/__snapshots__")),
            ("z-archive/app.yaml", Some("z-archive")),
            ("hack/invalid-examples/app.yaml", Some("hack/invalid-examples")),
            ("charts/helm-tests/app.yaml", Some("charts/helm-tests")),
            ("apps/disabled.yaml", None),
            ("apps/test/app.yaml", None),
            ("apps/backup/velero.yaml", None),
            ("apps/snapshots/app.yaml", None),
        ] {
            assert_eq!(put_away(path), folder, "{path}");
        }
        assert!(is_example("docs/cluster.yaml") && is_example("clusters/cluster.example.yaml"));
        assert!(!is_example("clusters/test-1.yaml") && !is_example("demo.yaml"));
        assert!(lies_below("backups/a.yaml", &["backups"]) && lies_below("old-disabled/a.yaml", &[]));
        assert!(!lies_below("backups.yaml", &["backups"]));
    }
}
