//! Objects that scripts, playbooks or people make.

use crate::Context;

/// Whether a script, a playbook or a text for people names an object.
pub(crate) fn is_scripted(context: &Context<'_>, name: &str) -> bool {
    const ENDINGS: [&str; 14] = [
        ".sh", ".bash", ".tf", ".py", ".md", ".adoc", ".ps1", ".j2", ".hcl", ".mk", "Makefile", "justfile",
        "Justfile", ".go",
    ];
    let files = &context.survey.files;
    let makes = |line: &str| line.contains(" create ") && line.split_whitespace().any(|word| word == name);
    files.ending(&ENDINGS).any(|path| files.text(path).is_some_and(|text| names(&text, name)))
        // A script may stand in a ConfigMap or a Job.
        || files
            .ending(&[".yaml", ".yml"])
            .any(|path| files.text(path).is_some_and(|text| text.contains(name) && text.lines().any(makes)))
}

/// Whether a file that is no manifest speaks of a name: a script or Terraform may make it.
pub(crate) fn is_spoken_of(context: &Context<'_>, name: &str) -> bool {
    let files = &context.survey.files;
    let others = files.paths().filter(|path| !path.ends_with(".yaml") && !path.ends_with(".yml"));
    others.into_iter().any(|path| files.text(path).is_some_and(|text| names(&text, name)))
}

/// Whether a text has a name that is no part of a longer one.
fn names(text: &str, name: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    text.match_indices(name).any(|(at, _)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + name.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_part_of_a_longer_name_is_none() {
        assert!(
            names("kubectl create secret generic shop-db", "shop-db") && names("a/shop-db.yaml", "shop-db")
        );
        assert!(!names("make-shop-db.sh shop-db-new", "shop-db"));
    }
}
