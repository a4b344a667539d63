//! Puts the dependencies that a chart lacks beside those that it has, as `helm dependency build` would: those
//! of its own tree are read there, archives come from whoever serves them.

use std::sync::Arc;

use parking_lot::Mutex;
use tiphys_gocompat::semver::{Constraints, Version};
use tiphys_vfs::{FileTree, join, normalize};

use crate::{Chart, Compat, DependencyRequest, DependencyResolver, HelmError};

/// Serves the archives of charts that other charts depend on. Implemented over the network by the `source`
/// crate.
pub trait ChartArchives: Send + Sync {
    /// The address of a repository that is named by an address or by an alias (`@name`, `alias:name`).
    ///
    /// # Errors
    /// No repository has this alias; prints as Helm would.
    fn address(&self, repository: &str) -> Result<String, String>;

    /// The archive that satisfies a request. With `pass_credentials` those of the repository are sent also to
    /// other hosts that its index points to.
    ///
    /// # Errors
    /// It cannot be had.
    fn archive(
        &self,
        wanted: &DependencyRequest,
        pass_credentials: bool,
    ) -> Result<ChartArchive, ArchiveError>;

    /// What to tell people whose chart cannot be completed, appended to the reason; empty for nothing.
    fn advice(&self) -> String {
        String::new()
    }
}

/// The archive of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartArchive {
    /// The version that was chosen.
    pub version: String,
    /// The gzipped tar archive.
    pub bytes: Arc<[u8]>,
}

/// Why an archive cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveError {
    /// For people.
    pub reason: String,
    /// Whether trying again later, with nothing changed, may succeed.
    pub is_transient: bool,
    /// Whether it is not to be had from here, however often it is tried.
    pub is_out_of_reach: bool,
}

/// Why dependencies of a chart are not there: Helm's text for missing charts, then the reason.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}\n{reason}", HelmError::MissingDependencies(.missing.clone()))]
pub struct DependencyError {
    missing: Vec<String>,
    reason: String,
    is_transient: bool,
    is_out_of_reach: bool,
}

impl DependencyError {
    /// The same in the words of a version of Helm.
    pub fn as_told_by(&self, compat: Compat) -> String {
        match compat {
            Compat::Helm4 => self.to_string(),
            Compat::Helm3 => {
                format!("{}\n{}", HelmError::MissingDependencies3(self.missing.clone()), self.reason)
            }
        }
    }

    /// Whether trying again later, with nothing changed, may succeed.
    pub fn is_transient(&self) -> bool {
        self.is_transient
    }

    /// Whether it is not to be had from here, however often it is tried.
    pub fn is_out_of_reach(&self) -> bool {
        self.is_out_of_reach
    }
}

/// Where the dependencies of a chart come from.
#[derive(Clone, Copy)]
pub struct Completion<'a> {
    /// What `file://` repositories are read from.
    pub tree: &'a dyn FileTree,
    /// The folder of the tree from which the path counts that the chart was loaded from.
    pub below: &'a str,
    /// See [`ChartArchives::archive`].
    pub pass_credentials: bool,
    /// Serves all others.
    pub archives: &'a dyn ChartArchives,
}

/// Puts the dependencies that a chart lacks beside those that it has.
///
/// # Errors
/// Helm's text for missing charts, followed by why they cannot be had.
pub fn complete(chart: &mut Chart, from: &Completion<'_>) -> Result<(), DependencyError> {
    let missing: Vec<String> =
        chart.missing_dependencies().into_iter().map(|wanted| wanted.name.clone()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let resolver = Resolver { from: *from, failed: Mutex::default() };
    // The lock file has addresses where Chart.yaml has aliases; templates are shown the aliases.
    let mut named = chart.clone();
    let result =
        replace_aliases(&mut named, from.archives).and_then(|()| named.resolve_dependencies(&resolver));
    match result {
        Ok(()) => {
            chart.dependencies = named.dependencies;
            Ok(())
        }
        Err(error) => {
            let failed = resolver.failed.lock().take();
            Err(DependencyError {
                missing,
                reason: format!("{error}{}", from.archives.advice()),
                is_transient: failed.as_ref().is_some_and(|failed| failed.is_transient),
                is_out_of_reach: failed.as_ref().is_some_and(|failed| failed.is_out_of_reach),
            })
        }
    }
}

fn replace_aliases(chart: &mut Chart, archives: &dyn ChartArchives) -> Result<(), HelmError> {
    for wanted in &mut chart.metadata.dependencies {
        wanted.repository = archives.address(&wanted.repository).map_err(HelmError::Fetch)?;
    }
    Ok(())
}

/// One chart's dependencies: those of its own tree, and fetched ones.
struct Resolver<'a> {
    from: Completion<'a>,
    /// The last archive that could not be had.
    failed: Mutex<Option<ArchiveError>>,
}

impl DependencyResolver for Resolver<'_> {
    fn resolve(&self, request: &DependencyRequest, base: &str) -> Result<Chart, HelmError> {
        let DependencyRequest { name, version, repository } = request;
        if repository.is_empty() {
            return Err(HelmError::Fetch(format!(
                "dependency {name} names no repository, so it must stand in charts/{name}"
            )));
        }
        // A tag is a version too, where Helm asks for no other.
        if version.is_empty() {
            return Err(HelmError::Fetch(format!(
                "dependency {name:?} has an invalid version/constraint format: improper constraint: {version:?}"
            )));
        }
        if let Some(path) = repository.strip_prefix("file://") {
            return self.local(request, base, path);
        }
        let fetched = self.from.archives.archive(request, self.from.pass_credentials).map_err(|error| {
            let text = format!("could not get {name} {version} from {repository}: {}", error.reason);
            *self.failed.lock() = Some(error);
            HelmError::Fetch(text)
        })?;
        let place = format!("{base}/charts/{name}-{}.tgz", fetched.version);
        Chart::load_archive(&fetched.bytes, place.trim_start_matches('/'))
    }
}

impl Resolver<'_> {
    fn local(&self, request: &DependencyRequest, base: &str, path: &str) -> Result<Chart, HelmError> {
        let DependencyRequest { name, version, repository } = request;
        let Completion { tree, below, .. } = self.from;
        let outside = |error| HelmError::Fetch(format!("dependency {name} at {repository}: {error}"));
        let folder = match path.starts_with('/') {
            true => normalize(path.trim_start_matches('/')),
            false => join(below, base).and_then(|base| join(&base, path)),
        };
        let folder = folder.map_err(outside)?;
        if !tree.is_dir(&folder) {
            return Err(HelmError::Fetch(format!("directory {folder} not found (dependency {name})")));
        }
        let chart = Chart::load(tree, &folder)?;
        let fits = Constraints::parse(version)
            .ok()
            .zip(Version::parse(&chart.metadata.version).ok())
            .is_some_and(|(constraint, version)| constraint.check(&version));
        if !fits {
            return Err(HelmError::Fetch(format!(
                "can't get a valid version for dependency {name}: {folder} has version {}, wanted is {version}",
                chart.metadata.version
            )));
        }
        Ok(chart)
    }
}
