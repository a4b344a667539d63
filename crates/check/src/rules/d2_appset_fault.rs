//! # An ApplicationSet yields no Applications
//!
//! A generator that fails, or a template that does not come out as an Application, stops the whole set: none
//! of its Applications is created, and changes no longer reach those that exist. So does a template written
//! for the other engine: `{{.name}}` needs `goTemplate: true`, and `{{name}}` must be without. A parameter
//! that no generator gives is left in its braces, and what is called so is not there.
//!
//! People see: the condition `ErrorOccurred` of the ApplicationSet, and Applications that are missing.
//!
//! ## Bad
//! ```yaml
//! generators: [{list: {elements: [{name: web}]}}]
//! template: {metadata: {name: "{{.nmae}}"}}       # with goTemplateOptions: [missingkey=error]
//! ```
//! ## Good
//! ```yaml
//! template: {metadata: {name: "{{.name}}"}}
//! ```
//! ## When to suppress
//! Where the generator reads what only the cluster has.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::Severity;
use tiphys_graph::{Set, survey::declared_span};
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        field_paths::keys,
        value_steps::{each_text, path_below},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-appset-fault",
    incident: "D2",
    severity: Severity::Error,
    title: "an ApplicationSet that yields no Applications",
    page: page!("d2_appset_fault.rs"),
    check,
};

/// Fields of the template that only parameters fill in: other texts may hold templates of Helm or of a
/// program.
const FIELDS: [&[&str]; 9] = [
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["spec", "project"],
    &["spec", "source", "repoURL"],
    &["spec", "source", "path"],
    &["spec", "source", "targetRevision"],
    &["spec", "destination", "server"],
    &["spec", "destination", "name"],
    &["spec", "destination", "namespace"],
];

/// What a message says of what is not done here.
const UNSUPPORTED: &str = "not supported";
/// What it says of a template that the API server refuses before any controller sees it, which C2-invalid
/// tells.
const MISTYPED: &str = ": invalid type: ";

fn check(context: &Context<'_>, report: &mut Report) {
    for set in &context.survey.sets {
        if let Some(finding) = other_engine(context, set) {
            report.add(finding);
            continue;
        }
        let unseen = of_values(context, set).into_iter();
        for finding in left_open(context, set).into_iter().chain(misnamed(context, set)).chain(unseen) {
            report.add(finding);
        }
        let Some(fault) = set.fault.as_deref() else { continue };
        if set.symbolic || set.unseen || fault.contains(UNSUPPORTED) || is_refused(fault) {
            continue;
        }
        let field = if fault.contains("template") { "template" } else { "generators" };
        let span = declared_span(&context.survey.files, &set.declared, &keys(&["spec", field]));
        let name = set.declared.value.name();
        let diagnostic = RULE
            .diagnostic(format!("ApplicationSet {name} yields no Applications: {fault}"))
            .at(span, "here")
            .because("the controller gives up on the whole set: it creates, changes and deletes none of its Applications");
        report.add(Finding::new(RULE.incident, diagnostic).object(format!("ApplicationSet/{name}")));
    }
}

/// Parameters of a set that no generator gives a value: without Go templates they are left as they are
/// written.
fn left_open(context: &Context<'_>, set: &Set) -> Vec<Finding> {
    let value = &set.declared.value;
    let is_go = value.at(&["spec", "goTemplate"]).and_then(Value::as_bool) == Some(true);
    if is_go || set.symbolic || set.unseen || set.apps.is_empty() {
        return Vec::new();
    }
    let template = value.at(&["spec", "template"]).map(ToString::to_string).unwrap_or_default();
    let mut open: BTreeMap<String, &str> = BTreeMap::new();
    for app in set.apps.iter().map(|id| context.survey.app(*id)) {
        let spec = &app.application.spec;
        let target = &spec.destination;
        let mut texts = vec![
            app.name(),
            spec.project.as_str(),
            target.server.as_str(),
            target.name.as_str(),
            target.namespace.as_str(),
        ];
        let sources = spec.effective_sources();
        for source in &sources {
            texts.extend([
                source.repo_url.as_str(),
                source.path.as_str(),
                source.target_revision.as_str(),
                source.chart.as_str(),
            ]);
        }
        let named = texts
            .into_iter()
            .flat_map(|text| text.split("{{").skip(1))
            .filter_map(|rest| rest.split_once("}}"));
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ');
        for (name, _) in named.filter(|(name, _)| name.chars().all(is_name) && !name.trim().is_empty()) {
            // What a parameter's value brings is none of the template's.
            if template.contains(&format!("{{{{{name}}}}}")) {
                open.entry(name.trim().to_owned()).or_insert(app.name());
            }
        }
    }
    let told = |(name, app): (String, &str)| {
        let diagnostic = RULE
            .diagnostic(format!("no generator of ApplicationSet {} gives the parameter {name} a value: Application {app} has it as it is written", value.name()))
            .at(declared_span(&context.survey.files, &set.declared, &keys(&["spec", "template"])), "used here")
            .because("a name that the controller does not know is left in its braces, and no repository, revision, folder or cluster is called so");
        let mut finding = Finding::new(RULE.incident, diagnostic)
            .object(format!("ApplicationSet/{}", value.name()))
            .likely();
        finding.diagnostic.severity = Severity::Warning;
        finding
    };
    open.into_iter().map(told).collect()
}

/// A parameter that is asked for by a bare name, while a generator gives it among its `values`:
/// `{{addonChart}}` for `{{values.addonChart}}`. What the clusters are, only the engine knows; what their
/// generator's values are called is written here.
fn of_values(context: &Context<'_>, set: &Set) -> Option<Finding> {
    let value = &set.declared.value;
    let generators = value.at(&["spec", "generators"])?;
    let (mut values, mut others) = (BTreeSet::new(), BTreeSet::new());
    gather(generators, &mut values, &mut others)?;
    let is_go = value.at(&["spec", "goTemplate"]).and_then(Value::as_bool) == Some(true);
    let fields = FIELDS.iter().map(|field| [&["spec", "template"], *field].concat());
    let (field, name) = fields.into_iter().find_map(|field| {
        let text = value.str_at(&field)?;
        let asked = text.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0.trim()));
        let mut bare = asked.filter_map(|it| if is_go { it.strip_prefix('.') } else { Some(it) });
        let name =
            bare.find(|name| values.contains(name) && !others.contains(name) && !GIVEN.contains(name))?;
        Some((field, name))
    })?;
    let dot = if is_go { "." } else { "" };
    let (asked, meant) = (format!("{{{{{dot}{name}}}}}"), format!("{{{{{dot}values.{name}}}}}"));
    let diagnostic = RULE
        .diagnostic(format!(
            "no generator of ApplicationSet {} gives the parameter {name}: it is called values.{name}",
            value.name()
        ))
        .at(declared_span(&context.survey.files, &set.declared, &keys(&field)), "used here")
        .because("a name that the controller does not know is left in its braces, or stops the whole set")
        .help(format!("write {meant} for {asked}"));
    let mut finding =
        Finding::new(RULE.incident, diagnostic).object(format!("ApplicationSet/{}", value.name())).likely();
    finding.diagnostic.severity = Severity::Warning;
    Some(finding)
}

/// What generators call so themselves.
const GIVEN: [&str; 9] =
    ["name", "nameNormalized", "server", "project", "path", "branch", "sha", "repository", "url"];

/// The names among the values of generators, and of the elements of lists; `None` where files or others tell
/// more names.
fn gather<'a>(
    generators: &'a Value,
    values: &mut BTreeSet<&'a str>,
    others: &mut BTreeSet<&'a str>,
) -> Option<()> {
    const OPEN: [&str; 3] = ["plugin", "files", "elementsYaml"];
    match generators {
        Value::Object(map) => {
            for (key, below) in map {
                match (key.as_str(), below) {
                    (key, _) if OPEN.contains(&key) => return None,
                    ("values", Value::Object(given)) => values.extend(given.keys().map(String::as_str)),
                    ("elements", Value::Array(elements)) => {
                        let given = elements.iter().filter_map(Value::as_object).flat_map(|it| it.keys());
                        others.extend(given.map(String::as_str));
                    }
                    (_, below) => gather(below, values, others)?,
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                gather(item, values, others)?;
            }
        }
        _ => {}
    }
    Some(())
}

/// An Application whose name no object may have: a parameter brings an underscore, or capital letters.
fn misnamed(context: &Context<'_>, set: &Set) -> Option<Finding> {
    if set.symbolic || set.unseen {
        return None;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    // Words in capitals are there to be replaced.
    let is_word = |name: &str| {
        name.split(['-', '.', '_']).any(|it| it.len() > 1 && it.chars().all(|c| c.is_ascii_uppercase()))
    };
    let names = set.apps.iter().map(|id| context.survey.app(*id).name());
    let name = names
        .filter(|name| name.chars().all(is_part) && !is_word(name))
        .find(|name| name.contains(|c: char| c == '_' || c.is_ascii_uppercase()))?;
    let value = &set.declared.value;
    let diagnostic = RULE
        .diagnostic(format!(
            "ApplicationSet {} makes an Application {name}: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'",
            value.name()
        ))
        .at(declared_span(&context.survey.files, &set.declared, &keys(&["spec", "template", "metadata", "name"])), "the name")
        .because("the API server refuses the Application, so that it is never made")
        .help("with `goTemplate: true`, `{{ normalize … }}` makes a name of any text; else use `path.basenameNormalized`, or name the folder otherwise");
    let mut finding =
        Finding::new(RULE.incident, diagnostic).object(format!("ApplicationSet/{}", value.name()));
    finding.diagnostic.severity = Severity::Warning;
    Some(finding.likely())
}

/// Whether the template itself has a field of a wrong type; what a patch of the template gives, only the
/// controller sees.
fn is_refused(fault: &str) -> bool {
    fault.contains(MISTYPED) && fault.contains("template: template.")
}

/// A template whose parameters are written for the other template engine (Argo CD docs, "Go Template",
/// migration).
pub(super) fn other_engine(context: &Context<'_>, set: &Set) -> Option<Finding> {
    let value = &set.declared.value;
    let is_go = value.at(&["spec", "goTemplate"]).and_then(Value::as_bool) == Some(true);
    let fields = FIELDS.iter().map(|field| [&["spec", "template"], *field].concat());
    let of_template = fields.into_iter().find_map(|field| {
        let parameter = foreign(value.str_at(&field)?, is_go)?.to_owned();
        Some((keys(&field), parameter))
    });
    let (field, parameter) = of_template.or_else(|| of_generators(value).filter(|_| is_go))?;
    let (why, help) = match is_go {
        true => ("is no Go template", "write it with a dot before the name, or leave goTemplate out"),
        false => ("is left as it is written", "set goTemplate: true, or write it without the leading dot"),
    };
    let diagnostic = RULE
        .diagnostic(format!("ApplicationSet {} yields no Applications: {{{{{parameter}}}}} {why}", value.name()))
        .at(declared_span(&context.survey.files, &set.declared, &field), "written for the other template engine")
        .because("the controller gives up on the whole set: it creates, changes and deletes none of its Applications")
        .help(help);
    Some(Finding::new(RULE.incident, diagnostic).object(format!("ApplicationSet/{}", value.name())))
}

/// What stands in braces in a generator and is no template of Go: a name with dots in it and none before it.
fn of_generators(set: &Value) -> Option<(FieldPath, String)> {
    let generators = set.at(&["spec", "generators"])?;
    let mut found = None;
    each_text(generators, &mut Vec::new(), &|_| true, &mut |steps, text| {
        if let Some(parameter) = foreign(text, true).filter(|it| found.is_none() && it.contains('.')) {
            found = Some((path_below(keys(&["spec", "generators"]), steps), parameter.to_owned()));
        }
    });
    found
}

/// What stands in braces in a text and belongs to the other engine: Go's fields begin with a dot, the other's
/// names do not.
fn foreign(text: &str, is_go: bool) -> Option<&str> {
    // Words that Go's templates do not know, though they look like its functions.
    const NAMES: [&str; 6] = ["path", "name", "nameNormalized", "server", "branch", "number"];
    // A chart's template that nothing renders is no set yet.
    const HELMS: [&str; 4] = [".Values", ".Release", ".Chart", ".Capabilities"];
    let inner = text.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0.trim()));
    let is_word =
        |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    let mut inner = inner.filter(|text| !text.is_empty() && is_word(text));
    inner.find(|text| match is_go {
        true => {
            text.starts_with(|c: char| c.is_ascii_alphabetic())
                && (text.contains('.') || NAMES.contains(text))
        }
        false => text.starts_with('.') && !HELMS.iter().any(|root| text.starts_with(root)),
    })
}
