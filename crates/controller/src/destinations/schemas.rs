//! The schemas of a cluster's custom resources.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tiphys_cluster::LiveCache;
use tiphys_schema::{StructuralSchema, crd_version_schema};
use tiphys_value::{GroupVersionKind, Value};

/// What was read of a definition.
struct CachedSchema {
    /// The definition it was read of.
    definition: Arc<Value>,
    schema: Option<StructuralSchema>,
}

/// The schemas by kind; each definition is read once for as long as it stays as it is.
#[derive(Default)]
pub(super) struct Schemas {
    known: Mutex<HashMap<GroupVersionKind, CachedSchema>>,
}

impl Schemas {
    /// The schema of a kind; `None` if it is no custom resource, or its definition is not followed or has
    /// none.
    pub(super) fn schema_of(&self, cache: &LiveCache, kind: &GroupVersionKind) -> Option<StructuralSchema> {
        let definition = cache.get(&cache.cluster().discovery().definition_key(kind)?)?;
        let mut known = self.known.lock();
        if let Some(read) = known.get(kind).filter(|read| Arc::ptr_eq(&read.definition, &definition)) {
            return read.schema.clone();
        }
        let schema = crd_version_schema(&definition, &kind.version);
        known.insert(kind.clone(), CachedSchema { definition, schema: schema.clone() });
        schema
    }
}
