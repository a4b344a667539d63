//! One place that serves every repository an Application may name.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use tiphys_vfs::FileTree;

use crate::{Footprint, GitCache, RecordingTree, RepoId, SourceError, WorkingTree};

/// A repository at a revision.
#[derive(Clone)]
pub struct Checkout {
    /// Its files.
    pub tree: Arc<dyn FileTree>,
    /// The commit; for a working tree the commit that is checked out, or empty outside Git.
    pub revision: String,
    /// Whether it is the working tree, whose content is not (only) the revision's.
    pub is_working_tree: bool,
}

/// Serves the working tree under its own addresses, and everything else through Git.
pub struct Repositories {
    working_tree: Option<Arc<WorkingTree>>,
    /// Further addresses that mean the working tree.
    aliases: Mutex<BTreeSet<RepoId>>,
    git: Option<GitCache>,
    respect_revisions: bool,
}

impl Repositories {
    /// Serves a working tree (if there is one) for its own addresses whatever the revision, unless
    /// `respect_revisions`; other repositories through `git`, or not at all if it is `None`.
    pub fn new(
        working_tree: Option<Arc<WorkingTree>>,
        git: Option<GitCache>,
        respect_revisions: bool,
    ) -> Self {
        Self { working_tree, aliases: Mutex::default(), git, respect_revisions }
    }

    /// The working tree.
    pub fn working_tree(&self) -> Option<&Arc<WorkingTree>> {
        self.working_tree.as_ref()
    }

    /// Makes a further address mean the working tree.
    pub fn add_alias(&self, url: &str) {
        if let Some(id) = RepoId::parse(url) {
            self.aliases.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        }
    }

    /// Whether an address means the working tree.
    pub fn is_working_tree(&self, url: &str) -> bool {
        let (Some(tree), Some(id)) = (&self.working_tree, RepoId::parse(url)) else { return false };
        tree.answers_to(&id) || self.aliases.lock().unwrap_or_else(PoisonError::into_inner).contains(&id)
    }

    /// A repository at a revision. For the working tree, the tree notes what is read of it.
    ///
    /// # Errors
    /// Unknown, unreachable, or no such revision.
    pub fn checkout(&self, url: &str, revision: &str) -> Result<Checkout, SourceError> {
        if self.is_working_tree(url)
            && let Some(tree) = &self.working_tree
        {
            if self.respect_revisions {
                return tree.checkout(url, revision);
            }
            return Ok(Checkout { tree: tree.tree(), revision: tree.head(), is_working_tree: true });
        }
        match &self.git {
            Some(git) => git.checkout(url, revision),
            None => Err(SourceError::Offline { url: url.to_owned() }),
        }
    }

    /// Forgets how fresh fetched repositories are.
    pub fn expire(&self) {
        if let Some(git) = &self.git {
            git.expire();
        }
    }

    /// The revision to show for what was read of a working tree: its commit if every file read is as
    /// committed, else the commit with a mark of the content.
    pub fn describe(&self, checkout: &Checkout, footprint: &Footprint) -> String {
        match (&self.working_tree, checkout.is_working_tree) {
            (Some(tree), true) => tree.describe(footprint),
            _ => checkout.revision.clone(),
        }
    }
}

impl Checkout {
    /// The same checkout behind a recorder.
    pub fn recording(&self) -> Arc<RecordingTree> {
        Arc::new(RecordingTree::new(self.tree.clone()))
    }
}
