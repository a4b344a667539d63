//! Tasks: one object in one phase, built anew in every step from targets, live state and results.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Value, json};
use tiphys_model::{
    HookDeletePolicy, HookType, OperationPhase, ResultCode, SyncOptions, SyncPhase, hook, names,
    operation::{ResourceResult, SyncOperation, SyncOperationResource},
};
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey};

use crate::{
    LiveObject, SyncInput, SyncState, TaskId,
    generated_names::{self, generated_prefix},
    order,
};

/// One object in one phase.
#[derive(Clone, Debug)]
pub(crate) struct Task<'a> {
    pub id: TaskId,
    pub gvk: GroupVersionKind,
    pub wave: i64,
    /// What to apply; `None` for a prune.
    pub target: Option<Arc<Value>>,
    pub live: Option<&'a LiveObject>,
    pub hook: Option<HookType>,
    pub prune_last: bool,
    /// Its name is one of this operation.
    pub is_generated: bool,
    /// Why the task cannot be run at all.
    pub invalid: Option<String>,
    /// The cluster does not serve the kind (yet).
    pub unknown_kind: bool,
    /// What the state knows of the task.
    pub result: Option<ResourceResult>,
}

impl Task<'_> {
    pub(crate) fn is_prune(&self) -> bool {
        self.target.is_none()
    }

    pub(crate) fn is_hook(&self) -> bool {
        self.hook.is_some()
    }

    pub(crate) fn phase(&self) -> Option<OperationPhase> {
        self.result.as_ref().and_then(|result| result.hook_phase)
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.phase().is_none()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.phase() == Some(OperationPhase::Running)
    }

    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.phase(), Some(OperationPhase::Failed | OperationPhase::Error))
    }

    pub(crate) fn has_status(&self, status: ResultCode) -> bool {
        self.result.as_ref().is_some_and(|result| result.status == Some(status))
    }

    pub(crate) fn message(&self) -> &str {
        self.result.as_ref().map_or("", |result| &result.message)
    }

    /// The object whose annotations speak for the task.
    pub(crate) fn object(&self) -> Option<&Value> {
        self.target.as_deref().or_else(|| self.live.map(|live| &*live.object))
    }

    /// Whether the hook is deleted on an occasion: what the sources say now counts, not what is live.
    pub(crate) fn is_deleted_on(&self, policy: HookDeletePolicy) -> bool {
        self.object().is_some_and(|object| hook::hook_delete_policies(object).contains(&policy))
    }

    pub(crate) fn step(&self) -> (SyncPhase, i64) {
        (self.id.phase, self.wave)
    }

    pub(crate) fn key_text(&self) -> String {
        task_key(&self.id)
    }
}

/// The text under which the extension of the state keeps a task.
pub(crate) fn task_key(id: &TaskId) -> String {
    format!("{:?}/{}", id.phase, id.key)
}

/// All tasks of the operation, in the order in which they run, with what is known of them.
pub(crate) fn build<'a>(input: &SyncInput<'a>, state: &mut SyncState) -> Vec<Task<'a>> {
    let mut tasks = Vec::new();
    for target in input.targets {
        add_target(input, state, target, &mut tasks);
    }
    add_destination_namespace(input, state, &mut tasks);
    add_prunes(input, &mut tasks);
    let mut waves = order::prune_waves(&tasks);
    // Argo CD mirrors the waves of what is left to prune, anew in each step.
    if !input.settings.compat {
        waves.extend(&state.extension.prune_waves);
        if waves.len() > 1 {
            state.extension.prune_waves.clone_from(&waves);
        }
    }
    order::assign_prune_waves(&mut tasks, &waves);
    if !input.settings.compat {
        order::put_off(&mut tasks);
    }
    order::sort(&mut tasks);
    for task in &mut tasks {
        task.result = state.result(&task.id).cloned();
    }
    tasks
}

fn is_selected(resources: &[SyncOperationResource], key: &ResourceKey) -> bool {
    resources.is_empty()
        || resources.iter().any(|wanted| {
            wanted.group == key.group
                && wanted.kind == key.kind
                && wanted.name == key.name
                && (wanted.namespace.is_empty() || wanted.namespace == key.namespace)
        })
}

fn add_target<'a>(input: &SyncInput<'a>, state: &SyncState, target: &Arc<Value>, tasks: &mut Vec<Task<'a>>) {
    if hook::is_ignored(target) {
        return;
    }
    let sync = input.operation.sync.as_ref();
    if !hook::is_hook(target) {
        let resources = sync.map_or(&[][..], |sync| &sync.resources);
        if let Some(prefix) = generated_prefix(target) {
            add_generated(input, state, (target, prefix), resources, tasks);
            return;
        }
        let task = new_task(input, SyncPhase::Sync, Arc::clone(target), None);
        if is_selected(resources, &task.id.key) {
            tasks.push(task);
        }
        return;
    }
    if !sync.is_none_or(SyncOperation::runs_hooks) {
        return;
    }
    for hook in hook::hook_types(target) {
        let Some(phase) = hook.phase() else { continue };
        let object = prepared_hook(input, state, target, phase);
        tasks.push(new_task(input, phase, Arc::new(object), Some(hook)));
    }
}

/// Adds an object whose name is generated: it is asked for by the beginning of its name.
fn add_generated<'a>(
    input: &SyncInput<'a>,
    state: &SyncState,
    (target, prefix): (&Value, &str),
    resources: &[SyncOperationResource],
    tasks: &mut Vec<Task<'a>>,
) {
    let operation = format!("{}/{}", input.revision, state.shown.started_at);
    for number in 0..=tasks.len() {
        let object = generated_names::with_generated_name(target, prefix, &operation, number);
        let task = Task { is_generated: true, ..new_task(input, SyncPhase::Sync, Arc::new(object), None) };
        if tasks.iter().any(|other| other.id == task.id) {
            continue;
        }
        let asked = ResourceKey { name: prefix.to_owned(), ..task.id.key.clone() };
        if is_selected(resources, &asked) {
            tasks.push(task);
        }
        return;
    }
}

/// The hook object as it is applied: with a name, and with the finalizer that keeps it until its result
/// was seen.
fn prepared_hook(input: &SyncInput<'_>, state: &SyncState, target: &Value, phase: SyncPhase) -> Value {
    let mut object = target.clone();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return object };
    if metadata.get("name").and_then(Value::as_str).unwrap_or_default().is_empty() {
        let prefix = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default().to_owned();
        let revision: String = input.revision.chars().take(7).collect();
        let started = state.shown.started_at.timestamp().as_second();
        metadata.remove("generateName");
        metadata
            .insert("name".into(), format!("{prefix}{revision}-{phase:?}-{started}").to_lowercase().into());
    }
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|f| f.as_str() == Some(names::HOOK_FINALIZER))
    {
        list.push(names::HOOK_FINALIZER.into());
    }
    object
}

fn new_task<'a>(
    input: &SyncInput<'a>,
    phase: SyncPhase,
    target: Arc<Value>,
    hook: Option<HookType>,
) -> Task<'a> {
    let gvk = target.gvk();
    let info = input.kinds.lookup(&gvk);
    let mut key = target.resource_key();
    let namespaced = info.as_ref().is_none_or(|info| info.namespaced);
    if !namespaced {
        key.namespace.clear();
    } else if key.namespace.is_empty() {
        key.namespace = input.destination_namespace.to_owned();
    }
    let unknown_kind = info.is_none();
    let tolerated = || {
        defined_kinds(input.targets).contains(&(gvk.group.as_str(), gvk.kind.as_str()))
            || SyncOptions::of_object(&target).is_on("SkipDryRunOnMissingResource")
            || input.options.is_on("SkipDryRunOnMissingResource")
    };
    let invalid = if unknown_kind && input.settings.compat && !tolerated() {
        Some(missing_kind(&gvk, &key))
    } else if unknown_kind {
        None
    } else {
        (input.permit)(&target, namespaced).err()
    };
    Task {
        wave: hook::wave(&target),
        live: input.live.get(&key),
        id: TaskId { phase, key },
        gvk,
        hook,
        prune_last: false,
        is_generated: false,
        invalid,
        unknown_kind,
        result: None,
        target: Some(target),
    }
}

/// Group and kind of each CustomResourceDefinition among the targets.
pub(crate) fn defined_kinds(targets: &[Arc<Value>]) -> HashSet<(&str, &str)> {
    let definitions = targets.iter().filter(|object| object.kind() == "CustomResourceDefinition");
    definitions
        .filter_map(|object| {
            Some((object.str_at(&["spec", "group"])?, object.str_at(&["spec", "names", "kind"])?))
        })
        .collect()
}

/// What is said of an object whose kind the cluster does not serve.
pub(crate) fn missing_kind(gvk: &GroupVersionKind, key: &ResourceKey) -> String {
    format!(
        "The Kubernetes API could not find {}/{} for requested resource {}/{}. Make sure the {:?} CRD is installed on the destination cluster.",
        gvk.group, gvk.kind, key.namespace, key.name, gvk.kind
    )
}

/// With `CreateNamespace`, the destination namespace is created first, and kept as its metadata says.
fn add_destination_namespace<'a>(input: &SyncInput<'a>, state: &SyncState, tasks: &mut Vec<Task<'a>>) {
    let name = input.destination_namespace;
    let key = ResourceKey::new("", "Namespace", "", name);
    // One that the sources declare is theirs, also where this sync leaves it out.
    let is_target = input.targets.iter().any(|target| target.resource_key() == key && !hook::is_hook(target))
        || tasks.iter().any(|task| task.id.key == key);
    let wanted = input.options.is_on("CreateNamespace") && !name.is_empty() && !is_target;
    // One that this operation made stays among its tasks: there is a verdict to come.
    let is_ours = state.result(&TaskId { phase: SyncPhase::PreSync, key: key.clone() }).is_some();
    if !wanted || (input.live.contains_key(&key) && input.managed_namespace.is_none() && !is_ours) {
        return;
    }
    let mut object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    if let Some(managed) = input.managed_namespace {
        object["metadata"]["labels"] = json!(managed.labels);
        object["metadata"]["annotations"] = json!(managed.annotations);
    }
    tasks.push(new_task(input, SyncPhase::PreSync, Arc::new(object), None));
}

/// Objects of the Application that are no targets any more.
fn add_prunes<'a>(input: &SyncInput<'a>, tasks: &mut Vec<Task<'a>>) {
    let sync = input.operation.sync.as_ref();
    let resources = sync.map_or(&[][..], |sync| &sync.resources);
    let wanted: std::collections::BTreeSet<ResourceKey> = input
        .targets
        .iter()
        .map(|target| {
            let mut key = target.resource_key();
            let namespaced = input.kinds.lookup(&target.gvk()).is_none_or(|info| info.namespaced);
            if !namespaced {
                key.namespace.clear();
            } else if key.namespace.is_empty() {
                key.namespace = input.destination_namespace.to_owned();
            }
            key
        })
        .collect();
    for key in input.prunable.iter().filter(|key| !wanted.contains(*key) && is_selected(resources, key)) {
        let Some(live) = input.live.get(key) else { continue };
        if hook::is_hook(&live.object) || Some(key) == input.own_key.as_ref() {
            continue;
        }
        let last =
            input.options.is_on("PruneLast") || SyncOptions::of_object(&live.object).is_on("PruneLast");
        tasks.push(Task {
            id: TaskId { phase: SyncPhase::Sync, key: key.clone() },
            gvk: live.object.gvk(),
            wave: hook::wave(&live.object),
            target: None,
            live: Some(live),
            hook: None,
            prune_last: last,
            is_generated: false,
            invalid: None,
            unknown_kind: false,
            result: None,
        });
    }
}
