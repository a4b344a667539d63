//! The clusters that Flux fills. Each Kustomization and HelmRelease of one is read as the Application that
//! renders the same, so that what is asked of a cluster as a whole can be asked of these too.
//!
//! A cluster is what one entry leads to: a Kustomization that no other applies, such as that of `flux
//! bootstrap`, or the `sync` of a FluxInstance. What is not sure leaves its mark: what cannot be rendered is
//! [`Outcome::Unseen`], and a variable whose value nobody can read stays in the text.

mod assembled;
mod clusters;
mod entries;
mod generated;
mod lookup;
mod sources;
mod substitute;
mod translate;
mod tree;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use tiphys_value::{FieldPath, ObjectExt, RenderedObject, Segment, Value};

pub(super) use generated::with_file;
pub(super) use sources::Sources;

use super::{Outcome, Survey, found::Found, partial_rendering};
use assembled::assembled;
use clusters::{clusters, name_of, sure, with_failed, without_inner};
use entries::{candidates, entries, roots};
use lookup::lookup;
pub use substitute::plain_names;
use substitute::{Giver, Variables};
use translate::{Translated, TranslationContext, is_unit, translate};
use tree::{Part, Tree};

/// How many Kustomizations and HelmReleases of one cluster are followed.
const MAX_PARTS: usize = 20_000;

impl Tree {
    /// Whether the root itself could be built, or most of it.
    fn is_built(&self) -> bool {
        self.parts.first().is_some_and(|part| match part.outcome {
            Outcome::Rendered => true,
            Outcome::Failed(_) => !part.objects.is_empty(),
            _ => false,
        })
    }

    /// Whether the root does not build at all.
    fn is_failed(&self) -> bool {
        !self.is_built() && self.parts.first().is_some_and(|it| matches!(it.outcome, Outcome::Failed(_)))
    }
}

/// What Flux applies of a repository, cluster by cluster; nothing if Flux applies nothing of it, or an engine
/// for Applications fills the same clusters. What none of the clusters holds is beside it, as what no
/// Application reaches.
pub(super) fn survey(found: &mut Found<'_>, of: &Survey) -> Option<Survey> {
    if !of.apps.is_empty() {
        return None;
    }
    let mut candidates = candidates(of, entries(of), &of.flux_sources);
    let mut follow = |root| tree(found, of, root, &[]);
    let mut failed: Vec<Tree> = Vec::new();
    let trees = loop {
        let roots = roots(&candidates);
        let trees: Vec<Tree> = roots.iter().map(|at| follow(candidates[*at].object.clone())).collect();
        // What cannot be built leads nowhere, and neither does what builds nothing of what lies below it:
        // those may be entries themselves.
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
        failed.extend(trees.into_iter().filter(Tree::is_failed));
        candidates.retain(|it| it.is_built);
    };
    let trees = without_inner(trees);
    let clusters = with_failed(sure(clusters(trees)), failed);
    if clusters.is_empty() {
        return None;
    }
    let names: Vec<String> = clusters.iter().map(|trees| name_of(&trees[0])).collect();
    // What one part makes another one may read, whichever is rendered first.
    let filled = clusters.into_iter().map(|trees| {
        let known: Vec<Arc<RenderedObject>> =
            trees.iter().flat_map(|tree| &tree.parts).flat_map(|part| part.objects.iter().cloned()).collect();
        let again = trees.iter().map(|it| tree(found, of, it.root.clone(), &known));
        again.flat_map(|tree| tree.parts).collect::<Vec<Part>>()
    });
    let filled: Vec<Vec<Part>> = filled.collect();
    Some(assembled(of, names.into_iter().zip(filled)))
}

/// Follows a root to the end. `known` are the objects of its cluster, as far as they are known already.
fn tree(
    found: &mut Found<'_>,
    of: &Survey,
    root: Arc<RenderedObject>,
    known: &[Arc<RenderedObject>],
) -> Tree {
    let find = |kind: &str, namespace: &str, name: &str| lookup(of, known, kind, namespace, name);
    let mut parts: Vec<Part> = Vec::new();
    let mut seen: HashSet<(String, String, String)> = HashSet::new();
    let mut open = vec![root.clone()];
    while !open.is_empty() && parts.len() < MAX_PARTS {
        let input = found.input;
        let scope = TranslationContext {
            files: &found.files,
            is_given: input.is_given,
            sources: &of.flux_sources,
            find: &find,
        };
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
        unset: BTreeMap::new(),
        unreadable: Vec::new(),
        replaces_none: false,
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
    let is_kustomization = part.declared.value.kind() == "Kustomization";
    if matches!(part.outcome, Outcome::Failed(_)) && is_kustomization && part.objects.is_empty() {
        // Flux applies nothing of it; what it leads to is looked at nevertheless.
        part.objects = partial_rendering::without_faults(&part.application, found.input);
    }
    let post_build = part.declared.value.at(&["spec", "postBuild"]);
    if post_build.is_none() && is_kustomization {
        part.replaces_none = true;
        part.unset = literal(&part.objects);
    }
    if let Some(post_build) = post_build.filter(|_| is_kustomization) {
        let namespace = part.declared.value.namespace();
        let givers: BTreeMap<(String, String), Option<Value>> = post_build["substituteFrom"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| (it["kind"].as_str().unwrap_or_default(), it["name"].as_str().unwrap_or_default()))
            .map(|(kind, name)| {
                // What gives variables is often copied into each namespace.
                let found = find(kind, namespace, name).or_else(|| find(kind, "", name));
                ((kind.to_owned(), name.to_owned()), found)
            })
            .collect();
        let giver = |kind: &str, name: &str| {
            let found = givers.get(&(kind.to_owned(), name.to_owned()));
            found.and_then(Option::as_ref).map_or(Giver::Open, Giver::Known)
        };
        let variables = Variables::from_post_build(post_build, &giver);
        if !variables.are_none() {
            part.unreadable = unreadable(&part.objects);
        }
        part.unset = unset(&part.objects, &variables);
        part.objects = part.objects.iter().map(|object| filled(object, &variables)).collect();
    }
    part
}

/// The variables that become nothing in objects, each with the place that asks for it first.
fn unset(objects: &[Arc<RenderedObject>], variables: &Variables) -> BTreeMap<String, (usize, FieldPath)> {
    let mut found = BTreeMap::new();
    for (at, object) in objects.iter().enumerate().filter(|(_, object)| !is_left_alone(&object.value)) {
        let names = |text: &str| variables.unset(text).into_iter().map(str::to_owned).collect();
        gather(&object.value, &names, &mut Vec::new(), &mut |name, path| {
            found.entry(name.to_owned()).or_insert_with(|| (at, FieldPath(path.to_vec())));
        });
        // In a script a variable of the container's own is meant, whatever else may give one of the name.
        let own = own_variables(&object.value);
        if own.is_empty() {
            continue;
        }
        let names = |text: &str| {
            let plain = variables.unknown(text).into_iter();
            plain.filter(|name| own.contains(*name)).map(str::to_owned).collect()
        };
        gather(&object.value, &names, &mut Vec::new(), &mut |name, path| {
            let is_script =
                |step: &Segment| matches!(step, Segment::Key(key) if key == "command" || key == "args");
            if path.iter().any(is_script) {
                found.entry(name.to_owned()).or_insert_with(|| (at, FieldPath(path.to_vec())));
            }
        });
    }
    found
}

/// The names of the variables that the containers of a workload have.
fn own_variables(object: &Value) -> BTreeSet<&str> {
    const MAX_DEPTH: usize = 16;
    fn walk<'a>(value: &'a Value, depth: usize, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Array(items) if depth < MAX_DEPTH => {
                items.iter().for_each(|item| walk(item, depth + 1, found));
            }
            Value::Object(map) if depth < MAX_DEPTH => {
                let variables = map.get("env").and_then(Value::as_array).into_iter().flatten();
                found.extend(variables.filter_map(|it| it.get("name")?.as_str()));
                map.values().for_each(|below| walk(below, depth + 1, found));
            }
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    walk(&object["spec"], 0, &mut found);
    found
}

/// The expressions in objects that Flux cannot read.
fn unreadable(objects: &[Arc<RenderedObject>]) -> Vec<(String, usize, FieldPath)> {
    let mut found = Vec::new();
    let names = |text: &str| substitute::unreadable(text).into_iter().map(str::to_owned).collect();
    for (at, object) in objects.iter().enumerate().filter(|(_, object)| !is_left_alone(&object.value)) {
        gather(&object.value, &names, &mut Vec::new(), &mut |expression, path| {
            found.push((expression.to_owned(), at, FieldPath(path.to_vec())));
        });
    }
    found
}

/// The variables in objects, which nothing replaces.
fn literal(objects: &[Arc<RenderedObject>]) -> BTreeMap<String, (usize, FieldPath)> {
    let mut found = BTreeMap::new();
    let plain = |text: &str| substitute::plain_names(text).into_iter().map(str::to_owned).collect();
    for (at, object) in objects.iter().enumerate().filter(|(_, object)| !is_left_alone(&object.value)) {
        gather(&object.value, &plain, &mut Vec::new(), &mut |name, path| {
            found.entry(name.to_owned()).or_insert_with(|| (at, FieldPath(path.to_vec())));
        });
    }
    found
}

/// Calls back for each name that `names` finds in a text.
fn gather(
    value: &Value,
    names: &dyn Fn(&str) -> Vec<String>,
    path: &mut Vec<Segment>,
    found: &mut dyn FnMut(&str, &[Segment]),
) {
    const MAX_DEPTH: usize = 64;
    let is_deep = path.len() >= MAX_DEPTH;
    let mut below = |step: Segment, value: &Value| {
        path.push(step);
        gather(value, names, path, found);
        path.pop();
    };
    match value {
        Value::String(text) => names(text).iter().for_each(|name| found(name, path)),
        _ if is_deep => {}
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| below(Segment::Index(at), item));
        }
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| below(Segment::Key(key.clone()), value));
        }
        _ => {}
    }
}

/// Whether an object asks to be left as it is.
fn is_left_alone(object: &Value) -> bool {
    const MARK: &str = "kustomize.toolkit.fluxcd.io/substitute";
    [object.label(MARK), object.annotation(MARK)].contains(&Some("disabled"))
}

/// An object with its variables filled in, unless it asks to be left as it is.
fn filled(object: &Arc<RenderedObject>, variables: &Variables) -> Arc<RenderedObject> {
    let value = &object.value;
    if is_left_alone(value) {
        return object.clone();
    }
    let filled = variables.fill(value);
    if filled == *value {
        return object.clone();
    }
    let (location, origins) = (object.location.clone(), object.origins.clone());
    Arc::new(RenderedObject { value: filled, location, origins })
}
