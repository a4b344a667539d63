//! A small cluster that does what the planner asks for, with health and faults by script.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Value, json};
use tiphys_model::{
    HealthCode, HealthStatus, Operation, ResourceResult, SyncOperation, SyncOptions, Time, Timestamp,
};
use tiphys_sync::{
    Action, Claim, Done, Failure, KindCatalog, KindInfo, LiveObject, Outcome, SyncInput, SyncSettings,
    SyncState, SyncStep, Verb, record, step,
};
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey};

/// Serves every kind but those of group `missing.io`.
pub(crate) struct Kinds;

impl KindCatalog for Kinds {
    fn lookup(&self, gvk: &GroupVersionKind) -> Option<KindInfo> {
        let cluster = ["Namespace", "CustomResourceDefinition", "ClusterRole"];
        (gvk.group != "missing.io").then(|| KindInfo { namespaced: !cluster.contains(&gvk.kind.as_str()) })
    }
}

/// A scripted cluster and the operation on it.
pub(crate) struct Sim {
    pub targets: Vec<Arc<Value>>,
    pub live: BTreeMap<ResourceKey, LiveObject>,
    pub prunable: BTreeSet<ResourceKey>,
    /// Health by object name; others are healthy.
    pub health: BTreeMap<String, HealthCode>,
    /// Failures by object name.
    pub faults: BTreeMap<String, Failure>,
    /// Failures by namespace.
    pub faults_in: BTreeMap<String, Failure>,
    /// Names of objects that keep a finalizer when deleted.
    pub sticky: BTreeSet<String>,
    pub state: SyncState,
    pub options: SyncOptions,
    pub settings: SyncSettings,
    pub now: Timestamp,
    pub log: Vec<String>,
    pub approved: Option<Time>,
    pub newer: Option<String>,
    pub terminate: bool,
    pub own_key: Option<ResourceKey>,
    pub protected: BTreeMap<ResourceKey, String>,
    pub claims: BTreeMap<ResourceKey, Claim>,
    pub shared: BTreeMap<ResourceKey, String>,
    pub out_of_sync: BTreeSet<ResourceKey>,
}

pub(crate) fn object(kind: &str, name: &str, annotations: &[(&str, &str)]) -> Value {
    let (api, namespace) = match kind {
        "Deployment" | "StatefulSet" => ("apps/v1", Some("shop")),
        "Job" => ("batch/v1", Some("shop")),
        "Ingress" => ("networking.k8s.io/v1", Some("shop")),
        "Widget" => ("example.org/v1", Some("shop")),
        "Gadget" => ("missing.io/v1", Some("shop")),
        "CustomResourceDefinition" => ("apiextensions.k8s.io/v1", None),
        "Namespace" => ("v1", None),
        _ => ("v1", Some("shop")),
    };
    let annotations: BTreeMap<_, _> = annotations.iter().copied().collect();
    let mut value =
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "annotations": annotations}});
    if let Some(namespace) = namespace {
        value["metadata"]["namespace"] = namespace.into();
    }
    if kind == "CustomResourceDefinition" {
        value["spec"] = json!({"group": "example.org", "names": {"kind": "Widget"}});
    }
    value
}

pub(crate) const WAVE: &str = "argocd.argoproj.io/sync-wave";
pub(crate) const HOOK: &str = "argocd.argoproj.io/hook";
pub(crate) const POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
pub(crate) const OPTIONS: &str = "argocd.argoproj.io/sync-options";

impl Sim {
    pub(crate) fn new(targets: Vec<Value>) -> Self {
        let now = Timestamp::from_second(1_700_000_000).expect("valid");
        let operation = Operation {
            sync: Some(SyncOperation { prune: true, ..SyncOperation::default() }),
            ..Operation::default()
        };
        Self {
            targets: targets.into_iter().map(Arc::new).collect(),
            live: BTreeMap::new(),
            prunable: BTreeSet::new(),
            health: BTreeMap::new(),
            faults: BTreeMap::new(),
            faults_in: BTreeMap::new(),
            sticky: BTreeSet::new(),
            state: SyncState::begin(operation, &[], false, &["abcdef0123".into()], now),
            options: SyncOptions::default(),
            settings: SyncSettings::default(),
            now,
            log: Vec::new(),
            approved: None,
            newer: None,
            terminate: false,
            own_key: None,
            protected: BTreeMap::new(),
            claims: BTreeMap::new(),
            shared: BTreeMap::new(),
            out_of_sync: BTreeSet::new(),
        }
    }

    pub(crate) fn operation(&mut self) -> &mut Operation {
        &mut self.state.shown.operation
    }

    /// An object that is there before the sync; `extra` if it is no target any more.
    pub(crate) fn existing(&mut self, value: Value, extra: bool) {
        let key = value.resource_key();
        if extra {
            self.prunable.insert(key.clone());
        }
        self.put(value);
    }

    fn put(&mut self, mut value: Value) {
        let key = value.resource_key();
        value["metadata"]["uid"] = key.to_string().into();
        self.live.insert(key, LiveObject { object: Arc::new(value), health: None });
    }

    fn judge(&mut self) {
        for (key, live) in &mut self.live {
            let has_rule = !matches!(key.kind.as_str(), "ConfigMap" | "Secret" | "Namespace");
            let code = self.health.get(&key.name).copied().unwrap_or(HealthCode::Healthy);
            live.health = has_rule.then(|| HealthStatus::new(code, ""));
        }
    }

    /// One step, and what it asks for.
    pub(crate) fn step(&mut self) -> SyncStep {
        self.judge();
        let operation = self.state.shown.operation.clone();
        let input = SyncInput {
            own_key: self.own_key.clone(),
            destination_namespace: "shop",
            targets: &self.targets,
            live: &self.live,
            prunable: &self.prunable,
            protected: &self.protected,
            claims: &self.claims,
            shared: &self.shared,
            out_of_sync: &self.out_of_sync,
            never_await: &BTreeSet::new(),
            operation: &operation,
            options: &self.options,
            revision: "abcdef0123",
            blocking_error: None,
            window_open: true,
            deletion_approved: self.approved,
            migration_manager: None,
            permit: &|_, _| Ok(()),
            kinds: &Kinds,
            settings: &self.settings,
            managed_namespace: None,
            terminate: self.terminate,
            newer_revision: self.newer.as_deref(),
            now: self.now,
        };
        let result = step(&input, &self.state);
        assert_eq!(result, step(&input, &self.state), "a step is a function of its input");
        self.state = SyncState::from_operation_state(result.state.to_operation_state());
        let mut outcomes = Vec::new();
        for group in &result.batch {
            outcomes.extend(group.iter().map(|action| self.execute(action)));
            if outcomes.iter().any(Outcome::stops_batch) {
                break;
            }
        }
        record(&mut self.state, &outcomes, &self.settings, self.now);
        result
    }

    fn execute(&mut self, action: &Action) -> Outcome {
        let key = &action.task.key;
        let fault = self.faults.get(&key.name).or_else(|| self.faults_in.get(&key.namespace));
        if let Some(fault) = fault.filter(|_| !matches!(action.verb, Verb::Get)) {
            return Outcome { action: action.clone(), result: Err(fault.clone()) };
        }
        if !action.is_dry_run() {
            match &action.verb {
                Verb::Apply { object, .. } => {
                    self.log.push(format!("apply {}/{}", key.kind, key.name));
                    let mut object = Value::clone(object);
                    if !key.namespace.is_empty() {
                        object["metadata"]["namespace"] = key.namespace.clone().into();
                    }
                    self.put(object);
                }
                Verb::Delete { .. } => {
                    self.log.push(format!("delete {}/{}", key.kind, key.name));
                    self.delete(key);
                }
                Verb::RemoveFinalizer { .. } => self.remove_finalizers(key),
                Verb::Get => {}
            }
        }
        let live = self.live.get(key).map(|live| Arc::clone(&live.object));
        Outcome { action: action.clone(), result: Ok(Done { message: "done".into(), live }) }
    }

    fn delete(&mut self, key: &ResourceKey) {
        let Some(live) = self.live.get_mut(key) else { return };
        let held = live.object.at(&["metadata", "finalizers"]).is_some_and(|f| f != &json!([]));
        if held || self.sticky.contains(&key.name) {
            let mut object = Value::clone(&live.object);
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            object["metadata"]["finalizers"] = json!(["example.org/keep"]);
            live.object = Arc::new(object);
        } else {
            self.live.remove(key);
        }
    }

    fn remove_finalizers(&mut self, key: &ResourceKey) {
        let Some(live) = self.live.get_mut(key) else { return };
        let mut object = Value::clone(&live.object);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("finalizers");
        }
        let gone = object.is_terminating();
        live.object = Arc::new(object);
        if gone {
            self.live.remove(key);
        }
    }

    /// Steps until the operation ends or only waits; time stands still.
    pub(crate) fn settle(&mut self) {
        for _ in 0..200 {
            let result = self.step();
            if self.state.is_completed() || result.batch.is_empty() {
                return;
            }
        }
        panic!("no end: {}", self.state.shown.message);
    }

    /// Steps until the operation ends, letting time pass to each wake-up. `false` if it waits for ever.
    pub(crate) fn run(&mut self) -> bool {
        for _ in 0..2000 {
            let result = self.step();
            if self.state.is_completed() {
                return true;
            }
            if result.batch.is_empty() {
                let Some(at) = result.requeue_at else { return false };
                assert!(at > self.now, "a wake-up lies in the future");
                self.now = at;
            }
        }
        panic!("no end: {:?}", self.state);
    }

    pub(crate) fn message(&self) -> &str {
        &self.state.shown.message
    }

    pub(crate) fn result(&self, name: &str) -> &ResourceResult {
        let results = &self.state.shown.sync_result.as_ref().expect("result").resources;
        results.iter().find(|result| result.name == name).expect("listed")
    }

    pub(crate) fn order(&self) -> Vec<&str> {
        self.log.iter().map(|line| line.rsplit('/').next().expect("name")).collect()
    }
}

pub(crate) fn blocked_by_webhook() -> Failure {
    Failure {
        code: Some(500),
        reason: "InternalError".into(),
        message: "Internal error occurred: failed calling webhook \"m.k8s\": connection refused".into(),
        ..Failure::default()
    }
}

pub(crate) fn invalid() -> Failure {
    Failure {
        code: Some(422),
        reason: "Invalid".into(),
        message: "spec.selector: field is immutable".into(),
        ..Failure::default()
    }
}
