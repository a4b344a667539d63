//! The classes of Ingresses that charts out of reach are known to declare.

use std::collections::BTreeSet;

use tiphys_graph::ObjectScope;
use tiphys_value::Value;

use super::chart_uses::ChartUse;
use crate::Context;

/// A chart, the value that names its class, and the name without it; `{}` stands for the release's name.
const OF_INGRESS: [(&str, &[&str], &str); 8] = [
    ("aws-load-balancer-controller", &["ingressClass"], "alb"),
    ("contour", &["contour", "ingressClass", "name"], "contour"),
    ("haproxy-ingress", &["controller", "ingressClass"], "haproxy"),
    ("ingress-nginx", &["controller", "ingressClassResource", "name"], "nginx"),
    ("kong", &["ingressController", "ingressClass"], "kong"),
    ("kubernetes-ingress", &["controller", "ingressClassResource", "name"], "haproxy"),
    ("tailscale-operator", &["ingressClass", "name"], "tailscale"),
    ("traefik", &["ingressClass", "name"], "{}"),
];

/// Words in the names of charts and Applications that may bring a class of their own.
const CONTROLLERS: [&str; 13] = [
    "alb",
    "ambassador",
    "cilium",
    "contour",
    "haproxy",
    "ingress",
    "istio",
    "kong",
    "load-balancer",
    "nginx",
    "openresty",
    "tailscale",
    "traefik",
];

/// The classes of Ingresses that a cluster has, as far as manifests and the values of known charts say; `None`
/// if something that is not seen may declare another one.
pub(crate) fn of_ingress(context: &Context<'_>, scope: &ObjectScope) -> Option<BTreeSet<String>> {
    let survey = context.survey.flux.as_deref().unwrap_or(context.survey);
    let declared = survey.objects_in(scope).filter(|it| it.key.kind == "IngressClass");
    let mut found: BTreeSet<String> = declared.map(|it| it.key.name.clone()).collect();
    let is_controller = |name: &str| CONTROLLERS.iter().any(|word| name.contains(word));
    for used in context.chart_uses().iter().filter(|it| is_controller(&it.chart)) {
        let known = OF_INGRESS.iter().find(|(chart, ..)| *chart == used.chart);
        let (_, path, usual) = known.filter(|_| !used.has_hidden_values)?;
        let release = used.release.as_ref()?;
        // Clusters of Flux go by other names than what declares them.
        if release.scope != *scope && !survey.is_of_flux {
            continue;
        }
        let named = used
            .value(path)
            .and_then(Value::as_str)
            .map_or_else(|| usual.replace("{}", &release.name), str::to_owned);
        found.insert(named);
    }
    let is_unknown = |name: &str, chart: &str| is_controller(name) && !is_known(context, chart);
    let by_app = survey.apps.iter().filter(|app| !app.is_rendered()).any(|app| {
        let sources = app.application.spec.effective_sources();
        sources
            .iter()
            .any(|it| is_unknown(&it.chart, &it.chart) || it.chart.is_empty() && is_controller(&it.path))
    });
    let by_tool = survey.tools().writers.iter().any(|it| is_controller(&it.subject()));
    (!by_app && !by_tool && !found.is_empty()).then_some(found)
}

/// Whether a chart is one whose class is known, and whose values are seen.
fn is_known(context: &Context<'_>, chart: &str) -> bool {
    let seen = |used: &&ChartUse| used.chart == chart && used.release.is_some() && !used.has_hidden_values;
    OF_INGRESS.iter().any(|(known, ..)| *known == chart) && context.chart_uses().iter().any(|it| seen(&it))
}
