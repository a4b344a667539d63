//! The repository that a command works on: opening it, and asking what it says.

mod nothing;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use anyhow::{Context as _, bail};
use parking_lot::Mutex;
use tiphys_appset::ClusterInfo;
use tiphys_controller::Checkouts;
use tiphys_graph::{Declarations, Input, Kept, Options, Survey, survey::was_to_declare};
use tiphys_model::Timestamp;
use tiphys_source::{Checkout, RepoId, Repositories, WorkingTree};
use tiphys_value::Value;
use tiphys_vfs::FileTree;

use crate::exit::WrongUse;
pub(crate) use nothing::{nothing_found, out_of_reach};

/// What was given on the command line.
pub(crate) struct Given<'a> {
    /// A folder, or an address that Git takes.
    pub place: &'a str,
    /// Branch, tag or commit, in place of the files as they are.
    pub revision: Option<&'a str>,
    /// Folder or file of the repository to look for Applications in.
    pub path: Option<&'a str>,
    /// Whether `targetRevision` counts for the given repository too.
    pub respect_revisions: bool,
    /// Whether nothing is fetched.
    pub offline: bool,
}

/// A repository that is open.
pub(crate) struct Repository {
    /// Serves it, and what else its Applications name.
    pub repositories: Arc<Repositories>,
    /// Its files.
    pub tree: Arc<dyn FileTree>,
    /// Folder or file of the tree to look for Applications in; empty for all of it.
    pub folder: String,
    /// The folder on disk, if it is one.
    pub root: Option<PathBuf>,
    /// The address that was given, if it was one.
    pub address: Option<String>,
    /// The commit that is served, if one was fetched.
    pub commit: String,
    /// Whether `targetRevision` counts for it too.
    respects_revisions: bool,
    /// What was read of it while it was opened.
    read: Mutex<Kept>,
}

/// The time that all Applications of a run see: two states of a repository are to differ in nothing but their
/// files.
static NOW: LazyLock<Timestamp> = LazyLock::new(Timestamp::now);

/// How a repository is looked at by whoever runs it, or asks what of it would run.
pub(crate) fn to_run() -> Options {
    Options::to_run(*NOW)
}

impl Repository {
    /// Opens what was given.
    ///
    /// # Errors
    /// It cannot be read or fetched, or has no such revision or folder.
    pub(crate) fn open(given: &Given<'_>) -> anyhow::Result<Self> {
        let fetcher = crate::fetch::fetcher_for(given.place, given.offline);
        let repositories = Arc::new(Repositories::new(Some(fetcher), given.respect_revisions));
        if Path::new(given.place).exists() {
            Self::open_folder(given, repositories)
        } else if looks_like_url(given.place) {
            let checkout = repositories.fetch(given.place, given.revision.unwrap_or_default())?;
            repositories.add_address(given.place);
            let address = Some(given.place.to_owned());
            Ok(Self { address, ..Self::at_commit(given, repositories, checkout)? })
        } else {
            bail!("{} does not exist, and it is no address of a Git repository", given.place)
        }
    }

    /// A repository of which one commit is served.
    fn at_commit(
        given: &Given<'_>,
        repositories: Arc<Repositories>,
        checkout: Checkout,
    ) -> anyhow::Result<Self> {
        let (tree, commit) = (checkout.tree.clone(), checkout.revision.clone());
        repositories.give_commit(checkout);
        let folder = folder_of(tree.as_ref(), given.path)?;
        Ok(Self {
            repositories,
            tree,
            folder,
            root: None,
            address: None,
            commit,
            respects_revisions: given.respect_revisions,
            read: Mutex::default(),
        })
    }

    fn open_folder(given: &Given<'_>, repositories: Arc<Repositories>) -> anyhow::Result<Self> {
        let folder =
            Path::new(given.place).canonicalize().with_context(|| format!("cannot open {}", given.place))?;
        if folder.is_file() {
            bail!("{} is a file; give the folder of the repository", given.place);
        }
        if WorkingTree::is_bare(&folder) {
            return Self::open_bare(given, repositories, &folder);
        }
        let (working_tree, prefix, read) = working_tree_of(&folder)?;
        let root = working_tree.root().to_path_buf();
        repositories.add_address(root.to_str().context("the repository's path is not UTF-8")?);
        let path = given.path.map_or_else(|| prefix.clone(), |path| format!("{prefix}/{path}"));
        if let Some(revision) = given.revision {
            let checkout = working_tree.checkout(given.place, revision)?;
            working_tree.remotes().iter().for_each(|id| repositories.add_address(id));
            let given = Given { path: Some(&path), ..*given };
            return Ok(Self { commit: String::new(), ..Self::at_commit(&given, repositories, checkout)? });
        }
        let tree = working_tree.tree();
        repositories.give_working_tree(working_tree);
        let folder = folder_of(tree.as_ref(), Some(&path))?;
        Ok(Self {
            repositories,
            tree,
            folder,
            root: Some(root),
            address: None,
            commit: String::new(),
            respects_revisions: given.respect_revisions,
            read: Mutex::new(read),
        })
    }

    /// A repository without files beside its commits: the commit that was asked for, or its `HEAD`, is what
    /// is there.
    fn open_bare(given: &Given<'_>, repositories: Arc<Repositories>, folder: &Path) -> anyhow::Result<Self> {
        let bare = WorkingTree::open(folder)?;
        let checkout = bare.checkout(given.place, given.revision.unwrap_or("HEAD"))?;
        bare.remotes().iter().for_each(|url| repositories.add_address(url));
        repositories.add_address(folder.to_str().context("the repository's path is not UTF-8")?);
        Self::at_commit(given, repositories, checkout)
    }

    /// What it says as a whole. Addresses that are found to mean it do so from then on.
    pub(crate) fn survey(
        &self,
        options: Options,
        environment: Option<&str>,
        clusters: &[ClusterInfo],
    ) -> Survey {
        self.survey_beside(options, environment, clusters, &Kept::default()).0
    }

    /// The same, and what to keep for another state of the repository. What that one says alike is there
    /// once.
    pub(crate) fn survey_beside(
        &self,
        options: Options,
        environment: Option<&str>,
        clusters: &[ClusterInfo],
        other: &Kept,
    ) -> (Survey, Kept) {
        let asked = Asked { environment, clusters, options, kube_version: "", progress: &|_, _| {} };
        let read = std::mem::take(&mut *self.read.lock()).with_manifests_of(other);
        let (survey, kept) = self.survey_of(self.tree.clone(), &asked, &read);
        survey.adopted.iter().for_each(|url| self.repositories.add_address(url));
        (survey, kept)
    }

    /// What it says in a tree, its own or one made from it, and what to keep for the next time; something may
    /// be kept from the last time.
    pub(crate) fn survey_of(
        &self,
        tree: Arc<dyn FileTree>,
        asked: &Asked<'_>,
        kept: &Kept,
    ) -> (Survey, Kept) {
        let checkouts = Checkouts::new(&self.repositories);
        let input = Input {
            tree,
            folder: &self.folder,
            sources: &checkouts,
            is_given: &|url| self.repositories.is_own_address(url),
            clusters: asked.clusters.to_vec(),
            kube_version: asked.kube_version,
            progress: asked.progress,
            environment: asked.environment,
            settings: None,
            options: Options { at_revisions: self.respects_revisions, ..asked.options },
        };
        Survey::keeping(&input, kept)
    }

    /// What stands in its files. Addresses that these, and what is declared elsewhere, show to mean it do so
    /// from then on; what is to be told of that is returned too.
    pub(crate) fn declarations(&self, elsewhere: &[Value]) -> (Declarations, Option<String>) {
        let declarations = Declarations::read(self.tree.clone(), &self.folder);
        let adoption = declarations.adoption(elsewhere, &|url| self.repositories.is_own_address(url));
        adoption.addresses.iter().for_each(|url| self.repositories.add_address(url));
        (declarations, adoption.notice.map(|notice| notice.to_string()))
    }

    /// Whether it was given as an address, so that its new commits have to be asked for.
    pub(crate) fn is_remote(&self) -> bool {
        self.root.is_none() && self.address.is_some()
    }

    /// Asks the remote for the newest commit; `None` if there is no newer one. Blocking.
    ///
    /// # Errors
    /// The remote does not answer, or does not have the revision any more.
    pub(crate) fn newer(
        repositories: &Repositories,
        address: &str,
        revision: &str,
        known: &str,
    ) -> anyhow::Result<Option<Checkout>> {
        repositories.expire();
        let checkout = repositories.fetch(address, revision)?;
        Ok((checkout.revision != known).then_some(checkout))
    }

    /// Takes up a newer commit of the given repository.
    pub(crate) fn move_to(&mut self, checkout: Checkout) {
        self.tree = checkout.tree.clone();
        self.commit.clone_from(&checkout.revision);
        self.repositories.give_commit(checkout);
    }
}

/// What is asked of a repository.
pub(crate) struct Asked<'a> {
    /// One of several environments that stand side by side, by its name or the end of it.
    pub environment: Option<&'a str>,
    /// Clusters that its own files do not declare.
    pub clusters: &'a [ClusterInfo],
    /// How much is looked at.
    pub options: Options,
    /// The Kubernetes version that charts are rendered for; empty for the newest that is known.
    pub kube_version: &'a str,
    /// Is told how many renderings are done, of how many that are known of.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// A survey in which the environment that was asked for is.
///
/// # Errors
/// It has no such environment.
pub(crate) fn with_environment(survey: Survey) -> Result<Survey, WrongUse> {
    match survey.no_environment {
        Some(why) => Err(WrongUse(why)),
        None => Ok(survey),
    }
}

/// The files that were meant to declare Applications, sets or projects and cannot be read, each with why, and
/// what else is left out for want of a name.
pub(crate) fn faults(survey: &Survey) -> Vec<String> {
    let was_to_declare = |file: &str| survey.files.text(file).is_some_and(|text| was_to_declare(&text));
    let files = survey.faults.iter().filter(|fault| was_to_declare(&fault.file));
    let unnamed = survey.notices.iter().filter(|notice| notice.is_fault()).map(ToString::to_string);
    let files = files.map(|fault| fault.error.full(false).trim_end().to_owned());
    files.chain(unnamed).chain(nothing::unrenderable(survey)).collect()
}

/// What a survey leaves out, or takes otherwise than it stands.
pub(crate) fn notices(survey: &Survey) -> Vec<String> {
    survey.notices.iter().filter(|notice| !notice.is_fault()).map(ToString::to_string).collect()
}

/// The working tree that a folder is or lies in, the folder's path in it, and what was read of it.
///
/// A folder of a larger repository may itself be the root that its Applications' paths count from: a copy of
/// a repository, an example.
fn working_tree_of(folder: &Path) -> anyhow::Result<(Arc<WorkingTree>, String, Kept)> {
    let inner = || Ok((Arc::new(WorkingTree::open(folder)?), String::new(), Kept::default()));
    let Some(git_root) = WorkingTree::git_root(folder).filter(|root| root != folder) else { return inner() };
    let outer = Arc::new(WorkingTree::open(&git_root)?);
    let below = folder.strip_prefix(&git_root).ok().and_then(Path::to_str).unwrap_or_default().to_owned();
    let declarations = Declarations::read(outer.tree(), &below);
    let outside = declarations.named_in(outer.tree().as_ref());
    let inside = declarations.named_in(WorkingTree::open(folder)?.tree().as_ref());
    let remotes: Vec<_> = outer.remotes().iter().filter_map(|url| RepoId::parse(url)).collect();
    let names_it = outside.keys().filter_map(|url| RepoId::parse(url)).any(|id| remotes.contains(&id));
    if !names_it && inside.values().sum::<usize>() > outside.values().sum() {
        return inner();
    }
    Ok((outer, below, declarations.to_keep()))
}

/// The folder or file that `--path` names.
fn folder_of(tree: &dyn FileTree, path: Option<&str>) -> anyhow::Result<String> {
    let folder = tiphys_vfs::normalize(path.unwrap_or_default())?;
    if !tree.is_dir(&folder) && !tree.is_file(&folder) {
        bail!("the repository has no folder or file {folder:?}");
    }
    Ok(folder)
}

fn looks_like_url(place: &str) -> bool {
    place.contains("://")
        || place.split_once(':').is_some_and(|(host, path)| host.contains('@') && !path.is_empty())
}
