//! Which resources are served: the built-in ones and those that CustomResourceDefinitions add.

mod builtin;
mod custom;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub(crate) use custom::{CustomVersion, has_condition};
use tiphys_value::{GroupKind, GroupVersionKind, GroupVersionResource, ObjectExt};

use crate::KubernetesVersion;
use crate::store::{Object, ResourceId, Snapshot};

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
    pub fn group(&self) -> &str {
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
            custom: None,
        }
    }

    pub fn gvr(&self) -> GroupVersionResource {
        GroupVersionResource::new(&self.gvk.group, &self.gvk.version, &self.plural)
    }

    pub fn group_kind(&self) -> GroupKind {
        self.gvk.group_kind()
    }

    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// How errors name an object of this resource.
    pub fn named<'a>(&'a self, name: &'a str) -> crate::Named<'a> {
        crate::Named { group: &self.gvk.group, resource: &self.plural, name }
    }
}

/// Everything that is served. Rebuilt when a CustomResourceDefinition changes.
#[derive(Debug)]
pub(crate) struct Registry {
    resources: BTreeMap<(String, String, String), Arc<Resource>>,
    by_kind: BTreeMap<GroupVersionKind, Arc<Resource>>,
    /// Groups in discovery order, each with its versions, preferred one first.
    groups: Vec<(String, Vec<String>)>,
    ids: BTreeSet<ResourceId>,
    /// What each definition added.
    definitions: BTreeMap<String, (Arc<Object>, Vec<Arc<Resource>>)>,
}

impl Registry {
    /// The built-in resources and those of the definitions in a snapshot; what `before` has of a definition
    /// that did not change is taken over.
    pub fn build(snapshot: &Snapshot, version: KubernetesVersion, before: Option<&Self>) -> Self {
        let mut registry = Self {
            resources: BTreeMap::new(),
            by_kind: BTreeMap::new(),
            groups: Vec::new(),
            ids: BTreeSet::new(),
            definitions: BTreeMap::new(),
        };
        for resource in builtin::resources(version) {
            registry.add(resource);
        }
        let built_in_groups = registry.groups.len();
        for crd in snapshot.list(&ResourceId::new("apiextensions.k8s.io", "customresourcedefinitions"), None)
        {
            let known = before.and_then(|b| b.definitions.get(crd.name())).filter(|d| Arc::ptr_eq(&d.0, crd));
            let resources = match known {
                Some((_, resources)) => resources.clone(),
                None => custom::resources_of(crd).into_iter().map(Arc::new).collect(),
            };
            resources.iter().for_each(|resource| registry.add(Arc::clone(resource)));
            registry.definitions.insert(crd.name().to_owned(), (Arc::clone(crd), resources));
        }
        registry.groups[built_in_groups..].sort();
        for (_, versions) in &mut registry.groups[built_in_groups..] {
            versions.sort_by_key(|version| custom::version_priority(version));
        }
        registry
    }

    fn add(&mut self, resource: Arc<Resource>) {
        let (group, version) = (resource.gvk.group.clone(), resource.gvk.version.clone());
        match self.groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, versions)) if versions.contains(&version) => {}
            Some((_, versions)) => versions.push(version.clone()),
            None => self.groups.push((group.clone(), vec![version.clone()])),
        }
        self.ids.insert(resource.id.clone());
        self.by_kind.insert(resource.gvk.clone(), Arc::clone(&resource));
        self.resources.insert((group, version, resource.plural.clone()), resource);
    }

    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    pub fn by_kind(&self, gvk: &GroupVersionKind) -> Option<&Arc<Resource>> {
        self.by_kind.get(gvk)
    }

    /// The resource in the version in which its objects are stored.
    pub fn stored(&self, id: &ResourceId) -> Option<&Arc<Resource>> {
        self.all().find(|resource| resource.id == *id && resource.gvk.version == resource.storage_version)
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    pub fn groups(&self) -> &[(String, Vec<String>)] {
        &self.groups
    }

    pub fn has_group(&self, group: &str) -> bool {
        self.groups.iter().any(|(name, _)| name == group)
    }

    pub fn has_group_version(&self, group: &str, version: &str) -> bool {
        self.groups.iter().any(|(name, versions)| name == group && versions.iter().any(|v| v == version))
    }

    /// Resources of one version, ordered by plural name.
    pub fn of_version<'a>(&'a self, group: &str, version: &str) -> impl Iterator<Item = &'a Arc<Resource>> {
        let start = (group.to_owned(), version.to_owned(), String::new());
        let prefix = (start.0.clone(), start.1.clone());
        self.resources
            .range(start..)
            .take_while(move |((g, v, _), _)| *g == prefix.0 && *v == prefix.1)
            .map(|(_, resource)| resource)
    }
}
