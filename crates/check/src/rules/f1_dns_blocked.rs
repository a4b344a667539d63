//! # A network policy drops look-ups of names
//!
//! A workload that connects to anything by name asks the cluster's DNS first: pods in `kube-system`, port 53,
//! UDP and TCP. A policy for egress that names only the final destination lets nothing happen at all. One
//! that lets pods call everything outside by HTTPS is meant for calls by name, too.
//!
//! People see: `dial tcp: lookup db on 10.96.0.10:53: i/o timeout`, `Temporary failure in name resolution`,
//! `getaddrinfo EAI_AGAIN`.
//!
//! ## Bad
//! ```yaml
//! egress:
//!   - to: [{podSelector: {matchLabels: {app: db}}}]
//! ```
//! ## Good
//! ```yaml
//! egress:
//!   - to: [{podSelector: {matchLabels: {app: db}}}]
//!   - to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}}]
//!     ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
//! ```
//! ## When to suppress
//! Where the workload never looks a name up.

use tiphys_diag::Severity;
use tiphys_network::Need;

use super::reach;
use crate::{Context, Report, Rule};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F1-dns-blocked",
    incident: "F1",
    severity: Severity::Error,
    title: "a network policy drops look-ups of names",
    page: page!("f1_dns_blocked.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    for (network, flows) in context.networks() {
        for flow in flows.iter().filter(|flow| flow.need == Need::Dns) {
            let judgement = network.judge(flow);
            if !judgement.is_denied() {
                continue;
            }
            let title = &network.pods[flow.pod].title;
            let message =
                format!("{title} cannot look up names: {}", reach::restricting_policies(network, &judgement));
            let mut diagnostic = RULE.diagnostic(message);
            diagnostic = reach::with_severity(context, network, flow, &judgement, diagnostic);
            diagnostic = reach::places(context.survey, network, flow, &judgement, diagnostic);
            let upstream = flows.iter().find_map(|other| match &other.need {
                Need::Upstream { field, from, service } if *from == flow.pod => Some((field, service)),
                _ => None,
            });
            if let (Some((field, service)), Some(object)) = (upstream, network.pods[flow.pod].object) {
                let span = context.survey.span(context.survey.object(object), field);
                diagnostic = diagnostic.see(span, format!("{service} is named here"));
            }
            let is_inferred = upstream.is_none() && network.pods[flow.pod].controller.is_none();
            if is_inferred {
                diagnostic.severity = diagnostic.severity.min(Severity::Warning);
            }
            let diagnostic = diagnostic.because("a name is looked up before anything is sent to it; the cluster's DNS is pods in kube-system that take port 53");
            let finding = reach::with_remedy(&RULE, context.survey, network, &[flow], diagnostic);
            report.add(if is_inferred { finding.likely() } else { finding });
        }
    }
}
