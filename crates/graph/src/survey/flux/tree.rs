//! What of Flux is followed, from the entry of a cluster.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_model::SourceType;
use tiphys_value::{ObjectExt, RenderedObject, Value};

use crate::survey::types::Outcome;

/// A Kustomization or HelmRelease, and what it comes to.
pub struct Part {
    pub declared: Arc<RenderedObject>,
    pub application: Value,
    pub outcome: Outcome,
    pub objects: Vec<Arc<RenderedObject>>,
    pub tools: Vec<Option<SourceType>>,
    pub read: Arc<BTreeSet<Arc<str>>>,
    pub missed: Vec<(String, String)>,
}

impl Part {
    pub fn key(&self) -> (&str, &str, &str) {
        let declared = &self.declared.value;
        (declared.kind(), declared.namespace(), declared.name())
    }
}

/// What one root leads to.
pub struct Tree {
    pub root: Arc<RenderedObject>,
    pub parts: Vec<Part>,
}
