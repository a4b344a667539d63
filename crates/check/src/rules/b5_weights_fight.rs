//! # A Rollout shifts traffic, and its Application sets the weights back
//!
//! Argo Rollouts writes the weights of a canary into the route that the Rollout names, and the labels of its
//! subsets into a DestinationRule. Under self-heal that is a difference: the engine writes the weights from
//! Git back, and the canary gets no traffic, or all of it at once.
//!
//! People see: a canary whose steps go by while all requests reach the old pods; an Application that is
//! OutOfSync and Synced in turn during every rollout.
//!
//! ## Bad
//! ```yaml
//! kind: Rollout
//! spec: {strategy: {canary: {trafficRouting: {istio: {virtualService: {name: web}}}}}}
//! # the Application has automated: {selfHeal: true}, and no ignoreDifferences
//! ```
//! ## Good
//! ```yaml
//! ignoreDifferences:
//!   - group: networking.istio.io
//!     kind: VirtualService
//!     jqPathExpressions: [".spec.http[].route[].weight"]
//! ```
//! ## When to suppress
//! Where the Application is not synced while something is rolled out.

use tiphys_diag::Severity;
use tiphys_graph::{App, Object};
use tiphys_value::{ObjectExt, ResourceKey};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, sync_options::ignored_differences},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B5-weights-fight",
    incident: "B5",
    severity: Severity::Warning,
    title: "a Rollout shifts traffic, and its Application sets the weights back",
    page: page!("b5_weights_fight.rs"),
    check,
};

/// Routes whose weights the controller of a Rollout writes: where it names them, the group, the kind.
const ROUTES: [(&[&str], &str, &str); 2] = [
    (&["istio", "virtualService", "name"], "networking.istio.io", "VirtualService"),
    (&["traefik", "weightedTraefikServiceName"], "traefik.io", "TraefikService"),
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        let is_rollout = |it: &&&Object| it.key.kind == "Rollout" && it.key.group == "argoproj.io";
        for rollout in cluster.objects.iter().filter(is_rollout) {
            let Some(routing) = rollout.value().at(&["spec", "strategy", "canary", "trafficRouting"]) else {
                continue;
            };
            for (steps, group, kind) in ROUTES {
                let Some(name) = routing.str_at(steps) else { continue };
                let key = ResourceKey::new(group, kind, &rollout.key.namespace, name);
                let Some(route) = cluster.find(&key) else { continue };
                let app = context.survey.app_of(route).filter(|app| heals(app));
                if let Some(app) = app.filter(|app| ignored_differences(context, app, route).is_empty()) {
                    add(context, (rollout, route, app), &mut once);
                }
            }
        }
    }
    once.report(report);
}

fn heals(app: &App) -> bool {
    app.application.automated_policy().is_some_and(|automated| automated.self_heal == Some(true))
}

fn add(context: &Context<'_>, (rollout, route, app): (&Object, &Object, &App), once: &mut Once) {
    let survey = context.survey;
    let diagnostic = RULE
        .diagnostic(format!(
            "{} shifts the weights of {}, and Application {} sets them back",
            rollout.title(),
            route.title(),
            app.name()
        ))
        .at(survey.span(route, &keys(&["spec"])), "the weights that are set back to")
        .see(survey.span(rollout, &keys(&["spec", "strategy", "canary", "trafficRouting"])), "shifted here")
        .because("with self-heal a weight that the controller has changed is a difference that is taken back at once")
        .help("ignore the weights in `ignoreDifferences`, with the sync option `RespectIgnoreDifferences=true`");
    once.add("", RULE.finding(context, route, diagnostic).likely());
}
