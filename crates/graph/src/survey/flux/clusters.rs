//! Which of the trees that entries lead to are of one cluster.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use tiphys_value::{ObjectExt, RenderedObject};
use tiphys_vfs::normalize;

use super::tree::{Part, Tree};
use crate::survey::environment;

/// The trees whose roots no other one holds.
pub(super) fn without_inner(trees: Vec<Tree>) -> Vec<Tree> {
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

/// The trees of each cluster. Trees are of two clusters if they have a part of one name that is not the same,
/// or if their folders say so; what contradicts no cluster may be a part of each.
pub(super) fn clusters(mut trees: Vec<Tree>) -> Vec<Vec<Arc<Tree>>> {
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

/// The clusters of which the entry is known. Where the entries are not in the repository, what they lead to
/// is there in many small trees, and with several clusters nobody knows which of them are of one.
pub(super) fn sure(clusters: Vec<Vec<Arc<Tree>>>) -> Vec<Vec<Arc<Tree>>> {
    let is_led = |trees: &[Arc<Tree>]| {
        let all: usize = trees.iter().map(|tree| tree.parts.len()).sum();
        let named = |tree: &Arc<Tree>| name_of(tree);
        let is_named = trees.iter().all(|tree| !named(tree).is_empty() && named(tree) == named(&trees[0]));
        is_named || trees.first().is_some_and(|main| main.parts.len() * 2 >= all)
    };
    let is_only = clusters.len() == 1;
    clusters.into_iter().filter(|trees| is_only || is_led(trees)).collect()
}

/// The clusters, with the roots that do not build at all: each in the cluster of its name, in the only one,
/// or in one of its own.
pub(super) fn with_failed(mut clusters: Vec<Vec<Arc<Tree>>>, failed: Vec<Tree>) -> Vec<Vec<Arc<Tree>>> {
    for tree in failed.into_iter().map(Arc::new) {
        let is_only = clusters.len() == 1;
        let own = name_of(&tree);
        match clusters.iter_mut().find(|trees| is_only || name_of(&trees[0]) == own) {
            Some(cluster) => cluster.push(tree),
            None => clusters.push(vec![tree]),
        }
    }
    clusters
}

fn differ(one: &Tree, other: &Tree) -> bool {
    let (own, others) = (name_of(one), name_of(other));
    let spec = |part: &Part| part.application["spec"].clone();
    let known: BTreeMap<_, _> = other.parts.iter().map(|part| (part.key(), part)).collect();
    !own.is_empty() && !others.is_empty() && own != others
        || one.parts.iter().any(|part| known.get(&part.key()).is_some_and(|other| spec(other) != spec(part)))
}

/// The folder that says which cluster a tree is of; empty if none does.
pub(super) fn name_of(tree: &Tree) -> String {
    let path = tree.root.value.str_at(&["spec", "path"]).unwrap_or_default();
    let folder = normalize(path.trim_start_matches('/')).unwrap_or_default();
    // What a cluster builds may have folders of its own for each environment: where it is declared says more.
    let named = [tree.root.location.file.to_string(), format!("{folder}/")]
        .iter()
        .map(|path| environment::environment_of(path).to_owned())
        .find(|name| !name.is_empty());
    // `cluster/apps` is a part of the one cluster that there is.
    named.filter(|name| !name.split('/').any(|step| step == "cluster")).unwrap_or_default()
}
