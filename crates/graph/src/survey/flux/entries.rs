//! Where the following of a cluster begins.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use tiphys_value::{ObjectExt, Origins, RenderedObject, json};
use tiphys_vfs::is_below;

use super::sources::{Sources, is_here};
use crate::{
    survey::{contents::Survey, units},
    unused_folders::put_away,
};

/// A Kustomization that may be an entry.
pub(super) struct Candidate {
    pub object: Arc<RenderedObject>,
    folder: String,
    /// Whether others that lie in its folder are taken to come of it.
    pub leads: bool,
    pub is_built: bool,
}

impl Candidate {
    /// Whether another one lies in its folder.
    pub(super) fn is_above(&self, other: &Self) -> bool {
        let is_self = Arc::ptr_eq(&self.object, &other.object);
        !is_self && (self.folder.is_empty() || is_below(&other.object.location.file, &self.folder))
    }
}

/// The Kustomizations that are declared anywhere, each once.
pub(super) fn entries(of: &Survey) -> Vec<Arc<RenderedObject>> {
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

/// The Kustomizations of this repository, with the folders that they build, as far as those are here.
pub(super) fn candidates(of: &Survey, all: Vec<Arc<RenderedObject>>, sources: &Sources) -> Vec<Candidate> {
    let built = |object: Arc<RenderedObject>| {
        let folder = sources.folder(&object.value).filter(|folder| is_here(&of.files, folder))?;
        Some(Candidate { object, folder, leads: true, is_built: true })
    };
    all.into_iter().filter_map(built).collect()
}

/// The Kustomizations that may be entries: those that lie in no folder that another one builds. Of those that
/// lie in each other's folders, by however many steps, the one above most others.
pub(super) fn roots(candidates: &[Candidate]) -> Vec<usize> {
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
