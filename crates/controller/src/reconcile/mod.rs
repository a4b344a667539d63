//! The way of an Application from Git to its status, and the only place where all of it is seen:
//!
//! 1. `observe`: what is there, and what is asked of the engine;
//! 2. `render`: what the sources want (`idle` where nothing has to be looked at);
//! 3. `compare`: that beside the live state;
//! 4. `decide`: whether automated sync begins an operation;
//! 5. `operation`, `step`, `apply`: an operation is taken up, planned step by step, and carried out;
//! 6. `status`: what the status says of it;
//! 7. `write`: the status and all else that the look leads to (`report`).
//!
//! Stages take values and give values. What an Application was found to be is remembered between two looks by
//! `app_state`.

mod apply;
pub(crate) mod compare;
mod decide;
mod idle;
mod observe;
mod operation;
pub(crate) mod render;
pub(crate) mod report;
mod shadow;
pub(crate) mod status;
mod step;
mod write;

use std::sync::Arc;

pub(crate) use apply::Operator;
use decide::decide;
use observe::{AskedRefresh, Observed, level_of, observe, take_refresh};
use report::{Next, PANIC_PAUSE, Report, earliest, panic_message};
use status::{is_at_rest, set_conditions, set_unknown, show};
use tiphys_model::{Application, Condition, ConditionType, SyncStatusCode};
use tiphys_value::{ObjectExt, Value};
pub(crate) use write::Writer;

use crate::{
    AppKey, Refresh,
    destinations::Absent,
    engine::Engine,
    finalize::hook_finalizers,
    journal::Entry,
    operation_field::{end_withdrawn, is_running, without_running},
    safeguards::{blockers, competing_engines::Verdict},
};

impl Engine {
    /// Reconciles an Application once.
    pub(crate) async fn reconcile(&self, key: &AppKey, level: Refresh) -> Next {
        let mut report = Report::default();
        let next = match level == Refresh::Poll && self.is_unmoved(key, &mut report).await {
            true => Next::default(),
            false => self.reconcile_moved(key, level, &mut report).await,
        };
        self.writer.requeue(&mut report);
        next
    }

    async fn is_unmoved(&self, key: &AppKey, report: &mut Report) -> bool {
        let Self { home, sources, apps, renderer, .. } = self;
        idle::is_unmoved(key, home, sources, apps, renderer, report).await
    }

    /// Reconciles an Application of which something may have changed.
    async fn reconcile_moved(&self, key: &AppKey, level: Refresh, report: &mut Report) -> Next {
        self.apps.mark_idle(key, None);
        let shadow = self.home.settings.shadow.as_ref();
        let (object, mut app) = match observe(&self.home, key) {
            Observed::NotOurs => {
                self.apps.forget(key);
                return Next::default();
            }
            Observed::Skipped => return Next::default(),
            Observed::Unreadable { fault, .. } if shadow.is_some() => {
                tracing::warn!(app = %key.name, error = %fault, "cannot be read");
                return Next::default();
            }
            Observed::Unreadable { object, fault } => {
                self.writer.unknown(key, &object, ConditionType::InvalidSpecError, &fault).await;
                return Next::default();
            }
            Observed::App { object, app } => (object, *app),
        };
        if let Some(shadow) = shadow {
            if let Some(decision) = shadow::decision_about(self, key, app, level, report).await {
                shadow.record(key, decision);
            }
            self.apps.mark_seen(key);
            return Next::default();
        }
        if let Some(next) = self.leave_to_rival(key, &mut app, &object, report).await {
            self.apps.mark_seen(key);
            return next;
        }
        if app.is_terminating() {
            return self.finalizer.finalize(key, &app, report).await;
        }
        if matches!(self.clusters.cluster_of(&app), Err(Absent::Pending)) {
            // How the attempt to connect ends leads back here.
            return Next::default();
        }
        let asked = take_refresh(&mut app);
        if asked == AskedRefresh::Normal {
            self.ask_anew(key, &app);
        }
        let level = level_of(level, asked, self.renderer.is_set_aside(key));
        if let Some(gone) = self.apps.taken_away(key)
            && end_withdrawn(&mut app, &gone)
        {
            self.apps.note_taken_away(key, None);
        }
        without_running(&mut app);
        if app.operation.is_some() && !is_running(&app) {
            self.ask_anew(key, &app);
        }
        let mut before = object;
        let mut next = self.bring_forward(key, &mut app, level, &mut before, report).await;
        next.is_under_way = is_running(&app);
        let written = self.writer.status(key, &before, &app, report).await;
        self.apps.mark_seen(key);
        if written && !next.again && is_at_rest(&app) {
            let now = self.home.cache.peek(&key.of_application());
            self.apps.mark_idle(key, now.as_ref().map(|object| object.resource_version()));
        }
        next
    }

    /// Compares, decides about automated sync, and works on the operation if there is one. `before` is what
    /// was written last.
    async fn bring_forward(
        &self,
        key: &AppKey,
        app: &mut Application,
        level: Refresh,
        before: &mut Arc<Value>,
        report: &mut Report,
    ) -> Next {
        let faults = self.policies.spec_faults(app);
        if !faults.is_empty() {
            return self.refuse_spec(key, app, faults, report);
        }
        let cluster = match self.clusters.cluster_of(app) {
            Ok(cluster) => cluster,
            Err(absent) => return self.wait_for_cluster(app, absent),
        };
        let rendering = self.renderer.rendering(key, app, level, &cluster, report).await;
        let compared = self.comparer.compare_in_force(key, app, &rendering, &cluster).await;
        if let Ok(targets) = &rendering.targets
            && let Some(finalizers) = hook_finalizers(app, &targets.get())
        {
            self.writer.finalizers(key, app, &finalizers).await;
        }
        report.looks.extend(self.renderer.next_poll(key, &rendering));
        // Who read what was seen to have moved need not wait for the end of this look.
        self.writer.requeue(report);
        let Self { home, .. } = self;
        show(app, compared.as_ref(), level, &home.settings.namespace, home.now());
        let mut next = Next::default();
        let mut conditions = Vec::new();
        if let Err(error) = &rendering.targets {
            app.status.sync.status = SyncStatusCode::Unknown;
            conditions.push(Condition::new(ConditionType::ComparisonError, format!("{error:#}")));
        }
        if let Some(compared) = &compared {
            let mut decision = decide(app, compared, &home.installation().auto, home.now());
            next.at = decision.at;
            conditions.append(&mut decision.conditions);
            decision.put_into(app, report, home.now());
        }
        let state = app.status.operation_state.as_ref();
        conditions.extend(blockers::conditions(&cluster.cache, &home.settings.tracking, state));
        set_conditions(app, conditions, home.now());
        if app.operation.is_some() || is_running(app) {
            // What is in force is not what somebody means who asks for the newest.
            let in_force = compared.as_ref().map(|compared| &*compared.rendering);
            let can_render_at = || self.sources.have_revisions(app);
            let is_meant =
                rendering.targets.is_ok() || !operation::asks_for_newest(app, in_force, can_render_at);
            let compared = compared.filter(|_| is_meant);
            let worked = self.operator.operate(key, app, compared, before, &cluster, report).await;
            next.at = earliest(next.at, worked.at);
            next.again |= worked.again;
        }
        next
    }

    /// An Application whose spec is not valid: nothing is done for it, and whoever asks for an operation is
    /// told.
    fn refuse_spec(
        &self,
        key: &AppKey,
        app: &mut Application,
        faults: Vec<String>,
        report: &mut Report,
    ) -> Next {
        let invalid = |fault| Condition::new(ConditionType::InvalidSpecError, fault);
        set_unknown(app, self.home.now());
        set_conditions(app, faults.into_iter().map(invalid).collect(), self.home.now());
        self.operator.refuse(key, app, report);
        Next::default()
    }

    /// The state of an Application whose cluster does not answer: nothing is known, and nothing is done until
    /// it does. An operation stays as it is.
    fn wait_for_cluster(&self, app: &mut Application, absent: Absent) -> Next {
        if let Absent::Unreachable(why) | Absent::Unknown(why) = absent {
            set_unknown(app, self.home.now());
            if let Some(state) =
                app.status.operation_state.as_mut().filter(|state| !state.phase.is_completed())
            {
                state.message = format!("waiting for the cluster: {why}");
            }
            let condition = Condition::new(ConditionType::ComparisonError, why);
            set_conditions(app, vec![condition], self.home.now());
        }
        Next::default()
    }

    /// Leaves an Application alone that another engine works on, and says so; `None` if there is no other.
    async fn leave_to_rival(
        &self,
        key: &AppKey,
        app: &mut Application,
        object: &Value,
        report: &mut Report,
    ) -> Option<Next> {
        let rival = self.apps.rival(key)?;
        match rival.verdict() {
            Verdict::Gone => {
                self.apps.set_rival(key, None);
                None
            }
            Verdict::LeaveAlone { again_in, message } => {
                if let Some(message) = message {
                    self.apps.set_rival(key, Some(rival.reported()));
                    tracing::error!(app = %key.name, "{message}");
                    report.events.push(Entry::normal("OtherEngine", message.clone()));
                    let condition = Condition::new(ConditionType::OtherEngine, message);
                    set_conditions(app, vec![condition], self.home.now());
                    self.writer.status(key, object, app, report).await;
                }
                Some(Next::after(again_in, self.home.now()))
            }
        }
    }

    /// Who asks for a look means now: what is known of the sources does not count.
    fn ask_anew(&self, key: &AppKey, app: &Application) {
        if self.apps.ask_anew(key) {
            self.sources.expire(app);
        }
    }

    /// What follows a look that ended in a fault of the engine's own: the Application says so, and is looked
    /// at again later.
    pub(crate) async fn after_panic(&self, key: &AppKey, panic: &str) -> Next {
        tracing::error!(app = %key.name, panic, "a fault of the engine ended the look at an Application; it is tried again");
        // An engine that only watches writes nothing, not even this.
        let object = self.home.cache.get(&key.of_application());
        if let Some(object) = object.filter(|_| self.home.settings.shadow.is_none()) {
            let fault = panic_message(panic);
            self.writer.unknown(key, &object, ConditionType::UnknownError, &fault).await;
        }
        Next::after(PANIC_PAUSE, self.home.now())
    }
}
