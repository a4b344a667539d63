//! Ingresses whose certificate is made under another name: they serve one that nobody trusts.

use std::collections::BTreeSet;

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause as Id;
use tiphys_stage::{
    causes::{Cause, Repair},
    mechanism::Mechanism,
};
use tiphys_value::{ObjectExt, ResourceKey, Value};

use super::hidden_cause::hidden_cause;

/// What an Ingress has that cert-manager makes certificates for by itself.
const BY_ANNOTATION: [&str; 3] =
    ["cert-manager.io/issuer", "cert-manager.io/cluster-issuer", "kubernetes.io/tls-acme"];

/// Ingresses that name a Secret which is not there, while a Certificate beside them makes another one for the
/// same host. `before` is how it was before a change: what was so then is not told.
pub(super) fn without_secret(end: &Snapshot, before: Option<&Snapshot>) -> Vec<Cause> {
    let id = ResourceId::new("networking.k8s.io", "ingresses");
    let ingresses = end.list(&id, None).map(|ingress| ingress.value());
    let causes = ingresses.filter_map(|ingress| {
        let (named, made, certificate) = misnamed(ingress, end)?;
        let old = before.and_then(|before| Some((before.get(&id, ingress.namespace(), ingress.name())?, before)));
        if old.is_some_and(|(old, before)| misnamed(old.value(), before).is_some()) {
            return None;
        }
        let secret = ResourceKey::new("", "Secret", ingress.namespace(), &named);
        let text = format!(
            "it takes its certificate from Secret {named:?}, which does not exist; Certificate {certificate:?} makes {made:?} for its host"
        );
        let mechanism = Mechanism { id: Id::EdgeTlsSecret, objects: vec![secret] };
        let repair = Repair {
            text: format!("write the Secret {made:?} in place of {named:?}, or the other way round in the Certificate"),
            ..Repair::default()
        };
        let cause = hidden_cause(ingress.resource_key(), mechanism, text, "serves no certificate of its own");
        Some(Cause { repair: Some(repair), ..cause })
    });
    causes.collect()
}

/// The Secret that an Ingress names and nobody makes, and the one that a Certificate makes for its host, with
/// the Certificate.
fn misnamed(ingress: &Value, snapshot: &Snapshot) -> Option<(String, String, String)> {
    if BY_ANNOTATION.iter().any(|name| ingress.annotation(name).is_some()) {
        return None;
    }
    let namespace = ingress.namespace();
    let strings = |value: &Value, path: &[&str]| -> BTreeSet<String> {
        let all = value.at(path).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let certificates: Vec<&Value> = snapshot
        .of_kind("cert-manager.io", "Certificate")
        .map(|it| it.value())
        .filter(|it| it.namespace() == namespace)
        .collect();
    let entries = ingress.at(&["spec", "tls"]).and_then(Value::as_array)?;
    entries.iter().find_map(|entry| {
        let named = entry.str_at(&["secretName"]).filter(|name| !name.is_empty())?;
        let is_there = snapshot.get(&ResourceId::new("", "secrets"), namespace, named).is_some();
        let is_made = certificates.iter().any(|it| it.str_at(&["spec", "secretName"]) == Some(named));
        let hosts = strings(entry, &["hosts"]);
        let of_host =
            certificates.iter().find(|it| !strings(it, &["spec", "dnsNames"]).is_disjoint(&hosts))?;
        let made = of_host.str_at(&["spec", "secretName"])?;
        (!is_there && !is_made).then(|| (named.to_owned(), made.to_owned(), of_host.name().to_owned()))
    })
}
