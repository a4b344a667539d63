//! # A template reads a value where the values do not have it
//!
//! A template asks for `.Values.init.auth.path`, and the values have `auth.path`: something was moved in one of
//! two places. Helm fails where what stands above the value is not there, and puts nothing where it is.
//!
//! It speaks where no values of the chart have the one path, exactly one other has the same end or is its
//! end, or one beside it is nearly called so and read by nobody, and the template does not look first whether
//! the value is there.
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

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_value::{Location, ObjectExt, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_templates,
        dedup::Once,
        given_values::GivenValues,
        nearest_name,
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

fn of_chart(context: &Context<'_>, folder: &str, once: &mut Once) {
    let files = &context.survey.files;
    let inside = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    let templates = inside("templates/");
    let texts: Vec<_> = files
        .paths()
        .filter(|path| path.starts_with(&templates))
        .filter_map(|path| Some((path, files.text(path)?)))
        .collect();
    let mut asked = Vec::new();
    for (path, text) in &texts {
        for (line, content) in (1..).zip(text.lines()) {
            for found in READ.captures_iter(content) {
                asked.push((
                    found[1].trim_start_matches('.').to_owned(),
                    Location::new(Arc::clone(path), line, 0),
                ));
            }
        }
    }
    if asked.is_empty() {
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
    for (wanted, at) in asked {
        let steps: Vec<&str> = wanted.split('.').collect();
        let is_given = given.iter().any(|it| it.values.at(&steps).is_some());
        if is_given || handed_on.contains(steps[0]) || is_looked_for(&texts, &wanted) {
            continue;
        }
        let ends = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('.'));
        let is_meant = |it: &&String| it.contains('.') && ends(&wanted, it) || ends(it, &wanted);
        let meant: Vec<&String> = leaves.iter().filter(is_meant).collect();
        let near = || misspelt(&texts, &given, &steps);
        let Some(meant) = (if let [one] = meant.as_slice() { Some((*one).clone()) } else { near() }) else {
            continue;
        };
        let diagnostic = RULE
            .diagnostic(format!("the template reads {wanted}, which no values have: they have {meant}"))
            .at(files.span(&at), "this value is not there")
            .because("Helm puts nothing here, or fails with `nil pointer` where what stands above it is not there, too")
            .help(format!("read .Values.{meant}"));
        once.add(&wanted, Finding::new(RULE.incident, diagnostic).likely().perhaps(&wanted, Some(&meant)));
    }
}

/// The value beside the one that is asked for that is nearly called so, if no template reads it.
fn misspelt(texts: &[(&Arc<str>, Arc<str>)], given: &[GivenValues], steps: &[&str]) -> Option<String> {
    let (last, above) = steps.split_last()?;
    let beside = given.iter().filter_map(|it| it.values.at(above)?.as_object()).flat_map(|it| it.keys());
    let near = nearest_name::nearest(last, beside.map(String::as_str))?;
    let path = [above, &[near]].concat().join(".");
    let is_read = texts.iter().any(|(_, text)| {
        PATH.captures_iter(text).any(|it| it[1].trim_start_matches('.').starts_with(path.as_str()))
    });
    (!is_read && last.len() > 3).then_some(path)
}

/// Whether a template looks if a value, or what stands above it, is there, in any way but by writing it.
fn is_looked_for(texts: &[(&Arc<str>, Arc<str>)], wanted: &str) -> bool {
    let is_same =
        |path: &str| wanted == path || wanted.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    texts.iter().flat_map(|(_, text)| text.lines()).any(|line| {
        let mut paths = PATH.captures_iter(line).filter(|it| is_same(it[1].trim_start_matches('.')));
        paths.next().is_some() && !READ.captures_iter(line).any(|it| it[1].trim_start_matches('.') == wanted)
    })
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
    let chart = context.survey.files.text(chart).and_then(|text| tiphys_yaml::from_yaml(&text).ok());
    for dependency in chart.as_ref().map(|it| list(it, "dependencies")).unwrap_or_default() {
        found.extend([text(dependency, "name"), text(dependency, "alias")].map(str::to_owned));
    }
    found
}
