//! Writes down what happens in clusters, from the changes of their stores.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tiphys_apiserver::{ApiServer, Change, ChangeKind};
use tiphys_cause::probe_fault;
use tiphys_health::{HealthSettings, Rules};
use tiphys_model::{Tracking, hook, names, settings::Customizations};
use tiphys_value::{Map, ObjectExt, ResourceKey, Value};
use tokio::task::JoinHandle;

use crate::{
    mechanism::mechanism,
    object_state::{State, state_of},
    outage::{Availability, Outage},
    story::{Moment, What},
};

/// How many changes are taken at once.
const BATCH: usize = 512;
/// The rules of the world, which are no part of the story.
const RULES: (&str, &str) = ("kube-system", "tiphys-world");
/// Kinds whose objects come and go without saying anything.
const UNTOLD: [&str; 5] = ["Event", "Lease", "EndpointSlice", "Endpoints", "ControllerRevision"];

/// The kind of definitions, which bear no mark of their Application.
pub(crate) const DEFINITION: &str = "CustomResourceDefinition";

/// What was written down.
pub struct Record {
    began: Timestamp,
    tracking: Tracking,
    rules: Rules,
    moments: Vec<Moment>,
    /// The Application of each object, by uid.
    applications: HashMap<String, String>,
    /// The topmost owner of each object that has one, by uid.
    makers: HashMap<String, ResourceKey>,
    /// The last warning of each object, with the number of its cluster.
    warnings: BTreeMap<(usize, ResourceKey), String>,
    /// What the probe said for which a pod's container was killed last.
    failed_probes: BTreeMap<(usize, ResourceKey), String>,
    /// The last state of each object, by the number of its cluster and uid: statuses of Applications are long
    /// to read.
    states: HashMap<(usize, String), State>,
    /// Hooks, which are made and deleted with each operation.
    hooks: BTreeSet<(usize, ResourceKey)>,
    availability: Availability,
    /// Whether changes were lost.
    has_gaps: bool,
}

/// Writes until it is dropped.
pub struct Recorder {
    record: Arc<Mutex<Record>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Recorder {
    /// Begins to write; what is there already is no part of the story.
    pub fn start(servers: Vec<ApiServer>, tracking: Tracking) -> Self {
        let began = servers.first().map_or(Timestamp::UNIX_EPOCH, ApiServer::now);
        let record = Arc::new(Mutex::new(Record::new(began, tracking)));
        let mut recorder = Self { record, tasks: Vec::new() };
        servers.into_iter().for_each(|server| recorder.also(server));
        recorder
    }

    /// Writes of one more cluster.
    pub fn also(&mut self, server: ApiServer) {
        let cluster = self.tasks.len();
        let record = self.record.clone();
        let revision = lock(&record).know_all(&server);
        self.tasks.push(tokio::spawn(follow(server, cluster, revision, record)));
    }

    /// What was written down so far.
    pub fn record(&self) -> MutexGuard<'_, Record> {
        lock(&self.record)
    }
}

fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock()
}

async fn follow(server: ApiServer, cluster: usize, mut revision: u64, record: Arc<Mutex<Record>>) {
    loop {
        server.changed_after(revision).await;
        loop {
            let Ok(changes) = server.changes_since(revision, BATCH) else {
                let mut record = lock(&record);
                record.has_gaps = true;
                revision = record.know_all(&server);
                break;
            };
            let Some(last) = changes.last() else { break };
            revision = last.revision;
            let now = server.now();
            let mut record = lock(&record);
            changes.iter().for_each(|change| record.take(cluster, now, change));
        }
    }
}

impl Record {
    fn new(began: Timestamp, tracking: Tracking) -> Self {
        Self {
            began,
            tracking,
            rules: Rules::new(HealthSettings::default(), Customizations::default()),
            moments: Vec::new(),
            applications: HashMap::new(),
            makers: HashMap::new(),
            warnings: BTreeMap::new(),
            failed_probes: BTreeMap::new(),
            states: HashMap::new(),
            hooks: BTreeSet::new(),
            availability: Availability::default(),
            has_gaps: false,
        }
    }

    /// Takes note of what is there; returns its revision.
    fn know_all(&mut self, server: &ApiServer) -> u64 {
        // What was lost may have changed any of them.
        self.states.clear();
        let snapshot = server.snapshot();
        let all = || snapshot.resources().flat_map(|id| snapshot.list(id, None));
        // Owners may come after what they own.
        for _ in 0..3 {
            all().for_each(|object| {
                self.application_of(object.value());
                self.makers.remove(object.value().uid());
                self.maker_of(object.value());
            });
        }
        all().for_each(|object| self.availability.observe(0, object.value(), Some(object.value())));
        snapshot.revision()
    }

    /// The Application of an object: the one whose mark it bears, or that of its owner.
    fn application_of(&mut self, object: &Value) -> Option<String> {
        if let Some(known) = self.applications.get(object.uid()) {
            return Some(known.clone());
        }
        let by_owner = object
            .owner_references()
            .iter()
            .filter_map(|owner| owner.str_at(&["uid"]))
            .find_map(|owner| self.applications.get(owner).cloned());
        let application = by_owner.or_else(|| self.tracking.owner(object))?;
        self.applications.insert(object.uid().to_owned(), application.clone());
        Some(application)
    }

    /// The topmost owner of an object: of a pod its Deployment.
    fn maker_of(&mut self, object: &Value) -> Option<ResourceKey> {
        if let Some(known) = self.makers.get(object.uid()) {
            return Some(known.clone());
        }
        let owner = object.owner_references().first()?;
        let maker = match self.makers.get(owner.str_at(&["uid"]).unwrap_or_default()) {
            Some(maker) => maker.clone(),
            None => {
                let group = owner.gvk().group;
                let name = owner.str_at(&["name"]).unwrap_or_default();
                ResourceKey::new(group, owner.kind(), object.namespace(), name)
            }
        };
        self.makers.insert(object.uid().to_owned(), maker.clone());
        Some(maker)
    }

    fn take(&mut self, cluster: usize, now: Timestamp, change: &Change) {
        let at_ms = u64::try_from(now.duration_since(self.began).as_millis()).unwrap_or_default();
        let object = change.object.value();
        let is_deleted = change.kind == ChangeKind::Deleted;
        if object.kind() == "Event" {
            return self.warn(cluster, object);
        }
        self.availability.observe(at_ms, object, (!is_deleted).then_some(object));
        let is_rules = object.kind() == "ConfigMap" && (object.namespace(), object.name()) == RULES;
        if UNTOLD.contains(&object.kind()) || is_rules {
            return;
        }
        let application = self.application_of(object);
        let made_by = self.maker_of(object);
        // Controllers copy marks to what they make.
        let is_marked = self.tracking.owner(object).is_some() && self.tracking.is_self_referencing(object);
        let from_git = is_marked && made_by.is_none();
        let before = change.previous.as_ref().map(|previous| previous.value());
        let state = |object: &Value| state_of(object, &self.rules);
        let known = self.states.remove(&(cluster, object.uid().to_owned()));
        let was = before.map(|before| known.unwrap_or_else(|| state(before)));
        let is = if is_deleted { State::default() } else { state(object) };
        if !is_deleted {
            self.states.insert((cluster, object.uid().to_owned()), is.clone());
        }
        let what = match (&was, is_deleted) {
            (_, true) => What::Deleted,
            (None, false) => What::Created,
            (Some(was), false) if was.word != is.word || was.because != is.because => What::State,
            _ => What::Changed,
        };
        if from_git && hook::is_hook(object) {
            self.hooks.insert((cluster, object.resource_key()));
        }
        let is_told = from_git || object.kind() == DEFINITION;
        let fields = match before {
            Some(before) if !is_deleted && is_told => changed_fields(before, object),
            _ => Vec::new(),
        };
        if what == What::Changed && fields.is_empty() {
            return;
        }
        let moment = Moment {
            at_ms,
            cluster,
            object: object.resource_key(),
            application,
            made_by,
            what,
            from: was.map(|was| was.word).unwrap_or_default(),
            level: is.level,
            mechanism: if is_deleted { None } else { mechanism(object, &is) },
            to: is.word,
            fields: Vec::new(),
            because: is.because,
            from_git,
        };
        if !fields.is_empty() {
            let (from, to) = (String::new(), String::new());
            self.moments.push(Moment {
                what: What::Changed,
                fields,
                from,
                to,
                because: String::new(),
                mechanism: None,
                ..moment.clone()
            });
        }
        if what != What::Changed {
            self.moments.push(moment);
        }
    }

    fn warn(&mut self, cluster: usize, event: &Value) {
        // That a claim waits for a pod is no warning, and why it is not bound all the same.
        let is_told = event.str_at(&["type"]) == Some("Warning")
            || event.str_at(&["reason"]) == Some("WaitForFirstConsumer");
        if !is_told {
            return;
        }
        let of = |field: &str| event.str_at(&["involvedObject", field]).unwrap_or_default();
        let group = of("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        let key = ResourceKey::new(group, of("kind"), of("namespace"), of("name"));
        let text = event.str_at(&["message"]).unwrap_or_default().to_owned();
        if probe_fault(&text).is_some_and(|fault| fault.probe != "Readiness") {
            self.failed_probes.insert((cluster, key.clone()), text.clone());
        }
        self.warnings.insert((cluster, key), text);
    }

    /// Everything that happened so far, in order.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// What could not be reached for a while. What is gone counts only if it is still wanted.
    pub fn outages(&self, wanted: &BTreeSet<ResourceKey>) -> Vec<Outage> {
        self.availability.outages(wanted)
    }

    /// The last warning that was told of an object of a cluster.
    pub fn warning(&self, cluster: usize, object: &ResourceKey) -> Option<&str> {
        self.warnings.get(&(cluster, object.clone())).map(String::as_str)
    }

    /// What the liveness or startup probe of a pod said when its container was killed for it.
    pub(crate) fn failed_probe(&self, cluster: usize, pod: &ResourceKey) -> Option<&str> {
        self.failed_probes.get(&(cluster, pod.clone())).map(String::as_str)
    }

    /// Whether an object is a hook.
    pub(crate) fn is_hook(&self, cluster: usize, object: &ResourceKey) -> bool {
        self.hooks.contains(&(cluster, object.clone()))
    }

    /// The rules by which objects are judged.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The Application of an object, by its uid.
    pub fn application(&self, uid: &str) -> Option<&str> {
        self.applications.get(uid).map(String::as_str)
    }

    /// The topmost owner of an object, by its uid.
    pub fn maker(&self, uid: &str) -> Option<&ResourceKey> {
        self.makers.get(uid)
    }

    /// Whether so much happened at once that some of it was not written down.
    pub fn has_gaps(&self) -> bool {
        self.has_gaps
    }

    /// When it began.
    pub fn began(&self) -> Timestamp {
        self.began
    }
}

/// Annotations of controllers, which nobody writes into a manifest, by the beginning of their names. Waves
/// and options of a sync are those of people.
const BY_CONTROLLERS: [&str; 10] = [
    "deployment.kubernetes.io/",
    "argocd.argoproj.io/tracking-id",
    "argocd.argoproj.io/installation-id",
    "argocd.argoproj.io/refresh",
    "argocd.argoproj.io/hydrate",
    "argocd.argoproj.io/application-set-refresh",
    "pv.kubernetes.io/",
    "volume.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// The fields that differ of what is asked of an object.
fn changed_fields(before: &Value, after: &Value) -> Vec<String> {
    let is_argo = after.gvk().group == names::GROUP;
    let (before, after) = (asked_of(before, is_argo), asked_of(after, is_argo));
    let paths = if before == after { Vec::new() } else { tiphys_diff::difference(&before, &after) };
    paths.iter().map(ToString::to_string).collect()
}

/// What is asked of an object: not its status, nor what the API server and controllers note on it.
fn asked_of(object: &Value, is_argo: bool) -> Value {
    let mut asked = Map::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        match name.as_str() {
            "status" => {}
            // An operation is no wish of the manifest.
            "operation" if is_argo => {}
            "metadata" => {
                let mut metadata = Map::new();
                if let Some(labels) = value.get("labels") {
                    metadata.insert("labels".into(), labels.clone());
                }
                let annotations = value.get("annotations").and_then(Value::as_object).into_iter().flatten();
                let of_people = annotations
                    .filter(|(name, _)| !BY_CONTROLLERS.iter().any(|start| name.starts_with(start)));
                let of_people: Map<String, Value> =
                    of_people.map(|(name, value)| (name.clone(), value.clone())).collect();
                metadata.insert("annotations".into(), of_people.into());
                asked.insert(name.clone(), metadata.into());
            }
            _ => drop(asked.insert(name.clone(), value.clone())),
        }
    }
    asked.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn what_controllers_note_is_no_change_of_what_is_asked() {
        let object = |image: &str, revision: &str, replicas: i64| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "resourceVersion": revision, "annotations": {"deployment.kubernetes.io/revision": revision}},
            "spec": {"image": image}, "status": {"replicas": replicas}})
        };
        assert!(changed_fields(&object("a", "1", 0), &object("a", "2", 3)).is_empty());
        assert_eq!(changed_fields(&object("a", "1", 0), &object("b", "2", 3)), [".spec.image"]);
        let noted = |name: &str, text: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "annotations": {name: text}}});
        let change = |name: &str| changed_fields(&noted(name, "1"), &noted(name, "2")).len();
        assert_eq!(change("argocd.argoproj.io/sync-wave"), 1);
        assert_eq!(change("argocd.argoproj.io/tracking-id"), 0);
    }
}
