//! Fetching for the Applications of one project.

use std::sync::Arc;

use tiphys_helm::{ArchiveError, ChartArchive, ChartArchives, DependencyRequest};
use tiphys_kustomize::{RemoteError, RemoteLoader, RepoUrl};
use tiphys_vfs::FileTree;

use crate::{ChartRequest, Checkout, Fetcher, Keyring, Outages, Signed, SignedRevision, SourceError};

/// A [`Fetcher`] as a project has it: what was declared for that project counts, and before what is for all.
/// What other projects have is not seen, nor what was fetched with it.
#[derive(Clone)]
pub struct ProjectFetcher {
    common: Arc<Fetcher>,
    project: String,
    outages: Outages,
}

impl ProjectFetcher {
    /// For a project; the empty one has only what is for all.
    pub fn new(common: Arc<Fetcher>, project: &str) -> Self {
        Self { common, project: project.to_owned(), outages: Outages::default() }
    }

    /// The same with hosts that may be away.
    #[must_use]
    pub fn with_outages(self, outages: Outages) -> Self {
        Self { outages, ..self }
    }

    fn check(&self, url: &str) -> Result<(), RemoteError> {
        self.outages.check(url).map_err(|error| RemoteError::Other(error.to_string()))
    }

    fn fetcher_for(&self, url: &str) -> Arc<Fetcher> {
        self.common.project_fetcher(&self.project, url).unwrap_or_else(|| self.common.clone())
    }

    /// See [`Fetcher::repository`].
    ///
    /// # Errors
    /// As there.
    pub fn repository(&self, url: &str, revision: &str) -> Result<Checkout, SourceError> {
        self.outages.check(url)?;
        self.fetcher_for(url).repository(url, revision)
    }

    /// See [`Fetcher::signatures`].
    ///
    /// # Errors
    /// As there.
    pub fn signatures(&self, of: SignedRevision<'_>, keyring: &Keyring) -> Result<Vec<Signed>, SourceError> {
        self.outages.check(of.url)?;
        self.fetcher_for(of.url).signatures(of, keyring)
    }

    /// See [`Fetcher::chart`].
    ///
    /// # Errors
    /// As there.
    pub fn chart(&self, wanted: &ChartRequest) -> Result<Checkout, SourceError> {
        let repository = address_of(&wanted.repository);
        self.outages.check(&repository)?;
        self.fetcher_for(&repository).chart(wanted)
    }

    /// See [`Fetcher::test_charts`].
    ///
    /// # Errors
    /// As there.
    pub fn test_charts(&self, repository: &str) -> Result<(), SourceError> {
        let repository = address_of(repository);
        self.outages.check(&repository)?;
        self.fetcher_for(&repository).test_charts(&repository)
    }
}

/// As Argo CD has it, an address without scheme is one of a registry.
fn address_of(repository: &str) -> String {
    if repository.contains("://") { repository.to_owned() } else { format!("oci://{repository}") }
}

impl ChartArchives for ProjectFetcher {
    fn address(&self, repository: &str) -> Result<String, String> {
        self.common.repository_address(repository)
    }

    fn archive(
        &self,
        wanted: &DependencyRequest,
        pass_credentials: bool,
    ) -> Result<ChartArchive, ArchiveError> {
        self.outages.check(&wanted.repository).map_err(|error| ArchiveError {
            reason: error.to_string(),
            is_transient: error.is_transient(),
            is_out_of_reach: error.is_out_of_reach(),
        })?;
        self.common.archive_for(&self.project, wanted, pass_credentials)
    }

    fn advice(&self) -> String {
        self.common.offline_advice().to_owned()
    }
}

impl RemoteLoader for ProjectFetcher {
    fn repository(&self, url: &RepoUrl) -> Result<Arc<dyn FileTree>, RemoteError> {
        self.check(&url.clone_url())?;
        RemoteLoader::repository(&*self.fetcher_for(&url.clone_url()), url)
    }

    fn file(&self, url: &str) -> Result<Vec<u8>, RemoteError> {
        self.check(url)?;
        self.fetcher_for(url).file(url)
    }

    fn chart(&self, repository: &str, name: &str, version: &str) -> Result<Arc<dyn FileTree>, RemoteError> {
        self.check(repository)?;
        RemoteLoader::chart(&*self.fetcher_for(repository), repository, name, version)
    }
}
