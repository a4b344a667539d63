//! # Arguments that an Ansible module does not take, or lacks
//!
//! A module refuses an argument that it does not know, and runs only with those that it has to have. Both are
//! seen when the run comes to the task: what came before it is done, the rest is not. Told are the modules
//! that come with Ansible and those of `kubernetes.core`; of unknown arguments those that are nearly one that
//! the module takes.
//!
//! People see: `Unsupported parameters for (copy) module: destination`, `missing required arguments: dest`.
//!
//! ## Bad
//! ```yaml
//! - ansible.builtin.copy: {src: admin.conf, destination: /etc/kubernetes/admin.conf}
//! ```
//! ## Good
//! ```yaml
//! - ansible.builtin.copy: {src: admin.conf, dest: /etc/kubernetes/admin.conf}
//! ```
//! ## When to suppress
//! Where a module of the same name, with other arguments, takes its place.

use std::{collections::HashMap, sync::LazyLock};

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{
    Files,
    tools::{ansible::Task, node_span},
};
use tiphys_yaml::Node;

use crate::{Context, Finding, Report, Rule, support::placeholders};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G2-module-arguments",
    incident: "G2",
    severity: Severity::Warning,
    title: "arguments that an Ansible module does not take, or lacks",
    page: page!("g2_module_arguments.rs"),
    check,
};

/// An argument of a module: its names, and whether it has to be given.
struct Argument {
    names: Vec<&'static str>,
    is_required: bool,
}

/// The arguments of modules, by their full names.
static MODULES: LazyLock<HashMap<&str, Vec<Argument>>> = LazyLock::new(|| {
    let lines = include_str!("../../data/ansible-arguments.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    let read = |word: &'static str| Argument {
        names: word.trim_end_matches('!').split('=').collect(),
        is_required: word.ends_with('!'),
    };
    lines.map(|(module, words)| (module, words.split_whitespace().map(read).collect())).collect()
});

fn check(context: &Context<'_>, report: &mut Report) {
    let (files, ansible) = (&context.survey.files, &context.survey.tools().ansible);
    for (path, file) in ansible.files.iter().filter(|(path, _)| !placeholders::is_skeleton(path)) {
        // Arguments that all tasks are given may stand there.
        if files.text(path).is_some_and(|text| text.contains("module_defaults")) {
            continue;
        }
        for task in &file.tasks {
            check_task(files, task).into_iter().for_each(|finding| report.add(finding.likely()));
        }
    }
}

/// The arguments of the module that a task means, if it is one of those that are known, and not the
/// repository's own.
fn arguments(files: &Files, task: &Task) -> Option<&'static [Argument]> {
    let module = task.module();
    let is_own = || {
        files.ending(&[".py", ".ps1"]).any(|path| {
            path.contains("library/") && path.rsplit('/').next().is_some_and(|it| it.starts_with(module))
        })
    };
    let names = match task.keyword.split_once('.') {
        Some(_) => vec![task.keyword.replace("ansible.legacy.", "ansible.builtin.")],
        None => vec![format!("ansible.builtin.{module}"), format!("kubernetes.core.{module}")],
    };
    let known = names.iter().find_map(|name| MODULES.get(name.as_str()))?;
    (task.keyword.contains('.') || !is_own()).then_some(known.as_slice())
}

fn check_task(files: &Files, task: &Task) -> Option<Finding> {
    let module = task.module();
    let known = arguments(files, task)?;
    let given: Vec<(&str, &Node)> =
        task.arguments.pairs()?.iter().filter_map(|(key, _)| Some((key.as_str()?, key))).collect();
    // What a variable or another key of the task adds is not seen.
    if task.node.get("args").is_some() || given.iter().any(|(word, _)| word.contains("{{") || *word == "<<") {
        return None;
    }
    let names = || known.iter().flat_map(|it| it.names.iter().copied());
    for (word, node) in given.iter().filter(|(word, _)| !names().any(|name| name == *word)) {
        let is_longer = |name: &&str| name.len() > 3 && word.starts_with(name);
        let Some(meant) = similar_names::nearest_slip(word, names()).or_else(|| names().find(is_longer))
        else {
            continue;
        };
        let diagnostic = RULE
            .diagnostic(format!("Unsupported parameters for ({module}) module: {word}"))
            .at(node_span(files, &task.file, node), "the module does not take it")
            .because("the run ends at this task, and what came before it is done");
        return Some(Finding::new(RULE.incident, diagnostic).perhaps(word, Some(meant)));
    }
    let is_given = |it: &Argument| given.iter().any(|(word, _)| it.names.contains(word));
    let lacked = known.iter().find(|it| it.is_required && !is_given(it))?;
    let diagnostic = RULE
        .diagnostic(format!("missing required arguments: {}", lacked.names[0]))
        .at(node_span(files, &task.file, &task.key), format!("{module} does not run without"))
        .because("the run ends at this task, and what came before it is done");
    Some(Finding::new(RULE.incident, diagnostic))
}
