//! Where the state comes from that is looked at: a running cluster, or files.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tiphys_doctor::{Case, ReadError};

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
            archives.push((unpacked, path));
        } else {
            folders.push(path.clone());
        }
    }
    let mut case = Case::read(&folders).map_err(|error| in_archives(error, &archives))?;
    for it in &mut case.unreadable {
        it.what = of_archive(Path::new(&it.what), &archives).display().to_string();
    }
    let source = save::take_about(&mut case);
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let mut name = names.join(", ");
    if !source.server.is_empty() {
        name.push_str(&format!(" (saved from {})", source.server));
    }
    let place = DiagnosedCluster { name, version: source.version.clone(), ..DiagnosedCluster::default() };
    Ok(State { case, place, source })
}

/// The path of a file as people know it: of one that was unpacked, its place in the archive.
fn of_archive(file: &Path, archives: &[(Unpacked, &PathBuf)]) -> PathBuf {
    let inside = archives
        .iter()
        .find_map(|(unpacked, archive)| Some((file.strip_prefix(unpacked.folder()).ok()?, *archive)));
    match inside {
        Some((rest, archive)) if rest.as_os_str().is_empty() => archive.clone(),
        Some((rest, archive)) => format!("{} in {}", rest.display(), archive.display()).into(),
        None => file.to_owned(),
    }
}

/// The error with the paths that were asked for; an unpacked folder tells nobody anything.
fn in_archives(error: ReadError, archives: &[(Unpacked, &PathBuf)]) -> ReadError {
    match error {
        ReadError::Path { path, error } => ReadError::Path { path: of_archive(&path, archives), error },
        ReadError::Empty { paths } => {
            ReadError::Empty { paths: paths.iter().map(|path| of_archive(path, archives)).collect() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_an_archive_is_named_by_the_archive() {
        let folder = tempfile::tempdir().unwrap();
        let pack = |name: &str, files: &[(&str, &str)]| {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(file, flate2::Compression::fast()));
            for (path, text) in files {
                let mut header = tar::Header::new_gnu();
                header.set_size(text.len() as u64);
                header.set_mode(0o644);
                tar.append_data(&mut header, path, text.as_bytes()).unwrap();
            }
            tar.into_inner().unwrap().finish().unwrap();
            folder.path().join(name)
        };
        let object = ("a/cm.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}");
        let state = pack("state.tar.gz", &[object, ("a/broken.yaml", "kind: [")]);
        let read = saved(std::slice::from_ref(&state)).unwrap();
        let what: Vec<&str> = read.case.unreadable.iter().map(|it| it.what.as_str()).collect();
        assert_eq!(what, [format!("a/broken.yaml in {}", state.display())]);

        let empty = pack("empty.tar.gz", &[("a/notes.md", "nothing")]);
        let error = saved(std::slice::from_ref(&empty)).err().unwrap().to_string();
        assert!(error.contains(&format!("in {}:", empty.display())), "{error}");
    }
}
