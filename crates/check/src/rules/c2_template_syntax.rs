//! # A template in a resource that its controller cannot parse
//!
//! Some resources hold templates of Go that a controller fills in later: the data of an ExternalSecret or
//! SealedSecret, the annotations of an alert, the notifications of Argo CD and of Alertmanager. The API
//! server takes any text; the controller parses it, and makes nothing of one that does not parse. A name with
//! a hyphen cannot follow a dot: it is asked for by `index`.
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
use tiphys_gotemplate::{Function, Functions, ParseError, ParseFault, TemplateSet, Type, Value as GoValue};
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Segment, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, flux::Flux, pods::list, unrendered_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-template-syntax",
    incident: "C2",
    severity: Severity::Error,
    title: "a template in a resource that its controller cannot parse",
    page: page!("c2_template_syntax.rs"),
    check,
};

/// What stands before each text of an alert's annotations (Prometheus docs, "Template reference").
const OF_ALERTS: &str = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}";

/// Who fills a template in, and so which functions it has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Engine {
    /// Prometheus, for alerts (Prometheus docs, "Template reference").
    Alerts,
    /// External Secrets, with those of Sprig (External Secrets docs, "Advanced Templating").
    Secrets,
    /// Another one, which may have functions that are not known.
    Other,
}

impl Engine {
    fn of_object(object: &Object) -> Self {
        match (object.key.group.as_str(), object.key.kind.as_str()) {
            ("monitoring.coreos.com", "PrometheusRule") => Self::Alerts,
            ("external-secrets.io", "ExternalSecret" | "ClusterExternalSecret" | "PushSecret") => {
                Self::Secrets
            }
            _ => Self::Other,
        }
    }

    fn functions(self) -> Arc<Functions> {
        match self {
            Self::Alerts => ALERT_FUNCTIONS.clone(),
            Self::Secrets => SECRET_FUNCTIONS.clone(),
            Self::Other => FUNCTIONS.clone(),
        }
    }
}

static FUNCTIONS: LazyLock<Arc<Functions>> = LazyLock::new(|| Arc::new(Functions::sprig()));
static ALERT_FUNCTIONS: LazyLock<Arc<Functions>> =
    LazyLock::new(|| Arc::new(with_names(Functions::builtins(), &OF_PROMETHEUS)));
static SECRET_FUNCTIONS: LazyLock<Arc<Functions>> =
    LazyLock::new(|| Arc::new(with_names(Functions::sprig(), &OF_EXTERNAL_SECRETS)));

/// Functions beside Go's own in the templates of alerts.
const OF_PROMETHEUS: [&str; 33] = [
    "args",
    "externalURL",
    "first",
    "graphLink",
    "humanize",
    "humanize1024",
    "humanizeDuration",
    "humanizePercentage",
    "humanizeTimestamp",
    "label",
    "match",
    "now",
    "parseDuration",
    "pathPrefix",
    "query",
    "reReplaceAll",
    "safeHtml",
    "sortByLabel",
    "stripDomain",
    "stripPort",
    "strvalue",
    "tableLink",
    "title",
    "tmpl",
    "toDuration",
    "toFloat",
    "toJSON",
    "toJson",
    "toLower",
    "toTime",
    "toUpper",
    "urlQueryEscape",
    "value",
];

/// Functions beside Go's own and Sprig's in the templates of External Secrets.
const OF_EXTERNAL_SECRETS: [&str; 22] = [
    "certSANs",
    "filterCertChain",
    "filterPEM",
    "fromJSON",
    "fromYaml",
    "fullPemToPkcs12",
    "fullPemToPkcs12Pass",
    "getSecretKey",
    "hexdec",
    "jwkPrivateKeyPem",
    "jwkPublicKeyPem",
    "pemToPkcs12",
    "pemToPkcs12Pass",
    "pemTruststoreToPKCS12",
    "pemTruststoreToPKCS12Pass",
    "pkcs12cert",
    "pkcs12certPass",
    "pkcs12key",
    "pkcs12keyPass",
    "rsaDecrypt",
    "toJSON",
    "toYaml",
];

/// Functions with names on top, which are never run.
pub(super) fn with_names(mut functions: Functions, names: &[&'static str]) -> Functions {
    for name in names {
        functions.insert(Function::variadic(name, &[Type::Any], |_, _| Ok(GoValue::default())));
    }
    functions
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let flux = Flux::from_survey(context.survey);
    for object in &context.survey.objects {
        let prefix = if object.key.kind == "PrometheusRule" { OF_ALERTS } else { "" };
        let is_of_flux = flux.applies(object);
        for (path, key, text) in notifications(object) {
            tell(context, object, &path, (&key, &text), &mut once);
        }
        for path in places(object) {
            let mut texts = Vec::new();
            gather(path.get(object.value()), &path, &mut texts, 0);
            for (path, text) in texts {
                let key = last_key(&path);
                if text.contains("${") {
                    continue;
                }
                // Flux reads `$$` as a dollar that is none of its variables.
                let text = if is_of_flux { Cow::Owned(text.replace("$$", "$")) } else { Cow::Borrowed(text) };
                tell(context, object, &path, (&key, &format!("{prefix}{text}")), &mut once);
            }
        }
    }
    once.report(report);
}

/// Tells of a template that does not parse.
fn tell(
    context: &Context<'_>,
    object: &Object,
    path: &FieldPath,
    (key, text): (&str, &str),
    once: &mut Once,
) {
    let engine = Engine::of_object(object);
    let Some(error) = fault(engine, key, text) else { return };
    let mut diagnostic = RULE
        .diagnostic(format!("the template {key} of {} does not parse: {error}", object.title()))
        .at(context.survey.span(object, path), "this template")
        .because("the controller parses it before it does anything, and stops at the fault");
    // A newer controller may have more functions.
    let is_undefined = error.fault == Some(ParseFault::UndefinedFunction);
    if is_undefined {
        diagnostic.severity = Severity::Warning;
    }
    if error.fault == Some(ParseFault::BadCharacter('-')) {
        diagnostic = diagnostic.help("a name with a hyphen is asked for so: {{ index . \"name\" }}");
    }
    let is_loose = unrendered_files::is_loose(context.survey, object);
    if is_loose {
        diagnostic.severity = Severity::Warning;
    }
    let finding = RULE.finding(context, object, diagnostic);
    once.add(key, if is_loose || is_undefined { finding.likely() } else { finding });
}

/// The last key of a path.
fn last_key(path: &FieldPath) -> String {
    let keys = path.0.iter().rev().filter_map(|step| match step {
        Segment::Key(key) => Some(key.clone()),
        Segment::Index(_) => None,
    });
    keys.into_iter().next().unwrap_or_default()
}

/// The texts of a value and below it.
fn gather<'a>(
    value: Option<&'a Value>,
    path: &FieldPath,
    found: &mut Vec<(FieldPath, &'a str)>,
    depth: usize,
) {
    const DEEPEST: usize = 16;
    match value {
        _ if depth > DEEPEST => {}
        Some(Value::String(text)) => found.push((path.clone(), text)),
        Some(Value::Array(items)) => {
            for (at, item) in items.iter().enumerate() {
                gather(Some(item), &path.index(at), found, depth + 1);
            }
        }
        Some(Value::Object(fields)) => {
            for (key, inner) in fields {
                gather(Some(inner), &path.key(key), found, depth + 1);
            }
        }
        _ => {}
    }
}

/// The templates of Argo CD's notifications: texts of YAML below `template.…`, each with the field of the
/// object, its name and the template.
fn notifications(object: &Object) -> Vec<(FieldPath, String, String)> {
    let (field, prefix) = match (object.key.kind.as_str(), object.key.name.as_str()) {
        ("ConfigMap", "argocd-notifications-cm") => ("data", "template."),
        ("NotificationsConfiguration", _) => ("spec", ""),
        _ => return Vec::new(),
    };
    let path = if field == "spec" { keys(&["spec", "templates"]) } else { keys(&[field]) };
    let texts = path.get(object.value()).and_then(Value::as_object);
    let mut found = Vec::new();
    for (key, text) in texts.into_iter().flatten().filter(|(key, _)| key.starts_with(prefix)) {
        let Some(Ok(value)) = text.as_str().map(tiphys_yaml::from_yaml) else { continue };
        let mut inner = Vec::new();
        gather(Some(&value), &FieldPath::default(), &mut inner, 0);
        found.extend(inner.into_iter().map(|(_, text)| (path.key(key), key.clone(), text.to_owned())));
    }
    found
}

/// Where an object of a kind that is known for it holds templates.
fn places(object: &Object) -> Vec<FieldPath> {
    let below = |steps: &[&str]| keys(&["spec"].iter().chain(steps).copied().collect::<Vec<_>>());
    match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("external-secrets.io", "ExternalSecret") => of_template(&below(&["target", "template"])),
        ("external-secrets.io", "ClusterExternalSecret") => {
            of_template(&below(&["externalSecretSpec", "target", "template"]))
        }
        ("external-secrets.io", "PushSecret") => of_template(&below(&["template"])),
        ("external-secrets.io", "SecretStore" | "ClusterSecretStore") => {
            vec![below(&["provider", "webhook", "body"]), below(&["provider", "webhook", "url"])]
        }
        ("monitoring.coreos.com", "AlertmanagerConfig") => vec![below(&["receivers"])],
        ("bitnami.com", "SealedSecret") => vec![below(&["template", "data"])],
        ("monitoring.coreos.com", "PrometheusRule") => alerts(object),
        _ => Vec::new(),
    }
}

/// What External Secrets fills in of the template of a Secret.
fn of_template(template: &FieldPath) -> Vec<FieldPath> {
    vec![template.key("data"), template.key("metadata"), template.key("templateFrom")]
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

/// Why a text does not parse. Which functions there are, some controllers decide for themselves.
fn fault(engine: Engine, name: &str, text: &str) -> Option<ParseError> {
    if !text.contains("{{") {
        return None;
    }
    let error = TemplateSet::new(engine.functions()).parse(name, text).err()?;
    let is_certain = error.fault != Some(ParseFault::UndefinedFunction) || engine != Engine::Other;
    is_certain.then_some(error)
}
