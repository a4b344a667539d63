//! RollingSync: the Applications of a set are synced step after step, each step once those before it are
//! healthy (Argo CD docs, "Progressive Syncs").

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_model::{Application, HealthCode, SyncStatusCode, Time};
use tiphys_value::ObjectExt;

use crate::Generated;

/// Attempts of a sync that the rollout starts, unless the Application says how many.
const RETRIES: i64 = 5;

/// One entry of `status.applicationStatus`.
#[derive(Clone, Debug, PartialEq)]
pub struct AppRollout {
    /// Name of the Application.
    pub application: String,
    /// `Waiting`, `Pending`, `Progressing` or `Healthy`.
    pub status: &'static str,
    /// Why.
    pub message: String,
    /// Since when.
    pub since: Time,
    /// Its step, from 1; `-1` if no step selects it.
    pub step: String,
    /// The revisions that it is brought to.
    pub revisions: Vec<String>,
}

impl AppRollout {
    /// The entry as JSON.
    pub fn to_value(&self) -> Value {
        json!({"application": self.application, "status": self.status, "message": self.message,
            "lastTransitionTime": self.since, "step": self.step, "targetRevisions": self.revisions})
    }

    fn from_value(value: &Value) -> Option<Self> {
        let text = |key: &str| value.str_at(&[key]).unwrap_or_default().to_owned();
        let status = STATES.into_iter().find(|state| *state == text("status"))?;
        let revisions = value.get("targetRevisions").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            application: text("application"),
            status,
            message: text("message"),
            since: Time::parse(&text("lastTransitionTime"))?,
            step: text("step"),
            revisions: revisions.filter_map(Value::as_str).map(str::to_owned).collect(),
        })
    }

    fn turn(&mut self, status: &'static str, message: &str, now: Time) {
        self.status = status;
        message.clone_into(&mut self.message);
        self.since = now;
    }
}

const WAITING: &str = "Waiting";
const PENDING: &str = "Pending";
const PROGRESSING: &str = "Progressing";
const HEALTHY: &str = "Healthy";
const STATES: [&str; 4] = [WAITING, PENDING, PROGRESSING, HEALTHY];

/// Where a rollout stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollout {
    /// `status.applicationStatus`, by name.
    pub apps: Vec<AppRollout>,
    /// The step that is under way, from 1.
    pub step: Option<usize>,
    /// What is wrong with the steps.
    pub faults: Vec<String>,
}

/// Whether a set asks for RollingSync.
pub fn is_rolling(set: &Value) -> bool {
    set.str_at(&["spec", "strategy", "type"]) == Some("RollingSync")
        && set.at(&["spec", "strategy", "rollingSync"]).is_some()
}

fn steps(set: &Value) -> &[Value] {
    set.at(&["spec", "strategy", "rollingSync", "steps"]).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Moves a rollout on. Automated sync of the generated Applications is switched off, and those whose turn
/// it is get an operation. `existing` are the Applications that the set owns; `revised` tells of one that
/// its spec is about to change.
pub fn roll(
    set: &Value,
    generated: &mut [Generated],
    existing: &[Value],
    revised: &dyn Fn(&str) -> bool,
    now: Timestamp,
) -> Rollout {
    let now = Time::from(now);
    let mut faults = Vec::new();
    let members = assign(set, generated, &mut faults);
    let of_app: BTreeMap<&str, usize> = members
        .iter()
        .enumerate()
        .rev()
        .flat_map(|(at, names)| names.iter().map(move |n| (n.as_str(), at)))
        .collect();
    let mut apps: Vec<AppRollout> = existing
        .iter()
        .filter_map(|object| Application::from_value(object).ok())
        .map(|app| judge(set, &app, of_app.get(app.metadata.name.as_str()).copied(), revised, now))
        .collect();
    apps.sort_by(|a, b| a.application.cmp(&b.application));
    let open = open_steps(&members, &apps);
    admit(set, &mut apps, &of_app, &open, now, &mut faults);
    for one in generated.iter_mut() {
        let due = apps.iter().any(|app| app.application == one.application.name() && app.status == PENDING);
        take_over(&mut one.application, due);
    }
    let behind = |names: &BTreeSet<String>| {
        apps.iter().any(|app| names.contains(&app.application) && app.status != HEALTHY)
    };
    let step = members.iter().position(behind).map(|at| at + 1);
    Rollout { apps, step, faults }
}

/// The names of the Applications of each step.
fn assign(set: &Value, generated: &[Generated], faults: &mut Vec<String>) -> Vec<BTreeSet<String>> {
    let mut members = vec![BTreeSet::new(); steps(set).len()];
    for one in generated {
        let app = &one.application;
        let selected: Vec<usize> =
            (0..members.len()).filter(|at| selects(&steps(set)[*at], app, *at, faults)).collect();
        if selected.len() > 1 {
            let numbers: Vec<String> = selected.iter().map(|at| (at + 1).to_string()).collect();
            faults.push(format!("steps {} all select Application {}", numbers.join(", "), app.name()));
        }
        for at in selected {
            members[at].insert(app.name().to_owned());
        }
    }
    for (at, _) in members.iter().enumerate().filter(|(_, names)| names.is_empty()) {
        faults.push(format!("step {} selects no Application", at + 1));
    }
    members
}

fn selects(step: &Value, app: &Value, at: usize, faults: &mut Vec<String>) -> bool {
    let expressions = step.get("matchExpressions").and_then(Value::as_array);
    expressions.into_iter().flatten().all(|expression| {
        let label = app
            .at(&["metadata", "labels"])
            .and_then(|labels| labels.get(expression.str_at(&["key"]).unwrap_or_default())?.as_str());
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let listed = label.is_some_and(|label| values.into_iter().any(|value| value.as_str() == Some(label)));
        match expression.str_at(&["operator"]).unwrap_or_default() {
            "In" => listed,
            "NotIn" => !listed,
            other => {
                let fault = format!("step {} has the operator {other:?}; In and NotIn are known", at + 1);
                if !faults.contains(&fault) {
                    faults.push(fault);
                }
                false
            }
        }
    })
}

/// The state of one Application, from what it was and what the Application shows.
fn judge(
    set: &Value,
    app: &Application,
    step: Option<usize>,
    revised: &dyn Fn(&str) -> bool,
    now: Time,
) -> AppRollout {
    let name = &app.metadata.name;
    let sync = &app.status.sync;
    let revisions =
        if sync.revisions.is_empty() { vec![sync.revision.clone()] } else { sync.revisions.clone() };
    let known = set.at(&["status", "applicationStatus"]).and_then(Value::as_array).into_iter().flatten();
    let known = known.filter_map(AppRollout::from_value).find(|known| known.application == *name);
    let mut state = known.unwrap_or_else(|| AppRollout {
        application: name.clone(),
        status: WAITING,
        message: "No Application status found, defaulting status to Waiting".into(),
        since: now,
        step: String::new(),
        revisions: revisions.clone(),
    });
    state.step = step.map_or_else(|| "-1".to_owned(), |at| (at + 1).to_string());
    let was = state.status;
    let changed = match (state.revisions != revisions, revised(name)) {
        (true, true) => {
            Some("Application has pending changes in revision and spec, setting status to Waiting")
        }
        (true, false) => Some("Application has pending changes, setting status to Waiting"),
        (false, true) => Some("Application has pending spec changes, setting status to Waiting"),
        (false, false) => None,
    };
    if let Some(message) = changed {
        state.revisions = revisions;
        state.turn(WAITING, message, now);
    }
    let synced = sync.status == SyncStatusCode::Synced && is_compared(app);
    let healthy = app.status.health.status == Some(HealthCode::Healthy);
    match state.status {
        WAITING if synced && healthy && !revised(name) => {
            state.turn(HEALTHY, "Application resource has synced, updating status to Healthy", now);
        }
        WAITING if synced && !revised(name) => {
            state.turn(PROGRESSING, "Application resource has synced, updating status to Progressing", now);
        }
        PENDING if was == PENDING => leave_pending(app, &mut state, now),
        PROGRESSING if was == PROGRESSING && synced && healthy => {
            let message = "Application resource became Healthy, updating status from Progressing to Healthy";
            state.turn(HEALTHY, message, now);
        }
        _ => {}
    }
    state
}

/// Whether the sync status is about the spec as it is now.
fn is_compared(app: &Application) -> bool {
    app.status.sync.compared_to.as_ref().is_some_and(|compared| {
        let sources: Vec<_> = compared.source.iter().chain(&compared.sources).cloned().collect();
        sources == app.spec.effective_sources() && compared.destination == app.spec.destination
    })
}

/// A sync that began after the Application's turn came, or a fault that prevents one, ends the wait for it.
fn leave_pending(app: &Application, state: &mut AppRollout, now: Time) {
    let operation =
        app.status.operation_state.as_ref().filter(|operation| operation.started_at >= state.since);
    let message = match operation {
        Some(operation) if operation.phase.is_successful() => {
            "Application resource completed a sync successfully, updating status from Pending to Progressing"
        }
        Some(operation) if operation.phase.is_completed() => {
            "Application resource completed a sync, updating status from Pending to Progressing"
        }
        Some(_) => "Application resource became Progressing, updating status from Pending to Progressing",
        None if app.status.conditions.iter().any(|c| c.kind.is_error()) && app.operation.is_none() => {
            "Application resource has error and cannot sync, updating status to Progressing"
        }
        None => return,
    };
    state.turn(PROGRESSING, message, now);
}

/// The Applications of the steps that may run: the first one that is not done, and all before it.
fn open_steps(members: &[BTreeSet<String>], apps: &[AppRollout]) -> BTreeSet<String> {
    let mut open = BTreeSet::new();
    for names in members {
        open.extend(names.iter().cloned());
        let done = |name: &String| apps.iter().any(|app| app.application == *name && app.status == HEALTHY);
        if !names.iter().all(done) {
            break;
        }
    }
    open
}

/// Lets Applications of open steps begin, as many at once as their steps allow.
fn admit(
    set: &Value,
    apps: &mut [AppRollout],
    of_app: &BTreeMap<&str, usize>,
    open: &BTreeSet<String>,
    now: Time,
    faults: &mut Vec<String>,
) {
    for (at, step) in steps(set).iter().enumerate() {
        let here = |app: &AppRollout| of_app.get(app.application.as_str()) == Some(&at);
        let total = apps.iter().filter(|app| here(app)).count();
        let busy = apps.iter().filter(|app| here(app) && matches!(app.status, PENDING | PROGRESSING)).count();
        let limit = match max_update(step.get("maxUpdate"), total) {
            Ok(limit) => limit,
            Err(text) => {
                faults.push(format!(
                    "step {} has the maxUpdate {text}; it is a number or a percentage",
                    at + 1
                ));
                0
            }
        };
        let due = apps
            .iter_mut()
            .filter(|app| here(app) && app.status == WAITING && open.contains(&app.application));
        for app in due.take(limit.saturating_sub(busy)) {
            let message = "Application moved to Pending status, watching for the Application resource to start Progressing";
            app.turn(PENDING, message, now);
        }
    }
}

/// How many Applications of a step may be under way: all if nothing is said; percentages are rounded
/// down, but every one above zero lets one in.
fn max_update(value: Option<&Value>, total: usize) -> Result<usize, String> {
    let number = |n: i64| usize::try_from(n).unwrap_or(0);
    match value {
        None | Some(Value::Null) => Ok(usize::MAX),
        Some(Value::Number(n)) => n.as_i64().map(number).ok_or_else(|| n.to_string()),
        Some(Value::String(text)) => {
            let percent = text.strip_suffix('%').and_then(|digits| digits.parse::<usize>().ok());
            let percent = percent.ok_or_else(|| format!("{text:?}"))?;
            Ok(if percent == 0 { 0 } else { (total.saturating_mul(percent) / 100).max(1) })
        }
        Some(other) => Err(other.to_string()),
    }
}

/// The rollout syncs, not the Application itself.
fn take_over(app: &mut Value, due: bool) {
    let automated = app.at(&["spec", "syncPolicy", "automated"]).filter(|value| value.is_object());
    let enabled = automated.is_some_and(|automated| automated.get("enabled") != Some(&Value::Bool(false)));
    let prune =
        enabled && automated.is_some_and(|automated| automated.get("prune") == Some(&Value::Bool(true)));
    if automated.is_some() {
        app["spec"]["syncPolicy"]["automated"]["enabled"] = false.into();
    }
    if !due {
        return;
    }
    let policy = app.at(&["spec", "syncPolicy"]).cloned().unwrap_or_default();
    let mut sync = json!({"prune": prune});
    if let Some(options) = policy.get("syncOptions") {
        sync["syncOptions"] = options.clone();
    }
    app["operation"] = json!({
        "initiatedBy": {"username": "applicationset-controller", "automated": true},
        "info": [{"name": "Reason",
            "value": "ApplicationSet RollingSync triggered a sync of this Application resource"}],
        "sync": sync,
        "retry": policy.get("retry").cloned().unwrap_or_else(|| json!({"limit": RETRIES})),
    });
}

/// With `deletionOrder: Reverse`, the Applications that are deleted next when the set goes: those of the
/// last step that still has some, those of no step first. `None` if order does not matter.
pub fn removal_order<'a>(set: &Value, existing: &'a [Value]) -> Option<Vec<&'a Value>> {
    let order = set.str_at(&["spec", "strategy", "deletionOrder"])?;
    if !is_rolling(set) || steps(set).is_empty() || !order.eq_ignore_ascii_case("reverse") {
        return None;
    }
    let step_of = |app: &Value| steps(set).iter().position(|step| selects(step, app, 0, &mut Vec::new()));
    let rank = |app: &Value| step_of(app).map_or(usize::MAX, |at| at);
    let last = existing.iter().map(rank).max()?;
    Some(existing.iter().filter(|app| rank(app) == last).collect())
}
