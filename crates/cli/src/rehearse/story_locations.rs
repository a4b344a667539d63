//! Where what a story tells of is written.

use std::collections::BTreeMap;

use tiphys_stage::story::Story;
use tiphys_value::{Location, ObjectExt, ResourceKey};

use super::effects::Effects;
use crate::up::plan::Plan;

/// How many places of a cause are told.
const MOST: usize = 20;

/// Adds to each cause where its objects, or what made them, are written: file and line.
pub(super) fn add(story: &mut Story, plan: &Plan) {
    if story.causes.is_empty() {
        return;
    }
    let places = of_objects(plan);
    let applications = of_applications(plan);
    for cause in &mut story.causes {
        let own = cause.sources.iter().filter_map(|key| places.get(key));
        cause.places = own.take(MOST).cloned().collect();
        if cause.places.is_empty() {
            let of_apps = cause.applications.iter().filter_map(|name| applications.get(name));
            cause.places = of_apps.take(MOST).cloned().collect();
        }
        cause.places.sort();
        cause.places.dedup();
    }
}

/// Adds to what a change does where the objects are written: as they are, or as they were if they are gone.
pub(super) fn add_to_effects(effects: &mut Effects, before: &Plan, after: &Plan) {
    let (before, after) = (of_objects(before), of_objects(after));
    for one in effects.applications.values_mut().flat_map(|app| &mut app.objects) {
        one.place = after.get(&one.object).or_else(|| before.get(&one.object)).cloned();
    }
}

/// Where every rendered object, root Application and project is written.
pub(super) fn of_objects(plan: &Plan) -> BTreeMap<ResourceKey, String> {
    let mut places = BTreeMap::new();
    for object in plan.rendered().filter(|object| !object.location.file.is_empty()) {
        let Location { file, line, .. } = &object.location;
        let place = if *line == 0 { file.to_string() } else { format!("{file}:{line}") };
        places.insert(object.value.resource_key(), place);
    }
    for found in plan.roots.iter().chain(&plan.projects) {
        let (namespace, name) = found.id();
        let gvk = found.object.gvk();
        places
            .entry(ResourceKey::new(gvk.group, gvk.kind, namespace, name))
            .or_insert_with(|| found.place.clone());
    }
    places
}

/// Where every Application is written, by the name in the marks of its objects.
pub(super) fn of_applications(plan: &Plan) -> BTreeMap<String, String> {
    let places = of_objects(plan).into_iter();
    let own = |key: &ResourceKey| match key.namespace.as_str() {
        "" | crate::ENGINE_NAMESPACE => key.name.clone(),
        namespace => format!("{namespace}_{}", key.name),
    };
    let applications =
        places.filter(|(key, _)| key.group == tiphys_model::names::GROUP && key.kind == "Application");
    applications.map(|(key, place)| (own(&key), place)).collect()
}
