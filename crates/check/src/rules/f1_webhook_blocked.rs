//! # A network policy drops the API server's call of a webhook
//!
//! The API server calls an admission webhook from a node, or from the cloud's control plane, so that no
//! `namespaceSelector` or `podSelector` selects it; and it arrives at the container's port, not at the
//! Service's. A policy for ingress that admits only pods, or only port 443, drops the call; with
//! `failurePolicy: Fail` every object that the webhook is for is then refused.
//!
//! People see: `failed calling webhook "...": failed to call webhook: Post "https://...": context deadline
//! exceeded`.
//!
//! ## Bad
//! ```yaml
//! ingress:
//!   - from: [{namespaceSelector: {}}]
//!     ports: [{port: 443}]
//! ```
//! ## Good
//! ```yaml
//! ingress:
//!   - ports: [{port: 9443}]
//! ```
//! ## When to suppress
//! Where the API server reaches the cluster through an agent that runs as a pod, and the policy admits it.

use tiphys_diag::Severity;
use tiphys_network::Need;

use super::reach;
use crate::{Context, Report, Rule, support::dedup::Once};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F1-webhook-blocked",
    incident: "F1",
    severity: Severity::Error,
    title: "a network policy drops the API server's call of a webhook",
    page: page!("f1_webhook_blocked.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for (network, flows) in context.networks() {
        for flow in flows {
            let Need::Webhook(configuration) = flow.need else { continue };
            let judgement = network.judge(flow);
            if !judgement.is_denied() {
                continue;
            }
            let configuration = context.survey.object(configuration);
            let title = &network.pods[flow.pod].title;
            let port = flow.ports.first().map_or(0, |(_, number)| *number);
            let message = format!(
                "the API server cannot call {title} as a webhook: {}",
                reach::restricting_policies(network, &judgement)
            );
            let mut diagnostic = RULE.diagnostic(message);
            diagnostic = reach::with_severity(context, network, flow, &judgement, diagnostic);
            let diagnostic = reach::places(context.survey, network, flow, &judgement, diagnostic)
                .see(context.survey.start(configuration), "the webhook is registered here")
                .because(format!("the call comes from the API server, which is no pod, and goes to the container's port {port}"));
            let finding = reach::with_remedy(&RULE, context.survey, network, &[flow], diagnostic);
            // One server often answers for several configurations.
            let message = finding.diagnostic.message.clone();
            once.add(&message, finding);
        }
    }
    once.report(report);
}
