//! Tasks.

use std::sync::Arc;

use tiphys_yaml::Node;

/// Keys of a task that are no module (Ansible, "Playbook Keywords").
const KEYWORDS: [&str; 45] = [
    "name",
    "when",
    "register",
    "become",
    "become_user",
    "become_method",
    "become_flags",
    "become_exe",
    "tags",
    "vars",
    "loop",
    "loop_control",
    "notify",
    "listen",
    "ignore_errors",
    "ignore_unreachable",
    "changed_when",
    "failed_when",
    "until",
    "retries",
    "delay",
    "delegate_to",
    "delegate_facts",
    "run_once",
    "no_log",
    "environment",
    "check_mode",
    "diff",
    "args",
    "async",
    "poll",
    "any_errors_fatal",
    "throttle",
    "timeout",
    "debugger",
    "collections",
    "connection",
    "port",
    "remote_user",
    "module_defaults",
    "block",
    "rescue",
    "always",
    "hosts",
    "gather_facts",
];
/// Keys of blocks and plays that hold tasks.
const HOLDERS: [&str; 8] =
    ["block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers", "roles_tasks"];
/// How deep blocks are followed.
const MAX_DEPTH: usize = 32;

/// A task.
#[derive(Clone, Debug)]
pub struct Task {
    /// The file that it stands in.
    pub file: Arc<str>,
    /// The module as it is written, such as `kubernetes.core.helm`.
    pub keyword: String,
    /// The node of that word.
    pub key: Node,
    /// The module's arguments: a mapping or free text.
    pub arguments: Node,
    /// The task itself.
    pub node: Node,
}

impl Task {
    /// The module without its collection.
    pub fn module(&self) -> &str {
        self.keyword.rsplit('.').next().unwrap_or(&self.keyword)
    }

    /// The arguments where they are free text.
    pub fn text(&self) -> Option<&str> {
        self.arguments.as_str()
    }

    /// An argument of the module, or of `args`.
    pub fn argument(&self, name: &str) -> Option<&str> {
        let value = self.arguments.get(name).or_else(|| self.node.get("args")?.get(name));
        value.and_then(Node::as_str)
    }
}

/// Whether an item of a list is a task.
pub fn is_task(item: &Node) -> bool {
    item.get("block").is_some() || module(item).is_some()
}

fn module(item: &Node) -> Option<&(Node, Node)> {
    item.pairs()?.iter().find(|(key, _)| {
        key.as_str().is_some_and(|key| {
            !KEYWORDS.contains(&key) && !key.starts_with("with_") && !HOLDERS.contains(&key)
        })
    })
}

/// The tasks of a list of plays or tasks.
pub(super) fn of_items(file: &Arc<str>, items: &[Node]) -> Vec<Task> {
    let mut found = Vec::new();
    collect(file, items, &mut found, MAX_DEPTH);
    found
}

fn collect(file: &Arc<str>, items: &[Node], found: &mut Vec<Task>, depth: usize) {
    if depth == 0 {
        return;
    }
    for item in items {
        let is_play = item.get("hosts").is_some();
        for holder in HOLDERS {
            collect(file, item.get(holder).and_then(Node::items).unwrap_or_default(), found, depth - 1);
        }
        if let Some((key, arguments)) = module(item).filter(|_| !is_play) {
            found.push(Task {
                file: file.clone(),
                keyword: key.as_str().unwrap_or_default().to_owned(),
                key: key.clone(),
                arguments: arguments.clone(),
                node: item.clone(),
            });
        }
    }
}
