//! One container: waiting, running, ended, started again.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tiphys_value::ObjectExt;

use super::{Sync, probe, program, references, remaining, user};
use crate::{
    Key, Write,
    behaviour::{ContainerRule, Exit, Span},
    object::time,
};

/// The first back-off before a container is started again; it doubles.
const BACK_OFF: Duration = Duration::from_secs(10);
/// The longest back-off.
const MAX_BACK_OFF: Duration = Duration::from_secs(300);
/// Who ran this long starts again without back-off.
const HEALTHY_RUN: i64 = 600;

/// How often an init container asks for what it waits for.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// What a container is to its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It has to end before the next one starts.
    Init,
    /// An init container that goes on running.
    Sidecar,
    /// What the pod is for.
    App,
}

impl Kind {
    /// The list of the pod's spec it stands in.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Init | Self::Sidecar => "initContainers",
            Self::App => "containers",
        }
    }
}

/// A container and its status.
pub(super) struct Life {
    /// What it is to its pod.
    pub kind: Kind,
    /// `status.containerStatuses[]`.
    pub status: Value,
}

/// The status of a container that never ran.
pub(super) fn blank(container: &Value, state: Value) -> Value {
    json!({
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": false,
        "started": false,
        "restartCount": 0,
        "lastState": {},
        "state": state,
    })
}

impl<'a> Sync<'a> {
    /// The next status of a container.
    pub(super) fn container(&mut self, kind: Kind, spec: &Value, may_start: bool) -> Value {
        let list = if kind == Kind::App { "containerStatuses" } else { "initContainerStatuses" };
        let statuses = self.pod.at(&["status", list]).and_then(Value::as_array);
        let before = statuses.into_iter().flatten().find(|status| status["name"] == spec["name"]).cloned();
        let before = before.unwrap_or_else(|| blank(spec, json!({"waiting": {"reason": "PodInitializing"}})));
        let state = &before["state"];
        if state.get("running").is_some() {
            return self.running(kind, spec, before);
        }
        if state.get("terminated").is_some() {
            return self.ended(kind, spec, before);
        }
        if state.str_at(&["waiting", "reason"]) == Some("CrashLoopBackOff") {
            return self.back_off(kind, spec, before);
        }
        if may_start { self.start(kind, spec, before) } else { before }
    }

    fn rule(&self, spec: &Value) -> Option<&'a ContainerRule> {
        self.context.behaviours.containers.iter().find(|rule| rule.is_about(self.pod, spec))
    }

    /// How the program ends by itself, if it does.
    fn exit(&mut self, kind: Kind, spec: &Value) -> Option<Exit> {
        let policy = self.pod.str_at(&["spec", "restartPolicy"]).unwrap_or("Always");
        let done = |after| Some(Exit { code: 0, after: Span(after), reason: None, message: None });
        if let Some(rule) = self.rule(spec) {
            let is_unmet = rule.unmet(self.pod, self.context.behaviours, self.context.view).is_some();
            if let Some(exit) = rule.exits.as_ref().filter(|_| rule.needs.is_empty() || is_unmet) {
                return Some(exit.clone());
            }
            // It asks for what it needs, again and again.
            if kind == Kind::Init && is_unmet {
                self.look_again(ASK_AGAIN);
                return None;
            }
        }
        if let Some(end) = program::end_of(spec) {
            let exit = |after| Exit { code: end.code, after: Span(after), reason: None, message: None };
            return end.after.map(exit);
        }
        match (kind, policy) {
            (Kind::Init, _) => done(Duration::ZERO),
            (Kind::App, "Never" | "OnFailure") => done(self.context.settings.job_run),
            _ => None,
        }
    }

    fn running(&mut self, kind: Kind, spec: &Value, before: Value) -> Value {
        let now = self.context.now;
        let began = moment(&before, &["state", "running", "startedAt"]).unwrap_or(now);
        let killed = if kind == Kind::Init { None } else { probe::liveness(self, spec, began) };
        if let Some(exit) = killed.or_else(|| self.exit(kind, spec)) {
            match remaining(began, exit.after.0, now) {
                Some(left) => self.look_again(left),
                None => return self.end(kind, spec, before, &exit, began),
            }
        }
        let mut status = before;
        let is_ready = kind != Kind::Init && probe::readiness(self, spec, began);
        status["ready"] = is_ready.into();
        status["started"] = probe::is_started(self, spec, began).into();
        status
    }

    fn end(&mut self, kind: Kind, spec: &Value, before: Value, exit: &Exit, began: Timestamp) -> Value {
        let mut status = before;
        let usual = if exit.code == 0 { "Completed" } else { "Error" };
        let mut terminated = json!({
            "exitCode": exit.code,
            "reason": exit.reason.as_deref().unwrap_or(usual),
            "startedAt": time(began),
            "finishedAt": time(self.context.now),
            "containerID": status["containerID"],
        });
        if let Some(message) = &exit.message {
            terminated["message"] = message.as_str().into();
        }
        status["state"] = json!({"terminated": terminated});
        status["started"] = false.into();
        if exit.code == 0 {
            self.make(spec);
        }
        // An init container counts as ready once it has done its work.
        status["ready"] = (kind == Kind::Init && exit.code == 0).into();
        self.ended(kind, spec, status)
    }

    /// Makes what the program of a container makes and is not there.
    fn make(&mut self, spec: &Value) {
        let Some(rule) = self.rule(spec) else { return };
        for object in rule.products(self.pod, spec) {
            let resource = self.context.view.resource_of(object.api_version(), object.kind());
            let Some(resource) = resource.filter(|_| !object.name().is_empty()) else { continue };
            if self.context.view.get(&resource, &Key::from_object(&object)).is_none() {
                self.told.push(Write::Create { resource, object });
            }
        }
    }

    /// A container that has ended stays so, or is started again: the first time at once, then with back-off.
    fn ended(&mut self, kind: Kind, spec: &Value, before: Value) -> Value {
        let code = before.int_at(&["state", "terminated", "exitCode"]).unwrap_or(0);
        let policy = self.pod.str_at(&["spec", "restartPolicy"]).unwrap_or("Always");
        let goes_on = match (kind, policy) {
            (Kind::Sidecar, _) => true,
            (Kind::Init, "Never") | (Kind::App, "Never") => false,
            (Kind::Init, _) | (Kind::App, "OnFailure") => code != 0,
            (Kind::App, _) => true,
        };
        if !goes_on {
            return before;
        }
        let terminated = before["state"]["terminated"].clone();
        let finished = moment(&before, &["state", "terminated", "finishedAt"]).unwrap_or(self.context.now);
        let began = moment(&before, &["state", "terminated", "startedAt"]).unwrap_or(finished);
        let restarts = before.int_at(&["restartCount"]).unwrap_or(0);
        let ran = finished.as_second() - began.as_second();
        if restarts == 0 || ran >= HEALTHY_RUN {
            // It is seen to have ended before it starts again.
            if let Some(left) = remaining(finished, Duration::from_secs(1), self.context.now) {
                self.look_again(left);
                return before;
            }
            return self.restart(kind, spec, before, &terminated);
        }
        let mut status = before;
        status["lastState"] = json!({"terminated": terminated});
        let name = spec.str_at(&["name"]).unwrap_or_default();
        let delay = back_off(restarts);
        let pod = format!("{}_{}({})", self.pod.name(), self.pod.namespace(), self.pod.uid());
        let message = format!("back-off {} restarting failed container={name} pod={pod}", in_words(delay));
        status["state"] = json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}});
        let text = format!("Back-off restarting failed container {name} in pod {pod}");
        self.tell(true, "BackOff", text, Some(&field(kind, name)));
        self.back_off(kind, spec, status)
    }

    fn back_off(&mut self, kind: Kind, spec: &Value, before: Value) -> Value {
        let finished =
            moment(&before, &["lastState", "terminated", "finishedAt"]).unwrap_or(self.context.now);
        let delay = back_off(before.int_at(&["restartCount"]).unwrap_or(0));
        if let Some(left) = remaining(finished, delay, self.context.now) {
            self.look_again(left);
            return before;
        }
        let terminated = before["lastState"]["terminated"].clone();
        self.restart(kind, spec, before, &terminated)
    }

    fn restart(&mut self, kind: Kind, spec: &Value, before: Value, terminated: &Value) -> Value {
        let mut status = before;
        status["restartCount"] = (status.int_at(&["restartCount"]).unwrap_or(0) + 1).into();
        status["lastState"] = json!({"terminated": terminated});
        self.start(kind, spec, status)
    }

    /// Pulls the image, looks for what the environment needs, and runs the program.
    fn start(&mut self, kind: Kind, spec: &Value, before: Value) -> Value {
        let name = spec.str_at(&["name"]).unwrap_or_default();
        let field = field(kind, name);
        let mut status = before;
        let is_first = status["restartCount"] == 0;
        if is_first && let Some(state) = self.pull(spec, &status, &field) {
            status["state"] = state;
            return status;
        }
        let lacking = references::environment(self.pod, spec, &self.context.view.snapshot)
            .map(|cause| cause.to_string());
        if let Some(message) = lacking.or_else(|| user::refusal(self.pod, spec)) {
            if status.str_at(&["state", "waiting", "message"]) != Some(message.as_str()) {
                self.tell(true, "Failed", format!("Error: {message}"), Some(&field));
            }
            status["state"] =
                json!({"waiting": {"reason": "CreateContainerConfigError", "message": message}});
            return status;
        }
        self.tell(false, "Created", "Container created".to_owned(), Some(&field));
        self.tell(false, "Started", "Container started".to_owned(), Some(&field));
        if self.exit(kind, spec).is_none() {
            self.make(spec);
        }
        run(self.pod, spec, &mut status, self.context.now);
        self.running(kind, spec, status)
    }
}

/// The status of a container that begins to run and is not looked at again.
pub(super) fn begun(pod: &Value, spec: &Value, now: Timestamp) -> Value {
    let mut status = blank(spec, Value::Null);
    run(pod, spec, &mut status, now);
    status
}

fn run(pod: &Value, spec: &Value, status: &mut Value, now: Timestamp) {
    let name = spec.str_at(&["name"]).unwrap_or_default();
    let image = spec.str_at(&["image"]).unwrap_or_default();
    status["image"] = crate::behaviour::full_image_name(image).into();
    status["imageID"] = image_id(image).into();
    let number = status["restartCount"].to_string();
    status["containerID"] = format!("tiphys://{}", digest(&[pod.uid(), name, &number])).into();
    status["state"] = json!({"running": {"startedAt": time(now)}});
}

/// The field of a pod that a container's Events are about.
pub(super) fn field(kind: Kind, name: &str) -> String {
    format!("spec.{}{{{name}}}", kind.field())
}

fn back_off(restarts: i64) -> Duration {
    let doublings = u32::try_from(restarts.saturating_sub(1)).unwrap_or(0).min(5);
    (BACK_OFF * 2u32.pow(doublings)).min(MAX_BACK_OFF)
}

/// As Go writes a duration: `40s`, `1m20s`, `5m0s`, `300ms`.
pub(super) fn in_words(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    if seconds == 0 {
        return format!("{millis}ms");
    }
    let fraction = format!("{:03}", millis);
    let fraction = fraction.trim_end_matches('0');
    let rest = if fraction.is_empty() {
        format!("{}s", seconds % 60)
    } else {
        format!("{}.{fraction}s", seconds % 60)
    };
    if seconds < 60 { rest } else { format!("{}m{rest}", seconds / 60) }
}

fn moment(status: &Value, path: &[&str]) -> Option<Timestamp> {
    status.str_at(path)?.parse().ok()
}

/// Where an image was found: a digest that depends on its name alone.
pub(super) fn image_id(image: &str) -> String {
    let full = crate::behaviour::full_image_name(image);
    let repository = full.rsplit_once([':', '@']).map_or(full.as_str(), |(repository, _)| repository);
    format!("{repository}@sha256:{}", digest(&[&full]))
}

fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_up_to_five_minutes() {
        let words: Vec<_> = (1..8).map(|restarts| in_words(back_off(restarts))).collect();
        assert_eq!(words, ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"]);
    }
}
