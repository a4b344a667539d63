//! Putting objects of another cluster into the store as they are: with uid, times, status and owners.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_value::{ObjectExt, Value, json};

use crate::{
    ApiServer, Object, meta,
    ops::{At, adopt, after_commit},
    registry::{Resource, has_condition},
    rfc3339_seconds,
    store::ResourceId,
};

/// What became of imported objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// How many objects were taken over.
    pub objects: usize,
    /// The objects that were not, as `Kind namespace/name`, and why.
    pub refused: Vec<(String, String)>,
}

impl ApiServer {
    /// Puts objects into the store without admission and validation, in place of what is there under the
    /// same name: uids, times, status, owners and deletion marks stay, only `resourceVersion` is new.
    /// Definitions of custom resources go first, whatever the order; namespaces that objects name and
    /// nobody brings are made. For loading what another cluster holds, not for users' writes.
    pub fn import(&self, objects: Vec<Value>) -> Imported {
        let mut imported = Imported::default();
        let is_definition = |object: &Value| object.kind() == "CustomResourceDefinition";
        let (definitions, rest): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(is_definition);
        for object in definitions {
            if !is_servable(&object) {
                let why = "its group, plural and versions can stand in no address".to_owned();
                imported.refused.push((format!("{} {}", object.kind(), object.name()), why));
                continue;
            }
            // A definition that comes from a file and not from a cluster has not been accepted yet.
            if let Some((at, object)) = self.take(object, &mut imported)
                && !has_condition(&object, "Established")
            {
                after_commit(self, &at, &object, false);
            }
        }
        self.reload_registry();
        let mut namespaces = BTreeSet::new();
        for object in rest {
            if let Some((at, _)) = self.take(object, &mut imported) {
                namespaces.insert(at.namespace);
            }
        }
        namespaces.remove("");
        for name in namespaces {
            if self.snapshot().get(&ResourceId::new("", "namespaces"), "", &name).is_none() {
                // An active namespace has nothing about it that could be refused.
                drop(self.put(missing_namespace(&name)));
            }
        }
        imported
    }

    fn take(&self, object: Value, imported: &mut Imported) -> Option<(At, Arc<Object>)> {
        let label = match object.namespace() {
            "" => format!("{} {}", object.kind(), object.name()),
            namespace => format!("{} {namespace}/{}", object.kind(), object.name()),
        };
        match self.put(object) {
            Ok(stored) => {
                imported.objects += 1;
                Some(stored)
            }
            Err(why) => {
                imported.refused.push((label, why));
                None
            }
        }
    }

    fn put(&self, mut object: Value) -> Result<(At, Arc<Object>), String> {
        let gvk = object.gvk();
        let registry = self.registry();
        let Some(resource) = registry.by_kind(&gvk) else {
            return Err(format!("the kind {} of {} is not known here", gvk.kind, gvk.api_version()));
        };
        if object.name().is_empty() {
            return Err("it has no metadata.name".into());
        }
        if !resource.has_verb("get") {
            return Err("objects of this kind are not stored".into());
        }
        self.complete(resource, &mut object);
        let at = At {
            resource: Arc::clone(resource),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            subresource: None,
        };
        adopt(&at, &mut object).map_err(|error| error.message().to_owned())?;
        let stored = self.inner.store.import(&at.resource.id, &at.key(), object);
        Ok((at, stored))
    }

    /// Fills in what every stored object has.
    fn complete(&self, resource: &Resource, object: &mut Value) {
        match (resource.namespaced, object.namespace()) {
            (true, "") => meta::set(object, "namespace", "default"),
            (false, _) => meta::set(object, "namespace", ""),
            _ => {}
        }
        if object.uid().is_empty() {
            meta::set(object, "uid", &self.entropy().uuid());
        }
        if object.str_at(&["metadata", "creationTimestamp"]).is_none() {
            meta::set(object, "creationTimestamp", &rfc3339_seconds(self.now()));
        }
    }
}

/// Whether the objects that a definition defines can be asked for: a watch of an address that leads elsewhere
/// ends at once, again and again.
fn is_servable(definition: &Value) -> bool {
    let is_plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
    };
    let is_plain_at = |path: &[&str]| definition.str_at(path).is_some_and(is_plain);
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array);
    is_plain_at(&["spec", "group"])
        && is_plain_at(&["spec", "names", "plural"])
        && versions.into_iter().flatten().all(|it| it.str_at(&["name"]).is_some_and(is_plain))
}

fn missing_namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    })
}

#[cfg(test)]
mod tests {
    use tiphys_value::GroupVersionResource;

    use super::*;
    use crate::ApiServerOptions;

    #[test]
    fn definitions_whose_names_can_stand_in_no_address_are_left_out() {
        let server = ApiServer::new(ApiServerOptions::default()).unwrap();
        let definition = |group: &str, plural: &str, version: &str| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"}, "spec": {
                "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": "X"},
                "versions": [{"name": version, "served": true, "storage": true}]}})
        };
        for (group, plural, version) in [
            ("a b?c#d", "xs", "v1"),
            ("example.com", "x/s", "v1"),
            ("example.com", "xs", "v1\n"),
            ("", "xs", "v1"),
        ] {
            let imported = server.import(vec![definition(group, plural, version)]);
            assert_eq!((imported.objects, imported.refused.len()), (0, 1), "{group} {plural} {version}");
        }
        assert_eq!(server.import(vec![definition("example.com", "xs", "v1")]).objects, 1);
    }

    fn gvr(text: &str) -> GroupVersionResource {
        let parts: Vec<&str> = text.split('/').collect();
        GroupVersionResource::new(parts[0], parts[1], parts[2])
    }

    #[test]
    fn state_is_taken_over_as_it_is() {
        let server = ApiServer::new(ApiServerOptions::default()).unwrap();
        let imported = server.import(vec![
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "a", "uid": "u-1"}, "status": {"phase": "Odd"}}),
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"}, "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "a"}, "spec": {"clusterIP": "172.20.3.4", "clusterIPs": ["172.20.3.4"], "ports": [{"port": 80}]}}),
            json!({"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "n"}}),
        ]);
        assert_eq!(imported.objects, 3);
        assert_eq!(imported.refused.len(), 1);
        let client = server.client("test");
        let thing = client.get(&gvr("example.com/v1/things"), "a", "t").unwrap();
        assert_eq!(thing.uid(), "u-1");
        assert_eq!(thing["status"]["phase"], "Odd");
        assert_eq!(client.get(&gvr("/v1/namespaces"), "", "a").unwrap()["status"]["phase"], "Active");
        assert_eq!(client.get(&gvr("/v1/services"), "a", "s").unwrap()["spec"]["clusterIP"], "172.20.3.4");
    }
}
