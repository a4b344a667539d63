//! # A template of an ApplicationSet asks of its parameters what they are not
//!
//! With `goTemplate: true` the dot is the map of all parameters. Written out by itself it becomes the text
//! `map[name:web …]`, which no field means. The labels and annotations of a cluster are a map of strings:
//! functions for dictionaries such as `hasKey`, `get` and `dig` want a map of anything and fail on it, so that
//! the set yields no Applications; `index` reads both.
//!
//! A name without its dot is a function, and the controller has none of that name: it parses no template of
//! the set.
//!
//! Plugins that look up what they are asked for get a list of names. A name that the template reads beside
//! those, and that is not in the list, has no value.
//!
//! People see: `wrong type for value; expected map[string]interface {}; got map[string]string`, `function
//! "cluster_name" not defined`, or a value that begins with `map[`.
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

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use regex::Regex;
use tiphys_diag::{Severity, similar_names};
use tiphys_gotemplate::{Functions, ParseFault, TemplateSet};
use tiphys_graph::{Set, survey::declared_span};
use tiphys_value::{FieldPath, ObjectExt, Value};

use super::{c2_template_syntax::with_names, d2_appset_fault::other_engine};
use crate::{
    Context, Finding, Report, Rule,
    support::{
        pods::list,
        value_steps::{Step, each_text, path_below},
    },
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
        unasked(context, set).into_iter().for_each(|finding| report.add(finding));
        for field in ["template", "templatePatch"] {
            let steps = &mut vec![Step::Key("spec"), Step::Key(field)];
            each_text(&spec[field], steps, &|_| true, &mut |steps, text| {
                if let Some(finding) = finding(context, set, text, &path_below(FieldPath::default(), steps)) {
                    report.add(finding);
                }
            });
        }
        unparsed(context, set).into_iter().for_each(|finding| report.add(finding));
    }
}

/// Functions beside Sprig's in the templates of a set (Argo CD docs, "Go Template").
static FUNCTIONS: LazyLock<Arc<Functions>> = LazyLock::new(|| {
    let own = ["fromYaml", "fromYamlArray", "normalize", "slugify", "toYaml"];
    Arc::new(with_names(Functions::sprig(), &own))
});

/// The first text of a set that cannot be parsed, where its parameters are not known: else the fault is told
/// with what they yield.
fn unparsed(context: &Context<'_>, set: &Set) -> Option<Finding> {
    let is_told = set.fault.is_some() && !set.symbolic && !set.unseen;
    if is_told || other_engine(context, set).is_some() {
        return None;
    }
    let spec = &set.declared.value["spec"];
    let mut first = None;
    for field in ["template", "templatePatch"] {
        let steps = &mut vec![Step::Key("spec"), Step::Key(field)];
        each_text(&spec[field], steps, &|_| true, &mut |steps, text| {
            if first.is_none() && text.contains("{{") {
                let parsed = TemplateSet::new(FUNCTIONS.clone()).parse("", text);
                first = parsed.err().map(|fault| (path_below(FieldPath::default(), steps), fault, text));
            }
        });
    }
    let (path, fault, text) = first?;
    let title = format!("ApplicationSet/{}", set.declared.value.name());
    let diagnostic = RULE
        .diagnostic(format!("{title} has a template that does not parse: {fault}"))
        .at(declared_span(&context.survey.files, &set.declared, &path), "in this text")
        .because(
            "the controller parses a template before it fills it in, and the set yields no Applications",
        );
    let is_undefined = fault.fault == Some(ParseFault::UndefinedFunction);
    let meant = bare_words(text).find(|word| is_undefined && is_parameter(spec, word));
    let diagnostic = match meant {
        Some(word) => diagnostic.help(format!("write .{word}: a parameter begins with a dot")),
        None => diagnostic,
    };
    Some(Finding::new(RULE.incident, diagnostic).object(title).likely())
}

/// The words of a text that begin with no dot.
fn bare_words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')));
    words.filter(|word| !word.is_empty() && !word.contains('.'))
}

/// Whether a word is, or nearly is, a parameter that a generator is asked for or a template reads.
fn is_parameter(spec: &Value, word: &str) -> bool {
    let read = read_parameters(&spec["template"]);
    spec["generators"].to_string().contains(&format!("\"{word}\""))
        || similar_names::nearest_slip(word, read.keys().copied()).is_some()
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

/// A parameter that a template reads at the top: `{{ .name }}`.
static READ: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:[{\s(]|\$)\.([A-Za-z_][A-Za-z0-9_]*)").expect("the expression is right")
});

/// Parameters that a template reads and that its one generator, a plugin, is not asked for, while it is asked
/// by name for others that the template reads.
fn unasked(context: &Context<'_>, set: &Set) -> Option<Finding> {
    const MOST: usize = 2;
    let spec = &set.declared.value["spec"];
    let [only] = list(spec, "generators") else { return None };
    let parameters = only.at(&["plugin", "input", "parameters"])?.as_object()?;
    let (key, asked) = parameters.iter().find_map(|(key, value)| {
        let names: Option<Vec<&str>> = value.as_array()?.iter().map(Value::as_str).collect();
        Some((key, names.filter(|names| !names.is_empty())?))
    })?;
    let given = only.at(&["plugin", "values"]).is_some();
    let read = read_parameters(&spec["template"]);
    let is_known = |name: &str| asked.contains(&name) || given && name == "values" || name == "generator";
    let missing: Vec<&str> = read.keys().copied().filter(|name| !is_known(name)).collect();
    if missing.is_empty() || missing.len() > MOST || read.len() <= missing.len() {
        return None;
    }
    let title = format!("ApplicationSet/{}", set.declared.value.name());
    let path = FieldPath::default().key("spec").key("generators").index(0).key("plugin").key("input");
    let place = |path: &FieldPath| declared_span(&context.survey.files, &set.declared, path);
    let unread: Vec<&str> = asked.iter().copied().filter(|name| !read.contains_key(name)).collect();
    let mut diagnostic = RULE
        .diagnostic(format!("{title} reads {}, which it does not ask its plugin for", missing.join(" and ")))
        .at(place(&read[missing[0]]), "has no value")
        .see(place(&path.key("parameters").key(key.as_str())), "these are asked for")
        .because("a plugin gives what it is asked for by name; what is missing becomes <no value>, or the set yields nothing")
        .help(format!("add {} to {key}", missing.join(" and ")));
    if let [other] = unread[..] {
        diagnostic = diagnostic.help(format!("or read {other}, which is asked for and read nowhere"));
    }
    Some(Finding::new(RULE.incident, diagnostic).object(title).likely())
}

/// The parameters that a template reads at the top, each with the field that does so first.
fn read_parameters(template: &Value) -> BTreeMap<&str, FieldPath> {
    let mut read = BTreeMap::new();
    let steps = &mut vec![Step::Key("spec"), Step::Key("template")];
    each_text(template, steps, &|_| true, &mut |steps, text| {
        // What a text in backticks holds is another template's.
        if OTHER_DOT.is_match(text) || text.contains('`') {
            return;
        }
        for (at, _) in text.match_indices("{{") {
            // From the second brace on.
            let action = text[at + 1..].split("}}").next().unwrap_or_default();
            for name in READ.captures_iter(action).filter_map(|it| it.get(1)) {
                read.entry(name.as_str()).or_insert_with(|| path_below(FieldPath::default(), steps));
            }
        }
    });
    read
}

/// Whether a generator, however deep, takes the clusters of the engine.
fn has_clusters(generators: &Value) -> bool {
    match generators {
        Value::Array(items) => items.iter().any(has_clusters),
        Value::Object(map) => map.iter().any(|(key, below)| key == "clusters" || has_clusters(below)),
        _ => false,
    }
}
