//! # A jq path expression for what to ignore that cannot be used
//!
//! `ignoreDifferences` takes jq path expressions. One that does not parse, or calls a function that does not
//! exist, is not passed over: whether the Application is as it should be is not known, and nothing is synced
//! any more. In `argocd-cm` it does that to every Application. Nor can `.metadata.managedFields` be ignored where
//! `RespectIgnoreDifferences` and `ServerSideApply` are on.
//!
//! People see: `Failed to compare desired state to live state`, `unexpected token`, `function not defined`;
//! the sync status is `Unknown`.
//!
//! ## Bad
//! ```yaml
//! ignoreDifferences:
//! - group: apps
//!   kind: Deployment
//!   jqPathExpressions: ['.spec.template.spec.containers[] | select(.name == "app" | .image']
//! ```
//! ## Good
//! ```yaml
//! ignoreDifferences:
//! - group: apps
//!   kind: Deployment
//!   jqPathExpressions: ['.spec.template.spec.containers[] | select(.name == "app") | .image']
//! ```
//! ## When to suppress
//! Where the expression uses what only Argo CD's own jq has: the environment, which is empty there.

use tiphys_diag::Severity;
use tiphys_diff::{IgnoreError, IgnoreRules};
use tiphys_graph::Object;
use tiphys_model::{ArgoSettings, IgnoreDifference, settings::CONFIG_MAP};
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, pods::list},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-ignore-expression",
    incident: "C2",
    severity: Severity::Error,
    title: "a jq path expression for what to ignore that cannot be used",
    page: page!("c2_ignore_expression.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        match (object.key.group.as_str(), object.key.kind.as_str(), object.key.name.as_str()) {
            ("argoproj.io", "Application", _) => {
                rules(context, object, &["spec", "ignoreDifferences"], &mut once)
            }
            ("argoproj.io", "ApplicationSet", _) => {
                rules(context, object, &["spec", "ignoreApplicationDifferences"], &mut once);
                rules(context, object, &["spec", "template", "spec", "ignoreDifferences"], &mut once);
            }
            ("", "ConfigMap", CONFIG_MAP) => settings(context, object, &mut once),
            _ => {}
        }
    }
    once.report(report);
}

/// The expressions of a list of rules.
fn rules(context: &Context<'_>, object: &Object, path: &[&str], once: &mut Once) {
    let (last, above) = path.split_last().unwrap_or((&"", &[]));
    let Some(holder) = keys(above).get(object.value()) else { return };
    for (at, rule) in list(holder, last).iter().enumerate() {
        managed_fields(context, object, (holder, rule), &keys(path).index(at), once);
        let field = keys(path).index(at).key("jqPathExpressions");
        for (index, expression) in list(rule, "jqPathExpressions").iter().enumerate() {
            // A template of an ApplicationSet stands for what it is filled with.
            let Some(expression) = expression.as_str().filter(|text| !text.contains("{{")) else { continue };
            if let Err(error) = usable(vec![expression.to_owned()]) {
                add(context, object, &field.clone().index(index), &error, once);
            }
        }
    }
}

/// That whoever manages the fields is ignored, where what is ignored is taken from the live object and
/// applied by the server: it takes no object that says who manages its fields.
fn managed_fields(
    context: &Context<'_>,
    object: &Object,
    (holder, rule): (&Value, &Value),
    path: &FieldPath,
    once: &mut Once,
) {
    let options = list(&holder["syncPolicy"], "syncOptions");
    let is_on = |name: &str| {
        options
            .iter()
            .filter_map(Value::as_str)
            .any(|option| option.replace(' ', "") == format!("{name}=true"))
    };
    if !is_on("RespectIgnoreDifferences") || !is_on("ServerSideApply") {
        return;
    }
    for (key, whole) in
        [("jqPathExpressions", ".metadata.managedFields"), ("jsonPointers", "/metadata/managedFields")]
    {
        let Some(at) = list(rule, key).iter().position(|it| it.as_str() == Some(whole)) else { continue };
        let mut diagnostic = RULE
            .diagnostic(format!("{} ignores {whole} and keeps what it ignores", object.title()))
            .at(context.survey.value_span(object, &path.key(key).index(at)), "the live managedFields are sent back")
            .because(
                "with RespectIgnoreDifferences ignored fields are taken from the live object, and server-side apply answers `metadata.managedFields must be nil`",
            )
            .help("leave it out: Argo CD compares no managedFields anyway");
        diagnostic.severity = Severity::Warning;
        once.add(whole, RULE.finding(context, object, diagnostic).likely());
    }
}

/// The expressions of Argo CD's settings.
fn settings(context: &Context<'_>, object: &Object, once: &mut Once) {
    let settings = ArgoSettings::from_objects(Some(object.value()), None);
    for rule in settings.customizations.ignore_differences() {
        for expression in rule.jq_path_expressions {
            let holds = |text: &Value| text.as_str().is_some_and(|text| text.contains(&expression));
            let data = object.value().get("data").and_then(Value::as_object);
            let key = data.and_then(|data| data.iter().find(|(_, text)| holds(text)));
            let field = key.map_or(keys(&["data"]), |(key, _)| keys(&["data"]).key(key));
            if let Err(error) = usable(vec![expression.clone()]) {
                add(context, object, &field, &error, once);
            }
        }
    }
}

fn usable(jq_path_expressions: Vec<String>) -> Result<(), IgnoreError> {
    IgnoreRules::check(&[IgnoreDifference { jq_path_expressions, ..IgnoreDifference::default() }])
}

fn add(context: &Context<'_>, object: &Object, field: &FieldPath, error: &IgnoreError, once: &mut Once) {
    let diagnostic = RULE
        .diagnostic(format!("{}: Failed to compare desired state to live state: {error}", object.title()))
        .at(context.survey.value_span(object, field), "this expression")
        .because("the sync status becomes Unknown, and nothing is synced any more")
        .help("try the expression with `jq 'path(…)'` on the object");
    once.add(&error.to_string(), RULE.finding(context, object, diagnostic));
}
