//! # A network policy drops what a workload needs to send
//!
//! A policy for egress drops everything that none of its rules names. What is most often forgotten is no pod:
//! the API server has the address of a node, or of the cloud's control plane. `namespaceSelector: {}` selects
//! every pod of the cluster and never a node. An `ipBlock` of the Service's address (`10.96.0.1/32`) does not
//! help either where the packet is judged after the Service is translated, as most CNIs do: by then its
//! destination is a node, port 6443.
//!
//! The rule also looks at Services that a workload names in its environment or arguments, at both ends of the
//! connection; at hosts of the internet that its environment names, such as `PAYMENT_URL:
//! https://api.payments.io`; and at the cloud's API for controllers that are known to call it.
//!
//! People see: `Get "https://10.96.0.1:443/...": dial tcp 10.96.0.1:443: i/o timeout`, and a controller in
//! CrashLoopBackOff.
//!
//! ## Bad
//! ```yaml
//! egress:
//!   - to:
//!       - namespaceSelector: {}
//!     ports:
//!       - port: 443
//! ```
//! ## Good
//! ```yaml
//! egress:
//!   - ports:                # any destination: nodes are not selected by labels
//!       - port: 443
//!       - port: 6443
//! ```
//! ## When to suppress
//! Where the workload's rights are for another pod that uses the same service account, or where the
//! connection is meant to be cut.

use std::collections::BTreeMap;

use tiphys_diag::{Diagnostic, Severity};
use tiphys_network::{Direction, Flow, Judgement, Need, Network};
use tiphys_value::FieldPath;

use super::reach;
use crate::{Confidence, Context, Finding, Report, Rule, support::dedup::Once};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F1-egress-blocked",
    incident: "F1",
    severity: Severity::Error,
    title: "a network policy drops what a workload needs to send",
    page: page!("f1_egress_blocked.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for (network, flows) in context.networks() {
        let mut own: BTreeMap<usize, Vec<(&Flow, Judgement)>> = BTreeMap::new();
        for flow in flows {
            let judgement = network.judge(flow);
            if !judgement.is_denied() || reach::may_be_let_pass_elsewhere(context, network, flow) {
                continue;
            }
            match flow.need {
                Need::ApiServer | Need::CloudApi | Need::Metadata => {
                    own.entry(flow.pod).or_default().push((flow, judgement))
                }
                Need::Upstream { ref service, ref field, from } => {
                    // What many send to and one policy keeps closed is one fault.
                    let of = format!(
                        "{service} {:?} {}",
                        flow.ports,
                        reach::restricting_policies(network, &judgement)
                    );
                    once.add_by(of, upstream(context, network, (flow, &judgement), (service, field, from)));
                }
                Need::Internet { ref host, ref field } => {
                    let finding = internet(context, network, (flow, &judgement), (host, field));
                    once.add_by(reach::cause(context.survey, network, flow, &finding), finding);
                }
                Need::Observed
                | Need::ChartWebhook
                | Need::Dns
                | Need::Operator(_)
                | Need::Webhook(_)
                | Need::Probe
                | Need::Outside(_)
                | Need::Metrics(_)
                | Need::Route(_) => {}
            }
        }
        for denied in own.into_values() {
            // Without the API server, a controller fails at once; what else it needs is told beside.
            if denied.iter().any(|(flow, _)| flow.need == Need::ApiServer) {
                let (flow, _) = &denied[0];
                let finding = controller(context, network, &denied);
                once.add_by(reach::cause(context.survey, network, flow, &finding), finding);
            }
        }
    }
    once.report(report);
}

/// What is wrong with the way to the API server, and to what else a controller needs.
fn controller(context: &Context<'_>, network: &Network, denied: &[(&Flow, Judgement)]) -> Finding {
    let survey = context.survey;
    let (flow, judgement) = &denied[0];
    let pod = &network.pods[flow.pod];
    let blocked: Vec<&str> = denied.iter().map(|(flow, _)| name(flow)).collect();
    let message = format!(
        "{} cannot reach {}: {}",
        pod.title,
        blocked.join(", "),
        reach::restricting_policies(network, judgement)
    );
    let mut diagnostic = RULE.diagnostic(message);
    diagnostic = reach::with_severity(context, network, flow, judgement, diagnostic);
    if pod.controller.is_none() && !pod.has_active_rights {
        diagnostic.severity = diagnostic.severity.min(Severity::Warning);
    }
    diagnostic = reach::places(survey, network, flow, judgement, diagnostic);
    if let Some(binding) = pod.rights {
        let label = format!("service account {} is given rights here", pod.service_account);
        diagnostic = diagnostic.see(survey.start(survey.object(binding)), label);
    }
    diagnostic = diagnostic.because(mechanism(network, judgement));
    let flows: Vec<&Flow> = denied.iter().map(|(flow, _)| *flow).collect();
    let finding = reach::with_remedy(&RULE, survey, network, &flows, diagnostic);
    Finding {
        confidence: if pod.controller.is_some() { Confidence::Certain } else { Confidence::Likely },
        ..finding
    }
}

fn name(flow: &Flow) -> &'static str {
    match flow.need {
        Need::CloudApi => "the cloud's API",
        Need::Metadata => "the instance metadata (169.254.169.254)",
        _ => "the API server",
    }
}

/// Why the rules that are there do not let the packet through.
fn mechanism(network: &Network, judgement: &Judgement) -> String {
    if judgement.is_by_rule {
        return "policies are asked tier by tier and, in a tier, by their order: the first rule that is for the packet decides, and this one comes before any that lets it pass".to_owned();
    }
    let mut text = "the API server is no pod: once its Service is translated, the packet goes to the address of a node or of the cloud's control plane, which no namespaceSelector or podSelector selects".to_owned();
    if reach::has_service_block(network, judgement) {
        let translating: Vec<&str> =
            network.cnis.iter().filter(|cni| cni.judges_translated()).map(|cni| cni.name()).collect();
        let by = translating.join(", ");
        text.push_str(&format!("; an ipBlock of the Service's own address does not select it either, because {by} sees only the translated address"));
    }
    text
}

/// A host of the internet that a workload names and cannot reach.
fn internet(
    context: &Context<'_>,
    network: &Network,
    (flow, judgement): (&Flow, &Judgement),
    (host, field): (&str, &FieldPath),
) -> Finding {
    let survey = context.survey;
    let pod = &network.pods[flow.pod];
    let port = flow.ports.first().map_or(443, |(_, port)| *port);
    let message = format!(
        "{} cannot reach {host} on port {port}: {}",
        pod.title,
        reach::restricting_policies(network, judgement)
    );
    let mut diagnostic = reach::with_severity(context, network, flow, judgement, RULE.diagnostic(message));
    // A name in the environment says that it may be used, not that it is.
    diagnostic.severity = diagnostic.severity.min(Severity::Warning);
    diagnostic = reach::places(survey, network, flow, judgement, diagnostic);
    if let Some(object) = pod.object {
        diagnostic = diagnostic.see(survey.span(survey.object(object), field), "it is named here");
    }
    let because = "a host of the internet is no pod: only a rule for addresses, or one that names no destination, lets the packet out";
    reach::with_remedy(&RULE, survey, network, &[flow], diagnostic.because(because)).likely()
}

/// A Service that a workload names and cannot reach.
fn upstream(
    context: &Context<'_>,
    network: &Network,
    (flow, judgement): (&Flow, &Judgement),
    (service, field, from): (&str, &FieldPath, usize),
) -> Finding {
    let survey = context.survey;
    let pod = &network.pods[from];
    let ports: Vec<String> = flow.ports.iter().map(|(_, number)| number.to_string()).collect();
    let message = format!(
        "{} cannot reach {service} on port {}: {}",
        pod.title,
        ports.join(", "),
        reach::restricting_policies(network, judgement)
    );
    let mut diagnostic: Diagnostic = RULE.diagnostic(message);
    // A name in the environment says that it may be used, not that it is.
    diagnostic = reach::with_severity(context, network, flow, judgement, diagnostic);
    diagnostic.severity = diagnostic.severity.min(Severity::Warning);
    diagnostic = reach::places(survey, network, flow, judgement, diagnostic);
    if let Some(object) = pod.object {
        diagnostic = diagnostic.see(survey.span(survey.object(object), field), "it is named here");
    }
    let side = if flow.direction == Direction::Egress { "sends" } else { "takes in" };
    let because = format!(
        "the policies for what {} {side} have no rule for it; the port is the container's, not the Service's",
        network.pods[flow.pod].title
    );
    reach::with_remedy(&RULE, survey, network, &[flow], diagnostic.because(because)).likely()
}
