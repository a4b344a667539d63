//! The repositories that one rendering reads, and what it read of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use tiphys_helm::{ArchiveError, ChartArchive, ChartArchives, DependencyRequest};
use tiphys_kustomize::{FunctionRunner, RemoteError, RemoteLoader, RepoUrl};
use tiphys_model::{ArgoSettings, SourceType, settings::RenderSettings};
use tiphys_render::{Cause, RenderError, SourceTree, Sources};
use tiphys_source::{
    ChartRequest, Checkout, Footprint, PluginInput, Plugins, ProjectFetcher, RecordingTree, Repositories,
    SourceError,
};
use tiphys_vfs::FileTree;

use crate::source_integrity::{Asked, Integrity};

/// Serves one rendering and notes what it reads of the working tree.
pub struct Checkouts<'a> {
    repositories: &'a Repositories,
    opened: Mutex<Vec<Opened>>,
    /// Whether a dependency, remote base or values file was fetched.
    fetched: Arc<AtomicBool>,
    settings: RenderSettings,
    /// The project of the Application that is rendered; empty if none counts.
    project: String,
    /// What that project demands of commits.
    integrity: Integrity,
    /// What was read without the signatures that are demanded of it.
    unverified: Mutex<BTreeSet<String>>,
    /// Files that stand in the place of those of every source.
    files: Option<Arc<dyn FileTree>>,
}

/// The revision of files that came from no repository (Argo CD, `GenerateManifestWithFiles`).
const STREAMED: &str = "streamed";

struct Opened {
    checkout: Checkout,
    recording: Arc<RecordingTree>,
    /// Address and revision as they were asked for; `None` for a chart.
    asked: Option<(String, String)>,
}

/// What was read of a repository.
#[derive(Clone)]
pub(crate) struct RepositoryRead {
    /// Address as it was asked for.
    pub url: String,
    /// Revision as it was asked for.
    pub revision: String,
    /// The commit that it meant.
    pub commit: String,
    /// What was read of it.
    pub footprint: Footprint,
}

impl<'a> Checkouts<'a> {
    /// The repositories that are served.
    pub(crate) fn repositories(&self) -> &'a Repositories {
        self.repositories
    }

    /// Nothing is open yet.
    pub fn new(repositories: &'a Repositories) -> Self {
        let settings = ArgoSettings::default().rendering;
        Self {
            repositories,
            opened: Mutex::default(),
            fetched: Arc::default(),
            settings,
            project: String::new(),
            integrity: Integrity::default(),
            unverified: Mutex::default(),
            files: None,
        }
    }

    /// The same with what `argocd-cm` says of the renderers.
    #[must_use]
    pub fn with_settings(mut self, settings: RenderSettings) -> Self {
        self.settings = settings;
        self
    }

    /// The same for an Application of a project: what is declared for that counts, and nothing of other
    /// projects.
    #[must_use]
    pub fn for_project(mut self, project: &str) -> Self {
        project.clone_into(&mut self.project);
        self
    }

    /// The same with files in the place of those of every source.
    #[must_use]
    pub(crate) fn standing_in(mut self, files: Arc<dyn FileTree>) -> Self {
        self.files = Some(files);
        self
    }

    fn stand_in(&self) -> Option<SourceTree> {
        let tree = self.files.clone()?;
        Some(SourceTree { tree, revision: STREAMED.to_owned() })
    }

    /// The same where commits need the signatures that the project demands.
    #[must_use]
    pub(crate) fn demanding(mut self, integrity: Integrity) -> Self {
        self.integrity = integrity;
        self
    }

    /// What to tell of repositories that are served as they are, though signatures are demanded of them.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let unverified = self.unverified.lock();
        let told = |url: &String| {
            format!(
                "the project demands signed commits of {url}, which is served as it is: no signature was verified"
            )
        };
        unverified.iter().map(told).collect()
    }

    /// A repository with the signatures that are demanded of it.
    fn verified(&self, url: &str, revision: &str) -> Result<Checkout, RenderError> {
        let checkout = self.repositories.checkout_for(&self.project, url, revision);
        let checkout = checkout.map_err(|error| self.access_error(url, &error))?;
        let asked = Asked { url, revision, checkout: &checkout };
        if !self.integrity.verify(self.repositories, &self.project, &asked)? {
            self.unverified.lock().insert(url.to_owned());
        }
        Ok(checkout)
    }

    /// Why an address cannot be had, with what may be the cause: only other projects have credentials for it.
    fn access_error(&self, url: &str, error: &SourceError) -> RenderError {
        let projects =
            self.repositories.fetcher().map(|fetcher| fetcher.projects_of(url)).unwrap_or_default();
        if error.is_offline() || projects.is_empty() || projects.contains(&self.project) {
            return out_of_reach(error);
        }
        let projects: Vec<String> = projects.into_iter().collect();
        let told =
            format!("{error} (its credentials are for Applications of project {} only)", projects.join(", "));
        let told = RenderError::new(told).transient(error.is_transient());
        if error.is_out_of_reach() { told.caused_by(Cause::OutOfReach) } else { told }
    }

    /// What was read of the working tree.
    pub fn footprint(&self) -> Footprint {
        let mut all = Footprint::default();
        for opened in self.lock().iter().filter(|opened| opened.checkout.is_working_tree) {
            all.merge(opened.recording.footprint());
        }
        all
    }

    /// Whether something other than the working tree was read, or could not be: it changes without notice.
    pub fn reads_remotes(&self) -> bool {
        self.fetched.load(Ordering::Relaxed)
            || self.lock().iter().any(|opened| !opened.checkout.is_working_tree)
    }

    /// What was read of each repository, if repositories are all that was read of remotes: then it can be
    /// told whether another commit would be read differently.
    pub(crate) fn reads(&self) -> Option<Vec<RepositoryRead>> {
        if self.fetched.load(Ordering::Relaxed) {
            return None;
        }
        let opened = self.lock();
        let remote = opened.iter().filter(|opened| !opened.checkout.is_working_tree);
        remote
            .map(|opened| {
                let (url, revision) = opened.asked.clone()?;
                let commit = opened.checkout.revision.clone();
                Some(RepositoryRead { url, revision, commit, footprint: opened.recording.footprint() })
            })
            .collect()
    }

    /// A text that differs whenever what was read differs: of repositories the files count, not the commits.
    /// `None` if something was fetched of which nothing is noted.
    pub(crate) fn identity(&self) -> Option<String> {
        if self.fetched.load(Ordering::Relaxed) {
            return None;
        }
        let opened = self.lock();
        let mut read: Vec<String> = opened
            .iter()
            .map(|opened| {
                let chart = (String::new(), opened.checkout.revision.clone());
                let (url, revision) = opened.asked.as_ref().unwrap_or(&chart);
                format!("{url} {revision} {}", opened.recording.footprint().identity())
            })
            .collect();
        read.sort();
        Some(read.join("\n"))
    }

    /// The revision to show for what was read at `revision`.
    pub fn describe(&self, revision: &str, footprint: &Footprint) -> String {
        let opened = self.lock();
        match opened.iter().find(|opened| opened.checkout.revision == revision) {
            Some(opened) => self.repositories.describe(&opened.checkout, footprint),
            None => revision.to_owned(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Opened>> {
        self.opened.lock()
    }

    fn open(
        &self,
        url: &str,
        checkout: Result<Checkout, RenderError>,
        asked: Option<(String, String)>,
    ) -> Result<SourceTree, RenderError> {
        if checkout.is_err() && !self.repositories.is_own_address(url) {
            // It may be there the next time.
            self.fetched.store(true, Ordering::Relaxed);
        }
        let checkout = checkout?;
        let recording = checkout.recording();
        let tree = SourceTree { tree: recording.clone(), revision: checkout.revision.clone() };
        self.lock().push(Opened { checkout, recording, asked });
        Ok(tree)
    }
}

impl Sources for Checkouts<'_> {
    fn repository(&self, url: &str, revision: &str) -> Result<SourceTree, RenderError> {
        if let Some(files) = self.stand_in() {
            return Ok(files);
        }
        let asked = Some((url.to_owned(), revision.to_owned()));
        self.open(url, self.verified(url, revision), asked)
    }

    fn chart(
        &self,
        repository: &str,
        chart: &str,
        version: &str,
        pass_credentials: bool,
    ) -> Result<SourceTree, RenderError> {
        if let Some(files) = self.stand_in() {
            return Ok(files);
        }
        let offline = || Err(SourceError::Offline { url: repository.to_owned() });
        let fetcher = self.repositories.fetcher_for(&self.project);
        let wanted = ChartRequest {
            repository: repository.to_owned(),
            name: chart.to_owned(),
            version: version.to_owned(),
            pass_credentials,
        };
        let chart = fetcher.map_or_else(offline, |fetcher| fetcher.chart(&wanted));
        self.open(repository, chart.map_err(|error| self.access_error(repository, &error)), None)
    }

    fn chart_archives(&self) -> Option<Arc<dyn ChartArchives>> {
        let fetcher = self.repositories.fetcher_for(&self.project)?;
        Some(Arc::new(Noting { fetcher, fetched: self.fetched.clone() }))
    }

    fn kustomize_options(&self, version: &str) -> &str {
        self.settings.kustomize.options_for(version)
    }

    fn is_enabled(&self, tool: SourceType) -> bool {
        match tool {
            SourceType::Helm => self.settings.helm_enabled,
            SourceType::Kustomize => self.settings.kustomize.enabled,
            SourceType::Directory | SourceType::Plugin => true,
        }
    }

    fn evaluates_jsonnet(&self) -> bool {
        self.settings.jsonnet_enabled
    }

    fn plugins(&self) -> Option<Arc<dyn tiphys_render::Plugins>> {
        let allowed = self.repositories.fetcher()?.plugins();
        (!allowed.is_empty()).then(|| Arc::new(Allowed(allowed.clone())) as _)
    }

    fn functions(&self) -> Option<Arc<dyn FunctionRunner>> {
        Some(self.repositories.fetcher()?.functions()? as _)
    }

    fn tag_revision(&self, prefix: &str, constraint: &str) -> Result<String, RenderError> {
        Ok(tiphys_source::tag_revision(prefix, constraint))
    }

    fn permits_values_from(&self, scheme: &str) -> bool {
        self.settings.helm_values_schemes.iter().any(|permitted| permitted == scheme)
    }

    fn remote_loader(&self) -> Option<Arc<dyn RemoteLoader>> {
        let fetcher = self.repositories.fetcher_for(&self.project)?;
        Some(Arc::new(Noting { fetcher, fetched: self.fetched.clone() }))
    }
}

/// A failure to fetch, with whether it may pass and whether anything is fetched at all.
pub(crate) fn out_of_reach(error: &SourceError) -> RenderError {
    let told = RenderError::new(error.to_string()).transient(error.is_transient());
    if error.is_out_of_reach() { told.caused_by(Cause::OutOfReach) } else { told }
}

/// Fetches what kustomizations, values and charts name by address, and notes that it did.
struct Noting {
    fetcher: ProjectFetcher,
    fetched: Arc<AtomicBool>,
}

impl RemoteLoader for Noting {
    fn repository(&self, url: &RepoUrl) -> Result<Arc<dyn FileTree>, RemoteError> {
        self.fetched.store(true, Ordering::Relaxed);
        RemoteLoader::repository(&self.fetcher, url)
    }

    fn file(&self, url: &str) -> Result<Vec<u8>, RemoteError> {
        self.fetched.store(true, Ordering::Relaxed);
        self.fetcher.file(url)
    }

    fn chart(&self, repository: &str, name: &str, version: &str) -> Result<Arc<dyn FileTree>, RemoteError> {
        self.fetched.store(true, Ordering::Relaxed);
        RemoteLoader::chart(&self.fetcher, repository, name, version)
    }
}

impl ChartArchives for Noting {
    fn address(&self, repository: &str) -> Result<String, String> {
        ChartArchives::address(&self.fetcher, repository)
    }

    fn archive(
        &self,
        wanted: &DependencyRequest,
        pass_credentials: bool,
    ) -> Result<ChartArchive, ArchiveError> {
        self.fetched.store(true, Ordering::Relaxed);
        ChartArchives::archive(&self.fetcher, wanted, pass_credentials)
    }

    fn advice(&self) -> String {
        self.fetcher.advice()
    }
}

/// The plugins that are allowed, for the renderer.
struct Allowed(Arc<Plugins>);

impl tiphys_render::Plugins for Allowed {
    fn generate(
        &self,
        name: &str,
        tree: &dyn FileTree,
        folder: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<Option<(String, String)>, RenderError> {
        let input = PluginInput { tree, folder, env };
        let chosen = self.0.choose(name, &input);
        let chosen =
            chosen.map_err(|error| RenderError::new(error.to_string()).caused_by(Cause::Unsupported))?;
        let Some(plugin) = chosen else { return Ok(None) };
        let text = plugin.generate(&input).map_err(|error| RenderError::new(error.to_string()))?;
        Ok(Some((plugin.name().to_owned(), text)))
    }
}
