//! What of Flux is followed, from the entry of a cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_model::SourceType;
use tiphys_value::{FieldPath, ObjectExt, RenderedObject, Value};

use crate::survey::types::Outcome;

/// A Kustomization or HelmRelease, and what it comes to.
pub(super) struct Part {
    pub declared: Arc<RenderedObject>,
    pub application: Value,
    pub outcome: Outcome,
    pub objects: Vec<Arc<RenderedObject>>,
    pub tools: Vec<Option<SourceType>>,
    pub read: Arc<BTreeSet<Arc<str>>>,
    pub missed: Vec<(String, String)>,
    /// The variables that become nothing, each with the object and field that asks for it first.
    pub unset: BTreeMap<String, (usize, FieldPath)>,
    /// The expressions that cannot be substituted, each with its object and field.
    pub unreadable: Vec<(String, usize, FieldPath)>,
    /// Whether variables stay as they are, because it replaces none.
    pub replaces_none: bool,
}

impl Part {
    pub(super) fn key(&self) -> (&str, &str, &str) {
        let declared = &self.declared.value;
        (declared.kind(), declared.namespace(), declared.name())
    }
}

/// What one root leads to.
pub(super) struct Tree {
    pub root: Arc<RenderedObject>,
    pub parts: Vec<Part>,
}
