//! # A custom resource that admission refuses
//!
//! The schema of a custom resource says of which types its fields are. Definitions have rules on top of it,
//! and operators have webhooks: lists have limits, some fields exclude each other, names have to be
//! different. What breaks such a rule is refused as a whole, and the sync of the Application fails at this
//! object.
//!
//! It knows rules of the Gateway API, Istio, External Secrets, Kyverno, CloudNativePG and of pools of
//! addresses for MetalLB and Cilium. Where the repository holds the definition, its own rules are told by
//! `C2-invalid`.
//!
//! People see: `HTTPRoute.gateway.networking.k8s.io "web" is invalid: … RequestRedirect filter must not be
//! used together with backendRefs`, `admission webhook "validation.istio.io" denied the request:
//! configuration is invalid: total destination weight = 0`, `either data or dataFrom should be specified`.
//!
//! ## Bad
//! ```yaml
//! kind: HTTPRoute
//! spec:
//!   rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}], backendRefs: [{name: web, port: 80}]}]
//! ```
//! ## Good
//! ```yaml
//! spec:
//!   rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]
//! ```
//! ## When to suppress
//! Where the webhook is switched off, or of a release that takes it.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::ObjectExt;

use crate::{
    Context, Report, Rule,
    support::{admission, dedup::Once, placeholders, unrendered_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-admission-refused",
    incident: "C2",
    severity: Severity::Warning,
    title: "a custom resource that admission refuses",
    page: page!("c2_admission_refused.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    for object in &survey.objects {
        let Some((who, found)) = admission::refusals(object).filter(|(_, found)| !found.is_empty()) else {
            continue;
        };
        let known = context.definitions().schemas(object, &object.value().gvk());
        let is_of_definition =
            object.key.group == "gateway.networking.k8s.io" && known.iter().any(|it| !it.is_shipped);
        if is_of_definition
            || unrendered_files::may_be_a_patch(survey, object)
            || unrendered_files::is_under_unused_chart(survey, object)
            || placeholders::has_placeholder(&object.value()["spec"]) && is_to_be_filled_in(object)
        {
            continue;
        }
        for refusal in found {
            let diagnostic = RULE
                .diagnostic(format!("{} is refused: {}", object.title(), refusal.message))
                .at(survey.span(object, &refusal.field), "this is refused")
                .because(format!("it fits its schema, and {who} refuses it"));
            let what: String = refusal.message.chars().filter(|c| !c.is_ascii_digit()).collect();
            once.add(&what, RULE.finding(context, object, diagnostic).likely());
        }
    }
    once.report(report);
}

/// Whether another tool writes parts of an object; policies of Kyverno have variables of their own.
fn is_to_be_filled_in(object: &Object) -> bool {
    !matches!(object.key.group.as_str(), "kyverno.io" | "external-secrets.io")
}
