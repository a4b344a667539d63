//! Repository addresses and when two of them mean the same repository.

use std::{fmt, path::Path};

/// A repository address reduced to what identifies the repository: host and path, without scheme,
/// user, port, `.git` and letter case. `https://github.com/acme/shop.git`,
/// `git@github.com:acme/shop` and `ssh://git@github.com:22/Acme/shop/` are one repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoId {
    /// Host, lower case; empty for a folder of this machine.
    host: String,
    /// Path, lower case unless it is a folder of this machine; no slash at either end.
    path: String,
}

impl RepoId {
    /// Reads an address in any spelling that Git takes. `None` for empty text.
    pub fn parse(url: &str) -> Option<Self> {
        let url = url.trim();
        if url.is_empty() {
            return None;
        }
        if let Some(path) = url.strip_prefix("file://") {
            return Some(Self::folder(path));
        }
        if let Some((_, rest)) = url.split_once("://") {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            return Some(Self::remote(authority, path));
        }
        match url.split_once(':') {
            // The `user@host:path` form of scp; a slash before the colon makes it a path.
            Some((authority, path)) if !authority.contains('/') => Some(Self::remote(authority, path)),
            _ => Some(Self::folder(url)),
        }
    }

    fn remote(authority: &str, path: &str) -> Self {
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = match host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            _ => host,
        };
        Self { host: host.to_lowercase(), path: trimmed(path).to_lowercase() }
    }

    fn folder(path: &str) -> Self {
        let real = Path::new(path).canonicalize().ok();
        let path = real.as_deref().and_then(Path::to_str).unwrap_or(path);
        Self { host: String::new(), path: trimmed(path).to_owned() }
    }

    /// The same where a host is reached by SSH under a name of its own, as `ssh.github.com` and
    /// `altssh.gitlab.com` are; the name that the host itself tells. `None` if it has no such name.
    pub fn beside_ssh(&self) -> Option<Self> {
        let host = self.host.strip_prefix("ssh.").or_else(|| self.host.strip_prefix("altssh."))?;
        Some(Self { host: host.to_owned(), path: self.path.clone() })
    }

    /// The host, in lower case; empty for a folder of this machine.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether it is a folder of this machine.
    pub fn is_folder(&self) -> bool {
        self.host.is_empty()
    }
}

/// `host/path`, or the path of a folder.
impl fmt::Display for RepoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.path)
    }
}

fn trimmed(path: &str) -> &str {
    let path = path.trim_matches('/');
    path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_one_repository_is_equal() {
        let spellings = [
            "https://git.example.com/Acme/shop.git",
            "https://git.example.com/acme/shop",
            "http://user:secret@git.example.com:8443/acme/shop.git/",
            "git@git.example.com:acme/shop.git",
            "ssh://git@git.example.com:2222/acme/shop",
            "git://GIT.example.com/acme/shop/",
        ];
        let ids: Vec<_> = spellings.iter().filter_map(|url| RepoId::parse(url)).collect();
        assert_eq!(ids.len(), spellings.len());
        assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{ids:?}");
    }

    #[test]
    fn other_hosts_and_paths_are_other_repositories() {
        let id = |url| RepoId::parse(url).expect("not empty");
        assert_ne!(id("https://git.example.com/a/b"), id("https://git.example.org/a/b"));
        assert_ne!(id("https://git.example.com/a/b"), id("https://git.example.com/a/b-c"));
        assert!(id("/srv/repo").is_folder() && id("file:///srv/repo").is_folder());
        assert_eq!(id("/srv/repo"), id("file:///srv/repo.git"));
        assert_eq!(RepoId::parse("  "), None);
    }

    #[test]
    fn a_host_has_another_name_for_ssh() {
        let id = |url| RepoId::parse(url).expect("not empty");
        let plain = id("https://git.example.com/acme/shop");
        for other in
            ["ssh://git@altssh.git.example.com:443/acme/shop.git", "git@ssh.git.example.com:acme/shop"]
        {
            assert_ne!(id(other), plain);
            assert_eq!(id(other).beside_ssh(), Some(plain.clone()));
        }
        assert_eq!(plain.beside_ssh(), None);
    }
}
