//! # A template reads a value where the values do not have it
//!
//! A template asks for `.Values.init.auth.path`, and the values have `auth.path`: something was moved in one of
//! two places. Helm fails where what stands above the value is not there, and puts nothing where it is.
//!
//! It speaks where no values of the chart have the one path, exactly one other has the same end or is its
//! end, or one beside it has a similar name and is read by nobody, and the template does not look first
//! whether the value is there.
//!
//! People see: `nil pointer evaluating interface {}.path`, or an empty text in a manifest.
//!
//! ## Bad
//! ```yaml
//! # values.yaml: auth: {path: kubernetes}
//! mountPath: {{ .Values.init.auth.path }}
//! ```
//! ## Good
//! ```yaml
//! mountPath: {{ .Values.auth.path }}
//! ```
//! ## When to suppress
//! Where the value is given when the chart is installed by hand.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use regex::{Captures, Regex};
use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Files;
use tiphys_value::{Location, ObjectExt, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_templates,
        dedup::Once,
        given_values::GivenValues,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-moved-value",
    incident: "D2",
    severity: Severity::Warning,
    title: "a template reads a value where the values do not have it",
    page: page!("d2_moved_value.rs"),
    check,
};

/// A value of two steps or more that is written as it is, or in quotes.
static READ: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{\{-?\s*\$?\.Values((?:\.[A-Za-z0-9_]+){2,})\s*(?:\|\s*(?:quote|squote)\s*)?-?\}\}")
        .expect("the pattern is well formed")
});
/// A path of values, wherever it is read.
static PATH: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\.Values((?:\.[A-Za-z0-9_]+)+)").expect("the pattern is well formed"));

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for folder in chart_templates::charts(&context.survey.files) {
        of_chart(context, folder, &mut once);
    }
    once.report(report);
}

/// What the templates of a chart read of its values.
#[derive(Default)]
struct TemplateReads {
    /// What is written as it is, with its place.
    written: Vec<(String, Location)>,
    /// What is read in any other way, such as a condition: the template looks whether it is there.
    looked_for: BTreeSet<String>,
    /// All of it.
    all: BTreeSet<String>,
}

impl TemplateReads {
    fn of_folder(files: &Files, templates: &str) -> Self {
        let mut reads = Self::default();
        for path in files.paths().filter(|path| path.starts_with(templates)) {
            let Some(text) = files.text(path) else { continue };
            for (line, content) in (1..).zip(text.lines()).filter(|(_, line)| line.contains(".Values.")) {
                let name = |found: &Captures<'_>| found[1].trim_start_matches('.').to_owned();
                let written: Vec<String> = READ.captures_iter(content).map(|it| name(&it)).collect();
                let paths: Vec<String> = PATH.captures_iter(content).map(|it| name(&it)).collect();
                let others = paths.iter().filter(|it| !written.contains(it)).cloned();
                reads.looked_for.extend(others);
                reads.all.extend(paths);
                let place = |name| (name, Location::new(Arc::clone(path), line, 0));
                reads.written.extend(written.into_iter().map(place));
            }
        }
        reads
    }

    /// Whether a template looks if a value, or what stands above it, is there.
    fn looks_for(&self, path: &str) -> bool {
        // No values are deeper.
        const MAX_STEPS: usize = 64;
        let mut ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]).take(MAX_STEPS);
        ends.any(|end| self.looked_for.contains(&path[..end]))
    }

    /// Whether a value, or something below it, is read.
    fn has(&self, path: &str) -> bool {
        let next = self.all.range(path.to_owned()..).next();
        next.is_some_and(|next| next.starts_with(path))
    }
}

fn of_chart(context: &Context<'_>, folder: &str, once: &mut Once) {
    let files = &context.survey.files;
    let inside = |name: &str| chart_templates::in_chart(folder, name);
    let reads = TemplateReads::of_folder(files, &inside("templates/"));
    if reads.written.is_empty() {
        return;
    }
    let given = GivenValues::of_chart(context, folder);
    let own = inside("values.yaml");
    if !given.iter().any(|it| it.who == own) {
        return;
    }
    let mut leaves = BTreeSet::new();
    given.iter().for_each(|it| gather(&it.values, &mut Vec::new(), &mut leaves));
    let handed_on = handed_on(context, &inside("Chart.yaml"));
    for (wanted, at) in &reads.written {
        let steps: Vec<&str> = wanted.split('.').collect();
        let is_given = given.iter().any(|it| it.values.at(&steps).is_some());
        if is_given || handed_on.contains(steps[0]) || reads.looks_for(wanted) {
            continue;
        }
        let ends = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('.'));
        let is_meant = |it: &&String| it.contains('.') && ends(wanted, it) || ends(it, wanted);
        let meant: Vec<&String> = leaves.iter().filter(is_meant).collect();
        let meant = match meant.as_slice() {
            [one] => Some((*one).clone()),
            _ => misspelt(&reads, &given, &steps),
        };
        let Some(meant) = meant else { continue };
        let diagnostic = RULE
            .diagnostic(format!("the template reads {wanted}, which no values have: they have {meant}"))
            .at(files.span(at), "this value is not there")
            .because("Helm puts nothing here, or fails with `nil pointer` where what stands above it is not there, too")
            .help(format!("read .Values.{meant}"));
        once.add(wanted, Finding::new(RULE.incident, diagnostic).likely().perhaps(wanted, Some(&meant)));
    }
}

/// The value beside the one that is asked for that has a similar name, if no template reads it.
fn misspelt(reads: &TemplateReads, given: &[GivenValues], steps: &[&str]) -> Option<String> {
    const SHORTEST: usize = 4;
    let (last, above) = steps.split_last().filter(|(last, _)| last.len() >= SHORTEST)?;
    let beside = given.iter().filter_map(|it| it.values.at(above)?.as_object()).flat_map(|it| it.keys());
    let near = similar_names::nearest_slip(last, beside.map(String::as_str))?;
    let path = [above, &[near]].concat().join(".");
    (!reads.has(&path)).then_some(path)
}

/// The paths of all values that are no maps.
fn gather(value: &Value, steps: &mut Vec<String>, leaves: &mut BTreeSet<String>) {
    const MAX_DEPTH: usize = 12;
    match value {
        Value::Object(map) if steps.len() < MAX_DEPTH => {
            for (key, below) in map {
                steps.push(key.to_string());
                gather(below, steps, leaves);
                steps.pop();
            }
        }
        Value::Null => {}
        _ => drop(leaves.insert(steps.join("."))),
    }
}

/// The keys under which values are for the dependencies of a chart, which have values of their own.
fn handed_on(context: &Context<'_>, chart: &str) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = ["global".to_owned()].into();
    let chart = context.survey.files.value(chart);
    for dependency in chart.as_ref().map(|it| list(it, "dependencies")).unwrap_or_default() {
        found.extend([text(dependency, "name"), text(dependency, "alias")].map(str::to_owned));
    }
    found
}
