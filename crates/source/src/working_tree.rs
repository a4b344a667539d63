//! The folder that the user gave: usually the work tree of a Git repository.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gix::{ThreadSafeRepository, bstr::ByteSlice, remote::Direction};
use tiphys_diag::catch_panic;
use tiphys_vfs::{DiskTree, FileTree, SubTree};

use crate::{
    Checkout, Footprint, RepoId, SourceError, footprint::PathRecord, git_objects, git_tree, revisions,
};

/// A folder on disk that stands for a repository.
pub struct WorkingTree {
    tree: Arc<DiskTree>,
    repository: Option<ThreadSafeRepository>,
    /// Where the folder stands in the repository; empty if it is its top folder.
    below: String,
    remotes: Vec<String>,
    ids: Vec<RepoId>,
}

/// Whether this is a clone that has all branches and tags of where it comes from. What comes from nowhere, as
/// a copy of the files in a repository of their own, cannot tell what there is elsewhere.
fn has_all_branches(repository: &gix::Repository) -> bool {
    const ALL: &str = "refs/heads/*";
    let fetched = repository.config_snapshot().string("remote.origin.fetch");
    let has_fetched = repository
        .references()
        .ok()
        .and_then(|all| Some(all.remote_branches().ok()?.next().is_some()))
        .unwrap_or_default();
    let is_whole = repository.is_shallow().is_ok_and(|is_shallow| !is_shallow);
    is_whole && has_fetched && fetched.is_some_and(|it| it.to_str_lossy().contains(ALL))
}

impl WorkingTree {
    /// Opens a folder as it is: paths in it count from that folder even if it lies inside a larger
    /// repository.
    ///
    /// # Errors
    /// Not found or not a folder, or its Git folder holds what is no file.
    pub fn open(folder: &Path) -> Result<Self, SourceError> {
        let tree = Arc::new(DiskTree::open(folder)?);
        let found = git_objects::discover(tree.root())?;
        let top = found.as_ref().and_then(|found| found.workdir()?.canonicalize().ok());
        let below = match &found {
            Some(found) if is_bare_at(found, tree.root()) => Some(""),
            _ => top.as_deref().and_then(|top| tree.root().strip_prefix(top).ok()?.to_str()),
        };
        let below = below.map(|below| below.replace(std::path::MAIN_SEPARATOR, "/"));
        let repository = found.filter(|_| below.is_some()).map(gix::Repository::into_sync);
        let below = below.unwrap_or_default();
        // The remotes of a larger repository are not the addresses of one of its folders.
        let remotes = repository.as_ref().filter(|_| below.is_empty()).map(remote_urls).unwrap_or_default();
        let mut ids: Vec<RepoId> = remotes.iter().filter_map(|url| RepoId::parse(url)).collect();
        ids.extend(tree.root().to_str().and_then(RepoId::parse));
        Ok(Self { tree, repository, below, remotes, ids })
    }

    /// The top folder of the Git work tree that holds a folder, if one does.
    pub fn git_root(folder: &Path) -> Option<PathBuf> {
        git_objects::discover(folder).ok()??.workdir()?.canonicalize().ok()
    }

    /// Whether a folder is a repository without a work tree: it has commits, and no files of its own.
    pub fn is_bare(folder: &Path) -> bool {
        let found = |folder: &Path| Some(is_bare_at(&git_objects::discover(folder).ok()??, folder));
        folder.canonicalize().ok().and_then(|folder| found(&folder)).unwrap_or(false)
    }

    /// The folder, absolute.
    pub fn root(&self) -> &Path {
        self.tree.root()
    }

    /// The files as they are now.
    pub fn tree(&self) -> Arc<dyn FileTree> {
        self.tree.clone()
    }

    /// The addresses of `git remote`.
    pub fn remotes(&self) -> &[String] {
        &self.remotes
    }

    /// Its remotes and its folder, as addresses.
    pub fn ids(&self) -> &[RepoId] {
        &self.ids
    }

    /// The commit that is checked out; empty outside Git or before the first commit.
    pub fn head(&self) -> String {
        let head = self
            .repository
            .as_ref()
            .and_then(|repository| repository.to_thread_local().head_id().ok().map(|id| id.detach()));
        head.map(|id| id.to_string()).unwrap_or_default()
    }

    /// The branch that is checked out; `None` outside Git, and where a commit is checked out without one.
    pub fn branch(&self) -> Option<String> {
        let name = self.repository.as_ref()?.to_thread_local().head_name().ok()??;
        Some(name.shorten().to_str_lossy().into_owned())
    }

    /// The repository, for one thread; `None` outside Git.
    pub(crate) fn local(&self) -> Option<gix::Repository> {
        self.repository.as_ref().map(ThreadSafeRepository::to_thread_local)
    }

    /// The path of a file in the commits of the repository.
    pub(crate) fn path_in_git(&self, file: &str) -> String {
        [self.below.as_str(), file].join("/").trim_matches('/').to_owned()
    }

    /// A commit of it, in place of the files as they are.
    ///
    /// # Errors
    /// Not a Git repository, or no such revision.
    pub fn checkout(&self, url: &str, revision: &str) -> Result<Checkout, SourceError> {
        let repository = self.repository.as_ref().ok_or_else(|| SourceError::Read {
            url: url.to_owned(),
            reason: format!("{} is no Git repository", self.root().display()),
        })?;
        let commit = revisions::resolve_locally(repository, url, revision)?;
        let whole: Arc<dyn FileTree> = Arc::new(git_tree::open(repository.clone(), commit, url)?.tree);
        let tree = if self.below.is_empty() { whole } else { Arc::new(SubTree::new(whole, &self.below)?) };
        Ok(Checkout { tree, revision: commit.to_string(), is_working_tree: false })
    }

    /// Another state than the one at hand, by its branch, tag or commit; `None` where what is at hand stands
    /// for it, as it does on a branch that is to become part of another one, or where a clone without its
    /// branches cannot tell.
    ///
    /// # Errors
    /// There is no such revision, or it cannot be read.
    pub fn checkout_revision(&self, revision: &str) -> Option<Result<Checkout, SourceError>> {
        let repository = self.repository.as_ref()?;
        let local = repository.to_thread_local();
        let short = |name: gix::refs::FullName| name.shorten().to_str_lossy().into_owned();
        let branch = short(local.head_name().ok()??);
        let default = local
            .find_reference("refs/remotes/origin/HEAD")
            .ok()
            .and_then(|head| Some(head.target().try_name()?.shorten().to_str_lossy().into_owned()))
            .map(|name| name.strip_prefix("origin/").unwrap_or(&name).to_owned());
        let is_default = match &default {
            Some(default) => *default == branch,
            None => matches!(branch.as_str(), "main" | "master"),
        };
        if !is_default || revision == branch || matches!(revision, "" | "HEAD") {
            return None;
        }
        match self.checkout(&self.root().display().to_string(), revision) {
            Ok(found) if found.revision == self.head() => None,
            Err(SourceError::UnknownRevision { .. }) if !has_all_branches(&local) => None,
            found => Some(found),
        }
    }

    /// The latest commit that two revisions have in common.
    ///
    /// # Errors
    /// Not a Git repository, no such revision, or nothing in common.
    pub fn merge_base(&self, one: &str, two: &str) -> Result<String, SourceError> {
        let url = self.root().display().to_string();
        let fail = |reason: String| SourceError::Read { url: url.clone(), reason };
        let repository = self.repository.as_ref().ok_or_else(|| fail("it is no Git repository".into()))?;
        let (a, b) = (
            revisions::resolve_locally(repository, &url, one)?,
            revisions::resolve_locally(repository, &url, two)?,
        );
        let local = repository.to_thread_local();
        let base = catch_panic(revisions::REPOSITORY, || local.merge_base(a, b).ok().flatten());
        let base = base.map_err(|panicked| fail(panicked.to_string()))?;
        base.map(|id| id.to_string()).ok_or_else(|| {
            let hint = git_objects::without_history(&local);
            fail(format!("{one} and {two} have no commit in common{hint}"))
        })
    }

    /// The commit if every file of the footprint is as committed; else the commit (or `worktree`),
    /// a plus sign or dash, and a mark of what was read.
    pub fn describe(&self, footprint: &Footprint) -> String {
        let head = self.head();
        if head.is_empty() {
            return format!("worktree-{}", footprint.digest());
        }
        if self.is_as_committed(footprint) { head } else { format!("{head}+{}", footprint.digest()) }
    }

    fn is_as_committed(&self, footprint: &Footprint) -> bool {
        let Some(repository) = &self.repository else { return false };
        let local = repository.to_thread_local();
        let Ok(tree) = local.head_id().and_then(|head| git_objects::tree_of(&local, head.detach())) else {
            return false;
        };
        footprint.seen.iter().all(|(path, seen)| {
            let path = [self.below.as_str(), path].join("/");
            let path = path.trim_matches('/');
            let committed = tree.lookup_entry_by_path(path).ok().flatten();
            match seen {
                PathRecord::File(id) => committed
                    .is_some_and(|entry| entry.object_id().as_slice() == id || entry.mode().is_link()),
                PathRecord::Kind(_) => path.is_empty() || committed.is_some(),
                PathRecord::Nothing => committed.is_none(),
                PathRecord::Folder(names) => {
                    let folder = if path.is_empty() {
                        Some(tree.clone())
                    } else {
                        committed.and_then(|entry| entry.object().ok()?.try_into_tree().ok())
                    };
                    folder.is_some_and(|folder| {
                        folder.iter().flatten().all(|entry| {
                            let name = entry.filename().to_str_lossy();
                            names.iter().any(|known| *known == name)
                        })
                    })
                }
            }
        })
    }
}

fn is_bare_at(repository: &gix::Repository, folder: &Path) -> bool {
    repository.workdir().is_none() && repository.git_dir().canonicalize().is_ok_and(|dir| dir == folder)
}

fn remote_urls(repository: &ThreadSafeRepository) -> Vec<String> {
    let local = repository.to_thread_local();
    let mut urls: Vec<String> = local
        .remote_names()
        .iter()
        .filter_map(|name| local.find_remote(name.as_bstr()).ok())
        .filter_map(|remote| remote.url(Direction::Fetch).map(|url| url.to_bstring().to_string()))
        .collect();
    urls.dedup();
    urls
}
