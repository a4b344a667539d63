//! # A list has one item twice
//!
//! A variable of a container, one of its ports or a Secret to pull with is told by its key, and stands there
//! twice. Client-side apply takes it: of two variables the last counts, and at a later change one of the two
//! may be lost. Server-side apply refuses the whole object. Of two entries of an ExternalSecret with one
//! `secretKey` the last counts.
//!
//! People see: `failed to create typed patch object (…): .spec.template.spec.containers[name="web"].env:
//! duplicate entries for key [name="LOG_LEVEL"]`, `Warning: spec.template.spec.containers[0].env[3]: hides
//! previous definition of "LOG_LEVEL", which may be dropped when using apply`.
//!
//! ## Bad
//! ```yaml
//! env: [{name: LOG_LEVEL, value: info}, {name: LOG_LEVEL, value: debug}]
//! ```
//! ## Good
//! ```yaml
//! env: [{name: LOG_LEVEL, value: debug}]
//! ```
//! ## When to suppress
//! Never: take one of the two out.

use std::collections::HashMap;

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{self, Pod, list, text},
        sync_options, unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-item-twice",
    incident: "C2",
    severity: Severity::Error,
    title: "a list has one item twice",
    page: page!("c2_item_twice.rs"),
    check,
};

/// An item that another one with its key comes before.
struct Twice<'a> {
    /// The list.
    list: FieldPath,
    /// The list as server-side apply names it.
    place: String,
    first: usize,
    second: usize,
    key: String,
    /// The name of a variable; for it, the last counts under client-side apply.
    variable: Option<&'a str>,
    is_same: bool,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        if object.key.group == "external-secrets.io"
            && !unrendered_files::may_be_a_patch(context.survey, object)
        {
            external(context, object, &mut once);
        }
        let Some(pod) =
            pods::pod_of(object).filter(|_| !unrendered_files::may_be_a_patch(context.survey, object))
        else {
            continue;
        };
        let is_server_side = sync_options::is_on(context.survey, object, "ServerSideApply");
        for twice in twice(&pod) {
            let (message, severity) = match twice.variable {
                _ if is_server_side => {
                    (format!("{}: duplicate entries for key {}", twice.place, twice.key), Severity::Error)
                }
                Some(name) if !twice.is_same => {
                    let message = format!(
                        "{}[{}]: hides previous definition of {name:?}, which may be dropped when using apply",
                        twice.list.to_string().trim_start_matches('.'),
                        twice.second
                    );
                    (message, Severity::Warning)
                }
                _ => continue,
            };
            let mut diagnostic = RULE
                .diagnostic(format!("{} has an item twice: {message}", object.title()))
                .at(context.survey.span(object, &twice.list.index(twice.second)), "the second")
                .see(context.survey.span(object, &twice.list.index(twice.first)), "the first");
            diagnostic.severity = severity;
            let diagnostic = diagnostic.because(if is_server_side {
                "items of this list are told by their keys: server-side apply refuses the object, and the sync fails"
            } else {
                "of two variables with one name the last counts; when one is changed later, apply may take the other away"
            });
            once.add(&message, RULE.finding(context, object, diagnostic));
        }
    }
    once.report(report);
}

/// A key of the Secret that an ExternalSecret takes from two places: the last counts.
fn external(context: &Context<'_>, object: &Object, once: &mut Once) {
    let path = match object.key.kind.as_str() {
        "ExternalSecret" => keys(&["spec", "data"]),
        "ClusterExternalSecret" => keys(&["spec", "externalSecretSpec", "data"]),
        _ => return,
    };
    let Some(items) = path.get(object.value()).and_then(Value::as_array) else { return };
    let key = |item| Some(text(item, "secretKey").to_owned()).filter(|key| !key.is_empty());
    let Some(twice) = first(items, key, path.clone(), path.to_string()).filter(|it| !it.is_same) else {
        return;
    };
    let message = format!("secretKey {:?} is taken from two places", twice.key);
    let mut diagnostic = RULE
        .diagnostic(format!("{} has an item twice: {message}", object.title()))
        .at(context.survey.span(object, &twice.list.index(twice.second).key("secretKey")), "this one counts")
        .see(context.survey.span(object, &twice.list.index(twice.first).key("secretKey")), "this one is lost")
        .because("the keys are filled in one after the other: the Secret has the last, and lacks what the first was to be called");
    diagnostic.severity = Severity::Warning;
    once.add(&message, RULE.finding(context, object, diagnostic).likely());
}

fn twice<'a>(pod: &Pod<'a>) -> Vec<Twice<'a>> {
    let mut found = Vec::new();
    let spec = pod.spec_path();
    let secrets = list(pod.spec(), "imagePullSecrets");
    let key = |item: &'a Value| Some(format!("[name={:?}]", text(item, "name")));
    found.extend(first(secrets, key, spec.key("imagePullSecrets"), format!("{spec}.imagePullSecrets")));
    for container in pod.containers() {
        let of = |field: &str| {
            let path = container.path.to_string();
            let above = path.rsplit_once('[').map_or(path.as_str(), |(above, _)| above);
            format!("{above}[name={:?}].{field}", container.name())
        };
        let variables = list(container.value, "env");
        let named = |item: &'a Value| Some(format!("[name={:?}]", text(item, "name")));
        found.extend(
            first(variables, named, container.path.key("env"), of("env"))
                .map(|it| Twice { variable: Some(text(&variables[it.second], "name")), ..it }),
        );
        let port = |item: &'a Value| {
            let protocol = item.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
            Some(format!("[containerPort={},protocol={protocol:?}]", item.get("containerPort")?.as_i64()?))
        };
        let ports = list(container.value, "ports");
        found.extend(first(ports, port, container.path.key("ports"), of("ports")));
    }
    found
}

/// The first item with the key of an earlier one.
fn first<'a>(
    items: &'a [Value],
    key: impl Fn(&'a Value) -> Option<String>,
    list: FieldPath,
    place: String,
) -> Option<Twice<'a>> {
    let keys: Vec<Option<String>> =
        items.iter().map(|item| key(item).filter(|_| !placeholders::has_placeholder(item))).collect();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let (second, first) = keys.iter().enumerate().find_map(|(at, key)| {
        let key = key.as_deref()?;
        let earlier = seen.get(key).copied();
        seen.entry(key).or_insert(at);
        Some((at, earlier?))
    })?;
    let is_same = items[first] == items[second];
    Some(Twice { list, place, first, second, key: keys[second].clone()?, variable: None, is_same })
}
