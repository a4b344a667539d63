//! An object with what kustomize remembers of it: earlier names, prefixes, generator behaviour.

use std::{cell::Cell, sync::Arc};

use serde_json::{Map, Value};
use smol_str::SmolStr;
use tiphys_value::Location;

use crate::{
    kustomization::model::PatchOptions,
    node::{Node, StringMap, sync_shared},
    resid::{Gvk, ResId, effective_namespace},
    schema::Schemas,
};

/// Annotations below this domain are kustomize's own and never printed.
const INTERNAL: &str = "internal.config.kubernetes.io/";

/// Annotations beside [`INTERNAL`] that are removed before printing.
const REMOVED: [&str; 3] = ["config.kubernetes.io/index", "config.kubernetes.io/path", "config.k8s.io/id"];

/// The internal annotations that are removed before printing; unknown ones stay.
const REMOVED_INTERNAL: [&str; 16] = [
    "previousKinds",
    "previousNames",
    "prefixes",
    "suffixes",
    "previousNamespaces",
    "allowNameChange",
    "allowKindChange",
    "refBy",
    "generatorBehavior",
    "needsHashSuffix",
    "path",
    "index",
    "seqindent",
    "id",
    "annotations-migration-resource-id",
    "helm-generated",
];

/// What a generated object does with one that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Behavior {
    #[default]
    Unspecified,
    Create,
    Replace,
    Merge,
}

impl Behavior {
    /// From its name; unknown names are unspecified.
    pub(crate) fn parse(name: &str) -> Self {
        match name {
            "create" => Self::Create,
            "replace" => Self::Replace,
            "merge" => Self::Merge,
            _ => Self::Unspecified,
        }
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Merge => "merge",
        }
    }
}

/// An earlier identity; group and version are always the current ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Earlier {
    pub kind: SmolStr,
    pub name: SmolStr,
    pub namespace: SmolStr,
}

/// An object in a build.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub node: Node,
    /// Identities it had, oldest first.
    pub earlier: Vec<Earlier>,
    /// How many kinds, names and namespaces kustomize would read where it keeps earlier identities: it
    /// separates them by commas, and leaves empty ones out.
    id_parts: [usize; 3],
    pub prefixes: Vec<SmolStr>,
    pub suffixes: Vec<SmolStr>,
    pub behavior: Behavior,
    pub needs_hash: bool,
    /// What it may change, if it is a patch.
    pub patch_options: PatchOptions,
    /// Whether Helm made it: the namespace transformer then leaves it alone.
    pub from_helm: bool,
    /// Names of the vars that read it.
    pub vars: Vec<String>,
    /// Where it came from.
    pub location: Location,
    /// Whether a transformer may have changed it since origins were recorded.
    pub touched: bool,
    groups: u32,
    schemas: Arc<Schemas>,
    scope: Cell<Option<bool>>,
}

impl Resource {
    /// Wraps an object; what kustomize's own annotations say is taken over.
    pub(crate) fn new(node: Node, location: Location, schemas: &Arc<Schemas>) -> Self {
        let mut resource = Self {
            node,
            earlier: Vec::new(),
            id_parts: [0; 3],
            prefixes: Vec::new(),
            suffixes: Vec::new(),
            behavior: Behavior::default(),
            needs_hash: false,
            patch_options: PatchOptions::default(),
            from_helm: false,
            vars: Vec::new(),
            location,
            touched: false,
            groups: 0,
            schemas: schemas.clone(),
            scope: Cell::new(None),
        };
        resource.take_internal_annotations();
        resource
    }

    /// Reads annotations by which a previous tool handed on kustomize's state.
    fn take_internal_annotations(&mut self) {
        let annotations = self.node.get("metadata").and_then(|metadata| metadata.get("annotations"));
        let Some(annotations) = annotations else { return };
        let list = |name: &str| -> Vec<SmolStr> {
            let key = format!("{INTERNAL}{name}");
            let value = annotations.get(&key).map(Node::value).unwrap_or_default();
            if value.is_empty() { Vec::new() } else { value.split(',').map(SmolStr::from).collect() }
        };
        let enabled = |name: &str| list(name).first().is_some_and(|value| value == "enabled");
        if !annotations.pairs().iter().any(|(key, _)| key.value().starts_with(INTERNAL)) {
            return;
        }
        let (kinds, names, namespaces) =
            (list("previousKinds"), list("previousNames"), list("previousNamespaces"));
        self.id_parts = [kinds.len(), names.len(), namespaces.len()];
        if kinds.len() == names.len() && names.len() == namespaces.len() {
            let parts = kinds.into_iter().zip(names).zip(namespaces);
            self.earlier = parts.map(|((kind, name), namespace)| Earlier { kind, name, namespace }).collect();
        }
        (self.prefixes, self.suffixes) = (list("prefixes"), list("suffixes"));
        self.needs_hash = enabled("needsHashSuffix");
        self.behavior =
            Behavior::parse(list("generatorBehavior").first().map(SmolStr::as_str).unwrap_or_default());
        self.patch_options.allow_name_change = enabled("allowNameChange");
        self.patch_options.allow_kind_change = enabled("allowKindChange");
    }

    /// Group, version and kind.
    pub(crate) fn gvk(&self) -> Gvk {
        Gvk::new(self.node.api_version(), self.node.object_kind())
    }

    /// Whether the kind is certainly cluster-scoped.
    pub(crate) fn is_cluster_scoped(&self) -> bool {
        if let Some(known) = self.scope.get() {
            return known;
        }
        let scoped = self.schemas.is_cluster_scoped(self.node.api_version(), self.node.object_kind());
        self.scope.set(Some(scoped));
        scoped
    }

    /// Forgets the scope, after `apiVersion` or `kind` may have changed.
    pub(crate) fn kind_may_have_changed(&self) {
        self.scope.set(None);
    }

    /// The namespace it counts for.
    pub(crate) fn effective_namespace(&self) -> &str {
        effective_namespace(self.node.namespace(), self.is_cluster_scoped())
    }

    /// The current id.
    pub(crate) fn id(&self) -> ResId {
        ResId {
            gvk: self.gvk(),
            name: self.node.name().into(),
            namespace: self.node.namespace().into(),
            cluster_scoped: self.is_cluster_scoped(),
        }
    }

    fn id_of(&self, earlier: &Earlier) -> ResId {
        let api_version = self.node.api_version();
        ResId {
            gvk: Gvk::new(api_version, &earlier.kind),
            name: earlier.name.clone(),
            namespace: earlier.namespace.clone(),
            cluster_scoped: self.schemas.is_cluster_scoped(api_version, &earlier.kind),
        }
    }

    /// The first id it had.
    pub(crate) fn original_id(&self) -> ResId {
        self.earlier.first().map_or_else(|| self.id(), |earlier| self.id_of(earlier))
    }

    /// Ids it had before the current one, oldest first.
    pub(crate) fn earlier_ids(&self) -> impl Iterator<Item = ResId> {
        self.earlier.iter().map(|earlier| self.id_of(earlier))
    }

    /// Whether it has or had an id.
    pub(crate) fn has_or_had(&self, id: &ResId) -> bool {
        let named = self.node.name() == id.name || self.earlier.iter().any(|earlier| earlier.name == id.name);
        named && (self.earlier_ids().any(|earlier| earlier.same(id)) || self.id().same(id))
    }

    /// Files the current id with the earlier ones.
    pub(crate) fn remember_id(&mut self) {
        let namespace = SmolStr::from(self.effective_namespace());
        let (kind, name) = (SmolStr::from(self.node.object_kind()), SmolStr::from(self.node.name()));
        let parts = |text: &str| if text.is_empty() { 0 } else { 1 + text.matches(',').count() };
        for (count, text) in self.id_parts.iter_mut().zip([&kind, &name, &namespace]) {
            *count += parts(text);
        }
        if !kind.is_empty() && !name.is_empty() {
            self.earlier.push(Earlier { kind, name, namespace });
        }
    }

    /// Whether kustomize could not read its earlier identities, and would end there.
    pub(crate) fn has_unreadable_ids(&self) -> bool {
        let [kinds, names, namespaces] = self.id_parts;
        kinds != names || names != namespaces
    }

    /// A number for nodes that one transformer shares between places of this object.
    pub(crate) fn new_group(&mut self) -> u32 {
        self.groups += 1;
        self.groups
    }

    /// Brings shared nodes in line after a change.
    pub(crate) fn sync(&mut self) {
        if self.groups > 0 {
            sync_shared(&mut self.node);
        }
    }

    /// Forgets that nodes are shared: the tree was rebuilt.
    pub(crate) fn unshare(&mut self) {
        self.groups = 0;
    }

    /// Whether kustomize keeps state in annotations of this object.
    pub(crate) fn has_state(&self) -> bool {
        !self.earlier.is_empty()
            || self.needs_hash
            || self.behavior != Behavior::Unspecified
            || self.from_helm
    }

    /// The annotations in which kustomize keeps earlier ids, prefixes and suffixes, and what generators ask
    /// for.
    pub(crate) fn state_annotations(&self) -> Vec<(String, String)> {
        let list = |part: fn(&Earlier) -> &SmolStr| self.earlier.iter().map(part).cloned().collect();
        let generated = self.needs_hash || self.behavior != Behavior::Unspecified;
        let lists: [(&str, Vec<SmolStr>); 7] = [
            (
                "generatorBehavior",
                generated.then(|| SmolStr::new_static(self.behavior.name())).into_iter().collect(),
            ),
            (
                "needsHashSuffix",
                self.needs_hash.then_some(SmolStr::new_static("enabled")).into_iter().collect(),
            ),
            ("prefixes", self.prefixes.clone()),
            ("previousKinds", list(|earlier| &earlier.kind)),
            ("previousNames", list(|earlier| &earlier.name)),
            ("previousNamespaces", list(|earlier| &earlier.namespace)),
            ("suffixes", self.suffixes.clone()),
        ];
        let kept = lists.into_iter().filter(|(_, list)| !list.is_empty());
        kept.map(|(name, list)| (format!("{INTERNAL}{name}"), list.join(","))).collect()
    }

    /// The object with the annotations in which kustomize keeps earlier ids, as its errors show it.
    pub(crate) fn json_with_state(&self) -> Value {
        let mut object = crate::node::to_json(&self.node).unwrap_or_default();
        let state = self.state_annotations();
        if state.is_empty() {
            return object;
        }
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        let annotations =
            metadata.map(|metadata| metadata.entry("annotations").or_insert_with(|| Map::new().into()));
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.extend(state.into_iter().map(|(name, value)| (name, value.into())));
        }
        object
    }

    /// Forgets what kustomize keeps in annotations: a patch removed them.
    pub(crate) fn forget_state(&mut self) {
        self.earlier.clear();
        self.id_parts = [0; 3];
        self.prefixes.clear();
        self.suffixes.clear();
        self.needs_hash = false;
        self.from_helm = false;
        self.behavior = Behavior::Unspecified;
    }

    /// Takes labels, annotations, name and namespace of an object that this one replaces or is
    /// merged into (`CopyMergeMetaDataFieldsFrom`).
    ///
    /// # Errors
    /// Metadata that is no mapping.
    pub(crate) fn take_metadata_of(&mut self, other: &Resource) -> Result<(), String> {
        for field in ["labels", "annotations"] {
            let mut merged = other.node.metadata_map(field);
            merged.extend(self.node.metadata_map(field));
            self.node.set_metadata_map(field, &merged)?;
        }
        self.node.set_name(other.node.name())?;
        self.node.set_namespace(other.node.namespace())?;
        self.earlier.clone_from(&other.earlier);
        self.id_parts = other.id_parts;
        self.prefixes.clone_from(&other.prefixes);
        self.suffixes.clone_from(&other.suffixes);
        self.behavior = other.behavior;
        self.needs_hash &= other.needs_hash;
        self.vars.clone_from(&other.vars);
        Ok(())
    }

    /// Removes kustomize's own annotations, and rewrites the others as kustomize leaves them: texts,
    /// and no field where none is left.
    ///
    /// # Errors
    /// Metadata that is no mapping.
    pub(crate) fn clean_annotations(&mut self, dropped: &[&str]) -> Result<(), String> {
        let mut annotations: StringMap = self.node.metadata_map("annotations");
        annotations.retain(|key, _| !is_removed(key) && !dropped.contains(&key.as_str()));
        self.node.set_metadata_map("annotations", &annotations)
    }
}

fn is_removed(key: &str) -> bool {
    REMOVED.contains(&key) || key.strip_prefix(INTERNAL).is_some_and(|name| REMOVED_INTERNAL.contains(&name))
}

/// Whether the longer list ends in the shorter one; an empty one only ends in an empty one.
pub(crate) fn same_ending(a: &[SmolStr], b: &[SmolStr]) -> bool {
    let (short, long) = if a.len() > b.len() { (b, a) } else { (a, b) };
    if short.is_empty() { long.is_empty() } else { long.ends_with(short) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings() {
        let list = |items: &[&str]| items.iter().map(|s| SmolStr::from(*s)).collect::<Vec<_>>();
        assert!(same_ending(&list(&["x", "a", "b"]), &list(&["a", "b"])));
        assert!(same_ending(&[], &[]));
        assert!(!same_ending(&list(&["a"]), &[]));
        assert!(!same_ending(&list(&["a", "b"]), &list(&["b", "a"])));
    }
}
