//! # A network policy drops the API server's call of a webhook
//!
//! The API server calls an admission webhook from a node, or from the cloud's control plane, so that no
//! `namespaceSelector` or `podSelector` selects it; and it arrives at the container's port, not at the
//! Service's. A policy for ingress that admits only pods, or only port 443, drops the call; with
//! `failurePolicy: Fail` every object that the webhook is for is then refused. Of much used charts that are
//! out of reach it is known at which ports of which pods they register one.
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
            let configuration = match flow.need {
                Need::Webhook(configuration) => Some(context.survey.object(configuration)),
                Need::ChartWebhook => None,
                _ => continue,
            };
            let judgement = network.judge(flow);
            if !judgement.is_denied() {
                continue;
            }
            let title = &network.pods[flow.pod].title;
            let port = flow.ports.first().map_or(0, |(_, number)| *number);
            let message = format!(
                "the API server cannot call {title} as a webhook: {}",
                reach::restricting_policies(network, &judgement)
            );
            let mut diagnostic = RULE.diagnostic(message);
            diagnostic = reach::with_severity(context, network, flow, &judgement, diagnostic);
            diagnostic = reach::places(context.survey, network, flow, &judgement, diagnostic);
            if let Some(configuration) = configuration {
                diagnostic =
                    diagnostic.see(context.survey.start(configuration), "the webhook is registered here");
            } else {
                // The chart is out of reach, and its pods may be labelled otherwise.
                diagnostic.severity = diagnostic.severity.min(Severity::Warning);
            }
            let diagnostic = diagnostic.because(format!(
                "the call comes from the API server, which is no pod, and goes to the container's port {port}"
            ));
            let finding = reach::with_remedy(&RULE, context.survey, network, &[flow], diagnostic);
            let finding = if configuration.is_none() { finding.likely() } else { finding };
            // One server often answers for several configurations.
            let message = finding.diagnostic.message.clone();
            once.add(&message, finding);
        }
    }
    once.report(report);
}
