//! The clusters that Flux fills. Each Kustomization and HelmRelease of one is read as the Application that renders the
//! same, so that what is asked of a cluster as a whole can be asked of these too.
//!
//! A cluster is what one entry leads to: a Kustomization that no other applies, such as that of `flux bootstrap`, or the
//! `sync` of a FluxInstance. What is not sure leaves its mark: what cannot be rendered is [`Outcome::Unseen`], and a
//! variable whose value nobody can read stays in the text.

mod generated;
mod substitute;
mod translate;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{Arc, OnceLock},
};

use tiphys_model::{Application, SourceType, hook};
use tiphys_value::{ObjectExt, Origins, RenderedObject, Value, json};
use tiphys_vfs::{is_below, normalize};

pub use generated::with_file;

use super::{
    App, AppId, Declaration, Environment, EnvironmentId, Object, ObjectId, Outcome, Owner, Survey, Unseen,
    assemble::key_of,
    build::{self, Found},
    environment, units,
};
use crate::put_away::put_away;
use substitute::{Giver, Variables};
use translate::{Scope, Translated, is_unit, translate};

/// How many Kustomizations and HelmReleases of one cluster are followed.
const MAX_PARTS: usize = 20_000;

/// A Kustomization or HelmRelease, and what it comes to.
struct Part {
    declared: Arc<RenderedObject>,
    application: Value,
    outcome: Outcome,
    objects: Vec<Arc<RenderedObject>>,
    tools: Vec<Option<SourceType>>,
    read: Arc<BTreeSet<Arc<str>>>,
    missed: Vec<(String, String)>,
}

impl Part {
    fn key(&self) -> (&str, &str, &str) {
        let declared = &self.declared.value;
        (declared.kind(), declared.namespace(), declared.name())
    }
}

/// What one root leads to.
struct Tree {
    root: Arc<RenderedObject>,
    parts: Vec<Part>,
}

impl Tree {
    /// Whether the root itself could be built.
    fn is_built(&self) -> bool {
        self.parts.first().is_some_and(|part| matches!(part.outcome, Outcome::Rendered))
    }
}

/// What Flux applies of a repository, cluster by cluster; nothing if Flux applies nothing of it, or an engine for
/// Applications fills the same clusters. What none of the clusters holds is beside it, as what no Application reaches.
pub fn survey(found: &mut Found<'_>, of: &Survey) -> Option<Survey> {
    if !of.apps.is_empty() {
        return None;
    }
    let all = entries(of);
    let homes = homes(found, of, &all);
    let mut candidates = candidates(of, all, &homes);
    let mut follow = |root| tree(found, of, &homes, root, &[]);
    let trees = loop {
        let roots = roots(&candidates);
        let trees: Vec<Tree> = roots.iter().map(|at| follow(candidates[*at].object.clone())).collect();
        // What cannot be built leads nowhere, and neither does what builds nothing of what lies below it: those may be
        // entries themselves.
        let mut is_done = true;
        for (at, tree) in roots.iter().zip(&trees) {
            let is_bare = tree.parts.len() == 1 && candidates[*at].leads;
            let holds_others = is_bare && candidates.iter().any(|it| candidates[*at].is_above(it));
            if !tree.is_built() || holds_others {
                (candidates[*at].leads, candidates[*at].is_built) = (false, tree.is_built());
                is_done = false;
            }
        }
        if is_done {
            break trees;
        }
        candidates.retain(|it| it.is_built);
    };
    let trees = without_inner(trees);
    let clusters = sure(clusters(trees));
    if clusters.is_empty() {
        return None;
    }
    let names: Vec<String> = clusters.iter().map(|trees| name_of(&trees[0])).collect();
    // What one part makes another one may read, whichever is rendered first.
    let filled = clusters.into_iter().map(|trees| {
        let known: Vec<Arc<RenderedObject>> =
            trees.iter().flat_map(|tree| &tree.parts).flat_map(|part| part.objects.iter().cloned()).collect();
        let again = trees.iter().map(|it| tree(found, of, &homes, it.root.clone(), &known));
        again.flat_map(|tree| tree.parts).collect::<Vec<Part>>()
    });
    let filled: Vec<Vec<Part>> = filled.collect();
    Some(assembled(of, names.into_iter().zip(filled)))
}

/// A Kustomization that may be an entry.
struct Candidate {
    object: Arc<RenderedObject>,
    folder: String,
    /// Whether others that lie in its folder are taken to come of it.
    leads: bool,
    is_built: bool,
}

impl Candidate {
    /// Whether another one lies in its folder.
    fn is_above(&self, other: &Self) -> bool {
        let is_self = Arc::ptr_eq(&self.object, &other.object);
        !is_self && (self.folder.is_empty() || is_below(&other.object.location.file, &self.folder))
    }
}

/// The Kustomizations that are declared anywhere, each once.
fn entries(of: &Survey) -> Vec<Arc<RenderedObject>> {
    let mut seen = HashSet::new();
    let objects = of.objects.iter().filter(|object| put_away(&object.rendered.location.file).is_none());
    objects
        .filter_map(|object| entry(&object.rendered))
        .filter(|it| {
            let at = &it.value["metadata"];
            seen.insert((it.location.file.clone(), it.location.line, at.to_string()))
        })
        .collect()
}

/// The folder of this repository that a Kustomization builds, if it is here.
fn folder_of(of: &Survey, kustomization: &Value) -> Option<String> {
    let path = kustomization.str_at(&["spec", "path"]).filter(|path| !path.contains("${"))?;
    let folder = normalize(path.trim_start_matches('/')).ok()?;
    let is_there = match folder.as_str() {
        "" => tiphys_kustomize::FILE_NAMES.iter().any(|name| of.files.contains(name)),
        folder => of.files.has_folder(folder),
    };
    is_there.then_some(folder)
}

/// Kind and name of a source.
type Named = (String, String);

fn source_of(kustomization: &Value) -> Named {
    let text = |field: &str| kustomization.str_at(&["spec", "sourceRef", field]).unwrap_or_default();
    (text("kind").to_owned(), text("name").to_owned())
}

/// The sources that are this repository: by their address, or because most of the folders that are asked of them are here.
fn homes(found: &Found<'_>, of: &Survey, all: &[Arc<RenderedObject>]) -> BTreeSet<Named> {
    const FEWEST: usize = 3;
    const OUT_OF_TEN: usize = 6;
    let mut asked: BTreeMap<Named, (usize, usize)> = BTreeMap::new();
    for it in all.iter().filter(|it| it.value.str_at(&["spec", "path"]).is_some()) {
        let counts = asked.entry(source_of(&it.value)).or_default();
        counts.0 += usize::from(folder_of(of, &it.value).is_some_and(|folder| !folder.is_empty()));
        counts.1 += 1;
    }
    let is_home = |((kind, name), (here, all)): (&Named, &(usize, usize))| {
        let source = lookup(of, &[], kind, "", name);
        let url = source.as_ref().and_then(|it| it.str_at(&["spec", "url"]));
        let is_given = url.is_some_and(|url| (found.input.is_given)(url));
        is_given || name == "flux-system" && *here > 0 || *here >= FEWEST && here * 10 >= all * OUT_OF_TEN
    };
    asked.iter().filter(|it| is_home(*it)).map(|(named, _)| named.clone()).collect()
}

/// The Kustomizations of this repository, with the folders that they build.
fn candidates(of: &Survey, all: Vec<Arc<RenderedObject>>, homes: &BTreeSet<Named>) -> Vec<Candidate> {
    let own = all.into_iter().filter(|it| homes.contains(&source_of(&it.value)));
    own.filter_map(|object| {
        let folder = folder_of(of, &object.value)?;
        Some(Candidate { object, folder, leads: true, is_built: true })
    })
    .collect()
}

/// The Kustomizations that may be entries: those that lie in no folder that another one builds. Of those that lie in each
/// other's folders, by however many steps, the one above most others.
fn roots(candidates: &[Candidate]) -> Vec<usize> {
    let all = 0..candidates.len();
    let below: Vec<Vec<usize>> = all
        .clone()
        .map(|at| {
            let is_below =
                |other: &usize| candidates[at].leads && candidates[at].is_above(&candidates[*other]);
            all.clone().filter(is_below).collect()
        })
        .collect();
    let reached: Vec<BTreeSet<usize>> = all
        .clone()
        .map(|at| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![at]);
            while let Some(next) = open.pop() {
                open.extend(below[next].iter().copied().filter(|it| seen.insert(*it)));
            }
            seen
        })
        .collect();
    let comes_first = |one: usize, other: usize| (below[other].len(), one) < (below[one].len(), other);
    let is_root = |at: &usize| {
        all.clone()
            .filter(|other| other != at && reached[*other].contains(at))
            .all(|other| reached[*at].contains(&other) && comes_first(*at, other))
    };
    all.clone().filter(is_root).collect()
}

/// A Kustomization, or what stands for that of a FluxInstance.
fn entry(object: &Arc<RenderedObject>) -> Option<Arc<RenderedObject>> {
    let value = &object.value;
    if !units::is_of_flux(value) {
        return None;
    }
    if value.kind() == "Kustomization" {
        return Some(object.clone());
    }
    let sync = value.at(&["spec", "sync"])?;
    let namespace = Some(value.namespace()).filter(|it| !it.is_empty()).unwrap_or("flux-system");
    let name = sync["name"].as_str().unwrap_or(namespace);
    let kustomization = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"path": sync["path"], "sourceRef": {"kind": sync["kind"], "name": name}},
    });
    let (location, origins) = (object.location.clone(), Origins::default());
    Some(Arc::new(RenderedObject { value: kustomization, location, origins }))
}

/// Follows a root to the end. `known` are the objects of its cluster, as far as they are known already.
fn tree(
    found: &mut Found<'_>,
    of: &Survey,
    homes: &BTreeSet<Named>,
    root: Arc<RenderedObject>,
    known: &[Arc<RenderedObject>],
) -> Tree {
    let find = |kind: &str, namespace: &str, name: &str| lookup(of, known, kind, namespace, name);
    let mut parts: Vec<Part> = Vec::new();
    let mut seen: HashSet<(String, String, String)> = HashSet::new();
    let mut open = vec![root.clone()];
    while !open.is_empty() && parts.len() < MAX_PARTS {
        let input = found.input;
        let scope = Scope { files: &found.files, is_given: input.is_given, homes, find: &find };
        let mut level: Vec<(Arc<RenderedObject>, Translated)> = Vec::new();
        for declared in std::mem::take(&mut open) {
            let own = &declared.value;
            if seen.insert((own.kind().to_owned(), own.namespace().to_owned(), own.name().to_owned())) {
                let translated = translate(own, &scope);
                level.push((declared, translated));
            }
        }
        let wanted: Vec<&Value> =
            level.iter().filter(|(_, it)| it.unseen.is_none()).map(|(_, it)| &it.application).collect();
        found.memo.render(&wanted, input);
        for (declared, translated) in level {
            let part = part(found, declared, translated, &find);
            open.extend(part.objects.iter().filter(|it| is_unit(&it.value)).cloned());
            parts.push(part);
        }
    }
    Tree { root, parts }
}

/// An object by what it is called, as far as it is sure which one is meant.
fn lookup(
    of: &Survey,
    known: &[Arc<RenderedObject>],
    kind: &str,
    namespace: &str,
    name: &str,
) -> Option<Value> {
    let is_it = |it: &Value| {
        it.kind() == kind
            && it.name() == name
            && (it.namespace() == namespace || it.namespace().is_empty() || namespace.is_empty())
    };
    let mut of_cluster = known.iter().map(|it| &it.value).filter(|it| is_it(it));
    if let Some(first) = of_cluster.next() {
        return of_cluster.all(|it| it == first).then(|| first.clone());
    }
    let mut others = of.objects.iter().map(Object::value).filter(|it| is_it(it));
    let first = others.next()?;
    others.all(|it| it["spec"] == first["spec"] && it["data"] == first["data"]).then(|| first.clone())
}

fn part(
    found: &Found<'_>,
    declared: Arc<RenderedObject>,
    translated: Translated,
    find: &dyn Fn(&str, &str, &str) -> Option<Value>,
) -> Part {
    let Translated { application, unseen, open } = translated;
    let mut part = Part {
        declared,
        application,
        outcome: Outcome::Unseen(unseen.clone().unwrap_or_default()),
        objects: Vec::new(),
        tools: Vec::new(),
        read: Arc::default(),
        missed: Vec::new(),
    };
    let Some(rendering) = found.memo.get(&part.application).filter(|_| unseen.is_none()) else { return part };
    part.outcome = match (&rendering.outcome, open) {
        (Outcome::Rendered, Some(why)) => Outcome::Unseen(why),
        (outcome, _) => outcome.clone(),
    };
    part.tools.clone_from(&rendering.tools);
    part.read = rendering.read.clone();
    part.missed.clone_from(&rendering.missed);
    part.objects.clone_from(&rendering.objects);
    let post_build = part.declared.value.at(&["spec", "postBuild"]);
    if let Some(post_build) = post_build.filter(|_| part.declared.value.kind() == "Kustomization") {
        let namespace = part.declared.value.namespace();
        let givers: BTreeMap<(String, String), Option<Value>> = post_build["substituteFrom"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| (it["kind"].as_str().unwrap_or_default(), it["name"].as_str().unwrap_or_default()))
            .map(|(kind, name)| ((kind.to_owned(), name.to_owned()), find(kind, namespace, name)))
            .collect();
        let giver = |kind: &str, name: &str| {
            let found = givers.get(&(kind.to_owned(), name.to_owned()));
            found.and_then(Option::as_ref).map_or(Giver::Open, Giver::Known)
        };
        let variables = Variables::of(post_build, &giver);
        part.objects = part.objects.iter().map(|object| filled(object, &variables)).collect();
    }
    part
}

/// An object with its variables filled in, unless it asks to be left as it is.
fn filled(object: &Arc<RenderedObject>, variables: &Variables) -> Arc<RenderedObject> {
    const LEFT_ALONE: &str = "kustomize.toolkit.fluxcd.io/substitute";
    let value = &object.value;
    let marks = [value.label(LEFT_ALONE), value.annotation(LEFT_ALONE)];
    if marks.contains(&Some("disabled")) {
        return object.clone();
    }
    let filled = variables.fill(value);
    if filled == *value {
        return object.clone();
    }
    let (location, origins) = (object.location.clone(), object.origins.clone());
    Arc::new(RenderedObject { value: filled, location, origins })
}

/// The trees whose roots no other one holds.
fn without_inner(trees: Vec<Tree>) -> Vec<Tree> {
    let place = |it: &RenderedObject| (it.location.file.clone(), it.value.name().to_owned());
    let inner: Vec<HashSet<_>> =
        trees.iter().map(|tree| tree.parts.iter().map(|part| place(&part.declared)).collect()).collect();
    let mut dropped: BTreeSet<usize> = BTreeSet::new();
    for (at, tree) in trees.iter().enumerate() {
        let own = place(&tree.root);
        let holds = |other: usize| other != at && !dropped.contains(&other) && inner[other].contains(&own);
        if (0..trees.len()).any(holds) {
            dropped.insert(at);
        }
    }
    let kept = trees.into_iter().enumerate().filter(|(at, _)| !dropped.contains(at));
    kept.map(|(_, tree)| tree).collect()
}

/// The trees of each cluster. Trees are of two clusters if they have a part of one name that is not the same, or if their
/// folders say so; what contradicts no cluster may be a part of each.
fn clusters(mut trees: Vec<Tree>) -> Vec<Vec<Arc<Tree>>> {
    trees.sort_by_key(|tree| std::cmp::Reverse(tree.parts.len()));
    let mut clusters: Vec<Vec<Arc<Tree>>> = Vec::new();
    for tree in trees.into_iter().map(Arc::new) {
        let mut is_placed = false;
        for cluster in &mut clusters {
            if !cluster.iter().any(|other| differ(&tree, other)) {
                cluster.push(tree.clone());
                is_placed = true;
            }
        }
        if !is_placed {
            clusters.push(vec![tree]);
        }
    }
    clusters
}

/// The clusters of which the entry is known. Where the entries are not in the repository, what they lead to is there in
/// many small trees, and with several clusters nobody knows which of them are of one.
fn sure(clusters: Vec<Vec<Arc<Tree>>>) -> Vec<Vec<Arc<Tree>>> {
    let is_led = |trees: &[Arc<Tree>]| {
        let all: usize = trees.iter().map(|tree| tree.parts.len()).sum();
        let named = |tree: &Arc<Tree>| name_of(tree);
        let is_named = trees.iter().all(|tree| !named(tree).is_empty() && named(tree) == named(&trees[0]));
        is_named || trees.first().is_some_and(|main| main.parts.len() * 2 >= all)
    };
    let is_only = clusters.len() == 1;
    clusters.into_iter().filter(|trees| is_only || is_led(trees)).collect()
}

fn differ(one: &Tree, other: &Tree) -> bool {
    let (own, others) = (name_of(one), name_of(other));
    let spec = |part: &Part| part.application["spec"].clone();
    let known: BTreeMap<_, _> = other.parts.iter().map(|part| (part.key(), part)).collect();
    !own.is_empty() && !others.is_empty() && own != others
        || one.parts.iter().any(|part| known.get(&part.key()).is_some_and(|other| spec(other) != spec(part)))
}

/// The folder that says which cluster a tree is of; empty if none does.
fn name_of(tree: &Tree) -> String {
    let path = tree.root.value.str_at(&["spec", "path"]).unwrap_or_default();
    let folder = normalize(path.trim_start_matches('/')).unwrap_or_default();
    let named = [format!("{folder}/"), tree.root.location.file.to_string()]
        .iter()
        .map(|path| environment::of(path).to_owned())
        .find(|name| !name.is_empty());
    // `cluster/apps` is a part of the one cluster that there is.
    named.filter(|name| !name.split('/').any(|step| step == "cluster")).unwrap_or_default()
}

/// The survey of the clusters.
fn assembled(of: &Survey, clusters: impl Iterator<Item = (String, Vec<Part>)>) -> Survey {
    let mut survey = Survey {
        files: of.files.clone(),
        environments: Vec::new(),
        apps: Vec::new(),
        sets: Vec::new(),
        units: of.units.clone(),
        objects: Vec::new(),
        faults: Vec::new(),
        unseen: Vec::new(),
        adopted: BTreeSet::new(),
        tools: of.tools.clone(),
        kube_version: of.kube_version.clone(),
        flux: None,
        is_of_flux: true,
        index: OnceLock::new(),
    };
    let mut unseen: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for (name, parts) in clusters {
        let environment = EnvironmentId(survey.environments.len());
        survey.environments.push(Environment { name, roots: Vec::new() });
        let mut known = HashSet::new();
        for part in parts {
            let (kind, namespace, name) = part.key();
            if !known.insert((kind.to_owned(), namespace.to_owned(), name.to_owned())) {
                continue;
            }
            for missed in &part.missed {
                unseen.entry(missed.clone()).or_default().insert(part.declared.value.name().to_owned());
            }
            add(&mut survey, environment, &part);
        }
    }
    survey.unseen = unseen.into_iter().map(|((what, why), apps)| Unseen { what, why, apps }).collect();
    beside(&mut survey, of);
    survey
}

fn add(survey: &mut Survey, environment: EnvironmentId, part: &Part) {
    let Some(mut app) = app(survey, environment, part, &part.application) else { return };
    app.outcome = part.outcome.clone();
    app.tools.clone_from(&part.tools);
    app.read = part.read.clone();
    let cluster: Arc<str> = app.cluster().into();
    for rendered in &part.objects {
        let id = ObjectId(survey.objects.len());
        app.objects.push(id);
        survey.objects.push(Object {
            id,
            owner: Owner::App(app.id),
            environment: Some(environment),
            cluster: cluster.clone(),
            key: key_of(&rendered.value),
            rendered: rendered.clone(),
            wave: hook::wave(&rendered.value),
            hooks: hook::hook_types(&rendered.value),
            read: part.read.clone(),
        });
    }
    survey.environments[environment.0].roots.push(app.id);
    survey.apps.push(app);
    // What Argo CD makes of an Application is not followed from here.
    let inner = part.objects.iter().filter(|it| build::declares(&it.value));
    for declared in inner {
        let open = json!({"metadata": {"name": declared.value.name()}, "spec": {}});
        survey.apps.extend(self::app(survey, environment, part, &open));
    }
}

/// An Application of which nothing is known yet.
fn app(survey: &Survey, environment: EnvironmentId, part: &Part, declared: &Value) -> Option<App> {
    let (location, origins) = (part.declared.location.clone(), Origins::default());
    Some(App {
        id: AppId(survey.apps.len()),
        environment,
        declaration: Declaration::File,
        application: Application::from_value(declared).ok()?,
        declared: RenderedObject { value: declared.clone(), location, origins },
        outcome: Outcome::Unseen("it is not followed".to_owned()),
        objects: Vec::new(),
        tools: Vec::new(),
        read: Arc::default(),
    })
}

/// Adds what no cluster holds.
fn beside(survey: &mut Survey, of: &Survey) {
    let read: BTreeSet<Arc<str>> = survey.apps.iter().flat_map(|app| app.read.iter().cloned()).collect();
    survey.units.iter_mut().for_each(|unit| unit.objects.clear());
    for object in of.objects.iter().filter(|it| !read.contains(&it.rendered.location.file)) {
        let Owner::Unit(unit) = object.owner else { continue };
        let id = ObjectId(survey.objects.len());
        survey.units[unit.0].objects.push(id);
        survey.objects.push(Object { id, ..object.clone() });
    }
}
