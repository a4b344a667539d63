//! Submodules of a commit, mounted into its tree.

use std::{collections::BTreeMap, sync::Arc};

use gix::ObjectId;
use tiphys_vfs::{DirEntry, EntryKind, FileTree, VfsError};

use crate::SourceError;

/// Submodules that one repository may have.
const MAX_SUBMODULES: usize = 100;

/// A submodule of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Submodule {
    /// Where it stands in the tree.
    pub path: String,
    /// Address, resolved against the repository's.
    pub url: String,
    /// The commit that belongs there.
    pub commit: String,
}

/// The submodules of a commit of the repository at `url`, whose files are `tree`: those of the entries
/// `found` that `.gitmodules` names, as `git submodule update` has it.
pub(crate) fn submodules(
    found: Vec<(String, ObjectId)>,
    url: &str,
    tree: &dyn FileTree,
) -> Result<Vec<Submodule>, SourceError> {
    let Ok(modules) = tree.read(".gitmodules") else { return Ok(Vec::new()) };
    let addresses = read_gitmodules(&String::from_utf8_lossy(&modules));
    let fail = |reason: String| SourceError::Read { url: url.to_owned(), reason };
    let mut named = Vec::new();
    for (path, commit) in found {
        let Some(address) = addresses.get(&path) else { continue };
        let address = resolve_address(url, address)
            .ok_or_else(|| fail(format!("submodule {path} has address {address:?}, which is refused")))?;
        named.push(Submodule { path, url: address, commit: commit.to_string() });
    }
    if named.len() > MAX_SUBMODULES {
        return Err(fail(format!("it has more than {MAX_SUBMODULES} submodules")));
    }
    Ok(named)
}

/// Addresses by path from the text of `.gitmodules`.
fn read_gitmodules(text: &str) -> BTreeMap<String, String> {
    let mut addresses = BTreeMap::new();
    let mut path = None;
    let mut url = None;
    for line in text.lines().map(str::trim).chain(["["]) {
        if line.starts_with('[') {
            if let (Some(path), Some(url)) = (path.take(), url.take()) {
                addresses.insert(path, url);
            }
        } else if let Some((key, value)) = line.split_once('=') {
            let value = value.trim().trim_matches('"').to_owned();
            match key.trim().to_lowercase().as_str() {
                "path" => path = Some(value),
                "url" => url = Some(value),
                _ => {}
            }
        }
    }
    addresses
}

/// An address as the parent means it. A repository from elsewhere cannot name folders of this machine.
fn resolve_address(parent: &str, address: &str) -> Option<String> {
    let is_local = |url: &str| url.starts_with('/') || url.starts_with("file://");
    if address.starts_with("./") || address.starts_with("../") {
        let mut base = parent.trim_end_matches('/').to_owned();
        let mut rest = address;
        loop {
            if let Some(up) = rest.strip_prefix("../") {
                let cut = base.rfind(['/', ':'])?;
                // Never into the host or the scheme.
                if base[..cut].ends_with([':', '/']) {
                    return None;
                }
                base.truncate(cut);
                rest = up;
            } else if let Some(same) = rest.strip_prefix("./") {
                rest = same;
            } else {
                break;
            }
        }
        return (!rest.is_empty()).then(|| format!("{base}/{rest}"));
    }
    let allowed =
        ["https://", "http://", "ssh://", "git://"].iter().any(|scheme| address.starts_with(scheme));
    let is_scp = !address.starts_with('-')
        && address.split_once(':').is_some_and(|(host, path)| !host.contains('/') && !path.starts_with("//"));
    (allowed || is_scp && !address.contains("::") || is_local(address) && is_local(parent))
        .then(|| address.to_owned())
}

/// A tree with other trees mounted at some of its folders.
pub(crate) struct MountedTree {
    base: Arc<dyn FileTree>,
    mounts: BTreeMap<String, Arc<dyn FileTree>>,
}

impl MountedTree {
    pub(crate) fn new(base: Arc<dyn FileTree>, mounts: BTreeMap<String, Arc<dyn FileTree>>) -> Self {
        Self { base, mounts }
    }

    /// The mount that a path lies in, and the path there.
    fn mount<'a>(&self, path: &'a str) -> Option<(&str, &Arc<dyn FileTree>, &'a str)> {
        self.mounts.iter().find_map(|(at, tree)| {
            let rest = path.strip_prefix(at.as_str())?;
            let inside = if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') };
            inside.map(|inside| (at.as_str(), tree, inside))
        })
    }

    /// Applies a question to the tree in charge.
    fn ask<T>(
        &self,
        path: &str,
        question: impl Fn(&dyn FileTree, &str) -> Result<T, VfsError>,
    ) -> Result<T, VfsError> {
        let path = tiphys_vfs::normalize(path)?;
        // A link of the outer tree may lead into a submodule.
        let path = match self.mount(&path) {
            Some(_) => path,
            None => self.base.target(&path).unwrap_or(path),
        };
        match self.mount(&path) {
            None => question(&*self.base, &path),
            Some((at, tree, inside)) => question(&**tree, inside).map_err(|mut error| {
                error.path = format!("{at}/{}", error.path);
                error
            }),
        }
    }
}

impl FileTree for MountedTree {
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
        self.ask(path, |tree, path| tree.kind(path))
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
        self.ask(path, |tree, path| tree.read(path))
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        let mut entries = self.ask(path, |tree, path| tree.list(path))?;
        // To the outer tree a link into a submodule leads nowhere.
        for entry in entries.iter_mut().filter(|entry| entry.broken.is_some()) {
            if let Ok(kind) = tiphys_vfs::join(path, &entry.name).and_then(|path| self.kind(&path)) {
                *entry = DirEntry { kind, broken: None, ..entry.clone() };
            }
        }
        Ok(entries)
    }

    fn canonical(&self, path: &str) -> Result<String, VfsError> {
        let path = tiphys_vfs::normalize(path)?;
        let led = if self.mount(&path).is_some() { path } else { self.base.target(&path)? };
        match self.mount(&led) {
            None => self.base.canonical(&led),
            Some((at, tree, inside)) => {
                let inside = tree.canonical(inside)?;
                Ok(if inside.is_empty() { at.to_owned() } else { format!("{at}/{inside}") })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tiphys_vfs::MemTree;

    use super::*;

    #[test]
    fn addresses_resolve_against_the_parents() {
        let table = [
            (
                "https://git.example.com/acme/shop.git",
                "../lib.git",
                Some("https://git.example.com/acme/lib.git"),
            ),
            (
                "https://git.example.com/acme/shop",
                "../../other/lib",
                Some("https://git.example.com/other/lib"),
            ),
            ("git@git.example.com:acme/shop.git", "../lib", Some("git@git.example.com:acme/lib")),
            ("https://git.example.com/shop", "../../../x", None),
            ("https://git.example.com/shop", "/etc", None),
            ("https://git.example.com/shop", "file:///etc", None),
            ("https://git.example.com/shop", "-oProxyCommand=x:y", None),
            ("https://git.example.com/shop", "ext::sh -c x", None),
            ("file:///srv/shop", "/srv/lib", Some("/srv/lib")),
            ("https://git.example.com/shop", "https://b.example.com/x", Some("https://b.example.com/x")),
        ];
        for (parent, address, resolved) in table {
            assert_eq!(resolve_address(parent, address).as_deref(), resolved, "{parent} {address}");
        }
    }

    #[test]
    fn gitmodules_is_read() {
        let text = "[submodule \"a\"]\n\tpath = libs/a\n\turl = ../a.git\n[submodule \"b\"]\n\turl = https://h/b\n\tpath = \"b\"\n";
        let addresses = read_gitmodules(text);
        assert_eq!(addresses["libs/a"], "../a.git");
        assert_eq!(addresses["b"], "https://h/b");
    }

    #[test]
    fn mounts_answer_for_their_folders() {
        let mut base = MemTree::from_files([("a.yaml", "outer"), ("libs/readme", "x")]);
        for (name, target) in [("file", "b/c.yaml"), ("dir", "b"), ("none", "b/none")] {
            base.insert_symlink(&format!("links/{name}"), &format!("../libs/sub/{target}"))
                .expect("a new name");
        }
        let inner = MemTree::from_files([("b/c.yaml", "inner")]);
        let mounts = BTreeMap::from([("libs/sub".to_owned(), Arc::new(inner) as Arc<dyn FileTree>)]);
        let tree = MountedTree::new(Arc::new(base), mounts);
        assert_eq!(&*tree.read("a.yaml").expect("is there"), b"outer");
        assert_eq!(&*tree.read("libs/sub/b/c.yaml").expect("is there"), b"inner");
        assert_eq!(tree.canonical("libs/sub/b/../b").expect("is there"), "libs/sub/b");
        assert!(tree.is_dir("libs/sub") && !tree.exists("libs/submarine"));
        let listed = tree.list("links").expect("is there");
        let kinds: Vec<_> =
            listed.iter().map(|it| (it.name.as_str(), it.kind, it.broken.is_some())).collect();
        assert_eq!(
            kinds,
            [
                ("dir", EntryKind::Dir, false),
                ("file", EntryKind::File, false),
                ("none", EntryKind::File, true),
            ]
        );
        assert_eq!(&*tree.read("links/file").expect("is there"), b"inner");
        assert_eq!(&*tree.read("links/dir/c.yaml").expect("is there"), b"inner");
        assert_eq!(tree.canonical("links/dir/c.yaml").expect("is there"), "libs/sub/b/c.yaml");
        let error = tree.read("libs/sub/none").expect_err("is not there");
        assert_eq!(error.path, "libs/sub/none");
    }
}
