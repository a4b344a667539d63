//! Argo CD's API as the engine understands it: types, settings, and the rules that need nothing but
//! them (tracking, hooks, options, windows, project permissions). Pure: no IO, no clock.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod application;
pub mod crd;
pub mod duration;
pub mod glob;
pub mod hook;
pub mod integrity;
pub mod meta;
pub mod names;
pub mod operation;
pub mod options;
pub mod packed_lists;
pub mod pause;
pub mod project;
pub mod repository;
pub mod selector;
pub mod settings;
pub mod source;
pub mod status;
pub mod time;
pub mod tiphys_status;
pub mod tracking;
pub mod tree;
pub mod window;

pub use application::{
    Application, ApplicationSpec, Automated, Backoff, Cascade, Destination, IgnoreDifference,
    ManagedNamespaceMetadata, RetryStrategy, SyncPolicy,
};
pub use hook::{HookDeletePolicy, HookType};
pub use integrity::{SignatureExtent, SignaturePolicy};
pub use meta::{ModelError, ObjectMeta};
pub use operation::{
    Operation, OperationInitiator, OperationPhase, OperationState, ResourceResult, ResultCode, SyncOperation,
    SyncOperationResource, SyncOperationResult, SyncPhase, SyncStrategy, SyncStrategyMode,
};
pub use options::{DeletionPolicy, Propagation, SYNC_OPTIONS, SyncOptions};
pub use project::{AppProject, AppProjectSpec, KindRule};
pub use selector::LabelSelector;
pub use settings::ArgoSettings;
pub use source::{
    ApplicationSource, DirectorySource, HelmFileParameter, HelmParameter, HelmSource, HydrateTo,
    JsonnetSource, JsonnetVar, KustomizePatch, KustomizeReplica, KustomizeSelector, KustomizeSource,
    NameValue, PluginParameter, PluginSource, SourceHydrator, SourceType, SyncSource, has_null, is_record_of,
};
pub use status::{
    AppHealth, ApplicationStatus, ComparedTo, Condition, ConditionType, HealthCode, HealthStatus,
    ResourceStatus, RevisionHistory, Summary, SyncStatus, SyncStatusCode,
};
pub use time::{Clock, Time, Timestamp};
pub use tracking::{Tracking, TrackingId, TrackingMethod};
pub use tree::{ApplicationTree, ResourceDiff, ResourceNode, ResourceRef};
pub use window::{SyncAttempt, SyncWindow};
