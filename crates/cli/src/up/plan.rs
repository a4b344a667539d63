//! What of a repository is to be run: its root Applications, and what they presuppose.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, btree_map::Entry},
    path::Path,
};

use tiphys_appset::ClusterInfo;
use tiphys_graph::{DeclaredId, Notice, Options, Owner, Root, Survey, bootstrap::Bootstrap};
use tiphys_model::Destination;
use tiphys_value::{ObjectExt as _, RenderedObject, ResourceKey, Value};
use tiphys_vfs::is_below;

use super::{
    bootstrap::{self, ByHand},
    some_of,
};
use crate::{
    clusters::{HOME, cluster_of},
    exit::WrongUse,
    repository::{self, Given, Repository, nothing_found, to_run, with_environment},
};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// The repository: a folder, or an address that Git takes.
    pub place: &'a str,
    /// Branch, tag or commit, in place of the files as they are.
    pub revision: Option<&'a str>,
    /// Folder or file of the repository to look for Applications in.
    pub path: Option<&'a str>,
    /// One of several environments that stand side by side, by its name or the end of it.
    pub environment: Option<&'a str>,
    /// Whether `targetRevision` counts for the given repository too.
    pub respect_revisions: bool,
    /// Whether destinations count that are not the engine's own cluster.
    pub respect_destinations: bool,
    /// A file with clusters that the repository does not declare.
    pub clusters: Option<&'a Path>,
    /// Whether nothing is fetched.
    pub offline: bool,
    /// How many Applications are run at most.
    pub most_applications: usize,
    /// Whether it is kept where each field of each object was written.
    pub origins: bool,
}

/// What is to be run.
pub(crate) struct Plan {
    /// The repository.
    pub repository: Repository,
    /// Everything that the repository leads to.
    pub survey: Survey,
    /// Clusters that the repository does not declare.
    pub clusters: Vec<ClusterInfo>,
    /// The Applications and sets that nothing else brings.
    pub roots: Vec<ByHand>,
    /// Projects and cluster Secrets that no Application brings.
    pub projects: Vec<ByHand>,
    /// Argo CD's settings, if no Application brings them.
    pub argo_settings: Option<Value>,
    /// What is worth saying about how the repository was understood.
    pub notices: Vec<String>,
    /// Clusters that cannot be one with the engine's own.
    pub apart: Vec<Destination>,
}

/// What somebody applies by hand so that a repository comes up.
#[derive(Clone, Default)]
pub(crate) struct Start {
    /// The Applications and sets that nothing else brings.
    pub roots: Vec<ByHand>,
    /// Projects and cluster Secrets that no Application brings.
    pub projects: Vec<ByHand>,
    /// Argo CD's settings, if no Application brings them.
    pub argo_settings: Option<Value>,
    /// The projects that somebody has to have made by other means; they are among the others.
    undeclared: Vec<String>,
    /// What is told of roots of one name, of which one runs.
    clashes: Vec<String>,
}

impl Start {
    /// What a repository wants, beside clusters that it does not declare.
    pub(crate) fn from_survey(survey: &Survey, clusters: &[ClusterInfo]) -> Self {
        let bootstrap = Bootstrap::from_survey(survey);
        let mut start = Self {
            argo_settings: bootstrap.settings(),
            undeclared: bootstrap.undeclared_projects().into_iter().map(str::to_owned).collect(),
            ..Self::default()
        };
        let mut seen: BTreeMap<DeclaredId, ByHand> = BTreeMap::new();
        for root in bootstrap.roots() {
            let mut own = ByHand::from_declared(&root.declared);
            if let Some(namespace) = bootstrap.own_namespace(root) {
                own.object["metadata"]["namespace"] = namespace.into();
            }
            match seen.entry(DeclaredId::from_object(&own.object)) {
                Entry::Occupied(first) => start.clashes.push(clash(first.get(), &own)),
                Entry::Vacant(entry) => start.roots.push(entry.insert(own).clone()),
            }
        }
        start.projects = bootstrap.by_hand().iter().map(|it| ByHand::from_declared(it)).collect();
        start.projects.extend(clusters.iter().map(bootstrap::cluster_secret));
        let open = |name: &String| ByHand {
            place: "AppProject".to_owned(),
            file: String::new(),
            object: bootstrap::open_project(name),
        };
        start.projects.extend(start.undeclared.iter().map(open).collect::<Vec<_>>());
        start
    }
}

/// How a repository is looked at to be run: what is of other repositories is not fetched before the engine
/// does.
pub(crate) fn options() -> Options {
    Options { foreign: false, ..to_run() }
}

impl Plan {
    /// The objects that Applications render.
    pub(crate) fn rendered(&self) -> impl Iterator<Item = &RenderedObject> {
        rendered(&self.survey)
    }
}

/// Whether an Application brings Argo CD's settings.
pub(crate) fn brings_settings(survey: &Survey) -> bool {
    survey.rendered_config_maps().next().is_some()
}

/// The objects that Applications render.
fn rendered(survey: &Survey) -> impl Iterator<Item = &RenderedObject> {
    let objects = survey.objects.iter().filter(|object| matches!(object.owner, Owner::App(_)));
    objects.map(|object| object.rendered.as_ref())
}

/// The clusters other than the engine's own that Applications name, if two Applications for different
/// clusters have an object in common: in one cluster they would fight over it. Empty otherwise.
fn clusters_apart(survey: &Survey) -> Vec<Destination> {
    let mut owners: HashMap<ResourceKey, (&str, &str)> = HashMap::new();
    let mut collide = false;
    let mut foreign: BTreeMap<(&str, &str), &Destination> = BTreeMap::new();
    for app in &survey.apps {
        let destination = &app.application.spec.destination;
        let cluster = cluster_of(destination);
        if cluster != HOME {
            foreign.insert(cluster, destination);
        }
        for object in survey.objects_of(app.id) {
            let owner = owners.entry(object.value().resource_key()).or_insert(cluster);
            collide |= *owner != cluster;
        }
    }
    if collide { foreign.into_values().cloned().collect() } else { Vec::new() }
}

/// Opens the repository and decides what to run.
///
/// # Errors
/// It cannot be opened, holds nothing to run, or several environments of which none is chosen.
pub(crate) fn prepare(request: &Request<'_>) -> anyhow::Result<Plan> {
    let repository = Repository::open(&Given {
        place: request.place,
        revision: request.revision,
        path: request.path,
        respect_revisions: request.respect_revisions,
        offline: request.offline,
    })
    .map_err(|error| WrongUse(format!("{error:#}")))?;
    let clusters = request.clusters.map(crate::clusters::read).transpose()?.unwrap_or_default();
    let options = Options { origins: request.origins, ..options() };
    let survey = repository.survey(options, request.environment, &clusters);
    let survey = with_environment(survey)?;
    if survey.roots.is_empty() {
        return Err(WrongUse(nothing_found(&survey, &repository.folder)).into());
    }
    if request.environment.is_none() && survey.choices.len() > 1 {
        return Err(WrongUse(ask(&survey)).into());
    }
    if let Some(why) = too_many(&survey, request.most_applications) {
        return Err(WrongUse(why).into());
    }
    let by_hand = Start::from_survey(&survey, &clusters);
    let mut notices = repository::notices(&survey);
    notices.extend(by_hand.clashes.iter().cloned());
    notices.extend(repository::faults(&survey));
    notices.extend(ignored_revisions(request, &repository, &survey));
    if !by_hand.undeclared.is_empty() {
        let place = match (request.environment, repository.folder.as_str()) {
            (Some(_), _) => "the environment",
            (None, "") => "the repository",
            (None, folder) => folder,
        };
        notices.push(format!(
            "{place} declares no AppProject; these are taken to allow everything: {}",
            by_hand.undeclared.join(", ")
        ));
    }
    let apart = if request.respect_destinations { Vec::new() } else { clusters_apart(&survey) };
    let Start { roots, projects, argo_settings, .. } = by_hand;
    Ok(Plan { repository, survey, clusters, roots, projects, argo_settings, notices, apart })
}

/// What is told of two Applications of one name, of which one runs.
fn clash(first: &ByHand, second: &ByHand) -> String {
    format!(
        "two {}s are named {:?}: {} runs, {} does not; rename one, or narrow the search with {}",
        first.object.kind(),
        first.object.name(),
        first.place,
        second.place,
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

/// Why a repository is not run that leads to more Applications than `most`, or to more objects than are
/// looked at: in one process they would take all of a machine's memory.
fn too_many(survey: &Survey, most: usize) -> Option<String> {
    let further = survey.notices.iter().map(|notice| match notice {
        Notice::FurtherApplications(count) => *count,
        _ => 0,
    });
    let count = survey.apps.len() + further.sum::<usize>();
    if count > most {
        return Some(format!(
            "the repository leads to {count} Applications, and {most} are run at most; narrow it with --path or --environment"
        ));
    }
    let limit = survey.notices.iter().find_map(|notice| match notice {
        Notice::OverLimit { limit, .. } => Some(*limit),
        _ => None,
    })?;
    let flag = limit.flag();
    Some(format!(
        "the Applications of the repository {limit} together, and no more are run; narrow it with --path or --environment, or raise the limit with {flag}"
    ))
}

/// Which environments there are to choose among, with their roots.
fn ask(survey: &Survey) -> String {
    let mut text = String::from("there are several environments side by side; choose one:");
    for (choice, environments) in &survey.choices {
        let is_of = |root: &&Root| environments.contains(&survey.environments[root.environment.0].name);
        let roots = survey.roots.iter().filter(is_of);
        let names: BTreeSet<&str> = roots.map(|root| root.declared.value.name()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        text.push_str(&format!("\n  --environment {choice}   ({})", some_of(&names)));
    }
    text
}

/// Says once that target revisions of this repository do not count.
fn ignored_revisions(request: &Request<'_>, repository: &Repository, survey: &Survey) -> Option<String> {
    if request.respect_revisions {
        return None;
    }
    let sources = survey.apps.iter().flat_map(|app| app.application.spec.effective_sources());
    let ours = sources.filter(|source| repository.repositories.is_own_address(&source.repo_url));
    let mut revisions: BTreeSet<String> = ours.map(|source| source.target_revision).collect();
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
pub(crate) fn installed(roots: &[ByHand], projects: &[ByHand]) -> BTreeMap<(String, String, String), ByHand> {
    let all = roots.iter().chain(projects);
    all.map(|one| {
        let (namespace, name) = one.id();
        ((one.object.kind().to_owned(), namespace, name), one.clone())
    })
    .collect()
}

/// Whether something that is no root any more is brought by an Application or set now.
pub(crate) fn is_led_to(gone: &ByHand, survey: &Survey) -> bool {
    let bootstrap = Bootstrap::from_survey(survey);
    match gone.object.kind() {
        "Application" | "ApplicationSet" => bootstrap.knows(&DeclaredId::from_object(&gone.object)),
        _ => bootstrap.renders(&gone.object),
    }
}
