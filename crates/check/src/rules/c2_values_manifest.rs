//! # A manifest in the values of a chart that the API server refuses
//!
//! Many charts take whole manifests among their values (`extraObjects`, `extraDeploy`, `extraManifests`) and
//! write them out as they are. Where the chart comes from elsewhere, nothing looks at these before they are
//! applied: a field that the kind does not have is dropped or refused, and the sync of the Application fails
//! on it.
//!
//! People see: `strict decoding error: unknown field "spec.data[0].remoteKey"`, `ValidationError`, a Secret
//! that stays empty.
//!
//! ## Bad
//! ```yaml
//! extraObjects:
//! - {apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: token},
//!    spec: {data: [{secretKey: token, remoteKey: shop}]}}
//! ```
//! ## Good
//! ```yaml
//! extraObjects:
//! - {apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: token},
//!    spec: {data: [{secretKey: token, remoteRef: {key: shop}}]}}
//! ```
//! ## When to suppress
//! Where the chart reads the value as something else than a manifest.

use std::{collections::HashSet, sync::Arc};

use tiphys_diag::{Severity, Span};
use tiphys_graph::Object;
use tiphys_schema::Catalog;
use tiphys_value::{FieldPath, GroupVersionKind, Location, ObjectExt, Segment, Value};
use tiphys_vfs::base_name;
use tiphys_yaml::{Content, Node, Profile};

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths, inline_manifests, placeholders, pods::text},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-values-manifest",
    incident: "C2",
    severity: Severity::Warning,
    title: "a manifest in the values of a chart with a field that its kind does not have",
    page: page!("c2_values_manifest.rs"),
    check,
};

/// How deep in values a manifest may stand.
const MAX_DEPTH: usize = 8;

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    let mut of_text = |text: &str, span: &dyn Fn(u32, u32) -> Span| {
        let Ok(documents) = tiphys_yaml::parse_documents(text, Profile::Go2) else { return };
        for node in documents.iter().flat_map(|document| manifests(&document.root)) {
            let Ok(value) = tiphys_yaml::to_value(node, Profile::Go2) else { continue };
            let number = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
            let place = |field: &FieldPath| {
                inline_manifests::position(node, field)
                    .map(|(line, column)| span(number(line), number(column)))
            };
            judge(context, &value, &place, &mut once);
        }
    };
    // Charts that are here are rendered, and what they write is judged as all objects are.
    let rendered = || survey.apps.iter().filter(|app| app.is_rendered());
    let known: HashSet<&Arc<str>> = rendered().flat_map(|app| app.read.iter()).collect();
    let unknown = survey.files.ending(&[".yaml", ".yml"]).filter(|path| !known.contains(path));
    for path in unknown.filter(|path| is_of_values(path)) {
        let Some(text) = survey.files.text(path).filter(|text| may_hold_one(text)) else { continue };
        of_text(&text, &|line, column| span_at(context, path, line, column));
    }
    for app in survey.apps.iter().filter(|app| !app.is_rendered()) {
        let spec = &app.application.spec;
        for (index, source) in spec.effective_sources().iter().enumerate() {
            let Some(helm) = source.helm.as_ref().filter(|helm| may_hold_one(&helm.values)) else { continue };
            let field = field_paths::source(spec, index).key("helm").key("values");
            let place = survey.app_span(app, &field);
            of_text(&helm.values, &|line, _| inside(context, &place, line));
        }
    }
    for app in survey.apps.iter().filter(|app| !app.is_rendered()) {
        let spec = &app.application.spec;
        let sources = (0..spec.effective_sources().len()).map(|index| field_paths::source(spec, index));
        for (path, value) in
            sources.flat_map(|it| manifests_below(&app.declared.value, &it.key("helm").key("valuesObject")))
        {
            let place = |field: &FieldPath| Some(survey.app_span(app, &join_path(&path, field)));
            judge(context, value, &place, &mut once);
        }
    }
    for release in survey.objects.iter().filter(|object| object.key.kind == "HelmRelease") {
        for (path, value) in manifests_below(release.value(), &field_paths::keys(&["spec", "values"])) {
            let place = |field: &FieldPath| Some(survey.span(release, &join_path(&path, field)));
            judge(context, value, &place, &mut once);
        }
    }
    once.report(report);
}

fn join_path(path: &FieldPath, below: &FieldPath) -> FieldPath {
    below.0.iter().fold(path.clone(), |path, step| match step {
        Segment::Key(key) => path.key(key.as_str()),
        Segment::Index(index) => path.index(*index),
    })
}

/// The manifests below a field of an object, with their paths.
fn manifests_below<'a>(object: &'a Value, field: &FieldPath) -> Vec<(FieldPath, &'a Value)> {
    let mut found = Vec::new();
    let mut left: Vec<(FieldPath, &Value, usize)> =
        field.get(object).map(|value| (field.clone(), value, 0)).into_iter().collect();
    while let Some((path, value, depth)) = left.pop() {
        let has_metadata = value.get("metadata").is_some_and(Value::is_object);
        if has_metadata && is_named(text(value, "apiVersion"), text(value, "kind")) {
            found.push((path, value));
        } else if depth < MAX_DEPTH {
            match value {
                Value::Object(map) => {
                    left.extend(map.iter().map(|(key, it)| (path.key(key.as_str()), it, depth + 1)));
                }
                Value::Array(items) => {
                    left.extend(items.iter().enumerate().map(|(at, it)| (path.index(at), it, depth + 1)));
                }
                _ => {}
            }
        }
    }
    found
}

/// Whether a file is one of values, by its name, and none of a chart that was put beside another.
fn is_of_values(path: &str) -> bool {
    base_name(path).contains("values") && !path.contains("/charts/") && !placeholders::is_skeleton(path)
}

fn may_hold_one(text: &str) -> bool {
    text.contains("apiVersion:") && text.contains("kind:") && text.contains("metadata:")
}

/// A place in a file of values.
fn span_at(context: &Context<'_>, path: &Arc<str>, line: u32, column: u32) -> Span {
    context.survey.files.span(&Location::new(path.clone(), line, column))
}

/// A line of a text that stands as a block in a file; the block's beginning where it stands otherwise.
fn inside(context: &Context<'_>, block: &Span, line: u32) -> Span {
    let files = &context.survey.files;
    let text = files.text(&block.file).unwrap_or_default();
    let opening = text.lines().nth(block.start.line.max(1) as usize - 1).unwrap_or_default();
    match opening.trim_end().ends_with(['|', '-', '+']) && opening.contains('|') {
        true => files.span(&Location::new(block.file.clone(), block.start.line + line, 0)),
        false => block.clone(),
    }
}

/// The manifests among values: mappings with a version, a kind and metadata.
fn manifests(root: &Node) -> Vec<&Node> {
    let mut found = Vec::new();
    let mut left = vec![(root, 0)];
    while let Some((node, depth)) = left.pop() {
        if depth > MAX_DEPTH {
            continue;
        }
        match &node.content {
            Content::Mapping(pairs) if is_manifest(pairs) => found.push(node),
            Content::Mapping(pairs) => left.extend(pairs.iter().map(|(_, value)| (value, depth + 1))),
            Content::Sequence(items) => left.extend(items.iter().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    found.sort_by_key(|node| (node.span.start.line, node.span.start.column));
    found
}

fn is_manifest(pairs: &[(Node, Node)]) -> bool {
    let value = |wanted: &str| {
        let is_wanted = |key: &Node| matches!(&key.content, Content::Scalar(text) if text == wanted);
        pairs.iter().find(|(key, _)| is_wanted(key)).map(|(_, value)| &value.content)
    };
    let (Some(Content::Scalar(version)), Some(Content::Scalar(kind))) = (value("apiVersion"), value("kind"))
    else {
        return false;
    };
    is_named(version, kind) && matches!(value("metadata"), Some(Content::Mapping(_)))
}

/// Whether two texts are those of a manifest's version and kind.
fn is_named(version: &str, kind: &str) -> bool {
    version.rsplit('/').next().is_some_and(|it| it.starts_with('v'))
        && kind.starts_with(|c: char| c.is_ascii_uppercase())
}

fn judge(context: &Context<'_>, value: &Value, place: &dyn Fn(&FieldPath) -> Option<Span>, once: &mut Once) {
    let (gvk, name) = (value.gvk(), value.name());
    let is_same = |object: &Object| object.key.kind == gvk.kind && object.key.name == name;
    if !name.is_empty() && context.survey.objects.iter().any(is_same) {
        return;
    }
    let Some((unknown, is_shipped)) = unknown(context, &gvk, value) else { return };
    let GroupVersionKind { version, kind, .. } = &gvk;
    for field in unknown.iter().filter(|field| !placeholders::is_in(field)) {
        let Some(span) = place(&field_paths::of_api(field)) else { continue };
        let message = format!(
            "{kind}/{name} among the values cannot be handled: {kind} in version \"{version}\" has no field \"{field}\""
        );
        let diagnostic = RULE
            .diagnostic(message)
            .at(span, "the kind has no such field")
            .because("charts write such manifests out as they are, and the API server drops the field or refuses the object");
        let finding = Finding::new(RULE.incident, diagnostic).object(format!("{kind}/{name}"));
        once.add(field, if is_shipped { finding.likely() } else { finding });
    }
}

/// The fields that a kind does not have, and whether that is told by what is known of an operator; `None` if
/// nobody can tell, or so many are not known that another definition is meant.
fn unknown(context: &Context<'_>, gvk: &GroupVersionKind, value: &Value) -> Option<(Vec<String>, bool)> {
    const MOST: usize = 6;
    let catalog = Catalog::latest();
    let found = match catalog.kind(gvk).and_then(|_| catalog.type_of(gvk)) {
        Some(ty) => Some((inline_manifests::unknown_fields(ty, &mut value.clone()), false)),
        None => {
            let best = context.definitions().of_kind(gvk).into_iter().map(|custom| {
                let mut pruned = value.clone();
                (custom.schema.prune(&mut pruned), custom.is_shipped)
            });
            best.min_by_key(|(fields, _)| fields.len())
        }
    };
    found.filter(|(fields, _)| fields.len() <= MOST)
}
