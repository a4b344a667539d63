//! Where the state comes from that is looked at: a running cluster, or files.

use std::path::PathBuf;

use anyhow::Context as _;
use tiphys_doctor::Case;

use super::{
    Logs,
    archive::Unpacked,
    live::{self, Options},
    report::DiagnosedCluster,
    save::{self, Source},
};
use crate::app::cluster_choice::Target;

/// What is looked at.
pub(crate) struct State {
    /// Objects, events, logs.
    pub case: Case,
    /// What it is called.
    pub place: DiagnosedCluster,
    /// The cluster that it is from.
    pub source: Source,
}

/// A runtime for the few requests that are under way at a time.
///
/// # Errors
/// The system gives none.
pub(super) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Reads a running cluster.
///
/// # Errors
/// There is no usable kubeconfig, or the cluster does not let anything be read.
pub(super) async fn live(target: &Target, namespace: Option<&str>, logs: Logs) -> anyhow::Result<State> {
    let connection = target.connect().await?.connection;
    let cluster = connection.cluster.read_only();
    let reading = live::read(&cluster, Options { namespace, logs }).await;
    let reading = reading.with_context(|| format!("cannot look at the cluster at {}", connection.address))?;
    let place = DiagnosedCluster {
        name: connection.address.clone(),
        context: target.context.clone(),
        version: reading.version.clone(),
        scope: Vec::new(),
    };
    Ok(State {
        case: reading.case,
        place,
        source: Source { server: connection.address, version: reading.version },
    })
}

/// Reads what was saved.
///
/// # Errors
/// A path cannot be read, or nothing in the paths is an object.
pub(super) fn saved(paths: &[PathBuf]) -> anyhow::Result<State> {
    let mut archives = Vec::new();
    let mut folders = Vec::new();
    for path in paths {
        if save::is_archive(path) && path.is_file() {
            let unpacked = Unpacked::from_archive(path)?;
            folders.push(unpacked.folder().to_owned());
            archives.push(unpacked);
        } else {
            folders.push(path.clone());
        }
    }
    let mut case = Case::read(&folders)?;
    // What was read stands for itself.
    drop(archives);
    let source = save::take_about(&mut case);
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let mut name = names.join(", ");
    if !source.server.is_empty() {
        name.push_str(&format!(" (saved from {})", source.server));
    }
    let place = DiagnosedCluster { name, version: source.version.clone(), ..DiagnosedCluster::default() };
    Ok(State { case, place, source })
}
