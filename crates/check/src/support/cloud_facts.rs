//! What is common to facts of a cloud that are written out in many files.

use std::collections::BTreeSet;

use tiphys_graph::environment_of;

/// Whether a place lies in a line that is a comment.
pub(crate) fn is_comment(text: &str, at: usize) -> bool {
    let line = text[..at].rsplit('\n').next().unwrap_or_default().trim_start();
    line.starts_with('#') || line.starts_with("//")
}

/// Whether a file is an example, a test or a document.
pub(crate) fn is_example(path: &str) -> bool {
    let lower = path.to_lowercase();
    const WORDS: [&str; 9] =
        ["example", "test", "sample", "docs/", "fixture", "demo", "template", "backup", "archive"];
    WORDS.iter().any(|word| lower.contains(word))
}

/// Whether an id was made up: few different digits, or a run of them.
pub(crate) fn is_placeholder(id: &str) -> bool {
    let digits = id.split_once('-').map_or(id, |(_, digits)| digits);
    let different: BTreeSet<char> = digits.chars().collect();
    different.len() <= 3
        || ["12345", "abcdef", "23456", "0a1b2c"].iter().any(|run| digits.contains(run))
        || matches!(id, "123456789012" | "111122223333" | "444455556666" | "000000000000" | "602401143452")
}

/// An environment in a sentence; without a name it is the whole repository.
pub(crate) fn environment_phrase(environment: &str) -> String {
    match environment {
        "" => "the repository".to_owned(),
        name => format!("environment {name}"),
    }
}

/// The environment that a file is for: of its folder, or of its name (`values-prod.yaml`, `prod.tfvars`).
pub(crate) fn environment(path: &str) -> String {
    const NAMES: [&str; 8] = ["dev", "test", "qa", "stage", "staging", "prod", "production", "sandbox"];
    let folder = environment_of(path);
    let base = path.rsplit('/').next().unwrap_or(path);
    let by_name = base.split(['.', '-', '_']).find(|word| NAMES.contains(word));
    match (folder.rsplit('/').next(), by_name) {
        (Some(folder), _) if !folder.is_empty() => folder.to_owned(),
        (_, Some(name)) => name.to_owned(),
        _ => String::new(),
    }
}
