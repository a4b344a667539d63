//! Which folders of this machine may serve as repositories. Applications name their repositories, and whoever
//! writes an Application is not always allowed to read what the machine holds: other checkouts, and the
//! clones in the cache.

use std::path::{Path, PathBuf};

/// The folders that addresses may name. By default none.
#[derive(Clone, Debug, Default)]
pub struct LocalRepositories {
    any: bool,
    below: Vec<PathBuf>,
    exact: Vec<PathBuf>,
    never_below: Vec<PathBuf>,
}

impl LocalRepositories {
    /// Every folder, as Git has it: for who names the address on the command line.
    pub fn any() -> Self {
        Self { any: true, ..Self::default() }
    }

    /// Those that are, or lie in, one of some folders. What does not exist permits nothing.
    pub fn below_folders<P: AsRef<Path>>(folders: impl IntoIterator<Item = P>) -> Self {
        let below = folders.into_iter().filter_map(|folder| folder.as_ref().canonicalize().ok()).collect();
        Self { below, ..Self::default() }
    }

    /// Permits one more folder, but nothing in it.
    #[must_use]
    pub fn and_exactly(mut self, folder: &Path) -> Self {
        self.exact.extend(folder.canonicalize());
        self
    }

    /// Takes out a folder and everything in it, whatever else permits it.
    #[must_use]
    pub fn except_below(mut self, folder: &Path) -> Self {
        self.never_below.push(folder.to_path_buf());
        self
    }

    /// Whether an address may name a folder. What lies behind links decides, not how it is written.
    pub fn permits(&self, folder: &Path) -> bool {
        let Ok(real) = folder.canonicalize() else { return self.any };
        let is_in = |closed: &PathBuf| closed.canonicalize().is_ok_and(|closed| real.starts_with(closed));
        if self.never_below.iter().any(is_in) {
            return false;
        }
        if self.any {
            return true;
        }
        // The folder that Git keeps beside a work tree is the same repository.
        let top = if real.ends_with(".git") { real.parent().unwrap_or(&real) } else { &real };
        self.below.iter().any(|permitted| real.starts_with(permitted))
            || self.exact.iter().any(|permitted| permitted == &real || permitted == top)
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn only_named_folders_are_permitted_however_they_are_reached() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for folder in ["open/shop/.git", "closed/shop", "given/.git", "given/vendored"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::os::unix::fs::symlink(at("closed/shop"), at("open/link")).unwrap();
        let permitted =
            LocalRepositories::below_folders([at("open"), at("absent")]).and_exactly(&at("given"));
        for (path, expected) in [
            ("open", true),
            ("open/shop", true),
            ("open/shop/.git", true),
            ("open/../closed/shop", false),
            ("open/link", false),
            ("closed/shop", false),
            ("given", true),
            ("given/.git", true),
            ("given/vendored", false),
            ("absent", false),
        ] {
            assert_eq!(permitted.permits(&at(path)), expected, "{path}");
            assert!(!LocalRepositories::default().permits(&at(path)), "{path}");
        }
        assert!(LocalRepositories::any().permits(&at("absent")));
        let closed = LocalRepositories::any().except_below(&at("closed"));
        assert!(closed.permits(&at("open/shop")));
        assert!(!closed.permits(&at("open/link")) && !closed.permits(&at("closed/shop")));
    }
}
