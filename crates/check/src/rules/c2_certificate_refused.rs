//! # A certificate or issuer that the webhook of cert-manager refuses
//!
//! The schema of a Certificate allows what its webhook does not: a common name of more than 64 bytes, a
//! certificate without any name, one that is to be renewed before it is made, an issuer of two types. The
//! webhook denies the request, and the sync of the whole Application fails at that object.
//!
//! People see: `admission webhook "webhook.cert-manager.io" denied the request: spec.commonName: Too long:
//! may not be more than 64 bytes`, `at least one of commonName … must be set`, `may not specify more than one
//! issuer type`, `no solver type configured`.
//!
//! ## Bad
//! ```yaml
//! kind: Certificate
//! spec: {secretName: web, issuerRef: {name: ca}, duration: 24h, renewBefore: 360h, dnsNames: [web.example.com]}
//! ```
//! ## Good
//! ```yaml
//! spec: {secretName: web, issuerRef: {name: ca}, duration: 24h, renewBefore: 8h, dnsNames: [web.example.com]}
//! ```
//! ## When to suppress
//! Where the webhook is switched off.

use tiphys_diag::Severity;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cert_manager::{self, FieldRefusal},
        dedup::Once,
        placeholders, unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-certificate-refused",
    incident: "C2",
    severity: Severity::Error,
    title: "a certificate or issuer that the webhook of cert-manager refuses",
    page: page!("c2_certificate_refused.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    for object in survey.objects.iter().filter(|object| object.key.group == "cert-manager.io") {
        let Some(spec) = object.value().get("spec").filter(|spec| spec.is_object()) else { continue };
        let faults = match object.key.kind.as_str() {
            "Certificate" => cert_manager::of_certificate(spec),
            "Issuer" | "ClusterIssuer" => cert_manager::of_issuer(spec),
            _ => continue,
        };
        if faults.is_empty() || unrendered_files::may_be_a_patch(survey, object) || is_to_be_filled_in(spec) {
            continue;
        }
        // Which names a certificate is for, the values of an Application say.
        let is_unnamed =
            |fault: &FieldRefusal| fault.is_invalid_value && fault.field == FieldPath::default().key("spec");
        let is_default = unrendered_files::is_from_unused_chart(survey, object);
        for fault in faults.into_iter().filter(|fault| !is_default || !is_unnamed(fault)) {
            let message = format!(
                "admission webhook \"webhook.cert-manager.io\" denied the request: {}",
                fault.message
            );
            let mut diagnostic = RULE
                .diagnostic(message)
                .at(survey.span(object, &fault.field), "this is refused")
                .because(format!("{} fits its schema; the webhook asks for more", object.title()));
            if survey.app_of(object).is_none() {
                diagnostic.severity = Severity::Warning;
            }
            once.add(&fault.message, RULE.finding(context, object, diagnostic));
        }
    }
    once.report(report);
}

/// Whether another tool puts whole parts in.
fn is_to_be_filled_in(spec: &Value) -> bool {
    spec.as_object().is_some_and(|fields| fields.keys().any(|key| placeholders::is_in(key)))
}
