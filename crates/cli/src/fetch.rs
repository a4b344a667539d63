//! What is fetched, and where it is kept.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tiphys_source::Fetcher;

/// How long what was fetched serves before the remote is asked again: Argo CD's interval.
const FETCH_INTERVAL: Duration = Duration::from_secs(120);

/// The environment variable by which Argo CD limits how long a Git host may take.
const GIT_LIMIT: &str = "ARGOCD_GIT_REQUEST_TIMEOUT";

/// A fetcher over the user's cache, with the logins of the user's Git. It costs nothing until something
/// remote is named.
pub(crate) fn fetcher(offline: bool) -> Arc<Fetcher> {
    Arc::new(configured(offline, |_| None))
}

/// The same for a command that was given a repository, which may be a folder of this machine.
pub(crate) fn fetcher_for(place: &str, offline: bool) -> Arc<Fetcher> {
    let folder = Path::new(place.strip_prefix("file://").unwrap_or(place));
    let local = crate::local_repositories::allowed().and_exactly(folder);
    Arc::new(configured(offline, |_| None).with_local_repositories(local))
}

/// The same for an engine on a cluster, which has logins of its own, asking remotes no more often than at an
/// interval.
pub(crate) fn fetcher_asking(interval: Duration, offline: bool) -> Arc<Fetcher> {
    Arc::new(fetcher_with(interval, offline, |_| None))
}

/// As [`fetcher`], with variables that come before those of the environment.
pub(crate) fn configured(
    offline: bool,
    variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> Fetcher {
    fetcher_with(FETCH_INTERVAL, offline, variable).with_git_credentials()
}

fn fetcher_with(
    interval: Duration,
    offline: bool,
    variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> Fetcher {
    let variable = move |name: &str| variable(name).or_else(|| std::env::var(name).ok());
    let mut fetcher = Fetcher::new(cache_folder(), interval, offline, variable);
    let limit = std::env::var(GIT_LIMIT).ok().and_then(|text| crate::duration::parse(&text).ok());
    if let Some(limit) = limit.filter(|limit| !limit.is_zero()) {
        fetcher = fetcher.with_git_limit(limit);
    }
    let (plugins, functions) = crate::plugins::allowed();
    fetcher
        .with_plugins(plugins)
        .with_functions(functions)
        .with_local_repositories(crate::local_repositories::allowed())
}

/// `$XDG_CACHE_HOME/tiphys`, or under the home folder.
fn cache_folder() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir().filter(|home| home.is_absolute())?.join(".cache")));
    match base {
        Some(base) => base.join("tiphys"),
        // Of this process alone: in a folder that everybody can write to, a known name could be somebody
        // else's.
        None => std::env::temp_dir().join(format!("tiphys-{}", std::process::id())),
    }
}
