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
    files.ending(&ENDINGS).any(|path| files.text(path).is_some_and(|text| text.contains(name)))
        // A script may stand in a ConfigMap or a Job.
        || files
            .ending(&[".yaml", ".yml"])
            .any(|path| files.text(path).is_some_and(|text| text.contains(name) && text.lines().any(makes)))
}
