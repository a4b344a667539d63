//! Kustomizations built as `kustomize build` builds them: same bytes, same errors, and the origin
//! of every field. Pure over a [`FileTree`]; remote bases and charts come through injected traits.

mod error;
mod options;
mod overlay;
mod repo_url;

use tiphys_value::RenderedObject;
use tiphys_vfs::FileTree;

pub use error::{Error, ErrorKind, Result};
pub use options::{
    BuildOptions, ChartInflator, ChartRequest, Limits, LoadRestrictor, RemoteError, RemoteLoader, Reorder,
};
pub use overlay::Overlay;
pub use repo_url::RepoUrl;

/// A finished build.
#[derive(Clone, Debug)]
pub struct Build {
    objects: Vec<RenderedObject>,
    warnings: Vec<String>,
}

/// Builds the kustomization in the folder `dir` of `tree`.
///
/// # Errors
/// With kustomize's text, the place of the fault and advice.
pub fn build(tree: &dyn FileTree, dir: &str, options: &BuildOptions) -> Result<Build> {
    let _ = (tree, dir, options);
    Err(Error::new(ErrorKind::Unsupported, "not wired yet"))
}

impl Build {
    /// The output of `kustomize build`, byte for byte.
    pub fn to_yaml(&self) -> String {
        let documents: Vec<_> = self.objects.iter().map(|o| tiphys_yaml::to_yaml(&o.value)).collect();
        documents.join("---\n")
    }

    /// The objects in the order of the output.
    pub fn objects(&self) -> &[RenderedObject] {
        &self.objects
    }

    /// The objects, taken.
    pub fn into_objects(self) -> Vec<RenderedObject> {
        self.objects
    }

    /// What kustomize prints on stderr beside a successful build (deprecated fields).
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
