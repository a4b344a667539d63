//! The state of an object in a word, and why it is not better, in the words of the component that says it.

use serde::Serialize;
use tiphys_health::Rules;
use tiphys_model::{Application, HealthCode, OperationPhase, SyncStatusCode, names};
use tiphys_value::{ObjectExt, Value};
use tiphys_world::behaviour::command_line;

/// How well an object is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// As it should be.
    #[default]
    Good,
    /// Not yet, and nothing says that it will not be.
    Moving,
    /// Something says that it is broken.
    Bad,
}

/// What is to be said of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Such as `Running`, `Pending`, `Synced Healthy`; empty of an object that is only there.
    pub word: String,
    /// How well it is.
    pub level: Level,
    /// Why it is not better.
    pub because: String,
}

impl State {
    fn new(word: impl Into<String>, level: Level, because: impl Into<String>) -> Self {
        Self { word: word.into(), level, because: because.into() }
    }

    fn good(word: &str) -> Self {
        Self::new(word, Level::Good, "")
    }

    fn moving(word: &str, because: impl Into<String>) -> Self {
        Self::new(word, Level::Moving, because)
    }

    fn bad(word: &str, because: impl Into<String>) -> Self {
        Self::new(word, Level::Bad, because)
    }

    /// Whether the object is as it should be.
    pub fn is_good(&self) -> bool {
        self.level == Level::Good
    }
}

/// The state of an object.
pub fn state_of(object: &Value, rules: &Rules) -> State {
    let is_argo = object.gvk().group == names::GROUP;
    if object.is_terminating() {
        let finalizers = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
        let names: Vec<&str> = finalizers.into_iter().flatten().filter_map(Value::as_str).collect();
        let because =
            if names.is_empty() { String::new() } else { format!("finalizers {}", names.join(", ")) };
        return State::moving("Terminating", because);
    }
    match object.kind() {
        "Application" if is_argo => of_application(object),
        "ApplicationSet" if is_argo => of_set(object),
        "Pod" if object.api_version() == "v1" => of_pod(object),
        "Node" if object.api_version() == "v1" => of_node(object),
        _ => match rules.assess(object) {
            None => State::good(""),
            Some(health) => {
                let level = match health.status {
                    HealthCode::Healthy | HealthCode::Suspended => Level::Good,
                    HealthCode::Degraded => Level::Bad,
                    _ => Level::Moving,
                };
                State::new(health.status.as_str(), level, health.message)
            }
        },
    }
}

fn of_application(object: &Value) -> State {
    let Ok(app) = Application::from_value(object) else {
        return State::bad("Invalid", "its spec cannot be read");
    };
    let sync = app.status.sync.status;
    let health = app.status.health.status;
    let state = app.status.operation_state.as_ref();
    let phase = state.map(|state| state.phase);
    let is_running = phase.is_some_and(|phase| !phase.is_completed());
    let mut word = format!("{} {}", sync.as_str(), health.map_or("-", HealthCode::as_str));
    let has_failed = phase.is_some_and(|phase| phase.is_completed() && !phase.is_successful());
    if is_running {
        word.push_str(", syncing");
    } else if has_failed {
        word.push_str(", sync failed");
    }
    let is_good = sync == SyncStatusCode::Synced && health == Some(HealthCode::Healthy) && !is_running;
    let fault = app.status.conditions.iter().find(|condition| condition.kind.is_error());
    let held_back = app.status.conditions.iter().find(|condition| condition.kind.holds_back());
    let because = match (fault, state) {
        _ if is_good => String::new(),
        (Some(condition), _) => condition.message.clone(),
        (None, Some(state)) if is_running || !state.phase.is_successful() => state.message.clone(),
        (None, _) if sync == SyncStatusCode::OutOfSync && app.automated_policy().is_none() => {
            "it has no automated sync policy, so nobody syncs it".to_owned()
        }
        (None, _) if sync == SyncStatusCode::OutOfSync => {
            let left = || app.left_out_of_sync().map(|why| format!("it is left out of sync: {why}"));
            let told = held_back.map(|condition| condition.message.clone()).or_else(left);
            told.unwrap_or_else(|| taken_back(&app))
        }
        _ => String::new(),
    };
    let level = match () {
        () if is_good => Level::Good,
        () if has_failed || fault.is_some() || health == Some(HealthCode::Degraded) => Level::Bad,
        () => Level::Moving,
    };
    State::new(word, level, because)
}

/// The change of somebody else that self-heal has taken back last, of those that come again and again.
pub(crate) fn taken_back(app: &Application) -> String {
    let reverts = app.status.tiphys.as_ref().and_then(|ours| ours.at(&["reverted"])?.as_array());
    match reverts.map(Vec::as_slice) {
        Some([_, .., last]) => {
            let changes = last.at(&["changes"]).and_then(Value::as_array).into_iter().flatten();
            let changes: Vec<&str> = changes.filter_map(Value::as_str).collect();
            format!("self-heal takes back again and again: {}", changes.join("; "))
        }
        _ => String::new(),
    }
}

/// Whether an operation is at work on an Application.
pub fn is_syncing(app: &Application) -> bool {
    app.status.operation_state.as_ref().is_some_and(|state| !OperationPhase::is_completed(state.phase))
}

fn of_set(object: &Value) -> State {
    let fault = condition(object, "ErrorOccurred").filter(|condition| is_true(condition));
    match fault {
        Some(condition) => State::bad("Error", text(condition, "message")),
        None if condition(object, "ResourcesUpToDate").is_some_and(is_true) => State::good("UpToDate"),
        None => State::moving("", "not looked at yet"),
    }
}

fn of_node(object: &Value) -> State {
    match condition(object, "Ready") {
        Some(ready) if !is_true(ready) => return State::bad("NotReady", text(ready, "message")),
        None => return State::moving("NotReady", ""),
        Some(_) => {}
    }
    match condition(object, "NetworkUnavailable").filter(|condition| is_true(condition)) {
        Some(_) => State::bad("NetworkUnavailable", "the node has no network for pods"),
        None => State::good("Ready"),
    }
}

/// The condition of a type.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.at(&["status", "conditions"])?.as_array()?;
    conditions.iter().find(|condition| condition.str_at(&["type"]) == Some(kind))
}

fn is_true(condition: &Value) -> bool {
    condition.str_at(&["status"]) == Some("True")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.str_at(&[field]).unwrap_or_default()
}

fn of_pod(pod: &Value) -> State {
    let phase = pod.str_at(&["status", "phase"]).unwrap_or("Pending");
    match phase {
        "Succeeded" => return State::good("Completed"),
        "Failed" => {
            let ended = containers(pod)
                .find_map(|(name, status)| ended_badly(name, status.at(&["state", "terminated"])?));
            let why = pod.str_at(&["status", "message"]).map(str::to_owned).or(ended).unwrap_or_default();
            return State::bad("Failed", why);
        }
        _ => {}
    }
    if let Some(refused) = condition(pod, "PodScheduled").filter(|condition| !is_true(condition)) {
        return State::bad("Unschedulable", scheduling(text(refused, "message")));
    }
    if let Some(state) = containers(pod).find_map(|(name, status)| held_up(name, status)) {
        return state;
    }
    match condition(pod, "Ready") {
        Some(ready) if is_true(ready) => State::good("Ready"),
        _ if phase == "Running" => {
            State::moving("Running", closed_gate(pod).map(gate_text).unwrap_or_default())
        }
        _ => State::moving("Pending", waiting_init(pod).unwrap_or_default()),
    }
}

/// The condition that a readiness gate of a pod asks for and nobody has set, where that alone is missing.
pub fn closed_gate(pod: &Value) -> Option<&str> {
    let are_containers_ready = condition(pod, "ContainersReady").is_some_and(is_true);
    let gates = pod.at(&["spec", "readinessGates"])?.as_array()?.iter();
    let mut asked = gates.filter_map(|gate| gate.str_at(&["conditionType"]));
    asked.find(|kind| are_containers_ready && !condition(pod, kind).is_some_and(is_true))
}

fn gate_text(kind: &str) -> String {
    format!("its containers are ready, and nobody has set the condition {kind:?} of its readiness gate")
}

/// The init container that runs and has not ended, with what it runs.
fn waiting_init(pod: &Value) -> Option<String> {
    let container = running_init(pod)?;
    let line = command_line(container).join(" ");
    Some(format!("init container {} has not ended: {line}", container.str_at(&["name"])?))
}

/// The init container that runs, and that the pod has to wait for.
pub fn running_init(pod: &Value) -> Option<&Value> {
    let list = |path: &[&str]| pod.at(path).and_then(Value::as_array).into_iter().flatten();
    let running = list(&["status", "initContainerStatuses"])
        .find(|status| status.at(&["state", "running"]).is_some())?;
    let name = running.str_at(&["name"])?;
    let container = list(&["spec", "initContainers"]).find(|it| it.str_at(&["name"]) == Some(name))?;
    (container.str_at(&["restartPolicy"]) != Some("Always")).then_some(container)
}

/// Why a container does not run, if that is more than that it is being made.
fn held_up(name: &str, status: &Value) -> Option<State> {
    let waiting = status.at(&["state", "waiting"])?;
    let reason = text(waiting, "reason");
    match reason {
        "" | "ContainerCreating" | "PodInitializing" => None,
        "CrashLoopBackOff" => {
            let last = status.at(&["lastState", "terminated"]).and_then(|ended| ended_badly(name, ended));
            Some(State::bad(reason, last.unwrap_or_else(|| text(waiting, "message").to_owned())))
        }
        // That the next attempt waits says nothing of why.
        "ImagePullBackOff" => {
            let message = text(waiting, "message");
            let why = message.split_once("ErrImagePull: ").map_or(message, |(_, why)| why);
            Some(State::bad(reason, why))
        }
        _ => Some(State::bad(reason, text(waiting, "message"))),
    }
}

fn ended_badly(name: &str, ended: &Value) -> Option<String> {
    let code = ended.int_at(&["exitCode"]).filter(|code| *code != 0)?;
    let reason = text(ended, "reason");
    let reason = if matches!(reason, "" | "Error") { String::new() } else { format!(" ({reason})") };
    let message = text(ended, "message");
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    Some(format!("container {name} ends with exit code {code}{reason}{message}"))
}

/// The containers of a pod with their statuses, those of its beginning first.
pub fn containers(pod: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let lists = ["initContainerStatuses", "containerStatuses"];
    let statuses = lists.into_iter().filter_map(|list| pod.at(&["status", list])?.as_array()).flatten();
    statuses.filter_map(|status| Some((status.str_at(&["name"])?, status)))
}

/// A message of the scheduler without what preemption would do.
fn scheduling(message: &str) -> String {
    let end = [". no new claims to deallocate", ". preemption:", ", preemption:"];
    let end = end.iter().filter_map(|mark| message.find(mark)).min().unwrap_or(message.len());
    message[..end].to_owned()
}

/// How often the containers of a pod have been started again.
pub fn restarts(pod: &Value) -> i64 {
    containers(pod).filter_map(|(_, status)| status.int_at(&["restartCount"])).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    fn state(object: &Value) -> State {
        state_of(object, &Rules::new(Default::default(), Default::default()))
    }

    #[test]
    fn a_pod_says_what_holds_it_up_and_not_that_it_waits() {
        let pod = |status: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": status});
        let waiting = |reason: &str, message: &str| {
            pod(json!({"phase": "Pending", "containerStatuses": [{"name": "c", "state":
            {"waiting": {"reason": reason, "message": message}}}]}))
        };
        assert_eq!(state(&waiting("ContainerCreating", "")).word, "Pending");
        let pull =
            state(&waiting("ImagePullBackOff", "Back-off pulling image \"a\": ErrImagePull: a: not found"));
        assert_eq!((pull.word.as_str(), pull.because.as_str()), ("ImagePullBackOff", "a: not found"));
        let crash = pod(json!({"phase": "Running", "containerStatuses": [{"name": "c", "state": {"waiting":
            {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}));
        assert_eq!(state(&crash).because, "container c ends with exit code 137 (OOMKilled)");
        let refused = pod(
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "message": "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available."}]}),
        );
        assert_eq!(state(&refused).because, "0/3 nodes are available: 3 Insufficient cpu");
        let ready = pod(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}));
        assert!(state(&ready).is_good());
    }

    #[test]
    fn a_readiness_gate_that_nobody_opens_is_named() {
        let pod = |conditions: Value| {
            state(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
                "spec": {"readinessGates": [{"conditionType": "example.com/ready"}]},
                "status": {"phase": "Running", "conditions": conditions}}))
        };
        let ready = json!({"type": "ContainersReady", "status": "True"});
        assert!(pod(json!([ready])).because.contains("\"example.com/ready\""));
        // Its containers come first.
        assert_eq!(pod(json!([])).because, "");
        let open = json!({"type": "example.com/ready", "status": "True"});
        assert_eq!(pod(json!([ready, open])).because, "");
    }

    #[test]
    fn who_is_going_names_what_holds_it() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "deletionTimestamp": "2026-01-05T08:00:00Z",
            "finalizers": ["example.com/hold"]}});
        assert_eq!(state(&object).because, "finalizers example.com/hold");
    }
}
