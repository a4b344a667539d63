//! # A network policy drops what a workload is meant to take in
//!
//! A Service of type LoadBalancer brings in packets with the address of a client or of a node; Prometheus
//! reads metrics from another namespace, and the controller of an Ingress sends requests from one. A policy
//! for ingress that admits only some pods drops all three: the load balancer's health checks fail and it
//! sends nothing, the target in Prometheus is down, the host answers with an error. So do the pods behind a
//! Gateway, for every route that is attached to it, and an operator asks the pods that it made. Controllers
//! are looked at where their pods are known: ingress-nginx and Traefik; Envoy Gateway, Istio and kgateway;
//! the operators of much used databases.
//!
//! People see: targets that are `unhealthy`, `context deadline exceeded` on Prometheus' page of targets, `504
//! Gateway Time-out`.
//!
//! ## Bad
//! ```yaml
//! # the pods of a Service of type LoadBalancer
//! ingress:
//!   - from: [{podSelector: {}}]
//! ```
//! ## Good
//! ```yaml
//! ingress:
//!   - ports: [{port: 8080}]
//! ```
//! ## When to suppress
//! Where the load balancer's own pods are in front (an ingress controller's), and the type is a leftover.

use tiphys_diag::Severity;
use tiphys_network::{Need, Pod, Verdict};

use super::reach;
use crate::{Context, Report, Rule, support::dedup::Once};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F1-ingress-blocked",
    incident: "F1",
    severity: Severity::Warning,
    title: "a network policy drops what a workload is meant to take in",
    page: page!("f1_ingress_blocked.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    for (network, flows) in context.networks() {
        for flow in flows {
            let (who, why, because) = match flow.need {
                Need::Outside(service) => (
                    "what comes from outside",
                    service,
                    "a client's or a node's address is no pod: selectors of pods and namespaces never admit it",
                ),
                Need::Metrics(monitor) => (
                    "Prometheus",
                    monitor,
                    "what reads the metrics is a pod like any other, and has to be admitted",
                ),
                Need::Route(route) => (
                    match survey.object(route).key.kind.as_str() {
                        "Ingress" => "the Ingress controller",
                        _ => "the Gateway",
                    },
                    route,
                    "the controller's pods send the requests on, from their own namespace, and have to be admitted",
                ),
                Need::Operator(resource) => (
                    "the operator",
                    resource,
                    "the operator asks the pods that it made how they are; without an answer it takes them for dead",
                ),
                _ => continue,
            };
            // Nothing is sent to a Job that happens to have the labels that a Service selects.
            let is_job = |pod: &Pod| {
                let kind = pod.object.map(|object| survey.object(object).key.kind.as_str());
                matches!(kind, Some("Job" | "CronJob"))
            };
            if is_job(&network.pods[flow.pod]) {
                continue;
            }
            let judgement = network.judge(flow);
            if judgement.verdict != Verdict::Deny || reach::may_be_let_pass_elsewhere(context, network, flow)
            {
                continue;
            }
            let title = &network.pods[flow.pod].title;
            let port = flow.ports.first().map_or(0, |(_, number)| *number);
            let message = format!(
                "{who} cannot reach {title} on port {port}: {}",
                reach::restricting_policies(network, &judgement)
            );
            let why = survey.object(why);
            let diagnostic = reach::places(survey, network, flow, &judgement, RULE.diagnostic(message))
                .see(survey.start(why), format!("{} needs it", why.title()))
                .because(because);
            let finding = reach::with_remedy(&RULE, survey, network, &[flow], diagnostic);
            once.add_by(reach::cause(survey, network, flow, &finding), finding);
        }
    }
    once.report(report);
}
