//! # A pipeline of an OpenTelemetry collector names what nothing configures
//!
//! The collector reads its whole configuration before it starts. A receiver, processor, exporter or extension
//! that a pipeline names has to be configured under the section of its name, and `${1}` is read as a variable
//! of the environment, whose name may not begin with a digit. Either fault ends the collector at once.
//!
//! People see: `service::pipelines::traces: references receiver "otlp/internal" which is not configured`,
//! `environment variable "1" has invalid name`, `CrashLoopBackOff`.
//!
//! ## Bad
//! ```yaml
//! receivers: {otlp: {}}
//! service: {pipelines: {traces: {receivers: [otlp/internal], exporters: [debug]}}}
//! ```
//! ## Good
//! ```yaml
//! receivers: {otlp: {}}
//! service: {pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}
//! ```
//! Write `$${1}` where the collector has to hand `${1}` on to Prometheus.
//!
//! ## When to suppress
//! Where a second file of configuration, which is not here, configures the rest.

use std::collections::BTreeSet;

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, Value};

use super::unread_chart_values::place_of;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::list,
        unrendered_files,
        value_steps::{Step, each_text, path_below},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-collector-config",
    incident: "C2",
    severity: Severity::Warning,
    title: "a pipeline of an OpenTelemetry collector names what nothing configures",
    page: page!("c2_collector_config.rs"),
    check,
};

/// Charts whose value `config` is the configuration of a collector.
const CHARTS: [&str; 1] = ["opentelemetry-collector"];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        if unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        for (config, path, is_text) in configurations(object) {
            of_configuration(context, object, &config, &path, is_text, &mut once);
        }
    }
    of_charts(context, &mut once);
    once.report(report);
}

/// The configurations in an object, each with the field that holds it, and whether it is a text there.
fn configurations(object: &Object) -> Vec<(Value, FieldPath, bool)> {
    let value = object.value();
    match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("opentelemetry.io", "OpenTelemetryCollector") => match value.at(&["spec", "config"]) {
            Some(Value::String(text)) => {
                read(text).map(|it| (it, keys(&["spec", "config"]), true)).into_iter().collect()
            }
            Some(map) => vec![(map.clone(), keys(&["spec", "config"]), false)],
            None => Vec::new(),
        },
        ("", "ConfigMap") => {
            let texts = value.at(&["data"]).and_then(Value::as_object).into_iter().flatten();
            let texts = texts.filter_map(|(key, text)| Some((key, text.as_str()?)));
            texts.filter_map(|(key, text)| Some((read(text)?, keys(&["data", key]), true))).collect()
        }
        _ => Vec::new(),
    }
}

/// A text as the configuration of a collector, if it is a whole one.
fn read(text: &str) -> Option<Value> {
    let is_one = ["receivers:", "exporters:", "service:", "pipelines:"].iter().all(|it| text.contains(it));
    let config = is_one.then(|| tiphys_yaml::from_yaml(text).ok())??;
    ["receivers", "exporters", "service"].iter().all(|it| config[*it].is_object()).then_some(config)
}

fn of_configuration(
    context: &Context<'_>,
    object: &Object,
    config: &Value,
    field: &FieldPath,
    is_text: bool,
    once: &mut Once,
) {
    let place = |below: FieldPath| if is_text { field.clone() } else { below };
    for named in unconfigured(config) {
        let path = named.steps.iter().fold(field.clone(), |path, step| path.key(step.as_str()));
        let path = path.index(named.at);
        let diagnostic = RULE
            .diagnostic(format!(
                "{} names the {} {} in {}, which nothing configures",
                object.title(),
                named.section.trim_end_matches('s'),
                named.name,
                named.steps.join(".")
            ))
            .at(context.survey.span(object, &place(path)), "named here")
            .because("the collector refuses the whole configuration, and ends at once");
        let nearest = similar_names::nearest_slip(&named.name, named.known.iter().map(String::as_str));
        once.add(&named.name, RULE.finding(context, object, diagnostic).perhaps(&named.name, nearest));
    }
    if object.key.kind == "OpenTelemetryCollector" || config["service"].get("pipelines").is_some() {
        each_text(config, &mut Vec::new(), &|_| true, &mut |steps, text| {
            if let Some(asked) = shell_default(text) {
                let span = context.survey.span(object, &place(path_below(field.clone(), steps)));
                let diagnostic = unknown_scheme(&object.title(), asked).at(span, "in this text");
                once.add(asked, RULE.finding(context, object, diagnostic));
            }
            if let Some(digits) = numbered(text) {
                let span = context.survey.span(object, &place(path_below(field.clone(), steps)));
                let finding = RULE.finding(
                    context,
                    object,
                    numbered_variable(&object.title(), digits).at(span, "in this text"),
                );
                once.add(digits, finding);
            }
        });
    }
}

/// The values of charts that run a collector: only what no default of theirs can mend.
fn of_charts(context: &Context<'_>, once: &mut Once) {
    for used in context.chart_uses().iter().filter(|used| CHARTS.contains(&used.chart.as_str())) {
        for (index, values) in used.values.iter().enumerate() {
            let Some(config) = values.get("config") else { continue };
            each_text(config, &mut vec![Step::Key("config")], &|_| true, &mut |steps, text| {
                let Some(digits) = numbered(text) else { return };
                let span = place_of(context, used, index, steps).unwrap_or_else(|| used.span.clone());
                let diagnostic = numbered_variable(&used.by, digits).at(span, "in this text");
                once.add(digits, Finding::new(RULE.incident, diagnostic).likely());
            });
        }
    }
}

fn unknown_scheme(by: &str, asked: &str) -> tiphys_diag::Diagnostic {
    RULE.diagnostic(format!("{by} gives a collector ${{{asked}}}, whose scheme is not supported"))
        .because("the collector takes what stands before the first colon for a source, such as env or file")
        .help(format!("write ${{env:{asked}}}"))
}

fn numbered_variable(by: &str, digits: &str) -> tiphys_diag::Diagnostic {
    RULE.diagnostic(format!("{by} gives a collector ${{{digits}}}, which is no name of a variable"))
        .because(
            "the collector puts variables of the environment in the place of ${…}, and ends where it cannot",
        )
        .help(format!("write $${{{digits}}}: the collector makes ${{{digits}}} of it"))
}

/// What stands in the first `${NAME:-default}` of a text, which only a shell knows without `env:`.
fn shell_default(text: &str) -> Option<&str> {
    in_braces(text).find(|inner| {
        inner.split_once(":-").is_some_and(|(name, _)| {
            !name.is_empty()
                && name.bytes().all(|it| it.is_ascii_uppercase() || it == b'_' || it.is_ascii_digit())
        })
    })
}

/// The digits of the first `${1}` in a text that is not written `$${1}`.
fn numbered(text: &str) -> Option<&str> {
    in_braces(text).find(|name| !name.is_empty() && name.bytes().all(|it| it.is_ascii_digit()))
}

/// What stands in each `${…}` of a text that is not written `$${…}`.
fn in_braces(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("${").filter(|(at, _)| !text[..*at].ends_with('$'));
    starts.filter_map(|(at, _)| Some(text[at + 2..].split_once('}')?.0))
}

/// What a pipeline names and nothing configures.
struct Unconfigured {
    name: String,
    section: &'static str,
    /// The keys to the list that names it, and its place there.
    steps: Vec<String>,
    at: usize,
    known: Vec<String>,
}

fn unconfigured(config: &Value) -> Vec<Unconfigured> {
    let configured = |sections: &[&str]| -> BTreeSet<String> {
        let maps = sections.iter().filter_map(|section| config.get(*section)?.as_object());
        maps.flat_map(|map| map.keys().cloned()).collect()
    };
    // Sections that are filled in later may hold anything.
    let is_open = |sections: &[&str]| {
        sections.iter().any(|section| {
            let keys = config.get(*section).and_then(Value::as_object).into_iter().flat_map(|map| map.keys());
            config.get(*section).is_some_and(Value::is_string)
                || keys.into_iter().any(|key| placeholders::is_in(key))
        })
    };
    let mut found = Vec::new();
    let pipelines = config.at(&["service", "pipelines"]).and_then(Value::as_object).into_iter().flatten();
    const SECTIONS: [(&str, &[&str]); 3] = [
        ("receivers", &["receivers", "connectors"]),
        ("processors", &["processors"]),
        ("exporters", &["exporters", "connectors"]),
    ];
    for (pipeline, value) in pipelines {
        for (section, sections) in SECTIONS {
            if is_open(sections) {
                continue;
            }
            let known = configured(sections);
            for (at, name) in list(value, section).iter().enumerate() {
                let Some(name) = name.as_str().filter(|it| !known.contains(*it) && !placeholders::is_in(it))
                else {
                    continue;
                };
                found.push(Unconfigured {
                    name: name.to_owned(),
                    section,
                    steps: ["service", "pipelines", pipeline.as_str(), section].map(str::to_owned).to_vec(),
                    at,
                    known: known.iter().cloned().collect(),
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_configured_nowhere_is_told() {
        let config = "receivers: {otlp: {}}\nconnectors: {count: {}}\nexporters: {debug: {}}\nservice: {pipelines: \
                      {traces: {receivers: [otlp], processors: [batch], exporters: [count]}, metrics: {receivers: \
                      [count], exporters: [debug]}}}";
        let names: Vec<String> =
            unconfigured(&read(config).expect("a whole one")).into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["batch"]);
        assert!(read("receivers: {otlp: {}}").is_none());
    }

    #[test]
    fn variables_that_are_numbers_are_found() {
        assert_eq!(numbered("${1}:9100"), Some("1"));
        assert_eq!(numbered("$${1}:9100"), None);
        assert_eq!(numbered("${env:HOST} ${POD_IP}"), None);
        assert_eq!(numbered("a ${ b"), None);
    }
}
