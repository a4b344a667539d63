//! The life of a definition of custom resources: accepted, served, announced, and gone once its objects are.

use tiphys_value::{ObjectExt, Value, json};

use super::{At, commit::commit};
use crate::{
    ApiServer, Object, meta, rfc3339_seconds,
    store::{Expect, ResourceId},
};

const CRDS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");
/// Marks the API services that the server itself keeps.
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// Holds a definition until its objects are gone.
const CRD_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What a definition that was written changes: which names are accepted, what is served and announced.
pub(super) fn after_commit(server: &ApiServer, at: &At, object: &Object, removed: bool) {
    if !at.is(CRDS.0, CRDS.1) {
        return;
    }
    if !removed {
        if object.is_terminating() {
            clean_up_instances(server, at, object);
            return;
        }
        if !crate::registry::has_condition(object, "Established")
            || accepted_names(object) != object.at(&["status", "acceptedNames"]).cloned()
        {
            establish(server, at, object);
            return;
        }
    }
    server.reload_registry();
    announce_group(server, object.str_at(&["spec", "group"]).unwrap_or_default());
    if let (Some(group), Some(plural)) =
        (object.str_at(&["spec", "group"]), object.str_at(&["spec", "names", "plural"]))
    {
        server.inner.store.wake(&ResourceId::new(group, plural));
    }
}

/// Keeps one `APIService` for every served version of a group of custom resources, as the autoregistration
/// of the aggregator does.
fn announce_group(server: &ApiServer, group: &str) {
    let registry = server.registry();
    let Some(resource) = registry.find("apiregistration.k8s.io", "v1", "apiservices") else { return };
    let versions = registry.groups().iter().find(|known| known.0 == group).map(|known| known.1.clone());
    let versions = versions.unwrap_or_default();
    let client = server.client("kube-apiserver");
    let gvr = resource.gvr();
    for version in &versions {
        let name = format!("{version}.{group}");
        if server.snapshot().get(&resource.id, "", &name).is_none() {
            // Somebody else's object of that name stays.
            drop(client.create(&gvr, "", json!({
                "metadata": {"name": name, "labels": {AUTOMANAGED: "true"}},
                "spec": {"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 100},
            })));
        }
    }
    let snapshot = server.snapshot();
    let gone = snapshot.list(&resource.id, None).filter(|service| {
        service.label(AUTOMANAGED) == Some("true")
            && service.str_at(&["spec", "group"]) == Some(group)
            && !versions.iter().any(|version| service.str_at(&["spec", "version"]) == Some(version))
    });
    for service in gone {
        drop(client.delete(&gvr, "", service.name(), &super::DeleteOptions::default()));
    }
}

fn accepted_names(crd: &Value) -> Option<Value> {
    let mut names = crd.at(&["spec", "names"])?.clone();
    let kind = names.str_at(&["kind"]).unwrap_or_default().to_owned();
    if names.str_at(&["listKind"]).unwrap_or_default().is_empty() {
        names["listKind"] = format!("{kind}List").into();
    }
    if names.str_at(&["singular"]).unwrap_or_default().is_empty() {
        names["singular"] = kind.to_lowercase().into();
    }
    Some(names)
}

/// Which other definition in the group already uses one of the names.
fn name_conflict(server: &ApiServer, crd: &Value) -> Option<String> {
    let names = accepted_names(crd)?;
    let registry = server.registry();
    let (group, own) = (crd.str_at(&["spec", "group"]).unwrap_or_default(), crd.name());
    let others = registry.of_group(group).filter(|r| r.custom.as_ref().is_none_or(|c| c.crd != own));
    for other in others {
        if names["plural"] == other.plural.as_str() {
            return Some(format!("\"{}\" is already in use", other.plural));
        }
        if names["kind"] == other.gvk.kind.as_str() {
            return Some(format!("\"{}\" is already in use", other.gvk.kind));
        }
    }
    None
}

/// Accepts the names of a definition and starts to serve it, as the controllers in the API server do.
fn establish(server: &ApiServer, at: &At, crd: &Object) {
    let conflict = name_conflict(server, crd);
    let now = rfc3339_seconds(server.now());
    let condition = |kind: &str, status: &str, reason: &str, message: &str| json!({"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message});
    let mut next = crd.value().clone();
    let conditions = match &conflict {
        None => {
            next["status"]["acceptedNames"] = accepted_names(crd).unwrap_or_default();
            vec![
                condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
                condition(
                    "Established",
                    "True",
                    "InitialNamesAccepted",
                    "the initial names have been accepted",
                ),
            ]
        }
        Some(message) => vec![
            condition("NamesAccepted", "False", "PluralConflict", message),
            condition("Established", "False", "NotAccepted", "not all names are accepted"),
        ],
    };
    let known = next.at(&["status", "conditions"]).is_some_and(|now| {
        conditions.iter().all(|c| {
            now.as_array()
                .is_some_and(|l| l.iter().any(|n| n["type"] == c["type"] && n["status"] == c["status"]))
        })
    });
    if conflict.is_some() && known {
        return;
    }
    next["status"]["conditions"] = conditions.into();
    super::managed_fields::record_status(server, at, "kube-apiserver", crd, &mut next);
    // Losing this race means that another write of the definition is about to do the same.
    let _ = commit(server, at, Expect::Revision(crd.revision()), next, false);
}

/// Deletes the objects of a definition that is going, and lets it go once none is left.
fn clean_up_instances(server: &ApiServer, at: &At, crd: &Object) {
    server.reload_registry();
    let (Some(group), Some(plural)) =
        (crd.str_at(&["spec", "group"]), crd.str_at(&["spec", "names", "plural"]))
    else {
        return;
    };
    let id = ResourceId::new(group, plural);
    let registry = server.registry();
    if let Some(resource) = registry.stored(&id) {
        let mut call = super::Call::new(crate::auth::User::admin(), "apiserver");
        let all = server.snapshot().list(&id, None).cloned().collect::<Vec<_>>();
        for object in all {
            let at = At {
                resource: resource.clone(),
                namespace: object.namespace().to_owned(),
                name: object.name().to_owned(),
                subresource: None,
            };
            // An object that is already going needs nothing; one that cannot go keeps the definition.
            let _ = super::delete(server, &mut call, &at, &super::DeleteOptions::default());
        }
    }
    let finalizers = meta::finalizers(crd);
    if server.snapshot().count(&id) > 0 || !finalizers.contains(&CRD_CLEANUP) {
        return;
    }
    let rest: Vec<&str> = finalizers.into_iter().filter(|f| *f != CRD_CLEANUP).collect();
    let mut next = crd.value().clone();
    meta::set_finalizers(&mut next, &rest);
    let gone = at.may_go(&next);
    let _ = commit(server, at, Expect::Revision(crd.revision()), next, gone);
}

/// Marks a definition that is to be deleted: it stays until its objects are gone.
pub(super) fn mark_definition(server: &ApiServer, at: &At, crd: &mut Value) {
    if !at.is(CRDS.0, CRDS.1) || meta::finalizers(crd).contains(&CRD_CLEANUP) {
        return;
    }
    let mut finalizers: Vec<String> = meta::finalizers(crd).into_iter().map(str::to_owned).collect();
    finalizers.push(CRD_CLEANUP.to_owned());
    meta::set_finalizers(crd, &finalizers.iter().map(String::as_str).collect::<Vec<_>>());
    let condition = json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        "lastTransitionTime": rfc3339_seconds(server.now()),
    });
    if let Some(conditions) = crd.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        conditions.push(condition);
    }
}

/// Called when a custom object has gone: its definition may have waited for it.
pub(super) fn after_removal(server: &ApiServer, at: &At) {
    let Some(custom) = at.resource.custom.as_ref().filter(|c| c.terminating) else { return };
    if server.snapshot().count(&at.resource.id) > 0 {
        return;
    }
    let registry = server.registry();
    let Some(resource) = registry.find(CRDS.0, "v1", CRDS.1) else { return };
    let crd_at = At {
        resource: resource.clone(),
        namespace: String::new(),
        name: custom.crd.clone(),
        subresource: None,
    };
    if let Some(crd) = server.snapshot().get(&resource.id, "", &custom.crd).cloned() {
        clean_up_instances(server, &crd_at, &crd);
    }
}
