//! What an Application declares of how its objects are applied, and edits of that declaration.

use tiphys_diag::{Edit, Span};
use tiphys_graph::{App, Declaration, Object, Survey};
use tiphys_model::{IgnoreDifference, SyncOptions, glob};

use super::fields::keys;
use crate::Context;

/// Whether a sync option is on for an object.
pub fn is_on(survey: &Survey, object: &Object, option: &str) -> bool {
    has_option(survey, object, option, "true")
}

/// Whether a sync option has a value for an object: its own annotation decides before its Application.
pub fn has_option(survey: &Survey, object: &Object, option: &str, value: &str) -> bool {
    if let Some(own) = SyncOptions::of_object(object.value()).get(option) {
        return own == value;
    }
    survey.app_of(object).is_some_and(|app| app.application.sync_options().has(option, value))
}

/// What `ignoreDifferences` of the Application and of the engine's settings say of an object.
pub fn ignored_differences(context: &Context<'_>, app: &App, object: &Object) -> Vec<IgnoreDifference> {
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

/// The edit that adds a sync option to an Application whose declaration has a list of them in a file of
/// its own; nothing where a template or generator makes it.
pub fn add_sync_option(survey: &Survey, app: &App, option: &str) -> Vec<Edit> {
    if matches!(app.declaration, Declaration::Set(_)) {
        return Vec::new();
    }
    let list = keys(&["spec", "syncPolicy", "syncOptions"]);
    let Some(first) = list.index(0).get(&app.declared.value).and_then(|it| it.as_str()) else {
        return Vec::new();
    };
    let span = survey.app_span(app, &list.index(0));
    let Some(text) = survey.files.text(&span.file) else { return Vec::new() };
    let Some(line) = text.lines().nth(span.start.line as usize - 1) else { return Vec::new() };
    let Some((indent, item)) = line.split_once("- ") else { return Vec::new() };
    if !indent.trim().is_empty() || !item.contains(first) || text.contains("{{") {
        return Vec::new();
    }
    let at = Span::point(span.file, span.start.line, 1);
    vec![Edit { span: at, replacement: format!("{indent}- {option}\n") }]
}

/// Whether a YAML file of the repository has a text, wherever it stands.
pub fn mentions(survey: &Survey, text: &str) -> bool {
    let mut files = survey.files.ending(&[".yaml", ".yml"]);
    files.any(|path| survey.files.text(path).is_some_and(|content| content.contains(text)))
}
