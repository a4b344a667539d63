//! What a change takes out of Git and leaves in the cluster: definitions of kinds, which bear no mark, and
//! what is not to be pruned.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_apiserver::Snapshot;
use tiphys_graph::Outcome;
use tiphys_model::hook;
use tiphys_value::{ObjectExt, ResourceKey};

use super::{
    effects::{Effect, Effects, ObjectEffect},
    story_locations::application_id,
};
use crate::up::plan::Plan;

/// Adds the objects that the state before renders, the state after does not, and that are there at the end.
/// Of an Application that is red its own cause tells of them.
pub(super) fn add(effects: &mut Effects, (before, after): (&Plan, &Plan), end: &Snapshot) {
    let present: BTreeSet<ResourceKey> = after.rendered().map(|object| object.value.resource_key()).collect();
    // What does not render keeps what it had.
    let unknown: BTreeSet<ResourceKey> = after
        .survey
        .apps
        .iter()
        .filter(|app| !matches!(app.outcome, Outcome::Rendered))
        .map(|app| app.declared.value.resource_key())
        .collect();
    let told: BTreeSet<ResourceKey> =
        effects.applications.values().flat_map(|app| &app.objects).map(|one| one.object.clone()).collect();
    let mut left: BTreeMap<ResourceKey, String> = BTreeMap::new();
    for app in &before.survey.apps {
        let own = app.declared.value.resource_key();
        let red = effects.turned_red.iter().chain(&effects.still_red);
        if unknown.contains(&own) || red.into_iter().any(|name| *name == own.name) {
            continue;
        }
        let objects = before.survey.objects_of(app.id).map(|object| object.value());
        let gone = objects.filter(|object| !hook::is_hook(object)).map(ObjectExt::resource_key);
        let gone = gone.filter(|key| !present.contains(key) && !told.contains(key));
        left.extend(gone.map(|key| (key, application_id(&own))));
    }
    let is_there =
        |key: &ResourceKey| end.with_key(key).is_some_and(|object| !object.value().is_terminating());
    for (object, app) in left.into_iter().filter(|(key, _)| is_there(key)) {
        let to = effects.applications.entry(app).or_default();
        to.objects.push(ObjectEffect::new(object, Effect::Left, 0));
    }
}
