//! Plain directories of manifests and Jsonnet files (Argo CD user guide, "Directory").

use tiphys_model::glob;
use tiphys_vfs::{EntryKind, FileTree};

use crate::{Job, RenderError, Yield, jsonnet, manifest};

/// A file that holds this text is no manifest, whatever its name.
const SKIP_MARK: &str = "+argocd:skip-file-rendering";

/// Reads every manifest of the source's folder, in the order of their paths.
pub(crate) fn render(job: &Job<'_>) -> Result<Yield, RenderError> {
    let tree = job.set.tree(job.index).as_ref();
    let options = job.source.directory.clone().unwrap_or_default();
    let mut yielded = Yield::default();
    for path in files(tree, &job.source.path, options.recurse)? {
        let name = relative(&path, &job.source.path);
        let is_jsonnet = name.ends_with(".jsonnet") && job.context.sources.evaluates_jsonnet();
        let known = is_jsonnet || [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
        let wanted = (known || options.disable_extension_filter)
            && (options.exclude.is_empty() || !glob::matches(&options.exclude, name))
            && (options.include.is_empty() || glob::matches(&options.include, name));
        if !wanted {
            continue;
        }
        if is_jsonnet {
            let text = jsonnet::evaluate(job, &path)?;
            yielded.objects.extend(job.budget.count(manifest::parse_values(&path, &text)?, &path)?);
            continue;
        }
        read_file(job, &path, &mut yielded)?;
    }
    Ok(yielded)
}

fn read_file(job: &Job<'_>, path: &str, yielded: &mut Yield) -> Result<(), RenderError> {
    let (tree, origins) = (job.set.tree(job.index).as_ref(), job.context.origins);
    let text = manifest::read_text(tree, path)?;
    if text.contains(SKIP_MARK) {
        return Ok(());
    }
    let mut repeated = Vec::new();
    match manifest::parse_objects_as_argo_cd(path, &text, origins, &mut repeated) {
        Ok(objects) => {
            let first_line =
                |error: &RenderError| error.to_string().lines().next().unwrap_or_default().to_owned();
            let told = repeated.iter().map(|error| format!("{}: the last counts", first_line(error)));
            yielded.warnings.extend(told);
            yielded.objects.extend(job.budget.count(objects, path)?);
        }
        Err(error) if manifest::looks_like_manifest(&text) || path.ends_with(".json") => return Err(error),
        Err(error) => {
            yielded.warnings.push(format!("{path} is left out, it is no manifest: {}", error.headline()))
        }
    }
    Ok(())
}

/// The files of a folder, with `recurse` those below it too, each folder's entries in the order of their
/// names. Links to files are followed; links to folders are not (one may lead back up); a link that leaves
/// the repository is refused, because leaving it out silently would change what is deployed.
fn files(tree: &dyn FileTree, folder: &str, recurse: bool) -> Result<Vec<String>, RenderError> {
    let fail = |error: tiphys_vfs::VfsError| RenderError::new(error.to_string());
    let folder = tiphys_vfs::normalize(folder).map_err(fail)?;
    let mut files = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in tree.read_dir(&folder).map_err(fail)? {
            let path = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            match entry.kind {
                EntryKind::File => files.push(path),
                EntryKind::Dir if recurse && !entry.is_symlink && !path.ends_with(".git") => {
                    folders.push(path)
                }
                EntryKind::Dir => {}
            }
        }
    }
    files.sort_by(|one, other| one.split('/').cmp(other.split('/')));
    Ok(files)
}

fn relative<'a>(path: &'a str, folder: &str) -> &'a str {
    let folder = tiphys_vfs::normalize(folder).unwrap_or_default();
    path.strip_prefix(&folder).map_or(path, |rest| rest.trim_start_matches('/'))
}
