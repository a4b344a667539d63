//! Why a caller does not trust the certificate of what it calls: the authorities that it mounts are not those
//! that signed it.

use tiphys_cause::{Cause, FailedCall, Failure};
use tiphys_value::{ObjectExt as _, Value};

use super::Caller;
use crate::{
    Object,
    cluster::{certificate::Certificate, items},
    dependencies,
    finding::Finding,
    search_context::Look,
};

/// The bundle of authorities that a caller mounts, if none of them signed the certificate of the other side.
pub(super) fn untrusted<'a>(
    look: &Look<'a>,
    caller: &Caller<'a>,
    call: &FailedCall,
    service: &'a Value,
) -> Option<Finding> {
    if call.failure != Failure::Untrusted {
        return None;
    }
    let (shown, certificate) = shown_certificate(look, service)?;
    let spec = caller.pods.first().and_then(|pod| pod.get("spec"))?;
    let mut names = Vec::new();
    dependencies::configuration(spec, &caller.workload.namespace, &mut names);
    let holders = names.iter().filter(|it| matches!(it.kind.as_str(), "ConfigMap" | "Secret"));
    let bundles: Vec<(&Object, Vec<Certificate>)> = holders
        // Every namespace gets the authority of the API server.
        .filter(|it| it.name != "kube-root-ca.crt")
        .filter_map(|it| Some((it, authorities(look.cluster.live(it)?))))
        .filter(|(_, authorities)| !authorities.is_empty())
        .collect();
    let signs = |authority: &Certificate| authority.subject == certificate.issuer;
    let is_signed = bundles.iter().flat_map(|(_, authorities)| authorities).any(signs);
    let (bundle, _) = bundles.first().filter(|_| !is_signed)?;
    let signer = certificate.issuer_name();
    let summary = format!(
        "{bundle}, by which {} trusts others, lacks the authority that signed the certificate of {}: {signer}",
        caller.workload,
        Object::from_live(service)
    );
    let known = bundles.iter().flat_map(|(_, authorities)| authorities).map(Certificate::subject_name);
    let known: Vec<String> = known.collect();
    Some(
        Finding::new(Cause::ConfigWrongValue, (*bundle).clone(), 0.88, summary)
            .field("data")
            .evidence(shown.to_string(), format!("signed by {signer}"))
            .evidence(bundle.to_string(), format!("holds {}", known.join(", ")))
            .remedy(
                format!("Add the authority {signer} to {bundle}, and restart {}.", caller.workload),
                &[format!(
                    "kubectl -n {} rollout restart {} {}",
                    caller.workload.namespace,
                    caller.workload.kind.to_lowercase(),
                    caller.workload.name
                )],
            ),
    )
}

/// The certificate that the pods of a Service show, by the one TLS Secret that they mount.
fn shown_certificate(look: &Look<'_>, service: &Value) -> Option<(Object, Certificate)> {
    let pod = look.cluster.pods_of(service).into_iter().next()?;
    let names = items(pod, &["spec", "volumes"]).filter_map(|it| it.str_at(&["secret", "secretName"]));
    let secrets = names.filter_map(|name| look.cluster.get("Secret", pod.namespace(), name));
    let mut shown = secrets.filter_map(|secret| {
        let certificate = Certificate::all_of_secret(secret, "tls.crt").into_iter().next()?;
        Some((Object::from_live(secret), certificate))
    });
    let first = shown.next()?;
    shown.next().is_none().then_some(first)
}

/// The certificates that a ConfigMap or Secret holds beside the one of a key of its own.
fn authorities(holder: &Value) -> Vec<Certificate> {
    let data = holder.get("data").and_then(Value::as_object);
    let entries = data.into_iter().flatten();
    let is_own = |key: &str| key == "tls.crt" || key == "tls.key";
    let texts = entries.filter(|(key, _)| !is_own(key)).filter_map(|(_, value)| value.as_str());
    if holder.kind() == "Secret" {
        return texts.flat_map(Certificate::all_from_base64).collect();
    }
    texts.flat_map(Certificate::all_from_pem).collect()
}
