//! The objects of a build in the order in which they were loaded.

use std::collections::{HashMap, HashSet};

use smol_str::SmolStr;

use tiphys_gocompat::strconv::quote;

use crate::{
    error::{Error, ErrorKind, Result},
    resid::{Gvk, ResId},
    resource::{Behavior, Resource},
    suggest::with_similar,
};

/// Objects; no two have the same id.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceMap {
    pub list: Vec<Resource>,
}

/// Where objects of a name are, by every name that they have or had. Who makes thousands of objects must not
/// look through all others for each.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<SmolStr, Vec<usize>>);

impl Names {
    /// Those of all objects.
    pub(crate) fn from_objects(objects: &ResourceMap) -> Self {
        let mut names = Self::default();
        objects.list.iter().enumerate().for_each(|(at, resource)| names.add(resource, at));
        names
    }

    fn add(&mut self, resource: &Resource, at: usize) {
        let earlier = resource.earlier_ids().map(|id| id.name);
        for name in earlier.chain([resource.id().name]) {
            let places = self.0.entry(name).or_default();
            if places.last() != Some(&at) {
                places.push(at);
            }
        }
    }

    fn of_name(&self, name: &SmolStr) -> &[usize] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// So many objects are few.
const FEW: usize = 8;

/// What makes an id unique.
type Key = (Gvk, SmolStr, SmolStr);

fn key(id: &ResId) -> Key {
    (id.gvk.clone(), id.name.clone(), SmolStr::from(id.effective_namespace()))
}

fn conflict(message: String) -> Error {
    Error::new(ErrorKind::Conflict, message)
}

impl ResourceMap {
    /// Appends objects.
    ///
    /// # Errors
    /// An id that is there already.
    pub(crate) fn append(&mut self, list: Vec<Resource>) -> Result<()> {
        // Most files hold one object, and there are thousands of them: to compare names is cheaper than to
        // gather all ids anew for each.
        if list.len() <= FEW {
            return list.into_iter().try_for_each(|resource| self.append_one(resource));
        }
        let mut known: HashSet<Key> = self.list.iter().map(|resource| key(&resource.id())).collect();
        self.list.reserve(list.len());
        for resource in list {
            let id = resource.id();
            if !known.insert(key(&id)) {
                return Err(self.duplicate(&id, &resource));
            }
            self.list.push(resource);
        }
        Ok(())
    }

    fn append_one(&mut self, resource: Resource) -> Result<()> {
        let id = resource.id();
        let is_same = |other: &Resource| other.node.name() == id.name && other.id().same(&id);
        if self.list.iter().any(is_same) {
            return Err(self.duplicate(&id, &resource));
        }
        self.list.push(resource);
        Ok(())
    }

    fn duplicate(&self, id: &ResId, resource: &Resource) -> Error {
        let first =
            self.list.iter().find(|other| other.id().same(id)).map(|other| other.location.to_string());
        let error = conflict(format!("may not add resource with an already registered id: {id}"))
            .located_at(Some(resource.location.clone()));
        match first {
            Some(first) => {
                error.advise(format!("the first stands in {first}; rename one of them, or load it once"))
            }
            None => error,
        }
    }

    /// The positions of objects that have or had an id.
    pub(crate) fn find_by_any_id(&self, matches: impl Fn(&ResId) -> bool) -> Vec<usize> {
        let fits =
            |resource: &Resource| resource.earlier_ids().any(|id| matches(&id)) || matches(&resource.id());
        (0..self.list.len()).filter(|at| !self.list[*at].node.is_empty() && fits(&self.list[*at])).collect()
    }

    /// The positions of objects that have or had one id.
    pub(crate) fn find_id(&self, id: &ResId) -> Vec<usize> {
        let fits = |resource: &Resource| !resource.node.is_empty() && resource.has_or_had(id);
        self.list.iter().enumerate().filter(|(_, resource)| fits(resource)).map(|(at, _)| at).collect()
    }

    /// The one object that has or had an id (`GetById`).
    ///
    /// # Errors
    /// None or several, in kustomize's words.
    pub(crate) fn find_unique(&self, id: &ResId) -> Result<usize> {
        let found = self.find_id(id);
        let problem = match found.as_slice() {
            [at] => return Ok(*at),
            [] => "no matches",
            _ => "multiple matches",
        };
        Err(conflict(format!("{problem} for Id {id}; failed to find unique target for patch {id}")))
    }

    /// Drops objects that a transformer emptied.
    pub(crate) fn drop_empties(&mut self) {
        self.list.retain(|resource| !resource.node.is_empty());
    }

    /// Takes over generated objects, each as its behaviour says (`AbsorbAll`). The names are those of all
    /// objects.
    ///
    /// # Errors
    /// Nothing to merge into or replace, or something where nothing should be.
    pub(crate) fn absorb(&mut self, generated: Vec<Resource>, names: &mut Names) -> Result<()> {
        generated.into_iter().try_for_each(|resource| self.absorb_one(resource, names))
    }

    fn absorb_one(&mut self, resource: Resource, names: &mut Names) -> Result<()> {
        let id = resource.id();
        let fits = |at: &usize| !self.list[*at].node.is_empty() && self.list[*at].has_or_had(&id);
        let found: Vec<usize> = names.of_name(&id.name).iter().copied().filter(fits).collect();
        match (found.as_slice(), resource.behavior) {
            ([], Behavior::Merge | Behavior::Replace) => {
                let text = format!("id {} does not exist; cannot merge or replace", go_syntax(&id));
                Err(with_similar(conflict(text).located_at(Some(resource.location.clone())), &id, self))
            }
            ([], _) => {
                // An empty object may have the id, too.
                let others = names.of_name(&id.name);
                if others.iter().any(|at| self.list[*at].id().same(&id)) {
                    return Err(self.duplicate(&id, &resource));
                }
                names.add(&resource, self.list.len());
                self.list.push(resource);
                Ok(())
            }
            ([at], Behavior::Replace) => self.replace_generated(*at, resource, false),
            ([at], Behavior::Merge) => self.replace_generated(*at, resource, true),
            ([_], behavior) => Err(conflict(format!(
                "id {} exists; can not use behavior: '{}', behavior must be merge or replace",
                go_syntax(&id),
                behavior.name()
            ))
            .located_at(Some(resource.location.clone()))),
            (found, _) => {
                let ids: Vec<String> = found.iter().map(|at| self.list[*at].id().to_string()).collect();
                Err(conflict(format!(
                    "found multiple objects [{}] that could accept merge of {id}",
                    ids.join(" ")
                )))
            }
        }
    }

    /// Puts a generated object in the place of an old one, with its metadata and, if asked for, its
    /// data.
    fn replace_generated(&mut self, at: usize, mut resource: Resource, merge: bool) -> Result<()> {
        let old = &self.list[at];
        let apply = |resource: &mut Resource| -> Result<(), String> {
            let origin = old.node.annotation(crate::provenance::ORIGIN).map(str::to_owned);
            resource.take_metadata_of(old)?;
            if merge {
                crate::generate::merge_data(&mut resource.node, &old.node)?;
                if let Some(origin) = origin {
                    let mut annotations = resource.node.metadata_map("annotations");
                    annotations.insert(crate::provenance::ORIGIN.to_owned(), origin);
                    resource.node.set_metadata_map("annotations", &annotations)?;
                }
            }
            Ok(())
        };
        apply(&mut resource).map_err(Error::transform)?;
        resource.touched = true;
        let id = resource.id();
        let same: Vec<usize> = (0..self.list.len()).filter(|i| self.list[*i].id().same(&id)).collect();
        match same.as_slice() {
            [only] if *only == at => {
                self.list[at] = resource;
                Ok(())
            }
            [] => Err(conflict(format!("cannot find resource with id {id} to replace"))),
            [_] => Err(conflict("unexpected target index in replacement".to_owned())),
            more => Err(conflict(format!("in Replace: id matched {} resources", more.len()))),
        }
    }
}

/// An id as Go prints the struct.
fn go_syntax(id: &ResId) -> String {
    format!(
        "resid.ResId{{Gvk:resid.Gvk{{Group:{}, Version:{}, Kind:{}, isClusterScoped:{}}}, Name:{}, Namespace:{}}}",
        quote(&id.gvk.group),
        quote(&id.gvk.version),
        quote(&id.gvk.kind),
        id.cluster_scoped,
        quote(&id.name),
        quote(&id.namespace)
    )
}
