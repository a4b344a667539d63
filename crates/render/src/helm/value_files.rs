//! The values files of a Helm source: which, in what order, from where.

use std::sync::Arc;

use tiphys_gocompat::glob::{BadPattern, doublestar};
use tiphys_helm::ValuesSource;
use tiphys_kustomize::RemoteError;
use tiphys_model::HelmSource;
use tiphys_vfs::{FileTree, join};

use crate::{Cause, Job, RenderError, Subject};

/// The value files in order. Globs stand for their matches in path order; a file that is also named
/// by itself keeps the place where it is named.
pub(super) fn value_files(job: &Job<'_>, helm: &HelmSource) -> Result<Vec<ValuesSource>, RenderError> {
    let mut wanted: Vec<Wanted> = Vec::new();
    let named: Vec<String> = helm.value_files.iter().map(|entry| expand_variables(job, entry)).collect();
    for entry in &named {
        if entry.contains("://") {
            wanted.push(Wanted::Address(entry.clone()));
            continue;
        }
        let (tree, path) = locate(job, entry)?;
        // Braces alone make no pattern for Argo CD, though they count in one.
        let is_pattern = path.contains(['*', '?', '[']);
        let matches = if is_pattern { expand(tree.as_ref(), &path)? } else { vec![path.clone()] };
        if matches.is_empty() && !helm.ignore_missing_value_files {
            let text = format!("value files {entry}: no file matches");
            return Err(RenderError::new(text).caused_by(Cause::Missing));
        }
        for found in matches {
            let is_named = |other: &String| {
                locate(job, other).is_ok_and(|(of, path)| Arc::ptr_eq(&of, &tree) && path == found)
            };
            let explicit = found != path && named.iter().any(is_named);
            let is_it = |have: &Wanted| matches!(have, Wanted::File { tree: of, path, .. } if Arc::ptr_eq(of, &tree) && *path == found);
            if !explicit && !wanted.iter().any(is_it) {
                wanted.push(Wanted::File { tree: tree.clone(), path: found, entry: entry.clone() });
            }
        }
    }
    wanted.into_iter().filter_map(|one| one.read(job, helm).transpose()).collect()
}

/// A values file that is to be read.
enum Wanted {
    Address(String),
    /// In a tree, and as it is named in the Application.
    File {
        tree: Arc<dyn FileTree>,
        path: String,
        entry: String,
    },
}

impl Wanted {
    /// Nothing for a file that may be missing and is.
    fn read(self, job: &Job<'_>, helm: &HelmSource) -> Result<Option<ValuesSource>, RenderError> {
        let (tree, path, entry) = match self {
            Self::Address(url) => {
                let bytes = fetch(job, &url)?;
                return Ok(Some(ValuesSource::File(url, bytes)));
            }
            Self::File { tree, path, entry } => (tree, path, entry),
        };
        match tree.read(&path) {
            Ok(bytes) => Ok(Some(ValuesSource::File(path, bytes))),
            Err(error) if error.is_not_found() && helm.ignore_missing_value_files => Ok(None),
            Err(error) => {
                let cause = if error.is_not_found() { Cause::Missing } else { Cause::Other };
                let missing = error.is_not_found().then_some(error.path.as_str());
                let told = RenderError::new(format!("value file {entry}: {error}")).missing(missing);
                Err(told.caused_by(cause).about(Subject::ValueFile(entry)))
            }
        }
    }
}

/// A values file behind an address.
fn fetch(job: &Job<'_>, url: &str) -> Result<Arc<[u8]>, RenderError> {
    let (scheme, _) = url.split_once("://").unwrap_or_default();
    let sources = job.context.sources;
    let fail = |why: String| {
        let told = RenderError::new(format!("value file {url}: {why}")).caused_by(Cause::Unsupported);
        told.about(Subject::ValueFile(url.to_owned()))
    };
    if !sources.permits_values_from(scheme) {
        return Err(fail(format!("addresses with {scheme}:// are not permitted (helm.valuesFileSchemes)")));
    }
    if !matches!(scheme, "http" | "https") {
        return Err(fail(format!("fetching by {scheme}:// is not supported")));
    }
    let Some(remote) = sources.remote_loader() else { return Err(fail("nothing is fetched".to_owned())) };
    match remote.file(url) {
        Ok(bytes) => Ok(bytes.into()),
        Err(error) => {
            let is_settled = matches!(error, RemoteError::Status { code: 400..=499, .. });
            Err(fail(error.to_string()).transient(!is_settled))
        }
    }
}

/// A values file as it is named, with variables replaced. `$name/…` is a reference to a source, unless `name`
/// is a variable: as one it would be empty, and the rest a file of this repository.
pub(super) fn expand_variables(job: &Job<'_>, entry: &str) -> String {
    let reference = entry.strip_prefix('$').and_then(|rest| rest.split_once('/'));
    match reference {
        Some((name, path)) if job.set.has_reference(name) || !job.env.has(name) => {
            format!("${name}/{}", job.env.expand(path))
        }
        _ => job.env.expand(entry),
    }
}

/// The files that match a glob, in path order.
fn expand(tree: &dyn FileTree, pattern: &str) -> Result<Vec<String>, RenderError> {
    let is_special = |step: &&str| step.contains(['*', '?', '[', '{', '\\']);
    let fixed = pattern.split('/').take_while(|step| !is_special(step)).collect::<Vec<_>>().join("/");
    if !tree.is_dir(&fixed) {
        return Ok(Vec::new());
    }
    let files = tiphys_vfs::walk(tree, &fixed).map_err(|e| RenderError::new(e.to_string()))?;
    let meant = files.into_iter().map(|file| Ok(doublestar(pattern, &file)?.then_some(file)));
    let meant = meant.collect::<Result<Vec<_>, BadPattern>>();
    let meant = meant.map_err(|error| RenderError::new(format!("value files {pattern}: {error}")))?;
    Ok(meant.into_iter().flatten().collect())
}

/// The tree and path that an entry names: `$ref/path` in another source, `/path` from the root of
/// the repository, else from the source's folder.
pub(super) fn locate(job: &Job<'_>, entry: &str) -> Result<(Arc<dyn FileTree>, String), RenderError> {
    let outside = |_| {
        let told = RenderError::new(format!("value file {entry}: it leads outside the repository"));
        told.about(Subject::ValueFile(entry.to_owned()))
    };
    if let Some(rest) = entry.strip_prefix('$') {
        let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
        return Ok((job.set.ref_tree(name)?.clone(), join("", path).map_err(outside)?));
    }
    let base = if entry.starts_with('/') { "" } else { job.source.path.as_str() };
    Ok((job.set.tree(job.index).clone(), join(base, entry).map_err(outside)?))
}
