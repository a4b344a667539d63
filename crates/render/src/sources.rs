//! The trees that an Application's sources name.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_helm::{Chart, ChartArchives, Completion};
use tiphys_kustomize::{FunctionRunner, RemoteLoader};
use tiphys_model::{ApplicationSource, SourceType};
use tiphys_vfs::{FileTree, MemTree};

use crate::{Cause, RenderError, Subject, plugin::Plugins};

/// Files at a revision.
#[derive(Clone)]
pub struct SourceTree {
    /// The files.
    pub tree: Arc<dyn FileTree>,
    /// Commit, or chart version.
    pub revision: String,
}

/// Serves what Applications name as sources.
pub trait Sources: Send + Sync {
    /// A Git repository at a revision (branch, tag, commit; empty means `HEAD`).
    ///
    /// # Errors
    /// Unknown, unreachable, or no such revision.
    fn repository(&self, url: &str, revision: &str) -> Result<SourceTree, RenderError>;

    /// A chart of a Helm repository or OCI registry, unpacked at the root of the tree. With
    /// `pass_credentials` those of the repository are sent also to other hosts that its index points to.
    ///
    /// # Errors
    /// Unknown, unreachable, or no such version.
    fn chart(
        &self,
        repository: &str,
        chart: &str,
        version: &str,
        pass_credentials: bool,
    ) -> Result<SourceTree, RenderError>;

    /// What serves the charts that others depend on, if anything does.
    fn chart_archives(&self) -> Option<Arc<dyn ChartArchives>> {
        None
    }

    /// Puts the dependencies that a chart of a tree lacks beside those that it has, as `helm
    /// dependency build` would; `pass_credentials` as for [`Self::chart`].
    ///
    /// # Errors
    /// Names what is missing, and why it cannot be had.
    fn complete(
        &self,
        chart: &mut Chart,
        tree: &dyn FileTree,
        pass_credentials: bool,
    ) -> Result<(), RenderError> {
        if chart.missing_dependencies().is_empty() {
            return Ok(());
        }
        let Some(archives) = self.chart_archives() else { return Err(lacks_dependencies(chart)) };
        let from = Completion { tree, below: "", pass_credentials, archives: &*archives };
        tiphys_helm::complete(chart, &from).map_err(|error| {
            let told = RenderError::new(error.to_string()).transient(error.is_transient());
            if error.is_out_of_reach() { told.caused_by(Cause::OutOfReach) } else { told }
        })
    }

    /// The flags of `kustomize build` that the installation sets for an Application that asks for a version
    /// of it; empty asks for none.
    fn kustomize_options(&self, _version: &str) -> &str {
        ""
    }

    /// Whether the installation lets a tool render; a folder made for one that may not is a plain one.
    fn is_enabled(&self, _tool: SourceType) -> bool {
        true
    }

    /// Whether Jsonnet files are evaluated.
    fn evaluates_jsonnet(&self) -> bool {
        true
    }

    /// Whether kustomizations are built although parts of them may be missing
    /// ([`BuildOptions::partial`](tiphys_kustomize::BuildOptions)).
    fn builds_parts(&self) -> bool {
        false
    }

    /// Whether kustomizations are built without what of them does not build
    /// ([`BuildOptions::skips_faults`](tiphys_kustomize::BuildOptions)).
    fn skips_faults(&self) -> bool {
        false
    }

    /// What runs config management plugins, if any are allowed.
    fn plugins(&self) -> Option<Arc<dyn Plugins>> {
        None
    }

    /// What runs functions of kustomizations, if any are allowed.
    fn functions(&self) -> Option<Arc<dyn FunctionRunner>> {
        None
    }

    /// The revision that means the highest tag of which what follows a prefix satisfies a constraint. By
    /// itself a prefix is not understood.
    ///
    /// # Errors
    /// Names what is not supported.
    fn tag_revision(&self, prefix: &str, _constraint: &str) -> Result<String, RenderError> {
        Err(RenderError::new(format!("tagPrefix {prefix:?} is not supported here"))
            .caused_by(Cause::Unsupported))
    }

    /// Whether values files may have addresses of a scheme such as `https`: Argo CD's default.
    fn permits_values_from(&self, scheme: &str) -> bool {
        matches!(scheme, "https" | "http")
    }

    /// What fetches the remote bases of kustomizations and values files that have an address, if anything
    /// does.
    fn remote_loader(&self) -> Option<Arc<dyn RemoteLoader>> {
        None
    }
}

/// Names the dependencies that a chart lacks.
fn lacks_dependencies(chart: &Chart) -> RenderError {
    let missing = chart.missing_dependencies().into_iter();
    let names: Vec<String> =
        missing.map(|it| format!("{} {} from {}", it.name, it.version, it.repository)).collect();
    RenderError::new(format!(
        "chart {} lacks dependencies that are not vendored in charts/: {}",
        chart.name(),
        names.join(", ")
    ))
}

/// The trees of all sources of one Application.
pub(crate) struct SourceSet {
    trees: Vec<SourceTree>,
    /// Position of the source with each `ref`.
    by_ref: BTreeMap<String, usize>,
}

impl SourceSet {
    /// Opens every source.
    pub(crate) fn open(declared: &[ApplicationSource], sources: &dyn Sources) -> Result<Self, RenderError> {
        let mut set = Self { trees: Vec::with_capacity(declared.len()), by_ref: BTreeMap::new() };
        for (index, source) in declared.iter().enumerate() {
            set.trees.push(open_source(source, sources)?);
            if source.reference.is_empty() {
                continue;
            }
            if !source.chart.is_empty() {
                let text =
                    format!("source {:?} is a chart and cannot be referred to by `ref`", source.reference);
                return Err(RenderError::new(text));
            }
            if set.by_ref.insert(source.reference.clone(), index).is_some() {
                let text = format!("two sources have the ref {:?}", source.reference);
                return Err(RenderError::new(text));
            }
        }
        Ok(set)
    }

    pub(crate) fn tree(&self, index: usize) -> &Arc<dyn FileTree> {
        &self.trees[index].tree
    }

    pub(crate) fn revision(&self, index: usize) -> &str {
        &self.trees[index].revision
    }

    /// Whether a source has this `ref`.
    pub(crate) fn has_reference(&self, name: &str) -> bool {
        self.by_ref.contains_key(name)
    }

    /// The tree of the source that has a `ref`.
    pub(crate) fn ref_tree(&self, name: &str) -> Result<&Arc<dyn FileTree>, RenderError> {
        let index = self.by_ref.get(name).copied().ok_or_else(|| {
            let known: Vec<&str> = self.by_ref.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "no source has a ref".into()
            } else {
                format!("there is {}", known.join(", "))
            };
            RenderError::new(format!("no source has the ref {name:?}; {known}")).about(Subject::Reference)
        })?;
        Ok(self.tree(index))
    }
}

/// The files that one source names, at the revision that it names.
///
/// # Errors
/// They cannot be had, or the source names none.
pub fn open_source(source: &ApplicationSource, sources: &dyn Sources) -> Result<SourceTree, RenderError> {
    if source.repo_url.is_empty() {
        return Err(RenderError::new("a source has no repoURL").about(Subject::Address));
    }
    let pass_credentials = source.helm.as_ref().is_some_and(|helm| helm.pass_credentials);
    if source.is_oci() && source.chart.is_empty() {
        return sources.chart(&source.repo_url, "", &source.target_revision, pass_credentials);
    }
    if source.is_helm_repository() {
        return sources.chart(&source.repo_url, &source.chart, &source.target_revision, pass_credentials);
    }
    if source.path.is_empty() && source.reference.is_empty() {
        return Err(RenderError::new(format!(
            "source {} names neither path nor chart; the root of the repository is spelt path: .",
            source.repo_url
        )));
    }
    if source.tag_prefix.is_empty() {
        return sources.repository(&source.repo_url, &source.target_revision);
    }
    let revision = sources.tag_revision(&source.tag_prefix, &source.target_revision)?;
    sources.repository(&source.repo_url, &revision)
}

/// A tree without files, for sources that render nothing.
impl Default for SourceTree {
    fn default() -> Self {
        Self { tree: Arc::new(MemTree::default()), revision: String::new() }
    }
}
