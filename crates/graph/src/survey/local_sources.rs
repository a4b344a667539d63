//! The sources of one rendering: this repository as it is, and everything else through whoever serves it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use tiphys_helm::Chart;
use tiphys_kustomize::{FunctionRunner, RemoteError, RemoteLoader, RepoUrl};
use tiphys_model::SourceType;
use tiphys_render::{RenderError, SourceTree, Sources};
use tiphys_vfs::{DirEntry, EntryKind, FileTree, MemTree, VfsError};

use super::{
    chart_dependencies, flux,
    input::Input,
    names::{AS_FLUX, THIS_REPOSITORY},
    rendering::Touched,
    sops,
};

/// A tree that notes which files are read, and what is looked for.
pub(super) struct Reading {
    tree: Arc<dyn FileTree>,
    read: Arc<Mutex<BTreeSet<Arc<str>>>>,
    touched: Arc<Mutex<BTreeSet<Arc<str>>>>,
}

impl Reading {
    fn new(tree: Arc<dyn FileTree>) -> Self {
        Self { tree, read: Arc::default(), touched: Arc::default() }
    }

    /// The same of another state of the repository.
    fn in_tree(&self, tree: Arc<dyn FileTree>) -> Self {
        Self { tree, read: self.read.clone(), touched: self.touched.clone() }
    }

    fn touch(&self, path: &str) {
        let Ok(path) = tiphys_vfs::normalize(path) else { return };
        let mut touched = self.touched.lock();
        if !touched.contains(path.as_str()) {
            touched.insert(path.into());
        }
    }

    fn take(&self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.read.lock())
    }
}

impl FileTree for Reading {
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
        self.touch(path);
        self.tree.kind(path)
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
        self.touch(path);
        let bytes = self.tree.read(path)?;
        if let Ok(path) = tiphys_vfs::normalize(path) {
            self.read.lock().insert(path.into());
        }
        let secret = |path: &str| {
            self.touch(path);
            self.tree.read(path).ok()
        };
        Ok(sops::without_generators(&secret, path, &bytes).unwrap_or(bytes))
    }

    fn size(&self, path: &str) -> Result<u64, VfsError> {
        self.touch(path);
        self.tree.size(path)
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        self.touch(path);
        self.tree.list(path)
    }

    fn canonical(&self, path: &str) -> Result<String, VfsError> {
        self.touch(path);
        self.tree.canonical(path)
    }
}

/// Serves one rendering.
pub(super) struct Here<'a> {
    input: &'a Input<'a>,
    reading: Arc<Reading>,
    /// The addresses of repositories that were asked for.
    addresses: Mutex<BTreeSet<String>>,
    /// What was asked for and could not be had: what, and why.
    missed: Mutex<Vec<(String, String)>>,
    /// The options with which Flux would build a kustomization.
    as_flux: String,
    /// The templates to leave out of charts that lack dependencies; `None` if such charts, and kustomizations
    /// that name what is out of reach, are not looked at.
    left_out: Option<BTreeSet<String>>,
    /// Whether an empty chart stands for each of another place, so that what it is given can be looked at.
    stands_in: bool,
    /// Whether a kustomization was given nothing for something out of reach.
    gave_nothing: Arc<AtomicBool>,
    /// Whether kustomizations are built without the entries that do not build.
    skips_faults: bool,
}

/// A chart that renders nothing.
const EMPTY_CHART: &str = "apiVersion: v2\nname: empty\nversion: 0.0.0\n";

impl<'a> Here<'a> {
    /// Nothing is read yet.
    pub(super) fn new(input: &'a Input<'a>) -> Self {
        Self {
            input,
            reading: Arc::new(Reading::new(input.tree.clone())),
            addresses: Mutex::default(),
            missed: Mutex::default(),
            as_flux: format!("{} --load-restrictor LoadRestrictionsNone", kustomize_options(input, "")),
            left_out: None,
            stands_in: false,
            gave_nothing: Arc::default(),
            skips_faults: false,
        }
    }

    /// The same, but an empty chart stands for each that is not in this repository.
    pub(super) fn with_stand_ins(input: &'a Input<'a>) -> Self {
        Self { stands_in: true, ..Self::new(input) }
    }

    /// The same, but charts that lack dependencies are rendered without them and without some of their
    /// templates, and kustomizations without what is out of reach.
    pub(super) fn partly(input: &'a Input<'a>, left_out: BTreeSet<String>) -> Self {
        Self { left_out: Some(left_out), ..Self::new(input) }
    }

    /// The same as [`Self::partly`], and kustomizations are built without the entries that do not build.
    pub(super) fn without_faults(input: &'a Input<'a>) -> Self {
        Self { skips_faults: true, ..Self::partly(input, BTreeSet::new()) }
    }

    /// Whether a kustomization was given nothing for something out of reach.
    pub(super) fn gave_nothing(&self) -> bool {
        self.gave_nothing.load(Ordering::Relaxed)
    }

    /// What was asked for.
    pub(super) fn touched(&self) -> Touched {
        let paths = std::mem::take(&mut *self.reading.touched.lock());
        let addresses = std::mem::take(&mut *self.addresses.lock());
        Touched { paths, addresses }
    }

    /// The files of this repository that were read.
    pub(super) fn read(&self) -> BTreeSet<Arc<str>> {
        self.reading.take()
    }

    /// What could not be had: what, and why.
    pub(super) fn missed(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.missed.lock())
    }

    /// Whether another state of this repository is read than the one at hand.
    fn reads_a_revision(&self, url: &str, revision: &str) -> bool {
        self.input.options.at_revisions && url != THIS_REPOSITORY && !revision.is_empty()
    }

    fn note<T>(
        &self,
        what: impl FnOnce() -> String,
        result: Result<T, RenderError>,
    ) -> Result<T, RenderError> {
        if let Err(error) = &result {
            let missed = (what(), error.headline().to_owned());
            self.missed.lock().push(missed);
        }
        result
    }
}

impl Sources for Here<'_> {
    fn repository(&self, url: &str, revision: &str) -> Result<SourceTree, RenderError> {
        self.addresses.lock().insert(url.to_owned());
        let is_given = url == THIS_REPOSITORY || (self.input.is_given)(url);
        if is_given && !self.reads_a_revision(url, revision) {
            let tree: Arc<dyn FileTree> = self.reading.clone();
            if let Some(tree) = flux::with_file(&tree, revision) {
                return Ok(SourceTree { tree, revision: String::new() });
            }
            return Ok(SourceTree { tree: self.reading.clone(), revision: String::new() });
        }
        let source = self.note(|| url.to_owned(), self.input.sources.repository(url, revision))?;
        match is_given {
            true => Ok(SourceTree { tree: Arc::new(self.reading.in_tree(source.tree)), ..source }),
            false => Ok(source),
        }
    }

    fn chart(
        &self,
        repository: &str,
        chart: &str,
        version: &str,
        pass_credentials: bool,
    ) -> Result<SourceTree, RenderError> {
        if self.stands_in {
            let mut tree = MemTree::default();
            let added = tree.insert("Chart.yaml", EMPTY_CHART.as_bytes());
            added.map_err(|error| RenderError::new(error.to_string()))?;
            return Ok(SourceTree { tree: Arc::new(tree), revision: String::new() });
        }
        let what = || match (chart.is_empty(), version.is_empty()) {
            (true, _) => format!("{repository} {version}"),
            (false, true) => format!("chart {chart} of {repository}"),
            (false, false) => format!("chart {chart} {version} of {repository}"),
        };
        self.note(what, self.input.sources.chart(repository, chart, version, pass_credentials))
    }

    fn complete(
        &self,
        chart: &mut Chart,
        tree: &dyn FileTree,
        pass_credentials: bool,
    ) -> Result<(), RenderError> {
        let what = chart_dependencies::dependencies_of(chart);
        let completed = self.note(|| what, self.input.sources.complete(chart, tree, pass_credentials));
        match (&self.left_out, completed) {
            (Some(left_out), Err(_)) => {
                chart_dependencies::reduce(chart, left_out);
                Ok(())
            }
            (_, completed) => completed,
        }
    }

    fn plugins(&self) -> Option<Arc<dyn tiphys_render::Plugins>> {
        self.input.sources.plugins()
    }

    fn functions(&self) -> Option<Arc<dyn FunctionRunner>> {
        self.input.sources.functions()
    }

    fn is_enabled(&self, tool: SourceType) -> bool {
        match (&self.input.settings, tool) {
            (Some(settings), SourceType::Helm) => settings.helm_enabled,
            (Some(settings), SourceType::Kustomize) => settings.kustomize.enabled,
            _ => self.input.sources.is_enabled(tool),
        }
    }

    fn evaluates_jsonnet(&self) -> bool {
        let settings = self.input.settings.as_ref();
        settings.map_or_else(|| self.input.sources.evaluates_jsonnet(), |it| it.jsonnet_enabled)
    }

    fn tag_revision(&self, prefix: &str, constraint: &str) -> Result<String, RenderError> {
        self.input.sources.tag_revision(prefix, constraint)
    }

    fn kustomize_options(&self, version: &str) -> &str {
        if version == AS_FLUX {
            return &self.as_flux;
        }
        kustomize_options(self.input, version)
    }

    fn permits_values_from(&self, scheme: &str) -> bool {
        match &self.input.settings {
            Some(settings) => settings.helm_values_schemes.iter().any(|permitted| permitted == scheme),
            None => self.input.sources.permits_values_from(scheme),
        }
    }

    fn remote_loader(&self) -> Option<Arc<dyn RemoteLoader>> {
        let remote = self.input.sources.remote_loader();
        match self.builds_parts() {
            true => Some(Arc::new(WithNothing { remote, gave_nothing: self.gave_nothing.clone() })),
            false => remote,
        }
    }

    fn builds_parts(&self) -> bool {
        self.left_out.is_some()
    }

    fn skips_faults(&self) -> bool {
        self.skips_faults
    }
}

/// The flags of `kustomize build` for an Application that asks for a version of it.
fn kustomize_options<'a>(input: &'a Input<'_>, version: &str) -> &'a str {
    let settings = input.settings.as_ref();
    settings.map_or_else(|| input.sources.kustomize_options(version), |it| it.kustomize.options_for(version))
}

/// Gives kustomizations nothing in the place of what is out of reach: a file without objects, an empty
/// folder, an empty chart.
struct WithNothing {
    remote: Option<Arc<dyn RemoteLoader>>,
    gave_nothing: Arc<AtomicBool>,
}

/// A kustomization that builds nothing.
const EMPTY_KUSTOMIZATION: &str = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n";

impl WithNothing {
    fn or<T>(
        &self,
        ask: impl FnOnce(&dyn RemoteLoader) -> Result<T, RemoteError>,
        nothing: impl FnOnce() -> Result<T, VfsError>,
    ) -> Result<T, RemoteError> {
        match self.remote.as_deref().map(ask) {
            Some(Ok(found)) => Ok(found),
            _ => {
                self.gave_nothing.store(true, Ordering::Relaxed);
                nothing().map_err(|error| RemoteError::Other(error.to_string()))
            }
        }
    }
}

impl RemoteLoader for WithNothing {
    fn repository(&self, url: &RepoUrl) -> Result<Arc<dyn FileTree>, RemoteError> {
        self.or(
            |remote| remote.repository(url),
            || {
                let mut tree = MemTree::default();
                let file = tiphys_vfs::join(&url.folder, "kustomization.yaml")?;
                tree.insert(&file, EMPTY_KUSTOMIZATION.as_bytes())?;
                Ok(Arc::new(tree))
            },
        )
    }

    fn file(&self, url: &str) -> Result<Vec<u8>, RemoteError> {
        self.or(|remote| remote.file(url), || Ok(Vec::new()))
    }

    fn chart(&self, repository: &str, name: &str, version: &str) -> Result<Arc<dyn FileTree>, RemoteError> {
        self.or(
            |remote| remote.chart(repository, name, version),
            || {
                let mut tree = MemTree::default();
                tree.insert(
                    "Chart.yaml",
                    format!("apiVersion: v2\nname: {name}\nversion: 0.0.0\n").as_bytes(),
                )?;
                tree.insert("values.yaml", "{}\n".as_bytes())?;
                Ok(Arc::new(tree))
            },
        )
    }
}
