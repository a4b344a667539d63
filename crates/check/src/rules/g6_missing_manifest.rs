//! # A command applies a file that is not there
//!
//! A script, a playbook, a pipeline or a provisioner of Terraform hands kubectl a file of the repository by
//! its path. When the file is moved or renamed, the command keeps the old path, and nobody sees it before the
//! cluster is set up anew.
//!
//! People see: `error: the path "k8s/namespace.yaml" does not exist`, `error: must build at directory: not a
//! valid directory`.
//!
//! The rule speaks where the folder is there and the file is not, or where exactly one file of that name lies
//! in another folder; and only if the script neither makes the file nor goes to another folder.
//!
//! ## Bad
//! ```sh
//! kubectl apply -f bootstrap/root-app.yaml     # it is bootstrap/root.yaml
//! ```
//! ## Good
//! ```sh
//! kubectl apply -f bootstrap/root.yaml
//! ```
//! ## When to suppress
//! Where something that runs before writes the file.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{
    Files,
    tools::{What, Writer},
};
use tiphys_vfs::{base_name, join, parent};

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, placeholders, sparse_checkout, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G6-missing-manifest",
    incident: "G6",
    severity: Severity::Warning,
    title: "a command applies a file that is not there",
    page: page!("g6_missing_manifest.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    if sparse_checkout::is_sparse(files) {
        return;
    }
    let mut once = Once::default();
    for writer in &context.survey.tools().writers {
        let What::Absent { path, folders } = &writer.what else { continue };
        let file = &writer.span.file;
        if placeholders::is_skeleton(file) || unused_files::is_in_unused_folder(file) {
            continue;
        }
        if let Some(finding) = missing(files, writer, path, folders) {
            once.add(path, finding);
        }
    }
    once.report(report);
}

fn missing(files: &Files, writer: &Writer, path: &str, folders: &[String]) -> Option<Finding> {
    let base = base_name(path.trim_end_matches('/'));
    let meant: Vec<String> = folders.iter().filter_map(|folder| join(folder, path).ok()).collect();
    if meant.iter().any(|it| unused_files::is_git_ignored(files, it) || it.contains("/.terraform/")) {
        return None;
    }
    // Where a name of several files is made up, as often in examples, none is meant.
    let mut named = files.paths().filter(|it| base_name(it) == base && !base.is_empty());
    let moved = named.next().filter(|_| named.next().is_none());
    let beside = meant.iter().find_map(|it| {
        let above = parent(it).filter(|above| !above.is_empty() && path.contains('/'))?;
        files.has_folder(above).then(|| above.to_owned())
    });
    if moved.is_none() && beside.is_none() {
        return None;
    }
    let near = beside.as_ref().and_then(|above| {
        let entries = files.tree().read_dir(above).unwrap_or_default();
        let names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
        similar_names::nearest_slip(base, names.iter().map(String::as_str)).map(str::to_owned)
    });
    let diagnostic = RULE
        .diagnostic(format!("error: the path {path:?} does not exist"))
        .at(writer.span.clone(), format!("{} applies it here", writer.tool.name()))
        .because("kubectl ends with an error, and what the command was to bring is not in the cluster");
    let diagnostic = match (moved, &near, &beside) {
        (Some(moved), ..) => diagnostic.help(format!("there is {moved}")),
        (None, Some(near), _) => diagnostic.help(format!("there is {near} beside it")),
        (None, None, Some(above)) => diagnostic.help(format!("{above} does not have it")),
        (None, None, None) => diagnostic,
    };
    Some(Finding::new(RULE.incident, diagnostic).likely())
}
