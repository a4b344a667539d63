//! # A template of an ApplicationSet asks of its parameters what they are not
//!
//! With `goTemplate: true` the dot is the map of all parameters. Written out by itself it becomes the text
//! `map[name:web …]`, which no field means. The labels and annotations of a cluster are a map of strings:
//! functions for dictionaries such as `hasKey`, `get` and `dig` want a map of anything and fail on it, so that
//! the set yields no Applications; `index` reads both.
//!
//! People see: `wrong type for value; expected map[string]interface {}; got map[string]string`, or a value
//! that begins with `map[`.
//!
//! ## Bad
//! ```yaml
//! helm: {valuesObject: {secretId: '{{ . }}', zone: '{{ if hasKey .metadata.annotations "zone" }}a{{ end }}'}}
//! ```
//! ## Good
//! ```yaml
//! helm: {valuesObject: {secretId: '{{ .secret_id }}', zone: '{{ if index .metadata.annotations "zone" }}a{{ end }}'}}
//! ```
//! ## When to suppress
//! Where a text with all parameters is wanted, or a plugin gives the labels.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::{Set, survey::declared_span};
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::value_steps::{Step, each_text, path_below},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-set-template",
    incident: "D2",
    severity: Severity::Warning,
    title: "a template of an ApplicationSet asks of its parameters what they are not",
    page: page!("d2_set_template.rs"),
    check,
};

/// The dot alone, as a text.
static WHOLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{\{-?\s*\.\s*-?\}\}").expect("the expression is right"));
/// What makes the dot something else.
static OTHER_DOT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{\{-?\s*(?:range|with|define|block)\b").expect("the expression is right"));
/// A function for dictionaries that is given the labels or annotations of a cluster.
static OF_STRINGS: LazyLock<Regex> = LazyLock::new(|| {
    let functions = r"hasKey|get|keys|values|pick|omit|set|unset";
    let call = format!(r"\{{\{{[^}}]*\b({functions})\s+\$?(\.metadata\.(?:labels|annotations))\b[^.\w]");
    Regex::new(&call).expect("the expression is right")
});

fn check(context: &Context<'_>, report: &mut Report) {
    for set in &context.survey.sets {
        let spec = &set.declared.value["spec"];
        if spec.get("goTemplate").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        for field in ["template", "templatePatch"] {
            let steps = &mut vec![Step::Key("spec"), Step::Key(field)];
            each_text(&spec[field], steps, &|_| true, &mut |steps, text| {
                if let Some(finding) = finding(context, set, text, &path_below(FieldPath::default(), steps)) {
                    report.add(finding);
                }
            });
        }
    }
}

fn finding(context: &Context<'_>, set: &Set, text: &str, path: &FieldPath) -> Option<Finding> {
    let value = &set.declared.value;
    let set_title = format!("ApplicationSet/{}", value.name());
    let of_clusters = value.at(&["spec", "generators"]).is_some_and(has_clusters);
    let diagnostic = if let Some(call) = OF_STRINGS.captures(text).filter(|_| of_clusters) {
        let (function, map) = (&call[1], &call[2]);
        RULE.diagnostic(format!("{set_title} calls {function} on {map}: wrong type for value; expected map[string]interface {{}}; got map[string]string"))
            .at(declared_span(&context.survey.files, &set.declared, path), "in this text")
            .because("the labels and annotations of a cluster are a map of strings, and the set yields no Applications")
            .help(format!("write index {map}"))
    } else if WHOLE.is_match(text) && !OTHER_DOT.is_match(text) && !text.contains('`') {
        RULE.diagnostic(format!("{set_title} writes all parameters where one is meant"))
            .at(
                declared_span(&context.survey.files, &set.declared, path),
                "becomes a text such as map[name:web]",
            )
            .because("the dot alone is the map of all parameters")
            .help("name the parameter: {{ .name }}")
    } else {
        return None;
    };
    Some(Finding::new(RULE.incident, diagnostic).object(set_title).likely())
}

/// Whether a generator, however deep, takes the clusters of the engine.
fn has_clusters(generators: &Value) -> bool {
    match generators {
        Value::Array(items) => items.iter().any(has_clusters),
        Value::Object(map) => map.iter().any(|(key, below)| key == "clusters" || has_clusters(below)),
        _ => false,
    }
}
