//! What is kept of a chart's schema.

use std::sync::OnceLock;

use super::compile::Schema;

/// A chart's schema, compiled when first needed and kept over renderings.
#[derive(Debug, Default)]
pub(crate) struct SchemaCache(pub(super) OnceLock<Vec<Schema>>);
