//! # An autoscaler and self-heal fight for the number of replicas
//!
//! A manifest says how many replicas a workload has, an autoscaler changes that number, and self-heal takes
//! the change back: pods come and go, and the Application is OutOfSync again and again.
//!
//! People see: pods that are scaled down right after they were scaled up, `Normal ScalingReplicaSet` in turn
//! in both directions, an Application that is Synced and OutOfSync by turns.
//!
//! ## Bad
//! ```yaml
//! spec: {replicas: 2}       # of a Deployment that a HorizontalPodAutoscaler scales
//! ```
//! ## Good
//! The manifest has no `replicas`, or the Application has `ignoreDifferences` for `/spec/replicas` with
//! `RespectIgnoreDifferences=true`.
//!
//! ## When to suppress
//! Where the autoscaler never scales.

use tiphys_diag::Severity;
use tiphys_graph::{App, Object, Survey};
use tiphys_model::IgnoreDifference;
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, sync_options::ignored_differences},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B5-replicas-fight",
    incident: "B5",
    severity: Severity::Warning,
    title: "an autoscaler changes a number of replicas that self-heal takes back",
    page: page!("b5_replicas_fight.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        for scaler in &cluster.objects {
            let Some(key) = target(scaler) else { continue };
            let Some(object) = cluster.find(&key) else { continue };
            let Some(replicas) = object.value().int_at(&["spec", "replicas"]) else { continue };
            let Some(app) = context.survey.app_of(object).filter(|app| heals(app)) else { continue };
            // Nobody scales what has been scaled to nothing.
            if replicas == 0 || is_fixed(scaler, replicas) || is_ignored(context, app, object) {
                continue;
            }
            add(context, &mut once, scaler, object, app);
        }
    }
    once.report(report);
}

/// What an autoscaler scales.
fn target(scaler: &Object) -> Option<ResourceKey> {
    let is_scaler = matches!(
        (scaler.key.group.as_str(), scaler.key.kind.as_str()),
        ("autoscaling", "HorizontalPodAutoscaler") | ("keda.sh", "ScaledObject")
    );
    let of = scaler.value().at(&["spec", "scaleTargetRef"]).filter(|_| is_scaler)?;
    let api = of.str_at(&["apiVersion"]).unwrap_or("apps/v1");
    let group = api.split_once('/').map_or("", |(group, _)| group);
    let kind = of.str_at(&["kind"]).unwrap_or("Deployment");
    Some(ResourceKey::new(group, kind, &scaler.key.namespace, of.str_at(&["name"])?))
}

fn heals(app: &App) -> bool {
    app.application.automated_policy().is_some_and(|automated| automated.self_heal == Some(true))
}

/// Whether the autoscaler can choose no other number.
fn is_fixed(scaler: &Object, replicas: i64) -> bool {
    let (least, most) = if scaler.key.kind == "ScaledObject" {
        ("minReplicaCount", "maxReplicaCount")
    } else {
        ("minReplicas", "maxReplicas")
    };
    let number = |field: &str| scaler.value().int_at(&["spec", field]);
    number(least) == Some(replicas) && number(most) == Some(replicas)
}

/// Whether differences of the number are ignored, by the Application or by the settings of the engine.
fn is_ignored(context: &Context<'_>, app: &App, object: &Object) -> bool {
    ignored_differences(context, app, object).iter().any(is_of_replicas) || has_option(context.survey, object)
}

fn is_of_replicas(rule: &IgnoreDifference) -> bool {
    rule.json_pointers.iter().any(|pointer| matches!(pointer.as_str(), "/spec/replicas" | "/spec"))
        || rule.jq_path_expressions.iter().any(|path| path.contains("replicas"))
        || !rule.managed_fields_managers.is_empty()
}

/// Whether differences of the object count for nothing.
fn has_option(survey: &Survey, object: &Object) -> bool {
    let options = object.value().annotation("argocd.argoproj.io/compare-options").unwrap_or_default();
    options.contains("IgnoreExtraneous") || survey.app_of(object).is_none() || object.value() == &Value::Null
}

fn add(context: &Context<'_>, once: &mut Once, scaler: &Object, object: &Object, app: &App) {
    let survey = context.survey;
    let diagnostic = RULE
        .diagnostic(format!(
            "{} scales {}, and Application {} sets its replicas back",
            scaler.title(),
            object.title(),
            app.name()
        ))
        .at(survey.value_span(object, &keys(&["spec", "replicas"])), "the number that is set back to")
        .see(survey.span(scaler, &keys(&["spec", "scaleTargetRef"])), "scaled here")
        .because("with self-heal a number that the autoscaler has changed is a difference that is taken back at once")
        .help("leave `replicas` out of the manifest")
        .help("or ignore `/spec/replicas` in `ignoreDifferences`, with the sync option `RespectIgnoreDifferences=true`");
    once.add("", RULE.finding(context, object, diagnostic));
}
