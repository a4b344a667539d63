//! # A playbook reads a file that is not there
//!
//! `playbook_dir` is the folder of the playbook that was started, and `role_path` that of the role. A path that
//! goes on from there has to be right from that folder; where the repository has the file elsewhere, the run
//! ends at the task.
//!
//! People see: `Could not find or access '/srv/ansible/playbooks/tasks/cni.yaml' on the Ansible Controller`,
//! `could not locate file in lookup`.
//!
//! ## Bad
//! ```yaml
//! # playbooks/cluster.yaml; the file is tasks/cni.yaml
//! - include_tasks: "{{ playbook_dir }}/tasks/cni.yaml"
//! ```
//! ## Good
//! ```yaml
//! - include_tasks: "{{ playbook_dir }}/../tasks/cni.yaml"
//! ```
//! ## When to suppress
//! Where something that runs before puts the file there.

use std::collections::BTreeSet;

use tiphys_diag::Severity;
use tiphys_graph::{
    Files,
    tools::{
        ansible::{Ansible, Shape, Task},
        node_span,
    },
};
use tiphys_vfs::{base_name, join, parent};
use tiphys_yaml::Node;

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, placeholders, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G2-missing-file",
    incident: "G2",
    severity: Severity::Warning,
    title: "a playbook reads a file that is not there",
    page: page!("g2_missing_file.rs"),
    check,
};

/// Modules that read a file of the machine that Ansible runs on, and the arguments that name it.
const READERS: [(&str, &[&str]); 9] = [
    ("copy", &["src"]),
    ("import_tasks", &["file"]),
    ("include_tasks", &["file"]),
    ("include_vars", &["file"]),
    ("k8s", &["src", "template"]),
    ("script", &["cmd"]),
    ("template", &["src"]),
    ("unarchive", &["src"]),
    ("helm", &["values_files"]),
];

fn check(context: &Context<'_>, report: &mut Report) {
    let (files, ansible) = (&context.survey.files, &context.survey.tools().ansible);
    let mut once = Once::default();
    for (path, file) in &ansible.files {
        if placeholders::is_skeleton(path) || unused_files::is_in_unused_folder(path) {
            continue;
        }
        for (task, named) in file.tasks.iter().filter_map(|task| Some((task, file_named_by(task)?))) {
            let Some((rest, folders)) = from_variable(ansible, task, named) else { continue };
            if let Some(finding) = missing(files, task, rest, &folders) {
                once.add(rest, finding);
            }
        }
    }
    once.report(report);
}

/// The file that a task reads.
fn file_named_by(task: &Task) -> Option<&str> {
    let is_remote = |key: &str| task.argument(key).is_some_and(|it| matches!(it, "yes" | "true" | "True"));
    let (_, arguments) = READERS.iter().find(|(module, _)| *module == task.module())?;
    if is_remote("remote_src") || task.node.get("when").is_some() {
        return None;
    }
    arguments.iter().find_map(|name| task.argument(name)).or_else(|| task.text())
}

/// What follows `{{ playbook_dir }}/` or `{{ role_path }}/` in a path, and the folders that the variable may
/// stand for.
fn from_variable<'t>(ansible: &Ansible, task: &Task, named: &'t str) -> Option<(&'t str, BTreeSet<String>)> {
    let (variable, rest) = named.trim().strip_prefix("{{")?.split_once("}}/")?;
    let is_plain = !rest.contains(['{', '*', '$', '?', ' ']) && !rest.is_empty();
    let folder = |path: &str| parent(path).unwrap_or_default().to_owned();
    let folders: BTreeSet<String> = match variable.trim() {
        "playbook_dir" => {
            // The tasks of a playbook run from its own folder, or from that of one that imports it.
            let books = ansible.files.iter().filter(|(_, file)| file.shape == Shape::Playbook);
            let own = ansible.files.get(&task.file).is_some_and(|file| file.shape == Shape::Playbook);
            let is_imported = || {
                let mut includes = ansible.files.values().flat_map(|file| &file.includes);
                includes.any(|it| it.file.as_deref() == Some(task.file.as_ref()))
            };
            if own && !is_imported() {
                [folder(&task.file)].into()
            } else {
                books.map(|(path, _)| folder(path)).collect()
            }
        }
        "role_path" => {
            let (role, _) = task.file.rsplit_once("/tasks/").or(task.file.rsplit_once("/handlers/"))?;
            [role.to_owned()].into()
        }
        _ => return None,
    };
    (is_plain && !folders.is_empty()).then_some((rest, folders))
}

fn missing(files: &Files, task: &Task, rest: &str, folders: &BTreeSet<String>) -> Option<Finding> {
    let meant: Vec<String> = folders.iter().filter_map(|folder| join(folder, rest).ok()).collect();
    let is_there =
        |path: &String| files.contains(path) || files.has_folder(path) || files.tree().exists(path);
    if meant.is_empty() || meant.iter().any(|it| is_there(it) || unused_files::is_git_ignored(files, it)) {
        return None;
    }
    // A name that no file of the repository has is made on the way, as often as not.
    let base = base_name(rest.trim_end_matches('/'));
    let moved = files.paths().find(|path| base_name(path) == base)?;
    let diagnostic = RULE
        .diagnostic(format!("Could not find or access '{}'", meant[0]))
        .at(node_span(files, &task.file, place(task)), "nothing is there")
        .because("the run ends at this task, and what came before it is done")
        .help(format!("there is {moved}"));
    Some(Finding::new(RULE.incident, diagnostic).likely())
}

/// Where a task says its file.
fn place(task: &Task) -> &Node {
    let of_argument = ["src", "file", "template"].iter().find_map(|name| task.arguments.get(name));
    of_argument.unwrap_or(&task.arguments)
}
