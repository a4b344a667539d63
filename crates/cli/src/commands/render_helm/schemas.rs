//! Schemas that a chart's `values.schema.json` refers to by address.

use tiphys_helm::SchemaLoader;
use tiphys_kustomize::RemoteLoader as _;

/// Fetches them over HTTP, or names them if nothing may be fetched.
pub(super) struct Fetched {
    /// Whether to fetch nothing.
    pub offline: bool,
}

impl SchemaLoader for Fetched {
    fn load(&self, url: &str) -> Result<Vec<u8>, String> {
        let body = crate::fetch::fetcher(self.offline).file(url);
        body.map_err(|error| format!("HTTP request failed for {url}: {error}"))
    }
}
