//! The repository that a command works on: where it is, what it is called, what is in it.

mod by_hand;
mod catalogue;
mod environments;
mod overlays;
mod put_away;
mod scan;
mod units;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use tiphys_model::settings::RenderSettings;
use tiphys_source::{Checkout, Repositories, WorkingTree};
use tiphys_value::{ObjectExt, Value};
use tiphys_vfs::FileTree;

pub use catalogue::{Catalogue, HOME, Node, Scope, cluster_of, render_one};
pub use environments::{Choice, choose};
use scan::scan;
pub use scan::{Found, Scan};
pub(crate) use units::out_of_reach;

/// What was given on the command line.
pub struct Given<'a> {
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
pub struct Repository {
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
    /// The Applications in it.
    pub scan: Scan,
    /// What is worth saying about how it was understood.
    pub notices: Vec<String>,
    /// Applications and ApplicationSets that are left out because of where they lie: the folder, and their names.
    pub left_out: BTreeMap<String, Vec<String>>,
    /// Whether the Applications were found in what charts and kustomizations render.
    in_units: bool,
    /// An address that means it, whatever Applications call it.
    own: String,
    /// The folders of kustomizations that Applications were found in what they render to.
    overlays: BTreeSet<String>,
}

/// Of ten paths that Applications name under an address, how many have to be here for the address to be that of
/// the repository that was given. Not all: one Application with a wrong path is no reason to see nothing of the
/// others.
const OUT_OF_TEN: usize = 6;

impl Repository {
    /// Opens what was given and finds the Applications in it.
    ///
    /// # Errors
    /// It cannot be read or fetched, or has no such revision or folder.
    pub fn open(given: &Given<'_>) -> anyhow::Result<Self> {
        let fetcher = crate::fetch::fetcher_for(given.place, given.offline);
        let repositories = Arc::new(Repositories::new(Some(fetcher), given.respect_revisions));
        let mut opened = if Path::new(given.place).exists() {
            Self::open_folder(given, repositories)?
        } else if looks_like_url(given.place) {
            Self::open_url(given, repositories)?
        } else {
            bail!("{} does not exist, and it is no address of a Git repository", given.place);
        };
        opened.adopt_addresses();
        Ok(opened)
    }

    /// Opens a folder for what its files, charts and kustomizations declare, and says what of that is left out and what
    /// cannot be read.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_for_declarations(given: &Given<'_>) -> anyhow::Result<Self> {
        let mut opened = Self::open(given)?;
        opened.look_into_units();
        let notices = opened.notices.iter().cloned();
        notices.chain(opened.told_left_out()).for_each(|notice| eprintln!("note: {notice}"));
        opened.scan.faults.iter().for_each(|fault| eprintln!("note: {}", fault.trim_end()));
        Ok(opened)
    }

    fn open_url(given: &Given<'_>, repositories: Arc<Repositories>) -> anyhow::Result<Self> {
        let checkout = repositories.fetch(given.place, given.revision.unwrap_or_default())?;
        let (tree, commit) = (checkout.tree.clone(), checkout.revision.clone());
        repositories.add_address(given.place);
        repositories.give_commit(checkout);
        let folder = folder_of(tree.as_ref(), given.path)?;
        let scan = scan(tree.as_ref(), &folder);
        let address = Some(given.place.to_owned());
        Ok(Self {
            repositories,
            tree,
            folder,
            root: None,
            address,
            own: given.place.to_owned(),
            commit,
            scan,
            notices: Vec::new(),
            left_out: BTreeMap::new(),
            in_units: false,
            overlays: BTreeSet::new(),
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
        let git_root = WorkingTree::git_root(&folder).unwrap_or_else(|| folder.clone());
        let inner = Arc::new(WorkingTree::open(&folder)?);
        let found = scan(inner.tree().as_ref(), "");
        let outer = if git_root == folder { inner.clone() } else { Arc::new(WorkingTree::open(&git_root)?) };
        // A folder of a larger repository may itself be the root that its Applications' paths count
        // from: a copy of a repository, an example.
        let below = folder.strip_prefix(&git_root).ok().and_then(Path::to_str).unwrap_or_default();
        let is_own_root = outer.root() != inner.root()
            && !names_any(&found, outer.remotes())
            && found.sources_in(inner.tree().as_ref()) > found.sources_in(outer.tree().as_ref());
        let (working_tree, prefix) = if is_own_root { (inner, "") } else { (outer, below) };
        let mut tree = working_tree.tree();
        let root = working_tree.root().to_path_buf();
        match given.revision {
            None => repositories.give_working_tree(working_tree),
            Some(revision) => {
                let checkout = working_tree.checkout(given.place, revision)?;
                tree = checkout.tree.clone();
                for id in working_tree.remotes() {
                    repositories.add_address(id);
                }
                repositories.give_commit(checkout);
            }
        }
        let path = given.path.map(|path| format!("{prefix}/{path}")).unwrap_or_else(|| prefix.to_owned());
        let folder = folder_of(tree.as_ref(), Some(&path))?;
        let scan = scan(tree.as_ref(), &folder);
        let own = root.to_str().context("the repository's path is not UTF-8")?.to_owned();
        repositories.add_address(&own);
        let root = given.revision.is_none().then_some(root);
        let (address, commit) = (None, String::new());
        Ok(Self {
            repositories,
            tree,
            folder,
            root,
            address,
            own,
            commit,
            scan,
            notices: Vec::new(),
            left_out: BTreeMap::new(),
            in_units: false,
            overlays: BTreeSet::new(),
        })
    }

    /// A repository without files beside its commits: the commit that was asked for, or its `HEAD`, is what is there.
    fn open_bare(given: &Given<'_>, repositories: Arc<Repositories>, folder: &Path) -> anyhow::Result<Self> {
        let bare = WorkingTree::open(folder)?;
        let checkout = bare.checkout(given.place, given.revision.unwrap_or("HEAD"))?;
        bare.remotes().iter().for_each(|url| repositories.add_address(url));
        let own = folder.to_str().context("the repository's path is not UTF-8")?;
        repositories.add_address(own);
        let (tree, commit) = (checkout.tree.clone(), checkout.revision.clone());
        repositories.give_commit(checkout);
        let folder = folder_of(tree.as_ref(), given.path)?;
        let scan = scan(tree.as_ref(), &folder);
        Ok(Self {
            repositories,
            tree,
            folder,
            root: None,
            address: None,
            own: own.to_owned(),
            commit,
            scan,
            notices: Vec::new(),
            left_out: BTreeMap::new(),
            in_units: false,
            overlays: BTreeSet::new(),
        })
    }

    /// The same for ApplicationSets that are not among its files, as what a chart renders to. Returns what to tell of it.
    pub fn adopt_addresses_of(&mut self, sets: &[Value]) -> Vec<String> {
        let is_known = |set: &Value, found: &Found| {
            found.object.name() == set.name()
                && (found.object.namespace().is_empty() || found.object.namespace() == set.namespace())
        };
        let foreign: Vec<&Value> =
            sets.iter().filter(|set| !self.scan.sets.iter().any(|found| is_known(set, found))).collect();
        let of = |set: &&Value| Found { file: String::new(), line: 0, object: Value::clone(set) };
        let foreign: Vec<Found> = foreign.iter().map(of).collect();
        if foreign.is_empty() {
            return Vec::new();
        }
        self.scan.sets.extend(foreign);
        let known = self.notices.len();
        self.adopt_addresses();
        self.notices.split_off(known)
    }

    /// Takes the address that the Applications use for this repository as one of its own, if `git
    /// remote` does not name it: a copy, a fork, or no clone at all.
    fn adopt_addresses(&mut self) {
        let urls = self.scan.source_urls();
        if urls.keys().any(|url| self.repositories.is_given(url)) {
            return;
        }
        let paths = |url: &String| {
            let mut paths: BTreeSet<String> = self.scan.paths_of(url).into_iter().collect();
            // Every repository has a root.
            paths.retain(|path| !matches!(path.trim_matches('/'), "" | "."));
            paths
        };
        let is_here = |path: &&String| self.tree.is_dir(path);
        let fits = |(here, all): (usize, usize)| here > 0 && here * 10 >= all * OUT_OF_TEN;
        let evidence = |url: &String| {
            let paths = paths(url);
            (paths.iter().filter(is_here).count(), paths.len())
        };
        let counted = urls.keys().map(|url| (url, evidence(url))).filter(|(_, evidence)| fits(*evidence));
        let Some((best, _)) = counted.max_by_key(|(_, (here, _))| *here) else { return };
        // Other spellings of the address: by ssh, at a mirror, of a fork.
        let is_spelling = |url: &&String| {
            let (_, all) = evidence(url);
            owner_and_name(url) == owner_and_name(best)
                || repository_name(url) == repository_name(best) && (all == 0 || fits(evidence(url)))
        };
        let spellings: Vec<&String> = urls.keys().filter(is_spelling).collect();
        let all: BTreeSet<String> = spellings.iter().flat_map(|url| paths(url)).collect();
        let here = all.iter().filter(is_here).count();
        spellings.iter().for_each(|url| self.repositories.add_address(url));
        let which = if here == all.len() { "all".to_owned() } else { format!("{here} of {}", all.len()) };
        self.notices.push(format!(
            "{best} is taken to be this repository: of the paths that Applications name in it, {which} are here"
        ));
    }
}

impl Repository {
    /// Whether edited files hold Applications, or held some.
    pub fn may_define_applications(&self, edits: &[String]) -> bool {
        self.in_units
            || edits.iter().any(|path| {
                path.is_empty()
                    || self.overlays.contains(tiphys_vfs::parent(path).unwrap_or_default())
                    || self.scan.is_found_in(path)
                    || self.tree.read(path).is_ok_and(|bytes| scan::may_define(&bytes))
            })
    }

    /// How many of its files hold objects of other engines than Argo CD, by engine.
    pub fn of_other_engines(&self) -> BTreeMap<&'static str, usize> {
        scan::of_other_engines(self.tree.as_ref(), &self.folder)
    }

    /// Whether it was given as an address, so that its new commits have to be asked for.
    pub fn is_remote(&self) -> bool {
        self.root.is_none() && self.address.is_some()
    }

    /// Asks the remote for the newest commit; `None` if there is no newer one. Blocking.
    ///
    /// # Errors
    /// The remote does not answer, or does not have the revision any more.
    pub fn newer(
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
    pub fn move_to(&mut self, checkout: Checkout) {
        self.tree = checkout.tree.clone();
        self.commit.clone_from(&checkout.revision);
        self.repositories.give_commit(checkout);
    }

    /// What its files say of the renderers by now.
    pub fn render_settings(&self) -> RenderSettings {
        scan(self.tree.as_ref(), &self.folder).render_settings()
    }

    /// Looks for Applications again.
    pub fn scan_again(&mut self) {
        let more_clusters = std::mem::take(&mut self.scan.more_clusters);
        self.scan = scan(self.tree.as_ref(), &self.folder);
        self.scan.more_clusters = more_clusters;
        self.look_into_units();
    }
}

/// Whether any Application has one of these addresses as its repository.
fn names_any(scan: &Scan, remotes: &[String]) -> bool {
    let ids: Vec<_> = remotes.iter().filter_map(|url| tiphys_source::RepoId::parse(url)).collect();
    scan.source_urls().keys().filter_map(|url| tiphys_source::RepoId::parse(url)).any(|id| ids.contains(&id))
}

/// The last step of an address, without `.git`.
fn repository_name(url: &str) -> String {
    let last = url.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    last.trim_end_matches(".git").to_ascii_lowercase()
}

/// The last two steps of an address: whose the repository is, and its name.
fn owner_and_name(url: &str) -> Option<(String, String)> {
    let above = url.trim_end_matches('/').rsplit_once(['/', ':'])?.0;
    let owner = above.rsplit(['/', ':']).next()?;
    Some((owner.to_ascii_lowercase(), repository_name(url)))
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
