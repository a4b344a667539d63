//! # A policy that Cilium's agents refuse
//!
//! The API server takes a CiliumNetworkPolicy that fits its schema; what its rules mean is judged by the
//! agents, afterwards. One that they cannot use, they leave out as a whole: what it should forbid passes, and
//! what it should allow is dropped where another policy isolates the pods. The sync is green, and only the
//! policy's status and the agents' logs tell.
//!
//! People see: `combining ToEndpoints and ToCIDR is not supported yet`, `rule must have at least one of
//! Ingress, IngressDeny, Egress, EgressDeny`, `L7 rules can only apply to TCP (not ANY) except for DNS
//! rules`, `Unable to add CiliumNetworkPolicy`.
//!
//! ## Bad
//! ```yaml
//! kind: CiliumNetworkPolicy
//! spec:
//!   endpointSelector: {}
//!   egress:
//!     - toEntities: [world]
//!       toEndpoints: [{matchLabels: {app: db}}]
//! ```
//! ## Good
//! ```yaml
//! spec:
//!   endpointSelector: {}
//!   egress:
//!     - toEntities: [world]
//!     - toEndpoints: [{matchLabels: {app: db}}]
//! ```
//! ## When to suppress
//! Where the agents are of a release that takes it.

use tiphys_diag::Severity;
use tiphys_network::refusal;

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, unrendered_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-cilium-refused",
    incident: "C2",
    severity: Severity::Warning,
    title: "a policy that Cilium's agents refuse",
    page: page!("c2_cilium_refused.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    for object in &survey.objects {
        let Some(refusal) =
            refusal(object.of_network()).filter(|_| !unrendered_files::may_be_a_patch(survey, object))
        else {
            continue;
        };
        let mut diagnostic = RULE
            .diagnostic(format!("{} does nothing: {}", object.title(), refusal.message))
            .at(survey.span(object, &refusal.field), "Cilium's agents refuse this")
            .because("the API server takes the policy; the agents leave all of it out, and say so in its status only");
        diagnostic.help.extend(help(&refusal.message).map(str::to_owned));
        once.add(&refusal.message, RULE.finding(context, object, diagnostic));
    }
    once.report(report);
}

/// What to write in its place, where that is plain.
fn help(message: &str) -> Option<&'static str> {
    let known = [
        ("combining", "give each of them an entry of its own; the entries are alternatives"),
        ("at least one of", "to close a direction, write one rule that allows nothing: `- {}`"),
        ("can only apply to TCP", "add `protocol: TCP` to the port"),
        ("may only be present without", "give `icmps` an entry of its own"),
    ];
    known.iter().find(|(part, _)| message.contains(part)).map(|(_, help)| *help)
}
