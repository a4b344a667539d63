//! Everything that is fetched, in one place: repositories, charts, files behind addresses.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;
use sha1::{Digest as _, Sha1};
use tiphys_helm::{
    ArchiveError, Chart, ChartArchive, ChartArchives, Completion, DependencyError, DependencyRequest,
};
use tiphys_kustomize::{RemoteError, RemoteLoader, RepoUrl};
use tiphys_vfs::FileTree;

use crate::{
    Access, AccessTable, ChartRequest, Charts, Checkout, CheckoutOptions, DeclaredAccess, FetchedChart,
    Functions, GitCache, GitRequests, Keyring, LocalRepositories, Plugins, Signed, SignedRevision,
    SourceError,
    git_requests::Counts,
    remote::{HelmRepositories, Http, registry_credentials},
};

/// The largest file that a kustomization may name by address, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Looks up an environment variable.
type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Fetches repositories, charts and files, and keeps them in a folder.
///
/// Nothing is read or set up before something remote is named. Blocking, as [`GitCache`] and
/// [`Charts`] are.
pub struct Fetcher {
    folder: PathBuf,
    fresh_for: Duration,
    git_limit: Option<Duration>,
    offline: bool,
    variable: Variables,
    git: GitCache,
    counts: Counts,
    access: AccessTable,
    local: LocalRepositories,
    http: Http,
    plugins: Arc<Plugins>,
    functions: Arc<Functions>,
    helm: OnceLock<(Charts, HelmRepositories)>,
    /// What fetches with the access of one project, by the project.
    of_projects: Mutex<BTreeMap<String, Arc<Fetcher>>>,
}

impl Fetcher {
    /// Uses a folder, which is made when first needed. Within `fresh_for` of being asked, a remote is
    /// not asked again. `offline` serves only charts that the folder has. `variable` looks up
    /// environment variables: they say where Helm's and the registries' configuration lies.
    pub fn new(
        folder: impl Into<PathBuf>,
        fresh_for: Duration,
        offline: bool,
        variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let folder = folder.into();
        let access = AccessTable::default();
        let counts = Counts::default();
        let git = GitCache::new(folder.join("git"), fresh_for).with_access(access.clone());
        Self {
            git: git.with_counts(counts.clone()),
            counts,
            access,
            local: LocalRepositories::default(),
            folder,
            fresh_for,
            git_limit: None,
            offline,
            variable: Arc::new(variable),
            http: Http::default(),
            plugins: Arc::default(),
            functions: Arc::default(),
            helm: OnceLock::new(),
            of_projects: Mutex::default(),
        }
    }

    /// How long a fetch from a Git host may take, if not as long as Git itself would wait.
    #[must_use]
    pub fn with_git_limit(mut self, limit: Duration) -> Self {
        self.git_limit = Some(limit);
        self
    }

    /// Asks the user's own Git for logins, see [`GitCache::with_git_credentials`].
    #[must_use]
    pub fn with_git_credentials(mut self) -> Self {
        self.git = self.git.with_git_credentials();
        self
    }

    /// Lets addresses name folders of this machine, see [`GitCache::with_local_repositories`]; never what is
    /// kept in the fetcher's own folder, where repositories lie that others may read.
    #[must_use]
    pub fn with_local_repositories(mut self, local: LocalRepositories) -> Self {
        let local = local.except_below(&self.folder);
        self.git = self.git.with_local_repositories(local.clone());
        self.local = local;
        self
    }

    /// Asks the host of a chart, a chart repository (an address or `@name`) or a registry in this way; what
    /// the access leaves open is as Helm's files say.
    #[must_use]
    pub fn with_access(mut self, url: &str, access: Access) -> Self {
        self.access.insert(url, access);
        self
    }

    /// Allows config management plugins.
    #[must_use]
    pub fn with_plugins(mut self, plugins: Plugins) -> Self {
        self.plugins = Arc::new(plugins);
        self
    }

    /// The config management plugins that are allowed.
    pub fn plugins(&self) -> &Arc<Plugins> {
        &self.plugins
    }

    /// Allows functions of kustomizations.
    #[must_use]
    pub fn with_functions(mut self, functions: Functions) -> Self {
        self.functions = Arc::new(functions);
        self
    }

    /// The functions of kustomizations that are allowed, if any are.
    pub fn functions(&self) -> Option<Arc<Functions>> {
        Some(self.functions.clone()).filter(|functions| !functions.is_empty())
    }

    /// Replaces the credentials that were declared in a cluster.
    pub fn declare(&self, all: Vec<DeclaredAccess>) {
        self.access.declare(all);
        // What was refused may be granted now.
        self.end_pauses();
    }

    fn end_pauses(&self) {
        self.git.end_pauses();
        if let Some((charts, _)) = self.helm.get() {
            charts.end_pauses();
        }
        self.each_project(Self::end_pauses);
    }

    /// The projects for which access to an address was declared.
    pub fn projects_of(&self, url: &str) -> BTreeSet<String> {
        self.access.projects_of(url)
    }

    /// What fetches an address with the access that was declared for a project; `None` if none was. It keeps
    /// what it fetched in a place of its own, so that nobody else reads it.
    pub(crate) fn project_fetcher(&self, project: &str, url: &str) -> Option<Arc<Self>> {
        if project.is_empty() || !self.access.projects_of(url).contains(project) {
            return None;
        }
        let mut known = self.of_projects.lock();
        let own = known.entry(project.to_owned()).or_insert_with(|| Arc::new(self.for_project(project)));
        Some(own.clone())
    }

    fn for_project(&self, project: &str) -> Self {
        // A Secret may call a project anything.
        let name: String =
            Sha1::digest(project.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let folder = self.folder.join("projects").join(name);
        let access = self.access.of_project(project);
        self.with_place(folder, access)
    }

    /// The same that keeps what it fetches in another folder and has this access alone, for trying whether it
    /// is one.
    #[must_use]
    pub fn trying(&self, access: DeclaredAccess, folder: impl Into<PathBuf>) -> Self {
        let (folder, table) = (folder.into(), AccessTable::default());
        table.declare(vec![access]);
        self.with_place(folder, table)
    }

    fn with_place(&self, folder: PathBuf, access: AccessTable) -> Self {
        let git = GitCache::new(folder.join("git"), self.fresh_for).with_access(access.clone());
        Self {
            git: git.with_counts(self.counts.clone()).with_local_repositories(self.local.clone()),
            local: self.local.clone(),
            counts: self.counts.clone(),
            access,
            folder,
            fresh_for: self.fresh_for,
            git_limit: self.git_limit,
            offline: self.offline,
            variable: self.variable.clone(),
            http: Http::default(),
            plugins: self.plugins.clone(),
            functions: self.functions.clone(),
            helm: OnceLock::new(),
            of_projects: Mutex::default(),
        }
    }

    /// What was asked of Git hosts so far, by the repository's address without a login.
    pub fn git_requests(&self) -> BTreeMap<String, GitRequests> {
        self.counts.all()
    }

    fn each_project(&self, act: impl Fn(&Self)) {
        let known = self.of_projects.lock();
        known.values().for_each(|own| act(own));
    }

    /// A Git repository at a revision, see [`GitCache::checkout`].
    ///
    /// # Errors
    /// Offline, unreachable, or no such revision.
    pub fn repository(&self, url: &str, revision: &str) -> Result<Checkout, SourceError> {
        refuse_template(url)?;
        self.refuse_offline(url)?;
        let mut options = CheckoutOptions::default();
        options.limit = self.git_limit.unwrap_or(options.limit);
        self.git.checkout_with(url, revision, options)
    }

    /// The signatures of what was fetched of a repository, see [`GitCache::signatures`].
    ///
    /// # Errors
    /// As there.
    pub fn signatures(&self, of: SignedRevision<'_>, keyring: &Keyring) -> Result<Vec<Signed>, SourceError> {
        self.git.signatures(of, keyring)
    }

    /// A chart or artifact as source of an Application, see [`Charts::checkout`].
    ///
    /// # Errors
    /// As there.
    pub fn chart(&self, wanted: &ChartRequest) -> Result<Checkout, SourceError> {
        refuse_template(&wanted.repository)?;
        self.helm().0.checkout(wanted)
    }

    /// Whether a repository of charts can be had, see [`Charts::test`].
    ///
    /// # Errors
    /// As there.
    pub fn test_charts(&self, repository: &str) -> Result<(), SourceError> {
        refuse_template(repository)?;
        self.helm().0.test(repository)
    }

    /// The archive of a chart, see [`Charts::fetch`]. `@name` and `alias:name` are repositories that `helm
    /// repo add` named.
    ///
    /// # Errors
    /// As there; or there is no repository of that name.
    pub fn chart_archive(&self, wanted: &ChartRequest) -> Result<FetchedChart, SourceError> {
        let repository = self
            .repository_address(&wanted.repository)
            .map_err(|reason| SourceError::BadUrl { url: wanted.repository.clone(), reason })?;
        self.helm().0.fetch(&ChartRequest { repository, ..wanted.clone() })
    }

    /// Forgets how fresh everything is.
    pub fn expire(&self) {
        self.git.expire();
        if let Some((charts, _)) = self.helm.get() {
            charts.expire();
        }
        self.each_project(Self::expire);
    }

    /// The same for one address, of a Git or chart repository.
    pub fn expire_address(&self, url: &str) {
        self.git.expire_address(url);
        if let Some((charts, _)) = self.helm.get() {
            charts.expire_address(url);
        }
        self.each_project(|own| own.expire_address(url));
    }

    /// Puts the dependencies that a chart lacks beside those that it has, as `helm dependency build` would.
    /// `tree` is what `file://` repositories are read from; the path that the chart was loaded from counts
    /// from the folder `below` of it. With `pass_credentials` those of a repository are sent also to other
    /// hosts that its index points to.
    ///
    /// # Errors
    /// Helm's text for missing charts, followed by why they cannot be had.
    pub fn complete(
        &self,
        chart: &mut Chart,
        tree: &dyn FileTree,
        below: &str,
        pass_credentials: bool,
    ) -> Result<(), DependencyError> {
        tiphys_helm::complete(chart, &Completion { tree, below, pass_credentials, archives: self })
    }

    pub(crate) fn archive_for(
        &self,
        project: &str,
        wanted: &DependencyRequest,
        pass_credentials: bool,
    ) -> Result<ChartArchive, ArchiveError> {
        let request = ChartRequest {
            // As Helm, the name is the last step of a registry's repository.
            repository: wanted.repository.clone(),
            name: wanted.name.clone(),
            version: wanted.version.clone(),
            pass_credentials,
        };
        let own = self.project_fetcher(project, &wanted.repository);
        let fetched = own.as_deref().unwrap_or(self).helm().0.fetch(&request);
        let fetched = fetched.map_err(|error| ArchiveError {
            reason: error.to_string(),
            is_transient: error.is_transient(),
            is_out_of_reach: error.is_out_of_reach(),
        })?;
        Ok(ChartArchive { version: fetched.version, bytes: fetched.archive })
    }

    pub(crate) fn offline_advice(&self) -> &'static str {
        match self.offline {
            true => "\nrun without --offline, or vendor the charts in charts/ with `helm dependency build`",
            false => "",
        }
    }

    /// The address of a chart repository that is named by an address or by an alias.
    pub(crate) fn repository_address(&self, repository: &str) -> Result<String, String> {
        let alias = repository.strip_prefix('@').or_else(|| repository.strip_prefix("alias:"));
        let Some(alias) = alias else { return Ok(repository.to_owned()) };
        self.helm().1.address(alias).map(str::to_owned).ok_or_else(|| {
            format!(
                "no repository definition for {repository}. Please add the missing repos via 'helm repo add'"
            )
        })
    }

    fn helm(&self) -> &(Charts, HelmRepositories) {
        self.helm.get_or_init(|| {
            let variable = |name: &str| (self.variable)(name);
            let (mut access, _) = registry_credentials(variable);
            let repositories = HelmRepositories::read(variable);
            repositories.add_access(&mut access);
            for (url, given) in self.access.entries() {
                let url = url.strip_prefix('@').and_then(|name| repositories.address(name)).unwrap_or(url);
                access.insert(url, given.clone().or(access.lookup(url)));
            }
            let access = access.sharing(&self.access);
            let charts = Charts::new(self.folder.join("charts"), access, self.fresh_for, self.offline);
            (charts, repositories)
        })
    }

    /// Fails if nothing is fetched.
    ///
    /// # Errors
    /// Nothing is.
    pub(crate) fn refuse_offline(&self, url: &str) -> Result<(), SourceError> {
        if self.offline { Err(SourceError::Offline { url: url.to_owned() }) } else { Ok(()) }
    }
}

/// Refuses an address in which a parameter of an ApplicationSet still stands: no host has it, and Git would
/// take it for a folder.
fn refuse_template(url: &str) -> Result<(), SourceError> {
    let parameter = url.split_once("{{").and_then(|(_, rest)| rest.split_once("}}"));
    parameter.map_or(Ok(()), |(parameter, _)| {
        let reason = format!("no generator gives the parameter {:?} a value", parameter.trim());
        Err(SourceError::BadUrl { url: url.to_owned(), reason })
    })
}

impl ChartArchives for Fetcher {
    fn address(&self, repository: &str) -> Result<String, String> {
        self.repository_address(repository)
    }

    fn archive(
        &self,
        wanted: &DependencyRequest,
        pass_credentials: bool,
    ) -> Result<ChartArchive, ArchiveError> {
        self.archive_for("", wanted, pass_credentials)
    }

    fn advice(&self) -> String {
        self.offline_advice().to_owned()
    }
}

impl RemoteLoader for Fetcher {
    fn repository(&self, url: &RepoUrl) -> Result<Arc<dyn FileTree>, RemoteError> {
        let address = url.clone_url();
        self.refuse_offline(&address).map_err(remote_error)?;
        // Kustomize's own limit is short; where the host hands out no single commits, all of the history is
        // fetched once.
        let is_explicit = url.raw.split_once('?').is_some_and(|(_, query)| query.contains("timeout="));
        let mut options =
            CheckoutOptions { submodules: url.submodules, shallow: true, ..CheckoutOptions::default() };
        if is_explicit {
            options.limit = url.timeout;
        }
        match self.git.checkout_with(&address, &url.revision, options) {
            Ok(checkout) => Ok(checkout.tree),
            Err(SourceError::Timeout { url, limit }) => {
                Err(RemoteError::Timeout { limit, what: format!("git fetch {url}") })
            }
            Err(error) => Err(remote_error(error)),
        }
    }

    fn file(&self, url: &str) -> Result<Vec<u8>, RemoteError> {
        self.refuse_offline(url).map_err(remote_error)?;
        let response = self.http.send(url, &self.access.lookup(url)).map_err(remote_error)?;
        let status = response.status();
        if !status.is_success() {
            let text = status.canonical_reason().unwrap_or_default().to_owned();
            return Err(RemoteError::Status { code: status.as_u16(), text });
        }
        crate::remote::read_ok(url, response, MAX_FILE_BYTES).map_err(remote_error)
    }

    fn chart(&self, repository: &str, name: &str, version: &str) -> Result<Arc<dyn FileTree>, RemoteError> {
        let wanted = ChartRequest {
            repository: repository.trim_end_matches('/').to_owned(),
            name: name.to_owned(),
            version: version.to_owned(),
            pass_credentials: false,
        };
        let tree = self.chart_archive(&wanted).and_then(|fetched| fetched.tree()).map_err(remote_error)?;
        Ok(Arc::new(tree))
    }
}

fn remote_error(error: SourceError) -> RemoteError {
    RemoteError::Other(error.to_string())
}
