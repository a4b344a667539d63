//! What is told of each Application.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use serde::Serialize;
use tiphys_cluster::LiveCache;
use tiphys_model::{
    Application, ConditionType, Destination, HealthCode, OperationPhase, ResourceStatus, SyncStatusCode,
    Time, hook, names, time::elapsed,
};
use tiphys_sync::{Blocker, SyncState, Wait, WaitKind};
use tiphys_value::{GroupKind, ObjectExt, ResourceKey, Value, json};

use super::{
    bootstrap::Refused,
    reason::{OutOfPlace, Reason, State},
    set_rollouts, some_of, wait_messages,
};
use crate::duration::humanize;

/// An Application as it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Name for people: with the namespace where another one has the same.
    #[serde(skip)]
    pub title: String,
    /// Wave in its parent.
    pub wave: i64,
    /// Sync status.
    pub sync: SyncStatusCode,
    /// Health; absent before the first look.
    pub health: Option<HealthCode>,
    /// Revision compared.
    pub revision: String,
    /// How many objects it has.
    pub resources: usize,
    /// Phase of the operation.
    pub phase: Option<OperationPhase>,
    /// What it does, or what is wrong.
    pub doing: String,
    /// What it waits for.
    pub waits: Vec<Wait>,
    /// Faults, and objects that are not healthy, one line each.
    pub reasons: Vec<Reason>,
    /// What is odd but no fault.
    pub warnings: Vec<String>,
    /// Its spec cannot be used.
    pub is_invalid: bool,
    /// It is an ApplicationSet, shown because it is not up to date or yields nothing.
    pub is_set: bool,
    /// It has no automated policy: somebody has to ask for each sync.
    pub is_manual: bool,
    /// Its sources cannot be had from here.
    pub is_out_of_reach: bool,
    /// The cluster did not take it.
    #[serde(skip)]
    pub is_refused: bool,
    /// Its name in the marks of its objects.
    #[serde(skip)]
    pub instance: String,
    /// The addresses of its sources.
    #[serde(skip)]
    sources: Vec<String>,
    /// How often its operation has been tried again.
    #[serde(skip)]
    retries: i64,
    /// Since when all requests that it repeats have been failing.
    #[serde(skip)]
    failing_since: Option<Time>,
    /// The Applications among its objects that are not healthy.
    #[serde(skip)]
    children: Vec<String>,
}

/// The rows of Applications as they were last seen. Statuses are long to read, and most do not change from
/// one look to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeenRows(BTreeMap<(String, String), SeenRow>);

/// A row, and what it was made of.
#[derive(Clone, Debug)]
struct SeenRow {
    object: Arc<Value>,
    rollout: Option<String>,
    row: Row,
}

impl SeenRows {
    fn row(&mut self, object: &Arc<Value>, rollouts: &BTreeMap<(String, String), String>) -> Row {
        let id = (object.namespace().to_owned(), object.name().to_owned());
        let rollout = rollouts.get(&id);
        let seen = self.0.get(&id);
        if let Some(seen) =
            seen.filter(|seen| Arc::ptr_eq(&seen.object, object) && seen.rollout.as_ref() == rollout)
        {
            return seen.row.clone();
        }
        let row = row(object, rollouts);
        self.0.insert(id, SeenRow { object: object.clone(), rollout: rollout.cloned(), row: row.clone() });
        row
    }
}

/// The Applications of a cluster, by wave and name.
pub(crate) fn from_cache(cache: &LiveCache, seen: &mut SeenRows) -> Vec<Row> {
    let sets = cache.of_kind(&GroupKind::new(names::GROUP, "ApplicationSet"));
    let rollouts = set_rollouts::standings(&sets);
    let applications = cache.of_kind(&GroupKind::new(names::GROUP, "Application"));
    let mut rows: Vec<Row> = applications.iter().map(|object| seen.row(object, &rollouts)).collect();
    rows.extend(sets.iter().filter_map(|set| row_of_set(set)));
    tell_apart(&mut rows);
    rows.sort_by(|a, b| (a.wave, &a.namespace, &a.name).cmp(&(b.wave, &b.namespace, &b.name)));
    rows
}

/// Puts the namespace before names that several have.
fn tell_apart(rows: &mut [Row]) {
    let mut count: BTreeMap<(bool, String), usize> = BTreeMap::new();
    for row in rows.iter() {
        *count.entry((row.is_set, row.name.clone())).or_default() += 1;
    }
    for row in rows.iter_mut().filter(|row| count[&(row.is_set, row.name.clone())] > 1) {
        row.title = format!("{}/{}", row.namespace, row.name);
    }
}

/// The destinations of the Applications of a cluster.
pub(crate) fn destinations(cache: &LiveCache) -> Vec<Destination> {
    let apps = cache.of_kind(&GroupKind::new(names::GROUP, "Application"));
    apps.iter().filter_map(|app| Application::from_value(app).ok()).map(|app| app.spec.destination).collect()
}

fn row(object: &Value, rollouts: &BTreeMap<(String, String), String>) -> Row {
    let Ok(app) = Application::from_value(object) else { return unreadable(object) };
    let rollout = rollouts.get(&(app.metadata.namespace.clone(), app.metadata.name.clone()));
    let state = app.status.operation_state.clone();
    let phase = state.as_ref().map(|state| state.phase);
    let running = phase.is_some_and(|phase| !phase.is_completed());
    let running_state = state.clone().filter(|_| running).map(SyncState::from_operation_state);
    let waits = running_state.as_ref().map(|state| state.waits().to_vec()).unwrap_or_default();
    let failing_since = running_state.and_then(|state| failing_since(&state));
    let status = &app.status;
    let mut row = Row {
        namespace: app.metadata.namespace.clone(),
        name: app.metadata.name.clone(),
        title: app.metadata.name.clone(),
        wave: hook::wave(object),
        sync: status.sync.status,
        health: status.health.status,
        revision: status.sync.revisions.first().unwrap_or(&status.sync.revision).clone(),
        resources: status.resources.iter().filter(|resource| !resource.hook).count(),
        phase,
        doing: String::new(),
        waits,
        reasons: faults(&app).into_iter().map(Reason::Other).collect(),
        is_invalid: status
            .conditions
            .iter()
            .any(|condition| condition.kind == ConditionType::InvalidSpecError),
        instance: app.instance_name(crate::ENGINE_NAMESPACE),
        sources: app.spec.effective_sources().into_iter().map(|source| source.repo_url).collect(),
        retries: state.as_ref().map_or(0, |state| state.retry_count),
        failing_since,
        children: unhealthy_applications(&app),
        warnings: warnings(&app),
        is_set: false,
        is_manual: rollout.is_none() && app.automated_policy().is_none(),
        is_out_of_reach: false,
        is_refused: false,
    };
    if row.waits.iter().any(|wait| wait.kind == WaitKind::Retry) {
        let message = state.as_ref().map(|state| state.message.as_str()).unwrap_or_default();
        row.reasons.push(format!("the last attempt: {message}").into());
    }
    if let Some(told) = rollout.filter(|_| !row.is_green()) {
        row.reasons.push(told.clone().into());
    }
    if let Some(why) = app.left_out_of_sync().filter(|_| !running) {
        row.reasons.push(format!("it is left out of sync: {why}").into());
    }
    if row.waits_for_a_person() {
        row.reasons.push(
            match row.phase {
                None => "it has no automated sync policy, so nobody syncs it; `tiphys app sync` does, or `tiphys up --sync-all` for all such",
                Some(_) => "it has no automated sync policy, so nobody syncs it again; `tiphys app sync` does",
            }
            .to_owned()
            .into(),
        );
    }
    // That objects are missing which nobody was asked to create says nothing.
    if !((row.is_manual || rollout.is_some()) && row.phase.is_none()) {
        let objects = objects_out_of_place(&app, &row.waits);
        row.reasons.extend(objects);
    }
    row.doing = doing(&row, state.map(|state| state.message).unwrap_or_default());
    row
}

/// Since when all requests have been failing that an operation repeats of itself. Its waits do not tell:
/// there are none while an attempt is being made.
fn failing_since(state: &SyncState) -> Option<Time> {
    let repeated = state.extension.held.values().filter(|held| held.blocker.is_none());
    repeated.map(|held| held.since).max_by_key(|since| since.timestamp())
}

fn unreadable(object: &Value) -> Row {
    let fault =
        object.pointer("/status/conditions/0/message").and_then(Value::as_str).unwrap_or("not read yet");
    Row {
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        title: object.name().to_owned(),
        wave: hook::wave(object),
        sync: SyncStatusCode::Unknown,
        health: Some(HealthCode::Unknown),
        revision: String::new(),
        resources: 0,
        phase: None,
        doing: fault.to_owned(),
        waits: Vec::new(),
        reasons: vec![fault.to_owned().into()],
        is_invalid: true,
        instance: String::new(),
        sources: Vec::new(),
        retries: 0,
        failing_since: None,
        children: Vec::new(),
        warnings: Vec::new(),
        is_set: false,
        is_manual: false,
        is_out_of_reach: false,
        is_refused: false,
    }
}

/// The rows of Applications and sets that the cluster did not take.
pub(crate) fn refused(all: &[Refused]) -> Vec<Row> {
    let ours = all.iter().map(|refused| {
        let object = json!({
            "apiVersion": names::API_VERSION,
            "kind": refused.kind,
            "metadata": {"namespace": refused.namespace, "name": refused.name},
            "status": {"conditions": [{"message": refused.why}]},
        });
        Row { is_refused: true, is_set: refused.kind == "ApplicationSet", ..unreadable(&object) }
    });
    ours.collect()
}

/// A set is told of while it is not up to date, or yields nothing; otherwise its Applications speak for it.
fn row_of_set(set: &Value) -> Option<Row> {
    let conditions =
        set.at(&["status", "conditions"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let find = |kind: &str| {
        conditions.iter().find(|c| c.str_at(&["type"]) == Some(kind) && c.str_at(&["status"]) == Some("True"))
    };
    let message = |condition: &Value| condition.str_at(&["message"]).unwrap_or_default().to_owned();
    let fault = find("ErrorOccurred").map(message);
    let up_to_date = find("ResourcesUpToDate").is_some();
    let count = set.at(&["status", "resourcesCount"]).and_then(Value::as_u64).unwrap_or_default();
    if up_to_date && count > 0 {
        return None;
    }
    let generators = set.at(&["spec", "generators"]).unwrap_or(&Value::Null);
    let doing = match &fault {
        Some(fault) => fault.clone(),
        None if up_to_date && crate::generators::ask_for_clusters(generators) => {
            let also = match crate::generators::looked_for(generators) {
                told if told.is_empty() => told,
                told => format!("; beside clusters they look for {told}"),
            };
            format!(
                "its generators yield no Application: they ask for clusters, and select none of those that are declared (--clusters declares more){also}"
            )
        }
        None if up_to_date => match crate::generators::looked_for(generators) {
            told if told.is_empty() => "its generators yield no Application".to_owned(),
            told => format!("its generators yield no Application: they look for {told}"),
        },
        None => "not looked at yet".to_owned(),
    };
    Some(Row {
        sync: if up_to_date { SyncStatusCode::Synced } else { SyncStatusCode::Unknown },
        health: up_to_date.then_some(HealthCode::Healthy),
        is_invalid: fault.is_some(),
        reasons: if up_to_date {
            vec![doing.clone().into()]
        } else {
            fault.into_iter().map(Reason::Other).collect()
        },
        doing,
        is_set: true,
        ..unreadable(set)
    })
}

fn warnings(app: &Application) -> Vec<String> {
    let list = app.status.tiphys.as_ref().and_then(|ours| ours.get("warnings")?.as_array());
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    let mut warnings: Vec<String> =
        texts.map(|text| text.trim_start_matches("# Warning: ").to_owned()).collect();
    // A base and its overlay may give cause to the same one.
    let mut told = BTreeSet::new();
    warnings.retain(|warning| told.insert(warning.clone()));
    warnings
}

fn doing(row: &Row, message: String) -> String {
    let running = row.phase.is_some_and(|phase| !phase.is_completed());
    if running {
        return match row.waits.first() {
            Some(wait) => wait_messages::describe(wait),
            None if message.is_empty() => "syncing".to_owned(),
            None => message,
        };
    }
    if row.is_green() {
        return String::new();
    }
    if row.phase.is_some_and(|phase| !phase.is_successful()) && row.sync != SyncStatusCode::Synced {
        return format!("sync failed: {message}");
    }
    row.reasons.first().map(Reason::to_string).unwrap_or_default()
}

fn unhealthy_applications(app: &Application) -> Vec<String> {
    let children = app.status.resources.iter().filter(|r| r.group == names::GROUP && r.kind == "Application");
    children
        .filter(|r| r.health.as_ref().is_some_and(|h| h.status != HealthCode::Healthy))
        .map(|r| r.name.clone())
        .collect()
}

/// What is wrong with an Application, or with its last sync, one line each.
fn faults(app: &Application) -> Vec<String> {
    let is_out_of_sync = app.status.sync.status == SyncStatusCode::OutOfSync;
    let mut reasons: Vec<String> = app
        .status
        .conditions
        .iter()
        .filter(|condition| condition.kind.is_error() || is_out_of_sync && condition.kind.holds_back())
        .map(|condition| format!("{:?}: {}", condition.kind, condition.message))
        .collect();
    let ended = |phase: OperationPhase| phase.is_completed() && !phase.is_successful();
    if let Some(state) = app.status.operation_state.as_ref().filter(|state| ended(state.phase)) {
        let failed = state.sync_result.iter().flat_map(|result| &result.resources);
        let failed: Vec<_> =
            failed.filter(|r| r.status == Some(tiphys_model::ResultCode::SyncFailed)).collect();
        // What is said of each object need not be said of all, and what a condition says not again.
        let details: BTreeSet<&str> = failed.iter().map(|r| r.message.as_str()).collect();
        if !reasons.iter().any(|reason| reason.contains(&state.message)) {
            reasons.push(format!("sync {:?}: {}", state.phase, state.message));
        }
        reasons.iter_mut().for_each(|reason| *reason = without_details(reason, &details));
        reasons.extend(failed.iter().map(|r| format!("{}/{}: {}", r.kind, r.name, r.message)));
    }
    reasons
}

/// A message without the list of what is said of its objects.
fn without_details(message: &str, details: &BTreeSet<&str>) -> String {
    const LIST: &str = ", reason: ";
    let Some((start, mut rest)) = message.split_once(LIST) else { return message.to_owned() };
    while let Some(detail) =
        details.iter().filter(|detail| !detail.is_empty()).find(|d| rest.starts_with(**d))
    {
        rest = &rest[detail.len()..];
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => return format!("{start}{rest}"),
        }
    }
    message.to_owned()
}

/// The objects that keep an Application from being green; not those whose wait is told of.
fn objects_out_of_place(app: &Application, waits: &[Wait]) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let awaited: BTreeSet<(&str, &str, &str)> = waits
        .iter()
        .filter_map(|wait| wait.object.as_ref())
        .map(|object| (object.kind.as_str(), object.namespace.as_str(), object.name.as_str()))
        .collect();
    let is_awaited = |resource: &&ResourceStatus| {
        awaited.contains(&(resource.kind.as_str(), resource.namespace.as_str(), resource.name.as_str()))
    };
    // The health of one that renders itself is that of what else it renders.
    let is_itself = |resource: &ResourceStatus| {
        let id = (resource.namespace.as_str(), resource.name.as_str());
        resource.kind == "Application" && id == (app.metadata.namespace.as_str(), app.metadata.name.as_str())
    };
    let mut to_come = Vec::new();
    for resource in app.status.resources.iter().filter(|resource| !is_awaited(resource)) {
        let of_object = |state: State, message: &str| {
            let ResourceStatus { group, kind, namespace, name, .. } = resource;
            let key = ResourceKey::new(group, kind, namespace, name);
            Reason::Object(OutOfPlace { key, state, message: message.to_owned(), underlying: None })
        };
        let bad =
            resource.health.as_ref().filter(|h| h.status != HealthCode::Healthy && !is_itself(resource));
        let is_missing = bad.is_some_and(|health| health.status == HealthCode::Missing);
        if is_missing && !waits.is_empty() && resource.kind != "Application" {
            to_come.push(format!("{}/{}", resource.kind, resource.name));
        } else if let Some(health) = bad {
            reasons.push(of_object(State::Unhealthy(health.status), &health.message));
        } else if resource.status == Some(SyncStatusCode::OutOfSync) {
            let state = if resource.requires_pruning { State::ToBePruned } else { State::OutOfSync };
            reasons.push(of_object(state, ""));
        }
    }
    if !to_come.is_empty() {
        reasons.push(format!("after that come {}", some_of(&to_come)).into());
    }
    reasons
}

impl Row {
    /// Whether there is nothing left to do.
    pub(crate) fn is_green(&self) -> bool {
        self.sync == SyncStatusCode::Synced
            && self.health == Some(HealthCode::Healthy)
            && self.phase.is_none_or(OperationPhase::is_completed)
    }

    /// Says of an Application that nothing is known of, what it is that takes so long.
    pub(crate) fn tell_of_sources(&mut self) {
        if self.reasons.is_empty() && !self.sources.is_empty() {
            self.sources.dedup();
            let sources = self.sources.join(", ");
            let told =
                format!("it has not been looked at yet: {sources} is still being fetched, or rendered");
            self.reasons.push(told.into());
        }
    }

    /// Whether pods of it wait for a Secret or ConfigMap that is not there.
    pub(crate) fn lacks_what_people_make(&self) -> bool {
        let causes = self.waits.iter().map(|wait| wait.cause.clone());
        let mut texts = self.reasons.iter().map(Reason::to_string).chain(causes);
        let is_made_by_people = |absent: &tiphys_cause::Absent| {
            absent.key.is_none() && matches!(absent.kind, "Secret" | "ConfigMap")
        };
        texts.any(|text| tiphys_cause::absent(&text).is_some_and(|absent| is_made_by_people(&absent)))
    }

    /// The namespaces that objects of it wait for and that are not there.
    pub(crate) fn missing_namespaces(&self) -> impl Iterator<Item = &str> {
        self.waits.iter().filter_map(|wait| match &wait.blocker {
            Some(Blocker::MissingNamespace { name }) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Whether nothing happens to it before somebody asks for a sync.
    pub(crate) fn waits_for_a_person(&self) -> bool {
        self.is_manual
            && self.sync == SyncStatusCode::OutOfSync
            && self.phase.is_none_or(OperationPhase::is_completed)
    }

    /// Whether its operation fails again and again: nothing but another attempt is to come, of the whole or
    /// of single objects, and there were several.
    pub(crate) fn fails_again_and_again(&self, now: Timestamp) -> bool {
        !self.waits.is_empty() && self.keeps_failing(now)
    }

    /// The same, or another attempt is being made.
    pub(crate) fn keeps_failing(&self, now: Timestamp) -> bool {
        const ENOUGH: i64 = 3;
        const LONG: Duration = Duration::from_secs(30);
        let is_running = self.phase.is_some_and(|phase| !phase.is_completed());
        let lasts = |since: Time| elapsed(since.timestamp(), now) >= LONG;
        is_running
            && self.waits.iter().all(|wait| wait.kind == WaitKind::Retry)
            && (self.retries >= ENOUGH || self.failing_since.is_some_and(lasts))
    }

    /// What of it is looked at to tell whether anything moves: that the same attempt is made again and again
    /// is no move.
    pub(crate) fn at_rest(&self, now: Timestamp) -> Self {
        if !self.keeps_failing(now) {
            return self.clone();
        }
        Self {
            phase: None,
            doing: String::new(),
            waits: Vec::new(),
            reasons: Vec::new(),
            retries: 0,
            failing_since: None,
            ..self.clone()
        }
    }

    /// The Applications that it waits for: by its operation, or for its health.
    pub(crate) fn awaited_applications(&self) -> impl Iterator<Item = &str> {
        let waits = self.waits.iter().filter_map(|wait| wait.object.as_ref());
        let waits = waits.filter(|object| object.kind == "Application").map(|object| object.name.as_str());
        let by_health = self.phase.is_none_or(OperationPhase::is_completed);
        waits.chain(self.children.iter().filter(move |_| by_health).map(String::as_str))
    }

    /// Health for people.
    pub(crate) fn health_text(&self) -> &'static str {
        self.health.map_or("-", HealthCode::as_str)
    }

    /// The revision for people: the first seven digits of a commit, and the mark of edits.
    pub(crate) fn short_revision(&self) -> String {
        let (commit, edits) = self.revision.split_once('+').unwrap_or((&self.revision, ""));
        let short = if tiphys_source::is_commit_id(commit) { &commit[..7] } else { commit };
        if edits.is_empty() { short.to_owned() } else { format!("{short}+edits") }
    }

    /// Since when the first wait lasts.
    pub(crate) fn waiting_for(&self, now: Timestamp) -> Option<Duration> {
        let wait = self.waits.first()?;
        Some(elapsed(wait.since.timestamp(), now))
    }

    /// What it does, with how long it has been waiting.
    pub(crate) fn doing_since(&self, now: Timestamp) -> String {
        match self.waiting_for(now) {
            Some(since) if since.as_secs() > 0 => format!("{} for {}", self.doing, humanize(since)),
            _ => self.doing.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An Application whose operation makes attempts, the first of them some seconds ago.
    fn repeating(failing_for: i64, retries: i64, waits: Value) -> Row {
        let ago = |seconds: i64| Time::from(Timestamp::now() - jiff::SignedDuration::from_secs(seconds));
        let held = json!({"cause": "no", "since": ago(failing_for), "next": ago(-9), "attempts": 5});
        let extension = json!({"waits": waits, "held": {"Sync|/ConfigMap/shop/a": held}});
        let state = json!({"phase": "Running", "message": "", "startedAt": ago(500), "retryCount": retries,
            "operation": {"sync": {}}, "tiphys": extension});
        let app = json!({"apiVersion": names::API_VERSION, "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd"}, "status": {"operationState": state}});
        row(&app, &BTreeMap::new())
    }

    fn retry_that_began_now() -> Value {
        let object = json!({"group": "", "kind": "ConfigMap", "namespace": "shop", "name": "a"});
        json!([{"kind": "Retry", "cause": "no", "since": Time::from(Timestamp::now()), "object": object}])
    }

    #[test]
    fn requests_that_have_failed_for_long_are_told_from_those_that_just_began() {
        assert!(repeating(40, 0, retry_that_began_now()).fails_again_and_again(Timestamp::now()));
        assert!(!repeating(5, 0, retry_that_began_now()).fails_again_and_again(Timestamp::now()));
        assert!(repeating(5, 3, retry_that_began_now()).fails_again_and_again(Timestamp::now()));
    }

    #[test]
    fn one_more_attempt_of_the_same_is_no_move() {
        let (waiting, trying) = (repeating(40, 0, retry_that_began_now()), repeating(40, 0, json!([])));
        assert!(!trying.fails_again_and_again(Timestamp::now()) && waiting != trying);
        assert_eq!(waiting.at_rest(Timestamp::now()), trying.at_rest(Timestamp::now()));
        let (waiting, trying) = (repeating(5, 0, retry_that_began_now()), repeating(5, 0, json!([])));
        assert_ne!(waiting.at_rest(Timestamp::now()), trying.at_rest(Timestamp::now()));
    }

    #[test]
    fn an_application_that_renders_itself_is_no_reason_for_its_own_health() {
        let child = |name: &str| {
            json!({"group": names::GROUP, "version": "v1alpha1", "kind": "Application", "namespace": "argocd",
                "name": name, "status": "Synced", "health": {"status": "Progressing"}})
        };
        let app = json!({"apiVersion": names::API_VERSION, "kind": "Application",
            "metadata": {"name": "root", "namespace": "argocd"},
            "status": {"resources": [child("root"), child("web")], "sync": {"status": "Synced"}}});
        let app = Application::from_value(&app).expect("it is one");
        let reasons: Vec<String> = objects_out_of_place(&app, &[]).iter().map(Reason::to_string).collect();
        assert_eq!(reasons, ["Application/web is Progressing"]);
    }
}
