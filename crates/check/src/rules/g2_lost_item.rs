//! # A task reads the item of a loop that it does not have
//!
//! `item` is there while a task is repeated by its own `loop`, or by that of the task that includes it. A
//! handler runs once, after the tasks, and knows nothing of the loop of who notified it. A task that stands
//! in a play is included by none.
//!
//! People see: `The task includes an option with an undefined variable. 'item' is undefined`.
//!
//! ## Bad
//! ```yaml
//! handlers:
//!   - name: Restart service
//!     ansible.builtin.service: {name: "{{ item }}", state: restarted}
//! ```
//! ## Good
//! ```yaml
//! handlers:
//!   - name: Restart service
//!     ansible.builtin.service: {name: "{{ item }}", state: restarted}
//!     loop: "{{ services }}"
//! ```
//! ## When to suppress
//! Where a variable is called `item`.

use std::sync::{Arc, LazyLock};

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::{Files, tools::node_span};
use tiphys_yaml::Node;

use crate::{Context, Finding, Report, Rule, support::placeholders};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G2-lost-item",
    incident: "G2",
    severity: Severity::Warning,
    title: "a task reads the item of a loop that it does not have",
    page: page!("g2_lost_item.rs"),
    check,
};

/// An expression of a template.
static EXPRESSION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{\{(.*?)\}\}").expect("the pattern is well formed"));
/// The name with what stands before and behind it, where that is no part of a longer name.
static ITEM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(^|[^\w.'"-])item(?:$|\s*(==|[^\w\s'"=-])|\s+[\w'"-])"#)
        .expect("the pattern is well formed")
});
/// What makes it a name of the template's own.
static OWN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{%-?\s*(?:for|set)\s[^%]*\bitem\b").expect("the pattern is well formed"));

fn check(context: &Context<'_>, report: &mut Report) {
    let (files, ansible) = (&context.survey.files, &context.survey.tools().ansible);
    for (path, file) in ansible.files.iter().filter(|(path, _)| !placeholders::is_skeleton(path)) {
        let mut found = Vec::new();
        let is_handlers = path.contains("/handlers/");
        for item in &file.items {
            if is_handlers {
                gather(item, true, &mut found);
            }
            // What the play knows as a variable is no item of a loop.
            if item.get("hosts").is_none() || item.get("vars").is_some_and(|vars| vars.get("item").is_some())
            {
                continue;
            }
            for holder in ["pre_tasks", "tasks", "post_tasks", "handlers"] {
                let tasks = item.get(holder).and_then(Node::items).unwrap_or_default();
                tasks.iter().for_each(|task| gather(task, holder == "handlers", &mut found));
            }
        }
        found.iter().for_each(|(node, is_handler)| report.add(finding(files, path, node, *is_handler)));
    }
}

/// The places of a task, or of the tasks of a block, that read an item which is not there.
fn gather<'a>(task: &'a Node, is_handler: bool, found: &mut Vec<(&'a Node, bool)>) {
    for holder in ["block", "rescue", "always"] {
        let inner = task.get(holder).and_then(Node::items).unwrap_or_default();
        inner.iter().for_each(|task| gather(task, is_handler, found));
    }
    let Some(pairs) = task.pairs() else { return };
    let repeats = |key: &Node| key.as_str().is_some_and(|word| word == "loop" || word.starts_with("with_"));
    let is_repeated = pairs.iter().any(|(key, _)| repeats(key));
    let has_own = task.get("vars").is_some_and(|vars| vars.get("item").is_some());
    let is_block = task.get("block").is_some();
    if is_repeated || has_own || is_block {
        return;
    }
    const NOT_READ: [&str; 4] = ["name", "tags", "listen", "notify"];
    let is_read = |key: &Node| key.as_str().is_none_or(|word| !NOT_READ.contains(&word));
    let read = pairs.iter().filter(|(key, _)| is_read(key));
    let first = read.filter_map(|(_, value)| first_item(value, 0)).next();
    found.extend(first.map(|node| (node, is_handler)));
}

/// The first text in a value that reads an item.
fn first_item(value: &Node, depth: usize) -> Option<&Node> {
    const MAX_DEPTH: usize = 16;
    if depth > MAX_DEPTH {
        return None;
    }
    if let Some(text) = value.as_str() {
        return (reads_item(text) && !OWN.is_match(text)).then_some(value);
    }
    let items = value.items().unwrap_or_default().iter();
    let pairs = value.pairs().unwrap_or_default().iter().map(|(_, below)| below);
    items.chain(pairs).find_map(|below| first_item(below, depth + 1))
}

/// Whether an expression of a text reads the item: no attribute, no text and no argument of that name.
fn reads_item(text: &str) -> bool {
    EXPRESSION.captures_iter(text).any(|expression| ITEM.is_match(expression[1].trim()))
}

fn finding(files: &Files, path: &Arc<str>, node: &Node, is_handler: bool) -> Finding {
    let (what, why) = match is_handler {
        true => {
            ("handler", "a handler runs once, and knows nothing of the loop of the task that notified it")
        }
        false => ("task", "nothing repeats the task: it has no loop, and a play includes it in none"),
    };
    let diagnostic = RULE
        .diagnostic(format!("'item' is undefined: the {what} has no loop"))
        .at(node_span(files, path, node), "reads an item")
        .because(why)
        .help("give it a loop, or name the thing itself");
    Finding::new(RULE.incident, diagnostic).likely()
}

#[cfg(test)]
mod tests {
    use super::reads_item;

    #[test]
    fn only_the_name_alone_is_an_item() {
        for text in [
            "{{ item }}",
            "{{ item.name }}",
            "a-{{item}}",
            "{{ base }}/{{ item['name'] }}",
            "{{ x | f(item) }}",
        ] {
            assert!(reads_item(text), "{text}");
        }
        for text in [
            "{{ result.item }}",
            "{{ x['item'] }}",
            "{{ items }}",
            "{{ the_item }}",
            "item",
            "{{ f(item=1) }}",
        ] {
            assert!(!reads_item(text), "{text}");
        }
    }
}
