//! Fetching repositories with Git, and reading revisions of what was fetched.

use std::{
    any::Any,
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    path::{Path, PathBuf},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gix::{
    ObjectId, ThreadSafeRepository,
    bstr::{BStr, BString},
    protocol::transport::client::blocking_io::http,
    remote::Direction,
};
use parking_lot::{Mutex, MutexGuard};

use sha1::{Digest as _, Sha1};
use tiphys_diag::chain;
use tiphys_vfs::FileTree;

use crate::{
    Access, AccessTable, Checkout, Keyring, LocalRepositories, RepoId, Signed, SignedRevision, SourceError,
    git_credentials, git_objects,
    git_requests::Counts,
    git_tree,
    host_backoff::Pauses,
    remote::{with_advice, with_transport},
    revisions::{parse_revision, resolve},
    signatures, ssh,
    submodules::{MountedTree, submodules},
    token_login::Logins,
};

/// A fetch that takes longer is broken off.
const FETCH_TIMEOUT: Duration = Duration::from_secs(120);
/// How deep submodules may have submodules.
const MAX_SUBMODULE_DEPTH: usize = 8;

/// How a repository is to be had.
#[derive(Clone, Copy, Debug)]
pub struct CheckoutOptions {
    /// How long one fetch may take; two minutes by default.
    pub limit: Duration,
    /// Whether its submodules are wanted; by default they are.
    pub submodules: bool,
    /// For who needs one revision of a repository and none of its history: only that commit is fetched, as
    /// `git fetch --depth=1` does. Of a repository that is here as a whole, of one whose host does not hand
    /// out single commits, and of revisions that are no names, all is fetched.
    pub shallow: bool,
}

impl Default for CheckoutOptions {
    fn default() -> Self {
        Self { limit: FETCH_TIMEOUT, submodules: true, shallow: false }
    }
}

/// How a repository is to be had, and how many repositories it is a submodule of.
#[derive(Clone, Copy)]
struct How {
    options: CheckoutOptions,
    depth: usize,
}

/// What is fetched of a repository.
#[derive(Clone, Debug)]
enum Extent {
    /// All branches and tags with their history.
    All,
    /// The newest commit of a branch or tag, of `HEAD` where it is empty, or the commit that it names.
    One(String),
}

/// Repositories fetched into a folder, one bare repository for each address.
pub struct GitCache {
    folder: PathBuf,
    /// When each address was fetched last; also the lock that makes fetches of one address wait.
    fetched: Mutex<BTreeMap<RepoId, Stamp>>,
    /// Addresses that the next use has to ask, however fresh they are.
    stale: Mutex<BTreeSet<RepoId>>,
    /// The same of single commits, by address and revision.
    newest: Mutex<BTreeMap<(RepoId, String), Stamp>>,
    /// How long a fetched state serves before the remote is asked again.
    fresh_for: Duration,
    access: AccessTable,
    logins: Logins,
    /// Whether the user's own Git is asked for a login where none is known.
    asks_git: bool,
    /// The folders of this machine that may serve as repositories.
    local: LocalRepositories,
    /// The program that reaches hosts by ssh.
    ssh: String,
    counts: Counts,
    /// What was checked out lately, the newest last.
    opened: Mutex<Vec<(Commit, Slot)>>,
    /// Commits that have too many files: to find that out takes seconds, and is the same each time.
    refused: Mutex<BTreeSet<ObjectId>>,
    /// Remotes that failed a moment ago.
    pauses: Pauses,
}

/// When something was fetched last, and that it has to be asked for again.
type Stamp = Arc<Mutex<Option<Instant>>>;

/// A checkout that is made once; who comes meanwhile waits for it.
type Slot = Arc<Mutex<Option<Checkout>>>;

/// How many checkouts are kept open. Each is a list of the files of one commit.
const KEPT_OPEN: usize = 16;

/// One commit of one repository: what a checkout is a function of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Commit {
    repository: PathBuf,
    url: String,
    id: ObjectId,
    submodules: bool,
}

impl GitCache {
    /// Uses a folder, which is made when first needed. Within `fresh_for` of a fetch the remote is
    /// not asked again.
    pub fn new(folder: impl Into<PathBuf>, fresh_for: Duration) -> Self {
        Self {
            folder: folder.into(),
            fetched: Mutex::default(),
            stale: Mutex::default(),
            newest: Mutex::default(),
            fresh_for,
            access: AccessTable::default(),
            logins: Logins::default(),
            asks_git: false,
            local: LocalRepositories::default(),
            ssh: "ssh".to_owned(),
            counts: Counts::default(),
            opened: Mutex::default(),
            refused: Mutex::default(),
            pauses: Pauses::with_freshness(fresh_for),
        }
    }

    /// Uses user names and passwords for `https://` addresses; `ssh` has its agent and its own files.
    pub fn with_access(mut self, access: AccessTable) -> Self {
        self.access = access;
        self
    }

    /// Asks the credential helpers of the user's own Git where a host wants a login and none is known: for
    /// who runs commands as a person.
    pub fn with_git_credentials(mut self) -> Self {
        self.asks_git = true;
        self
    }

    /// Lets addresses name folders of this machine; otherwise none may.
    pub fn with_local_repositories(mut self, local: LocalRepositories) -> Self {
        self.local = local;
        self
    }

    /// Reaches hosts by ssh with another program than `ssh`: one that takes the same arguments.
    pub fn with_ssh(mut self, program: impl Into<String>) -> Self {
        self.ssh = program.into();
        self
    }

    /// Counts together with others.
    pub(crate) fn with_counts(mut self, counts: Counts) -> Self {
        self.counts = counts;
        self
    }

    /// Forgets how fresh everything is, so that the next use fetches.
    pub fn expire(&self) {
        let all: Vec<RepoId> = self.fetched.lock().keys().cloned().collect();
        self.stale().extend(all);
        self.pauses.end();
        self.newest.lock().clear();
    }

    /// The same for one address.
    pub fn expire_address(&self, url: &str) {
        if let Some(id) = RepoId::parse(url) {
            self.newest.lock().retain(|(known, _), _| *known != id);
            self.stale().insert(id);
        }
        self.pauses.end();
    }

    /// Asks remotes again that failed a moment ago.
    pub(crate) fn end_pauses(&self) {
        self.pauses.end();
    }

    fn stale(&self) -> MutexGuard<'_, BTreeSet<RepoId>> {
        self.stale.lock()
    }

    /// A repository at a revision, with its submodules: branch, tag, commit (also shortened), `HEAD`,
    /// or empty for `HEAD`; a SemVer range means the highest tag that satisfies it.
    ///
    /// # Errors
    /// Unreachable, refused, or no such revision; also of a submodule.
    pub fn checkout(&self, url: &str, revision: &str) -> Result<Checkout, SourceError> {
        self.checkout_with(url, revision, CheckoutOptions::default())
    }

    /// As [`GitCache::checkout`], in another way than the usual one.
    ///
    /// # Errors
    /// As there.
    pub fn checkout_with(
        &self,
        url: &str,
        revision: &str,
        options: CheckoutOptions,
    ) -> Result<Checkout, SourceError> {
        self.checkout_at(url, revision, How { options, depth: 0 })
    }

    /// The one commit of a revision; `None` if it cannot be had alone.
    fn checkout_one(
        &self,
        id: &RepoId,
        url: &str,
        revision: &str,
        how: How,
    ) -> Result<Option<Checkout>, SourceError> {
        let whole = self.folder.join(folder_of(id));
        let is_name = revision.is_empty() || gix::refs::PartialName::try_from(revision).is_ok();
        if !is_name || whole.join("HEAD").is_file() {
            return Ok(None);
        }
        let key = (id.clone(), revision.to_owned());
        let stamp = stamp_of(&self.newest, key);
        let mut stamp = stamp.lock();
        let path = self.folder.join("newest").join(format!("{}@{}", folder_of(id), digest(revision)));
        let repository = open_or_init(&path, url)?;
        let known = is_commit_id(revision) && resolve(&repository, url, revision).is_ok();
        if !known && !stamp.is_some_and(|at| at.elapsed() < self.fresh_for) {
            if self.pauses.running(url).is_some() {
                return Ok(None);
            }
            match self.fetch(&repository, url, Extent::One(revision.to_owned()), how.options.limit) {
                Ok(()) => *stamp = Some(Instant::now()),
                Err(timeout @ SourceError::Timeout { .. }) => return Err(timeout),
                // Why all of it cannot be had either says more.
                Err(_) => return Ok(None),
            }
        }
        drop(stamp);
        match resolve(&repository, url, revision) {
            Ok(_) => self.with_submodules(&repository, url, revision, how).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The signatures that count for a commit that was checked out as a revision, as far as its repository
    /// was fetched.
    ///
    /// # Errors
    /// It was not, or cannot be read.
    pub fn signatures(&self, of: SignedRevision<'_>, keyring: &Keyring) -> Result<Vec<Signed>, SourceError> {
        let SignedRevision { url, revision, commit, extent } = of;
        let id = RepoId::parse(url).ok_or_else(|| bad_url(url, "it is empty"))?;
        let repository = match id.is_folder() {
            true => self.open_folder(url)?,
            false => open_or_init(&self.folder.join(folder_of(&id)), url)?,
        };
        let local = repository.to_thread_local();
        let known = parse_revision(&local, url, revision).ok().filter(|named| named.commit == commit);
        // A branch that has moved on since is asked by the commit that it was at.
        let named = known.map_or_else(|| parse_revision(&local, url, commit), Ok)?;
        signatures::signatures(&local, (&named.name, named.object), extent, keyring)
            .map_err(|error| read_error(url, &error))
    }

    fn fetch(
        &self,
        repository: &ThreadSafeRepository,
        url: &str,
        extent: Extent,
        limit: Duration,
    ) -> Result<(), SourceError> {
        let began = Instant::now();
        let fetched = self.fetch_uncounted(repository, url, &extent, limit);
        self.counts.record_request(url, began.elapsed(), &fetched);
        fetched
    }

    fn fetch_uncounted(
        &self,
        repository: &ThreadSafeRepository,
        url: &str,
        extent: &Extent,
        limit: Duration,
    ) -> Result<(), SourceError> {
        let access = self.logins.git(url, self.access.lookup(url)).map_err(|e| fetch_failed(url, e))?;
        let keys = self.folder.join("keys");
        let call = is_ssh(url).then(|| ssh::Call::prepare(&self.ssh, &access, &keys)).transpose();
        let call = call.map_err(|reason| fetch_failed(url, reason))?;
        let fetched = fetch(repository, url, &access, call.as_ref().map(ssh::Call::command), extent, limit);
        let said = call.filter(|_| matches!(fetched, Err(SourceError::Fetch { .. })));
        if let Some(fault) = said.and_then(|call| call.fault(url)) {
            return Err(fault);
        }
        match fetched {
            Err(SourceError::Login { .. })
                if self.asks_git && url.starts_with("http") && !access.has_credentials() =>
            {
                let Some(filled) = git_credentials::with_helper_login(url, &access) else { return fetched };
                fetch(repository, url, &filled, None, extent, limit)
            }
            fetched => fetched,
        }
    }

    /// A repository that an address names as a folder.
    fn open_folder(&self, url: &str) -> Result<ThreadSafeRepository, SourceError> {
        let path = url.trim().strip_prefix("file://").unwrap_or(url.trim());
        if !self.local.permits(Path::new(path)) {
            return Err(SourceError::LocalFolder { url: url.to_owned() });
        }
        let options = git_objects::with_object_limit(gix::open::Options::default());
        ThreadSafeRepository::open_opts(path, options).map_err(|e| read_error(url, &e))
    }

    fn checkout_at(&self, url: &str, revision: &str, how: How) -> Result<Checkout, SourceError> {
        let id = RepoId::parse(url).ok_or_else(|| bad_url(url, "it is empty"))?;
        if id.is_folder() {
            return self.with_submodules(&self.open_folder(url)?, url, revision, how);
        }
        if how.options.shallow
            && let Some(checkout) = self.checkout_one(&id, url, revision, how)?
        {
            return Ok(checkout);
        }
        let stamp = stamp_of(&self.fetched, id.clone());
        let mut stamp = stamp.lock();
        let path = self.folder.join(folder_of(&id));
        let repository = open_or_init(&path, url)?;
        let known = is_commit_id(revision) && resolve(&repository, url, revision).is_ok();
        // A fetch that was under way when somebody asked for another may have begun before what it is to
        // bring.
        let asked = self.stale().remove(&id);
        let fresh = !asked && stamp.is_some_and(|at| at.elapsed() < self.fresh_for);
        if !known && !fresh {
            self.pauses.ask(url, || self.fetch(&repository, url, Extent::All, how.options.limit))?;
            *stamp = Some(Instant::now());
        }
        drop(stamp);
        self.with_submodules(&repository, url, revision, how)
    }

    fn with_submodules(
        &self,
        repository: &ThreadSafeRepository,
        url: &str,
        revision: &str,
        how: How,
    ) -> Result<Checkout, SourceError> {
        let commit = resolve(repository, url, revision)?;
        let slot = self.slot(Commit {
            repository: repository.path().to_owned(),
            url: url.to_owned(),
            id: commit,
            submodules: how.options.submodules,
        });
        let mut slot = slot.lock();
        if let Some(opened) = &*slot {
            return Ok(opened.clone());
        }
        let made = self.open(repository, commit, url, how)?;
        *slot = Some(made.clone());
        Ok(made)
    }

    /// Where the checkout of a commit is or will be. A thousand Applications read one commit; its files are
    /// listed once.
    fn slot(&self, wanted: Commit) -> Slot {
        let mut opened = self.opened.lock();
        let known = opened.iter().position(|(commit, _)| *commit == wanted);
        let entry = known.map_or_else(|| (wanted, Slot::default()), |at| opened.remove(at));
        let slot = entry.1.clone();
        opened.push(entry);
        let extra = opened.len().saturating_sub(KEPT_OPEN);
        opened.drain(..extra);
        slot
    }

    fn open(
        &self,
        repository: &ThreadSafeRepository,
        commit: ObjectId,
        url: &str,
        how: How,
    ) -> Result<Checkout, SourceError> {
        let listed = self.list(repository, commit, url)?;
        let tree: Arc<dyn FileTree> = Arc::new(listed.tree);
        let mut mounts = BTreeMap::new();
        let wanted =
            if how.options.submodules { submodules(listed.submodules, url, &*tree)? } else { Vec::new() };
        for submodule in wanted {
            if how.depth >= MAX_SUBMODULE_DEPTH {
                let reason = format!("submodules lie deeper than {MAX_SUBMODULE_DEPTH} levels");
                return Err(SourceError::Read { url: url.to_owned(), reason });
            }
            let checkout =
                self.checkout_at(&submodule.url, &submodule.commit, How { depth: how.depth + 1, ..how })?;
            mounts.insert(submodule.path, checkout.tree);
        }
        let tree = if mounts.is_empty() { tree } else { Arc::new(MountedTree::new(tree, mounts)) };
        Ok(Checkout { tree, revision: commit.to_string(), is_working_tree: false })
    }

    fn list(
        &self,
        repository: &ThreadSafeRepository,
        commit: ObjectId,
        url: &str,
    ) -> Result<git_tree::Commit, SourceError> {
        let refused = || self.refused.lock();
        if refused().contains(&commit) {
            return Err(SourceError::TooMany { url: url.to_owned() });
        }
        let listed = git_tree::open(repository.clone(), commit, url);
        if let Err(SourceError::TooMany { .. }) = listed {
            refused().insert(commit);
        }
        listed
    }
}

/// When something was fetched last.
fn stamp_of<K: Ord>(stamps: &Mutex<BTreeMap<K, Stamp>>, of: K) -> Stamp {
    stamps.lock().entry(of).or_default().clone()
}

/// The name of the folder in which an address is kept.
fn folder_of(id: &RepoId) -> String {
    id.to_string().replace(['/', ':'], "_")
}

/// A revision as part of a file's name.
fn digest(revision: &str) -> String {
    Sha1::digest(revision.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a revision is the whole id of a commit.
pub fn is_commit_id(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

fn open_or_init(path: &Path, url: &str) -> Result<ThreadSafeRepository, SourceError> {
    let options = git_objects::with_object_limit(gix::open::Options::isolated());
    if path.join("HEAD").is_file() {
        ThreadSafeRepository::open_opts(path, options).map_err(|e| read_error(url, &e))
    } else {
        let bare = gix::create::Options::default();
        std::fs::create_dir_all(path).map_err(|e| read_error(url, &e))?;
        ThreadSafeRepository::init_opts(path, gix::create::Kind::Bare, bare, options)
            .map_err(|e| read_error(url, &e))
    }
}

/// Whether Git reaches an address by ssh.
fn is_ssh(url: &str) -> bool {
    gix::url::parse(BStr::new(url)).is_ok_and(|url| url.scheme == gix::url::Scheme::Ssh)
}

/// Fetches branches and tags; the remote's `HEAD` is kept as `refs/remotes/origin/HEAD`.
fn fetch(
    repository: &ThreadSafeRepository,
    url: &str,
    access: &Access,
    shell: Option<&str>,
    extent: &Extent,
    limit: Duration,
) -> Result<(), SourceError> {
    let fail = |error: String| fetch_failed(url, error);
    if access.proxy.is_some() && !url.starts_with("https://") && !url.starts_with("http://") {
        return Err(fail("its credentials say proxy, which is not supported for ssh".to_owned()));
    }
    // In a thread of its own, which ends by itself later: a host that takes the connection and then says
    // nothing holds it for as long as the HTTP client likes.
    let interrupt = Arc::new(AtomicBool::new(false));
    let (done, finished) = mpsc::channel();
    let job = {
        let (repository, url, access) = (repository.clone(), url.to_owned(), access.clone());
        let (shell, extent, interrupt) = (shell.map(str::to_owned), extent.clone(), interrupt.clone());
        move || {
            // Nobody listens any more once the limit has passed.
            let _ = done.send(fetch_now(&repository, &url, &access, shell.as_deref(), &extent, &interrupt));
        }
    };
    std::thread::Builder::new().name("git fetch".into()).spawn(job).map_err(|e| fail(e.to_string()))?;
    match finished.recv_timeout(limit) {
        Ok(result) => result.map_err(|failed| match failed {
            FetchFault::Login(reason) => SourceError::Login { url: url.to_owned(), reason },
            FetchFault::Other(reason) => fail(reason),
        }),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            interrupt.store(true, Ordering::Relaxed);
            Err(SourceError::Timeout { url: url.to_owned(), limit })
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(fail("the fetch broke off".to_owned())),
    }
}

/// Why a fetch failed.
enum FetchFault {
    /// The host wants another login, or one at all: to ask again changes nothing, and may lock an account.
    Login(&'static str),
    /// Anything else, in Git's words.
    Other(String),
}

impl From<String> for FetchFault {
    fn from(text: String) -> Self {
        // So says ssh of a host that takes none of the keys.
        match text.contains("Permission denied (") {
            true => Self::Login("the host takes none of the keys that are known for it"),
            false => Self::Other(text),
        }
    }
}

fn fetch_now(
    repository: &ThreadSafeRepository,
    url: &str,
    access: &Access,
    shell: Option<&str>,
    extent: &Extent,
    interrupt: &AtomicBool,
) -> Result<(), FetchFault> {
    // Without one gix panics at the first address; whoever comes first sets it, they are all the same.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut local = repository.to_thread_local();
    if let Some(command) = shell {
        let mut config = local.config_snapshot_mut();
        config.set_raw_value("core.sshCommand", command).map_err(|e| chain(&e))?;
        config.commit().map_err(|e| chain(&e))?;
    }
    let mut identity = identity(access);
    let has_login = identity.is_some() || access.bearer_token.is_some();
    // Of a repository's Secret a token is sent as such; hosts differ in which user it would be the password
    // of.
    if let Some(token) = &access.bearer_token {
        authorize(&mut local, &format!("Bearer {token}")).map_err(|e| chain(&*e))?;
    } else if url.starts_with("http://")
        && let Some(account) = identity.take()
    {
        // For hosts inside of a cluster, which many have no certificate: without TLS gix sends no login,
        // while Git does.
        let login = STANDARD.encode(format!("{}:{}", account.username, account.password));
        authorize(&mut local, &format!("Basic {login}")).map_err(|e| chain(&*e))?;
    }
    let remote = local
        .remote_at(url)
        .map_err(|e| chain(&e))?
        .with_refspecs(extent.specs().iter().map(String::as_str), Direction::Fetch)
        .map_err(|e| chain(&e))?
        // Which tags are wanted, the refspecs say; with tags that follow commits, hosts that do not know
        // `include-tag` could not be asked at all.
        .with_fetch_tags(gix::remote::fetch::Tags::None);
    let mut connection = remote.connect(Direction::Fetch).map_err(|e| chain(&e))?;
    if access.has_transport()
        && let Some(options) = transport_options(&local, url, access).map_err(|e| chain(&e))?
    {
        connection.set_transport_options(options);
    }
    // Nobody sits at a terminal to be asked for a password.
    let asked_in_vain = Rc::new(Cell::new(false));
    let asked = asked_in_vain.clone();
    connection.set_credentials(move |action| match (action, &identity) {
        (gix::credentials::helper::Action::Get(context), Some(identity)) => {
            let identity = identity.clone();
            Ok(Some(gix::credentials::protocol::Outcome { identity, next: context.into() }))
        }
        (action, _) => {
            asked.set(asked.get() || matches!(action, gix::credentials::helper::Action::Get(_)));
            Ok(None)
        }
    });
    let prepared = connection
        .prepare_fetch(gix::progress::Discard, gix::remote::ref_map::Options::default())
        .map_err(|e| match (asked_in_vain.get(), has_login) {
            (true, true) => FetchFault::Login("the host refuses the login that is known for it"),
            (true, false) => FetchFault::Login("the host wants a login, and none is known for it"),
            (false, _) => chain(&e).into(),
        })?;
    let present = prepared.ref_map().mappings.iter().filter_map(|mapping| mapping.local.clone()).collect();
    forget_deleted(&local, &present).map_err(|e| chain(&*e))?;
    prepared
        .with_shallow(extent.depth())
        .receive(gix::progress::Discard, interrupt)
        .map_err(|e| chain(&e))?;
    Ok(())
}

/// How gix reaches a host by HTTP, with what an access says of certificates and of a proxy; `None` for other
/// ways.
fn transport_options(
    repository: &gix::Repository,
    url: &str,
    access: &Access,
) -> gix::Result<Option<Box<dyn Any>>> {
    let Some(options) = repository.transport_options(url, None)? else { return Ok(None) };
    let Ok(mut options) = options.downcast::<http::Options>() else { return Ok(None) };
    let access = access.clone();
    let backend = http::reqwest::Options {
        configure_client: Some(Box::new(move |builder| {
            with_transport(builder, &access)
                .map_err(|reason| gix::Error::from_error(std::io::Error::other(reason)))
        })),
        ..http::reqwest::Options::default()
    };
    options.backend = Some(Arc::new(std::sync::Mutex::new(backend)));
    Ok(Some(options))
}

impl Extent {
    /// What is fetched, and the names under which it is kept.
    fn specs(&self) -> Vec<String> {
        let texts = |specs: &[&str]| specs.iter().map(|spec| (*spec).to_owned()).collect();
        match self {
            Self::All => texts(&[
                "+HEAD:refs/remotes/origin/HEAD",
                "+refs/heads/*:refs/remotes/origin/*",
                "+refs/tags/*:refs/tags/*",
            ]),
            Self::One(name) if name.is_empty() || name == "HEAD" => {
                texts(&["+HEAD:refs/remotes/origin/HEAD"])
            }
            Self::One(commit) if is_commit_id(commit) => vec![format!("+{commit}:refs/commits/{commit}")],
            Self::One(name) => vec![
                format!("+refs/heads/{name}:refs/remotes/origin/{name}"),
                format!("+refs/tags/{name}:refs/tags/{name}"),
            ],
        }
    }

    fn depth(&self) -> gix::remote::fetch::Shallow {
        match self {
            Self::All => gix::remote::fetch::Shallow::NoChange,
            Self::One(_) => gix::remote::fetch::Shallow::DepthAtRemote(NonZeroU32::MIN),
        }
    }
}

/// Forgets the branches and tags that the host has no more: they would be served for ever, and `a` would
/// stand in the way of `a/b`.
fn forget_deleted(
    repository: &gix::Repository,
    present: &BTreeSet<BString>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    for prefix in ["refs/remotes/origin/", "refs/tags/"] {
        let known: Vec<_> = repository.references()?.prefixed(prefix)?.collect::<Result<_, _>>()?;
        for reference in known.into_iter().filter(|known| !present.contains(known.name().as_bstr())) {
            reference.delete()?;
        }
    }
    Ok(())
}

/// Sends a login with each request. Nobody is sent on to another address with it.
fn authorize(
    repository: &mut gix::Repository,
    login: &str,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut config = repository.config_snapshot_mut();
    config.set_raw_value("http.extraHeader", format!("Authorization: {login}").as_str())?;
    config.set_raw_value("http.followRedirects", "false")?;
    config.commit()?;
    Ok(())
}

/// Who we are to an HTTP server that asks for a user.
fn identity(access: &Access) -> Option<gix::sec::identity::Account> {
    let password = access.password.clone()?;
    let username = access.username.clone().unwrap_or_else(|| "x-access-token".to_owned());
    Some(gix::sec::identity::Account { username, password, oauth_refresh_token: None })
}

fn fetch_failed(url: &str, reason: String) -> SourceError {
    SourceError::Fetch { url: url.to_owned(), reason: with_advice(reason) }
}

fn bad_url(url: &str, reason: &str) -> SourceError {
    SourceError::BadUrl { url: url.to_owned(), reason: reason.to_owned() }
}

fn read_error(url: &str, error: &dyn std::error::Error) -> SourceError {
    SourceError::Read { url: url.to_owned(), reason: chain(error) }
}
