//! Which sources that Flux reads are this repository.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_value::{ObjectExt, Value};
use tiphys_vfs::{join, normalize};

use super::{entries::entries, lookup::lookup};
use crate::survey::{contents::Survey, files::Files, input::Input, units};

/// Kind and name of a source.
type Named = (String, String);

/// The sources that are this repository, each with the folder that it begins in: of a Git repository the
/// root, of an artifact the folder that was pushed.
#[derive(Clone, Debug, Default)]
pub struct Sources(BTreeMap<Named, String>);

impl Sources {
    /// Those of a survey: by their address, or because most of the folders that are asked of them are here.
    pub fn from_survey(input: &Input<'_>, survey: &Survey) -> Self {
        let mut asked: BTreeMap<Named, Vec<String>> = BTreeMap::new();
        for it in entries(survey) {
            if let Some(path) = path_of(&it.value) {
                asked.entry(named_source(&it.value)).or_default().push(path);
            }
        }
        let start = |(named, paths): (Named, Vec<String>)| {
            let (kind, name) = (named.0.as_str(), named.1.as_str());
            let source = lookup(survey, &[], kind, "", name);
            let url = source.as_ref().and_then(|it| it.str_at(&["spec", "url"]));
            let is_given = url.is_some_and(|url| (input.is_given)(url));
            if is_given || is_mostly_here(&survey.files, name, "", &paths) {
                return Some((named, String::new()));
            }
            let start = (kind == "OCIRepository").then(|| start_of(&survey.files, name, &paths)).flatten()?;
            Some((named, start))
        };
        Self(asked.into_iter().filter_map(start).collect())
    }

    /// The folder in which a source begins, if it is this repository.
    pub fn start(&self, kind: &str, name: &str) -> Option<&str> {
        self.0.get(&(kind.to_owned(), name.to_owned())).map(String::as_str)
    }

    /// The folder of this repository that a Kustomization builds, whether it is here or not; `None` if it
    /// reads another source, or somebody has still to say which folder.
    pub fn folder(&self, kustomization: &Value) -> Option<String> {
        if !units::is_of_flux(kustomization) {
            return None;
        }
        let (kind, name) = named_source(kustomization);
        join(self.start(&kind, &name)?, &path_of(kustomization)?).ok()
    }
}

/// Whether there is something to build in a folder.
pub(super) fn is_here(files: &Files, folder: &str) -> bool {
    match folder {
        "" => tiphys_kustomize::FILE_NAMES.iter().any(|name| files.contains(name)),
        folder => files.has_folder(folder),
    }
}

fn named_source(kustomization: &Value) -> Named {
    let text = |field: &str| kustomization.str_at(&["spec", "sourceRef", field]).unwrap_or_default();
    (text("kind").to_owned(), text("name").to_owned())
}

/// The path that a Kustomization gives, from the root of its source.
fn path_of(kustomization: &Value) -> Option<String> {
    let path = kustomization.str_at(&["spec", "path"]).filter(|path| !path.contains("${"))?;
    normalize(path.trim_start_matches('/')).ok()
}

/// Whether nearly all folders that are asked of a source are below a folder of this repository. Of the source
/// that `flux bootstrap` makes of the repository it writes to, half of them will do.
fn is_mostly_here(files: &Files, name: &str, start: &str, paths: &[String]) -> bool {
    const FEWEST: usize = 3;
    let below = |path: &String| join(start, path).is_ok_and(|folder| files.has_folder(&folder));
    let here = paths.iter().filter(|path| !path.is_empty() && below(path)).count();
    name == "flux-system" && here > 0 && here * 2 >= paths.len()
        || here >= FEWEST && here * 10 >= paths.len() * 7
}

/// The folder that was pushed as an artifact, if one holds what is asked of it: the uppermost.
fn start_of(files: &Files, name: &str, paths: &[String]) -> Option<String> {
    // Any of them may be the one that is not there.
    const TRIED: usize = 20;
    let ends: Vec<String> =
        paths.iter().filter(|path| !path.is_empty()).take(TRIED).map(|path| format!("/{path}/")).collect();
    let above = |path: &'_ str| ends.iter().filter_map(|end| path.find(end)).collect::<Vec<usize>>();
    let starts: BTreeSet<&str> =
        files.paths().flat_map(|path| above(path).into_iter().map(|at| &path[..at])).collect();
    let mut starts: Vec<&str> = starts.into_iter().collect();
    starts.sort_by_key(|start| start.matches('/').count());
    starts.into_iter().find(|start| is_mostly_here(files, name, start, paths)).map(str::to_owned)
}
