//! The namespace of objects, and of what in them names a namespace.

use std::collections::HashMap;

use tiphys_gocompat::strconv::quote;

use super::Transformer;
use crate::{
    context::Context,
    error::{Error, ErrorKind, Result},
    fields::{Create, Route},
    kustomization::model::FieldSpec,
    node::{Kind, Node, Tag, lookup_create},
    resid::ResId,
    resource::Resource,
    resource_map::ResourceMap,
};

/// Which subjects of role bindings get the namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SubjectMode {
    /// Those named `default`.
    #[default]
    DefaultOnly,
    /// All service accounts.
    AllServiceAccounts,
    /// None.
    None,
}

impl SubjectMode {
    /// From its name.
    ///
    /// # Errors
    /// Unknown names.
    pub(crate) fn parse(name: &str) -> Result<Self> {
        match name {
            "" | "defaultOnly" => Ok(Self::DefaultOnly),
            "allServiceAccounts" => Ok(Self::AllServiceAccounts),
            "none" => Ok(Self::None),
            other => Err(Error::transform(format!(
                "invalid value {} for setRoleBindingSubjects: must be one of \"defaultOnly\", \"none\" or \"allServiceAccounts\"",
                quote(other)
            ))),
        }
    }
}

/// Sets the namespace.
pub(crate) struct NamespaceTransformer {
    pub namespace: String,
    pub specs: Vec<FieldSpec>,
    /// Leaves namespaces that are set.
    pub unset_only: bool,
    pub subjects: SubjectMode,
}

const CREATE: Create = Create { kind: Kind::Scalar, tag: Tag::Str };

impl Transformer for NamespaceTransformer {
    fn transform(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        if self.namespace.is_empty() {
            return Ok(());
        }
        let own = own_spec();
        let routes = self.routes(&own);
        let mut ids = Ids::new(objects);
        for at in 0..objects.list.len() {
            context.check_time()?;
            let resource = &mut objects.list[at];
            let made_by_helm = resource.from_helm;
            if resource.node.is_empty() || made_by_helm {
                continue;
            }
            ids.remove(&resource.id());
            resource.remember_id();
            resource.touched = true;
            let cluster_scoped = resource.is_cluster_scoped();
            self.set_in(&mut resource.node, cluster_scoped, &routes).map_err(Error::transform)?;
            if !ids.insert(&resource.id()) {
                return Err(conflict(objects, at));
            }
        }
        Ok(())
    }
}

/// How many objects have an id.
struct Ids(HashMap<String, usize>);

impl Ids {
    fn new(objects: &ResourceMap) -> Self {
        let mut ids = Self(HashMap::with_capacity(objects.list.len()));
        objects.list.iter().for_each(|resource| {
            ids.insert(&resource.id());
        });
        ids
    }

    fn key(id: &ResId) -> String {
        format!("{}\n{}\n{}", id.gvk, id.name, id.effective_namespace())
    }

    /// Adds an id; returns whether it was not there.
    fn insert(&mut self, id: &ResId) -> bool {
        let count = self.0.entry(Self::key(id)).or_default();
        *count += 1;
        *count == 1
    }

    fn remove(&mut self, id: &ResId) {
        if let Some(count) = self.0.get_mut(&Self::key(id)) {
            *count = count.saturating_sub(1);
        }
    }
}

fn conflict(objects: &ResourceMap, at: usize) -> Error {
    let id = objects.list[at].id();
    let same: Vec<&Resource> = objects.list.iter().filter(|other| other.id().same(&id)).collect();
    let texts: Vec<String> = same.iter().map(|resource| resource.json_with_state().to_string()).collect();
    let places: Vec<String> = same.iter().map(|r| r.location.to_string()).collect();
    Error::new(
        ErrorKind::Conflict,
        format!("namespace transformation produces ID conflict: [{}]", texts.join(" ")),
    )
    .advise(format!("{} would be one object; rename one of them", places.join(" and ")))
}

/// The spec of an object's own namespace.
fn own_spec() -> FieldSpec {
    FieldSpec { path: "metadata/namespace".to_owned(), create: true, ..FieldSpec::default() }
}

impl NamespaceTransformer {
    /// Sets the namespace in one object.
    ///
    /// # Errors
    /// Specs that lead to collections.
    pub(crate) fn apply(&self, node: &mut Node, cluster_scoped: bool) -> Result<(), String> {
        let own = own_spec();
        self.set_in(node, cluster_scoped, &self.routes(&own))
    }

    /// Where the namespace goes: the object's own first.
    fn routes<'s>(&'s self, own: &'s FieldSpec) -> Vec<Route<'s>> {
        std::iter::once(own).chain(&self.specs).map(Route::new).collect()
    }

    fn set_in(&self, node: &mut Node, cluster_scoped: bool, routes: &[Route<'_>]) -> Result<(), String> {
        let Some((own, routes)) = routes.split_first() else { return Ok(()) };
        let is_binding = matches!(node.object_kind(), "RoleBinding" | "ClusterRoleBinding");
        let is_core = node.api_version() == "v1";
        if !cluster_scoped {
            let create = Create { kind: Kind::Scalar, tag: Tag::Unset };
            own.apply(node, Some(create), &mut |node| self.set(node))?;
        }
        if is_binding {
            self.set_subjects(node)?;
        }
        for route in routes {
            let spec = route.spec();
            let path = spec.path.as_str();
            let of_metadata = path == "metadata/namespace" || (!is_core && path == "metadata/name");
            let of_subjects = is_binding
                && matches!(spec.gvk.kind.as_str(), "RoleBinding" | "ClusterRoleBinding")
                && path == "subjects/namespace";
            if of_metadata || of_subjects {
                continue;
            }
            let mut is_of_kind = false;
            let mut set = |node: &mut Node| {
                is_of_kind = node.kind() != Kind::Scalar;
                self.set(node)
            };
            route.apply(node, Some(CREATE), &mut set).map_err(|error| {
                let prefix = if is_of_kind {
                    "namespace field specs must target scalar nodes"
                } else {
                    "namespace transformation failed"
                };
                format!("{prefix}: {error}")
            })?;
        }
        Ok(())
    }

    fn set(&self, node: &mut Node) -> Result<(), String> {
        if self.unset_only && !node.is_null() && node.kind() == Kind::Scalar && !node.value().is_empty() {
            return Ok(());
        }
        node.set_scalar(Node::tagged(self.namespace.as_str(), Tag::Str))
    }

    fn set_subjects(&self, node: &mut Node) -> Result<(), String> {
        let (field, wanted) = match self.subjects {
            SubjectMode::None => return Ok(()),
            SubjectMode::DefaultOnly => ("name", "default"),
            SubjectMode::AllServiceAccounts => ("kind", "ServiceAccount"),
        };
        let Some(subjects) = node.get_mut("subjects").filter(|subjects| !subjects.is_null()) else {
            return Ok(());
        };
        subjects
            .expect(Kind::Seq)
            .map_err(|error| format!("setting namespace on (cluster)role binding subjects: {error}"))?;
        for subject in subjects.items_mut().into_iter().flatten() {
            if let Some(value) = subject.get(field).filter(|value| !value.is_null()) {
                value.expect(Kind::Scalar).map_err(|error| {
                    format!("setting namespace on (cluster)role binding subjects: looking up {field} on (cluster)role binding subject: {error}")
                })?;
            }
            if subject.text_of(field) != wanted {
                continue;
            }
            if let Some(namespace) = lookup_create(subject, &["namespace"], Kind::Scalar)? {
                self.set(namespace)?;
            }
        }
        Ok(())
    }
}
