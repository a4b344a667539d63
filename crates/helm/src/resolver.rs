//! Fetching dependencies that are not vendored: the network half lives elsewhere.

use crate::{Chart, HelmError};

/// A dependency of a chart that has to be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyRequest {
    /// Chart name.
    pub name: String,
    /// Exact version (from `Chart.lock`) or constraint.
    pub version: String,
    /// Repository: `file://`, `https://`, `oci://`, `@alias`.
    pub repository: String,
}

/// Fetches what `helm dependency build` would fetch into `charts/`.
pub trait DependencyResolver: Send + Sync {
    /// The chart that satisfies a request. `base` is the folder of the chart that asks, relative to
    /// the tree, for `file://` repositories.
    ///
    /// # Errors
    /// Not found, not reachable, or a digest that does not match; prints as Helm would.
    fn resolve(&self, request: &DependencyRequest, base: &str) -> Result<Chart, HelmError>;
}
