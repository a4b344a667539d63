//! The language of workflows of GitHub Actions: what GitHub refuses in a file that is good YAML.

mod events;
pub mod expression;
mod known;
mod sections;

use std::collections::{BTreeMap, BTreeSet};

use tiphys_yaml::{Kind, Node};

use self::{
    expression::{Name, Part, located},
    known::Known,
    sections::{CONTEXTS, FUNCTIONS, Key, SPECIAL, Scope, Shape, WORKFLOW},
};
use super::similar;

/// What is wrong with a workflow.
#[derive(Debug)]
pub(crate) struct Fault<'n> {
    pub(crate) node: &'n Node,
    /// The line of the node's text, from 1.
    pub(crate) line: u32,
    pub(crate) message: String,
    pub(crate) label: String,
    pub(crate) effect: Effect,
}

/// What comes of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// GitHub refuses the whole file.
    Refused,
    /// A condition holds always.
    AlwaysTrue,
    /// GitHub takes no notice of it.
    Ignored,
    /// An expression is always empty.
    AlwaysEmpty,
    /// A job waits for a runner that does not come.
    NeverRuns,
}

impl<'n> Fault<'n> {
    fn refused(node: &'n Node, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self { node, line: 1, message: message.into(), label: label.into(), effect: Effect::Refused }
    }
}

/// What is wrong with a workflow, in the order of the file.
pub(crate) fn faults(root: &Node) -> Vec<Fault<'_>> {
    let mut walker = Walker { faults: Vec::new(), known: Known::of(root) };
    walker.shape(root, WORKFLOW, None);
    if let Some(on) = root.get("on") {
        events::check(on, &mut walker);
    }
    if let Some(jobs) = root.get("jobs").and_then(Node::pairs) {
        walker.circle(jobs);
        for (_, job) in jobs {
            walker.job(job);
        }
    }
    let mut faults = walker.faults;
    faults.sort_by_key(|fault| fault.node.span.start.line);
    faults
}

/// A node, or each node of its list.
fn one_or_many(node: &Node) -> impl Iterator<Item = &Node> {
    let one = node.as_str().filter(|text| !text.is_empty()).map(|_| node);
    one.into_iter().chain(node.items().unwrap_or_default())
}

struct Walker<'n> {
    faults: Vec<Fault<'n>>,
    known: Known<'n>,
}

impl<'n> Walker<'n> {
    fn refuse(&mut self, node: &'n Node, message: impl Into<String>, label: impl Into<String>) {
        self.faults.push(Fault::refused(node, message, label));
    }

    /// A word that GitHub does not know. What it may have learnt since is left alone: only a slip is told.
    fn unexpected(&mut self, node: &'n Node, text: &str, known: impl Iterator<Item = &'static str>) {
        if let Some(meant) = similar::nearest(text, known) {
            self.refuse(node, format!("Unexpected value '{text}'"), format!("{meant} is meant"));
        }
    }

    /// Holds a node against a shape; `scope` says what its expressions may ask for, if it is known.
    fn shape(&mut self, node: &'n Node, shape: Shape, scope: Option<&'static Scope>) {
        if node.kind() == Kind::Alias || node.is_null() {
            return;
        }
        if matches!(shape, Shape::Any) {
            return self.below(node, scope);
        }
        let text = node.as_str();
        if let Some(text) = text {
            self.expressions(node, text, false, scope);
            if text.contains("${{") {
                return;
            }
        }
        match shape {
            Shape::Scalar if text.is_none() => self.not_expected(node),
            Shape::Scalar => {}
            Shape::Bool
                if !text.is_some_and(|text| matches!(text.to_lowercase().as_str(), "true" | "false")) =>
            {
                self.wrong(node, "true or false is expected");
            }
            Shape::Number if text.is_none_or(|text| text.parse::<f64>().is_err()) => {
                self.wrong(node, "a number is expected");
            }
            Shape::Bool | Shape::Number => {}
            Shape::Word(words) if !text.is_some_and(|text| words.contains(&text)) => {
                self.wrong(node, &format!("expected: {}", words.join(", ")));
            }
            Shape::Word(_) => {}
            Shape::Mapping(keys) => self.mapping(node, keys, scope),
            Shape::Named(each) => self.named(node, *each, scope),
            Shape::Identified(each) => {
                self.named(node, *each, scope);
                for (key, _) in node.pairs().unwrap_or_default() {
                    self.identifier(key);
                }
            }
            Shape::List(each) => self.list(node, *each, scope),
            Shape::OneOrMany(each) if node.items().is_some() => self.list(node, *each, scope),
            Shape::OneOrMany(Shape::Scalar) if text.is_some() => {}
            Shape::OneOrMany(each) => self.shape(node, *each, scope),
            Shape::ScalarOr(other) if text.is_none() => self.shape(node, *other, scope),
            Shape::WordOr(words, _) if text.is_some_and(|text| !words.contains(&text)) => {
                self.wrong(node, &format!("expected: {}", words.join(", ")));
            }
            Shape::WordOr(_, other) if text.is_none() => self.shape(node, *other, scope),
            Shape::ListOr(_) if node.items().is_some() => self.below(node, scope),
            Shape::ListOr(other) if text.is_none() => self.shape(node, *other, scope),
            Shape::Any | Shape::ScalarOr(_) | Shape::WordOr(..) | Shape::ListOr(_) => {}
        }
    }

    /// Expressions of a part whose form is no business of GitHub's, however deep it is.
    fn below(&mut self, node: &'n Node, scope: Option<&'static Scope>) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            if let Some(text) = node.as_str() {
                self.expressions(node, text, false, scope);
            }
            open.extend(node.items().unwrap_or_default());
            open.extend(node.pairs().unwrap_or_default().iter().map(|(_, value)| value));
        }
    }

    fn wrong(&mut self, node: &'n Node, label: &str) {
        match node.as_str() {
            Some(text) => self.refuse(node, format!("Unexpected value '{text}'"), label),
            None => self.not_expected(node),
        }
    }

    fn not_expected(&mut self, node: &'n Node) {
        match node.kind() {
            Kind::Mapping => self.refuse(node, "A mapping was not expected", "a single value is expected"),
            _ => self.refuse(node, "A sequence was not expected", "no list is expected here"),
        }
    }

    fn mapping(&mut self, node: &'n Node, keys: &'static [Key], scope: Option<&'static Scope>) {
        let Some(pairs) = node.pairs() else { return self.wrong(node, "a mapping is expected") };
        let is_merged = node.get("<<").is_some();
        for (name, value) in pairs {
            let text = name.as_str().unwrap_or_default();
            match keys.iter().find(|key| key.name.eq_ignore_ascii_case(text)) {
                Some(key) if key.name == "if" => self.condition(value, key.scope),
                Some(key) => self.shape(value, key.shape, key.scope.or(scope)),
                // Of jobs and steps every unknown key is told elsewhere.
                None if keys.iter().any(|key| matches!(key.name, "steps" | "run")) => {}
                None => self.unexpected(name, text, keys.iter().map(|key| key.name)),
            }
        }
        for key in keys.iter().filter(|key| key.is_required && !is_merged && node.get(key.name).is_none()) {
            self.refuse(node, format!("Required property is missing: {}", key.name), "it is missing here");
        }
    }

    fn named(&mut self, node: &'n Node, each: Shape, scope: Option<&'static Scope>) {
        let Some(pairs) = node.pairs() else { return self.wrong(node, "a mapping is expected") };
        for (name, value) in pairs {
            if name.as_str() != Some("<<") {
                self.shape(value, each, scope);
            }
        }
    }

    fn list(&mut self, node: &'n Node, each: Shape, scope: Option<&'static Scope>) {
        let Some(items) = node.items() else { return self.wrong(node, "a list is expected") };
        for item in items {
            self.shape(item, each, scope);
        }
    }

    /// A condition, which is an expression also without marks. With marks and something beside them it is a text, and a
    /// text holds.
    fn condition(&mut self, node: &'n Node, scope: Option<&'static Scope>) {
        let Some(text) = node.as_str() else { return self.shape(node, Shape::Scalar, scope) };
        self.expressions(node, text, true, scope);
        let trimmed = text.trim();
        let Ok(parts) = expression::parts(trimmed) else { return };
        let is_text = match parts[..] {
            [] => false,
            [part] => part.start != 3 || part.start + part.text.len() + 2 != trimmed.len(),
            _ => true,
        };
        if is_text {
            self.faults.push(Fault {
                effect: Effect::AlwaysTrue,
                ..Fault::refused(
                    node,
                    format!("the condition `{}` always holds", trimmed.replace('\n', " ")),
                    "there is text beside the expression",
                )
            });
        }
    }

    fn expressions(&mut self, node: &'n Node, text: &str, is_condition: bool, scope: Option<&'static Scope>) {
        let Some(scope) = scope else { return };
        let parts = match expression::parts(text) {
            Ok(parts) if parts.is_empty() && is_condition && !text.trim().is_empty() => {
                vec![Part { text, start: 0 }]
            }
            Ok(parts) => parts,
            Err(error) => return self.in_text(node, text, error.at, error.message, "it starts here"),
        };
        for part in parts {
            match expression::names(part.text) {
                Ok(names) => self.names(node, text, part, &names, scope),
                Err(error) => {
                    self.in_text(node, text, part.start + error.at, error.message, "this cannot be read")
                }
            }
        }
    }

    fn names(
        &mut self,
        node: &'n Node,
        text: &str,
        part: Part<'_>,
        names: &[Name<'_>],
        scope: &'static Scope,
    ) {
        for name in names {
            if let Name::Context { name, at, path } = name
                && let Some(message) = self.known.missing(name, path)
            {
                let before = self.faults.len();
                self.in_text(node, text, part.start + at, message, "this is always empty");
                self.faults[before..].iter_mut().for_each(|fault| fault.effect = Effect::AlwaysEmpty);
            }
            let (message, at, label) = match name {
                Name::Context { name, at, .. } => {
                    let is_one_of = |all: &[&str]| all.iter().any(|it| it.eq_ignore_ascii_case(name));
                    if is_one_of(scope.contexts) {
                        continue;
                    }
                    let label = match is_one_of(&CONTEXTS) {
                        true => format!("only these are there: {}", scope.contexts.join(", ")),
                        false => "there is no such context; a text stands between single quotes".to_owned(),
                    };
                    (format!("Unrecognized named-value: '{name}'. {}", located(part.text, *at)), *at, label)
                }
                Name::Function { name, at } => {
                    let is_one_of = |all: &[&str]| all.iter().any(|it| it.eq_ignore_ascii_case(name));
                    let label = if is_one_of(&FUNCTIONS) || is_one_of(scope.functions) {
                        continue;
                    } else if is_one_of(&SPECIAL) {
                        "it cannot be called here".to_owned()
                    } else {
                        match similar::nearest(name, FUNCTIONS.into_iter().chain(SPECIAL)) {
                            Some(meant) => format!("{meant} is meant"),
                            None => continue,
                        }
                    };
                    (format!("Unrecognized function: '{name}'. {}", located(part.text, *at)), *at, label)
                }
            };
            self.in_text(node, text, part.start + at, message, label);
        }
    }

    /// A fault at a place of a node's text, in bytes.
    fn in_text(&mut self, node: &'n Node, text: &str, at: usize, message: String, label: impl Into<String>) {
        let line = u32::try_from(text[..at.min(text.len())].matches('\n').count()).unwrap_or_default() + 1;
        self.faults.push(Fault { line, ..Fault::refused(node, message, label) });
    }

    fn job(&mut self, job: &'n Node) {
        for label in known::runners(job) {
            let text = label.as_str().unwrap_or_default();
            if known::RETIRED.contains(&text) {
                self.faults.push(Fault {
                    effect: Effect::NeverRuns,
                    ..Fault::refused(
                        label,
                        format!("GitHub has no runner {text} any more"),
                        "a newer one, or one of your own, is needed",
                    )
                });
            }
        }
        if let Some(uses) = job.get("uses") {
            self.reference(uses);
        }
        for step in job.get("steps").and_then(Node::items).unwrap_or_default() {
            if let Some(id) = step.get("id") {
                self.identifier(id);
            }
            if let Some(uses) = step.get("uses") {
                self.reference(uses);
            }
        }
    }

    /// What is used from another repository needs a revision.
    fn reference(&mut self, uses: &'n Node) {
        let Some(text) = uses.as_str() else { return };
        let is_elsewhere = ["./", "docker://"].iter().any(|it| text.starts_with(it)) || text.contains("${{");
        if !is_elsewhere && !text.contains('@') {
            let message = format!("Expected format {{org}}/{{repo}}[/path]@ref. Actual '{text}'");
            self.refuse(uses, message, "the revision is missing");
        }
    }

    /// A name that expressions call something by.
    fn identifier(&mut self, node: &'n Node) {
        const LONGEST: usize = 100;
        let Some(text) = node.as_str().filter(|text| *text != "<<" && !text.contains("${{")) else { return };
        let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let is_word = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !begins || !is_word || text.len() >= LONGEST {
            let message = format!(
                "The identifier '{text}' is invalid. IDs may only contain alphanumeric characters, '_', and '-'. IDs \
                 must start with a letter or '_' and must be less than 100 characters."
            );
            self.refuse(node, message, "this is no identifier");
        }
    }

    /// Jobs that need each other.
    fn circle(&mut self, jobs: &'n [(Node, Node)]) {
        let named = jobs.iter().filter_map(|(name, job)| Some((name.as_str()?, job)));
        let needs: BTreeMap<&str, Vec<&Node>> = named
            .map(|(name, job)| (name, job.get("needs").into_iter().flat_map(one_or_many).collect()))
            .collect();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for start in needs.keys() {
            // The way to a job, each step with how many of its needs have been followed.
            let mut way: Vec<(&str, usize)> = Vec::new();
            let mut on_way: BTreeSet<&str> = BTreeSet::new();
            if seen.insert(start) {
                way.push((start, 0));
                on_way.insert(start);
            }
            while let Some((from, followed)) = way.last_mut() {
                let from = *from;
                let Some(needed) = needs[from].get(*followed) else {
                    on_way.remove(from);
                    way.pop();
                    continue;
                };
                *followed += 1;
                let to = needed.as_str().unwrap_or_default();
                if on_way.contains(to) {
                    let message = format!(
                        "Job '{from}' depends on job '{to}' which creates a cycle in the dependency graph."
                    );
                    return self.refuse(needed, message, "the jobs wait for each other");
                }
                if needs.contains_key(to) && seen.insert(to) {
                    way.push((to, 0));
                    on_way.insert(to);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
