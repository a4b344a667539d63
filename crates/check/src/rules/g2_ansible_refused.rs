//! # What Ansible refuses when it gets there
//!
//! A task with two modules is refused before anything runs. A role of another name than its folder, a handler
//! that is notified by another name than it has, and a template that is not where the role keeps its
//! templates end the run in the middle: what came before is done, the rest is not.
//!
//! People see: `conflicting action statements: shell, copy`, `the role 'dockr' was not found`,
//! `The requested handler 'restart kubelet' was not found`, `Could not find or access 'kubeadm.conf.j2'`.
//!
//! ## Bad
//! ```yaml
//! - name: Set up the node
//!   ansible.builtin.command: kubeadm join
//!   ansible.builtin.copy: {src: admin.conf, dest: /etc/kubernetes/admin.conf}
//! ```
//! ## Good
//! ```yaml
//! - name: Set up the node
//!   ansible.builtin.command: kubeadm join
//! - name: Copy the configuration
//!   ansible.builtin.copy: {src: admin.conf, dest: /etc/kubernetes/admin.conf}
//! ```
//! ## When to suppress
//! Where roles or templates are put there by something that runs before.

use std::collections::BTreeSet;

use tiphys_diag::{Diagnostic, Severity, similar_names};
use tiphys_graph::{
    Files,
    tools::{
        ansible::{Ansible, Task},
        node_span,
    },
};
use tiphys_yaml::Node;

use crate::{Context, Finding, Report, Rule, support::placeholders};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G2-ansible-refused",
    incident: "G2",
    severity: Severity::Error,
    title: "a task, role, handler or template that Ansible refuses",
    page: page!("g2_ansible_refused.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let (files, ansible) = (&context.survey.files, &context.survey.tools().ansible);
    if ansible.files.is_empty() {
        return;
    }
    let (roles, handlers) = (roles(files), handlers(ansible));
    for (path, file) in ansible.files.iter().filter(|(path, _)| !placeholders::is_skeleton(path)) {
        let of_plays = file.items.iter().flat_map(|play| {
            let mut found = missing_roles(files, path, play, &roles);
            found.extend(role_keywords(files, path, play));
            found
        });
        let of_tasks = file.tasks.iter().flat_map(|task| {
            let plain = |diagnostic: Diagnostic| Finding::new(RULE.incident, diagnostic);
            let found = [
                two_modules(files, task).map(plain),
                no_argument(files, task).map(plain),
                no_handler(files, task, &handlers),
                no_template(files, task),
            ];
            found.into_iter().flatten()
        });
        of_plays.chain(of_tasks).for_each(|finding| report.add(finding.likely()));
    }
}

/// The modules that come with Ansible and that people write without their collection, as far as tasks use
/// them much.
const MODULES: [&str; 34] = [
    "apt",
    "apt_key",
    "apt_repository",
    "assert",
    "blockinfile",
    "command",
    "copy",
    "cron",
    "debug",
    "dnf",
    "fail",
    "fetch",
    "file",
    "get_url",
    "group",
    "hostname",
    "import_role",
    "import_tasks",
    "include_role",
    "include_tasks",
    "lineinfile",
    "package",
    "pause",
    "pip",
    "replace",
    "script",
    "service",
    "set_fact",
    "shell",
    "stat",
    "systemd",
    "template",
    "uri",
    "wait_for",
];

fn two_modules(files: &Files, task: &Task) -> Option<Diagnostic> {
    // `with_community.general.filetree` names a lookup that a task is repeated for.
    let is_full =
        |word: &str| word.split('.').count() == 3 && !word.contains([' ', '/']) && !word.starts_with("with_");
    let is_module = |word: &str| MODULES.contains(&word) || is_full(word);
    let keys = task.node.pairs()?.iter().filter_map(|(key, _)| Some((key.as_str()?, key)));
    let found: Vec<(&str, &Node)> = keys.filter(|(word, _)| is_module(word)).collect();
    let [(first, at), (second, other), ..] = found.as_slice() else { return None };
    let diagnostic = RULE
        .diagnostic(format!("conflicting action statements: {first}, {second}"))
        .at(node_span(files, &task.file, other), "a second module in one task")
        .see(node_span(files, &task.file, at), "the task already has one")
        .because("a task runs one module; Ansible refuses the file before anything runs")
        .help("make two tasks of it");
    Some(diagnostic)
}

/// A keyword of tasks that stands among the arguments of a module, one step too far to the right.
fn no_argument(files: &Files, task: &Task) -> Option<Diagnostic> {
    const KEYWORDS: [&str; 12] = [
        "become",
        "become_user",
        "changed_when",
        "delegate_to",
        "failed_when",
        "ignore_errors",
        "loop",
        "notify",
        "register",
        "run_once",
        "when",
        "with_items",
    ];
    // These take what they are given, or tasks of their own.
    let takes_all = |module: &str| {
        module == "set_fact" || module.starts_with("include_") || module.starts_with("import_")
    };
    let module = task.module();
    let is_own = task.keyword == module || task.keyword.starts_with("ansible.builtin.");
    if !is_own || !MODULES.contains(&module) || takes_all(module) {
        return None;
    }
    let keys = task.arguments.pairs()?.iter().filter_map(|(key, _)| Some((key.as_str()?, key)));
    let (word, node) = keys.into_iter().find(|(word, _)| KEYWORDS.contains(word))?;
    let diagnostic = RULE
        .diagnostic(format!("Unsupported parameters for ({module}) module: {word}"))
        .at(node_span(files, &task.file, node), "this is a keyword of the task")
        .because("the run ends at this task: the module refuses what it does not know")
        .help(format!("write {word} at the level of {}", task.keyword));
    Some(diagnostic)
}

/// The names of the roles of the repository.
fn roles(files: &Files) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in files.paths() {
        let steps: Vec<&str> = path.split('/').collect();
        found.extend(steps.windows(2).filter(|step| step[0] == "roles").map(|step| step[1].to_owned()));
    }
    found
}

/// Roles of a play that are nearly called like one that there is, and are not there.
fn missing_roles(
    files: &Files,
    path: &std::sync::Arc<str>,
    play: &Node,
    roles: &BTreeSet<String>,
) -> Vec<Finding> {
    // A role that no play names, and that has the wanted name and a word more.
    let longer = |name: &str| {
        let is_longer = |role: &&String| {
            role.strip_prefix(name).is_some_and(|rest| rest.starts_with(['-', '_']))
                || role.strip_suffix(name).is_some_and(|rest| rest.ends_with(['-', '_']))
        };
        let folder = path.rsplit_once('/').map_or(String::new(), |(above, _)| format!("{above}/"));
        let mut all = roles.iter().filter(is_longer);
        let only = all.next().filter(|_| all.next().is_none())?;
        let lists = ["requirements.yml", "requirements.yaml"];
        let is_galaxy = files.ending(&lists).any(|list| files.text(list).is_some_and(|it| it.contains(name)));
        let is_beside = files.has_folder(&format!("{folder}roles/{only}"));
        (is_beside && !is_galaxy).then_some(only.as_str())
    };
    let listed = play.get("hosts").and(play.get("roles")).and_then(Node::items).unwrap_or_default();
    let mut found = Vec::new();
    for entry in listed {
        let name = entry.as_str().or_else(|| entry.get("role").or(entry.get("name"))?.as_str());
        let Some(name) = name.filter(|name| !name.contains(['.', '/', '{', ' ']) && !roles.contains(*name))
        else {
            continue;
        };
        let near =
            similar_names::nearest_slip(name, roles.iter().map(String::as_str)).or_else(|| longer(name));
        let Some(nearest) = near else { continue };
        let mut diagnostic = RULE
            .diagnostic(format!("the role '{name}' was not found"))
            .at(node_span(files, path, entry), "no folder of roles has it")
            .because("Ansible looks for a role by the name of its folder");
        diagnostic.severity = Severity::Warning;
        found.push(Finding::new(RULE.incident, diagnostic).perhaps(name, Some(nearest)));
    }
    found
}

/// Arguments of `include_role` in the list of roles of a play: there they are variables of the role.
fn role_keywords(files: &Files, path: &std::sync::Arc<str>, play: &Node) -> Vec<Finding> {
    const ARGUMENTS: [&str; 4] = ["defaults_from", "handlers_from", "tasks_from", "vars_from"];
    let listed = play.get("hosts").and(play.get("roles")).and_then(Node::items).unwrap_or_default();
    let pairs = listed.iter().flat_map(|entry| entry.pairs().unwrap_or_default());
    let found =
        pairs.filter_map(|(key, _)| Some((key.as_str().filter(|word| ARGUMENTS.contains(word))?, key)));
    found
        .map(|(word, key)| {
            let mut diagnostic = RULE
                .diagnostic(format!("{word} is no keyword of a role in a list of roles"))
                .at(node_span(files, path, key), "taken for a variable of the role")
                .because(
                    "Ansible runs main of the role all the same: only include_role and import_role take it",
                )
                .help("call the role by ansible.builtin.include_role among the tasks");
            diagnostic.severity = Severity::Warning;
            Finding::new(RULE.incident, diagnostic)
        })
        .collect()
}

/// What handlers are called by: their names and the topics that they listen to.
fn handlers(ansible: &Ansible) -> BTreeSet<String> {
    let tasks = ansible.files.values().flat_map(|file| &file.tasks);
    let words = tasks.flat_map(|task| [task.node.get("name"), task.node.get("listen")].into_iter().flatten());
    let mut found = BTreeSet::new();
    for word in words {
        found.extend(word.as_str().map(str::to_owned));
        found.extend(word.items().unwrap_or_default().iter().filter_map(Node::as_str).map(str::to_owned));
    }
    found
}

/// A handler that is nearly called like what is notified; only its exact name is heard.
fn no_handler(files: &Files, task: &Task, handlers: &BTreeSet<String>) -> Option<Finding> {
    let notify = task.node.get("notify")?;
    let named = notify.as_str().into_iter().map(|name| (name, notify));
    let listed = notify.items().unwrap_or_default().iter().filter_map(|it| Some((it.as_str()?, it)));
    // A role's name may stand before the handler's.
    let own = |name: &str| name.rsplit(" : ").next().unwrap_or(name).trim().to_owned();
    let is_there = |name: &str| handlers.contains(name) || handlers.contains(&own(name));
    let (name, node) = named.chain(listed).find(|(name, _)| !name.contains("{{") && !is_there(name))?;
    let same = handlers.iter().find(|handler| handler.eq_ignore_ascii_case(name)).map(String::as_str);
    let meant = same.or_else(|| similar_names::nearest_slip(name, handlers.iter().map(String::as_str)))?;
    let mut diagnostic = RULE
        .diagnostic(format!("The requested handler '{name}' was not found"))
        .at(node_span(files, &task.file, node), "no handler has this name")
        .because("the task fails when it has changed something, and never before")
        .help(format!("there is a handler {meant:?}"));
    diagnostic.severity = Severity::Warning;
    Some(Finding::new(RULE.incident, diagnostic).with_spelling(name, meant))
}

/// A template of a role that is in none of its folders, nor anywhere else by its name.
fn no_template(files: &Files, task: &Task) -> Option<Finding> {
    if task.module() != "template" {
        return None;
    }
    let source = task.argument("src").filter(|src| !src.contains("{{") && !src.starts_with('/'))?;
    let (role, _) = task.file.rsplit_once("/tasks/")?;
    let folder = format!("{role}/templates");
    let base = source.rsplit('/').next().unwrap_or(source);
    let is_there = files
        .paths()
        .any(|path| path.strip_suffix(base).is_some_and(|above| above.is_empty() || above.ends_with('/')));
    if is_there || !files.has_folder(&folder) {
        return None;
    }
    let mut diagnostic = RULE
        .diagnostic(format!("Could not find or access '{source}'"))
        .at(node_span(files, &task.file, &task.key), format!("{folder} does not have it"))
        .because("the run ends at this task, and what came before it is done");
    let inside = format!("{folder}/");
    let beside = files.paths().filter_map(|path| path.strip_prefix(inside.as_str()));
    if let Some(nearest) = similar_names::nearest_slip(source, beside) {
        diagnostic = diagnostic.help(format!("there is {nearest}"));
    }
    diagnostic.severity = Severity::Warning;
    Some(Finding::new(RULE.incident, diagnostic))
}
