//! # A section of an Application that says nothing
//!
//! Argo CD takes sections of an Application's spec out of the cluster's object that hold nothing but zero
//! values, such as `directory: {recurse: false}`. The Application above that renders it has it in Git: it is
//! OutOfSync, self-heal puts the section back, and Argo CD takes it out again, without end.
//!
//! People see: a parent that stays OutOfSync because of one child, a child whose `metadata.generation` goes
//! up all the time.
//!
//! ## Bad
//! ```yaml
//! source: {repoURL: https://git.example.com/shop.git, path: shop, directory: {recurse: false}}
//! ```
//! ## Good
//! ```yaml
//! source: {repoURL: https://git.example.com/shop.git, path: shop}
//! ```
//! ## When to suppress
//! Where the Application above is never synced by itself, and nobody looks at its status.

use tiphys_diag::Severity;
use tiphys_graph::{App, Object};
use tiphys_model::names;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, sync_options::ignored_differences},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B5-dropped-section",
    incident: "B5",
    severity: Severity::Warning,
    title: "a section of an Application that Argo CD takes out again",
    page: page!("b5_dropped_section.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        if object.key.group != names::GROUP || object.key.kind != "Application" {
            continue;
        }
        let Some(parent) = context.survey.app_of(object) else { continue };
        for field in empty_sections(object.value()) {
            if !is_ignored(context, parent, object, &field) {
                add(context, object, parent, &field, &mut once);
            }
        }
    }
    once.report(report);
}

/// The sections of a spec that Argo CD takes out.
fn empty_sections(application: &Value) -> Vec<FieldPath> {
    let spec = keys(&["spec"]);
    let several = spec.key("sources");
    let count = several.get(application).and_then(Value::as_array).map_or(0, Vec::len);
    // With several sources the single one is not looked at.
    let sources = match count {
        0 => vec![spec.key("source")],
        _ => (0..count).map(|at| several.index(at)).collect(),
    };
    let sections =
        sources.iter().flat_map(|source| ["helm", "kustomize", "directory"].map(|it| source.key(it)));
    let is_empty_source = |path: &FieldPath| path.get(application).is_some_and(says_nothing);
    let mut found: Vec<FieldPath> = sections.filter(is_empty_source).collect();
    let policy = spec.key("syncPolicy");
    found.extend(Some(policy).filter(|path| path.get(application).is_some_and(is_no_policy)));
    found
}

/// Whether a section has keys, and zero values alone. Values of a chart count even where they are empty.
fn says_nothing(section: &Value) -> bool {
    let Some(map) = section.as_object().filter(|map| !map.is_empty()) else { return false };
    map.iter().all(|(key, value)| match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(below) => key == "jsonnet" && (below.is_empty() || says_nothing(value)),
        Value::Number(_) => false,
    })
}

/// Whether a sync policy has keys, and none that counts.
fn is_no_policy(policy: &Value) -> bool {
    let Some(map) = policy.as_object().filter(|map| !map.is_empty()) else { return false };
    map.iter().all(|(key, value)| {
        value.is_null() || key == "syncOptions" && value.as_array().is_some_and(Vec::is_empty)
    })
}

/// Whether differences of the section are ignored in the Application above.
fn is_ignored(context: &Context<'_>, parent: &App, object: &Object, field: &FieldPath) -> bool {
    let name = field.to_string();
    let last = name.rsplit('.').next().unwrap_or_default();
    let names_it =
        |text: &String| text.contains(last) || matches!(text.as_str(), "/spec" | ".spec" | "/spec/source");
    ignored_differences(context, parent, object)
        .iter()
        .any(|rule| rule.json_pointers.iter().chain(&rule.jq_path_expressions).any(names_it))
}

fn add(context: &Context<'_>, object: &Object, parent: &App, field: &FieldPath, once: &mut Once) {
    let heals =
        parent.application.automated_policy().is_some_and(|automated| automated.self_heal == Some(true));
    let effect = match heals {
        true => "the Application above puts it back at once, without end",
        false => "the Application above stays OutOfSync",
    };
    let mut diagnostic = RULE
        .diagnostic(format!("{} has `{field}`, which says nothing: Argo CD takes it out", object.title()))
        .at(context.survey.span(object, field), effect)
        .because(format!(
            "Argo CD patches sections that hold zero values alone out of Applications, and {} renders this one with it",
            parent.name()
        ))
        .help("take the section out: its values are the defaults");
    if !heals {
        diagnostic.severity = Severity::Info;
    }
    once.add("", RULE.finding(context, object, diagnostic));
}
