//! From a comparison to what is done about it: whether automated sync begins an operation, and if not, why
//! and until when.

use std::time::Duration;

use jiff::Timestamp;
use tiphys_model::{Application, Condition, ConditionType, Time};
use tiphys_sync::{AutoSettings, AutoSync, Inputs, auto_sync};
use tiphys_value::json;

use super::{
    compare::Compared,
    report::{Report, earliest},
    status::{note_left, remember_reverts},
};
use crate::{
    journal::Entry,
    orphans,
    safeguards::{pause, reverted_changes},
};
/// How long after a look at closed sync windows the next one follows: schedules count minutes.
const WINDOW_LOOK: Duration = Duration::from_secs(60);

/// What follows from a comparison.
pub(super) struct Decision {
    auto: AutoSync,
    /// When to look again though nothing changes.
    pub at: Option<Timestamp>,
    /// What the status says of it.
    pub conditions: Vec<Condition>,
    /// What a self-heal takes back.
    reverted: Vec<String>,
}

/// Decides about automated sync.
pub(super) fn decide(
    app: &Application,
    compared: &Compared,
    settings: &AutoSettings,
    now: Timestamp,
) -> Decision {
    let mut conditions = compared.comparison.conditions.clone();
    let open = compared.policy.may_begin(app, now);
    let window = (open == Ok(false)).then(|| tiphys_model::time::after(now, WINDOW_LOOK));
    let auto = automated(app, compared, open == Ok(true), settings, now);
    conditions.extend(open.err().map(|fault| Condition::new(ConditionType::InvalidSpecError, fault)));
    conditions.extend(holds(app, compared));
    let mut at = earliest(window, compared.first_hold_end());
    let mut reverted = Vec::new();
    match &auto {
        AutoSync::Start(operation) => {
            reverted = reverted_changes::reverted(operation, &compared.comparison, &compared.live);
        }
        AutoSync::Held(until, condition) => {
            at = earliest(at, Some(*until));
            conditions.push(condition.clone());
        }
        AutoSync::Refused(condition) => conditions.push(condition.clone()),
        AutoSync::Later(until, _) => at = earliest(at, Some(*until)),
        AutoSync::Nothing(_) | AutoSync::Left(_) => {}
    }
    Decision { auto, at, conditions, reverted }
}

/// What automated sync would do now.
pub(super) fn automated(
    app: &Application,
    compared: &Compared,
    window_open: bool,
    settings: &AutoSettings,
    now: Timestamp,
) -> AutoSync {
    auto_sync(
        app,
        &compared.comparison.without(&compared.left_alone()),
        Inputs { revisions: &compared.rendering.revisions, identity: &compared.rendering.identity },
        window_open,
        settings,
        now,
    )
}

impl Decision {
    /// Puts it into the Application: the operation that begins, why none does, and what it takes back.
    pub(super) fn put_into(self, app: &mut Application, report: &mut Report, now: Timestamp) {
        note_left(app, &self.auto);
        if !self.reverted.is_empty() {
            for line in &self.reverted {
                tracing::info!(app = %app.metadata.name, "self-heal takes back {line}");
            }
            let entry = json!({"at": Time::from(now), "changes": self.reverted});
            remember_reverts(&mut app.status.tiphys, entry);
            let message = format!("self-heal takes back {}", self.reverted.join("; "));
            report.events.push(Entry::normal("SelfHeal", message));
        }
        if let AutoSync::Start(operation) = self.auto {
            app.operation = Some(*operation);
        }
    }
}

/// What is left alone, and until when or why.
fn holds(app: &Application, compared: &Compared) -> Vec<Condition> {
    let kept = compared.protected.iter().map(|(key, reason)| {
        Condition::new(ConditionType::PruneProtected, format!("{key} is not pruned: {reason}"))
    });
    let orphans = compared.orphans.as_deref().unwrap_or_default();
    let orphaned = orphans::condition(compared.policy.project(), orphans);
    pause::conditions(app, &compared.paused).into_iter().chain(kept).chain(orphaned).collect()
}
