//! # Values at a place where the chart does not look
//!
//! An Application gives a chart of this repository a value one level too deep, one level too high, or under a
//! name with a slip. No template reads it: the chart renders with its own value, the sync succeeds, and what
//! was to change stays as it was.
//!
//! People see: nothing: the old image, the old number of replicas, no limits.
//!
//! Told where the templates read a value of this name at another place, or one that is called alike, so that
//! what was meant is plain; values that the chart's own `values.yaml` has are left out, and so are charts of
//! which nobody can tell what they read.
//!
//! ## Bad
//! ```yaml
//! # templates: {{ .Values.image.tag }}, {{ toYaml .Values.resources }}
//! image:
//!   tag: 1.4.2
//!   resources: {limits: {memory: 256Mi}}
//! ```
//! ## Good
//! ```yaml
//! image:
//!   tag: 1.4.2
//! resources: {limits: {memory: 256Mi}}
//! ```
//! ## When to suppress
//! Where another tool reads the file.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_diag::{Severity, Span, similar_names};
use tiphys_graph::{App, Declaration, Files};
use tiphys_model::HelmSource;
use tiphys_value::{FieldPath, Location, Value};
use tiphys_vfs::join;
use tiphys_yaml::Profile;

use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_values_read::Reads,
        dedup::Once,
        field_paths::{place, source},
        placeholders, several_values, text_values,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-misplaced-values",
    incident: "D2",
    severity: Severity::Warning,
    title: "values at a place where the chart does not look",
    page: page!("d2_misplaced_values.rs"),
    check,
};

/// A value that no template reads.
struct Misplaced {
    path: FieldPath,
    shown: String,
    /// What the chart reads.
    meant: String,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    let mut known: BTreeMap<String, Option<Reads>> = BTreeMap::new();
    let mut files: BTreeMap<Arc<str>, BTreeSet<String>> = BTreeMap::new();
    for app in &survey.apps {
        for (at, source_of) in app.application.spec.effective_sources().iter().enumerate() {
            let folder = source_of.path.trim_start_matches("./").trim_matches('/').to_owned();
            let Some(helm) = &source_of.helm else { continue };
            let chart = format!("{folder}/Chart.yaml");
            if !source_of.chart.is_empty() || !app.read.contains(chart.as_str()) || is_of_many(context, app) {
                continue;
            }
            for file in &helm.value_files {
                let path = file.strip_prefix('$').and_then(|rest| Some(rest.split_once('/')?.1.to_owned()));
                let path = path.or_else(|| join(&folder, file.trim_start_matches('/')).ok());
                let read = path.and_then(|path| app.read.get(path.as_str()));
                read.map(|path| files.entry(path.clone()).or_default().insert(folder.clone()));
            }
            let reads =
                known.entry(folder.clone()).or_insert_with(|| Reads::from_chart(&survey.files, &folder));
            if let Some(reads) = reads {
                inline(context, (app, at), (helm, &folder, reads), &mut once);
            }
        }
    }
    for (path, charts) in files {
        // What several charts are given, each of them reads in part.
        let mut charts = charts.into_iter();
        let (Some(folder), None) = (charts.next(), charts.next()) else { continue };
        if let Some(reads) = known.get(&folder).and_then(Option::as_ref) {
            of_file(context, (&path, &folder, reads), &mut once);
        }
    }
    once.report(report);
}

/// Whether an ApplicationSet gives the same values to several charts, each of which reads what it knows.
fn is_of_many(context: &Context<'_>, app: &App) -> bool {
    let Declaration::Set(id) = app.declaration else { return false };
    let paths = |app: &App| -> Vec<String> {
        app.application.spec.effective_sources().iter().map(|it| it.path.clone()).collect()
    };
    let own = paths(app);
    context.survey.sets[id.0].apps.iter().any(|other| paths(context.survey.app(*other)) != own)
}

/// The values that an Application gives in its own text.
fn inline(
    context: &Context<'_>,
    (app, at): (&App, usize),
    (helm, folder, reads): (&HelmSource, &str, &Reads),
    once: &mut Once,
) {
    let field = source(&app.application.spec, at).key("helm");
    let by = format!("Application {}", app.name());
    let mut told = |values: &Value, span: &dyn Fn(&FieldPath) -> Span| {
        let found = find_misplaced(values, reads);
        let spans = found.iter().map(|it| span(&it.path)).collect();
        add(&context.survey.files, (&found, spans), (&by, folder), Some(app), once);
    };
    match &helm.values_object {
        Some(values) => told(values, &|path| {
            let whole = path.0.iter().fold(field.key("valuesObject"), |mut whole, step| {
                whole.0.push(step.clone());
                whole
            });
            context.survey.app_span(app, &whole)
        }),
        None => {
            if let Some(values) = text_values::read(&helm.values) {
                told(&values, &|_| context.survey.app_span(app, &field.key("values")));
            }
        }
    }
}

/// The values of a file.
fn of_file(
    context: &Context<'_>,
    (path, folder, reads): (&Arc<str>, &str, &Reads),
    once: &mut Once,
) -> Option<()> {
    let files: &Files = &context.survey.files;
    let text = files.text(path)?;
    let values = files.value(path)?;
    let document = tiphys_yaml::parse_first(&text, Profile::Go2).ok()??;
    let found = find_misplaced(&values, reads);
    let span = |it: &Misplaced| {
        let start = place(&document.root, &it.path);
        files.span(&Location::new(path.clone(), start.line, start.column))
    };
    let spans = found.iter().map(span).collect();
    add(files, (&found, spans), (path, folder), None, once);
    Some(())
}

/// Adds what is told of the misplaced values of one writer: each with a comment that silences it alone, and
/// the others together.
fn add(
    files: &Files,
    (found, spans): (&[Misplaced], Vec<Span>),
    writer: (&str, &str),
    app: Option<&App>,
    once: &mut Once,
) {
    let all: Vec<(&Misplaced, Span)> = found.iter().zip(spans).collect();
    let mut lines = several_values::SilencedLines::default();
    let (silenced, told): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(_, span)| lines.contains(files, span));
    for group in std::iter::once(told).chain(silenced.into_iter().map(|it| vec![it])) {
        add_together(&group, writer, app, once);
    }
}

fn add_together(
    several: &[(&Misplaced, Span)],
    (by, folder): (&str, &str),
    app: Option<&App>,
    once: &mut Once,
) {
    let spans = several.iter().map(|(_, span)| span.clone());
    let several: Vec<&Misplaced> = several.iter().map(|(it, _)| *it).collect();
    let names: Vec<&str> = several.iter().map(|it| it.shown.as_str()).collect();
    if names.is_empty() {
        return;
    }
    let message =
        format!("{by} sets {}, which no template of {folder} reads", several_values::listed(&names));
    let mut diagnostic =
        several_values::at_each(RULE.diagnostic(message), spans, "has no effect", "nor has this").because(
            "Helm hands a chart any value, and a template that asks for another one gets the chart's own",
        );
    for it in &several {
        let instead = if several.len() == 1 { String::new() } else { format!(" for {}", it.shown) };
        diagnostic = diagnostic.help(format!("the templates read {}{instead}", it.meant));
    }
    let finding = Finding::new(RULE.incident, diagnostic).likely();
    let finding = app.iter().fold(finding, |finding, app| finding.app(app.name()));
    once.add(&names.join(" "), finding);
}

/// The values that no template reads, where it is plain what was meant.
fn find_misplaced(values: &Value, reads: &Reads) -> Vec<Misplaced> {
    let mut found = Vec::new();
    walk(values, &mut Vec::new(), reads, &mut found);
    found
}

fn walk<'a>(value: &'a Value, path: &mut Vec<&'a str>, reads: &Reads, found: &mut Vec<Misplaced>) {
    const MAX_DEPTH: usize = 8;
    let Some(map) = value.as_object().filter(|_| path.len() < MAX_DEPTH) else { return };
    for (key, below) in map {
        let is_empty = below.is_null()
            || below.as_object().is_some_and(|map| map.is_empty())
            || below.as_array().is_some_and(Vec::is_empty);
        let is_aside = key.starts_with(['.', '_']) || key.starts_with("x-") || placeholders::is_in(key);
        path.push(key);
        if is_empty || is_aside || reads.is_whole(path) {
            // Nothing to tell.
        } else if reads.reads_value(path) {
            walk(below, path, reads, found);
        } else if !reads.has_default(path)
            && let Some(meant) = intended_path(path, below, value, reads)
        {
            let at = path.iter().fold(FieldPath::default(), |at, step| at.key(*step));
            found.push(Misplaced { path: at, shown: path.join("."), meant });
        }
        path.pop();
    }
}

/// What was meant with a value that nothing reads: it without the key above what it holds, with fewer or one
/// more of the keys above it, or the key that is nearly the same.
fn intended_path(path: &[&str], value: &Value, beside: &Value, reads: &Reads) -> Option<String> {
    let (last, above) = path.split_last()?;
    // `web: {replicaCount: 3}` for `replicaCount: 3`
    if let Some(map) = value.as_object()
        && map.keys().all(|key| reads.reads_value(&[above, &[key.as_str()]].concat()))
    {
        let keys: Vec<String> = map.keys().map(|key| [above, &[key.as_str()]].concat().join(".")).collect();
        return Some(keys.join(", "));
    }
    // Words that stand at many places.
    const COMMON: [&str; 16] = [
        "annotations",
        "enabled",
        "host",
        "labels",
        "name",
        "namespace",
        "path",
        "port",
        "repoURL",
        "server",
        "size",
        "type",
        "url",
        "user",
        "value",
        "version",
    ];
    let is_common = COMMON.contains(last);
    let is_given = |path: &[&str]| path.len() == 1 && beside.get(path[0]).is_some() && above.is_empty();
    let higher = (0..above.len()).rev().map(|end| [&above[..end], &[last]].concat());
    if let Some(higher) =
        higher.into_iter().find(|path| !is_common && reads.reads_value(path) && !is_given(path))
    {
        return Some(higher.join("."));
    }
    let known = reads.keys_below(above);
    let deeper: Vec<&&str> =
        known.iter().filter(|key| reads.keys_below(&[above, &[key]].concat()).contains(last)).collect();
    if let [only] = deeper[..]
        && !is_common
    {
        return Some([above, &[only, last]].concat().join("."));
    }
    let near = similar_names::nearest_slip(last, known.iter().copied());
    let near = near.or_else(|| known.iter().copied().find(|key| is_alike(above, (last, value), key, reads)));
    let near = near.filter(|near| beside.get(near).is_none())?;
    Some([above, &[near]].concat().join("."))
}

/// Whether a key that the chart reads has a number or switch as its default, as the value is one, and begins
/// with the same word: `replicas` and `replicaCount`.
fn is_alike(above: &[&str], (key, value): (&str, &Value), known: &str, reads: &Reads) -> bool {
    const SHORTEST: usize = 6;
    let shared = key.bytes().zip(known.bytes()).take_while(|(one, other)| one == other).count();
    let default = reads.default_of(&[above, &[known]].concat());
    let is_same_type = default
        .is_some_and(|it| it.is_number() && value.is_number() || it.is_boolean() && value.is_boolean());
    shared >= SHORTEST && shared + 1 >= key.len() && is_same_type
}
