//! One place that serves every repository an Application may name.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::{RwLock, RwLockWriteGuard};

use crate::{Checkout, Fetcher, Footprint, Outages, ProjectFetcher, RepoId, SourceError, WorkingTree};

/// What the user gave: the repository whose Applications are run.
#[derive(Clone)]
enum Given {
    /// A folder, as it is now.
    WorkingTree(Arc<WorkingTree>),
    /// One commit of a repository.
    Commit(Checkout),
}

/// Serves the given repository under all of its addresses, and everything else through Git.
pub struct Repositories {
    given: RwLock<Option<Given>>,
    /// Addresses that mean the given repository.
    addresses: RwLock<BTreeSet<RepoId>>,
    fetcher: Option<Arc<Fetcher>>,
    respect_revisions: bool,
    outages: Outages,
}

impl Repositories {
    /// Other repositories are fetched through `fetcher`, or not at all if it is `None`. The given
    /// repository is served as it was given whatever revision is asked for, unless
    /// `respect_revisions`.
    pub fn new(fetcher: Option<Arc<Fetcher>>, respect_revisions: bool) -> Self {
        Self {
            given: RwLock::default(),
            addresses: RwLock::default(),
            fetcher,
            respect_revisions,
            outages: Outages::default(),
        }
    }

    /// The same repositories, of which hosts may be away: the given one too, under its addresses.
    #[must_use]
    pub fn with_outages(&self, outages: Outages) -> Self {
        let given = self.given.read().clone();
        let addresses = self.addresses.read().clone();
        Self {
            given: RwLock::new(given),
            addresses: RwLock::new(addresses),
            fetcher: self.fetcher.clone(),
            respect_revisions: self.respect_revisions,
            outages,
        }
    }

    /// Gives a folder. Its remotes are its addresses.
    pub fn give_working_tree(&self, tree: Arc<WorkingTree>) {
        self.write_addresses().extend(tree.ids().iter().cloned());
        *self.write_given() = Some(Given::WorkingTree(tree));
    }

    /// Gives one commit of a repository.
    pub fn give_commit(&self, checkout: Checkout) {
        *self.write_given() = Some(Given::Commit(checkout));
    }

    /// The given folder, if it is one.
    pub fn working_tree(&self) -> Option<Arc<WorkingTree>> {
        match &*self.given.read() {
            Some(Given::WorkingTree(tree)) => Some(tree.clone()),
            _ => None,
        }
    }

    /// Makes a further address mean the given repository.
    pub fn add_address(&self, url: &str) {
        self.write_addresses().extend(RepoId::parse(url));
    }

    /// Whether an address means the given repository.
    pub fn is_own_address(&self, url: &str) -> bool {
        let addresses = self.addresses.read();
        RepoId::parse(url).is_some_and(|id| addresses.contains(&id))
    }

    /// Whether a repository can be had at other revisions than its present one: a given one is as it is,
    /// unless revisions are respected.
    pub fn has_revisions(&self, url: &str) -> bool {
        self.respect_revisions || !self.is_own_address(url)
    }

    /// A repository at a revision.
    ///
    /// # Errors
    /// Unknown, unreachable, or no such revision.
    pub fn checkout(&self, url: &str, revision: &str) -> Result<Checkout, SourceError> {
        self.checkout_for("", url, revision)
    }

    /// The same with the access of a project.
    ///
    /// # Errors
    /// As there.
    pub fn checkout_for(&self, project: &str, url: &str, revision: &str) -> Result<Checkout, SourceError> {
        self.outages.check(url)?;
        if self.is_own_address(url) {
            match &*self.given.read() {
                Some(Given::WorkingTree(tree)) if self.respect_revisions => {
                    return tree.checkout(url, revision);
                }
                Some(Given::WorkingTree(tree)) => {
                    return Ok(Checkout { tree: tree.tree(), revision: tree.head(), is_working_tree: true });
                }
                Some(Given::Commit(checkout)) if !self.respect_revisions => return Ok(checkout.clone()),
                Some(Given::Commit(_)) | None => {}
            }
        }
        match self.fetcher_for(project) {
            Some(fetcher) => fetcher.repository(url, revision),
            None => Err(SourceError::Offline { url: url.to_owned() }),
        }
    }

    /// A repository at a revision, from Git even if it is the given one.
    ///
    /// # Errors
    /// Unreachable, or no such revision.
    pub fn fetch(&self, url: &str, revision: &str) -> Result<Checkout, SourceError> {
        self.outages.check(url)?;
        match &self.fetcher {
            Some(fetcher) => fetcher.repository(url, revision),
            None => Err(SourceError::Offline { url: url.to_owned() }),
        }
    }

    /// Fails where nothing is fetched, for whoever asks an address without a fetcher.
    ///
    /// # Errors
    /// Nothing is.
    pub fn refuse_offline(&self, url: &str) -> Result<(), SourceError> {
        match &self.fetcher {
            Some(fetcher) => fetcher.refuse_offline(url),
            None => Err(SourceError::Offline { url: url.to_owned() }),
        }
    }

    /// Forgets how fresh fetched repositories are.
    pub fn expire(&self) {
        if let Some(fetcher) = &self.fetcher {
            fetcher.expire();
        }
    }

    /// The same for one address.
    pub fn expire_address(&self, url: &str) {
        if let Some(fetcher) = &self.fetcher {
            fetcher.expire_address(url);
        }
    }

    /// What fetches, if anything does.
    pub fn fetcher(&self) -> Option<&Arc<Fetcher>> {
        self.fetcher.as_ref()
    }

    /// What fetches for a project, if anything does.
    pub fn fetcher_for(&self, project: &str) -> Option<ProjectFetcher> {
        let fetcher = self.fetcher.clone()?;
        Some(ProjectFetcher::new(fetcher, project).with_outages(self.outages.clone()))
    }

    /// The revision to show for what was read of a working tree: its commit if every file read is as
    /// committed, else the commit with a mark of the content.
    pub fn describe(&self, checkout: &Checkout, footprint: &Footprint) -> String {
        match (self.working_tree(), checkout.is_working_tree) {
            (Some(tree), true) => tree.describe(footprint),
            _ => checkout.revision.clone(),
        }
    }

    fn write_addresses(&self) -> RwLockWriteGuard<'_, BTreeSet<RepoId>> {
        self.addresses.write()
    }

    fn write_given(&self) -> RwLockWriteGuard<'_, Option<Given>> {
        self.given.write()
    }
}
