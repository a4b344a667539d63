//! Protection of storage that is in use: claims stay until no pod uses them, volumes until no claim does
//! (the API server's StorageObjectInUseProtection with the controllers behind it).

use tiphys_value::ObjectExt;

use super::{At, commit::commit, items};
use crate::{
    ApiServer, Object, Snapshot, kinds, meta,
    store::{Expect, ResourceId},
};

/// Lets go of what is to be deleted and in use no more, after a write that may have ended its use.
pub(super) fn after_write(server: &ApiServer, at: &At) {
    let claims = ResourceId::new("", "persistentvolumeclaims");
    let volumes = ResourceId::new("", "persistentvolumes");
    let classes = ResourceId::new("storage.k8s.io", "volumeattributesclasses");
    let snapshot = server.snapshot();
    let (resource, namespace) = match () {
        () if at.is("", "pods") || at.is("", "persistentvolumeclaims") => {
            (&claims, Some(at.namespace.as_str()))
        }
        () if at.is("", "persistentvolumes") => (&volumes, None),
        () if at.is("storage.k8s.io", "volumeattributesclasses") => (&classes, None),
        () => return,
    };
    let kind = kinds::built_in(resource.group(), resource.resource());
    let Some(finalizer) = kind.protection else { return };
    // Whether it is used is looked up last: each answer looks at all pods.
    let is_leaving =
        |object: &Object| object.is_terminating() && meta::finalizers(object).contains(&finalizer);
    for object in snapshot.list(resource, namespace).filter(|object| is_leaving(object)) {
        let is_used = match *resource == classes {
            true => has_volumes(&snapshot, object),
            false => is_used(&snapshot, resource == &claims, object),
        };
        if !is_used {
            release(server, resource, object, finalizer);
        }
    }
}

/// Whether a claim or volume is of a class of volume attributes.
fn has_volumes(snapshot: &Snapshot, class: &Object) -> bool {
    ["persistentvolumes", "persistentvolumeclaims"].into_iter().any(|plural| {
        let mut all = snapshot.list(&ResourceId::new("", plural), None);
        all.any(|one| one.str_at(&["spec", "volumeAttributesClassName"]) == Some(class.name()))
    })
}

fn is_used(snapshot: &Snapshot, is_claim: bool, object: &Object) -> bool {
    if !is_claim {
        return object.str_at(&["status", "phase"]) == Some("Bound");
    }
    let mut pods = snapshot.list(&ResourceId::new("", "pods"), Some(object.namespace()));
    pods.any(|pod| {
        let over = matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"));
        !over
            && items(pod, "/spec/volumes").any(|volume| {
                let own = volume["ephemeral"]
                    .is_object()
                    .then(|| format!("{}-{}", pod.name(), volume.str_at(&["name"]).unwrap_or_default()));
                volume.str_at(&["persistentVolumeClaim", "claimName"]) == Some(object.name())
                    || own.as_deref() == Some(object.name())
            })
    })
}

fn release(server: &ApiServer, resource: &ResourceId, object: &Object, finalizer: &str) {
    let registry = server.registry();
    let Some(found) = registry.stored(resource) else { return };
    let at = At {
        resource: found.clone(),
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        subresource: None,
    };
    let mut next = object.value().clone();
    let rest: Vec<&str> = meta::finalizers(object).into_iter().filter(|name| *name != finalizer).collect();
    meta::set_finalizers(&mut next, &rest);
    let gone = at.may_go(&next);
    // Whoever writes it at the same time will look again.
    drop(commit(server, &at, Expect::Revision(object.revision()), next, gone));
}

#[cfg(test)]
mod tests {
    use tiphys_value::{GroupVersionResource, json};

    use super::*;
    use crate::{ApiServerOptions, DeleteOptions};

    #[test]
    fn a_claim_stays_while_a_pod_uses_it() {
        let server = ApiServer::new(ApiServerOptions::default()).unwrap();
        let client = server.client("test");
        let of = |plural: &str| GroupVersionResource::new("", "v1", plural);
        client.create(&of("serviceaccounts"), "default", json!({"metadata": {"name": "default"}})).unwrap();
        let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        client.create(&of("persistentvolumeclaims"), "default", claim).unwrap();
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}});
        client.create(&of("pods"), "default", pod).unwrap();
        client.delete(&of("persistentvolumeclaims"), "default", "c", &DeleteOptions::default()).unwrap();
        assert!(client.get(&of("persistentvolumeclaims"), "default", "c").unwrap().is_terminating());
        client.delete(&of("pods"), "default", "p", &DeleteOptions::default()).unwrap();
        assert!(client.get(&of("persistentvolumeclaims"), "default", "c").unwrap_err().is_not_found());
    }
}
