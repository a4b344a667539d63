//! Why a repository could not be served.

use std::{path::PathBuf, time::Duration};

use tiphys_vfs::VfsError;

/// Why a repository could not be served at a revision.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The address cannot be read.
    #[error("cannot read repository address {:?}: {reason}", without_credentials(url))]
    BadUrl {
        /// The address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The repository has no such branch, tag or commit.
    #[error("repository {} has no branch, tag or commit {revision:?}{hint}", without_credentials(url))]
    UnknownRevision {
        /// The repository.
        url: String,
        /// What was asked for.
        revision: String,
        /// What there is that is similar, ready to be appended; may be empty.
        hint: String,
    },
    /// The host cannot be reached, refused, or broke off.
    #[error("cannot fetch {}: {}", without_credentials(url), plain(url, reason))]
    Fetch {
        /// The repository.
        url: String,
        /// What Git said.
        reason: String,
    },
    /// The host took too long.
    #[error("cannot fetch {}: no answer within {} s", without_credentials(url), limit.as_secs())]
    Timeout {
        /// The repository.
        url: String,
        /// How long it may take.
        limit: Duration,
    },
    /// Fetching is switched off.
    #[error(
        "cannot fetch {}: working offline, and it is not the repository that was given",
        without_credentials(url)
    )]
    Offline {
        /// The repository.
        url: String,
    },
    /// The address names a folder of this machine, and whoever wrote it may not choose what of the machine is
    /// read.
    #[error(
        "cannot read repository {}: it is a folder of this machine, and Applications may name only those that --local-repositories allows",
        without_credentials(url)
    )]
    LocalFolder {
        /// The repository.
        url: String,
    },
    /// What Git would read is a pipe, a socket or a device.
    #[error("cannot read {}: it is a pipe, a socket or a device; only regular files are read", path.display())]
    SpecialFile {
        /// Where it is.
        path: PathBuf,
    },
    /// What Git reads whole is larger than that of any repository in use.
    #[error("cannot read {}: it is larger than {} MiB, which no repository needs", path.display(), limit >> 20)]
    LargeGitFile {
        /// Where it is.
        path: PathBuf,
        /// What it may be, in bytes.
        limit: u64,
    },
    /// A stored repository cannot be read.
    #[error("cannot read repository {}: {}", without_credentials(url), redact_reason(url, reason))]
    Read {
        /// The repository.
        url: String,
        /// What Git said.
        reason: String,
    },
    /// A commit has more files than are listed.
    #[error(
        "cannot read repository {}: the commit has more than 1000000 files, 200000 folders, or 128 MiB of names",
        without_credentials(url)
    )]
    TooMany {
        /// The repository.
        url: String,
    },
    /// The host wants other credentials.
    #[error("cannot fetch {}: access is denied (HTTP {status})", without_credentials(url))]
    Denied {
        /// The address, without credentials.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The Git host wants another login, or one at all.
    #[error("cannot fetch {}: {reason}", without_credentials(url))]
    Login {
        /// The repository.
        url: String,
        /// What of the login is wrong, without the login.
        reason: &'static str,
    },
    /// A chart repository or registry has no such chart or version.
    #[error("{repository} has no {}version {version:?}{hint}", chart_word(name))]
    UnknownChart {
        /// The repository.
        repository: String,
        /// The chart; empty if the repository is the chart's.
        name: String,
        /// Version or constraint.
        version: String,
        /// What there is instead, ready to be appended; may be empty.
        hint: String,
    },
    /// Fetched content is not what was promised.
    #[error("{what} has SHA-256 {found}, but should have {wanted}")]
    Digest {
        /// What was fetched.
        what: String,
        /// The promised digest.
        wanted: String,
        /// The digest of the content.
        found: String,
    },
    /// An archive or artifact is refused.
    #[error("cannot unpack {what}: {reason}")]
    Archive {
        /// The archive.
        what: String,
        /// Why.
        reason: String,
    },
    /// A folder cannot be read.
    #[error(transparent)]
    Files(#[from] VfsError),
}

/// The user name and password that stand in an address, and where.
fn credentials(url: &str) -> Option<(usize, &str)> {
    let start = url.find("://")? + 3;
    let authority = url[start..].split(['/', '?', '#']).next()?;
    let (credentials, _) = authority.rsplit_once('@')?;
    Some((start, credentials))
}

/// An address without credentials (CVE-2023-25163).
pub(crate) fn without_credentials(url: &str) -> String {
    match credentials(url) {
        Some((start, held)) => format!("{}{}", &url[..start], &url[start + held.len() + 1..]),
        None => url.to_owned(),
    }
}

/// The host of an address.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// A reason in few words where the libraries below take many, none of which says what is wrong.
fn plain(url: &str, reason: &str) -> String {
    const UNKNOWN_HOST: [&str; 3] =
        ["failed to lookup address", "Could not resolve host", "Temporary failure in name resolution"];
    const REFUSED: &str = "Connection refused";
    // What is left of an ssh that ended before it said anything.
    const CUT: &str = "failed to fill whole buffer";
    if UNKNOWN_HOST.iter().any(|text| reason.contains(text)) {
        format!("the name {} cannot be resolved", host(url))
    } else if reason.contains(REFUSED) {
        format!("{} refuses the connection", host(url))
    } else if reason.contains(CUT) {
        format!("the connection to {} ended before there was an answer", host(url))
    } else {
        redact_reason(url, reason)
    }
}

/// A reason that names no credentials of the address.
fn redact_reason(url: &str, reason: &str) -> String {
    let Some((_, held)) = credentials(url) else { return reason.to_owned() };
    let whole = reason.replace(&format!("{held}@"), "");
    match held.split_once(':') {
        Some((_, password)) if !password.is_empty() => whole.replace(password, "…"),
        _ => whole.replace(held, "…"),
    }
}

impl SourceError {
    /// Whether trying again later, with nothing changed, may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Fetch { .. } | Self::Timeout { .. })
    }

    /// Whether it is not to be had from here, however often it is tried: nothing is fetched, or the login is
    /// refused.
    pub fn is_out_of_reach(&self) -> bool {
        matches!(self, Self::Offline { .. } | Self::Denied { .. } | Self::Login { .. })
    }

    /// Whether it would have had to be fetched, and nothing is.
    pub fn is_offline(&self) -> bool {
        matches!(self, Self::Offline { .. })
    }
}

/// The chart that is meant; a registry's repository holds only one.
fn chart_word(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("chart {name} ") }
}

#[cfg(test)]
mod tests {
    use super::SourceError;

    fn fetch_message(url: &str, reason: &str) -> String {
        SourceError::Fetch { url: url.into(), reason: reason.into() }.to_string()
    }

    #[test]
    fn what_keeps_a_host_from_answering_is_told_in_few_words() {
        let long = "Transport handshake failed: An IO error occurred: dns error: failed to lookup address information";
        let unknown = "the name git.example.com cannot be resolved";
        for url in ["https://u:secret@git.example.com:8443/acme/shop", "git@git.example.com:acme/shop.git"] {
            let text = fetch_message(url, long);
            assert!(text.ends_with(unknown), "{text}");
            assert!(!text.contains("secret"), "{text}");
        }
        let text = fetch_message(
            "https://git.example.com/x",
            "tcp connect error: Connection refused (os error 111)",
        );
        assert!(text.ends_with("git.example.com refuses the connection"), "{text}");
        let text = fetch_message("https://git.example.com/x", "the server answers 500");
        assert!(text.ends_with("the server answers 500"), "{text}");
    }
}
