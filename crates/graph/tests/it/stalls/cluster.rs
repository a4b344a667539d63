//! An empty cluster on which the planner of the engine syncs a repository, by Argo CD's rules and in virtual
//! time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Value, json};
use tiphys_health::{HealthSettings, Rules};
use tiphys_model::{
    ArgoSettings, HealthCode, HealthStatus, Operation, OperationPhase, RetryStrategy, SyncOperation,
    SyncOptions, Timestamp, names,
};
use tiphys_render::manifest;
use tiphys_sync::{
    Action, Done, Failure, KindCatalog, KindInfo, LiveObject, Outcome, SyncInput, SyncSettings, SyncState,
    Verb, record, step,
};
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey};

use super::repository::{CHECKS, Repository};

/// How many rounds may pass without a new object: what is tried again then fails as before.
const ROUNDS: usize = 60;

/// Syncs a repository and returns the Applications whose operation does not end, in whatever order they are
/// looked at: asked is whether a wait can end, and an engine may miss the moment in which it does.
pub(super) fn sync(repository: &Repository) -> Vec<String> {
    let mut stalled = Vec::new();
    let any_order = repository.is_nested() || repository.has_webhook();
    let children = if any_order { repository.children.len() } else { 0 };
    for order in orders(children) {
        // Where something is refused only once a webhook is in force, it matters who is late.
        for lag in if repository.has_webhook() { &[0, LAG][..] } else { &[0][..] } {
            stalled = sync_in(repository, &order, *lag);
            if stalled.is_empty() {
                return stalled;
            }
        }
    }
    stalled
}

/// Every order of a few children.
fn orders(children: usize) -> Vec<Vec<usize>> {
    (0..children).fold(vec![Vec::new()], |shorter, next| {
        let longer = |order: &Vec<usize>| {
            let with_next = |at| [&order[..at], &[next], &order[at..]].concat();
            (0..=order.len()).map(with_next).collect::<Vec<_>>()
        };
        shorter.iter().flat_map(longer).collect()
    })
}

/// How often who has children is looked at again before a late child is.
const LAG: usize = 3;

/// Syncs a repository: of the children that can go on, the first in an order does, after as many looks at
/// those who have children as it is late.
fn sync_in(repository: &Repository, order: &[usize], lag: usize) -> Vec<String> {
    let mut cluster = Cluster::from_repository(repository);
    cluster.begin("root");
    let parents = cluster.parents();
    let rest = (0..repository.children.len()).filter(|child| !order.contains(child));
    let children: Vec<String> =
        order.iter().copied().chain(rest).map(|child| format!("child-{child}")).collect();
    let (mut objects, mut idle, mut late) = (0, 0, 0);
    while idle < ROUNDS {
        let mut wake = None;
        // Whoever has children looks after every move of one.
        let mut moved = parents.iter().any(|name| cluster.act(name, &mut wake));
        if !moved && wake.is_some() && late < lag {
            late += 1;
        } else if !moved {
            late = 0;
            moved = children.iter().any(|name| cluster.act(name, &mut wake));
        }
        if cluster.operations.values().all(|state| state.shown.phase == OperationPhase::Succeeded) {
            return Vec::new();
        }
        idle = if cluster.seen.len() == objects { idle + 1 } else { 0 };
        objects = cluster.seen.len();
        match wake {
            _ if moved => {}
            Some(at) => cluster.now = at,
            None => break,
        }
    }
    let open = cluster.operations.iter().filter(|(_, state)| state.shown.phase != OperationPhase::Succeeded);
    open.map(|(name, state)| format!("{name}: {}", state.shown.message)).collect()
}

struct Cluster {
    /// What each Application renders.
    targets: BTreeMap<String, Vec<Arc<Value>>>,
    /// What is there.
    objects: BTreeMap<ResourceKey, Arc<Value>>,
    /// What ever was: each attempt makes its hooks anew.
    seen: BTreeSet<ResourceKey>,
    operations: BTreeMap<String, SyncState>,
    rules: Rules,
    now: Timestamp,
}

/// Serves the built-in kinds, and the custom one once it is defined.
struct Kinds(bool);

impl KindCatalog for Kinds {
    fn lookup(&self, gvk: &GroupVersionKind) -> Option<KindInfo> {
        let known = gvk.group != "example.org" || self.0;
        let is_wide =
            matches!(gvk.kind.as_str(), "CustomResourceDefinition" | "ValidatingWebhookConfiguration");
        known.then_some(KindInfo { namespaced: !is_wide })
    }
}

impl Cluster {
    fn from_repository(repository: &Repository) -> Self {
        let mut targets: BTreeMap<String, Vec<Arc<Value>>> = BTreeMap::new();
        for (path, text) in repository.files() {
            let folder = path.split('/').next().expect("a folder");
            let owner = if folder == "apps" { "root" } else { folder };
            let objects = manifest::parse_objects(&path, &text, false).expect("parses");
            let objects = objects.into_iter().map(|object| {
                let mut value = object.value;
                if !matches!(value.kind(), "CustomResourceDefinition" | "ValidatingWebhookConfiguration") {
                    value["metadata"]["namespace"] = "argocd".into();
                }
                Arc::new(value)
            });
            targets.entry(owner.to_owned()).or_default().extend(objects);
        }
        let key = "resource.customizations.health.argoproj.io_Application".to_owned();
        let lua = CHECKS[repository.check];
        let set = (!lua.is_empty()).then(|| (key, lua.to_owned())).into_iter().collect();
        let settings = ArgoSettings::read(&set, &BTreeMap::new());
        Self {
            targets,
            objects: BTreeMap::new(),
            seen: BTreeSet::new(),
            operations: BTreeMap::new(),
            rules: Rules::new(
                HealthSettings { compat: true, ..HealthSettings::default() },
                settings.customizations,
            ),
            now: Timestamp::from_second(1_700_000_000).expect("valid"),
        }
    }

    /// The Applications that render Applications.
    fn parents(&self) -> Vec<String> {
        let renders = |targets: &[Arc<Value>]| targets.iter().any(|target| target.kind() == "Application");
        self.targets.iter().filter(|(_, targets)| renders(targets)).map(|(name, _)| name.clone()).collect()
    }

    fn begin(&mut self, app: &str) {
        if self.operations.contains_key(app) {
            return;
        }
        // Repeated without end: what fails for want of something else goes on when that is there.
        let operation = Operation {
            sync: Some(SyncOperation::default()),
            retry: RetryStrategy { limit: -1, ..RetryStrategy::default() },
            ..Operation::default()
        };
        let state = SyncState::begin(operation, &[], false, &["abcdef0".into()], self.now);
        self.operations.insert(app.to_owned(), state);
    }

    /// A step of an operation, which may wish to be looked at again: whether it did anything.
    fn act(&mut self, app: &str, wake: &mut Option<Timestamp>) -> bool {
        if !self.operations.contains_key(app) {
            return false;
        }
        let (acted, at) = self.step(app);
        *wake = wake.take().into_iter().chain(at).min();
        acted
    }

    /// One step of an operation: whether it did anything, and when it wants to be looked at again.
    fn step(&mut self, app: &str) -> (bool, Option<Timestamp>) {
        let mut state = self.operations[app].clone();
        if state.is_completed() {
            return (false, None);
        }
        let live: BTreeMap<ResourceKey, LiveObject> = self
            .objects
            .iter()
            .map(|(key, object)| {
                (key.clone(), LiveObject { object: Arc::clone(object), health: self.health(object) })
            })
            .collect();
        let defined = self.objects.keys().any(|key| key.kind == "CustomResourceDefinition");
        let operation = state.shown.operation.clone();
        let targets = self.targets[app].clone();
        let own = ResourceKey::new(names::GROUP, "Application", "argocd", app);
        let result = step(
            &SyncInput {
                own_key: Some(own),
                destination_namespace: "argocd",
                targets: &targets,
                live: &live,
                prunable: &BTreeSet::new(),
                protected: &BTreeMap::new(),
                shared: &BTreeMap::new(),
                claims: &BTreeMap::new(),
                out_of_sync: &BTreeSet::new(),
                never_await: &BTreeSet::new(),
                operation: &operation,
                options: &SyncOptions::default(),
                revision: "abcdef0",
                blocking_error: None,
                window_open: true,
                deletion_approved: None,
                migration_manager: None,
                permit: &|_, _| Ok(()),
                kinds: &Kinds(defined),
                settings: &SyncSettings::compat(),
                managed_namespace: None,
                terminate: false,
                newer_revision: None,
                now: self.now,
            },
            &state,
        );
        state = result.state;
        let acted = !result.batch.is_empty() || state.is_completed();
        let outcomes: Vec<Outcome> =
            result.batch.iter().flatten().map(|action| self.execute(action)).collect();
        record(&mut state, &outcomes, &SyncSettings::compat(), self.now);
        self.operations.insert(app.to_owned(), state);
        (acted, result.requeue_at)
    }

    fn execute(&mut self, action: &Action) -> Outcome {
        let key = action.task.key.clone();
        let defined = self.objects.keys().any(|key| key.kind == "CustomResourceDefinition");
        if key.group == "example.org" && !defined && !matches!(action.verb, Verb::Get) {
            let message = "no matches for kind \"Widget\" in version \"example.org/v1\"".to_owned();
            let failure =
                Failure { code: Some(404), reason: "NotFound".into(), message, ..Failure::default() };
            return Outcome { action: action.clone(), result: Err(failure) };
        }
        if matches!(action.verb, Verb::Apply { .. }) && !action.is_dry_run() && self.refuses(&key) {
            let message = "failed calling webhook \"asks.example.org\": connection refused".to_owned();
            let failure =
                Failure { code: Some(500), reason: "InternalError".into(), message, ..Failure::default() };
            return Outcome { action: action.clone(), result: Err(failure) };
        }
        if !action.is_dry_run() {
            match &action.verb {
                Verb::Apply { object, .. } => self.apply(&key, object),
                Verb::Delete { .. } => drop(self.objects.remove(&key)),
                Verb::RemoveFinalizer { .. } | Verb::Get => {}
            }
        }
        let live = self.objects.get(&key).cloned();
        Outcome { action: action.clone(), result: Ok(Done { message: String::new(), live }) }
    }

    /// Whether the webhook is asked about a new object, and nobody answers.
    fn refuses(&self, key: &ResourceKey) -> bool {
        let asks = self.objects.keys().any(|known| known.kind == "ValidatingWebhookConfiguration");
        let answers = self.objects.get(&ResourceKey::new("apps", "Deployment", "argocd", "answers"));
        let is_up =
            || answers.and_then(|it| self.health(it)).is_some_and(|it| it.status == HealthCode::Healthy);
        key.kind == "ConfigMap" && asks && !self.objects.contains_key(key) && !is_up()
    }

    fn apply(&mut self, key: &ResourceKey, object: &Value) {
        let mut object = object.clone();
        object["metadata"]["uid"] = key.to_string().into();
        self.objects.insert(key.clone(), Arc::new(object));
        self.seen.insert(key.clone());
        if key.kind == "Application" {
            self.begin(&key.name);
        }
    }

    /// Health as the engine sees it.
    fn health(&self, object: &Value) -> Option<HealthStatus> {
        let code = match object.kind() {
            "Deployment" | "Job" => {
                let containers = object.at(&["spec", "template", "spec", "containers"]);
                let from = containers?.get(0)?.get("envFrom")?.get(0);
                let is_there = |from: &Value| {
                    let secret = from.str_at(&["secretRef", "name"]).unwrap_or_default();
                    self.objects.contains_key(&ResourceKey::new("", "Secret", "argocd", secret))
                };
                if from.is_none_or(is_there) { HealthCode::Healthy } else { HealthCode::Progressing }
            }
            "CustomResourceDefinition" => HealthCode::Healthy,
            "Application" => {
                let mut object = object.clone();
                object["status"] = self.status(object.name());
                return self.rules.assess(&object);
            }
            _ => return None,
        };
        Some(HealthStatus::new(code, ""))
    }

    /// The status of an Application, by Argo CD's rules: it itself and what is missing do not count.
    fn status(&self, app: &str) -> Value {
        let Some(state) = self.operations.get(app) else { return json!({}) };
        let plain = self.targets[app].iter().filter(|target| target.annotation(names::HOOK).is_none());
        let keys: Vec<ResourceKey> = plain.map(|target| target.resource_key()).collect();
        let present = keys.iter().filter_map(|key| self.objects.get(key));
        let others =
            present.clone().filter(|object| !(object.kind() == "Application" && object.name() == app));
        let unhealthy =
            others.filter_map(|object| self.health(object)).any(|it| it.status == HealthCode::Progressing);
        let (total, there) = (keys.len(), present.count());
        let health = match (unhealthy, there) {
            (true, _) => "Progressing",
            (false, 0) if total > 0 => "Missing",
            _ => "Healthy",
        };
        let sync = if there == total { "Synced" } else { "OutOfSync" };
        json!({"health": {"status": health}, "sync": {"status": sync},
            "operationState": {"phase": format!("{:?}", state.shown.phase)}})
    }
}
