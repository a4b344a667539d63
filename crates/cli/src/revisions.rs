//! Two states of a repository and what every Application renders to in each.

use std::{collections::BTreeMap, path::Path};

use tiphys_model::hook;
use tiphys_source::WorkingTree;
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

use crate::{
    exit::WrongUse,
    repository::{Catalogue, Given, Id, Repository},
};

/// Two states: `None` stands for the files as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Before.
    pub old: String,
    /// After.
    pub new: Option<String>,
    /// Not `old` itself counts, but what it has in common with `new`: what a pull request changes.
    pub from_common: bool,
}

impl Range {
    /// Reads `A..B`, `A...B` (from their common commit), `A..` (to `HEAD`), `..B` (from `HEAD`), or `A` (to the files as they are).
    ///
    /// # Errors
    /// With what is expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let or_head = |part: &str| if part.is_empty() { "HEAD".to_owned() } else { part.to_owned() };
        if let Some((old, new)) = text.split_once("...") {
            return Ok(Self { old: or_head(old), new: Some(or_head(new)), from_common: true });
        }
        match text.split_once("..") {
            Some(("", "")) => Err("write REV..REV, REV.. or REV".into()),
            Some((old, new)) => Ok(Self { old: or_head(old), new: Some(or_head(new)), from_common: false }),
            None if text.is_empty() => Err("write REV..REV, REV.. or REV".into()),
            None => Ok(Self { old: text.to_owned(), new: None, from_common: false }),
        }
    }
}

impl Range {
    /// The commit before: that which both have in common, if that counts.
    ///
    /// # Errors
    /// The place is no folder, or the revisions have nothing in common.
    pub fn before(&self, place: &str) -> anyhow::Result<String> {
        let Some(new) = self.new.as_deref().filter(|_| self.from_common) else { return Ok(self.old.clone()) };
        let folder = Path::new(place);
        if !folder.is_dir() {
            return Err(WrongUse("three dots need a clone on this machine (--repo FOLDER)".into()).into());
        }
        let tree = WorkingTree::open(folder).map_err(|error| WrongUse(error.to_string()))?;
        Ok(tree.merge_base(&self.old, new).map_err(|error| WrongUse(error.to_string()))?)
    }
}

/// What an Application renders to: its objects by key, or why it does not render.
pub type Rendering = Result<BTreeMap<ResourceKey, Value>, String>;

/// Everything that a repository renders to at a state.
pub type State = BTreeMap<Id, Rendering>;

/// Renders every Application of a repository at a revision, or as its files are.
///
/// # Errors
/// The repository cannot be read, or has no such revision.
pub fn render(
    place: &str,
    revision: Option<&str>,
    path: Option<&str>,
    offline: bool,
) -> anyhow::Result<State> {
    let given = Given { place, revision, path, respect_revisions: false, offline };
    let mut repository = Repository::open(&given).map_err(|error| WrongUse(format!("{error:#}")))?;
    repository.look_into_units();
    let catalogue = Catalogue::build(&repository.scan, &repository.repositories, false);
    let mut state = State::new();
    for (id, entry) in catalogue.entries {
        let rendering = match entry.rendered {
            Err(error) => Err(format!("{error:#}")),
            Ok(rendered) => {
                Ok(rendered.objects.into_iter().map(|object| (key_of(&object.value), object.value)).collect())
            }
        };
        state.insert(id, rendering);
    }
    Ok(state)
}

/// The key of an object; hooks without a name go by the beginning of it.
fn key_of(object: &Value) -> ResourceKey {
    let mut key = object.resource_key();
    if key.name.is_empty() && hook::is_hook(object) {
        key.name = object.str_at(&["metadata", "generateName"]).unwrap_or_default().to_owned();
    }
    key
}

/// What became of an object.
pub struct Change {
    /// Which object.
    pub key: ResourceKey,
    /// As it was.
    pub old: Option<Value>,
    /// As it is.
    pub new: Option<Value>,
    /// Nothing but the marks of a chart's version changed, which no controller reads.
    pub is_noise: bool,
}

/// What became of an Application.
pub struct AppChange {
    /// Namespace and name.
    pub id: Id,
    /// It is there before and after.
    pub sides: (bool, bool),
    /// Why it does not render before and after.
    pub faults: (Option<String>, Option<String>),
    /// Its objects that differ.
    pub changes: Vec<Change>,
}

/// Every Application that differs.
pub fn compare(old: State, mut new: State) -> Vec<AppChange> {
    let mut all = Vec::new();
    for (id, before) in old {
        let after = new.remove(&id);
        all.extend(app_change(id, Some(before), after));
    }
    all.extend(new.into_iter().filter_map(|(id, after)| app_change(id, None, Some(after))));
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all
}

fn app_change(id: Id, old: Option<Rendering>, new: Option<Rendering>) -> Option<AppChange> {
    let sides = (old.is_some(), new.is_some());
    let split = |side: Option<Rendering>| match side {
        Some(Ok(objects)) => (objects, None),
        Some(Err(fault)) => (BTreeMap::new(), Some(fault)),
        None => (BTreeMap::new(), None),
    };
    let ((old, old_fault), (mut new, new_fault)) = (split(old), split(new));
    let is_comparable = old_fault.is_none() && new_fault.is_none();
    let mut changes = Vec::new();
    for (key, before) in old.into_iter().filter(|_| is_comparable) {
        match new.remove(&key) {
            Some(after) if after == before => {}
            after => {
                let is_noise = after.as_ref().is_some_and(|after| is_noise(&before, after));
                changes.push(Change { key, old: Some(before), new: after, is_noise });
            }
        }
    }
    let added = new.into_iter().filter(|_| is_comparable);
    changes.extend(added.map(|(key, after)| Change { key, old: None, new: Some(after), is_noise: false }));
    changes.sort_by(|a, b| a.key.cmp(&b.key));
    let differs = !changes.is_empty() || sides.0 != sides.1 || old_fault != new_fault;
    differs.then_some(AppChange { id, sides, faults: (old_fault, new_fault), changes })
}

/// Labels of an object's own metadata that name the chart's version. Those of a Pod template are no noise:
/// they make every Pod new.
const MARKS: [&str; 2] = ["helm.sh/chart", "chart"];

fn is_noise(old: &Value, new: &Value) -> bool {
    let marks = MARKS.map(|mark| FieldPath::default().key("metadata").key("labels").key(mark));
    let paths = tiphys_diff::difference(old, new);
    !paths.is_empty() && paths.iter().all(|path| marks.contains(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ranges() {
        let range = |old: &str, new: Option<&str>| {
            Ok(Range { old: old.into(), new: new.map(str::to_owned), from_common: false })
        };
        assert_eq!(Range::parse("a..b"), range("a", Some("b")));
        assert_eq!(Range::parse("a.."), range("a", Some("HEAD")));
        assert_eq!(Range::parse("..b"), range("HEAD", Some("b")));
        assert_eq!(Range::parse("main"), range("main", None));
        let common = Range { old: "a".into(), new: Some("b".into()), from_common: true };
        assert_eq!(Range::parse("a...b"), Ok(common));
        assert!(Range::parse("..").is_err() && Range::parse("").is_err());
    }

    #[test]
    fn the_version_of_a_chart_is_noise_on_an_object_but_not_in_its_pods() {
        let deployment = |own: &str, pods: &str| {
            json!({"metadata": {"labels": {"helm.sh/chart": own}},
            "spec": {"template": {"metadata": {"labels": {"helm.sh/chart": pods}}}}})
        };
        assert!(is_noise(&deployment("a-1", "x"), &deployment("a-2", "x")));
        assert!(!is_noise(&deployment("a-1", "x"), &deployment("a-2", "y")));
    }

    #[test]
    fn applications_come_go_and_break() {
        let object = |value: &str| {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}});
            BTreeMap::from([(object.resource_key(), object)])
        };
        let id = |name: &str| ("argocd".to_owned(), name.to_owned());
        let old = State::from([
            (id("same"), Ok(object("1"))),
            (id("gone"), Ok(object("1"))),
            (id("changed"), Ok(object("1"))),
            (id("broken"), Ok(object("1"))),
        ]);
        let new = State::from([
            (id("same"), Ok(object("1"))),
            (id("changed"), Ok(object("2"))),
            (id("broken"), Err("no".into())),
            (id("added"), Ok(object("1"))),
        ]);
        let all = compare(old, new);
        let names: Vec<(&str, usize)> =
            all.iter().map(|app| (app.id.1.as_str(), app.changes.len())).collect();
        assert_eq!(names, [("added", 1), ("broken", 0), ("changed", 1), ("gone", 1)]);
    }
}
