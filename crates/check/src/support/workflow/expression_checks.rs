//! What the expressions of a workflow ask for.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::similar_names;
use tiphys_yaml::Node;

use super::{
    Effect, Walker, WorkflowFault, events,
    expression::{self, Name, Part, position_text},
    sections::{CONTEXTS, ExpressionScope, FUNCTIONS, SPECIAL, Shape},
};

/// A comparison of the event's name with a text.
static EVENT_NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"github\.event_name\s*==\s*'([^']*)'").expect("the expression is right"));

/// A text that is read as JSON; a quote in it stands twice.
static JSON_TEXT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\bfromJSON\(\s*'((?:[^']|'')*)'\s*\)").expect("the expression is right")
});

/// A text with expressions.
#[derive(Clone, Copy)]
struct Text<'n, 't> {
    node: &'n Node,
    text: &'t str,
    /// What its expressions may ask for.
    scope: &'static ExpressionScope,
}

impl<'n> Walker<'n> {
    /// A condition, which is an expression also without marks. With marks and something beside them it is a
    /// text, and a text holds.
    pub(super) fn condition(&mut self, node: &'n Node, scope: Option<&'static ExpressionScope>) {
        let Some(text) = node.as_str() else { return self.shape(node, Shape::Scalar, scope) };
        let Some(parts) = self.parts(node, text) else { return };
        let trimmed = text.trim();
        let is_text = match parts[..] {
            [] if trimmed.is_empty() => return,
            [] => return self.read(node, text, &[Part { text, start: 0 }], scope),
            [part] => part.text.len() + "${{}}".len() != trimmed.len(),
            _ => true,
        };
        self.read(node, text, &parts, scope);
        if is_text {
            let message = format!("the condition `{}` always holds", trimmed.replace('\n', " "));
            let fault = WorkflowFault::refusal(node, message, "there is text beside the expression");
            self.faults.push(WorkflowFault { effect: Effect::AlwaysTrue, ..fault });
        }
    }

    /// The expressions of a text.
    pub(super) fn expressions(
        &mut self,
        node: &'n Node,
        text: &str,
        scope: Option<&'static ExpressionScope>,
    ) {
        if scope.is_some()
            && let Some(parts) = self.parts(node, text)
        {
            self.read(node, text, &parts, scope);
        }
    }

    fn parts<'t>(&mut self, node: &'n Node, text: &'t str) -> Option<Vec<Part<'t>>> {
        match expression::parts(text) {
            Ok(parts) => Some(parts),
            Err(error) => {
                self.in_text(node, text, error.at, Effect::Refused, error.message, "it starts here");
                None
            }
        }
    }

    fn read(
        &mut self,
        node: &'n Node,
        text: &str,
        parts: &[Part<'_>],
        scope: Option<&'static ExpressionScope>,
    ) {
        let Some(scope) = scope else { return };
        let of = Text { node, text, scope };
        for part in parts {
            self.event_names(of, *part);
            self.json_texts(of, *part);
            match expression::names(part.text) {
                Ok(names) => names.iter().for_each(|name| self.name(of, *part, name)),
                Err(error) => {
                    let at = part.start + error.at;
                    self.in_text(node, text, at, Effect::Refused, error.message, "this cannot be read");
                }
            }
        }
    }

    /// The names of events that the event of the run is compared with.
    fn event_names(&mut self, of: Text<'n, '_>, part: Part<'_>) {
        for compared in EVENT_NAME.captures_iter(part.text) {
            let Some(name) = compared.get(1) else { continue };
            if let Some(meant) = events::unknown_name(name.as_str()) {
                let message = format!("no event is called '{}'", name.as_str());
                let at = part.start + name.start();
                let label = format!("{meant} is meant");
                self.in_text(of.node, of.text, at, Effect::NeverTrue, message, label);
            }
        }
    }

    /// Texts that are read as JSON, and are none.
    fn json_texts(&mut self, of: Text<'n, '_>, part: Part<'_>) {
        for found in JSON_TEXT.captures_iter(part.text) {
            let Some(text) = found.get(1) else { continue };
            let unquoted = text.as_str().replace("''", "'");
            if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&unquoted) {
                let message = format!("fromJSON cannot read its text: {error}");
                let at = part.start + text.start();
                self.in_text(of.node, of.text, at, Effect::Refused, message, "this is no JSON");
            }
        }
    }

    fn name(&mut self, of: Text<'n, '_>, part: Part<'_>, name: &Name<'_>) {
        match name {
            Name::Context { name, at, path } => {
                let is_all = part.text.trim() == format!("{name}.{}", path.join("."))
                    && part.text.len() + "${{}}".len() == of.text.trim().len();
                if let Some(message) = self.known.missing(of.node, name, path, is_all)
                    // What GitHub does not have is no one's choice.
                    && (name.eq_ignore_ascii_case("github") || !allows_empty(of.text, part))
                {
                    let at = part.start + at;
                    self.in_text(of.node, of.text, at, Effect::AlwaysEmpty, message, "this is always empty");
                }
                if let Some(label) = unknown_context(name, of.scope) {
                    let message =
                        format!("Unrecognized named-value: '{name}'. {}", position_text(part.text, *at));
                    self.in_text(of.node, of.text, part.start + at, Effect::Refused, message, label);
                }
            }
            Name::Function { name, at } => {
                if let Some(label) = unknown_function(name, of.scope) {
                    let message =
                        format!("Unrecognized function: '{name}'. {}", position_text(part.text, *at));
                    self.in_text(of.node, of.text, part.start + at, Effect::Refused, message, label);
                }
            }
        }
    }

    /// A fault at a place of a node's text, in bytes.
    fn in_text(
        &mut self,
        node: &'n Node,
        text: &str,
        at: usize,
        effect: Effect,
        message: String,
        label: impl Into<String>,
    ) {
        let line = u32::try_from(text[..at.min(text.len())].matches('\n').count()).unwrap_or_default() + 1;
        self.faults.push(WorkflowFault { line, effect, ..WorkflowFault::refusal(node, message, label) });
    }
}

/// Whether who wrote an expression counts on its being empty: it has an alternative, or the script around it
/// asks.
fn allows_empty(text: &str, part: Part<'_>) -> bool {
    if ["||", "== ''", "!= ''"].iter().any(|mark| part.text.contains(mark)) {
        return true;
    }
    let expression = part.text.trim();
    text.match_indices("${{").any(|(at, _)| {
        let same = text[at + 3..].split_once("}}").is_some_and(|(inside, _)| inside.trim() == expression);
        let before = text[..at].trim_end_matches(['"', '\'', ' ']);
        let after = text[at..].split_once("}}").map_or("", |(_, after)| after);
        let after = after.trim_start_matches(['"', '\'']).trim_start();
        let compared = ["== \"\"", "!= \"\"", "= \"\"", "== ''", "!= ''", "= ''"];
        same && (before.ends_with("-z")
            || before.ends_with("-n")
            || compared.iter().any(|it| after.starts_with(it)))
    })
}

/// What is wrong with asking for a context, if anything is.
fn unknown_context(name: &str, scope: &ExpressionScope) -> Option<String> {
    match () {
        () if is_one_of(scope.contexts, name) => None,
        () if is_one_of(&CONTEXTS, name) => {
            Some(format!("only these are there: {}", scope.contexts.join(", ")))
        }
        () => Some("there is no such context; a text stands between single quotes".to_owned()),
    }
}

/// What is wrong with calling a function, if anything is. One that GitHub may have learnt since is left
/// alone.
fn unknown_function(name: &str, scope: &ExpressionScope) -> Option<String> {
    if is_one_of(&FUNCTIONS, name) || is_one_of(scope.functions, name) {
        return None;
    }
    if is_one_of(&SPECIAL, name) {
        return Some("it cannot be called here".to_owned());
    }
    let meant = similar_names::nearest_slip(name, FUNCTIONS.into_iter().chain(SPECIAL))?;
    Some(format!("{meant} is meant"))
}

/// GitHub tells names of contexts and functions without regard to case.
fn is_one_of(all: &[&str], name: &str) -> bool {
    all.iter().any(|it| it.eq_ignore_ascii_case(name))
}
