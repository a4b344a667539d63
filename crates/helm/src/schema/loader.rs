//! What is asked for schemas that lie elsewhere.

/// Fetches schemas that a chart's schema refers to by an HTTP address.
pub trait SchemaLoader: Send + Sync {
    /// The text of a schema.
    ///
    /// # Errors
    /// Why it could not be had.
    fn load(&self, url: &str) -> Result<Vec<u8>, String>;
}
