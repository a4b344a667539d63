//! The clusters as a survey of their own.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{Arc, OnceLock},
};

use tiphys_model::{Application, hook};
use tiphys_value::{ObjectExt, Origins, RenderedObject, Value, json};

use super::tree::Part;
use crate::survey::{
    App, AppId, Declaration, Environment, EnvironmentId, Object, ObjectId, Outcome, Owner, Survey,
    UnreadableExpression, Unseen, UnsetVariable, declarations, kinds::key_of,
};

/// The survey of the clusters.
pub(super) fn assembled(of: &Survey, clusters: impl Iterator<Item = (String, Vec<Part>)>) -> Survey {
    let mut survey = Survey {
        files: of.files.clone(),
        environments: Vec::new(),
        apps: Vec::new(),
        sets: Vec::new(),
        units: of.units.clone(),
        objects: Vec::new(),
        faults: Vec::new(),
        unseen: Vec::new(),
        roots: Vec::new(),
        choices: BTreeMap::new(),
        no_environment: None,
        others: Vec::new(),
        settings: of.settings.clone(),
        notices: Vec::new(),
        adopted: BTreeSet::new(),
        revisions: BTreeMap::new(),
        branch: None,
        tools: of.tools.clone(),
        kube_version: of.kube_version.clone(),
        flux: None,
        flux_sources: of.flux_sources.clone(),
        is_of_flux: true,
        unset_variables: Vec::new(),
        unreadable_expressions: Vec::new(),
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
    let unset = part.unset.iter().filter_map(|(name, (at, field))| {
        let (app, name, object) = (app.id, name.clone(), *app.objects.get(*at)?);
        let is_literal = part.replaces_none;
        Some(UnsetVariable { app, name, object, field: field.clone(), is_literal })
    });
    survey.unset_variables.extend(unset);
    let unreadable = part.unreadable.iter().filter_map(|(text, at, field)| {
        let (app, text, object) = (app.id, text.clone(), *app.objects.get(*at)?);
        Some(UnreadableExpression { app, text, object, field: field.clone() })
    });
    survey.unreadable_expressions.extend(unreadable);
    survey.environments[environment.0].roots.push(app.id);
    survey.apps.push(app);
    // What Argo CD makes of an Application is not followed from here.
    let inner = part.objects.iter().filter(|it| declarations::declares(&it.value));
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
        above: None,
        application: Application::from_value(declared).ok()?,
        declared: Arc::new(RenderedObject { value: declared.clone(), location, origins }),
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
