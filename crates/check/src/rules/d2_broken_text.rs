//! # A configuration in a ConfigMap that is no YAML or JSON
//!
//! A ConfigMap may hold anything; the program that reads it may not. A value whose name ends in `.yaml` or
//! `.json` and that does not parse stops the program when it starts. A key that is set twice loses one of its
//! two values, or is refused, as the program likes. Both come from indenting, and from merging.
//!
//! People see: `CrashLoopBackOff`, `error loading config: yaml: line 12: mapping values are not allowed in
//! this context`, `key "receivers" already set in map`.
//!
//! ## Bad
//! ```yaml
//! data:
//!   config.yaml: |
//!     endpoints:
//!       - name: web
//!     url: http://web
//!       interval: 10s
//! ```
//! ## Good
//! ```yaml
//! data:
//!   config.yaml: |
//!     endpoints:
//!       - name: web
//!         url: http://web
//!         interval: 10s
//! ```
//! ## When to suppress
//! Where the program reads the text in a way of its own, or something completes it first.

use std::collections::HashSet;

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::Value;
use tiphys_yaml::{Content, Node, Profile};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders, unrendered_files},
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "D2-broken-text",
    incident: "D2",
    severity: Severity::Warning,
    title: "a configuration in a ConfigMap that is no YAML or JSON",
    page: page!("d2_broken_text.rs"),
    check,
};

/// What the texts of other template languages, and of tools that fill in, are known by.
const FILLED_IN: [&str; 7] = ["{{", "{%", "${", "<%", "$(", "%{", "(("];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        let field = match (object.key.group.as_str(), object.key.kind.as_str()) {
            ("", "ConfigMap") => "data",
            ("", "Secret") => "stringData",
            _ => continue,
        };
        let file = object.rendered.location.file.as_ref();
        if placeholders::is_skeleton(file) || unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        let texts = object.value().get(field).and_then(Value::as_object);
        for (key, text) in texts.into_iter().flatten().filter_map(|(key, it)| Some((key, it.as_str()?))) {
            if let Some(why) = fault(key, text) {
                add(context, object, field, key, &why, &mut once);
            }
        }
    }
    once.report(report);
}

fn add(context: &Context<'_>, object: &Object, field: &str, key: &str, why: &TextError, once: &mut Once) {
    let (text, because) = match why {
        TextError::Syntax(why) => (
            format!("{key} of {} does not parse: {why}", object.title()),
            "by its name a program reads it as this format, and stops where it cannot",
        ),
        TextError::Twice(twice) => (
            format!("{key} of {} sets the key {twice:?} twice in one mapping", object.title()),
            "readers take one of the two and say nothing, or refuse the text",
        ),
    };
    let diagnostic = RULE
        .diagnostic(text)
        .at(context.survey.span(object, &keys(&[field, key])), "this text")
        .because(because);
    once.add(key, RULE.finding(context, object, diagnostic).likely());
}

/// What is wrong with a text.
enum TextError {
    Syntax(String),
    Twice(String),
}

fn fault(key: &str, text: &str) -> Option<TextError> {
    if text.trim().is_empty() || FILLED_IN.iter().any(|mark| text.contains(mark)) {
        return None;
    }
    if key.ends_with(".json") {
        return json(text);
    }
    if !key.ends_with(".yaml") && !key.ends_with(".yml") {
        return None;
    }
    match tiphys_yaml::parse_documents(text, Profile::Go3) {
        Err(error) => Some(TextError::Syntax(error.to_string().trim_start_matches("yaml: ").to_owned())),
        Ok(documents) => {
            let twice = documents.iter().find_map(|document| twice(&document.root, 0));
            twice.map(|key| TextError::Twice(key.to_owned()))
        }
    }
}

/// Why a text is no JSON, nor what lenient readers take for it: YAML in braces, JSON with comments.
fn json(text: &str) -> Option<TextError> {
    let error = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
    let has_comments = text.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with("//") || line.starts_with("/*") || line.contains(" //")
    });
    let is_lenient = has_comments || tiphys_yaml::parse_documents(text, Profile::Go3).is_ok();
    // Several values one after the other are a format of their own.
    let is_lines = error.to_string().starts_with("trailing characters");
    (!is_lenient && !is_lines).then(|| TextError::Syntax(error.to_string()))
}

/// A key that a mapping below a node has twice, with values that differ.
fn twice(node: &Node, depth: usize) -> Option<&str> {
    const MAX_DEPTH: usize = 100;
    if depth > MAX_DEPTH {
        return None;
    }
    match &node.content {
        Content::Mapping(pairs) => {
            let mut seen: HashSet<&str> = HashSet::new();
            pairs.iter().find_map(|(key, value)| match &key.content {
                Content::Scalar(name) if name != "<<" && !seen.insert(name) => Some(&**name),
                _ => twice(value, depth + 1),
            })
        }
        Content::Sequence(items) => items.iter().find_map(|item| twice(item, depth + 1)),
        Content::Scalar(_) | Content::Alias(_) => None,
    }
}
