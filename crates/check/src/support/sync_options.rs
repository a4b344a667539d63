//! What an Application declares of how its objects are applied, and edits of that declaration.

use tiphys_diag::{Edit, Span};
use tiphys_graph::{App, Declaration, Object, Survey};
use tiphys_model::{IgnoreDifference, SyncOptions, glob};

use super::field_paths::keys;
use crate::Context;

/// Whether a sync option is on for an object.
pub(crate) fn is_on(survey: &Survey, object: &Object, option: &str) -> bool {
    has_option(survey, object, option, "true")
}

/// Whether a sync option has a value for an object: its own annotation decides before its Application.
pub(crate) fn has_option(survey: &Survey, object: &Object, option: &str, value: &str) -> bool {
    if let Some(own) = SyncOptions::of_object(object.value()).get(option) {
        return own == value;
    }
    survey.app_of(object).is_some_and(|app| app.application.sync_options().has(option, value))
}

/// What `ignoreDifferences` of the Application and of the engine's settings say of an object.
pub(crate) fn ignored_differences(
    context: &Context<'_>,
    app: &App,
    object: &Object,
) -> Vec<IgnoreDifference> {
    let own = app.application.spec.ignore_differences.iter().cloned();
    let settings = context.analyses().settings.of_environment(context.survey, app.environment);
    let general = settings.flat_map(|setting| setting.read().customizations.ignore_differences());
    own.chain(general).filter(|rule| covers(rule, object)).collect()
}

fn covers(rule: &IgnoreDifference, object: &Object) -> bool {
    let fits = |pattern: &str, text: &str| pattern.is_empty() || glob::matches(pattern, text);
    fits(&rule.group, &object.key.group)
        && fits(&rule.kind, &object.key.kind)
        && fits(&rule.name, &object.key.name)
        && fits(&rule.namespace, &object.key.namespace)
}

/// The edit that adds a sync option to an Application which is declared in a file of its own; nothing where a
/// template or a generator makes it.
pub(crate) fn add_sync_option(survey: &Survey, app: &App, option: &str) -> Vec<Edit> {
    if matches!(app.declaration, Declaration::Set(_)) {
        return Vec::new();
    }
    let (spec, policy) = (keys(&["spec"]), keys(&["spec", "syncPolicy"]));
    let list = policy.key("syncOptions");
    let value = &app.declared.value;
    let found = if list.index(0).get(value).is_some() {
        add_item(survey, survey.app_span(app, &list.index(0)), option)
    } else if list.get(value).is_some() {
        None
    } else if policy.get(value).is_some_and(|policy| policy.as_object().is_some_and(|map| !map.is_empty())) {
        let lines = ["syncOptions:".to_owned(), format!("  - {option}")];
        add_lines(survey, survey.app_span(app, &policy), &lines)
    } else if policy.get(value).is_none() {
        let lines = ["syncPolicy:", "  syncOptions:", &format!("    - {option}")].map(str::to_owned);
        add_lines(survey, survey.app_span(app, &spec), &lines)
    } else {
        None
    };
    found.into_iter().collect()
}

/// The line of a place in a file that no template engine fills in.
fn plain_line(survey: &Survey, span: &Span) -> Option<String> {
    let text = survey.files.text(&span.file).filter(|text| !text.contains("{{"))?;
    text.lines().nth(span.start.line.max(1) as usize - 1).map(str::to_owned)
}

/// An item before the first one of a list, in either of its styles.
fn add_item(survey: &Survey, first: Span, item: &str) -> Option<Edit> {
    let line = plain_line(survey, &first)?;
    if let Some((indent, _)) = line.split_once("- ").filter(|(indent, _)| indent.trim().is_empty()) {
        let at = Span::point(first.file, first.start.line, 1);
        return Some(Edit { span: at, replacement: format!("{indent}- {item}\n") });
    }
    let before: String = line.chars().take(first.start.column.max(1) as usize - 1).collect();
    let at = Span::point(first.file, first.start.line, first.start.column);
    before.trim_end().ends_with('[').then(|| Edit { span: at, replacement: format!("{item}, ") })
}

/// Lines before the first of a mapping that has a line for each of its keys.
fn add_lines(survey: &Survey, mapping: Span, lines: &[String]) -> Option<Edit> {
    let line = plain_line(survey, &mapping)?;
    let indent: String = line.chars().take(mapping.start.column.max(1) as usize - 1).collect();
    let is_block =
        indent.trim().is_empty() && line.trim_start().starts_with(|c: char| c.is_ascii_alphabetic());
    let text: String = lines.iter().map(|line| format!("{indent}{line}\n")).collect();
    let at = Span::point(mapping.file, mapping.start.line, 1);
    is_block.then_some(Edit { span: at, replacement: text })
}

/// Whether a YAML file of the repository has a text, wherever it stands.
pub(crate) fn mentions(survey: &Survey, text: &str) -> bool {
    let mut files = survey.files.ending(&[".yaml", ".yml"]);
    files.any(|path| survey.files.text(path).is_some_and(|content| content.contains(text)))
}
