//! What admission refuses in custom resources beyond the types of their fields, by kind: rules of
//! definitions, and checks of the operators' webhooks. Only what is certain from the object alone.

mod cloudnative_pg;
mod external_secrets;
mod flux;
mod gateway_api;
mod istio;
mod kyverno;
mod load_balancers;
mod refused_fields;

use tiphys_graph::Object;

pub(crate) use refused_fields::AdmissionRefusal;
use refused_fields::Refusals;

/// Who refuses, and what; nothing for kinds of which nothing is known.
pub(crate) fn refusals(object: &Object) -> Option<(&'static str, Vec<AdmissionRefusal>)> {
    let spec = object.value().get("spec").filter(|spec| spec.is_object())?;
    let mut found = Refusals::default();
    let kind = object.key.kind.as_str();
    let who = match object.key.group.as_str() {
        "gateway.networking.k8s.io" => {
            gateway_api::check(kind, spec, &mut found);
            "the API server, by the rules of the definition"
        }
        "networking.istio.io" | "security.istio.io" => {
            istio::check(kind, spec, &mut found);
            "the webhook of Istio"
        }
        "external-secrets.io" => {
            external_secrets::check(kind, spec, &mut found);
            "the webhook of External Secrets"
        }
        "helm.toolkit.fluxcd.io" | "kustomize.toolkit.fluxcd.io" | "source.toolkit.fluxcd.io" => {
            flux::check(kind, spec, object.environment.is_some(), &mut found);
            "the API server or Flux, by the rules of the definition"
        }
        "kyverno.io" => {
            kyverno::check(kind, spec, &mut found);
            "the webhook of Kyverno"
        }
        "metallb.io" => {
            load_balancers::check_metallb(kind, spec, &mut found);
            "the webhook of MetalLB"
        }
        "postgresql.cnpg.io" => {
            cloudnative_pg::check(kind, spec, &mut found);
            "the webhook of CloudNativePG or of its plugin"
        }
        "cilium.io" => {
            load_balancers::check_cilium(kind, spec, &mut found);
            "the operator of Cilium"
        }
        _ => return None,
    };
    Some((who, found.0))
}
