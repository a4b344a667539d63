//! What the service accounts of pods may do.

use serde_json::Value;
use tiphys_value::ObjectExt;

use crate::{endpoint::Pod, object::Object};

/// Notes which pods' service accounts are bound to rights.
pub(crate) fn note<'a>(pods: &mut [Pod], objects: impl Iterator<Item = Object<'a>> + Clone) {
    let bindings = objects.clone().filter(|object| {
        object.key.group == "rbac.authorization.k8s.io" && object.key.kind.ends_with("Binding")
    });
    for binding in bindings {
        let Some(rights) = Rights::from_binding(binding, objects.clone()) else { continue };
        for subject in binding.value.get("subjects").and_then(Value::as_array).into_iter().flatten() {
            let name = subject.str_at(&["name"]).unwrap_or_default();
            let namespace = subject.str_at(&["namespace"]).unwrap_or(&binding.key.namespace);
            let is_account = subject.str_at(&["kind"]) == Some("ServiceAccount");
            for pod in pods
                .iter_mut()
                .filter(|pod| is_account && pod.service_account == name && pod.namespace == namespace)
            {
                pod.rights = Some(binding.id);
                pod.has_active_rights |= rights == Rights::Active;
            }
        }
    }
}

/// What a binding's role lets its subjects do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rights {
    /// They may list objects, and no more.
    Read,
    /// They may also watch objects, or change them.
    Active,
}

impl Rights {
    /// `None` where its subjects may not even list: a right to `use` a security policy or to read one named
    /// object does not mean that the program calls the API.
    fn from_binding<'a>(binding: Object<'_>, mut objects: impl Iterator<Item = Object<'a>>) -> Option<Self> {
        let reference = |key: &str| binding.value.str_at(&["roleRef", key]).unwrap_or_default();
        let role = objects.find(|object| {
            object.key.group == "rbac.authorization.k8s.io"
                && object.key.kind == reference("kind")
                && object.key.name == reference("name")
        });
        let Some(role) = role else {
            let is_built_in = matches!(reference("name"), "cluster-admin" | "admin" | "edit" | "view");
            return is_built_in.then_some(Self::Active);
        };
        let rules = role.value.get("rules").and_then(Value::as_array).into_iter().flatten();
        let lists = rules.filter_map(|rule| rule.get("verbs").and_then(Value::as_array));
        let verbs: Vec<&str> = lists.flatten().filter_map(Value::as_str).collect();
        let may = |words: &[&str]| words.iter().any(|word| verbs.contains(word));
        let is_active = may(&["watch", "create", "update", "patch", "delete", "deletecollection", "*"]);
        may(&["list", "watch", "*"]).then_some(if is_active { Self::Active } else { Self::Read })
    }
}
