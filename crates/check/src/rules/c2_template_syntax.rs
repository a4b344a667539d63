//! # A template in a resource that its controller cannot parse
//!
//! Some resources hold templates of Go that a controller fills in later: the data of an ExternalSecret or
//! SealedSecret, the annotations of an alert. The API server takes any text; the controller parses it, and
//! makes nothing of one that does not parse. A name with a hyphen cannot follow a dot: it is asked for by
//! `index`.
//!
//! People see: `could not apply template: could not execute template: unable to parse template at key
//! password: template: password:1: bad character U+002D '-'`, a Secret that is never made, `function "x" not
//! defined`.
//!
//! ## Bad
//! ```yaml
//! data: {password: '{{ .admin-password }}'}
//! ```
//! ## Good
//! ```yaml
//! data: {password: '{{ index . "admin-password" }}'}
//! ```
//! ## When to suppress
//! Where another tool replaces the text before the controller reads it.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use tiphys_diag::Severity;
use tiphys_gotemplate::{Functions, ParseError, ParseFault, TemplateSet};
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, flux::Flux, pods::list, unrendered_files},
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "C2-template-syntax",
    incident: "C2",
    severity: Severity::Error,
    title: "a template in a resource that its controller cannot parse",
    page: page!("c2_template_syntax.rs"),
    check,
};

/// What stands before each text of an alert's annotations (Prometheus docs, "Template reference").
const OF_ALERTS: &str = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}";

static FUNCTIONS: LazyLock<Arc<Functions>> = LazyLock::new(|| Arc::new(Functions::sprig()));

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let flux = Flux::from_survey(context.survey);
    for object in &context.survey.objects {
        let prefix = if object.key.kind == "PrometheusRule" { OF_ALERTS } else { "" };
        let is_of_flux = flux.applies(object);
        for path in places(object) {
            let Some(texts) = path.get(object.value()).and_then(Value::as_object) else { continue };
            for (key, text) in texts {
                let Some(text) = text.as_str().filter(|text| !text.contains("${")) else { continue };
                // Flux reads `$$` as a dollar that is none of its variables.
                let text = if is_of_flux { Cow::Owned(text.replace("$$", "$")) } else { Cow::Borrowed(text) };
                let Some(error) = fault(key, &format!("{prefix}{text}")) else { continue };
                let mut diagnostic = RULE
                    .diagnostic(format!("the template {key} of {} does not parse: {error}", object.title()))
                    .at(context.survey.span(object, &path.key(key)), "this template")
                    .because("the controller parses it before it does anything, and stops at the fault");
                if error.fault == Some(ParseFault::BadCharacter('-')) {
                    diagnostic =
                        diagnostic.help("a name with a hyphen is asked for so: {{ index . \"name\" }}");
                }
                let is_loose = unrendered_files::is_loose(context.survey, object);
                if is_loose {
                    diagnostic.severity = Severity::Warning;
                }
                let finding = RULE.finding(context, object, diagnostic);
                once.add(key, if is_loose { finding.likely() } else { finding });
            }
        }
    }
    once.report(report);
}

/// Where an object of a kind that is known for it holds templates.
fn places(object: &Object) -> Vec<FieldPath> {
    let below = |steps: &[&str]| keys(&["spec"].iter().chain(steps).copied().collect::<Vec<_>>());
    match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("external-secrets.io", "ExternalSecret") => vec![below(&["target", "template", "data"])],
        ("external-secrets.io", "ClusterExternalSecret") => {
            vec![below(&["externalSecretSpec", "target", "template", "data"])]
        }
        ("external-secrets.io", "PushSecret") => vec![below(&["template", "data"])],
        ("bitnami.com", "SealedSecret") => vec![below(&["template", "data"])],
        ("monitoring.coreos.com", "PrometheusRule") => alerts(object),
        _ => Vec::new(),
    }
}

fn alerts(object: &Object) -> Vec<FieldPath> {
    let mut found = Vec::new();
    for (group, value) in list(&object.value()["spec"], "groups").iter().enumerate() {
        for rule in 0..list(value, "rules").len() {
            let path = keys(&["spec", "groups"]).index(group).key("rules").index(rule);
            found.extend(["annotations", "labels"].map(|field| path.key(field)));
        }
    }
    found
}

/// Why a text does not parse. Which functions there are, each controller decides for itself.
fn fault(name: &str, text: &str) -> Option<ParseError> {
    if !text.contains("{{") {
        return None;
    }
    let error = TemplateSet::new(FUNCTIONS.clone()).parse(name, text).err()?;
    (error.fault != Some(ParseFault::UndefinedFunction)).then_some(error)
}
