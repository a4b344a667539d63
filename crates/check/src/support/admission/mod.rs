//! What admission refuses in custom resources beyond the types of their fields, by kind: rules of
//! definitions, and checks of the operators' webhooks. Only what is certain from the object alone.

mod external_secrets;
mod gateway_api;
mod istio;
mod kyverno;
mod load_balancers;

use std::collections::HashSet;

use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};

/// One thing that is refused.
pub struct AdmissionRefusal {
    /// The field; it may be missing.
    pub field: FieldPath,
    /// What is said of it.
    pub message: String,
}

/// Who refuses, and what; nothing for kinds of which nothing is known.
pub fn refusals(object: &Object) -> Option<(&'static str, Vec<AdmissionRefusal>)> {
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
        "kyverno.io" => {
            kyverno::check(kind, spec, &mut found);
            "the webhook of Kyverno"
        }
        "metallb.io" => {
            load_balancers::check_metallb(kind, spec, &mut found);
            "the webhook of MetalLB"
        }
        "cilium.io" => {
            load_balancers::check_cilium(kind, spec, &mut found);
            "the operator of Cilium"
        }
        _ => return None,
    };
    Some((who, found.0))
}

/// Collects what is refused.
#[derive(Default)]
struct Refusals(Vec<AdmissionRefusal>);

impl Refusals {
    fn add(&mut self, field: FieldPath, message: impl Into<String>) {
        self.0.push(AdmissionRefusal { field, message: message.into() });
    }

    /// Refuses a list that is longer than it may be.
    fn longer(&mut self, list: &[Value], most: usize, field: &FieldPath) {
        if list.len() > most {
            self.add(field.clone(), format!("Too many: {}: must have at most {most} items", list.len()));
        }
    }

    /// Refuses the second of two items that have one text; items without one are passed over.
    fn repeated<'v>(
        &mut self,
        items: impl Iterator<Item = (FieldPath, &'v str)>,
        message: impl Fn(&str) -> String,
    ) {
        let mut known = HashSet::new();
        for (field, text) in items.filter(|(_, text)| !text.is_empty()) {
            if !known.insert(text) {
                self.add(field, message(text));
            }
        }
    }
}
