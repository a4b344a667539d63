//! Who looks after an object that an Application is about to apply for the first time (incident B1).

use std::collections::{BTreeMap, BTreeSet};

use tiphys_cluster::LiveCache;
use tiphys_model::{Application, Condition, ConditionType, ObjectMeta, Tracking, names};
use tiphys_sync::{Claim, Comparison};
use tiphys_value::{GroupKind, ObjectExt, ResourceKey, Value};

/// Field managers of tools that come back and set their fields again, and what they are called.
const ACTIVE: [(&str, &str); 9] = [
    ("ansible", "Ansible"),
    ("OpenAPI-Generator", "a client in Python such as Ansible's"),
    ("Terraform", "Terraform"),
    ("terraform", "Terraform"),
    ("HashiCorp", "Terraform"),
    ("pulumi", "Pulumi"),
    ("kustomize-controller", "Flux"),
    ("helm-controller", "Flux"),
    ("kapp-server", "kapp"),
];

/// Finds out what other owners of the targets' live objects mean for the first apply. Objects that bear the
/// Application's own mark are its own.
pub(crate) fn find_claims(
    cache: &LiveCache,
    app: &Application,
    tracking: &Tracking,
    comparison: &mut Comparison,
    key_of: &dyn Fn(&Value) -> ResourceKey,
) {
    let mut claims = BTreeMap::new();
    for target in &comparison.targets {
        if target.name().is_empty() || tiphys_model::hook::is_hook(target) {
            continue;
        }
        let key = key_of(target);
        let Some(live) = cache.peek(&key) else { continue };
        let policy = target.annotation(names::OWNERSHIP).or_else(|| app.annotation(names::OWNERSHIP));
        if matches!(policy, Some("share" | "adopt")) {
            comparison.shared.remove(&key);
        }
        if policy == Some("share") {
            claims.insert(key, Claim::Shared);
            continue;
        }
        if policy == Some("adopt") && !was_applied(&live) {
            let managers = tools(&live);
            if !managers.is_empty() {
                claims.insert(key, Claim::Adopted(managers));
            }
            continue;
        }
        // Another Application's mark is told of as a shared resource.
        let is_tracked = tracking.owner(&live).is_some();
        if policy == Some("adopt") || is_tracked {
            continue;
        }
        let owner =
            owner(cache, &live).or_else(|| (policy == Some("refuse")).then(|| last_writer(&live)).flatten());
        if let Some(owner) = owner {
            let ObjectMeta { namespace, name, .. } = &app.metadata;
            let message =
                format!("{}/{} of application {namespace}/{name} belongs to {owner}", key.kind, key.name);
            comparison.conditions.push(Condition::new(ConditionType::SharedResourceWarning, message));
            claims.insert(key, Claim::Refused(owner));
        }
    }
    comparison.claims = claims;
}

/// The owner that will set its fields again, if there is one.
fn owner(cache: &LiveCache, live: &Value) -> Option<String> {
    controller(live)
        .or_else(|| helm_release(cache, live))
        .or_else(|| flux(live))
        .or_else(|| active_manager(live))
}

fn controller(live: &Value) -> Option<String> {
    let owner = live.controller_reference()?;
    Some(format!("{} {}", owner.str_at(&["kind"])?, owner.str_at(&["name"])?))
}

/// A Helm release owns its objects as long as its record is there.
fn helm_release(cache: &LiveCache, live: &Value) -> Option<String> {
    let (namespace, name) = release_of(live)?;
    let is_recorded = !records(cache, namespace, name).is_empty();
    is_recorded.then(|| format!("Helm release {namespace}/{name}"))
}

/// Namespace and name of the Helm release that an object says it is of.
fn release_of(live: &Value) -> Option<(&str, &str)> {
    let name = live.annotation("meta.helm.sh/release-name")?;
    let namespace = live.annotation("meta.helm.sh/release-namespace").unwrap_or_else(|| live.namespace());
    Some((namespace, name))
}

/// The Secrets in which Helm keeps a release.
fn records(cache: &LiveCache, namespace: &str, name: &str) -> Vec<ResourceKey> {
    let prefix = format!("sh.helm.release.v1.{name}.");
    let secrets = cache.of_kind(&GroupKind::new("", "Secret"));
    let of_release = secrets.iter().filter(|s| s.namespace() == namespace && s.name().starts_with(&prefix));
    of_release.map(|secret| secret.resource_key()).collect()
}

/// The objects beside the claimed ones that a claim hangs on: with the last record of a release it is gone.
pub(crate) fn grounds(cache: &LiveCache, claims: &BTreeMap<ResourceKey, Claim>) -> BTreeSet<ResourceKey> {
    let refused = claims.iter().filter(|(_, claim)| matches!(claim, Claim::Refused(_)));
    let live: Vec<_> = refused.filter_map(|(key, _)| cache.peek(key)).collect();
    let releases: BTreeSet<_> = live.iter().filter_map(|live| release_of(live)).collect();
    releases.into_iter().flat_map(|(namespace, name)| records(cache, namespace, name)).collect()
}

fn flux(live: &Value) -> Option<String> {
    let labels = [
        ("kustomize.toolkit.fluxcd.io/name", "Flux Kustomization"),
        ("helm.toolkit.fluxcd.io/name", "Flux HelmRelease"),
    ];
    labels.iter().find_map(|(label, what)| Some(format!("{what} {}", live.label(label)?)))
}

fn managers(live: &Value) -> Vec<&str> {
    let list = live.at(&["metadata", "managedFields"]).and_then(Value::as_array).into_iter().flatten();
    let own = list.filter(|entry| entry.get("subresource").is_none());
    own.filter_map(|entry| entry.str_at(&["manager"])).collect()
}

/// Whether an apply of ours has met the object.
fn was_applied(live: &Value) -> bool {
    let list = live.at(&["metadata", "managedFields"]).and_then(Value::as_array).into_iter().flatten();
    let mut ours = list.filter(|entry| entry.str_at(&["manager"]) == Some(names::FIELD_MANAGER));
    ours.any(|entry| entry.str_at(&["operation"]) == Some("Apply"))
}

/// The field managers of an object that are other tools' than kubectl, with Helm, which owns nothing once its
/// release is gone.
fn tools(live: &Value) -> Vec<String> {
    let is_tool =
        |manager: &&str| *manager == "helm" || ACTIVE.iter().any(|(known, _)| manager.starts_with(known));
    managers(live).into_iter().filter(is_tool).map(str::to_owned).collect()
}

fn active_manager(live: &Value) -> Option<String> {
    managers(live).into_iter().find_map(|manager| {
        let (_, tool) = ACTIVE.iter().find(|(known, _)| manager.starts_with(known))?;
        Some(format!("{tool} (field manager {manager})"))
    })
}

fn last_writer(live: &Value) -> Option<String> {
    let manager = managers(live).into_iter().next_back()?;
    (manager != names::FIELD_MANAGER).then(|| format!("field manager {manager}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn active_owners_are_told_from_leftovers() {
        let by = |manager: &str| json!({"metadata": {"managedFields": [{"manager": manager}]}});
        assert!(active_manager(&by("ansible")).is_some_and(|owner| owner.contains("Ansible")));
        assert!(active_manager(&by("pulumi-kubernetes-1a2b")).is_some());
        assert_eq!(active_manager(&by("kubectl-client-side-apply")), None);
        let flux_made = json!({"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}});
        assert_eq!(flux(&flux_made).as_deref(), Some("Flux Kustomization apps"));
        let owned = json!({"metadata": {"ownerReferences": [{"kind": "Certificate", "name": "c", "controller": true}]}});
        assert_eq!(controller(&owned).as_deref(), Some("Certificate c"));
    }
}
