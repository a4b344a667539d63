//! What must not be pruned: what we did not apply, what something that stays cannot do without, and what
//! the whole cluster stands on (incidents B4 and E1).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tiphys_cluster::LiveCache;
use tiphys_model::{Application, Time, names};
use tiphys_sync::Comparison;
use tiphys_value::{GroupKind, ObjectExt, ResourceKey, Value};

use super::needed_objects;

/// Managers whose objects an Application may prune.
const OURS: [&str; 3] = [names::FIELD_MANAGER, names::ARGO_CD_MANAGER, "argocd-application-controller"];
/// How long a confirmation of deletions holds.
const APPROVAL: Duration = Duration::from_secs(3600);
/// Objects that every namespace has.
const EVERYWHERE: [(&str, &str); 2] = [("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")];

/// The objects among those to be pruned that must stay, each with why.
pub(crate) fn protected(
    cache: &LiveCache,
    app: &Application,
    comparison: &Comparison,
    now: jiff::Timestamp,
) -> BTreeMap<ResourceKey, String> {
    if comparison.prunable.is_empty() || is_approved(app, now) {
        return BTreeMap::new();
    }
    let mut reasons = BTreeMap::new();
    let users = users(cache, comparison);
    for key in &comparison.prunable {
        let Some(live) = cache.peek(key) else { continue };
        let reason = not_ours(&live)
            .or_else(|| foundation(&live))
            .or_else(|| users.get(key).cloned())
            .or_else(|| instances(cache, &live, comparison))
            .or_else(|| inhabitants(cache, &live, comparison));
        if let Some(reason) = reason {
            reasons.insert(key.clone(), reason);
        }
    }
    reasons
}

/// Deletions were confirmed a short while ago.
fn is_approved(app: &Application, now: jiff::Timestamp) -> bool {
    let approved = app.annotation(names::DELETION_APPROVED).and_then(Time::parse);
    approved.is_some_and(|at| tiphys_model::time::elapsed(at.timestamp(), now) <= APPROVAL)
}

/// An object that bears our mark but was written by others only: the mark was copied to it.
fn not_ours(live: &Value) -> Option<String> {
    let managers = live.at(&["metadata", "managedFields"]).and_then(Value::as_array)?;
    let names: BTreeSet<&str> = managers
        .iter()
        .filter(|entry| entry.get("subresource").is_none())
        .filter_map(|entry| entry.str_at(&["manager"]))
        .collect();
    if names.is_empty() || names.iter().any(|name| OURS.contains(name)) {
        return None;
    }
    let names: Vec<&str> = names.into_iter().collect();
    Some(format!("it was not applied by this engine but by {}", names.join(", ")))
}

/// What the network, the name service or the storage of the cluster stand on.
fn foundation(live: &Value) -> Option<String> {
    let role = match live.kind() {
        "CSIDriver" => Some("a storage driver of the cluster"),
        "Installation" if live.gvk().group == "operator.tigera.io" => Some("the pod network of the cluster"),
        "DaemonSet" if mounts_host(live, "/cni") => Some("the pod network of the cluster"),
        "DaemonSet" if mounts_host(live, "/kubelet/plugins") => Some("a storage driver of the cluster"),
        "Deployment" | "DaemonSet" | "Service" | "ConfigMap" if is_dns(live) => {
            Some("the name service of the cluster")
        }
        _ => None,
    }?;
    Some(format!("it is {role}; confirm with the annotation {}", names::DELETION_APPROVED))
}

fn mounts_host(live: &Value, part: &str) -> bool {
    let volumes = live.at(&["spec", "template", "spec", "volumes"]).and_then(Value::as_array);
    volumes
        .into_iter()
        .flatten()
        .any(|volume| volume.str_at(&["hostPath", "path"]).is_some_and(|path| path.contains(part)))
}

fn is_dns(live: &Value) -> bool {
    live.namespace() == "kube-system"
        && (matches!(live.name(), "coredns" | "kube-dns") || live.label("k8s-app") == Some("kube-dns"))
}

/// Who needs each object, of all that stays as it will be: an object of this Application counts as its
/// target says, everything else as it is. Of several the first by key, so that every look says the same.
fn users(cache: &LiveCache, comparison: &Comparison) -> BTreeMap<ResourceKey, String> {
    let mut found: BTreeMap<ResourceKey, ResourceKey> = BTreeMap::new();
    let targets: BTreeMap<(&str, &str, &str), &Arc<Value>> =
        comparison.targets.iter().map(|t| ((t.kind(), t.namespace(), t.name()), t)).collect();
    for (key, live) in cache.all() {
        let stays = !comparison.prunable.contains(&key)
            && !live.is_terminating()
            && !is_owned(&live)
            && !is_done(&live);
        if !stays {
            continue;
        }
        let target = targets.get(&(key.kind.as_str(), key.namespace.as_str(), key.name.as_str()));
        let as_it_will_be = target.map_or(&live, |target| *target);
        let mut needed = needed_objects::objects_needed_by(as_it_will_be);
        needed
            .iter_mut()
            .filter(|k| !live.namespace().is_empty() && k.namespace.is_empty() && is_namespaced(&k.kind))
            .for_each(|k| live.namespace().clone_into(&mut k.namespace));
        for needed in needed.into_iter().filter(|needed| comparison.prunable.contains(needed)) {
            let user = found.entry(needed).or_insert_with(|| key.clone());
            if key < *user {
                user.clone_from(&key);
            }
        }
    }
    let told = |user: ResourceKey| {
        let namespace =
            if user.namespace.is_empty() { String::new() } else { format!("{}/", user.namespace) };
        format!("{} {namespace}{} needs it", user.kind, user.name)
    };
    found.into_iter().map(|(needed, user)| (needed, told(user))).collect()
}

fn is_namespaced(kind: &str) -> bool {
    matches!(kind, "Secret" | "ConfigMap" | "ServiceAccount" | "PersistentVolumeClaim" | "Role" | "Service")
}

fn is_owned(live: &Value) -> bool {
    !live.owner_references().is_empty()
}

/// A Job or Pod that has ended needs nothing any more.
fn is_done(live: &Value) -> bool {
    match live.kind() {
        "Job" => {
            let conditions = live.at(&["status", "conditions"]).and_then(Value::as_array);
            conditions.into_iter().flatten().any(|condition| {
                matches!(condition.str_at(&["type"]), Some("Complete" | "Failed"))
                    && condition.str_at(&["status"]) == Some("True")
            })
        }
        "Pod" => matches!(live.str_at(&["status", "phase"]), Some("Succeeded" | "Failed")),
        _ => false,
    }
}

/// A definition whose objects stay takes them along.
fn instances(cache: &LiveCache, live: &Value, comparison: &Comparison) -> Option<String> {
    if live.kind() != "CustomResourceDefinition" {
        return None;
    }
    let kind = GroupKind::new(
        live.str_at(&["spec", "group"]).unwrap_or_default(),
        live.str_at(&["spec", "names", "kind"]).unwrap_or_default(),
    );
    let stay =
        cache.of_kind(&kind).iter().filter(|o| !comparison.prunable.contains(&o.resource_key())).count();
    (stay > 0).then(|| format!("{stay} objects of kind {} would go with it", kind.kind))
}

/// A namespace takes everything in it along.
fn inhabitants(cache: &LiveCache, live: &Value, comparison: &Comparison) -> Option<String> {
    if live.kind() != "Namespace" || !live.gvk().group.is_empty() {
        return None;
    }
    let stay = cache.inside(live.name()).filter(|(key, object)| {
        !comparison.prunable.contains(key)
            && !is_owned(object)
            && !object.is_terminating()
            && !EVERYWHERE.contains(&(key.kind.as_str(), key.name.as_str()))
            && !matches!(key.kind.as_str(), "Endpoints" | "EndpointSlice" | "Event")
    });
    let stay: BTreeSet<ResourceKey> = stay.map(|(key, _)| key).collect();
    let first = stay.first()?;
    let tail = if stay.len() > 1 { format!(" and {} more objects", stay.len() - 1) } else { String::new() };
    Some(format!("{} {}{tail} in it would go with it", first.kind, first.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn a_mark_that_an_operator_copied_protects() {
        let object =
            |manager: &str| json!({"metadata": {"managedFields": [{"manager": manager, "fieldsV1": {}}]}});
        assert_eq!(
            not_ours(&object("external-secrets")).as_deref(),
            Some("it was not applied by this engine but by external-secrets")
        );
        assert_eq!(not_ours(&object("argocd-controller")), None);
        assert_eq!(not_ours(&json!({"metadata": {}})), None);
    }

    #[test]
    fn foundations_are_known_by_what_they_do() {
        let agent = json!({"kind": "DaemonSet", "metadata": {"name": "net", "namespace": "network"},
            "spec": {"template": {"spec": {"volumes": [{"hostPath": {"path": "/etc/cni/net.d"}}]}}}});
        assert!(foundation(&agent).is_some_and(|reason| reason.contains("pod network")));
        let dns = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kube-dns", "namespace": "kube-system"}});
        assert!(foundation(&dns).is_some());
        assert!(foundation(&json!({"kind": "DaemonSet", "metadata": {"name": "logs"}})).is_none());
    }
}
