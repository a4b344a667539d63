//! Everything the planner may look at.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tiphys_model::{HealthStatus, Operation, SyncOptions, Time, Timestamp};
use tiphys_value::{GroupVersionKind, ResourceKey};

/// What discovery knows of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// Objects live in namespaces.
    pub namespaced: bool,
}

/// Which kinds the destination cluster serves.
pub trait KindCatalog {
    /// What is known of a kind; `None` if the cluster does not serve it.
    fn lookup(&self, gvk: &GroupVersionKind) -> Option<KindInfo>;
}

impl KindCatalog for BTreeMap<GroupVersionKind, KindInfo> {
    fn lookup(&self, gvk: &GroupVersionKind) -> Option<KindInfo> {
        self.get(gvk).cloned()
    }
}

/// An object of the destination cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveObject {
    /// The object.
    pub object: Arc<Value>,
    /// Its health; `None` if its kind has none (then it counts as done).
    pub health: Option<HealthStatus>,
}

/// What an owner other than the Application means for the first apply of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The object is left alone; who owns it.
    Refused(String),
    /// Only fields that nobody else owns are set.
    Shared,
    /// The object is taken over: with the first apply what these field managers own becomes ours.
    Adopted(Vec<String>),
}

/// Settings of the planner.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncSettings {
    /// Argo CD's behaviour where ours differs on purpose (see the crate's docs).
    pub compat: bool,
    /// Pause between waves; Argo CD's is 2 s.
    pub wave_delay: Duration,
    /// Longest time for a whole operation, repetitions included; `None` is no limit.
    pub sync_timeout: Option<Duration>,
    /// Longest wait for health of one object; ignored with `compat`.
    pub health_deadline: Duration,
    /// Longest wait for the end of a hook; ignored with `compat`.
    pub hook_deadline: Duration,
    /// Longest wait for a deletion; ignored with `compat`.
    pub deletion_deadline: Duration,
    /// Longest wait for what blocks an object; ignored with `compat`.
    pub blocked_deadline: Duration,
    /// Unless `FailOnSharedResource` says otherwise, objects that another Application tracks are left alone;
    /// ignored with `compat`.
    pub refuse_shared: bool,
}

impl Default for SyncSettings {
    fn default() -> Self {
        Self {
            compat: false,
            wave_delay: Duration::ZERO,
            sync_timeout: None,
            health_deadline: Duration::from_secs(1800),
            hook_deadline: Duration::from_secs(3600),
            deletion_deadline: Duration::from_secs(1800),
            blocked_deadline: Duration::from_secs(6 * 3600),
            refuse_shared: true,
        }
    }
}

impl SyncSettings {
    /// Argo CD's defaults and behaviour.
    pub fn compat() -> Self {
        Self { compat: true, wave_delay: Duration::from_secs(2), ..Self::default() }
    }
}

/// What the planner looks at in one step. The same input gives the same step.
pub struct SyncInput<'a> {
    /// Key of the Application object itself, in the cluster it lives in; `None` if that is not the
    /// destination cluster.
    pub own_key: Option<ResourceKey>,
    /// Namespace for objects that name none.
    pub destination_namespace: &'a str,
    /// The rendered objects, hooks included, tracking marks set.
    pub targets: &'a [Arc<Value>],
    /// Objects of the cluster: those this Application tracks, and those at the keys of targets.
    pub live: &'a BTreeMap<ResourceKey, LiveObject>,
    /// Keys of live objects that bear this Application's mark and may be pruned: tracked by it,
    /// self-referencing mark, without owner references (see [`crate::compare`]).
    pub prunable: &'a BTreeSet<ResourceKey>,
    /// Live objects that must not be pruned, with the reason; ignored with `compat`.
    pub protected: &'a BTreeMap<ResourceKey, String>,
    /// Targets whose live object another Application tracks, with its name.
    pub shared: &'a BTreeMap<ResourceKey, String>,
    /// Targets whose live object somebody else owns, and what that means for the first apply; ignored
    /// with `compat`.
    pub claims: &'a BTreeMap<ResourceKey, Claim>,
    /// Keys that differ; asked for `ApplyOutOfSyncOnly`.
    pub out_of_sync: &'a BTreeSet<ResourceKey>,
    /// Objects whose health depends on this operation; never awaited. The Application itself always
    /// is one.
    pub never_await: &'a BTreeSet<ResourceKey>,
    /// The operation.
    pub operation: &'a Operation,
    /// Options in force: the operation's if it has any, else the spec's.
    pub options: &'a SyncOptions,
    /// Revision being synced (the first of several).
    pub revision: &'a str,
    /// Faults that forbid the sync (ComparisonError, InvalidSpecError), if any.
    pub blocking_error: Option<&'a str>,
    /// Whether sync windows let this operation run.
    pub window_open: bool,
    /// Value of the `deletion-approved` annotation.
    pub deletion_approved: Option<Time>,
    /// Managers named by the migration annotation, with commas between them.
    pub migration_manager: Option<&'a str>,
    /// Whether the project permits an object: its message if not. Called with the object and whether its
    /// kind is namespaced.
    pub permit: &'a dyn Fn(&Value, bool) -> Result<(), String>,
    /// Kinds of the destination.
    pub kinds: &'a dyn KindCatalog,
    /// Settings.
    pub settings: &'a SyncSettings,
    /// Labels and annotations of the destination namespace, if managed.
    pub managed_namespace: Option<&'a tiphys_model::ManagedNamespaceMetadata>,
    /// Termination was asked for.
    pub terminate: bool,
    /// A revision newer than the one being synced is known and automated sync would take it.
    pub newer_revision: Option<&'a str>,
    /// The present.
    pub now: Timestamp,
}
