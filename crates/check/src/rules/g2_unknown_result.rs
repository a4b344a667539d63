//! # A condition asks for a result that no task registers
//!
//! A task keeps its result under the name behind `register`. A condition, a loop or a text in braces that asks
//! for the result of a name that no task of the repository registers, and no variable has, stops the play.
//!
//! People see: `The conditional check 'rcfile.stat.exists' failed. The error was: 'rcfile' is undefined`.
//!
//! ## Bad
//! ```yaml
//! - stat: {path: /etc/rc.local}
//!   register: rcfile
//! - file: {path: /etc/rc.local, state: absent}
//!   when: rclocal.stat.exists
//! ```
//! ## Good
//! ```yaml
//! - file: {path: /etc/rc.local, state: absent}
//!   when: rcfile.stat.exists
//! ```
//! ## When to suppress
//! Where a role of another repository registers it.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use tiphys_diag::{Severity, similar_names};
use tiphys_value::Location;

use crate::{Context, Finding, Report, Rule, support::unused_files};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G2-unknown-result",
    incident: "G2",
    severity: Severity::Warning,
    title: "a condition asks for a result that no task registers",
    page: page!("g2_unknown_result.rs"),
    check,
};

/// A result of a task, by a part that only results have.
static RESULT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[\s({\[!])([a-z_][a-z0-9_]*)\.(?:stat\.exists|stdout_lines|stdout|stderr|rc)\b")
        .expect("the pattern is well formed")
});
/// A result in braces, wherever it stands.
static FILLED_IN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{\{\s*([a-z_][a-z0-9_]*)\.(?:stdout_lines|stdout|stderr|rc)\b[^}|]*\}\}")
        .expect("the pattern is well formed")
});
/// A line that begins a condition or a loop.
static ASKS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*(?:- )?(?:when|until|changed_when|failed_when|loop|with_items):")
        .expect("the pattern is well formed")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    let ansible = &context.survey.tools().ansible;
    let all = files.ending(&[".yaml", ".yml"]);
    let tasks: Vec<_> = all
        .filter(|path| ansible.files.contains_key(*path) && !unused_files::is_in_unused_folder(path))
        .collect();
    if tasks.is_empty() {
        return;
    }
    let known = names(context);
    for path in tasks {
        let Some(text) = files.text(path) else { continue };
        let found = text.lines().zip(1..).flat_map(|(line, at)| {
            let pattern = if ASKS.is_match(line) { &RESULT } else { &FILLED_IN };
            pattern.captures_iter(line).map(move |it| (it[1].to_owned(), at)).collect::<Vec<_>>()
        });
        let unknown = found.filter(|(name, _)| !known.contains(name) && !is_given(name));
        let mut told: BTreeSet<String> = BTreeSet::new();
        for (name, line) in unknown {
            if !told.insert(name.clone()) {
                continue;
            }
            let diagnostic = RULE
                .diagnostic(format!("no task registers {name}, whose result is asked for"))
                .at(files.span(&Location::new(path.clone(), line, 0)), "is undefined")
                .because("Ansible stops at a condition that names what is not there");
            let own = registered(&text);
            let near = similar_names::nearest_slip(&name, own.iter().map(String::as_str)).map(str::to_owned);
            let finding = Finding::new(RULE.incident, diagnostic).likely();
            report.add(finding.perhaps(&name, near.as_deref()));
        }
    }
}

/// Names that Ansible gives, or that loops and callers do.
fn is_given(name: &str) -> bool {
    const GIVEN: [&str; 5] = ["item", "result", "ansible_facts", "hostvars", "vars"];
    GIVEN.contains(&name) || name.starts_with("ansible_")
}

/// The names that tasks of a text register.
fn registered(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.trim().trim_start_matches("- "));
    lines
        .filter_map(|line| line.strip_prefix("register:"))
        .filter_map(|name| Some(name.split_whitespace().next()?.trim_matches(['"', '\'']).to_owned()))
        .collect()
}

/// All names that are registered, set or given anywhere: the keys of YAML files, and what is registered.
fn names(context: &Context<'_>) -> BTreeSet<String> {
    let files = &context.survey.files;
    let mut known = BTreeSet::new();
    for path in files.ending(&[".yaml", ".yml", ".j2"]) {
        let Some(text) = files.text(path) else { continue };
        known.extend(registered(&text));
        let keys = text.lines().filter_map(|line| line.trim().trim_start_matches("- ").split_once(':'));
        known.extend(keys.map(|(key, _)| key.trim_matches(['"', '\'']).to_owned()));
        // A name behind `loop_var`, or that a template sets.
        let loops = text.lines().filter_map(|line| line.split_once("loop_var:"));
        known.extend(loops.map(|(_, name)| name.trim().trim_matches(['"', '\'', '}']).trim().to_owned()));
    }
    known
}
