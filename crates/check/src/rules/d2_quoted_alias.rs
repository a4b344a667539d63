//! # An alias between quotes
//!
//! `&name` in a YAML file gives a value a name, and `*name` stands for it elsewhere in the file. Between
//! quotes it is a text like any other: the object gets the name with its star in place of the value.
//!
//! People see: `password authentication failed`, a host called `*app`, and no error from YAML or Kubernetes.
//!
//! ## Bad
//! ```yaml
//! data:
//!   DB_PASSWORD: &password '{{ .db_password }}'
//!   POSTGRES_PASSWORD: "*password"
//! ```
//! ## Good
//! ```yaml
//! data:
//!   DB_PASSWORD: &password '{{ .db_password }}'
//!   POSTGRES_PASSWORD: *password
//! ```
//! ## When to suppress
//! Where the text with the star is meant.

use std::sync::Arc;

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::rewrite},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-quoted-alias",
    incident: "D2",
    severity: Severity::Warning,
    title: "an alias of YAML between quotes, which is a text",
    page: page!("d2_quoted_alias.rs"),
    check,
};

/// How deep a value is looked into.
const DEEPEST: usize = 32;

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in context.survey.objects.iter().filter(|object| may_hold(object.value(), 0)) {
        let mut found = Vec::new();
        gather(object.value(), &FieldPath::default(), &mut found, 0);
        for (path, name) in found {
            let span = context.survey.span(object, &path);
            let text = context.survey.files.text(&span.file);
            if text.is_some_and(|text| is_anchor(&text, name)) {
                once.add(name, finding(context, object, (path, name), span));
            }
        }
    }
    once.report(report);
}

fn finding(
    context: &Context<'_>,
    object: &Object,
    (path, name): (FieldPath, &str),
    span: tiphys_diag::Span,
) -> crate::Finding {
    let edit = rewrite(object, &path, span.clone(), &format!("*{name}"));
    let shown = path.to_string();
    let shown = shown.trim_start_matches('.');
    let diagnostic = RULE
        .diagnostic(format!(
            "{shown} of {} is the text \"*{name}\", not the value of &{name}",
            object.title()
        ))
        .at(span, "a text, for the quotes")
        .because(format!("this file names a value &{name}, and an alias between quotes stands for nothing"))
        .help(format!("write *{name} without quotes"));
    let finding = RULE.finding(context, object, diagnostic).likely();
    match edit {
        Some(edit) => finding.fix("take the quotes away", vec![edit]),
        None => finding,
    }
}

/// Whether a text gives a value this name.
fn is_anchor(text: &Arc<str>, name: &str) -> bool {
    let mark = format!("&{name}");
    text.match_indices(&mark).any(|(at, _)| {
        let before =
            text[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || matches!(c, '[' | '{'));
        let after = text[at + mark.len()..].chars().next().is_none_or(|c| c.is_whitespace() || c == ',');
        before && after
    })
}

/// The texts of a value that look like an alias, with the name.
fn gather<'a>(value: &'a Value, path: &FieldPath, found: &mut Vec<(FieldPath, &'a str)>, depth: usize) {
    let is_name = |name: &&str| {
        name.len() > 1 && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    };
    match value {
        _ if depth > DEEPEST => {}
        Value::String(text) => {
            found.extend(text.strip_prefix('*').filter(is_name).map(|name| (path.clone(), name)));
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate().filter(|(_, item)| may_hold(item, depth)) {
                gather(item, &path.index(at), found, depth + 1);
            }
        }
        Value::Object(fields) => {
            for (key, inner) in fields.iter().filter(|(_, inner)| may_hold(inner, depth)) {
                gather(inner, &path.key(key), found, depth + 1);
            }
        }
        _ => {}
    }
}

/// Whether a text of a value begins with a star: nearly none does, and paths are dear.
fn may_hold(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth > DEEPEST => false,
        Value::String(text) => text.starts_with('*') && text.len() > 2,
        Value::Array(items) => items.iter().any(|item| may_hold(item, depth + 1)),
        Value::Object(fields) => fields.values().any(|inner| may_hold(inner, depth + 1)),
        _ => false,
    }
}
