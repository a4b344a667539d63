//! # A chart waits for a Secret that a later wave makes
//!
//! An Application installs a chart and names in its values a Secret that is to be there already. The Secret
//! is made by an Application of a later wave, and a health check for `argoproj.io/Application` makes the
//! parent wait for the chart first. The pods of the chart wait for the Secret, the parent waits for the pods,
//! and what would make the Secret is not applied.
//!
//! People see: `waiting for healthy state of argoproj.io/Application/grafana` at the parent, and at the pods
//! `CreateContainerConfigError`, `secret "grafana-admin" not found`.
//!
//! Nothing is reported where Applications have no health check (Argo CD's default since 1.8): the parent then
//! does not wait. Charts that could be rendered are judged by `A1-parent-wait`.
//!
//! ## Bad
//! ```yaml
//! # wave 0: Application grafana
//! source: {chart: grafana, helm: {valuesObject: {admin: {existingSecret: grafana-admin}}}}
//! # wave 5: Application secrets, whose ExternalSecret makes Secret grafana-admin
//! ```
//! ## Good
//! The Application that makes the Secret has an earlier wave than the one with the chart.
//!
//! ## When to suppress
//! When something outside of the repository makes the Secret before the first sync.

use tiphys_diag::Severity;
use tiphys_graph::{App, Object, order::Relation};
use tiphys_value::{ObjectExt, Value};

use crate::{
    Context, Finding, Report, Rule, rule_helpers,
    support::{chart_uses::ChartUse, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "A1-chart-secret",
    incident: "A1",
    severity: Severity::Warning,
    title: "a chart waits for a Secret that a later wave makes",
    page: page!("a1_chart_secret.rs"),
    check,
};

/// How deep values are looked into.
const MAX_DEPTH: usize = 16;

fn check(context: &Context<'_>, report: &mut Report) {
    for used in context.chart_uses() {
        let Some(app) = used.app.map(|id| context.survey.app(id)).filter(|app| !app.is_rendered()) else {
            continue;
        };
        let mut names = Vec::new();
        used.values.iter().for_each(|values| existing_secrets(values, 0, &mut names));
        names.sort_unstable();
        names.dedup();
        for name in names {
            if let Some(finding) = too_late(context, used, app, name) {
                report.add(finding);
            }
        }
    }
}

/// The Secrets that values say are there: `existingSecret` and its like, outside of what is switched off.
fn existing_secrets<'a>(values: &'a Value, depth: usize, found: &mut Vec<&'a str>) {
    const KEYS: [&str; 3] = ["existingSecret", "existingSecretName", "auth.existingSecret"];
    let Some(map) = values.as_object().filter(|_| depth < MAX_DEPTH) else { return };
    if map.get("enabled") == Some(&Value::Bool(false)) {
        return;
    }
    for (key, value) in map {
        match value.as_str() {
            Some(name) if KEYS.contains(&key.as_str()) && !name.is_empty() && !placeholders::is_in(name) => {
                found.push(name);
            }
            _ => existing_secrets(value, depth + 1, found),
        }
    }
}

/// Whether all that makes a Secret comes in waves after that of a chart, for which the parent waits.
fn too_late(context: &Context<'_>, used: &ChartUse, app: &App, name: &str) -> Option<Finding> {
    let survey = context.survey;
    let analyses = context.analyses();
    let (parent, declared) = analyses.order.parent(app.id)?;
    let declared = survey.object(declared);
    let health = analyses.health.of_applications(survey.app(parent).environment)?;
    if !health.waits_for_content || !analyses.order.awaits(declared) {
        return None;
    }
    let namespace = &app.application.spec.destination.namespace;
    let is_here = |it: &&Object| {
        it.environment == Some(app.environment)
            && it.cluster.as_ref() == app.cluster()
            && it.key.namespace == *namespace
            && makes_secret(it, name)
    };
    let mut nearest = None;
    for maker in survey.objects.iter().filter(is_here) {
        match analyses.order.relation(declared, maker) {
            Relation::Before(meeting) if meeting.first == declared.id => {
                nearest.get_or_insert((maker, meeting));
            }
            // In time, or nobody knows.
            _ => return None,
        }
    }
    let (maker, meeting) = nearest?;
    let later = survey.object(meeting.second);
    let (early, late) = (meeting.first_step, meeting.second_step);
    let (early, late) = (rule_helpers::step(early, late), rule_helpers::step(late, early));
    let diagnostic = RULE
        .diagnostic(format!(
            "{} waits for {}, whose chart {} needs Secret/{name} of a later wave: {}",
            survey.app(parent).name(),
            app.name(),
            used.chart,
            rule_helpers::waiting_for(declared)
        ))
        .at(rule_helpers::wave(context, declared), format!("{} is applied in {early}", declared.title()))
        .see(survey.start(maker), format!("{} makes the Secret", maker.title()))
        .see(rule_helpers::wave(context, later), format!("{} is applied in {late}", later.title()))
        .see(health.span.clone(), "because of this health check the parent waits for its children")
        .because("the pods of the chart start once the Secret is there, and it is not made before they have started")
        .help(format!("give {} a wave before {}", later.title(), meeting.first_step.wave));
    Some(Finding::new(RULE.incident, diagnostic).app(app.name()).likely())
}

/// Whether an object is a Secret of a name, or what a controller makes one from.
fn makes_secret(object: &Object, name: &str) -> bool {
    match object.key.kind.as_str() {
        "Secret" | "SealedSecret" | "SopsSecret" | "OnePasswordItem" | "InfisicalSecret" => {
            object.key.name == name
        }
        "ExternalSecret" => {
            object.value().str_at(&["spec", "target", "name"]).unwrap_or(&object.key.name) == name
        }
        "Certificate" => object.value().str_at(&["spec", "secretName"]) == Some(name),
        _ => false,
    }
}
