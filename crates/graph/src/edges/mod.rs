//! How the objects of a repository depend on each other: typed edges, each with the field that makes it.
//! An edge never leaves the cluster of its object; see [`Object::lives_with`].

mod define;
mod edge;
mod index;
mod out;
mod path;
mod pods;
mod produce;
mod route;
mod select;
mod webhook;

use std::collections::HashMap;

use tiphys_value::ResourceKey;

pub use edge::{Edge, EdgeKind, Target};
pub use index::{Index, pod_spec, pod_template};
pub use produce::{CreationPolicy, Product};
pub use webhook::{Webhook, plural_of, webhooks};

use crate::{Object, ObjectId, Survey};
use out::Out;
pub(crate) use path::path;

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
