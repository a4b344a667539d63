//! What a webhook keeps from every namespace: the ConfigMap with the authority of the API server, which pods
//! mount.

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::{Cause, refusal};
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::symptoms::Symptom;

/// The ConfigMap that is put into every namespace.
const ROOT_AUTHORITY: &str = "kube-root-ca.crt";

/// Has pods that lack the authority show what a webhook for ConfigMaps refuses.
pub(crate) fn show_refusals(found: &mut [Symptom], snapshot: &Snapshot) {
    let refused: Vec<ResourceKey> = found
        .iter()
        .filter(|it| {
            let id = it.mechanism.as_ref().map(|it| it.id);
            matches!(id, Some(Cause::AdmitWebhookDown | Cause::AdmitWebhookTls))
                && asks_for_config_maps(&refusal(&it.because).by, snapshot)
        })
        .map(|it| it.object.clone())
        .collect();
    let lacks = |symptom: &&mut Symptom| {
        let missing = symptom.mechanism.iter().flat_map(|it| &it.objects);
        missing.into_iter().any(|key| key.kind == "ConfigMap" && key.name == ROOT_AUTHORITY)
    };
    found
        .iter_mut()
        .filter(|symptom| symptom.object.kind == "Pod")
        .filter(lacks)
        .for_each(|pod| pod.shows.extend(refused.iter().cloned()));
}

/// Whether a webhook is asked when a ConfigMap is made.
fn asks_for_config_maps(name: &str, snapshot: &Snapshot) -> bool {
    let plurals = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
    let configurations = plurals
        .iter()
        .flat_map(|plural| snapshot.list(&ResourceId::new("admissionregistration.k8s.io", *plural), None));
    let mut webhooks = configurations
        .filter_map(|configuration| configuration.value().get("webhooks")?.as_array())
        .flatten()
        .filter(|webhook| webhook.str_at(&["name"]) == Some(name));
    let names = |rule: &Value, field: &str, any_of: &[&str]| {
        let all = rule.get(field).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(Value::as_str).any(|it| any_of.contains(&it))
    };
    webhooks.any(|webhook| {
        webhook.get("rules").and_then(Value::as_array).into_iter().flatten().any(|rule| {
            names(rule, "apiGroups", &["", "*"])
                && names(rule, "resources", &["configmaps", "*", "*/*"])
                && names(rule, "operations", &["CREATE", "*"])
        })
    })
}
