//! Charts as loaded: metadata, templates, default values, other files, subcharts.

mod archive;
pub(crate) mod decode;
mod file;
mod ignore;
mod links;
mod load;
mod metadata;
mod walk;

use std::sync::Arc;

use tiphys_vfs::FileTree;

use crate::{
    Compat, HelmError,
    engine::{BackgroundParser, TemplateCache},
    schema::SchemaCache,
    values::{Defaults, MergeCache},
};

use walk::Lazily;

pub(crate) use decode::{Field, decoded, is_field};
pub use file::ChartFile;
pub use metadata::{Dependency, Lock, Maintainer, Metadata};

/// A chart with its subcharts, as loaded from a folder or an archive. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Chart {
    /// `Chart.yaml`, with the dependencies of `requirements.yaml`.
    pub metadata: Metadata,
    /// `Chart.lock` or `requirements.lock`.
    pub lock: Option<Lock>,
    /// What stands in `templates/`.
    pub templates: Arc<Vec<ChartFile>>,
    /// Everything that Helm gives no other meaning to, `crds/` included.
    pub files: Arc<Vec<ChartFile>>,
    /// `values.schema.json`.
    pub schema: Option<Arc<[u8]>>,
    /// Subcharts that stand in `charts/`.
    pub dependencies: Vec<Chart>,
    /// `values.yaml` as data.
    pub(crate) values: Arc<Defaults>,
    /// `values.yaml` as data, as it was loaded: imports change `values`, not this.
    pub(crate) own_values: Arc<Defaults>,
    /// `values.yaml` as text, to find lines in.
    pub(crate) values_text: Option<Arc<[u8]>>,
    /// Where the chart stands, as origins print it; an archive with its path, then the path in it.
    pub(crate) location: Arc<str>,
    /// Notes that Helm logs while loading.
    pub(crate) warnings: Vec<String>,
    /// Parsed templates, kept over renderings.
    pub(crate) cache: Arc<TemplateCache>,
    /// The values merged with those of subcharts, kept over renderings.
    pub(crate) merge_cache: Arc<MergeCache>,
    /// The compiled schema, kept over renderings.
    pub(crate) schema_cache: Arc<SchemaCache>,
}

impl Chart {
    /// Loads the chart at a path of a tree, as Helm 4 does: a folder with a `Chart.yaml`, or a
    /// `.tgz` archive.
    ///
    /// # Errors
    /// What Helm prints when it cannot load the chart.
    pub fn load(tree: &dyn FileTree, path: &str) -> Result<Self, HelmError> {
        Self::load_as(tree, path, Compat::Helm4)
    }

    /// As [`Chart::load`], reading files as the named Helm does.
    ///
    /// # Errors
    /// As [`Chart::load`].
    pub fn load_as(tree: &dyn FileTree, path: &str, compat: Compat) -> Result<Self, HelmError> {
        load::load(tree, path, compat, None)
    }

    /// As [`Chart::load`], leaving files that only templates may ask for until one does.
    ///
    /// # Errors
    /// As [`Chart::load`].
    pub fn load_lazily(tree: &Arc<dyn FileTree>, path: &str) -> Result<Self, HelmError> {
        load::load(tree, path, Compat::Helm4, Some(Lazily { parser: None, tree: tree.clone() }))
    }

    /// As [`Chart::load_as`], parsing templates on a thread of its own while files are still being read, and
    /// leaving files that only templates may ask for until one does: for processes that render a chart once.
    ///
    /// # Errors
    /// As [`Chart::load`].
    pub fn load_ahead(tree: Arc<dyn FileTree>, path: &str, compat: Compat) -> Result<Self, HelmError> {
        load::load(
            &tree,
            path,
            compat,
            Some(Lazily { parser: Some(BackgroundParser::new()), tree: tree.clone() }),
        )
    }

    /// Loads a packaged chart. `name` is what errors and origins call it.
    ///
    /// # Errors
    /// What Helm prints when it cannot load the archive.
    pub fn load_archive(bytes: &[u8], name: &str) -> Result<Self, HelmError> {
        Self::load_archive_as(bytes, name, Compat::Helm4)
    }

    /// As [`Chart::load_archive`], as one version of Helm does.
    ///
    /// # Errors
    /// As [`Chart::load_archive`].
    pub fn load_archive_as(bytes: &[u8], name: &str, compat: Compat) -> Result<Self, HelmError> {
        load::load_archive(bytes, name, compat)
    }

    /// The name in `Chart.yaml`, or the alias once dependencies are processed.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether the chart only offers named templates.
    pub fn is_library(&self) -> bool {
        self.metadata.chart_type.eq_ignore_ascii_case("library")
    }

    /// Files in `crds/` that hold manifests, in the order of the chart.
    pub(crate) fn crds(&self) -> impl Iterator<Item = &ChartFile> {
        self.files.iter().filter(|file| file.name.starts_with("crds/") && has_manifest_extension(&file.name))
    }

    /// Dependencies that `Chart.yaml` names and `charts/` lacks, by name.
    pub fn missing_dependencies(&self) -> Vec<&Dependency> {
        self.metadata
            .dependencies
            .iter()
            .filter(|wanted| !self.dependencies.iter().any(|chart| chart.name() == wanted.name))
            .collect()
    }
}

fn has_manifest_extension(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|it| ["yaml", "yml", "json"].iter().any(|known| it.eq_ignore_ascii_case(known)))
}
