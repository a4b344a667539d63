//! What a survey is made from.

use std::sync::Arc;

use tiphys_appset::ClusterInfo;
use tiphys_model::settings::RenderSettings;
use tiphys_render::Sources;
use tiphys_vfs::FileTree;

use super::{offline::NoSources, options::Options};

/// What a survey is made from.
pub struct Input<'a> {
    /// The files of the repository, from its root.
    pub tree: Arc<dyn FileTree>,
    /// Folder to look in; empty for all of it.
    pub folder: &'a str,
    /// Serves what is not in the repository.
    pub sources: &'a dyn Sources,
    /// Whether an address means this repository.
    pub is_given: &'a (dyn Fn(&str) -> bool + Sync),
    /// Clusters that the generators of ApplicationSets may name, beside those whose Secrets are in the
    /// repository. If there is none at all, each selector is taken to find one.
    pub clusters: Vec<ClusterInfo>,
    /// Version of the destination clusters, such as `v1.36.1`; empty for Helm's own default.
    pub kube_version: &'a str,
    /// Is told how many renderings are done, of how many that are known of.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// The environment that is looked at, by its name or the end of it, where several stand side by side;
    /// `None` for all of them.
    pub environment: Option<&'a str>,
    /// Settings of the renderers, in place of what the repository says.
    pub settings: Option<RenderSettings>,
    /// How much is looked at, and how.
    pub options: Options,
}

impl Input<'_> {
    /// All of a repository with no other source in reach; every address means it.
    pub fn alone(tree: Arc<dyn FileTree>) -> Self {
        Self {
            tree,
            folder: "",
            sources: &NoSources,
            is_given: &|_| true,
            clusters: Vec::new(),
            kube_version: "",
            progress: &|_, _| {},
            environment: None,
            settings: None,
            options: Options::default(),
        }
    }
}

impl<'a> Input<'a> {
    /// The same with other addresses that mean the repository.
    pub(super) fn with_addresses<'b>(&'b self, is_given: &'b (dyn Fn(&str) -> bool + Sync)) -> Input<'b>
    where
        'a: 'b,
    {
        Input {
            tree: self.tree.clone(),
            is_given,
            clusters: self.clusters.clone(),
            settings: self.settings.clone(),
            ..*self
        }
    }
}
