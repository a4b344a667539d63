//! `status` of an Application.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    ApplicationSource, ApplicationSpec, Destination, IgnoreDifference, OperationInitiator, OperationState,
    SourceType, Time,
    source::{is_false, is_record_of},
};

/// `status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationStatus {
    /// The managed objects, sorted by group, kind, namespace, name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceStatus>,
    /// Result of the last comparison.
    pub sync: SyncStatus,
    /// Health of the whole.
    pub health: AppHealth,
    /// Past syncs, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<RevisionHistory>,
    /// Faults and warnings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// When the desired state was last computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconciled_at: Option<Time>,
    /// The running or last operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_state: Option<OperationState>,
    /// When the live state was last looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Time>,
    /// Tool of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_type: Option<SourceType>,
    /// Summary for lists.
    pub summary: Summary,
    /// `appTree` when health of single objects is kept outside the status.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_health_source: String,
    /// Tools of the sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_types: Vec<SourceType>,
    /// Namespace of the controller in charge.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub controller_namespace: String,
    /// State of the source hydrator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_hydrator: Option<Value>,
    /// What Tiphys adds: waits, blocking causes, pause. Unknown to Argo CD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tiphys: Option<Value>,
    /// Fields unknown to this version, kept for write-back.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Whether live and desired state agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SyncStatusCode {
    /// They agree.
    Synced,
    /// They differ.
    OutOfSync,
    /// Not known; also what was written before anybody knew (an empty text).
    #[default]
    #[serde(other)]
    Unknown,
}

impl SyncStatusCode {
    /// The spelling of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Synced => "Synced",
            Self::OutOfSync => "OutOfSync",
        }
    }
}

/// `status.sync`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncStatus {
    /// Verdict.
    pub status: SyncStatusCode,
    /// What was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared_to: Option<ComparedTo>,
    /// Revision compared.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Revisions compared, one for each source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,
}

/// `status.sync.comparedTo`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ComparedTo {
    /// Source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<ApplicationSource>,
    /// Destination.
    pub destination: Destination,
    /// Sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<ApplicationSource>,
    /// Ignored differences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore_differences: Vec<IgnoreDifference>,
}

impl ComparedTo {
    /// What a comparison under this spec is about.
    pub fn from_spec(spec: &ApplicationSpec) -> Self {
        let multiple = spec.has_multiple_sources();
        let mut sources = spec.effective_sources();
        let source = (!multiple && !sources.is_empty()).then(|| sources.remove(0));
        Self {
            source,
            destination: spec.destination.clone(),
            sources,
            ignore_differences: spec.ignore_differences.clone(),
        }
    }

    /// Whether the comparison was made with the sources and the destination that the spec has now. What is
    /// written differently and means the same (`recurse: false`, a `source` beside `sources`) is the same.
    pub fn is_about(&self, spec: &ApplicationSpec) -> bool {
        // Argo CD writes an empty `source` beside `sources`.
        let one = self.source.as_slice();
        let sources = if self.sources.is_empty() { one } else { &self.sources };
        is_record_of(sources, &spec.effective_sources()) && self.destination == spec.destination
    }
}

/// Health, from best to worst as `Ord` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HealthCode {
    /// Does its work.
    Healthy,
    /// Stands still on purpose.
    Suspended,
    /// On its way.
    Progressing,
    /// Not there.
    Missing,
    /// Does not do its work.
    Degraded,
    /// Could not be told; also what was written before anybody knew (an empty text).
    #[serde(other)]
    Unknown,
}

impl HealthCode {
    /// The spelling of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Suspended => "Suspended",
            Self::Progressing => "Progressing",
            Self::Missing => "Missing",
            Self::Degraded => "Degraded",
            Self::Unknown => "Unknown",
        }
    }

    /// Reads the spelling of the API.
    pub fn parse(text: &str) -> Option<Self> {
        let all =
            [Self::Healthy, Self::Suspended, Self::Progressing, Self::Missing, Self::Degraded, Self::Unknown];
        all.into_iter().find(|code| code.as_str() == text)
    }
}

/// `status.health`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppHealth {
    /// Verdict; absent before the first look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<HealthCode>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// Health of one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthStatus {
    /// Verdict.
    pub status: HealthCode,
    /// Why; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl HealthStatus {
    /// Makes a verdict with a message.
    pub fn new(status: HealthCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

/// One entry of `status.resources`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceStatus {
    /// Group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Verdict; absent for hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SyncStatusCode>,
    /// Health.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthStatus>,
    /// The object is a hook.
    #[serde(skip_serializing_if = "is_false")]
    pub hook: bool,
    /// The object left the sources.
    #[serde(skip_serializing_if = "is_false")]
    pub requires_pruning: bool,
    /// Wave.
    #[serde(skip_serializing_if = "crate::application::is_zero")]
    pub sync_wave: i64,
    /// Deleting it needs an approval.
    #[serde(skip_serializing_if = "is_false")]
    pub requires_deletion_confirmation: bool,
}

/// One entry of `status.history`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionHistory {
    /// Revision synced.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// When the sync ended.
    pub deployed_at: Time,
    /// Counts up from 0.
    pub id: i64,
    /// Source synced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ApplicationSource>,
    /// When the sync began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy_started_at: Option<Time>,
    /// Sources synced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<ApplicationSource>,
    /// Revisions synced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,
    /// Who asked.
    #[serde(default)]
    pub initiated_by: OperationInitiator,
}

/// Kinds of conditions of an Application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConditionType {
    /// Deletion does not get on.
    DeletionError,
    /// The spec cannot be used.
    InvalidSpecError,
    /// Desired and live state could not be compared.
    ComparisonError,
    /// Automated sync does not get on.
    SyncError,
    /// Something else failed.
    UnknownError,
    /// An object belongs to another Application too.
    SharedResourceWarning,
    /// An object is rendered more than once.
    RepeatedResourceWarning,
    /// A rendered kind is excluded by the settings.
    ExcludedResourceWarning,
    /// The namespace has objects that nobody owns.
    OrphanedResourceWarning,
    /// The Application renders itself; ours.
    SelfManaged,
    /// Automated sync waits for something else to be repaired; ours.
    BlockedBy,
    /// Automated sync is on hold until a given time; ours.
    Paused,
    /// An object that left the sources stays, because something needs it; ours.
    PruneProtected,
    /// What the deletion waits for; ours.
    Deleting,
    /// Another engine works on the Application too; ours.
    OtherEngine,
    /// A condition of a later version.
    #[serde(other)]
    Other,
}

impl ConditionType {
    /// Whether the condition is a fault, not a warning.
    pub fn is_error(self) -> bool {
        matches!(
            self,
            Self::DeletionError
                | Self::InvalidSpecError
                | Self::ComparisonError
                | Self::SyncError
                | Self::UnknownError
        )
    }

    /// Whether it tells why a sync leaves an object as it is.
    pub fn holds_back(self) -> bool {
        matches!(self, Self::SharedResourceWarning | Self::PruneProtected)
    }
}

/// One entry of `status.conditions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Kind of condition.
    #[serde(rename = "type")]
    pub kind: ConditionType,
    /// What it says to people.
    #[serde(default)]
    pub message: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

impl Condition {
    /// Makes a condition without a time; the writer of the status sets it.
    pub fn new(kind: ConditionType, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), last_transition_time: None }
    }
}

/// `status.summary`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// Addresses under which the objects are reached from outside.
    #[serde(rename = "externalURLs", skip_serializing_if = "Vec::is_empty")]
    pub external_urls: Vec<String>,
    /// Container images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// The Application renders Applications.
    #[serde(rename = "isAppOfApps", skip_serializing_if = "is_false")]
    pub is_app_of_apps: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn nulls_that_a_record_lost_make_no_other_spec() {
        let spec = |values: Value| -> ApplicationSpec {
            from_value(json!({"source": {"repoURL": "r", "helm": {"valuesObject": values}}})).unwrap()
        };
        let full = spec(json!({"a": {"b": null}, "c": [1, null]}));
        assert!(ComparedTo::from_spec(&full).is_about(&full));
        let lost = ComparedTo::from_spec(&spec(json!({"a": {}, "c": [1]})));
        assert!(lost.is_about(&full));
        assert!(
            !ComparedTo::from_spec(&full).is_about(&spec(json!({"a": {}, "c": [1]}))),
            "a null was taken out"
        );
        assert!(!lost.is_about(&spec(json!({"a": {"b": null}, "c": [2]}))));
    }

    #[test]
    fn a_status_that_was_written_before_anybody_knew_is_read() {
        let status: ApplicationStatus =
            from_value(json!({"health": {"status": ""}, "sync": {"status": "", "comparedTo": {}}})).unwrap();
        assert_eq!(status.sync.status, SyncStatusCode::Unknown);
        assert_eq!(status.health.status, Some(HealthCode::Unknown));
        let known: SyncStatus = from_value(json!({"status": "Synced"})).unwrap();
        assert_eq!(known.status, SyncStatusCode::Synced);
    }
}
