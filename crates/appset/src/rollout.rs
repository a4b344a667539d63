//! RollingSync: the Applications of a set are synced step after step, each step once those before it are
//! healthy (Argo CD docs, "Progressive Syncs").

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_model::{Application, ConditionType, HealthCode, SyncStatusCode, Time};
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

/// What is wrong with the steps of a set, counted from 0.
#[derive(Default)]
struct Faults {
    unknown_operators: BTreeSet<(usize, String)>,
    selected_twice: BTreeMap<String, Vec<usize>>,
    unusable_limits: BTreeSet<usize>,
    empty_steps: Vec<usize>,
}

impl Faults {
    /// In Argo CD's words, the gravest first.
    fn texts(&self, set: &Value) -> Vec<String> {
        let join = |list: Vec<String>, by: &str| list.join(by);
        let number = |at: &usize| (at + 1).to_string();
        let mut texts = Vec::new();
        if !self.unknown_operators.is_empty() {
            let numbers = join(self.unknown_operators.iter().map(|(at, _)| number(at)).collect(), ", ");
            let operators = join(self.unknown_operators.iter().map(|(_, name)| name.clone()).collect(), ", ");
            let who = if self.unknown_operators.len() == 1 { "Step" } else { "Steps" };
            let has = if self.unknown_operators.len() == 1 { "has" } else { "have" };
            texts.push(format!(
                "{who} {numbers} {has} invalid matchExpression operators: {operators}. Supported Operators are 'In' and 'NotIn'"
            ));
        }
        if !self.selected_twice.is_empty() {
            let of_one = |steps: &Vec<usize>| join(steps.iter().map(number).collect(), "-");
            let steps: Vec<String> = self.selected_twice.values().map(of_one).collect();
            let names: Vec<String> = self.selected_twice.keys().cloned().collect();
            texts.push(if let [name] = &names[..] {
                format!("Application '{name}' is selected by multiple steps: ({})", join(steps, ", "))
            } else {
                let (names, steps) = (join(names, "', '"), join(steps, "), ("));
                format!("Applications '{names}' are selected by multiple steps: [({steps})]")
            });
        }
        if !self.unusable_limits.is_empty() {
            let value = |at: &usize| match steps(set)[*at].get("maxUpdate") {
                Some(Value::String(text)) => text.clone(),
                other => other.map(Value::to_string).unwrap_or_default(),
            };
            let values = join(self.unusable_limits.iter().map(value).collect(), ", ");
            let numbers = join(self.unusable_limits.iter().map(number).collect(), ", ");
            texts.push(if self.unusable_limits.len() == 1 {
                format!("Step {numbers} has an invalid maxUpdate value: {values}")
            } else {
                format!("Steps {numbers} have invalid maxUpdate values: [{values}]")
            });
        }
        if !self.empty_steps.is_empty() {
            let numbers = join(self.empty_steps.iter().map(number).collect(), " ");
            texts.push(format!("Steps [{numbers}] have no applications matching their criteria"));
        }
        texts
    }
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
    let mut faults = Faults::default();
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
        let name = one.application.name();
        let due =
            open.contains(name) && apps.iter().any(|app| app.application == name && app.status == PENDING);
        take_over(&mut one.application, due);
    }
    let behind = |names: &BTreeSet<String>| {
        apps.iter().any(|app| names.contains(&app.application) && app.status != HEALTHY)
    };
    let step = members.iter().position(behind).map(|at| at + 1);
    Rollout { apps, step, faults: faults.texts(set) }
}

/// The names of the Applications of each step.
fn assign(set: &Value, generated: &[Generated], faults: &mut Faults) -> Vec<BTreeSet<String>> {
    let mut members = vec![BTreeSet::new(); steps(set).len()];
    for one in generated {
        let app = &one.application;
        let selected: Vec<usize> =
            (0..members.len()).filter(|at| selects(&steps(set)[*at], app, *at, faults)).collect();
        for at in &selected {
            members[*at].insert(app.name().to_owned());
        }
        if selected.len() > 1 {
            faults.selected_twice.insert(app.name().to_owned(), selected);
        }
    }
    let empty = members.iter().enumerate().filter(|(_, names)| names.is_empty());
    faults.empty_steps = empty.map(|(at, _)| at).collect();
    members
}

/// Whether a step selects an Application. As in Argo CD, one without the label is what every operator but
/// `In` is after, even those that are not known otherwise.
fn selects(step: &Value, app: &Value, at: usize, faults: &mut Faults) -> bool {
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
                faults.unknown_operators.insert((at, other.to_owned()));
                label.is_none()
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
    let one = Some(&sync.revision).filter(|revision| !revision.is_empty());
    let revisions =
        if sync.revisions.is_empty() { one.into_iter().cloned().collect() } else { sync.revisions.clone() };
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
            Some("Application has pending changes (revision and spec differ), setting status to Waiting")
        }
        (true, false) => Some("Application has pending changes, setting status to Waiting"),
        (false, true) => Some("Application has pending changes (spec differs), setting status to Waiting"),
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
    app.status.sync.compared_to.as_ref().is_some_and(|compared| compared.is_about(&app.spec))
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
        None if has_spec_error(app) && was_looked_at(app, state.since) => {
            "Application resource has error and cannot sync, updating status to Progressing"
        }
        None => return,
    };
    state.turn(PROGRESSING, message, now);
}

/// Whether the Application itself is at fault, so that no sync begins.
fn has_spec_error(app: &Application) -> bool {
    let ends =
        |kind: ConditionType| matches!(kind, ConditionType::InvalidSpecError | ConditionType::UnknownError);
    app.status.conditions.iter().any(|condition| ends(condition.kind))
}

/// Whether the conditions are from after a moment.
fn was_looked_at(app: &Application, since: Time) -> bool {
    app.status.reconciled_at.is_none_or(|at| at >= since)
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
    faults: &mut Faults,
) {
    for (at, step) in steps(set).iter().enumerate() {
        let here = |app: &AppRollout| of_app.get(app.application.as_str()) == Some(&at);
        let total = apps.iter().filter(|app| here(app)).count();
        let busy = apps.iter().filter(|app| here(app) && matches!(app.status, PENDING | PROGRESSING)).count();
        let limit = max_update(step.get("maxUpdate"), total).unwrap_or_else(|| {
            faults.unusable_limits.insert(at);
            1
        });
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
/// down, but all except `0%` let one in. `None` if the text is no percentage.
fn max_update(value: Option<&Value>, total: usize) -> Option<usize> {
    match value {
        None | Some(Value::Null) => Some(usize::MAX),
        Some(Value::Number(n)) => Some(n.as_i64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0)),
        Some(Value::String(text)) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let share = usize::try_from(percent).unwrap_or(0).saturating_mul(total) / 100;
            Some(if text == "0%" { 0 } else { share.max(1) })
        }
        Some(_) => None,
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
/// last step that still has some. `None` if order does not matter any more: what no step selects goes with
/// the set itself.
pub fn removal_order<'a>(set: &Value, existing: &'a [Value]) -> Option<Vec<&'a Value>> {
    let order = set.str_at(&["spec", "strategy", "deletionOrder"])?;
    if !is_rolling(set) || steps(set).is_empty() || !order.eq_ignore_ascii_case("reverse") {
        return None;
    }
    let step_of =
        |app: &Value| steps(set).iter().position(|step| selects(step, app, 0, &mut Faults::default()));
    let last = existing.iter().filter_map(step_of).max()?;
    Some(existing.iter().filter(|app| step_of(app) == Some(last)).collect())
}
