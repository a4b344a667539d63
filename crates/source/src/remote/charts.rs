//! Charts from repositories with an index and from OCI registries.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tiphys_vfs::{FileTree, SubTree};

use crate::{
    Checkout, SourceError,
    remote::{
        Access, AccessTable, MAX_ARCHIVE_BYTES, OciReference, Registry,
        content_store::{Store, is_sha256, sha256},
        http::{Http, redact},
        index::Index,
        oci::{ARTIFACT_LAYERS, CHART_LAYERS},
        unpack,
    },
};

/// The largest `index.yaml`, in bytes; those of public repositories reach 30 MiB.
const MAX_INDEX_BYTES: u64 = 128 * 1024 * 1024;

/// A chart that somebody needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartRequest {
    /// `https://…`, `http://…` (a repository with an index) or `oci://…`.
    pub repository: String,
    /// Chart name. For `oci://` it may be empty if the repository already ends with it.
    pub name: String,
    /// Exact version, constraint, or empty for the newest release.
    pub version: String,
    /// Send the credentials of the repository also to other hosts that its index points to: `helm pull
    /// --pass-credentials`.
    pub pass_credentials: bool,
}

/// A chart's archive.
#[derive(Clone, Debug)]
pub struct FetchedChart {
    /// The version that was chosen.
    pub version: String,
    /// SHA-256 of the archive in hexadecimal.
    pub digest: String,
    /// The gzipped tar archive.
    pub archive: Arc<[u8]>,
}

impl FetchedChart {
    /// The files of the chart, `Chart.yaml` at the root.
    ///
    /// # Errors
    /// See [`unpack`]; or there is not exactly one folder at the top.
    pub fn tree(&self) -> Result<SubTree, SourceError> {
        let what = format!("chart archive {}", self.digest);
        let tree = Arc::new(unpack(&self.archive, &what)?);
        let top = tree.read_dir("")?;
        let [folder] = top.as_slice() else {
            let reason = format!("it has {} entries at the top instead of one folder", top.len());
            return Err(SourceError::Archive { what, reason });
        };
        Ok(SubTree::new(tree.clone(), &folder.name)?)
    }
}

/// Fetches charts and keeps them by content in a folder.
///
/// Blocking, as [`crate::GitCache`] is.
pub struct Charts {
    store: Store,
    access: AccessTable,
    http: Arc<Http>,
    registry: Registry,
    offline: bool,
    fresh_for: Duration,
    indexes: Mutex<BTreeMap<String, (Instant, Arc<Index>)>>,
}

impl Charts {
    /// Uses a folder, which is made when first needed. Within `fresh_for` of fetching an index it is
    /// not fetched again. `offline` serves only what the folder has.
    pub fn new(folder: impl Into<PathBuf>, access: AccessTable, fresh_for: Duration, offline: bool) -> Self {
        let http = Arc::new(Http::pausing(fresh_for));
        Self {
            store: Store::new(folder),
            registry: Registry::with_http(access.clone(), http.clone()),
            access,
            http,
            offline,
            fresh_for,
            indexes: Mutex::default(),
        }
    }

    /// The chart that satisfies a request.
    ///
    /// # Errors
    /// Unreachable, denied, no such chart or version, a digest that does not match, or offline and not
    /// in the folder.
    pub fn fetch(&self, request: &ChartRequest) -> Result<FetchedChart, SourceError> {
        if request.repository.starts_with("oci://") {
            return self.fetch_oci(request);
        }
        if !request.repository.starts_with("http://") && !request.repository.starts_with("https://") {
            return Err(SourceError::BadUrl {
                url: request.repository.clone(),
                reason: "a chart repository begins with https://, http:// or oci://".to_owned(),
            });
        }
        let index = self.index(&request.repository)?;
        let entry = index.find(&request.name, &request.version).map_err(|hint| unknown(request, hint))?;
        if let Some(archive) = self.store.blob(&entry.digest) {
            return Ok(fetched(&entry.version, &entry.digest, archive));
        }
        let Some(url) = entry.urls.first() else {
            return Err(unknown(request, format!("; version {} has no address", entry.version)));
        };
        let url = resolve_url(&request.repository, url)?;
        if !is_sha256(&entry.digest)
            && let Some(digest) = self.store.read_note(&url)
            && let Some(archive) = self.store.blob(&digest)
        {
            return Ok(fetched(&entry.version, &digest, archive));
        }
        self.refuse_offline(request)?;
        let archive = self.http.get(&url, &self.access_for(request, &url), MAX_ARCHIVE_BYTES)?;
        if is_sha256(&entry.digest) {
            check_digest(&url, &entry.digest, &archive)?;
        }
        let digest = self.keep(&url, &archive)?;
        Ok(fetched(&entry.version, &digest, archive))
    }

    /// The source of an Application that names a chart, or an artifact in a registry if the name is
    /// empty: its files and its revision (the chart's version, the artifact's digest). As Argo CD has it,
    /// an address without scheme means a registry.
    ///
    /// # Errors
    /// As [`Charts::fetch`], and of unpacking.
    pub fn checkout(&self, wanted: &ChartRequest) -> Result<Checkout, SourceError> {
        let repository = match wanted.repository.contains("://") {
            true => wanted.repository.clone(),
            false => format!("oci://{}", wanted.repository),
        };
        if wanted.name.is_empty() && repository.starts_with("oci://") {
            return self.checkout_artifact(&repository, &wanted.version);
        }
        let fetched = self.fetch(&ChartRequest { repository, ..wanted.clone() })?;
        Ok(Checkout { tree: Arc::new(fetched.tree()?), revision: fetched.version, is_working_tree: false })
    }

    fn checkout_artifact(&self, repository: &str, version: &str) -> Result<Checkout, SourceError> {
        let mut reference = OciReference::parse(repository)?;
        if !version.is_empty() {
            version.clone_into(&mut reference.tag);
        }
        let note = format!("{reference} artifact");
        let (digest, content, is_chart) = if self.offline {
            let kept = self.store.read_note(&note);
            let mut words = kept.as_deref().unwrap_or_default().split(' ');
            let mut word = || words.next().unwrap_or_default();
            let (digest, blob, kind) = (word().to_owned(), word(), word());
            let content = self.store.blob(blob);
            let content = content.ok_or_else(|| SourceError::Offline { url: reference.to_string() })?;
            (digest, content, kind == "chart")
        } else {
            if self.registry.digest(&reference).is_err() {
                // No such tag: perhaps a constraint.
                reference.tag = self.registry.resolve_version(&reference, version)?.replace('+', "_");
            }
            let have = |digest: &str| self.store.blob(digest);
            let artifact = self.registry.pull(&reference, &ARTIFACT_LAYERS, &have)?;
            let is_chart = CHART_LAYERS.contains(&artifact.media_type.as_str());
            let blob = self.keep(&note, &artifact.content)?;
            let kind = if is_chart { "chart" } else { "files" };
            self.write_note(&note, &format!("{} {blob} {kind}", artifact.manifest_digest))?;
            (artifact.manifest_digest, artifact.content, is_chart)
        };
        let tree: Arc<dyn FileTree> = match is_chart {
            true => Arc::new(fetched("", &digest, content).tree()?),
            false => Arc::new(unpack(&content, &reference.to_string())?),
        };
        Ok(Checkout { tree, revision: digest, is_working_tree: false })
    }

    /// Asks whether a repository of charts, or one of a registry, can be had. A registry as a whole has
    /// nothing that can be asked of everybody.
    ///
    /// # Errors
    /// It cannot.
    pub fn test(&self, repository: &str) -> Result<(), SourceError> {
        if !repository.starts_with("oci://") {
            return self.index(repository).map(drop);
        }
        match OciReference::parse(repository) {
            Ok(reference) if !self.offline => self.registry.tags(&reference).map(drop),
            Ok(_) => Err(SourceError::Offline { url: redact(repository) }),
            Err(_) => Ok(()),
        }
    }

    /// Forgets how fresh indexes are.
    pub fn expire(&self) {
        self.http.pauses.end();
        self.indexes.lock().clear();
    }

    /// Asks hosts again that failed a moment ago.
    pub(crate) fn end_pauses(&self) {
        self.http.pauses.end();
    }

    /// The same for the index of one repository.
    pub fn expire_address(&self, repository: &str) {
        self.http.pauses.end();
        if let Ok(url) = index_url(repository) {
            self.indexes.lock().remove(&url);
        }
    }

    fn index(&self, repository: &str) -> Result<Arc<Index>, SourceError> {
        let url = index_url(repository)?;
        let mut indexes = self.indexes.lock();
        if let Some((at, index)) = indexes.get(&url)
            && (self.offline || at.elapsed() < self.fresh_for)
        {
            return Ok(index.clone());
        }
        let text = if self.offline {
            let kept = self.store.read_note(&url).and_then(|digest| self.store.blob(&digest));
            kept.ok_or_else(|| SourceError::Offline { url: redact(&url) })?
        } else {
            let bytes = self.http.get(&url, &self.access.lookup(repository), MAX_INDEX_BYTES)?;
            self.keep(&url, &bytes)?;
            bytes
        };
        let fail = |reason: String| SourceError::Read { url: redact(&url), reason };
        let text = std::str::from_utf8(&text).map_err(|e| fail(e.to_string()))?;
        let index = Arc::new(Index::parse(text).map_err(fail)?);
        indexes.insert(url, (Instant::now(), index.clone()));
        Ok(index)
    }

    /// Credentials stay with the repository's own host unless told otherwise.
    fn access_for(&self, request: &ChartRequest, url: &str) -> Access {
        let access = self.access.lookup(&request.repository);
        let passed = access.pass_credentials_all || request.pass_credentials;
        if passed || origin(&request.repository) == origin(url) {
            return access;
        }
        Access { username: None, password: None, bearer_token: None, ..access }
    }

    fn fetch_oci(&self, request: &ChartRequest) -> Result<FetchedChart, SourceError> {
        // Either may hold folders of the registry: `host/team` and `web`, or `host` and `team/web`.
        let mut reference = match request.name.as_str() {
            "" => OciReference::parse(&request.repository)?,
            name => OciReference::parse(&format!("{}/{name}", request.repository.trim_end_matches('/')))?,
        };
        let note = format!("{reference} {}", request.version);
        if self.offline {
            let kept = self.store.read_note(&note);
            let chart =
                kept.as_deref().and_then(|text| text.split_once(' ')).and_then(|(digest, version)| {
                    self.store.blob(digest).map(|archive| fetched(version, digest, archive))
                });
            return chart.ok_or_else(|| SourceError::Offline { url: reference.to_string() });
        }
        let version = self.registry.resolve_version(&reference, &request.version)?;
        // A tag cannot have the plus sign of build metadata.
        reference.tag = version.replace('+', "_");
        let have = |digest: &str| self.store.blob(digest);
        let artifact = self.registry.pull(&reference, &CHART_LAYERS, &have)?;
        let digest = self.keep(&note, &artifact.content)?;
        self.write_note(&note, &format!("{digest} {version}"))?;
        Ok(fetched(&version, &digest, artifact.content))
    }

    fn refuse_offline(&self, request: &ChartRequest) -> Result<(), SourceError> {
        if self.offline {
            let url =
                format!("chart {} {} of {}", request.name, request.version, redact(&request.repository));
            return Err(SourceError::Offline { url });
        }
        Ok(())
    }

    /// Keeps bytes and notes their digest under a key.
    fn keep(&self, key: &str, bytes: &[u8]) -> Result<String, SourceError> {
        let fail = |e: std::io::Error| SourceError::Read { url: redact(key), reason: e.to_string() };
        let digest = self.store.keep(bytes).map_err(fail)?;
        self.write_note(key, &digest)?;
        Ok(digest)
    }

    fn write_note(&self, key: &str, text: &str) -> Result<(), SourceError> {
        self.store
            .set_note(key, text)
            .map_err(|e| SourceError::Read { url: redact(key), reason: e.to_string() })
    }
}

fn fetched(version: &str, digest: &str, archive: Vec<u8>) -> FetchedChart {
    FetchedChart { version: version.to_owned(), digest: digest.to_owned(), archive: archive.into() }
}

fn unknown(request: &ChartRequest, hint: String) -> SourceError {
    SourceError::UnknownChart {
        repository: redact(&request.repository),
        name: request.name.clone(),
        version: request.version.clone(),
        hint,
    }
}

/// Compares an archive with the digest that was promised.
pub(crate) fn check_digest(what: &str, wanted: &str, bytes: &[u8]) -> Result<(), SourceError> {
    let found = sha256(bytes);
    if found != wanted {
        return Err(SourceError::Digest { what: redact(what), wanted: wanted.to_owned(), found });
    }
    Ok(())
}

fn parse_url(url: &str) -> Result<reqwest::Url, SourceError> {
    reqwest::Url::parse(url).map_err(|e| SourceError::BadUrl { url: redact(url), reason: e.to_string() })
}

/// Address of the index: `index.yaml` below the repository's path, its query kept.
fn index_url(repository: &str) -> Result<String, SourceError> {
    let mut url = parse_url(repository)?;
    let path = format!("{}/index.yaml", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url.to_string())
}

/// An address in an index, which may be relative to the repository.
fn resolve_url(repository: &str, url: &str) -> Result<String, SourceError> {
    if url.contains("://") {
        return Ok(parse_url(url)?.to_string());
    }
    let mut base = parse_url(repository)?;
    let query = base.query().map(str::to_owned);
    let path = format!("{}/", base.path().trim_end_matches('/'));
    base.set_path(&path);
    base.set_query(None);
    let mut resolved =
        base.join(url).map_err(|e| SourceError::BadUrl { url: url.to_owned(), reason: e.to_string() })?;
    if query.is_some() {
        resolved.set_query(query.as_deref());
    }
    Ok(resolved.to_string())
}

/// Scheme, host and port.
fn origin(url: &str) -> Option<(String, Option<String>, Option<u16>)> {
    let url = reqwest::Url::parse(url).ok()?;
    Some((url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_resolve_as_helms_do() {
        let table = [
            ("https://h/charts", "web-1.tgz", "https://h/charts/web-1.tgz"),
            ("https://h/charts/", "web-1.tgz", "https://h/charts/web-1.tgz"),
            ("https://h/charts?sig=1", "web-1.tgz", "https://h/charts/web-1.tgz?sig=1"),
            ("https://h/charts", "/web-1.tgz", "https://h/web-1.tgz"),
            ("https://h/charts", "https://cdn/x.tgz", "https://cdn/x.tgz"),
        ];
        for (repository, url, resolved) in table {
            assert_eq!(resolve_url(repository, url).expect("both are addresses"), resolved);
        }
        assert_eq!(index_url("https://h/c/?a=b").expect("is an address"), "https://h/c/index.yaml?a=b");
    }
}
