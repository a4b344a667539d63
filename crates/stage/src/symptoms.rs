//! What is not as it should be in a cluster.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;
use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause;
use tiphys_model::{Application, HealthCode, ResultCode, names};
use tiphys_sync::{SyncState, WaitKind};
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::{
    Record,
    ingress_servers::why_unserved,
    mechanism::{self, Mechanism, mechanism},
    object_state::{Level, is_syncing, state_of},
    operator_products::{Products, absent_operator, missing_reference},
    story::{Moment, What},
    unready_servers::why_unready,
};

/// The state of what the API server does not take.
pub(crate) const REFUSED: &str = "Refused";

/// An object that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Symptom {
    /// The number of its cluster.
    #[serde(skip_serializing_if = "is_zero")]
    pub cluster: usize,
    /// Which object. It need not be there: the API server may have refused it.
    pub object: ResourceKey,
    /// The Application that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// Its state in a word.
    pub state: String,
    /// Why, in the words of the component that says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// The same as a cause of the common vocabulary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// The objects whose state it only shows: what it made, refers to, contains or waits for.
    #[serde(skip)]
    pub shows: BTreeSet<ResourceKey>,
    /// What made it in the end, if it was made by another object.
    #[serde(skip)]
    pub made_by: Option<ResourceKey>,
    /// The uid, if it is there.
    #[serde(skip)]
    pub uid: String,
    /// Of an Application its name in the marks of its objects.
    #[serde(skip)]
    pub instance: Option<String>,
    /// Of a pod why it is not well, without its own name, uid and address: pods of one workload with the same
    /// are told of together.
    #[serde(skip)]
    pub likeness: Option<String>,
}

impl Symptom {
    /// An object of the first cluster in a state, and nothing more is known of it.
    pub(crate) fn of_object(object: ResourceKey, state: impl Into<String>) -> Self {
        Self {
            cluster: 0,
            object,
            application: None,
            state: state.into(),
            because: String::new(),
            mechanism: None,
            shows: BTreeSet::new(),
            made_by: None,
            uid: String::new(),
            instance: None,
            likeness: None,
        }
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Everything in a cluster that is not as it should be. `namespace` is the one of the engine.
pub fn symptoms(snapshot: &Snapshot, cluster: usize, record: &Record, namespace: &str) -> Vec<Symptom> {
    let mut found = Vec::new();
    let fights = fights(record, cluster);
    let mut products = Products::default();
    for id in snapshot.resources() {
        for object in snapshot.list(id, None) {
            let object = object.value();
            let state = state_of(object, record.rules());
            if state.is_good() || object.kind() == "Event" {
                continue;
            }
            let key = object.resource_key();
            let is_application = key.group == names::GROUP && key.kind == "Application";
            // Of a ReplicaSet that makes pods, and they fail, the pods tell.
            let warning = record.warning(cluster, &key).filter(|_| !is_application);
            let mut state = state;
            if let (true, Some(warning)) = (state.because.is_empty(), warning) {
                state.because = warning.to_owned();
            }
            products.add(object);
            let mut by_operator = None;
            if let Some((text, id, missing)) = missing_reference(object, snapshot) {
                state.because = text;
                by_operator = Some(Mechanism { id, objects: vec![missing] });
            }
            let mut symptom = Symptom {
                cluster,
                application: record.application(object.uid()).map(str::to_owned),
                mechanism: by_operator
                    .or_else(|| mechanism(object, &state))
                    .or_else(|| of_claim(object, snapshot)),
                because: state.because,
                shows: refers_to(object),
                made_by: record.maker(object.uid()).cloned(),
                uid: object.uid().to_owned(),
                ..Symptom::of_object(key, state.word)
            };
            let killed = symptom.mechanism.as_ref().is_some_and(|it| it.id == Cause::RunExits);
            if killed && let Some(text) = record.failed_probe(cluster, &symptom.object) {
                text.clone_into(&mut symptom.because);
                symptom.mechanism = Some(Cause::RunLiveness.into());
            }
            let unserved = why_unserved(object, snapshot).or_else(|| why_unready(object, snapshot));
            if let Some((text, id, pods)) = unserved {
                symptom.because = text;
                symptom.mechanism = Some(id.into());
                symptom.shows.extend(pods);
            }
            if let (None, Some(absent)) = (&symptom.mechanism, absent_operator(object, snapshot)) {
                symptom.because = match &absent.idle {
                    Some(idle) => {
                        let ResourceKey { kind, namespace, name, .. } = idle;
                        format!("no operator has looked at it: {kind} {namespace}/{name} has no replicas")
                    }
                    None => "no operator has looked at it".to_owned(),
                };
                let objects = absent.idle.into_iter().collect();
                symptom.mechanism = Some(Mechanism { id: Cause::OperatorDown, objects });
                symptom.shows.extend(absent.pods);
            }
            if symptom.object.kind == "Pod" {
                symptom.likeness = likeness(object, &symptom);
            }
            if symptom.object.kind == "Job" && symptom.mechanism.is_none() {
                add_what_pods_said(&mut symptom, record);
            }
            if is_application && let Ok(app) = Application::from_value(object) {
                found.extend(refused(&app, namespace));
                let absent = absent_children(&app, snapshot);
                found.extend(not_begun(&absent, &symptom));
                symptom.instance = Some(app.instance_name(namespace));
                symptom.shows.extend(contained(&app));
                // These wait for it, and not it for them.
                symptom.shows.retain(|key| !absent.contains(key));
                // What is made and deleted in turn is of more than one Application.
                let own: BTreeSet<ResourceKey> = resources_of(&app).collect();
                symptom
                    .shows
                    .extend(fights.iter().map(|it| it.object.clone()).filter(|key| own.contains(key)));
            }
            found.push(symptom);
        }
    }
    found.extend(fights);
    // What is missing, or waited for, tells why.
    for symptom in &mut found {
        symptom.shows.extend(symptom.mechanism.iter().flat_map(|it| it.objects.iter().cloned()));
    }
    // Whoever shows something that is to be made shows who is to make it.
    for symptom in &mut found {
        let makers = products.makers(&symptom.shows).into_iter().filter(|maker| *maker != symptom.object);
        symptom.shows.extend(makers.collect::<Vec<_>>());
    }
    show_makers(&mut found, snapshot);
    show_nodes(&mut found);
    found.dedup_by(|a, b| a.object == b.object && a.because == b.because);
    found
}

/// Why a pod is not well without what only it has, if that is not the whole of it.
fn likeness(pod: &Value, symptom: &Symptom) -> Option<String> {
    let own = [pod.name(), pod.uid(), pod.str_at(&["status", "podIP"]).unwrap_or_default()];
    let mut text = symptom.because.clone();
    for word in own.into_iter().filter(|word| !word.is_empty()) {
        text = text.replace(word, "…");
    }
    let maker = symptom.made_by.as_ref()?;
    (text != symptom.because).then(|| format!("{} {}: {text}", maker.kind, maker.name))
}

/// The Applications that another one is to make and has not made: they wait with it.
fn not_begun(absent: &[ResourceKey], parent: &Symptom) -> Vec<Symptom> {
    let symptom = |object: &ResourceKey| Symptom {
        cluster: parent.cluster,
        shows: BTreeSet::from([parent.object.clone()]),
        ..Symptom::of_object(object.clone(), "Missing")
    };
    absent.iter().map(symptom).collect()
}

/// The Applications among the objects of another one that are not there, though nothing says that they are
/// refused.
pub(crate) fn absent_children(app: &Application, snapshot: &Snapshot) -> Vec<ResourceKey> {
    let refused: BTreeSet<ResourceKey> = refused(app, "").into_iter().map(|symptom| symptom.object).collect();
    let id = ResourceId::new(names::GROUP, "applications");
    let children = app.status.resources.iter().filter(|resource| {
        resource.group == names::GROUP && resource.kind == "Application" && !resource.requires_pruning
    });
    let absent = children.filter(|it| snapshot.get(&id, &it.namespace, &it.name).is_none());
    let keys = absent.map(|it| ResourceKey::new(&it.group, &it.kind, &it.namespace, &it.name));
    keys.filter(|key| !refused.contains(key)).collect()
}

/// How often an object is made and deleted before that is a fight.
const FIGHT: usize = 3;

/// Objects that are made and deleted in turn.
fn fights(record: &Record, cluster: usize) -> Vec<Symptom> {
    let mut counts: BTreeMap<&ResourceKey, (usize, usize, Option<&str>)> = BTreeMap::new();
    // What a workload makes and deletes has names of its own, or those of its numbers.
    let own = record.moments().iter().filter(|moment| moment.cluster == cluster && moment.made_by.is_none());
    for moment in own {
        let count = counts.entry(&moment.object).or_default();
        match moment.what {
            What::Created => count.0 += 1,
            What::Deleted => count.1 += 1,
            _ => {}
        }
        count.2 = moment.application.as_deref().or(count.2);
    }
    let fought = counts.into_iter().filter(|(key, (made, deleted, _))| {
        *made >= FIGHT && *deleted >= FIGHT && !record.is_hook(cluster, key)
    });
    fought
        .map(|(key, (made, deleted, application))| Symptom {
            cluster,
            application: application.map(str::to_owned),
            because: format!("it was made {made} times and deleted {deleted} times"),
            mechanism: Some(Cause::GitopsPruneFight.into()),
            ..Symptom::of_object(key.clone(), "Fought over")
        })
        .collect()
}

/// A Job that has taken too long deletes its pods, and with them what kept them from ending.
fn add_what_pods_said(job: &mut Symptom, record: &Record) {
    let mut told = record.moments().iter().rev().filter(|moment| {
        moment.cluster == job.cluster
            && moment.object.kind == "Pod"
            && moment.made_by.as_ref() == Some(job.made_by.as_ref().unwrap_or(&job.object))
    });
    let is_on_its_way_out =
        |moment: &Moment| moment.mechanism.as_ref().is_none_or(|it| it.id.area() == "delete");
    let is_stuck = |moment: &Moment| {
        moment.level == Level::Bad || moment.mechanism.as_ref().is_some_and(|it| it.id == Cause::RunInitWait)
    };
    if let Some(last) = told.find(|moment| is_stuck(moment) && !is_on_its_way_out(moment)) {
        job.because = match job.because.is_empty() {
            true => last.because.clone(),
            false => format!("{}; its pod: {}", job.because, last.because),
        };
        job.mechanism.clone_from(&last.mechanism);
    }
}

/// Pods that no node takes because of taints show the nodes that are not well.
fn show_nodes(found: &mut [Symptom]) {
    let nodes: Vec<ResourceKey> =
        found.iter().filter(|it| it.object.kind == "Node").map(|it| it.object.clone()).collect();
    let kept_away =
        |symptom: &&mut Symptom| symptom.object.kind == "Pod" && symptom.because.contains("taint");
    found.iter_mut().filter(kept_away).for_each(|symptom| symptom.shows.extend(nodes.iter().cloned()));
}

/// Whoever made something that is not well shows it, over whatever is between them. What is between them and
/// not well itself is shown in its place.
fn show_makers(found: &mut [Symptom], snapshot: &Snapshot) {
    let mut owners_of: HashMap<&str, Vec<&str>> = HashMap::new();
    for object in snapshot.resources().flat_map(|id| snapshot.list(id, None)) {
        owners_of.insert(object.value().uid(), owners(object.value()));
    }
    let unwell: HashSet<&str> =
        found.iter().map(|symptom| symptom.uid.as_str()).filter(|uid| !uid.is_empty()).collect();
    let mut shown: BTreeMap<String, BTreeSet<ResourceKey>> = BTreeMap::new();
    for symptom in found.iter().filter(|symptom| !symptom.uid.is_empty()) {
        let mut open = owners_of.get(symptom.uid.as_str()).cloned().unwrap_or_default();
        let mut seen = HashSet::new();
        while let Some(owner) = open.pop() {
            if !seen.insert(owner) {
                continue;
            }
            match unwell.contains(owner) {
                true => drop(shown.entry(owner.to_owned()).or_default().insert(symptom.object.clone())),
                false => open.extend(owners_of.get(owner).into_iter().flatten()),
            }
        }
    }
    for symptom in found.iter_mut() {
        symptom.shows.extend(shown.remove(&symptom.uid).unwrap_or_default());
    }
}

/// Why a claim is not bound: there is no such class, or none at all, or nobody provisions for it.
fn of_claim(object: &Value, snapshot: &Snapshot) -> Option<Mechanism> {
    if object.kind() != "PersistentVolumeClaim" || object.is_terminating() {
        return None;
    }
    let class = object.str_at(&["spec", "storageClassName"]).filter(|class| !class.is_empty());
    let mut classes = snapshot.list(&ResourceId::new("storage.k8s.io", "storageclasses"), None);
    let is_there = class.is_some_and(|class| classes.any(|it| it.value().name() == class));
    Some(if is_there { Cause::VolumeProvisioner.into() } else { Cause::VolumeNoClass.into() })
}

fn owners(object: &Value) -> Vec<&str> {
    object.owner_references().iter().filter_map(|owner| owner.str_at(&["uid"])).collect()
}

/// The claims that a pod waits for, and its node.
fn refers_to(object: &Value) -> BTreeSet<ResourceKey> {
    if object.kind() != "Pod" {
        return BTreeSet::new();
    }
    let volumes = object.at(&["spec", "volumes"]).and_then(Value::as_array).into_iter().flatten();
    let names = volumes.filter_map(|volume| volume.str_at(&["persistentVolumeClaim", "claimName"]));
    let claims = names.map(|name| ResourceKey::new("", "PersistentVolumeClaim", object.namespace(), name));
    let node = object.str_at(&["spec", "nodeName"]).map(|name| ResourceKey::new("", "Node", "", name));
    claims.chain(node).collect()
}

/// The objects of an Application that are not healthy, that it waits for, or whose failure has ended its
/// operation.
fn contained(app: &Application) -> BTreeSet<ResourceKey> {
    let own = (app.metadata.namespace.as_str(), app.metadata.name.as_str());
    let bad = app.status.resources.iter().filter(|resource| {
        resource
            .health
            .as_ref()
            .is_some_and(|health| !matches!(health.status, HealthCode::Healthy | HealthCode::Suspended))
    });
    let bad = bad.map(|it| ResourceKey::new(&it.group, &it.kind, &it.namespace, &it.name));
    let waits = waits_of(app).into_iter().filter_map(|wait| wait.object);
    let results = app.status.operation_state.iter().flat_map(|state| &state.sync_result);
    let failed_hooks = results.flat_map(|result| &result.resources).filter(|it| {
        !it.hook_type.is_empty()
            && it.hook_phase.is_some_and(|phase| phase.is_completed() && !phase.is_successful())
    });
    let failed_hooks = failed_hooks.map(|it| ResourceKey::new(&it.group, &it.kind, &it.namespace, &it.name));
    let is_itself = |key: &ResourceKey| {
        key.group == names::GROUP
            && key.kind == "Application"
            && (key.namespace.as_str(), key.name.as_str()) == own
    };
    bad.chain(waits).chain(failed_hooks).filter(|key| !is_itself(key)).collect()
}

/// The objects of an Application, and those that it is to delete.
fn resources_of(app: &Application) -> impl Iterator<Item = ResourceKey> {
    app.status.resources.iter().map(|it| ResourceKey::new(&it.group, &it.kind, &it.namespace, &it.name))
}

/// What the operation of an Application waits for.
pub fn waits_of(app: &Application) -> Vec<tiphys_sync::Wait> {
    let state = app.status.operation_state.clone().filter(|_| is_syncing(app));
    state.map(SyncState::from_operation_state).map(|state| state.waits().to_vec()).unwrap_or_default()
}

/// The objects of an Application that the API server does not take, or that something else holds up.
fn refused(app: &Application, engine_namespace: &str) -> Vec<Symptom> {
    let name = app.instance_name(engine_namespace);
    let symptom = |object: ResourceKey, state: &str, because: &str| Symptom {
        application: Some(name.clone()),
        because: because.to_owned(),
        mechanism: mechanism::refused(&object.namespace, because),
        ..Symptom::of_object(object, state)
    };
    let waits =
        waits_of(app).into_iter().filter(|wait| matches!(wait.kind, WaitKind::Blocked | WaitKind::Retry));
    let held = waits.filter_map(|wait| Some(symptom(wait.object?, REFUSED, &wait.cause)));
    let results =
        app.status.operation_state.iter().flat_map(|state| &state.sync_result).flat_map(|it| &it.resources);
    let failed = results.filter(|it| it.status == Some(ResultCode::SyncFailed)).map(|it| {
        let object = ResourceKey::new(&it.group, &it.kind, &it.namespace, &it.name);
        symptom(object, REFUSED, &it.message)
    });
    let mut all: Vec<Symptom> = held.collect();
    // What failed and is being tried again is told of once.
    for one in failed {
        if !all.iter().any(|known| known.object == one.object) {
            all.push(one);
        }
    }
    all
}
