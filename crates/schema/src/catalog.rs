//! What is known of a Kubernetes minor version: its kinds and their types.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use tiphys_value::{GroupVersionKind, GroupVersionResource};

use crate::{Definition, Type, TypeRef, table};

/// The table of Kubernetes 1.36, written by `cargo xtask schema`.
const TABLE_1_36: &str = include_str!("../data/v1.36.txt");

static V1_36: LazyLock<Catalog> =
    LazyLock::new(|| table::parse(TABLE_1_36).expect("the committed table is read by a test"));

/// One kind that the API serves, in one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// Plural name in URLs.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Short names, such as `deploy`.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Verbs, sorted.
    pub verbs: Vec<String>,
    /// Subresources, sorted by name.
    pub subresources: Vec<Subresource>,
    /// The type of its objects.
    pub ty: Type,
}

/// A subresource of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Subresource {
    /// Name, such as `status`.
    pub name: String,
    /// Verbs, sorted.
    pub verbs: Vec<String>,
    /// What it answers with.
    pub gvk: GroupVersionKind,
}

impl Kind {
    /// Group, version and plural name.
    pub fn gvr(&self) -> GroupVersionResource {
        GroupVersionResource {
            group: self.gvk.group.clone(),
            version: self.gvk.version.clone(),
            resource: self.plural.clone(),
        }
    }

    /// A subresource by name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }
}

/// The built-in kinds and types of one Kubernetes minor version.
#[derive(Debug)]
pub struct Catalog {
    version: String,
    kinds: Vec<Kind>,
    by_gvk: HashMap<GroupVersionKind, usize>,
    definitions: Vec<Arc<Definition>>,
    by_name: HashMap<String, u32>,
    bodies: HashMap<GroupVersionKind, Type>,
}

/// Versions that older servers have, and those of this table that have the same fields.
const FORMER: [(&str, &str, &str); 1] = [("flowcontrol.apiserver.k8s.io", "v1beta3", "v1")];

impl Catalog {
    /// The newest minor version that this program knows.
    pub fn latest() -> &'static Catalog {
        &V1_36
    }

    /// The catalog of a minor version such as `1.36` (a leading `v` and a patch level are allowed).
    pub fn for_version(version: &str) -> Option<&'static Catalog> {
        let mut parts = version.trim_start_matches('v').split('.');
        match (parts.next(), parts.next()) {
            (Some("1"), Some("36")) => Some(&V1_36),
            _ => None,
        }
    }

    /// The minor versions that [`Self::for_version`] knows, oldest first.
    pub fn versions() -> &'static [&'static str] {
        &["1.36"]
    }

    /// Puts a catalog together; definitions are referred to by their position.
    pub(crate) fn new(version: String, kinds: Vec<Kind>, definitions: Vec<Arc<Definition>>) -> Self {
        let by_gvk = kinds.iter().enumerate().map(|(at, kind)| (kind.gvk.clone(), at)).collect();
        let by_name = definitions.iter().zip(0..).map(|(def, at)| (def.name.clone(), at)).collect();
        let mut bodies: HashMap<_, _> = (definitions.iter().zip(0..))
            .filter_map(|(def, at)| Some((def.gvk.clone()?, Type::Ref(at))))
            .collect();
        bodies.extend(kinds.iter().map(|kind| (kind.gvk.clone(), kind.ty.clone())));
        Self { version, bodies, kinds, by_gvk, definitions, by_name }
    }

    /// The exact version the table was derived from, such as `v1.36.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// All served kinds, in discovery order.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// A kind by group, version and kind.
    pub fn kind(&self, gvk: &GroupVersionKind) -> Option<&Kind> {
        self.by_gvk.get(gvk).map(|at| &self.kinds[*at])
    }

    /// A kind by group, version and plural name.
    pub fn resource(&self, gvr: &GroupVersionResource) -> Option<&Kind> {
        self.kinds.iter().find(|kind| {
            kind.plural == gvr.resource && kind.gvk.group == gvr.group && kind.gvk.version == gvr.version
        })
    }

    /// The type of a kind's objects; also of kinds that only occur as request bodies, such as `Scale`,
    /// `Eviction` or `DeleteOptions`.
    pub fn type_of(&self, gvk: &GroupVersionKind) -> Option<TypeRef<'_>> {
        let present =
            || FORMER.iter().find(|(group, former, _)| gvk.group == *group && gvk.version == *former);
        let ty = self.bodies.get(gvk).or_else(|| {
            let (group, _, version) = present()?;
            self.bodies.get(&GroupVersionKind::new(*group, *version, gvk.kind.as_str()))
        });
        ty.map(|ty| TypeRef::new(self, ty))
    }

    /// All named definitions, sorted by name.
    pub fn definitions(&self) -> &[Arc<Definition>] {
        &self.definitions
    }

    /// A named definition.
    pub fn definition(&self, name: &str) -> Option<&Arc<Definition>> {
        self.by_name.get(name).map(|at| &self.definitions[*at as usize])
    }

    /// The reference to a named definition.
    pub fn reference(&self, name: &str) -> Option<Type> {
        self.by_name.get(name).copied().map(Type::Ref)
    }

    /// The definition behind [`Type::Ref`].
    pub fn definition_by_id(&self, id: u32) -> &Definition {
        &self.definitions[id as usize]
    }
}
