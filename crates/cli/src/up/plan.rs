//! What of a repository is to be run: its root Applications, and what they presuppose.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use tiphys_model::Destination;
use tiphys_value::{ObjectExt as _, Value};
use tiphys_vfs::is_below;

use super::{install, some_of};
use crate::{
    exit::WrongUse,
    repository::{Catalogue, Choice, Found, Given, Repository, Scope, choose},
};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The repository: a folder, or an address that Git takes.
    pub place: &'a str,
    /// Branch, tag or commit, in place of the files as they are.
    pub revision: Option<&'a str>,
    /// Folder or file of the repository to look for Applications in.
    pub path: Option<&'a str>,
    /// One of several environments that stand side by side, by its folder or the end of that.
    pub environment: Option<&'a str>,
    /// Whether `targetRevision` counts for the given repository too.
    pub respect_revisions: bool,
    /// Whether destinations count that are not the engine's own cluster.
    pub respect_destinations: bool,
    /// A file with clusters that the repository does not declare.
    pub clusters: Option<&'a Path>,
    /// Whether nothing is fetched.
    pub offline: bool,
}

/// What is to be run.
pub struct Plan {
    /// The repository.
    pub repository: Repository,
    /// The Applications and sets that nothing else brings.
    pub roots: Vec<Found>,
    /// Projects and cluster Secrets that no Application brings.
    pub projects: Vec<Found>,
    /// Argo CD's settings, if no Application brings them.
    pub argo_settings: Option<Value>,
    /// What is worth saying about how the repository was understood.
    pub notices: Vec<String>,
    /// Clusters that cannot be one with the engine's own.
    pub apart: Vec<Destination>,
    /// Everything that the repository leads to.
    pub catalogue: Catalogue,
}

/// Opens the repository and decides what to run.
///
/// # Errors
/// It cannot be opened, holds nothing to run, or several environments of which none is chosen.
pub fn prepare(request: &Request<'_>) -> anyhow::Result<Plan> {
    let mut repository = Repository::open(&Given {
        place: request.place,
        revision: request.revision,
        path: request.path,
        respect_revisions: request.respect_revisions,
        offline: request.offline,
    })
    .map_err(|error| WrongUse(format!("{error:#}")))?;
    if let Some(file) = request.clusters {
        repository.scan.more_clusters = crate::clusters::read(file)?;
    }
    repository.look_into_units();
    let catalogue = Catalogue::build(&repository.scan, &repository.repositories, Scope::default());
    let roots = catalogue.roots(&repository.scan);
    if roots.is_empty() {
        return Err(WrongUse(nothing_found(&repository)).into());
    }
    let mut clashes = Vec::new();
    let roots: Vec<Found> = match choose(roots, &catalogue) {
        Choice::Run(roots, passed_over) => {
            clashes.extend(passed_over.iter().map(|(first, second)| clash(first, second)));
            roots.into_iter().cloned().collect()
        }
        Choice::Ask(environments) => {
            let Some(name) = request.environment else { return Err(WrongUse(ask(&environments)).into()) };
            let folder = environment_named(name, environments.keys()).map_err(WrongUse)?;
            return prepare(&Request { path: Some(&folder), environment: None, ..*request });
        }
    };
    let mut projects = catalogue.unrendered_others(&repository.scan);
    projects.extend(repository.scan.more_clusters.iter().map(install::cluster_secret));
    let undeclared = undeclared(&catalogue, &repository);
    let argo_settings = install::settings(&repository.scan, &catalogue);
    let mut notices = repository.notices.clone();
    notices.extend(repository.told_left_out());
    notices.extend(clashes);
    notices.extend(repository.scan.faults.iter().map(|fault| fault.trim_end().to_owned()));
    notices.extend(ignored_revisions(request, &repository));
    if !undeclared.is_empty() {
        let names: Vec<&str> = undeclared.iter().map(|found| found.object.name()).collect();
        notices.push(format!(
            "the repository declares no AppProject; these are taken to allow everything: {}",
            names.join(", ")
        ));
    }
    projects.extend(undeclared);
    let apart = if request.respect_destinations { Vec::new() } else { catalogue.clusters_apart() };
    Ok(Plan { repository, roots, projects, argo_settings, notices, apart, catalogue })
}

/// The folder that a name means: it, or the only one that ends in it.
fn environment_named<'a>(name: &str, folders: impl Iterator<Item = &'a String>) -> Result<String, String> {
    let folders: Vec<&String> = folders.collect();
    let name = name.trim_matches('/');
    let ends = |folder: &&&String| {
        folder.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '-']))
    };
    let exact = folders.iter().find(|folder| folder.as_str() == name);
    let found: Vec<&&String> =
        exact.map_or_else(|| folders.iter().filter(ends).collect(), |folder| vec![folder]);
    match found[..] {
        [folder] => Ok(folder.to_string()),
        [] => Err(format!(
            "there is no environment {name:?}; there are {}",
            some_of(&folders.iter().map(|it| it.as_str()).collect::<Vec<_>>())
        )),
        _ => Err(format!(
            "{name:?} is the end of several environments: {}",
            found.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ")
        )),
    }
}

/// The projects that somebody has to have made by other means.
pub fn undeclared(catalogue: &Catalogue, repository: &Repository) -> Vec<Found> {
    let names = catalogue.undeclared_projects(&repository.scan).into_iter();
    let found = |name| Found { file: "AppProject".to_owned(), line: 1, object: install::open_project(name) };
    names.map(found).collect()
}

/// What is told of two Applications of one name, of which one runs.
fn clash(first: &Found, second: &Found) -> String {
    format!(
        "two {}s are named {:?}: {} runs, {} does not; rename one, or narrow the search with {}",
        first.object.kind(),
        first.object.name(),
        first.place(),
        second.place(),
        narrower(&first.file, &second.file),
    )
}

/// The flags that tell two files apart.
fn narrower(first: &str, second: &str) -> String {
    let ways = [(first, second), (second, first)];
    let parting =
        ways.iter().filter_map(|(one, other)| tiphys_graph::survey::environment_parting(one, other));
    // A folder that holds both does not tell them apart.
    let parting = parting.filter(|folder| ![first, second].iter().all(|file| is_below(file, folder)));
    let flags: Vec<String> = parting.map(|folder| format!("--path {folder}")).collect();
    if flags.is_empty() { "--path".to_owned() } else { flags.join(" or ") }
}

fn nothing_found(repository: &Repository) -> String {
    let place =
        if repository.folder.is_empty() { "the repository".to_owned() } else { repository.folder.clone() };
    let mut text = format!(
        "no Application found in {place}: looked through {} YAML and JSON files for kind: Application and ApplicationSet of argoproj.io/v1alpha1",
        repository.scan.files
    );
    for (engine, count) in repository.of_other_engines() {
        let (files, hold) = if count == 1 { ("file", "holds") } else { ("files", "hold") };
        text.push_str(&format!(
            "\n{count} {files} {hold} objects of {engine}, which is another engine: tiphys runs Argo CD's Applications"
        ));
    }
    for fault in &repository.scan.faults {
        text.push_str("\n\n");
        text.push_str(fault.trim_end());
    }
    text
}

fn ask(environments: &BTreeMap<String, Vec<&Found>>) -> String {
    let mut text = String::from("there are several environments side by side; choose one:");
    for (folder, roots) in environments {
        let names: BTreeSet<&str> = roots.iter().map(|root| root.object.name()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        text.push_str(&format!("\n  --path {folder}   ({})", some_of(&names)));
    }
    text
}

/// Says once that target revisions of this repository do not count.
fn ignored_revisions(request: &Request<'_>, repository: &Repository) -> Option<String> {
    if request.respect_revisions {
        return None;
    }
    let mut revisions = repository.scan.target_revisions(&repository.repositories);
    revisions.retain(|revision| !revision.is_empty() && revision != "HEAD");
    if revisions.is_empty() {
        return None;
    }
    let shown: Vec<String> = revisions.into_iter().collect();
    let what =
        request.revision.map_or_else(|| "the files as they are".to_owned(), |rev| format!("revision {rev}"));
    Some(format!(
        "this repository is served from {what}, whatever targetRevision says ({}); --respect-revisions takes the commits",
        shown.join(", ")
    ))
}

/// What is installed, by kind, namespace and name.
pub fn installed(roots: &[Found], others: &[Found]) -> BTreeMap<(String, String, String), Found> {
    let all = roots.iter().chain(others);
    all.map(|found| {
        let (namespace, name) = found.id();
        ((found.object.kind().to_owned(), namespace, name), found.clone())
    })
    .collect()
}

/// Whether something that is no root any more is rendered by an Application now.
pub fn is_led_to(found: &Found, catalogue: &Catalogue) -> bool {
    match found.object.kind() {
        "Application" | "ApplicationSet" => catalogue.knows(&found.node()),
        _ => catalogue.renders(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_meant_by_its_folder_or_the_end_of_it() {
        let folders = ["envs/dev", "envs/prod", "envs/eu-prod"].map(str::to_owned);
        let named = |name: &str| environment_named(name, folders.iter());
        assert_eq!(named("dev").as_deref(), Ok("envs/dev"));
        assert_eq!(named("envs/prod/").as_deref(), Ok("envs/prod"));
        assert!(named("prod").unwrap_err().contains("envs/prod, envs/eu-prod"));
        assert!(named("test").unwrap_err().contains("there are envs/dev, envs/prod, envs/eu-prod"));
    }
}
