//! Where what a story tells of is written.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_cause::Cause as Id;
use tiphys_graph::{App, Outcome};
use tiphys_render::{RenderError, Subject};
use tiphys_stage::{causes::Cause, story::Story};
use tiphys_value::{FieldPath, Location, ObjectExt, RenderedObject, ResourceKey, Segment};

use super::{effects::Effects, text::is_application};
use crate::up::plan::Plan;

/// How many places of a cause are told.
const MOST: usize = 20;

/// Adds to each cause where its objects, or what made them, are written: file and line. What left Git is
/// where it was before the change.
pub(super) fn add(story: &mut Story, before: Option<&Plan>, plan: &Plan) {
    if story.causes.is_empty() {
        return;
    }
    let was = before.map(of_objects).unwrap_or_default();
    let places = of_objects(plan);
    let applications = of_applications(plan);
    for cause in &mut story.causes {
        let mut found = about(cause, plan, &was);
        if found.is_empty() {
            found.extend(cause.sources.iter().filter_map(|key| places.get(key).cloned()));
        }
        if found.is_empty() && cause.objects.iter().all(|key| key.kind == "PersistentVolumeClaim") {
            // A claim is written where the set is that has it made.
            let others = cause.consequences.iter().filter(|key| !is_application(key));
            found.extend(others.filter_map(|key| places.get(key).cloned()).take(1));
        }
        if found.is_empty() {
            found.extend(cause.applications.iter().filter_map(|name| applications.get(name).cloned()));
        }
        cause.places = found.into_iter().take(MOST).collect();
    }
}

/// Where that is written which an Application complains of, for causes of which no object is red but it.
fn about(cause: &Cause, plan: &Plan, was: &BTreeMap<ResourceKey, String>) -> BTreeSet<String> {
    let Some(mechanism) = &cause.mechanism else { return BTreeSet::new() };
    match mechanism.id {
        Id::GitopsStillNeeded => mechanism.objects.iter().filter_map(|key| was.get(key).cloned()).collect(),
        Id::GitopsTwoOwners => shared_places(cause, plan),
        Id::GitopsRender => {
            let broken = apps_of(cause, plan).filter_map(|app| match &app.outcome {
                Outcome::Failed(error) => fault_place(error, app, plan),
                _ => None,
            });
            broken.collect()
        }
        _ => BTreeSet::new(),
    }
}

fn apps_of<'a>(cause: &'a Cause, plan: &'a Plan) -> impl Iterator<Item = &'a App> {
    let is_meant = |app: &&App| {
        let own = app.declared.value.resource_key();
        cause.objects.iter().any(|key| is_application(key) && key.name == own.name)
    };
    plan.survey.apps.iter().filter(is_meant)
}

/// All places of the objects that Applications of a cause bring, and other Applications, too.
fn shared_places(cause: &Cause, plan: &Plan) -> BTreeSet<String> {
    let keys = |app: &App| -> BTreeSet<ResourceKey> {
        plan.survey.objects_of(app.id).map(|object| object.value().resource_key()).collect()
    };
    let own: BTreeSet<ResourceKey> = apps_of(cause, plan).flat_map(keys).collect();
    let mut by_key: BTreeMap<ResourceKey, Vec<String>> = BTreeMap::new();
    for app in &plan.survey.apps {
        for object in plan.survey.objects_of(app.id) {
            let key = object.value().resource_key();
            if own.contains(&key) {
                by_key.entry(key).or_default().extend(place_of(&object.rendered));
            }
        }
    }
    by_key.into_values().filter(|places| places.len() > 1).flatten().collect()
}

/// The place of the repository that keeps an Application from being rendered.
fn fault_place(error: &RenderError, app: &App, plan: &Plan) -> Option<String> {
    let files = &plan.survey.files;
    if let Some(label) = error.diagnostic().and_then(|diagnostic| diagnostic.primary.as_ref()) {
        return Some(format!("{}:{}", label.span.file, label.span.start.line));
    }
    if let Some(place) = error.place().filter(|place| files.contains(&place.file)) {
        return Some(line_of(place));
    }
    let Some(Subject::Template { name, line, .. }) = error.subject() else { return None };
    let (_, below) = name.split_once('/')?;
    let sources = app.application.spec.effective_sources();
    let mut all = sources.iter().map(|source| format!("{}/{below}", source.path.trim_matches('/')));
    let file = all.find(|file| files.contains(file.trim_start_matches("./")))?;
    Some(line_of(&Location::new(file.trim_start_matches("./"), *line, 0)))
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
    for object in plan.rendered() {
        if let Some(place) = place_of(object) {
            places.insert(object.value.resource_key(), place);
        }
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

/// Where an object is written: a renderer that only knows the file knows more of its fields.
fn place_of(object: &RenderedObject) -> Option<String> {
    let first_field = FieldPath(vec![Segment::Key("apiVersion".into())]);
    let chain = object.origins.lookup(&first_field).iter().map(|origin| &origin.location);
    let mut written = chain.filter(|place| place.line > 0 && !place.file.is_empty());
    let own = Some(&object.location).filter(|place| place.line > 0);
    let known = own.or(written.next_back()).unwrap_or(&object.location);
    (!known.file.is_empty()).then(|| line_of(known))
}

/// A file, and its line where that is known.
pub(super) fn line_of(place: &Location) -> String {
    let Location { file, line, .. } = place;
    if *line == 0 { file.to_string() } else { format!("{file}:{line}") }
}

/// Where every Application is written, by the name in the marks of its objects.
pub(super) fn of_applications(plan: &Plan) -> BTreeMap<String, String> {
    let places = of_objects(plan).into_iter();
    let applications = places.filter(|(key, _)| is_application(key));
    applications.map(|(key, place)| (application_id(&key), place)).collect()
}

/// The name of an Application in the marks of its objects.
pub(super) fn application_id(key: &ResourceKey) -> String {
    match key.namespace.as_str() {
        "" | crate::ENGINE_NAMESPACE => key.name.clone(),
        namespace => format!("{namespace}_{}", key.name),
    }
}
