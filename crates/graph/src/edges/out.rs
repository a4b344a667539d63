//! Where the edges of one object are put.

use tiphys_value::{FieldPath, ResourceKey};

use super::{
    edge::{Edge, EdgeKind, Target},
    index::Index,
};
use crate::{Object, ObjectId};

/// Where the edges of one object go.
pub(super) struct Out<'a, 'b> {
    pub index: &'b Index<'a>,
    pub object: &'a Object,
    pub edges: &'b mut Vec<Edge>,
}

impl Out<'_, '_> {
    /// Adds an edge to whatever has a key.
    pub(super) fn add(&mut self, kind: EdgeKind, key: ResourceKey, field: FieldPath, optional: bool) {
        let first = self.index.objects_at(self.object, &key).first().copied();
        let to = first.map_or(Target::Named(key), Target::Object);
        self.edges.push(Edge { from: self.object.id, to, kind, field, optional });
    }

    /// Adds an edge to an object.
    pub(super) fn add_to(&mut self, kind: EdgeKind, to: ObjectId, field: FieldPath) {
        self.edges.push(Edge { from: self.object.id, to: Target::Object(to), kind, field, optional: false });
    }

    /// A key in the namespace of the object.
    pub(super) fn near(&self, group: &str, kind: &str, name: &str) -> ResourceKey {
        ResourceKey::new(group, kind, &self.object.key.namespace, name)
    }
}
