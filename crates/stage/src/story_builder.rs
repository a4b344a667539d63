//! Makes a story of what was written down and of how the cluster stands at the end.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause;
use tiphys_model::{Application, HealthCode, hook, names};
use tiphys_value::{ObjectExt, ResourceKey, Value};
use tiphys_world::Behaviours;

use crate::{
    Record, Stage,
    causes::causes,
    claims_in_wait::show_consumers,
    fault::{Api, Fault, Timed},
    mechanism::{self, refused},
    object_state::{is_syncing, state_of},
    operator_products::assumed_references,
    recorder::DEFINITION,
    refused_for_all::show_refusals,
    story::{AppEnd, Assumed, Moment, Outcome, Story, What},
    symptoms::{REFUSED, Symptom, absent_children, symptoms, waits_of},
};

/// How it ended, as far as only the watcher knows.
#[derive(Clone, Debug)]
pub struct Ending {
    /// How.
    pub outcome: Outcome,
    /// Since when nothing moves, in milliseconds since the beginning.
    pub still_since_ms: u64,
    /// What was put in place of what is out of reach.
    pub placeholders: Vec<String>,
    /// Namespace of the engine.
    pub namespace: String,
    /// Applications and sets that the cluster did not take, and why.
    pub refused: Vec<(ResourceKey, String)>,
    /// The fault that the engine's requests meet at the end.
    pub api_fault: Option<Timed>,
}

impl Stage {
    /// The story of what a record tells.
    pub fn story(&self, record: &Record, ending: Ending) -> Story {
        let snapshot = self.site().server().snapshot();
        let mut applications = applications(&snapshot, record, &ending.namespace);
        applications.extend(ending.refused.iter().map(|(key, why)| refused_application(key, why)));
        let mut all: Vec<_> = self
            .sites()
            .enumerate()
            .flat_map(|(at, site)| {
                let snapshot = site.server().snapshot();
                let mut own = symptoms(&snapshot, at, record, &ending.namespace);
                show_consumers(&mut own, &snapshot);
                show_refusals(&mut own, &snapshot);
                own
            })
            .collect();
        all.extend(ending.refused.iter().map(|(key, why)| refused_symptom(key, why)));
        if let Some(fault) = &ending.api_fault {
            show_api_fault(&mut all, fault);
        }
        if ending.outcome == Outcome::TimeUp {
            // Pods that are on their way are no cause; what they belong to says how far it is.
            all.retain(|symptom| symptom.object.kind != "Pod" || !symptom.because.is_empty());
        }
        let unattended = self.engine().map(|engine| engine.unattended()).unwrap_or_default();
        // Who waits for an operator that is not there counts as ready, and is told of as assumed.
        all.retain(|symptom| !(is_waiting(symptom) && unattended.contains_key(&symptom.object.group_kind())));
        let is_green = ending.outcome == Outcome::Green;
        let green_ms = applications.iter().filter_map(|app| app.green_ms).max().unwrap_or_default();
        let unattended =
            unattended.into_iter().map(|(kind, count)| (format!("{}.{}", kind.kind, kind.group), count));
        let mut assumed = Assumed { unattended: unattended.collect(), ..Assumed::default() };
        for site in self.sites() {
            assume(&site.server().snapshot(), &mut assumed);
        }
        Story {
            outcome: ending.outcome,
            took_ms: if is_green { green_ms } else { ending.still_since_ms },
            applications,
            not_begun: not_begun(&snapshot),
            outages: record.outages(&wanted_and_absent(&snapshot)),
            causes: if is_green { Vec::new() } else { causes(&all) },
            placeholders: with_gaps(ending.placeholders, record),
            assumed,
            moments: with_definitions(record.moments(), &snapshot, &ending.namespace),
        }
    }
}

/// Whether an object is on its way, and nothing says what keeps it.
fn is_waiting(symptom: &Symptom) -> bool {
    symptom.mechanism.is_none() && symptom.state == HealthCode::Progressing.as_str()
}

/// The Applications of a cluster, but for those that cannot be read.
pub fn applications_in(snapshot: &Snapshot) -> impl Iterator<Item = Application> {
    let all = snapshot.list(&ResourceId::new(names::GROUP, "applications"), None);
    all.filter_map(|object| Application::from_value(object.value()).ok())
}

/// The Applications that others are to make and have not made.
fn not_begun(snapshot: &Snapshot) -> Vec<ResourceKey> {
    let all: BTreeSet<ResourceKey> =
        applications_in(snapshot).flat_map(|app| absent_children(&app, snapshot)).collect();
    all.into_iter().collect()
}

/// What Applications are to make, and the API server does not have.
fn wanted_and_absent(snapshot: &Snapshot) -> BTreeSet<ResourceKey> {
    let missing = applications_in(snapshot).flat_map(|app| app.status.resources).filter(|resource| {
        resource.health.as_ref().is_some_and(|health| health.status == HealthCode::Missing)
            && !resource.requires_pruning
    });
    missing.map(|it| ResourceKey::new(&it.group, &it.kind, &it.namespace, &it.name)).collect()
}

/// The moments, those of definitions as of Git: they bear no mark, and only their Applications know them.
fn with_definitions(moments: &[Moment], snapshot: &Snapshot, namespace: &str) -> Vec<Moment> {
    let mut moments = moments.to_vec();
    let mut owners = BTreeMap::new();
    for app in applications_in(snapshot) {
        let id = app.instance_name(namespace);
        let own = app.status.resources.iter().filter(|resource| resource.kind == DEFINITION);
        owners.extend(own.map(|resource| (resource.name.clone(), id.clone())));
    }
    for moment in moments.iter_mut().filter(|moment| moment.object.kind == DEFINITION) {
        if let Some(owner) = owners.get(&moment.object.name) {
            moment.application = Some(owner.clone());
            moment.from_git = true;
        }
    }
    moments
}

/// Says beside the placeholders where the story is not whole.
fn with_gaps(mut placeholders: Vec<String>, record: &Record) -> Vec<String> {
    if record.has_gaps() {
        placeholders.push("so much happened at once that some of it is missing in this story".to_owned());
    }
    placeholders
}

/// An engine whose requests fail can neither do anything nor say why: what becomes of its Applications is a
/// consequence.
fn show_api_fault(all: &mut Vec<Symptom>, fault: &Timed) {
    let Fault::Api(api) = fault.fault else { return };
    let (because, mechanism) = match api {
        Api::Late(_) => return,
        Api::Refuse(code @ (429 | 503)) => {
            (format!("the API server answers the engine with {code}"), Some(Cause::ApiOverload.into()))
        }
        Api::Refuse(code) => (format!("the API server answers the engine with {code}"), None),
        Api::Down => ("the engine cannot reach the API server".to_owned(), None),
    };
    let object = ResourceKey::new("", "Service", "default", "kubernetes");
    let is_application = |key: &ResourceKey| key.group == names::GROUP && key.kind == "Application";
    for application in all.iter_mut().filter(|symptom| is_application(&symptom.object)) {
        application.shows.insert(object.clone());
    }
    all.push(Symptom { because, mechanism, ..Symptom::of_object(object, format!("fault {}", fault.text)) });
}

fn refused_symptom(key: &ResourceKey, why: &str) -> Symptom {
    Symptom {
        because: why.to_owned(),
        mechanism: refused(&key.namespace, why),
        ..Symptom::of_object(key.clone(), REFUSED)
    }
}

/// What the cluster did not take, and is no Application of the cluster.
fn refused_application(key: &ResourceKey, why: &str) -> AppEnd {
    AppEnd {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        id: key.name.clone(),
        parent: None,
        wave: 0,
        depth: 0,
        state: REFUSED.to_owned(),
        is_green: false,
        began_ms: 0,
        green_ms: None,
        objects: 0,
        mechanism: refused(&key.namespace, why),
        waits: Vec::new(),
    }
}

/// The Applications of a cluster, in the order in which they came.
fn applications(snapshot: &Snapshot, record: &Record, namespace: &str) -> Vec<AppEnd> {
    let objects: Vec<&Value> = snapshot
        .resources()
        .filter(|id| id.group() == names::GROUP && id.resource() == "applications")
        .flat_map(|id| snapshot.list(id, None))
        .map(|object| object.value())
        .collect();
    let parents: BTreeMap<String, String> = objects
        .iter()
        .filter_map(|object| {
            let app = Application::from_value(object).ok()?;
            let parent = record.application(object.uid())?;
            Some((app.instance_name(namespace), parent.to_owned()))
        })
        .collect();
    let mut all: Vec<AppEnd> =
        objects.into_iter().map(|object| application(object, record, &parents, namespace)).collect();
    all.sort_by(|a, b| {
        (a.began_ms, a.depth, a.wave, &a.namespace, &a.name).cmp(&(
            b.began_ms,
            b.depth,
            b.wave,
            &b.namespace,
            &b.name,
        ))
    });
    all
}

fn application(
    object: &Value,
    record: &Record,
    parents: &BTreeMap<String, String>,
    namespace: &str,
) -> AppEnd {
    let key = object.resource_key();
    let own: Vec<&Moment> = record.moments().iter().filter(|moment| moment.object == key).collect();
    let state = state_of(object, record.rules());
    let began_ms =
        own.iter().rev().find(|moment| moment.what == What::Created).map_or(0, |moment| moment.at_ms);
    let last = own.iter().rev().find(|moment| moment.what != What::Changed);
    let app = Application::from_value(object).ok();
    let waits = app.iter().flat_map(waits_of).map(|wait| wait.to_string()).collect();
    let name = app.as_ref().map_or_else(|| key.name.clone(), |app| app.instance_name(namespace));
    AppEnd {
        mechanism: mechanism::mechanism(object, &state),
        namespace: key.namespace,
        name: key.name,
        wave: hook::wave(object),
        depth: depth(&name, parents),
        parent: parents.get(&name).filter(|parent| **parent != name).cloned(),
        id: name,
        is_green: state.is_good() && app.as_ref().is_some_and(|app| !is_syncing(app)),
        green_ms: state.is_good().then(|| last.map_or(0, |moment| moment.at_ms)),
        state: state.word,
        began_ms,
        objects: app.map_or(0, |app| app.status.resources.iter().filter(|resource| !resource.hook).count()),
        waits,
    }
}

/// How many Applications are above one. Those that render themselves end it.
fn depth(name: &str, parents: &BTreeMap<String, String>) -> usize {
    let mut seen = BTreeSet::from([name]);
    let mut at = name;
    while let Some(parent) = parents.get(at).filter(|parent| seen.insert(parent)) {
        at = parent;
    }
    seen.len() - 1
}

/// Why a container waits whose image could not be pulled.
const PULL_REASONS: [&str; 4] = ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"];

/// What is taken to be well of what is in a cluster.
fn assume(snapshot: &Snapshot, assumed: &mut Assumed) {
    let known = Behaviours::builtin();
    let mut images: BTreeSet<String> = assumed.images.drain(..).collect();
    let mut outside: BTreeSet<String> = assumed.outside_webhooks.drain(..).collect();
    let mut balanced: BTreeSet<String> = assumed.load_balancers.drain(..).collect();
    let mut policies: BTreeSet<String> = assumed.policies.drain(..).collect();
    let mut references: BTreeSet<String> = assumed.references.drain(..).collect();
    for object in snapshot.resources().flat_map(|id| snapshot.list(id, None)) {
        let object = object.value();
        let elsewhere = assumed_references(object, snapshot);
        references.extend(elsewhere.iter().map(|key| format!("{} {}", key.kind, key.name)));
        let list = |path: &[&str]| object.at(path).and_then(Value::as_array).into_iter().flatten();
        match object.kind() {
            "Pod" => {
                let containers = list(&["spec", "initContainers"]).chain(list(&["spec", "containers"]));
                // What could not be pulled is not taken to be there.
                let is_refused = |container: &&Value| {
                    let own = container.str_at(&["name"]);
                    crate::object_state::containers(object).any(|(name, status)| {
                        let reason = status.str_at(&["state", "waiting", "reason"]).unwrap_or_default();
                        Some(name) == own && PULL_REASONS.contains(&reason)
                    })
                };
                let unknown = containers
                    .filter(|it| !known.containers.iter().any(|rule| rule.is_about(object, it)))
                    .filter(|it| !is_refused(it));
                images
                    .extend(unknown.filter_map(|container| container.str_at(&["image"])).map(str::to_owned));
            }
            "Service" if object.at(&["status", "loadBalancer", "ingress"]).is_some() => {
                balanced.insert(format!("{}/{}", object.namespace(), object.name()));
            }
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                let away =
                    list(&["webhooks"]).filter(|webhook| webhook.at(&["clientConfig", "url"]).is_some());
                outside.extend(away.filter_map(|webhook| webhook.str_at(&["name"])).map(str::to_owned));
            }
            kind if tiphys_policy::does_more(object) == Some(true) => {
                policies.insert(format!("{kind} {}", object.name()));
            }
            _ => {}
        }
    }
    assumed.policies = policies.into_iter().collect();
    assumed.references = references.into_iter().collect();
    assumed.load_balancers = balanced.into_iter().collect();
    assumed.images = images.into_iter().collect();
    assumed.outside_webhooks = outside.into_iter().collect();
}
