//! # A keyword of Ansible has a value of the wrong kind
//!
//! Plays, blocks and tasks have keywords, and each takes one kind of value: `block` a list of tasks, `vars` a
//! mapping, `retries` a number, `register` the name of a variable, `when` an expression. A line that lost its
//! key, its dash or its place turns one kind into another. Ansible reads what is left, and refuses the file
//! or the task.
//!
//! People see: `A malformed block was encountered while loading tasks`, `no module/action detected in task`,
//! `'task' is not a valid attribute for a Play`, `the field 'retries' has an invalid value (ten), and could
//! not be converted to int`, `Invalid variable name in 'register' specified: 'join-command'`, `template error
//! while templating string: expected token 'end of statement block', got '='`.
//!
//! ## Bad
//! ```yaml
//! - name: Read the join command
//!   ansible.builtin.command: kubeadm token create --print-join-command
//!   register: join-command
//!   when: role = "server"
//! ```
//! ## Good
//! ```yaml
//! - name: Read the join command
//!   ansible.builtin.command: kubeadm token create --print-join-command
//!   register: join_command
//!   when: role == "server"
//! ```
//! ## When to suppress
//! Where the file is no playbook, and only looks like one.

use std::sync::Arc;

use tiphys_diag::Severity;
use tiphys_graph::{
    Files,
    tools::{
        ansible::{Shape, is_task},
        node_span,
    },
};
use tiphys_yaml::{Kind, Node};

use crate::{Context, Finding, Report, Rule, support::placeholders};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G2-keyword-values",
    incident: "G2",
    severity: Severity::Error,
    title: "a keyword of Ansible with a value of the wrong kind",
    page: page!("g2_keyword_values.rs"),
    check,
};

/// How deep blocks are followed.
const MAX_DEPTH: usize = 32;
/// Keywords of a play that hold tasks.
const OF_PLAYS: [&str; 4] = ["pre_tasks", "tasks", "post_tasks", "handlers"];
/// Keywords of a block that hold tasks.
const OF_BLOCKS: [&str; 3] = ["block", "rescue", "always"];
/// Keywords that take a number.
const NUMBERS: [&str; 7] = ["retries", "delay", "async", "poll", "port", "throttle", "timeout"];
/// Keywords that take yes or no.
const SWITCHES: [&str; 10] = [
    "become",
    "ignore_errors",
    "ignore_unreachable",
    "run_once",
    "no_log",
    "any_errors_fatal",
    "check_mode",
    "diff",
    "gather_facts",
    "delegate_facts",
];
/// Keywords that take an expression of Jinja, or a list of them.
const EXPRESSIONS: [&str; 4] = ["when", "until", "changed_when", "failed_when"];
/// What a play may have (Ansible docs, "Playbook Keywords", Play).
const PLAY: [&str; 46] = [
    "accelerate",
    "any_errors_fatal",
    "become",
    "become_exe",
    "become_flags",
    "become_method",
    "become_user",
    "check_mode",
    "collections",
    "connection",
    "debugger",
    "diff",
    "environment",
    "fact_path",
    "force_handlers",
    "gather_facts",
    "gather_subset",
    "gather_timeout",
    "handlers",
    "hosts",
    "ignore_errors",
    "ignore_unreachable",
    "import_playbook",
    "max_fail_percentage",
    "module_defaults",
    "name",
    "no_log",
    "order",
    "port",
    "post_tasks",
    "pre_tasks",
    "remote_user",
    "roles",
    "run_once",
    "serial",
    "strategy",
    "sudo",
    "tags",
    "tasks",
    "throttle",
    "timeout",
    "user",
    "validate_argspec",
    "vars",
    "vars_files",
    "vars_prompt",
];

fn check(context: &Context<'_>, report: &mut Report) {
    let ansible = &context.survey.tools().ansible;
    for (path, file) in ansible.files.iter().filter(|(path, _)| !placeholders::is_skeleton(path)) {
        let mut reader = Reader { files: &context.survey.files, path, report };
        match file.shape {
            Shape::Playbook => file.items.iter().for_each(|item| reader.play(item)),
            Shape::Tasks => file.items.iter().for_each(|item| reader.task(item, MAX_DEPTH)),
            Shape::Unclear => {}
        }
    }
}

/// Reads one file.
struct Reader<'a> {
    files: &'a Files,
    path: &'a Arc<str>,
    report: &'a mut Report,
}

impl Reader<'_> {
    fn play(&mut self, play: &Node) {
        if play.pairs().is_none() || play.get("<<").is_some() {
            return;
        }
        if play.get("hosts").is_some() {
            self.unknown_of_play(play);
        }
        self.keywords(play);
        for holder in OF_PLAYS {
            self.tasks_of(play, holder, MAX_DEPTH);
        }
        if let Some(roles) = play.get("roles").filter(|roles| is_text(roles)) {
            self.tell("A malformed role declaration was encountered", roles, "roles are a list");
        }
    }

    fn unknown_of_play(&mut self, play: &Node) {
        for (key, _) in play.pairs().unwrap_or_default() {
            let Some(word) = key.as_str().filter(|word| !PLAY.contains(word) && is_word(word)) else {
                continue;
            };
            let message = format!("'{word}' is not a valid attribute for a Play");
            self.tell(&message, key, "a play has no such keyword");
        }
    }

    fn tasks_of(&mut self, of: &Node, holder: &str, depth: usize) {
        let Some(list) = of.get(holder) else { return };
        if is_text(list) || list.kind() == Kind::Mapping {
            let message = format!("A malformed block was encountered while loading {holder}");
            return self.tell(&message, list, "a list of tasks is wanted here");
        }
        for item in list.items().unwrap_or_default() {
            self.task(item, depth);
        }
    }

    fn task(&mut self, task: &Node, depth: usize) {
        if depth == 0 || task.get("<<").is_some() || task.get("hosts").is_some() {
            return;
        }
        if is_text(task) {
            return self.tell(
                "A malformed block was encountered",
                task,
                "a task is a mapping, and this is text",
            );
        }
        let Some(pairs) = task.pairs().filter(|pairs| !pairs.is_empty()) else { return };
        let is_block = OF_BLOCKS.iter().any(|holder| task.get(holder).is_some());
        if !is_block && !is_task(task) && pairs.iter().all(|(key, _)| key.as_str().is_some()) {
            self.tell("no module/action detected in task", task, "every word of this task is a keyword");
        }
        self.keywords(task);
        for holder in OF_BLOCKS {
            self.tasks_of(task, holder, depth - 1);
        }
    }

    /// The keywords that plays, blocks and tasks share.
    fn keywords(&mut self, of: &Node) {
        for (key, value) in of.pairs().unwrap_or_default() {
            let Some(word) = key.as_str() else { continue };
            let text = value.as_str().filter(|text| is_text(value) && !text.contains("{{"));
            let wrong = match (word, text) {
                ("register", _) => wrong_register(value),
                ("vars", _) if is_text(value) => {
                    Some(("Vars must be specified as a dictionary".to_owned(), "variables are a mapping"))
                }
                ("environment", Some(text)) => Some((
                    format!("environment must be a dictionary, received {text}"),
                    "variables are a mapping, or a list of mappings",
                )),
                ("loop", Some(text)) => Some((
                    format!("Invalid data passed to 'loop', it requires a list, got this instead: {text}"),
                    "a list is wanted here; a variable stands in `{{ … }}`",
                )),
                (word, Some(text)) if NUMBERS.contains(&word) && text.trim().parse::<f64>().is_err() => {
                    Some((invalid(word, text, "int"), "a number is wanted here"))
                }
                (word, Some(text)) if SWITCHES.contains(&word) && !is_switch(text) => Some((
                    invalid(word, text, "bool"),
                    "yes or no is wanted here; a variable stands in `{{ … }}`",
                )),
                _ => None,
            };
            if let Some((message, label)) = wrong {
                self.tell(&message, value, label);
            }
            if EXPRESSIONS.contains(&word) {
                self.expressions(value);
            }
        }
    }

    fn expressions(&mut self, value: &Node) {
        let all = std::iter::once(value).chain(value.items().unwrap_or_default());
        for (node, text) in all.filter_map(|node| Some((node, node.as_str()?))) {
            let Some(wrong) = wrong_in_expression(text) else { continue };
            let message = format!("template error while templating string: unexpected {wrong} in {text:?}");
            self.tell(&message, node, "Jinja cannot read this expression");
        }
    }

    fn tell(&mut self, message: &str, node: &Node, label: &str) {
        let diagnostic = RULE
            .diagnostic(message)
            .at(node_span(self.files, self.path, node), label)
            .because("Ansible refuses what it cannot read: the file before anything runs, or this task in the middle of the run");
        self.report.add(Finding::new(RULE.incident, diagnostic).likely());
    }
}

fn invalid(word: &str, text: &str, kind: &str) -> String {
    format!("the field '{word}' has an invalid value ({text}), and could not be converted to {kind}")
}

/// Whether a node is text: not empty, and of no kind that a tag decides.
fn is_text(node: &Node) -> bool {
    node.as_str().is_some_and(|text| !text.trim().is_empty()) && !node.is_null() && !node.explicit_tag
}

/// Whether a key is a word as keywords are.
fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '.'))
}

fn wrong_register(value: &Node) -> Option<(String, &'static str)> {
    if value.is_null() || value.explicit_tag || value.kind() == Kind::Alias {
        return None;
    }
    let text = value.as_str().unwrap_or("a list or mapping");
    let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && text.starts_with(|c: char| !c.is_ascii_digit());
    let is_open = text.contains("{{") || text.contains("{%");
    (!is_name && !is_open).then(|| {
        let message = format!("Invalid variable name in 'register' specified: '{text}'");
        (message, "the name of a variable has letters, digits and underscores only")
    })
}

/// Whether Ansible takes a text for yes or no.
fn is_switch(text: &str) -> bool {
    const WORDS: [&str; 14] =
        ["yes", "no", "true", "false", "on", "off", "y", "n", "t", "f", "1", "0", "1.0", "0.0"];
    WORDS.contains(&text.trim().to_lowercase().as_str())
}

/// What Jinja has no use for in an expression: a single `=` outside of a call, `&&`, `||`, and a bracket that
/// is not closed.
fn wrong_in_expression(text: &str) -> Option<&'static str> {
    if text.contains("{{") || text.contains("{%") {
        return None;
    }
    let mut quote = None;
    let mut is_escaped = false;
    let mut depth = 0i32;
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied().unwrap_or(' ');
        match (quote, c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, '&') if next == '&' => return Some("'&&'"),
            (None, '|') if next == '|' => return Some("'||'"),
            (None, '=') if depth == 0 && next != '=' && !matches!(before, '=' | '!' | '<' | '>') => {
                return Some("'='");
            }
            _ => {}
        }
        before = c;
    }
    (quote.is_none() && depth != 0).then_some("end: a bracket has no partner")
}

#[cfg(test)]
mod tests {
    use super::wrong_in_expression;

    #[test]
    fn what_jinja_reads_is_right() {
        for text in [
            "a == 'b = c'",
            "a is defined and (b | default('x', boolean=true)) != \"it's\"",
            "result.stdout_lines | length >= 3",
            "'a&&b' in c or d <= 4",
        ] {
            assert_eq!(wrong_in_expression(text), None, "{text}");
        }
        for text in ["a = 'b'", "a && b", "a || b", "(a or b", "a == 1)"] {
            assert!(wrong_in_expression(text).is_some(), "{text}");
        }
    }
}
