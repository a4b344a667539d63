//! The state of an operation between two steps. It travels in `status.operationState`, so that a
//! restarted engine goes on where the last one stopped.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use tiphys_model::{
    ApplicationSource, Operation, OperationPhase, OperationState, ResourceResult, SyncOperationResult, Time,
    Timestamp,
};
use tiphys_value::ResourceKey;

use crate::{Batch, Blocker, TaskId, Wait};

/// The part of the state that Argo CD's API has no field for; kept in `operationState.tiphys`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Extension {
    /// The dry run of this attempt is done.
    pub dry_run_done: bool,
    /// Nothing is done before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// When the running attempt began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_started_at: Option<Time>,
    /// Waits of the last step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// Requests that failed in a way that may pass, by task.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub held: BTreeMap<String, Held>,
    /// Tasks of this attempt that the API server refused for good.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub refused: BTreeSet<String>,
    /// Why the operation was not tried again, if it failed for a reason that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// What was read to know the desired state, as a text: another revision of the same inputs is no other
    /// attempt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub inputs: String,
    /// Objects of other owners that this attempt does not write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<ResourceKey>,
    /// The waves of what this attempt prunes, if there are several: what is gone would change how they are
    /// mirrored.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub prune_waves: BTreeSet<i64>,
    /// Failures of the dry run of this attempt, by task.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dry_run_failures: BTreeMap<String, String>,
    /// Namespaces that the dry run of this attempt did not find.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub absent_namespaces: BTreeSet<String>,
}

/// What Argo CD says of an operation that a person terminated. One that its sync timeout ended says more.
const TERMINATED_BY_ARGO_CD: &str = "Operation terminated";

impl Extension {
    /// What the words of Argo CD tell of an operation that it ended.
    fn of_argo_cd(shown: &OperationState) -> Self {
        let by_person = shown.phase.is_completed() && shown.message == TERMINATED_BY_ARGO_CD;
        Self { ending: by_person.then_some(Ending::ByPerson), ..Self::default() }
    }
}

/// Why an operation ended without another attempt though attempts were left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// The manifests, or what the API server makes of them, have to change first.
    Permanent,
    /// The owner of an object has to change first.
    Owned,
    /// A person terminated it.
    ByPerson,
    /// It took longer than the sync timeout of the settings.
    Timeout,
    /// It never began: its desired state was not known, or nobody might bring it about.
    Unbegun,
}

/// A request that is repeated until it passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// Error text of the last attempt.
    pub cause: String,
    /// When it first failed.
    pub since: Time,
    /// Not repeated before.
    pub next: Time,
    /// How many times it failed.
    pub attempts: u32,
    /// What has to be repaired first; the failure is transient without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocker: Option<Blocker>,
}

/// State of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncState {
    /// What Argo CD's API shows.
    pub shown: OperationState,
    /// What it has no field for.
    pub extension: Extension,
    index: Index,
}

/// Where the entry of each task stands among the results: of thousands, a step looks each of them up.
#[derive(Clone, Debug, Default)]
struct Index(HashMap<TaskId, usize>);

impl PartialEq for Index {
    /// It says nothing that the results do not.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Index {
    fn from_results(results: &[ResourceResult]) -> Self {
        let mut index = HashMap::with_capacity(results.len());
        for (at, result) in results.iter().enumerate() {
            index.entry(id_of(result)).or_insert(at);
        }
        Self(index)
    }
}

fn id_of(result: &ResourceResult) -> TaskId {
    let key = ResourceKey::new(&result.group, &result.kind, &result.namespace, &result.name);
    TaskId { phase: result.sync_phase.unwrap_or_default(), key }
}

/// The outcome of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncStep {
    /// The state after the step; persist it before acting.
    pub state: SyncState,
    /// What to do now. After doing it, [`crate::record`] the outcomes and step again at once.
    pub batch: Batch,
    /// When to step again though nothing changed; `None` if only a change can help.
    pub requeue_at: Option<Timestamp>,
}

impl SyncState {
    /// The state at the beginning of an operation.
    pub fn begin(
        operation: Operation,
        sources: &[ApplicationSource],
        multiple: bool,
        revisions: &[String],
        now: Timestamp,
    ) -> Self {
        let mut result = SyncOperationResult::default();
        if multiple {
            result.sources = sources.to_vec();
            result.revisions = revisions.to_vec();
        } else {
            result.source = sources.first().cloned();
            result.revision = revisions.first().cloned().unwrap_or_default();
        }
        let now = Time::from(now);
        Self {
            shown: OperationState {
                operation,
                phase: OperationPhase::Running,
                message: String::new(),
                sync_result: Some(result),
                started_at: now,
                finished_at: None,
                retry_count: 0,
                other: serde_json::Map::new(),
            },
            extension: Extension { attempt_started_at: Some(now), ..Extension::default() },
            index: Index::default(),
        }
    }

    /// Reads the state out of `status.operationState`. An unreadable extension counts as absent.
    pub fn from_operation_state(mut shown: OperationState) -> Self {
        let extension = shown.other.remove("tiphys");
        let extension = extension.and_then(|value| serde_json::from_value(value).ok());
        let extension = extension.unwrap_or_else(|| Extension::of_argo_cd(&shown));
        let index = Index::from_results(shown.sync_result.as_ref().map_or(&[], |result| &result.resources));
        Self { shown, extension, index }
    }

    /// The state as `status.operationState`.
    pub fn to_operation_state(&self) -> OperationState {
        let mut shown = self.shown.clone();
        let extension = serde_json::to_value(&self.extension).unwrap_or_default();
        shown.other.insert("tiphys".into(), extension);
        shown
    }

    /// What the last step waited for.
    pub fn waits(&self) -> &[Wait] {
        &self.extension.waits
    }

    /// Whether the operation has ended.
    pub fn is_completed(&self) -> bool {
        self.shown.phase.is_completed()
    }

    pub(crate) fn results(&self) -> &[ResourceResult] {
        self.shown.sync_result.as_ref().map_or(&[], |result| &result.resources)
    }

    pub(crate) fn result(&self, id: &TaskId) -> Option<&ResourceResult> {
        match self.index.0.len() == self.results().len() {
            true => self.index.0.get(id).and_then(|at| self.results().get(*at)),
            false => self.results().iter().find(|result| id_of(result) == *id),
        }
    }

    /// The entry of a task, made from `template` if there is none.
    pub(crate) fn result_mut(
        &mut self,
        id: &TaskId,
        template: impl FnOnce() -> ResourceResult,
    ) -> &mut ResourceResult {
        let result = self.shown.sync_result.get_or_insert_default();
        if self.index.0.len() != result.resources.len() {
            self.index = Index::from_results(&result.resources);
        }
        let at = *self.index.0.entry(id.clone()).or_insert_with(|| {
            result.resources.push(template());
            result.resources.len() - 1
        });
        &mut result.resources[at]
    }
}
