//! # Defaults inside a list that the manifest leaves out
//!
//! The definition of a custom resource gives fields of list items a default, and the API server fills them
//! in. With `ServerSideApply=true` Argo CD compares by what it would apply: a list without merge keys is
//! replaced as a whole, the defaults are gone from it, and the object is OutOfSync for ever. With self-heal
//! it is synced again and again. A comparison on the server's side (`ServerSideDiff=true`) has the defaults
//! on both sides, and so has Tiphys.
//!
//! People see: an `ExternalSecret` or `HTTPRoute` that stays OutOfSync, with `conversionStrategy: Default`,
//! `decodingStrategy: None`, `metadataPolicy: None`, or `group: gateway.networking.k8s.io`, `kind: Gateway`,
//! `weight: 1` in the difference.
//!
//! ## Bad
//! ```yaml
//! data: [{secretKey: password, remoteRef: {key: shop}}]
//! ```
//! ## Good
//! ```yaml
//! metadata: {annotations: {argocd.argoproj.io/compare-options: ServerSideDiff=true}}    # of the Application
//! ```
//! ## When to suppress
//! Where the engine compares on the server's side by its own settings (`controller.diff.server.side`) and
//! these are not in the repository.

use std::{collections::BTreeMap, sync::LazyLock};

use tiphys_diag::Severity;
use tiphys_graph::{App, AppId, Object};
use tiphys_model::names;
use tiphys_value::{FieldPath, ObjectExt, Value, json};

use crate::{
    Context, Report, Rule,
    support::{
        crds::Definitions,
        placeholders,
        sync_options::{ignored_differences, is_on, mentions},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B5-defaulted-items",
    incident: "B5",
    severity: Severity::Info,
    title: "defaults inside a list that a manifest leaves out",
    page: page!("b5_defaulted_items.rs"),
    check,
};

const KNOWN: &str = include_str!("../../data/custom-defaults.txt");

/// Schemas of what is known of kinds, by group and kind.
static SCHEMAS: LazyLock<BTreeMap<&str, Value>> = LazyLock::new(|| {
    let mut schemas: BTreeMap<&str, Value> = BTreeMap::new();
    for line in KNOWN.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let (Some(kind), Some(way)) = (words.next(), words.next()) else { continue };
        let mut at = schemas.entry(kind).or_insert_with(|| json!({}));
        for step in way.split('.') {
            at = &mut at["properties"][step.trim_end_matches("[]")];
            if step.ends_with("[]") {
                at = &mut at["items"];
            }
        }
        words.for_each(|field| at["properties"][field] = json!({"default": true}));
    }
    schemas
});

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut found: BTreeMap<(AppId, &str), (&Object, FieldPath, usize)> = BTreeMap::new();
    for object in survey.objects.iter().filter(|object| object.hooks.is_empty()) {
        let Some(app) = survey.app_of(object).filter(|app| is_compared_by_apply(context, app, object)) else {
            continue;
        };
        let Some(field) = left_out(context.definitions(), object)
            .filter(|_| !placeholders::has_placeholder(object.value()))
        else {
            continue;
        };
        found.entry((app.id, &object.key.kind)).or_insert((object, field, 0)).2 += 1;
    }
    // The engine's settings count for every Application.
    if found.is_empty() || mentions(survey, "controller.diff.server.side") {
        return;
    }
    for ((app, kind), (object, field, count)) in found {
        add(context, report, survey.app(app), (kind, object, &field, count));
    }
}

/// Whether differences of an object are told by what a server-side apply would do, without asking the server.
fn is_compared_by_apply(context: &Context<'_>, app: &App, object: &Object) -> bool {
    let options = |value: &Value| value.annotation(names::COMPARE_OPTIONS).unwrap_or_default().to_owned();
    let asks_server =
        |options: &str| options.contains("ServerSideDiff=true") || options.contains("IgnoreExtraneous");
    is_on(context.survey, object, "ServerSideApply")
        && !asks_server(&options(&app.declared.value))
        && !asks_server(&options(object.value()))
        && ignored_differences(context, app, object).is_empty()
}

/// A field of a list's item that has a default, and is not set.
fn left_out(definitions: &Definitions<'_>, object: &Object) -> Option<FieldPath> {
    let gvk = object.value().gvk();
    // Most objects are of kinds that have no definition.
    if !gvk.group.contains('.') || gvk.group.ends_with(".k8s.io") && !SCHEMAS.contains_key(&*kind_of(object))
    {
        return None;
    }
    let schemas = definitions.schemas(object, &gvk);
    let mut own = schemas.iter().filter(|it| !it.is_shipped).peekable();
    if own.peek().is_none() {
        return missing(SCHEMAS.get(&*kind_of(object))?, object.value(), FieldPath::default(), false);
    }
    own.find_map(|it| missing(it.schema.as_value(), object.value(), FieldPath::default(), false))
}

fn kind_of(object: &Object) -> String {
    format!("{}/{}", object.key.group, object.key.kind)
}

/// The first missing field with a default below a value that is replaced as a whole. Objects and schemas are
/// as deep as the readers of YAML allow.
fn missing(schema: &Value, value: &Value, path: FieldPath, is_replaced: bool) -> Option<FieldPath> {
    match value {
        Value::Object(map) => {
            let properties = schema.get("properties")?.as_object()?;
            properties.iter().find_map(|(name, below)| match map.get(name) {
                Some(value) => missing(below, value, path.key(name.as_str()), is_replaced),
                None => (is_replaced && below.get("default").is_some()).then(|| path.clone()),
            })
        }
        Value::Array(items) => {
            let is_merged = matches!(schema["x-kubernetes-list-type"].as_str(), Some("map" | "set"));
            let below = schema.get("items")?;
            let mut items = items.iter().enumerate();
            items.find_map(|(at, item)| missing(below, item, path.index(at), is_replaced || !is_merged))
        }
        _ => None,
    }
}

fn add(
    context: &Context<'_>,
    report: &mut Report,
    app: &App,
    (kind, object, field, count): (&str, &Object, &FieldPath, usize),
) {
    let others = match count - 1 {
        0 => String::new(),
        others => format!(" (and of {others} more of kind {kind})"),
    };
    let diagnostic = RULE
        .diagnostic(format!(
            "{field} of {}{others} leaves out fields that the API server fills in: Application {} stays OutOfSync",
            object.title(),
            app.name()
        ))
        .at(context.survey.span(object, field), "an item without them")
        .because("with server-side apply the engine expects the list exactly as it is written, and the list that is there has the defaults too")
        .help("compare on the server's side: annotation `argocd.argoproj.io/compare-options: ServerSideDiff=true` of the Application")
        .help("or write the defaults into the manifest");
    report.add(RULE.finding(context, object, diagnostic).likely());
}
