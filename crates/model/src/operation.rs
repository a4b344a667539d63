//! `operation`: a request to sync, and `status.operationState`: what became of it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    ApplicationSource, ManagedNamespaceMetadata, NameValue, RetryStrategy, Time, application::is_zero,
    source::is_false,
};

/// A request for work on an Application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Operation {
    /// The sync asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncOperation>,
    /// Who asked.
    #[serde(skip_serializing_if = "is_default")]
    pub initiated_by: OperationInitiator,
    /// Notes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub info: Vec<NameValue>,
    /// How it is repeated when it fails.
    #[serde(skip_serializing_if = "is_default")]
    pub retry: RetryStrategy,
    /// Fields unknown to this version, kept for write-back.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Who asked for an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperationInitiator {
    /// User name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// Asked for by the engine itself.
    #[serde(skip_serializing_if = "is_false")]
    pub automated: bool,
}

/// `operation.sync`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncOperation {
    /// Revision; empty means the spec's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Delete what left the sources.
    #[serde(skip_serializing_if = "is_false")]
    pub prune: bool,
    /// Change nothing.
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
    /// `apply` or `hook`; nothing means `hook`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_strategy: Option<SyncStrategy>,
    /// Only these objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<SyncOperationResource>,
    /// Source in place of the spec's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<ApplicationSource>,
    /// Manifests in place of the sources'.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<String>,
    /// Options in place of the spec's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sync_options: Vec<String>,
    /// Sources in place of the spec's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<ApplicationSource>,
    /// Revisions, one for each source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,
    /// How many times self-heal ran in a row.
    #[serde(skip_serializing_if = "is_zero")]
    pub auto_heal_attempts_count: i64,
    /// Fields unknown to this version, kept for write-back.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl SyncOperation {
    /// Whether only some objects are synced.
    pub fn is_selective(&self) -> bool {
        !self.resources.is_empty()
    }

    /// Whether hooks run.
    pub fn runs_hooks(&self) -> bool {
        !self.is_selective() && self.sync_strategy.as_ref().is_none_or(|s| s.apply.is_none())
    }

    /// Whether objects are forced.
    pub fn forces(&self) -> bool {
        let Some(strategy) = &self.sync_strategy else { return false };
        strategy.apply.as_ref().or(strategy.hook.as_ref()).is_some_and(|s| s.force)
    }
}

/// `syncStrategy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncStrategy {
    /// Apply only, without hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply: Option<SyncStrategyMode>,
    /// With hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<SyncStrategyMode>,
}

/// `syncStrategy.apply` and `.hook`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncStrategyMode {
    /// Delete and create again where an update is refused.
    #[serde(skip_serializing_if = "is_false")]
    pub force: bool,
}

/// One object of a selective sync.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncOperationResource {
    /// Group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace; empty means any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// Phase of an operation or of a hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OperationPhase {
    /// Under way.
    #[default]
    Running,
    /// Being ended on request.
    Terminating,
    /// Done.
    Succeeded,
    /// Some object failed.
    Failed,
    /// The engine could not do it.
    Error,
}

impl OperationPhase {
    /// Whether nothing more happens.
    pub fn is_completed(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Error)
    }

    /// Whether it ended well.
    pub fn is_successful(self) -> bool {
        self == Self::Succeeded
    }
}

/// What became of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ResultCode {
    /// Applied.
    Synced,
    /// Not applied, or its hook failed.
    SyncFailed,
    /// Deleted.
    Pruned,
    /// Not deleted, on purpose.
    PruneSkipped,
}

/// Phase of a sync, in the order in which they run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SyncPhase {
    /// Before the objects.
    PreSync,
    /// The objects.
    #[default]
    Sync,
    /// After the objects.
    PostSync,
    /// When something failed.
    SyncFail,
}

/// `status.operationState`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationState {
    /// The operation as asked for.
    #[serde(default)]
    pub operation: Operation,
    /// Where it stands.
    #[serde(default)]
    pub phase: OperationPhase,
    /// What it says to people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_result: Option<SyncOperationResult>,
    /// When it began.
    pub started_at: Time,
    /// When it ended, or when its last attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// How many attempts were repeated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_count: i64,
    /// Fields unknown to this version, kept for write-back.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// `status.operationState.syncResult`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncOperationResult {
    /// One entry for each object and phase.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceResult>,
    /// Revision synced.
    pub revision: String,
    /// Source synced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<ApplicationSource>,
    /// Sources synced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<ApplicationSource>,
    /// Revisions synced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,
    /// Namespace metadata synced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_namespace_metadata: Option<ManagedNamespaceMetadata>,
}

/// What became of one object in one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceResult {
    /// Group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Result; absent while nothing was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ResultCode>,
    /// What it says to people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Hook type, if the object is a hook; spelt as in the annotation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hook_type: String,
    /// Where the hook or object stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_phase: Option<OperationPhase>,
    /// Phase of the sync.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_phase: Option<SyncPhase>,
    /// Container images of the object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
