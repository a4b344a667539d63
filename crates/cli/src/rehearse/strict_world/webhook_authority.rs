//! Webhooks whose authority cert-manager is to put in from a Certificate that is not there: the API server
//! does not trust them.

use std::collections::BTreeSet;

use tiphys_diag::similar_names::similar;
use tiphys_value::{ObjectExt, ResourceKey, Value};
use tiphys_world::behaviour::{WebhookAnswer, WebhookRule};

use super::known_services::is_whole;
use crate::up::plan::Plan;

/// The annotation that names the Certificate, as `namespace/name`.
pub(in crate::rehearse) const INJECT_FROM: &str = "cert-manager.io/inject-ca-from";

/// A rule for each webhook that nobody vouches for.
pub(super) fn rules(plan: &Plan) -> Vec<WebhookRule> {
    if !is_whole(plan) {
        return Vec::new();
    }
    let keys: BTreeSet<ResourceKey> = plan.rendered().map(|object| object.value.resource_key()).collect();
    let configurations = plan.rendered().map(|object| &object.value).filter(|object| {
        matches!(object.kind(), "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration")
    });
    let unknown = configurations.filter(|it| missing_authority(it, keys.iter()).is_some());
    let webhooks = unknown.filter_map(|it| it.get("webhooks")?.as_array()).flatten();
    let names = webhooks.filter(|it| !has_authority(it)).filter_map(|it| it.str_at(&["name"]));
    names
        .map(|name| WebhookRule { webhook: name.into(), answer: WebhookAnswer::UnknownAuthority {} })
        .collect()
}

/// The Certificate that a configuration names, with one of the same namespace that is there in its place.
/// Where a namespace has no Certificate at all, somebody else may make it.
pub(in crate::rehearse) fn missing_authority<'a>(
    configuration: &Value,
    there: impl Iterator<Item = &'a ResourceKey>,
) -> Option<(String, String)> {
    let named = configuration.annotation(INJECT_FROM)?;
    let (namespace, name) = named.split_once('/')?;
    let certificates = there.filter(|key| {
        key.group == "cert-manager.io" && key.kind == "Certificate" && key.namespace == namespace
    });
    let names: BTreeSet<&str> = certificates.map(|key| key.name.as_str()).collect();
    if names.contains(name) {
        return None;
    }
    let near = similar(name, names.iter().copied()).into_iter().next().or(names.first().copied())?;
    Some((named.to_owned(), format!("{namespace}/{near}")))
}

fn has_authority(webhook: &Value) -> bool {
    webhook.str_at(&["clientConfig", "caBundle"]).is_some_and(|bundle| !bundle.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn a_certificate_of_another_name_is_offered_for_one_that_is_not_there() {
        let of = |from: &str| json!({"metadata": {"annotations": {INJECT_FROM: from}}});
        let there = [ResourceKey::new("cert-manager.io", "Certificate", "guard", "guard-serving")];
        let missing = |from: &str| missing_authority(&of(from), there.iter());
        assert_eq!(missing("guard/guard-cert").unwrap().1, "guard/guard-serving");
        assert_eq!(missing("guard/guard-serving"), None);
        assert_eq!(missing("elsewhere/guard"), None, "somebody else may make it");
    }
}
