//! Application: metadata, spec and what the engine asks of them (Argo CD API reference,
//! "Application").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    ApplicationSource, ModelError, NameValue, ObjectMeta, Operation, SourceHydrator, meta::read, names,
    options::SyncOptions, source::is_false, status::ApplicationStatus, tiphys_status,
};

/// An Application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Application {
    /// `metadata`.
    pub metadata: ObjectMeta,
    /// `spec`.
    pub spec: ApplicationSpec,
    /// `status`.
    pub status: ApplicationStatus,
    /// A requested operation that the engine has not taken up yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
}

/// How the objects of a deleted Application are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cascade {
    /// They stay.
    Orphan,
    /// They are deleted in the foreground.
    Foreground,
    /// They are deleted in the background.
    Background,
}

impl Application {
    /// Reads an Application object, with what an annotation keeps of its status and what is packed in it (see
    /// [`crate::kept`]).
    ///
    /// # Errors
    /// A field has the wrong type.
    pub fn from_value(value: &Value) -> Result<Self, ModelError> {
        read(&tiphys_status::put_back(value))
    }

    /// The object as JSON, with `apiVersion` and `kind`.
    pub fn to_value(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(map) = &mut value {
            map.insert("apiVersion".into(), names::API_VERSION.into());
            map.insert("kind".into(), "Application".into());
        }
        value
    }

    /// Project name; an empty field means `default`.
    pub fn project(&self) -> &str {
        if self.spec.project.is_empty() { "default" } else { &self.spec.project }
    }

    /// Name that tracking marks use: the name, with the namespace before it unless the Application
    /// lives in the engine's own namespace.
    pub fn instance_name(&self, engine_namespace: &str) -> String {
        let namespace = &self.metadata.namespace;
        if namespace.is_empty() || namespace == engine_namespace {
            self.metadata.name.clone()
        } else {
            format!("{namespace}_{}", self.metadata.name)
        }
    }

    /// Whether deletion of the Application deletes its objects, by its finalizers.
    pub fn cascade(&self) -> Cascade {
        let has = |name: &str| self.metadata.finalizers.iter().any(|f| f == name);
        if has(names::BACKGROUND_FINALIZER) {
            Cascade::Background
        } else if has(names::RESOURCES_FINALIZER) || has(names::FOREGROUND_FINALIZER) {
            Cascade::Foreground
        } else {
            Cascade::Orphan
        }
    }

    /// Whether deletion was asked for.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// One annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.get(key).map(String::as_str)
    }

    /// The options of `spec.syncPolicy.syncOptions`.
    pub fn sync_options(&self) -> SyncOptions {
        let list = self.spec.sync_policy.as_ref().map(|policy| policy.sync_options.as_slice());
        SyncOptions::from_list(list.unwrap_or_default())
    }

    /// The automated policy, if there is one and it is not switched off.
    pub fn automated_policy(&self) -> Option<&Automated> {
        let automated = self.spec.sync_policy.as_ref()?.automated.as_ref()?;
        automated.enabled.unwrap_or(true).then_some(automated)
    }

    /// Why automated sync does nothing about it, although it is out of sync.
    pub fn left_out_of_sync(&self) -> Option<&str> {
        self.status.tiphys.as_ref()?.get(names::LEFT_OUT_OF_SYNC)?.as_str()
    }
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSpec {
    /// The only source, if `sources` is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<ApplicationSource>,
    /// Where to.
    pub destination: Destination,
    /// Project; empty means `default`.
    pub project: String,
    /// How and when to sync.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_policy: Option<SyncPolicy>,
    /// Differences that do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore_differences: Vec<IgnoreDifference>,
    /// Shown to people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub info: Vec<NameValue>,
    /// How many history entries are kept; default 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i64>,
    /// Several sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<ApplicationSource>,
    /// Source that is rendered to a branch first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_hydrator: Option<SourceHydrator>,
    /// Fields unknown to this version, kept for write-back.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl ApplicationSpec {
    /// The sources in force: the hydrator's sync source, else `sources`, else `source`.
    pub fn effective_sources(&self) -> Vec<ApplicationSource> {
        if let Some(hydrator) = &self.source_hydrator {
            let sync = &hydrator.sync_source;
            let own = if sync.repo_url.is_empty() { &hydrator.dry_source.repo_url } else { &sync.repo_url };
            return vec![ApplicationSource {
                repo_url: own.clone(),
                path: sync.path.clone(),
                target_revision: sync.target_branch.clone(),
                ..ApplicationSource::default()
            }];
        }
        if self.sources.is_empty() { self.source.clone().into_iter().collect() } else { self.sources.clone() }
    }

    /// Whether `sources` is used.
    pub fn has_multiple_sources(&self) -> bool {
        self.source_hydrator.is_none() && !self.sources.is_empty()
    }

    /// How many history entries are kept.
    pub fn history_limit(&self) -> usize {
        self.revision_history_limit.map_or(10, |limit| usize::try_from(limit).unwrap_or(0))
    }
}

/// A cluster, by address or by name, and a namespace in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Destination {
    /// Address of the API server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// Namespace for objects that name none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// `spec.syncPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncPolicy {
    /// Sync without being asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automated: Option<Automated>,
    /// `Key=value` texts, see [`SyncOptions`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sync_options: Vec<String>,
    /// How a failed sync is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryStrategy>,
    /// Labels and annotations of the destination namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_namespace_metadata: Option<ManagedNamespaceMetadata>,
    /// Fields unknown to this version, kept for write-back.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// `spec.syncPolicy.automated`; `{}` switches it on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Automated {
    /// Delete what left the sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prune: Option<bool>,
    /// Undo changes made in the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_heal: Option<bool>,
    /// Deleting everything is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_empty: Option<bool>,
    /// `false` switches it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

impl Automated {
    /// Whether what left the sources is deleted.
    pub fn prunes(&self) -> bool {
        self.prune.unwrap_or(false)
    }

    /// Whether changes made in the cluster are undone.
    pub fn heals(&self) -> bool {
        self.self_heal.unwrap_or(false)
    }

    /// Whether deleting everything is allowed.
    pub fn allows_empty(&self) -> bool {
        self.allow_empty.unwrap_or(false)
    }
}

/// `retry`, of a policy or an operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryStrategy {
    /// How many repetitions; negative means without end.
    #[serde(skip_serializing_if = "is_zero")]
    pub limit: i64,
    /// Waiting time between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// Repetitions use the newest revision.
    #[serde(skip_serializing_if = "is_false")]
    pub refresh: bool,
}

/// `retry.backoff`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Backoff {
    /// First wait; a bare number counts seconds.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub duration: String,
    /// Growth from wait to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<i64>,
    /// Longest wait.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub max_duration: String,
}

/// `managedNamespaceMetadata`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedNamespaceMetadata {
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// One entry of `spec.ignoreDifferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IgnoreDifference {
    /// Group, a glob.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind, a glob.
    pub kind: String,
    /// Name; empty means any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace; empty means any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// JSON pointers of ignored fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub json_pointers: Vec<String>,
    /// jq path expressions of ignored fields.
    #[serde(rename = "jqPathExpressions", skip_serializing_if = "Vec::is_empty")]
    pub jq_path_expressions: Vec<String>,
    /// Field managers whose fields are ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managed_fields_managers: Vec<String>,
}

/// For `skip_serializing_if`: Go leaves a zero out.
pub(crate) fn is_zero(value: &i64) -> bool {
    *value == 0
}
