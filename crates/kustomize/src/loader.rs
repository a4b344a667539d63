//! Finding files and folders for one kustomization, within what it may name.

use std::sync::Arc;

use tiphys_gocompat::regex::{Regex, quote_meta};
use tiphys_vfs::{FileTree, VfsError, VfsErrorKind};

use crate::{
    error::{Error, ErrorKind, Result},
    meter::Waited,
    options::{BuildOptions, LoadRestrictor, RemoteError},
    provenance::join_clean,
    repo_url::RepoUrl,
    similar_files,
};

/// The tree that a loader reads: the caller's, or that of a remote repository.
#[derive(Clone)]
pub(crate) enum Tree<'a> {
    Given(&'a dyn FileTree),
    Remote(Arc<dyn FileTree>),
}

impl Tree<'_> {
    /// The tree.
    pub(crate) fn get(&self) -> &dyn FileTree {
        match self {
            Self::Given(tree) => *tree,
            Self::Remote(tree) => tree.as_ref(),
        }
    }
}

/// Reads files for the kustomization in one folder.
#[derive(Clone)]
pub(crate) struct Loader<'a> {
    tree: Tree<'a>,
    /// Canonical path of the folder in the tree.
    root: String,
    /// The absolute path of the tree's root without its last slash, for texts.
    display_root: Option<String>,
    restrictor: LoadRestrictor,
    /// Folders of the kustomizations that led here, with the tree they stand in.
    visited: Vec<(Option<String>, String)>,
    /// URLs of repositories that led here.
    repositories: Vec<String>,
    options: &'a BuildOptions,
    /// The time that is not the build's.
    waited: Waited,
}

impl<'a> Loader<'a> {
    /// A loader for the kustomization that is built.
    ///
    /// # Errors
    /// The folder is missing, or a file.
    pub(crate) fn new(
        tree: &'a dyn FileTree,
        dir: &str,
        options: &'a BuildOptions,
        waited: &Waited,
    ) -> Result<Self> {
        let loader = Self {
            tree: Tree::Given(tree),
            root: String::new(),
            display_root: Some(options.display_root.as_str())
                .filter(|root| !root.is_empty())
                .map(|root| root.trim_end_matches('/').to_owned()),
            restrictor: options.load_restrictor,
            visited: Vec::new(),
            repositories: Vec::new(),
            options,
            waited: waited.clone(),
        };
        let root = loader.confirm_dir(dir)?;
        Ok(Self { root, ..loader })
    }

    /// The folder, as texts name it.
    pub(crate) fn root(&self) -> String {
        self.display(&self.root)
    }

    /// The tree.
    pub(crate) fn tree(&self) -> &dyn FileTree {
        self.tree.get()
    }

    /// The folder, as a path of the tree.
    pub(crate) fn folder(&self) -> &str {
        &self.root
    }

    /// Whether the tree was fetched because a kustomization names its address.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.tree, Tree::Remote(_))
    }

    /// Folders above this one in the chain of kustomizations.
    pub(crate) fn depth(&self) -> usize {
        self.visited.len()
    }

    /// A path of the tree as texts name it.
    fn display(&self, path: &str) -> String {
        match (&self.display_root, path) {
            (None, "") => ".".to_owned(),
            (None, path) => path.to_owned(),
            (Some(root), "") if root.is_empty() => "/".to_owned(),
            (Some(root), "") => root.clone(),
            (Some(root), path) => format!("{root}/{path}"),
        }
    }

    /// A path relative to the folder as texts name it; it may lead out of the tree.
    fn display_joined(&self, path: &str) -> String {
        if path.starts_with('/') {
            return join_clean("", path);
        }
        let root = self.root();
        join_clean(if root == "." { "" } else { &root }, path)
    }

    /// A path relative to the folder, or absolute, as a path of the tree. `None` outside.
    fn in_tree(&self, path: &str) -> Option<String> {
        if path.starts_with('/') {
            let clean = join_clean("", path);
            let below = clean.strip_prefix(self.display_root.as_deref()?)?;
            return Some(below.trim_start_matches('/').to_owned());
        }
        tiphys_vfs::join(&self.root, path).ok()
    }

    /// The file at a path as texts of origins name it: its path in the tree.
    pub(crate) fn file_name(&self, path: &str) -> String {
        if is_http(path) {
            return path.to_owned();
        }
        self.in_tree(path).unwrap_or_else(|| path.to_owned())
    }

    /// Reads a file (`FileLoader.Load`).
    ///
    /// # Errors
    /// Missing, a folder, outside of what may be read, or not to be had.
    pub(crate) fn load(&self, path: &str) -> Result<Arc<[u8]>> {
        if is_http(path) {
            return self.load_http(path);
        }
        let shown = self.display_joined(path);
        let Some(inside) = self.in_tree(path) else { return Err(self.outside(&shown)) };
        match self.restrictor {
            LoadRestrictor::None => {
                let suggests = RepoUrl::parse(path).is_none();
                self.tree().read(&inside).map_err(|error| self.open_error(&inside, &shown, &error, suggests))
            }
            LoadRestrictor::RootOnly => self.load_restricted(&inside, &shown, RepoUrl::parse(path).is_none()),
        }
    }

    /// Reads a file that may be missing, of which nobody asks why it cannot be read.
    pub(crate) fn load_if_present(&self, path: &str) -> Option<Arc<[u8]>> {
        if self.exists(path) { self.load(path).ok() } else { None }
    }

    /// `suggests` is false for what may as well be an address, for which nothing is looked for.
    fn load_restricted(&self, inside: &str, shown: &str, suggests: bool) -> Result<Arc<[u8]>> {
        let found = self
            .tree()
            .canonical(inside)
            .map_err(|error| self.link_error(inside, shown, &error, suggests))?;
        if self.tree().is_dir(&found) {
            return Err(Error::new(ErrorKind::Load, format!("'{shown}' must resolve to a file")));
        }
        let folder = tiphys_vfs::parent(&found).unwrap_or_default();
        if !is_below(folder, &self.root) {
            return Err(self.outside(shown));
        }
        self.tree().read(&found).map_err(|error| self.open_error(&found, shown, &error, suggests))
    }

    fn outside(&self, shown: &str) -> Error {
        let root = self.root();
        Error::new(ErrorKind::Restricted, format!("security; file '{shown}' is not in or below '{root}'"))
            .advise("move the file below the kustomization, or make a kustomization beside it and list its folder")
            .advise("allow it with `--load-restrictor LoadRestrictionsNone`, if the tree is trusted")
    }

    /// The text of Go's `EvalSymlinks` for a path that cannot be resolved.
    fn link_error(&self, inside: &str, shown: &str, error: &VfsError, suggests: bool) -> Error {
        let is_missing = error.is_not_found();
        let cause = match error.kind {
            VfsErrorKind::NotFound | VfsErrorKind::NotDir => self.missing_step(inside),
            VfsErrorKind::OutsideTree => return self.outside(shown),
            _ => error.kind.to_string(),
        };
        let error = Error::new(ErrorKind::Load, format!("evalsymlink failure on '{shown}' : {cause}"));
        let error = if is_missing { error.missing(inside) } else { error };
        if suggests { self.with_nearest(error, inside) } else { error }
    }

    /// Adds what there is that is like a path that is missing.
    fn with_nearest(&self, error: Error, inside: &str) -> Error {
        match similar_files::nearest_file(self.tree(), inside, &self.root) {
            Some(nearest) => error.advise(format!("did you mean `{}`?", relative(&self.root, &nearest))),
            None => error,
        }
    }

    /// Which step of a path is the first that is not there.
    fn missing_step(&self, inside: &str) -> String {
        let mut at = String::new();
        for step in inside.split('/') {
            let is_file = self.tree().is_file(&at);
            if !at.is_empty() {
                at.push('/');
            }
            at.push_str(step);
            if is_file {
                return format!("lstat {}: not a directory", self.display(&at));
            }
            if self.tree().kind(&at).is_err() {
                break;
            }
        }
        format!("lstat {}: no such file or directory", self.display(&at))
    }

    fn open_error(&self, inside: &str, shown: &str, error: &VfsError, suggests: bool) -> Error {
        let message = match error.kind {
            VfsErrorKind::NotFound if suggests => {
                let text = format!("open {shown}: no such file or directory");
                return self.with_nearest(Error::new(ErrorKind::Load, text).missing(inside), inside);
            }
            VfsErrorKind::NotFound => format!("open {shown}: no such file or directory"),
            VfsErrorKind::NotDir => format!("open {shown}: not a directory"),
            VfsErrorKind::IsDir => format!("read {shown}: is a directory"),
            VfsErrorKind::OutsideTree => return self.outside(shown),
            _ => format!("open {shown}: {}", error.kind),
        };
        let told = Error::new(ErrorKind::Load, message);
        if error.is_not_found() { told.missing(inside) } else { told }
    }

    fn load_http(&self, url: &str) -> Result<Arc<[u8]>> {
        let Some(remote) = &self.options.remote_loader else { return Err(no_remote("file", url)) };
        self.waited.during(|| remote.file(url)).map(Arc::from).map_err(|error| match error {
            RemoteError::Status { .. } if RepoUrl::parse(url).is_some() => {
                Error::new(ErrorKind::Remote, "URL is a git repository")
            }
            RemoteError::Status { .. } => Error::new(ErrorKind::Http, format!("HTTP Error: {error}")),
            other => remote_error(&other),
        })
    }

    /// Whether something stands at a path of the tree.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.in_tree(path).is_some_and(|inside| self.tree().exists(&inside))
    }

    /// The paths that a pattern matches, sorted (Go's `filepath.Glob`); none if it is malformed.
    pub(crate) fn glob(&self, pattern: &str) -> Vec<String> {
        if !pattern.contains(['*', '?', '[', '\\']) {
            return if self.exists(pattern) { vec![pattern.to_owned()] } else { Vec::new() };
        }
        let mut found = vec![String::new()];
        for step in pattern.split('/') {
            let Some(step) = GlobStep::new(step) else { return Vec::new() };
            found = found.iter().flat_map(|folder| self.glob_step(folder, &step)).collect();
        }
        found
    }

    fn glob_step(&self, folder: &str, step: &GlobStep<'_>) -> Vec<String> {
        let below = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        match step {
            GlobStep::Name(name) => Some(below(name)).filter(|path| self.exists(path)).into_iter().collect(),
            GlobStep::Pattern(regex) => {
                let place = tiphys_vfs::shown_path(folder);
                let entries = self.in_tree(place).and_then(|place| self.tree().read_dir(&place).ok());
                let names = entries.unwrap_or_default().into_iter().map(|entry| entry.name);
                names.filter(|name| regex.is_match(name)).map(|name| below(&name)).collect()
            }
        }
    }

    /// A loader for a folder that the kustomization names (`FileLoader.New`).
    ///
    /// # Errors
    /// Missing, a file, absolute, a cycle, or remote and not to be had.
    pub(crate) fn enter(&self, path: &str) -> Result<Self> {
        if path.is_empty() {
            return Err(Error::new(ErrorKind::Load, "new root cannot be empty"));
        }
        if let Some(url) = RepoUrl::parse(path) {
            return self.enter_repository(&url);
        }
        if path.starts_with('/') {
            let message = format!("new root '{path}' cannot be absolute");
            return Err(Error::new(ErrorKind::Restricted, message));
        }
        let root = self.confirm_dir(path)?;
        let mut visited = self.visited.clone();
        visited.push((self.display_root.clone(), self.root.clone()));
        for (tree, folder) in visited.iter().rev() {
            if *tree == self.display_root && is_below(folder, &root) {
                return Err(Error::new(
                    ErrorKind::Cycle,
                    format!(
                        "cycle detected: candidate root '{}' contains visited root '{}'",
                        self.display(&root),
                        self.display(folder)
                    ),
                ));
            }
        }
        Ok(Self { root, visited, ..self.clone() })
    }

    fn enter_repository(&self, url: &RepoUrl) -> Result<Self> {
        if let Some(seen) = self.repositories.iter().rev().find(|seen| seen.starts_with(&url.raw)) {
            return Err(Error::new(
                ErrorKind::Cycle,
                format!("cycle detected: URI '{}' referenced by previous URI '{seen}'", url.raw),
            ));
        }
        let Some(remote) = &self.options.remote_loader else { return Err(no_remote("base", &url.raw)) };
        let tree = self.waited.during(|| remote.repository(url)).map_err(|error| remote_error(&error))?;
        let root = tree.canonical(&url.folder).map_err(|error| {
            Error::new(ErrorKind::Load, format!("evalsymlink failure on '{}' : {}", url.folder, error.kind))
        })?;
        if tree.is_file(&root) {
            let message = format!("'{}' refers to file '{root}'; expecting directory", url.folder);
            return Err(Error::new(ErrorKind::Load, message));
        }
        let mut repositories = self.repositories.clone();
        repositories.push(url.raw.clone());
        let mut visited = self.visited.clone();
        visited.push((self.display_root.clone(), self.root.clone()));
        Ok(Self {
            tree: Tree::Remote(tree),
            root,
            display_root: Some(url.clone_url()),
            restrictor: LoadRestrictor::RootOnly,
            visited,
            repositories,
            options: self.options,
            waited: self.waited.clone(),
        })
    }

    /// The canonical path of a folder (`ConfirmDir`).
    fn confirm_dir(&self, path: &str) -> Result<String> {
        let not_a_dir =
            |error: Error| error.context("not a valid directory").context("must build at directory");
        let shown = self.display_joined(path);
        let inside = self.in_tree(path).ok_or_else(|| {
            let message =
                format!("'{shown}' lies outside the tree; folders outside the repository are never read");
            not_a_dir(Error::new(ErrorKind::Restricted, message))
        })?;
        let found = self
            .tree()
            .canonical(&inside)
            .map_err(|error| not_a_dir(self.link_error(&inside, &shown, &error, true)))?;
        if self.tree().is_file(&found) {
            let message = format!("must build at directory: '{shown}': file is not directory");
            return Err(Error::new(ErrorKind::Load, message));
        }
        Ok(found)
    }
}

/// A step of a glob.
enum GlobStep<'a> {
    Name(&'a str),
    Pattern(Regex),
}

impl<'a> GlobStep<'a> {
    fn new(step: &'a str) -> Option<Self> {
        if !step.contains(['*', '?', '[', '\\']) {
            return Some(Self::Name(step));
        }
        let mut pattern = String::from("^");
        let mut chars = step.chars();
        while let Some(c) = chars.next() {
            match c {
                '*' => pattern.push_str(".*"),
                '?' => pattern.push('.'),
                '[' => {
                    pattern.push('[');
                    pattern.extend(chars.by_ref().take_while(|c| *c != ']'));
                    pattern.push(']');
                }
                '\\' => pattern.push_str(&quote_meta(chars.next()?.encode_utf8(&mut [0; 4]))),
                other => pattern.push_str(&quote_meta(other.encode_utf8(&mut [0; 4]))),
            }
        }
        Regex::compile(&format!("{pattern}$")).ok().map(Self::Pattern)
    }
}

/// Whether a path is fetched over HTTP.
pub(crate) fn is_http(path: &str) -> bool {
    path.starts_with("http://") || path.starts_with("https://")
}

/// Whether a folder is another, or below it.
fn is_below(folder: &str, root: &str) -> bool {
    root.is_empty() || folder == root || tiphys_vfs::is_below(folder, root)
}

/// A path of the tree as a kustomization in a folder of it would write it.
fn relative(root: &str, path: &str) -> String {
    let (mut root, mut rest): (Vec<&str>, Vec<&str>) =
        (root.split('/').filter(|step| !step.is_empty()).collect(), path.split('/').collect());
    while !root.is_empty() && rest.len() > 1 && root[0] == rest[0] {
        root.remove(0);
        rest.remove(0);
    }
    "../".repeat(root.len()) + &rest.join("/")
}

fn no_remote(what: &str, url: &str) -> Error {
    Error::new(
        ErrorKind::Remote,
        format!("remote {what} '{url}' cannot be fetched: no loader for remote content"),
    )
    .advise("vendor it into the repository, or build with network access")
}

fn remote_error(error: &RemoteError) -> Error {
    let kind =
        if matches!(error, RemoteError::Timeout { .. }) { ErrorKind::Timeout } else { ErrorKind::Remote };
    Error::new(kind, error.to_string())
}
