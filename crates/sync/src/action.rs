//! What the planner asks the executor to do, and what the executor reports back.

use std::sync::Arc;

use serde_json::Value;
use tiphys_model::{OperationPhase, Propagation, ResourceResult, SyncPhase};
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey};

/// An object in a phase: what results are kept under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// Phase.
    pub phase: SyncPhase,
    /// Object; its namespace is empty if the kind is cluster-scoped.
    pub key: ResourceKey,
}

/// How an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyMethod {
    /// Server-side apply with field manager `tiphys`, force-conflicts.
    ServerSide,
    /// `create`; the object is known not to exist.
    Create,
    /// `replace` (PUT) with the live object's resourceVersion.
    Replace,
    /// Delete in the foreground, wait until gone, create.
    Recreate,
}

/// What is to be done with one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// Write the object.
    Apply {
        /// The object to write.
        object: Arc<Value>,
        /// How.
        method: ApplyMethod,
        /// Keep what is applied in an annotation, as Argo CD and `kubectl apply` do: the API server refuses a
        /// record that is too long.
        keeps_record: bool,
        /// Strict field validation; otherwise none.
        validate: bool,
        /// Where the API server refuses the update as immutable or conflicting: recreate.
        force: bool,
        /// Persist nothing.
        dry_run: bool,
        /// Leave fields that others own to them: a conflict is a failure.
        share: bool,
        /// Fields of kubectl's client-side apply (and of this manager) are first taken over.
        migrate_managers: Vec<String>,
    },
    /// Delete the object, if it still has this uid. An object that is gone is a success.
    Delete {
        /// Unique id of the object meant; empty means whatever is there.
        uid: String,
        /// What goes with it.
        propagation: Propagation,
        /// Persist nothing.
        dry_run: bool,
    },
    /// Remove a finalizer from the live object, if it is there.
    RemoveFinalizer {
        /// Finalizer to remove.
        finalizer: String,
    },
    /// Read the object from the API server, past any cache. Gone is reported as [`Done::live`] `None`.
    Get,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// The task it belongs to.
    pub task: TaskId,
    /// Group, version and kind to address.
    pub gvk: GroupVersionKind,
    /// What to do.
    pub verb: Verb,
    /// Hook type, empty for an ordinary object.
    pub hook_type: String,
    /// The action is housekeeping: its result is not listed in the sync result.
    pub silent: bool,
}

/// Groups run one after the other; the actions of a group may run at once. A failed action stops
/// neither its group nor the next group, but for a prune ([`Outcome::stops_batch`]).
pub type Batch = Vec<Vec<Action>>;

/// A success.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// What the API server did, such as `configmap/a serverside-applied`.
    pub message: String,
    /// The object afterwards, if the action returned one.
    pub live: Option<Arc<Value>>,
}

/// A failure as the API server (or the way to it) reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// HTTP status; `None` if no answer came.
    pub code: Option<u16>,
    /// `reason` of the Status object, such as `Invalid`.
    pub reason: String,
    /// Message, with Secret values already masked.
    pub message: String,
    /// Whether the API server went by a definition of the kind that is about to be another one, by which it
    /// will have no objection.
    pub outdated: bool,
}

/// What became of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The action.
    pub action: Action,
    /// What became of it.
    pub result: Result<Done, Failure>,
}

impl Outcome {
    /// Whether the groups that follow are left for another step: nothing is applied in a wave whose prunes
    /// failed.
    pub fn stops_batch(&self) -> bool {
        let is_prune = matches!(self.action.verb, Verb::Delete { dry_run: false, .. }) && !self.action.silent;
        is_prune && self.result.is_err()
    }
}

impl Action {
    /// Whether the action persists nothing.
    pub fn is_dry_run(&self) -> bool {
        match &self.verb {
            Verb::Apply { dry_run, .. } | Verb::Delete { dry_run, .. } => *dry_run,
            Verb::RemoveFinalizer { .. } | Verb::Get => false,
        }
    }

    /// An entry of the sync result for this action's object, without a verdict yet.
    pub(crate) fn result_template(&self) -> ResourceResult {
        let key = &self.task.key;
        let images = match &self.verb {
            Verb::Apply { object, .. } => images(object),
            _ => Vec::new(),
        };
        ResourceResult {
            group: key.group.clone(),
            version: self.gvk.version.clone(),
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            hook_type: self.hook_type.clone(),
            hook_phase: Some(OperationPhase::Running),
            sync_phase: Some(self.task.phase),
            images,
            ..ResourceResult::default()
        }
    }
}

/// The container images of an object with a pod template, in order, without repetition.
pub fn images(object: &Value) -> Vec<String> {
    let specs =
        [&["spec"][..], &["spec", "template", "spec"], &["spec", "jobTemplate", "spec", "template", "spec"]];
    let mut images: Vec<String> = Vec::new();
    for spec in specs.iter().filter_map(|path| object.at(path)) {
        for list in ["initContainers", "containers"].iter().filter_map(|key| spec.get(key)?.as_array()) {
            for image in list.iter().filter_map(|container| container.get("image")?.as_str()) {
                if !images.iter().any(|known| known == image) {
                    images.push(image.to_owned());
                }
            }
        }
    }
    images
}
