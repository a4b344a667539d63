//! Which resources are served: the built-in ones and those that CustomResourceDefinitions add.

mod builtin;
mod custom;

use std::sync::Arc;

pub(crate) use custom::{CustomVersion, has_condition};
use rpds::RedBlackTreeMapSync;
use tiphys_value::{GroupKind, GroupVersionKind, GroupVersionResource, ObjectExt};

use crate::{
    KubernetesVersion,
    kinds::Kind,
    store::{Object, ResourceId, Snapshot},
};

/// A resource in one version, as discovery describes it.
#[derive(Debug)]
pub(crate) struct Resource {
    pub id: ResourceId,
    pub gvk: GroupVersionKind,
    pub plural: String,
    pub singular: String,
    pub list_kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub verbs: Vec<String>,
    pub subresources: Vec<Subresource>,
    /// The version in which objects are stored.
    pub storage_version: String,
    /// What the server does otherwise for it.
    pub kind: &'static Kind,
    /// What the definition of a custom resource says; `None` for built-in kinds.
    pub custom: Option<CustomVersion>,
}

/// A subresource, as discovery describes it.
#[derive(Clone, Debug)]
pub(crate) struct Subresource {
    pub name: String,
    pub gvk: GroupVersionKind,
    pub verbs: Vec<String>,
}

impl Resource {
    pub(crate) fn group(&self) -> &str {
        &self.gvk.group
    }

    /// A copy of a built-in resource.
    fn built_in_copy(&self) -> Self {
        Self {
            id: self.id.clone(),
            gvk: self.gvk.clone(),
            plural: self.plural.clone(),
            singular: self.singular.clone(),
            list_kind: self.list_kind.clone(),
            short_names: self.short_names.clone(),
            categories: self.categories.clone(),
            namespaced: self.namespaced,
            verbs: self.verbs.clone(),
            subresources: self.subresources.clone(),
            storage_version: self.storage_version.clone(),
            kind: self.kind,
            custom: None,
        }
    }

    pub(crate) fn gvr(&self) -> GroupVersionResource {
        GroupVersionResource::new(&self.gvk.group, &self.gvk.version, &self.plural)
    }

    pub(crate) fn group_kind(&self) -> GroupKind {
        self.gvk.group_kind()
    }

    pub(crate) fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// How errors name an object of this resource.
    pub(crate) fn object_named<'a>(&'a self, name: &'a str) -> crate::Named<'a> {
        crate::Named { group: &self.gvk.group, resource: &self.plural, name }
    }
}

/// Everything that is served. A copy shares all that one more definition does not change: a thousand
/// definitions come one by one.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    resources: RedBlackTreeMapSync<(String, String, String), Arc<Resource>>,
    by_kind: RedBlackTreeMapSync<GroupVersionKind, Arc<Resource>>,
    /// The resources in the version in which their objects are stored.
    stored: RedBlackTreeMapSync<ResourceId, Arc<Resource>>,
    /// Groups in discovery order, each with its versions, preferred one first.
    groups: Vec<Group>,
    /// How many of the groups have built-in resources; definitions add to them in the order in which they
    /// come.
    built_in_groups: usize,
    /// What each definition added.
    definitions: RedBlackTreeMapSync<String, Added>,
}

/// A group with its versions.
pub(crate) type Group = Arc<(String, Vec<String>)>;

#[derive(Clone, Debug)]
struct Added {
    definition: Arc<Object>,
    resources: Arc<[Arc<Resource>]>,
}

impl Registry {
    /// The built-in resources and those of the definitions in a snapshot; what `before` has of definitions
    /// that did not change is taken over.
    pub(crate) fn build(snapshot: &Snapshot, version: KubernetesVersion, before: Option<&Self>) -> Self {
        match before.and_then(|before| before.followed(snapshot)) {
            Some(registry) => registry,
            None => Self::from_scratch(snapshot, version),
        }
    }

    fn from_scratch(snapshot: &Snapshot, version: KubernetesVersion) -> Self {
        let mut registry = Self {
            resources: RedBlackTreeMapSync::new_sync(),
            by_kind: RedBlackTreeMapSync::new_sync(),
            stored: RedBlackTreeMapSync::new_sync(),
            groups: Vec::new(),
            built_in_groups: 0,
            definitions: RedBlackTreeMapSync::new_sync(),
        };
        for resource in builtin::resources(version) {
            registry.add(resource);
        }
        registry.built_in_groups = registry.groups.len();
        for crd in definitions(snapshot) {
            registry.define(crd);
        }
        registry
    }

    /// What this becomes by the definitions that came, changed or went. `None` where one of them has to do
    /// with a built-in group, in which the order of coming counts.
    fn followed(&self, snapshot: &Snapshot) -> Option<Self> {
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        let mut known = self.definitions.values().peekable();
        // Both are in the order of names.
        for crd in definitions(snapshot) {
            // Nearly all are as they were: of thousands of definitions one comes, thousands of times.
            if known.next_if(|old| Arc::ptr_eq(&old.definition, crd)).is_some() {
                continue;
            }
            while let Some(old) = known.next_if(|old| old.definition.name() < crd.name()) {
                gone.push(old);
            }
            match known.next_if(|old| old.definition.name() == crd.name()) {
                Some(old) if Arc::ptr_eq(&old.definition, crd) => {}
                old => {
                    gone.extend(old);
                    come.push(crd);
                }
            }
        }
        gone.extend(known);
        let is_apart = |crd: &Object| {
            let group = crd.str_at(&["spec", "group"]).unwrap_or_default();
            !self.groups[..self.built_in_groups].iter().any(|known| known.0 == group)
        };
        let touched = gone.iter().map(|old| &*old.definition).chain(come.iter().map(|crd| &***crd));
        if !touched.into_iter().all(is_apart) {
            return None;
        }
        let mut next = self.clone();
        gone.into_iter().for_each(|old| next.forget(old));
        come.into_iter().for_each(|crd| next.define(crd));
        Some(next)
    }

    /// Adds what a definition defines.
    fn define(&mut self, crd: &Arc<Object>) {
        let resources: Arc<[_]> = custom::resources_of(crd).into_iter().map(Arc::new).collect();
        resources.iter().for_each(|resource| self.add(Arc::clone(resource)));
        let added = Added { definition: Arc::clone(crd), resources };
        self.definitions.insert_mut(crd.name().to_owned(), added);
    }

    /// Takes away what a definition defined.
    fn forget(&mut self, old: &Added) {
        self.definitions.remove_mut(old.definition.name());
        for resource in old.resources.iter() {
            let (group, version) = (&resource.gvk.group, &resource.gvk.version);
            self.resources.remove_mut(&(group.clone(), version.clone(), resource.plural.clone()));
            if self.by_kind.get(&resource.gvk).is_some_and(|known| Arc::ptr_eq(known, resource)) {
                self.by_kind.remove_mut(&resource.gvk);
            }
            self.stored.remove_mut(&resource.id);
            if self.of_version(group, version).next().is_some() {
                continue;
            }
            if let Some(at) = self.groups.iter().position(|known| known.0 == *group) {
                let known = Arc::make_mut(&mut self.groups[at]);
                known.1.retain(|name| name != version);
                if known.1.is_empty() {
                    self.groups.remove(at);
                }
            }
        }
    }

    fn add(&mut self, resource: Arc<Resource>) {
        let (group, version) = (resource.gvk.group.clone(), resource.gvk.version.clone());
        let is_built_in = resource.custom.is_none();
        match self.groups.iter().position(|known| known.0 == group) {
            Some(at) if self.groups[at].1.contains(&version) => {}
            Some(at) => {
                let versions = &mut Arc::make_mut(&mut self.groups[at]).1;
                versions.push(version.clone());
                if at >= self.built_in_groups && !is_built_in {
                    versions.sort_by_key(|version| custom::version_priority(version));
                }
            }
            None => {
                let named = Arc::new((group.clone(), vec![version.clone()]));
                let behind = if is_built_in { self.groups.len() } else { self.built_in_groups };
                let at = behind + self.groups[behind..].partition_point(|known| known.0 < group);
                self.groups.insert(at, named);
            }
        }
        self.by_kind.insert_mut(resource.gvk.clone(), Arc::clone(&resource));
        if version == resource.storage_version {
            self.stored.insert_mut(resource.id.clone(), Arc::clone(&resource));
        }
        self.resources.insert_mut((group, version, resource.plural.clone()), resource);
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    pub(crate) fn by_kind(&self, gvk: &GroupVersionKind) -> Option<&Arc<Resource>> {
        self.by_kind.get(gvk)
    }

    /// The resource in the version in which its objects are stored.
    pub(crate) fn stored(&self, id: &ResourceId) -> Option<&Arc<Resource>> {
        self.stored.get(id)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known.0 == group)
    }

    pub(crate) fn has_group_version(&self, group: &str, version: &str) -> bool {
        self.groups.iter().any(|known| known.0 == group && known.1.iter().any(|v| v == version))
    }

    /// Resources of one group in all its versions.
    pub(crate) fn of_group<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a Arc<Resource>> {
        let start = (group.to_owned(), String::new(), String::new());
        self.resources
            .range(start..)
            .take_while(move |((g, _, _), _)| g == group)
            .map(|(_, resource)| resource)
    }

    /// Resources of one version, ordered by plural name.
    pub(crate) fn of_version<'a>(
        &'a self,
        group: &str,
        version: &str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        let start = (group.to_owned(), version.to_owned(), String::new());
        let prefix = (start.0.clone(), start.1.clone());
        self.resources
            .range(start..)
            .take_while(move |((g, v, _), _)| *g == prefix.0 && *v == prefix.1)
            .map(|(_, resource)| resource)
    }
}

/// The definitions in a snapshot, in the order of their names.
fn definitions(snapshot: &Snapshot) -> impl Iterator<Item = &Arc<Object>> {
    snapshot.list(&ResourceId::new("apiextensions.k8s.io", "customresourcedefinitions"), None)
}

#[cfg(test)]
mod tests {
    use tiphys_value::{Value, json};

    use super::*;
    use crate::{ApiServer, ApiServerOptions, ops::DeleteOptions};

    /// Everything that a registry serves, to be compared.
    fn dump(registry: &Registry) -> Vec<String> {
        let one = |resource: &Arc<Resource>| format!("{:?} {:?}", resource.gvk, resource.storage_version);
        let resources = registry.resources.iter().map(|(key, resource)| format!("{key:?} {}", one(resource)));
        let kinds = registry.by_kind.iter().map(|(gvk, resource)| format!("{gvk:?} {}", one(resource)));
        let stored = registry.stored.iter().map(|(id, resource)| format!("{id:?} {}", one(resource)));
        let definitions =
            registry.definitions.iter().map(|(name, added)| format!("{name} {}", added.resources.len()));
        let groups = std::iter::once(format!("{:?}", registry.groups));
        resources.chain(kinds).chain(stored).chain(definitions).chain(groups).collect()
    }

    fn definition(kind: &str, group: &str, versions: &[&str]) -> Value {
        let plural = format!("{}s", kind.to_lowercase());
        let versions: Vec<Value> = versions
            .iter()
            .enumerate()
            .map(|(at, name)| {
                json!({"name": name, "served": true, "storage": at == 0, "schema": {"openAPIV3Schema": {"type": "object"}}})
            })
            .collect();
        json!({"metadata": {"name": format!("{plural}.{group}"), "annotations": {"api-approved.kubernetes.io": "unapproved"}},
            "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural}, "versions": versions}})
    }

    #[test]
    fn what_follows_one_definition_after_another_is_what_all_of_them_make() {
        let server = ApiServer::new(ApiServerOptions::default()).unwrap();
        let client = server.client("test");
        let gvr = GroupVersionResource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        let same = |what: &str| {
            let whole = Registry::from_scratch(&server.snapshot(), KubernetesVersion::default());
            assert_eq!(dump(&server.registry()), dump(&whole), "{what}");
        };
        let all = [
            ("B", "b.example.com", &["v1", "v2", "v1beta1"][..]),
            ("A", "a.example.com", &["v1"]),
            ("C", "b.example.com", &["v3"]),
            // In a group that has built-in kinds, too.
            ("Gadget", "networking.k8s.io", &["v9", "v1"]),
            ("D", "a.example.com", &["v1alpha1"]),
        ];
        for (kind, group, versions) in all {
            client.create(&gvr, "", definition(kind, group, versions)).unwrap();
            same(kind);
        }
        let name = |kind: &str, group: &str| format!("{}s.{group}", kind.to_lowercase());
        let mut changed = client.get(&gvr, "", &name("B", "b.example.com")).unwrap().value().clone();
        changed["spec"]["versions"].as_array_mut().unwrap().remove(1);
        client.update(&gvr, changed).unwrap();
        same("a version less");
        for (kind, group, _) in all {
            client.delete(&gvr, "", &name(kind, group), &DeleteOptions::default()).unwrap();
            same(kind);
        }
        assert!(server.registry().definitions.is_empty());
    }
}
