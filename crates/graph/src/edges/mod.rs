//! How the objects of a repository depend on each other: typed edges, each with the field that makes it.
//! An edge never leaves the cluster of its object; see [`Object::lives_with`].

mod define;
mod index;
mod pods;
mod produce;
mod route;
mod select;
mod webhook;

use std::collections::HashMap;

use tiphys_value::{FieldPath, ResourceKey};

pub use index::{Index, pod_spec, pod_template};
pub use produce::{CreationPolicy, Product};
pub use webhook::{Webhook, plural_of, webhooks};

use crate::{Object, ObjectId, Survey};

/// What an edge says of its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// Its pods mount a ConfigMap, Secret or PersistentVolumeClaim.
    Mounts,
    /// Its pods take their environment from a ConfigMap or Secret.
    Env,
    /// Its images are pulled with a Secret.
    Pulls,
    /// Its pods run as a ServiceAccount.
    RunsAs,
    /// Its selector finds the pods of a workload.
    Selects,
    /// It scales a workload.
    Scales,
    /// It sends traffic to a Service or through a Gateway.
    Routes,
    /// The API server calls a Service because of it.
    Calls,
    /// A CustomResourceDefinition defines its kind.
    DefinedBy,
    /// It lives in a Namespace that is rendered too.
    LivesIn,
    /// It grants a role, or grants it to a ServiceAccount.
    Binds,
    /// Its controller makes an object from it.
    Produces,
    /// Its controller needs another object to do its work: a secret store, an issuer, a project.
    Needs,
}

impl EdgeKind {
    /// The word for it.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Mounts => "mounts",
            Self::Env => "takes its environment from",
            Self::Pulls => "pulls with",
            Self::RunsAs => "runs as",
            Self::Selects => "selects",
            Self::Scales => "scales",
            Self::Routes => "routes to",
            Self::Calls => "calls",
            Self::DefinedBy => "is defined by",
            Self::LivesIn => "lives in",
            Self::Binds => "binds",
            Self::Produces => "produces",
            Self::Needs => "needs",
        }
    }
}

/// The far end of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A rendered object.
    Object(ObjectId),
    /// Something that nothing in the repository renders: it may come from a controller, or be missing.
    Named(ResourceKey),
}

/// One dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The object that says so.
    pub from: ObjectId,
    /// What it depends on, or acts upon.
    pub to: Target,
    /// What the edge says.
    pub kind: EdgeKind,
    /// The field of `from` that says so.
    pub field: FieldPath,
    /// Whether it works without the far end too.
    pub optional: bool,
}

/// All edges of a survey.
pub struct Edges<'a> {
    /// Look-up of objects.
    pub index: Index<'a>,
    /// By the near end.
    all: Vec<Edge>,
    /// Where the edges of each object start in `all`.
    starts: Vec<usize>,
    backward: HashMap<ObjectId, Vec<usize>>,
    products: HashMap<(usize, ResourceKey), Vec<Product>>,
}

impl<'a> Edges<'a> {
    /// The edges of a survey.
    pub fn from_survey(survey: &'a Survey) -> Self {
        let index = Index::from_survey(survey);
        let mut all = Vec::new();
        let mut starts = Vec::with_capacity(survey.objects.len() + 1);
        let mut products: HashMap<(usize, ResourceKey), Vec<Product>> = HashMap::new();
        for object in &survey.objects {
            starts.push(all.len());
            let mut out = Out { index: &index, object, edges: &mut all };
            pods::add(&mut out);
            select::add(&mut out);
            route::add(&mut out);
            define::add(&mut out);
            webhook::add(&mut out);
            for product in produce::add(&mut out) {
                products.entry((index.scope(object.id), product.key.clone())).or_default().push(product);
            }
        }
        starts.push(all.len());
        let mut backward: HashMap<ObjectId, Vec<usize>> = HashMap::new();
        for (at, edge) in all.iter().enumerate() {
            if let Target::Object(to) = edge.to {
                backward.entry(to).or_default().push(at);
            }
        }
        Self { index, all, starts, backward, products }
    }

    /// Every edge, in the order of the objects.
    pub fn all(&self) -> &[Edge] {
        &self.all
    }

    /// The edges that an object makes.
    pub fn from(&self, object: ObjectId) -> &[Edge] {
        &self.all[self.starts[object.0]..self.starts[object.0 + 1]]
    }

    /// The edges that lead to an object.
    pub fn to(&self, object: ObjectId) -> impl Iterator<Item = &Edge> {
        self.backward.get(&object).into_iter().flatten().map(|at| &self.all[*at])
    }

    /// What controllers make of objects that live with `object`, at a key.
    pub fn products(&self, object: &Object, key: &ResourceKey) -> &[Product] {
        let scope = self.index.scope(object.id);
        self.products.get(&(scope, key.clone())).map(Vec::as_slice).unwrap_or_default()
    }

    /// Everything that controllers make.
    pub fn all_products(&self) -> impl Iterator<Item = &Product> {
        self.products.values().flatten()
    }

    /// Whatever brings the far end of an edge into being: the objects rendered at its key, and the objects
    /// from which a controller makes it.
    pub fn providers(&self, edge: &Edge) -> Vec<ObjectId> {
        let near = self.index.survey.object(edge.from);
        let key = match &edge.to {
            Target::Object(id) => &self.index.survey.object(*id).key,
            Target::Named(key) => key,
        };
        let mut found: Vec<ObjectId> = self.index.objects_at(near, key).to_vec();
        if let Target::Object(id) = edge.to
            && !found.contains(&id)
        {
            found.push(id);
        }
        found.extend(self.products(near, key).iter().map(|product| product.from));
        found
    }
}

/// Where the edges of one object go.
struct Out<'a, 'b> {
    index: &'b Index<'a>,
    object: &'a Object,
    edges: &'b mut Vec<Edge>,
}

impl Out<'_, '_> {
    /// Adds an edge to whatever has a key.
    fn add(&mut self, kind: EdgeKind, key: ResourceKey, field: FieldPath, optional: bool) {
        let first = self.index.objects_at(self.object, &key).first().copied();
        let to = first.map_or(Target::Named(key), Target::Object);
        self.edges.push(Edge { from: self.object.id, to, kind, field, optional });
    }

    fn add_to(&mut self, kind: EdgeKind, to: ObjectId, field: FieldPath) {
        self.edges.push(Edge { from: self.object.id, to: Target::Object(to), kind, field, optional: false });
    }

    /// A key in the namespace of the object.
    fn near(&self, group: &str, kind: &str, name: &str) -> ResourceKey {
        ResourceKey::new(group, kind, &self.object.key.namespace, name)
    }
}

/// The path of nested keys.
pub(crate) fn path(keys: &[&str]) -> FieldPath {
    keys.iter().fold(FieldPath::default(), |path, key| path.key(*key))
}
