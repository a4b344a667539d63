//! # A playbook is used as a task list, or the reverse
//!
//! `import_tasks` and `include_tasks` want a file that is a list of tasks; `import_playbook` wants one that
//! is a list of plays. A play (`hosts:` with `tasks:`) that is read as a task has two action statements, and
//! the run ends before the first task of the whole playbook; the other way round a task is a play without
//! hosts.
//!
//! People see: `conflicting action statements: hosts, tasks`, `'x' is not a valid attribute for a Play`,
//! `Could not find or access 'x.yml'`.
//!
//! ## Bad
//! ```yaml
//! # site.yml
//! - hosts: all
//!   tasks:
//!     - import_tasks: playbooks/load-balancer.yml
//! # playbooks/load-balancer.yml
//! - hosts: control
//!   tasks: []
//! ```
//! ## Good
//! ```yaml
//! # site.yml
//! - import_playbook: playbooks/load-balancer.yml
//! ```
//! ## When to suppress
//! Where the included file is written by something that runs before Ansible.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_diag::{Diagnostic, Severity};
use tiphys_graph::{
    Files,
    tools::{
        ansible::{Ansible, Include, Shape, Use},
        node_span,
    },
};
use tiphys_value::Location;
use tiphys_vfs::parent;
use tiphys_yaml::Profile;

use crate::{Context, Finding, Report, Rule, support::placeholders};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G2-play-as-tasks",
    incident: "G2",
    severity: Severity::Error,
    title: "an Ansible file is used for what it is not",
    page: page!("g2_play_as_tasks.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let (files, ansible) = (&context.survey.files, &context.survey.tools().ansible);
    for (path, file) in &ansible.files {
        for include in &file.includes {
            let found = match &include.file {
                Some(target) => misused(files, ansible, include, target),
                None => missing(files, path, include),
            };
            if let Some(diagnostic) = found {
                report.add(Finding::new(RULE.incident, diagnostic));
            }
        }
    }
    let includes = ansible.files.values().flat_map(|file| &file.includes);
    let included: BTreeSet<&Arc<str>> = includes.filter_map(|include| include.file.as_ref()).collect();
    for path in files.ending(&[".yml", ".yaml"]) {
        if let Some(diagnostic) = unreadable(files, path, included.contains(path)) {
            report.add(Finding::new(RULE.incident, diagnostic).likely());
        }
    }
}

/// A playbook, or the tasks of a role or of another file, that is no YAML: told by its first lines, by its
/// folder, and by who includes it.
fn unreadable(files: &Files, path: &Arc<str>, is_included: bool) -> Option<Diagnostic> {
    let is_role = is_included || is_of_role(path);
    let text = files.text(path)?;
    // Templates of playbooks, and manifests; what a role's own folder holds is read as it is.
    if !is_role && ["apiVersion:", "{%"].iter().any(|mark| text.contains(mark)) {
        return None;
    }
    let mut lines = text.lines().map(str::trim_end).filter(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#') && line != "---"
    });
    let first = lines.next()?;
    let is_item = first.starts_with("- name:") || first.starts_with("- hosts:");
    let of_play = |line: &str| line.starts_with("- hosts:") || line.starts_with("  hosts:");
    if !is_item || !(is_role || text.lines().any(of_play)) || placeholders::is_skeleton(path) {
        return None;
    }
    let error = tiphys_yaml::parse_documents(&text, Profile::Go3).err()?;
    let line = error.position().map_or(1, |at| at.line);
    let at = Location::new(path.clone(), line, 0);
    let diagnostic = RULE
        .diagnostic(format!("{path} is no YAML: {}", error.to_string().trim_start_matches("yaml: ")))
        .at(files.span(&at), "it cannot be read on from here")
        .because("Ansible reads the whole file before it runs anything of it");
    Some(diagnostic.help("a value that begins with {{ needs quotes around it"))
}

/// Whether a file is one of the tasks or handlers of a role.
fn is_of_role(path: &str) -> bool {
    let steps: Vec<&str> = path.split('/').collect();
    steps.windows(3).any(|step| step[0] == "roles" && matches!(step[2], "tasks" | "handlers"))
}

/// A file that is not what it is used as.
fn misused(files: &Files, ansible: &Ansible, include: &Include, target: &Arc<str>) -> Option<Diagnostic> {
    let used = ansible.files.get(target)?;
    let (message, label, what, help) = match (include.usage, used.shape) {
        (Use::Tasks, Shape::Playbook) => (
            format!(
                "conflicting action statements: hosts, tasks: {target} is a playbook, but {} reads it as tasks",
                include.keyword
            ),
            "a list of tasks is wanted here",
            "this is a play",
            format!(
                "use `import_playbook: {}` at the top of a playbook, or leave only the tasks in {target}",
                include.target
            ),
        ),
        (Use::Playbook, Shape::Tasks) => (
            format!("{target} is a list of tasks, but {} reads it as a playbook", include.keyword),
            "a list of plays is wanted here",
            "this is a task",
            format!(
                "use `import_tasks: {}` inside of a play, or add `hosts` and `tasks` to {target}",
                include.target
            ),
        ),
        _ => return None,
    };
    let first = used.items.first().map(|item| node_span(files, target, item))?;
    let diagnostic = RULE.diagnostic(message).at(include.span.clone(), label).see(first, what);
    Some(
        diagnostic
            .because("Ansible reads every import before it runs anything, so not even the first task runs")
            .help(help),
    )
}

/// A file that is not there. Of folders that are not in the repository at all, nothing can be said.
fn missing(files: &Files, path: &str, include: &Include) -> Option<Diagnostic> {
    let is_file = include.target.ends_with(".yml") || include.target.ends_with(".yaml");
    if include.is_open || !is_file || include.usage == Use::Either || include.target.starts_with('/') {
        return None;
    }
    let folder = parent(path).unwrap_or_default();
    let wanted = tiphys_vfs::join(folder, &include.target).ok()?;
    let above = parent(&wanted).unwrap_or_default();
    if !above.is_empty() && !files.has_folder(above) {
        return None;
    }
    let message = format!("Could not find or access '{}'", include.target);
    let diagnostic = RULE.diagnostic(message).at(include.span.clone(), format!("there is no {wanted}"));
    Some(diagnostic.because("it is in none of the folders in which Ansible looks for it: beside the file, in `tasks`, beside the playbook"))
}
