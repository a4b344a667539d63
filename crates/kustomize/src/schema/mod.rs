//! What strategic merges need to know of kinds: which lists are merged by which keys, and which
//! kinds are cluster-scoped.

mod openapi;
mod table;

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

pub use openapi::SchemaError;

/// The number of a type in a [`Schemas`].
type TypeId = u32;

/// A field of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    /// The keys by which a list is merged; empty for a list of scalars merged as a set. `None` where
    /// the list is replaced, and for what is no list.
    merge_keys: Option<Vec<String>>,
    /// The type of the value, or of the items of a list, where that matters.
    of: Option<TypeId>,
}

/// The fields of an object type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Type {
    fields: HashMap<String, Field>,
    /// What values of undeclared keys are.
    additional: Option<Field>,
}

/// A set of schemas: the built-in one, or one given by `openapi.path`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schemas {
    types: Vec<Type>,
    /// Types by the name of their definition.
    names: HashMap<String, TypeId>,
    kinds: HashMap<(String, String), TypeId>,
    namespaced: HashMap<(String, String), bool>,
}

/// The built-in schemas: Kubernetes 1.21's, as kustomize embeds them (they decide merges only).
static BUILT_IN: LazyLock<Arc<Schemas>> =
    LazyLock::new(|| Arc::new(table::read(include_str!("../../data/merge_keys.txt"))));

/// The schema of a value during a merge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schema<'a> {
    set: &'a Schemas,
    /// The object type, for mappings.
    of: Option<TypeId>,
    /// The declaration, for lists.
    field: Option<&'a Field>,
}

impl Schemas {
    /// The schemas that kustomize has built in.
    pub fn built_in() -> Arc<Self> {
        BUILT_IN.clone()
    }

    /// Reads an OpenAPI document (`definitions`, `paths`), JSON or YAML already parsed.
    ///
    /// # Errors
    /// What is no such document.
    pub fn from_openapi(document: &serde_json::Value) -> Result<Self, SchemaError> {
        openapi::read(document, Self::default())
    }

    /// As [`Self::from_openapi`], with the definitions of `self` known beside the document's own.
    ///
    /// # Errors
    /// As [`Self::from_openapi`].
    pub(crate) fn extend_from(&self, document: &serde_json::Value) -> Result<Self, SchemaError> {
        openapi::read(document, self.clone())
    }

    /// The compact text of what merges need; read back by this crate. See `cargo xtask generate`.
    pub fn to_table(&self) -> String {
        table::write(self)
    }

    /// The schema of an object by its `apiVersion` and `kind`.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<Schema<'_>> {
        let of = *self.kinds.get(&(api_version.to_owned(), kind.to_owned()))?;
        Some(Schema { set: self, of: Some(of), field: None })
    }

    /// Whether a kind is certainly cluster-scoped.
    pub(crate) fn is_cluster_scoped(&self, api_version: &str, kind: &str) -> bool {
        if let Some(namespaced) = table::scope(api_version, kind) {
            return !namespaced;
        }
        if self.namespaced.is_empty() {
            return false;
        }
        self.namespaced.get(&(api_version.to_owned(), kind.to_owned())).is_some_and(|namespaced| !namespaced)
    }
}

impl<'a> Schema<'a> {
    /// The schema of a field.
    pub(crate) fn field(&self, name: &str) -> Option<Schema<'a>> {
        let declared = self.set.types.get(self.of? as usize)?;
        let field = declared.fields.get(name).or(declared.additional.as_ref())?;
        Some(Schema { set: self.set, of: field.of, field: Some(field) })
    }

    /// The keys by which a list is merged, if it is.
    pub(crate) fn merge_keys(&self) -> Option<&'a [String]> {
        self.field?.merge_keys.as_deref()
    }

    /// The schema of the items of a list.
    pub(crate) fn items(&self) -> Option<Schema<'a>> {
        self.of.map(|of| Schema { set: self.set, of: Some(of), field: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_lists_of_a_deployment() {
        let schemas = Schemas::built_in();
        let deployment = schemas.of_kind("apps/v1", "Deployment").unwrap();
        let pod = deployment.field("spec").unwrap().field("template").unwrap().field("spec").unwrap();
        let containers = pod.field("containers").unwrap();
        assert_eq!(containers.merge_keys().unwrap(), ["name"]);
        let ports = containers.items().unwrap().field("ports").unwrap();
        assert_eq!(ports.merge_keys().unwrap(), ["containerPort", "protocol"]);
        assert!(containers.items().unwrap().field("args").is_none_or(|args| args.merge_keys().is_none()));
    }

    #[test]
    fn knows_scopes() {
        let schemas = Schemas::built_in();
        assert!(schemas.is_cluster_scoped("rbac.authorization.k8s.io/v1", "ClusterRole"));
        assert!(!schemas.is_cluster_scoped("v1", "ConfigMap"));
        assert!(!schemas.is_cluster_scoped("example.com/v1", "Thing"));
    }
}
