//! Sources that serve nothing.

use tiphys_render::{RenderError, SourceTree, Sources};

/// Serves nothing: only the repository itself is read.
pub struct NoSources;

impl Sources for NoSources {
    fn repository(&self, url: &str, _revision: &str) -> Result<SourceTree, RenderError> {
        Err(RenderError::new(format!("{url} is not this repository, and nothing is fetched")))
    }

    fn chart(
        &self,
        repository: &str,
        chart: &str,
        _version: &str,
        _pass_credentials: bool,
    ) -> Result<SourceTree, RenderError> {
        Err(RenderError::new(format!(
            "chart {chart} of {repository} is not in this repository, and nothing is fetched"
        )))
    }
}
