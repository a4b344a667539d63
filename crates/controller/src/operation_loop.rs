//! Working on an operation: the planner says what, the executor does it, until there is nothing to
//! do but wait.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_cluster::Cluster;
use tiphys_model::{
    Application, ApplicationSource, ConditionType, Operation, OperationPhase, SyncOperation, SyncOptions,
    SyncStatusCode, Time, names,
};
use tiphys_sync::{Ending, SyncInput, SyncState, SyncStep, record, record_history, step, target_key};
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::{
    AppKey, Refresh,
    destinations::ConnectedCluster,
    engine::Engine,
    executor::execute,
    live_state::Kinds,
    operation_field::without_newer,
    reconcile::{Compared, Next, is_running, note_generated, own_key},
    rendering::Rendering,
    safeguards::wait_cycles,
    status_writer::{application_kind, application_resource, bounded},
};

/// How many steps one look may take; a plan that never comes to rest is given time to others.
const MAX_STEPS: usize = 200;

impl Engine {
    /// Works on the operation of an Application until it waits or ends.
    pub(crate) async fn operate(
        self: &Arc<Self>,
        key: &AppKey,
        app: &mut Application,
        compared: Option<Compared>,
        object: &Value,
        place: &Arc<ConnectedCluster>,
    ) -> Next {
        let is_new = !is_running(app);
        let mut state = match self.taken_up(key, app, compared.as_ref()) {
            Some(state) => state,
            None => return Next::default(),
        };
        if let Some(fault) = self.revision_fault(app, &state, compared.as_ref()).filter(|_| is_new) {
            self.end_unbegun(app, &mut state, fault);
            return Next::at_once();
        }
        self.take_newest(key, &mut state, compared.as_ref());
        let Some(compared) = self.desired(key, app, &state, compared, place).await else {
            self.fail_without_targets(key, app, &mut state);
            self.drop_operation_rendering(key);
            return Next::at_once();
        };
        let acting = match self.acting(app, &compared.place) {
            Ok(cluster) => cluster,
            Err(fault) => {
                self.end_unbegun(app, &mut state, fault);
                self.drop_operation_rendering(key);
                return Next::at_once();
            }
        };
        note_revisions(&mut state, &compared.rendering);
        note_namespace(&mut state, app);
        self.take_steps(key, app, state, compared, object, &acting).await
    }

    /// Plans and acts until there is nothing to do but wait.
    async fn take_steps(
        &self,
        key: &AppKey,
        app: &mut Application,
        mut state: SyncState,
        mut compared: Compared,
        object: &Value,
        acting: &Cluster,
    ) -> Next {
        let mut before = object.clone();
        for _ in 0..MAX_STEPS {
            let SyncStep { state: planned, batch, requeue_at } = self.plan(app, &state, &compared);
            state = planned;
            if state.is_completed() {
                // What the end cleans up comes before it is written: who dies in between does it again. What
                // does not succeed of it changes no verdict.
                let outcomes = execute(&compared.place.cache, acting, batch.clone()).await;
                self.metrics.acted(app, &outcomes);
                note_generated(app, &state, &compared.comparison);
                self.show_outcome(key, app, &compared).await;
            }
            if !self.persist(key, app, &state, &mut before).await {
                // What is done without a trace would be done twice after a crash.
                return Next::default();
            }
            if !state.is_completed() && has_no_operation(&before) && self.was_taken_away(key).await {
                // The next writing would bring it back.
                app.status.operation_state = None;
                self.note_taken_away(key, Some(state.shown.operation));
                self.drop_operation_rendering(key);
                return Next::at_once();
            }
            if state.is_completed() {
                self.metrics.ended(app, &state.shown);
                self.drop_operation_rendering(key);
                return Next::at_once();
            }
            if batch.is_empty() {
                return Next { at: requeue_at, ..Next::default() };
            }
            let defines_kinds =
                batch.iter().flatten().any(|action| action.gvk.kind == "CustomResourceDefinition");
            let place = compared.place.clone();
            self.keep_pruned(app, &batch, &compared.live, &place).await;
            let outcomes = execute(&place.cache, acting, batch).await;
            self.metrics.acted(app, &outcomes);
            if defines_kinds && let Err(error) = place.cache.follow_new_kinds().await {
                tracing::warn!(%error, "cannot discover new kinds");
            }
            record(&mut state, &outcomes, &self.installation().sync, self.now());
            match self.compare(app, compared.rendering.clone(), &place).await {
                Some(again) => compared = again,
                None => break,
            }
        }
        self.persist(key, app, &state, &mut before).await;
        Next::at_once()
    }

    /// Puts into the status what an operation that ends has brought about. One of another revision is
    /// compared with what the sources want now.
    async fn show_outcome(&self, key: &AppKey, app: &mut Application, compared: &Compared) {
        let Some(newest) = self.known_rendering(key).filter(|known| known.targets.is_ok()) else { return };
        let is_current = newest.has_the_targets_of(&compared.rendering);
        let again = match is_current && compared.comparison.generated.is_empty() {
            true => None,
            false => self.compare(app, newest, &compared.place).await,
        };
        self.show(app, Some(again.as_ref().unwrap_or(compared)), Refresh::LiveState);
    }

    /// The state of the operation: a new one for a request, or the one under way.
    fn taken_up(
        &self,
        key: &AppKey,
        app: &mut Application,
        compared: Option<&Compared>,
    ) -> Option<SyncState> {
        let running = app.status.operation_state.clone().filter(|state| !state.phase.is_completed());
        if let Some(running) = running {
            return Some(SyncState::from_operation_state(running));
        }
        let operation = app.operation.take()?;
        let sync = operation.sync.clone().unwrap_or_default();
        let sources = match (&sync.source, sync.sources.is_empty()) {
            (_, false) => sync.sources.clone(),
            (Some(source), true) => vec![source.clone()],
            (None, true) => app.spec.effective_sources(),
        };
        let multiple = match sync.source.is_some() {
            true => !sync.sources.is_empty(),
            false => !sync.sources.is_empty() || app.spec.has_multiple_sources(),
        };
        let newest = compared.map(|compared| compared.rendering.revisions.clone()).unwrap_or_default();
        let revisions = match (sync.revisions.is_empty(), sync.revision.is_empty()) {
            (false, _) => sync.revisions.clone(),
            (true, false) if !multiple => vec![sync.revision.clone()],
            // What they mean is found out when they are rendered.
            _ if brings_its_own(&sync) => vec![String::new(); sources.len()],
            _ => newest,
        };
        let is_newest = compared.is_some_and(|compared| compared.rendering.revisions == revisions);
        if is_newest
            && !brings_its_own(&sync)
            && let Some(compared) = compared
        {
            self.keep_operation_rendering(key, compared.rendering.clone());
        }
        Some(SyncState::begin(operation, &sources, multiple, &revisions, self.now()))
    }

    /// The next attempt of an operation whose retries refresh is one on the newest revision.
    fn take_newest(&self, key: &AppKey, state: &mut SyncState, compared: Option<&Compared>) {
        let between_attempts = state.shown.finished_at.is_some() && !state.is_completed();
        let Some(newest) = compared.map(|compared| &compared.rendering.revisions) else { return };
        let own_sources = state.shown.operation.sync.as_ref().is_some_and(brings_its_own);
        if !state.shown.operation.retry.refresh || !between_attempts || own_sources {
            return;
        }
        if let Some(sync) = &mut state.shown.operation.sync {
            sync.revision.clear();
            sync.revisions.clear();
        }
        let Some(result) = &mut state.shown.sync_result else { return };
        let is_same = match result.revisions.is_empty() {
            true => newest.first() == Some(&result.revision),
            false => *newest == result.revisions,
        };
        if is_same {
            return;
        }
        match result.revisions.is_empty() {
            true => result.revision = newest.first().cloned().unwrap_or_default(),
            false => result.revisions.clone_from(newest),
        }
        self.drop_operation_rendering(key);
    }

    /// The desired state that the operation is to bring about: that of its own revision and sources.
    async fn desired(
        self: &Arc<Self>,
        key: &AppKey,
        app: &Application,
        state: &SyncState,
        compared: Option<Compared>,
        place: &Arc<ConnectedCluster>,
    ) -> Option<Compared> {
        if !self.forbidden_sources(app, &state.shown.operation).is_empty() {
            return None;
        }
        if let Some(kept) = self.operation_rendering(key) {
            let is_current =
                compared.as_ref().is_some_and(|compared| Arc::ptr_eq(&compared.rendering, &kept));
            return if is_current { compared } else { self.compare(app, kept, place).await };
        }
        let sync = state.shown.operation.sync.clone().unwrap_or_default();
        if !sync.manifests.is_empty() {
            let rendering = self.render_given(app, sync.manifests, place).await;
            self.keep_operation_rendering(key, rendering.clone());
            return self.compare(app, rendering, place).await;
        }
        let own_sources = brings_its_own(&sync);
        let result = state.shown.sync_result.as_ref();
        let wanted = result
            .map(|r| if r.revisions.is_empty() { vec![r.revision.clone()] } else { r.revisions.clone() });
        let newest = compared.as_ref().map(|compared| compared.rendering.revisions.clone());
        if !own_sources && (wanted == newest || !self.can_render_at(app)) {
            return compared;
        }
        let wanted = pinned(app, &sync.source, &sync.sources, wanted.unwrap_or_default());
        let rendering = self.render(&wanted, place).await;
        self.keep_operation_rendering(key, rendering.clone());
        self.compare(app, rendering, place).await
    }

    /// What the project does not permit of the sources that an operation brings along.
    fn forbidden_sources(&self, app: &Application, operation: &Operation) -> Vec<String> {
        let Some(sync) = &operation.sync else { return Vec::new() };
        let sources: Vec<ApplicationSource> = sync.source.iter().chain(&sync.sources).cloned().collect();
        match self.policy_of(app) {
            Ok(policy) => policy.source_faults(&sources),
            Err(fault) => vec![fault],
        }
    }

    /// Ends the operation of an Application whose spec is not valid.
    pub(crate) fn refuse_operation(&self, key: &AppKey, app: &mut Application) {
        if let Some(mut state) = self.taken_up(key, app, None) {
            self.fail_without_targets(key, app, &mut state);
            self.drop_operation_rendering(key);
        }
    }

    /// Whether an operation is asked for that is to bring about the newest desired state of the sources.
    pub(crate) fn asks_for_newest(&self, app: &Application, in_force: Option<&Arc<Rendering>>) -> bool {
        let Some(operation) = app.operation.as_ref().filter(|_| !is_running(app)) else { return false };
        let sync = operation.sync.clone().unwrap_or_default();
        if brings_its_own(&sync) {
            return false;
        }
        let asked = if sync.revisions.is_empty() { vec![sync.revision] } else { sync.revisions };
        if asked.iter().all(String::is_empty) {
            return true;
        }
        // A working tree has nothing but its present under any other name than that of what is in force.
        !self.can_render_at(app) && in_force.is_none_or(|in_force| in_force.revisions != asked)
    }

    /// Whether an older revision can be had at all: a working tree has only its present.
    fn can_render_at(&self, app: &Application) -> bool {
        app.spec.effective_sources().iter().all(|source| self.repositories.has_revisions(&source.repo_url))
    }

    /// Why a revision that somebody asks for cannot be had.
    fn revision_fault(
        &self,
        app: &Application,
        state: &SyncState,
        compared: Option<&Compared>,
    ) -> Option<String> {
        let operation = &state.shown.operation;
        let sync = operation.sync.as_ref().filter(|_| !operation.initiated_by.automated)?;
        let own: Vec<ApplicationSource> = sync.source.iter().chain(&sync.sources).cloned().collect();
        let sources = if own.is_empty() { app.spec.effective_sources() } else { own };
        let newest = compared.map(|compared| compared.rendering.revisions.as_slice()).unwrap_or_default();
        let declared: Vec<String> =
            app.spec.effective_sources().iter().map(|source| source.revision_or_head().to_owned()).collect();
        let asked =
            if sync.revisions.is_empty() { std::slice::from_ref(&sync.revision) } else { &sync.revisions };
        sources.iter().enumerate().find_map(|(at, source)| {
            let named = asked.get(at).filter(|revision| !revision.is_empty());
            let revision = named.map_or(source.revision_or_head(), String::as_str);
            let is_present = revision == "HEAD"
                || newest.get(at).is_some_and(|newest| newest == revision)
                || declared.get(at).is_some_and(|declared| declared == revision);
            (!is_present && !self.repositories.has_revisions(&source.repo_url)).then(|| {
                format!(
                    "revision {revision} of {} cannot be had: the repository is taken as it is in the working tree",
                    source.repo_url
                )
            })
        })
    }

    fn plan(&self, app: &Application, state: &SyncState, compared: &Compared) -> SyncStep {
        let operation = &state.shown.operation;
        let options = options(app, operation);
        let faults: Vec<&str> = app
            .status
            .conditions
            .iter()
            .filter(|c| {
                // An operation on the last good state is not about what does not render now.
                let concerns = compared.rendering.targets.is_err()
                    || compared.comparison.sync == SyncStatusCode::Unknown
                    || self.settings.sync.compat;
                c.kind == ConditionType::InvalidSpecError
                    || (c.kind == ConditionType::ComparisonError && concerns)
            })
            .map(|c| c.message.as_str())
            .collect();
        let known = self.known_rendering(&AppKey::from_app(app));
        let newer = known
            .as_ref()
            .filter(|known| known.targets.is_ok() && known.revisions != compared.rendering.revisions)
            .filter(|known| !known.has_the_targets_of(&compared.rendering));
        let policy = app.spec.sync_policy.as_ref();
        let approved = app.annotation(names::DELETION_APPROVED).and_then(Time::parse);
        let kinds = Kinds(compared.place.cache.cluster().discovery());
        let installation = self.installation();
        let namespace = &app.spec.destination.namespace;
        let (mut targets, protected) = effective(operation, compared, namespace, &kinds);
        if options.is_on("RespectIgnoreDifferences") {
            for target in &mut targets {
                if let Some(live) = compared.live.get(&target_key(target, namespace, &kinds)) {
                    *target = Arc::new(installation.respect(app, target, &live.object));
                }
            }
        }
        // Only what is synced to the engine's own cluster is an Application that it knows.
        let own = compared.place.is_home.then(|| own_key(app));
        let children = targets.iter().filter(|target| target.gvk().group_kind() == application_kind());
        let children = children.map(|child| target_key(child, &app.spec.destination.namespace, &kinds));
        let passes = |child: &ResourceKey| {
            let key = AppKey { namespace: child.namespace.clone(), name: child.name.clone() };
            self.settings.pass_out_of_reach && self.is_out_of_reach(&key)
        };
        let never_await =
            own.as_ref().map(|own| wait_cycles::never_awaited(&self.cache, own, children, passes));
        let mut never_await = never_await.unwrap_or_default();
        let claims = targets.iter().filter(|target| target.kind() == "PersistentVolumeClaim");
        let claims = claims.map(|claim| (target_key(claim, namespace, &kinds), &**claim));
        never_await.extend(wait_cycles::unbound_claims(&compared.place.cache, claims));
        let input = SyncInput {
            own_key: own,
            destination_namespace: &app.spec.destination.namespace,
            targets: &targets,
            live: &compared.live,
            prunable: &compared.comparison.prunable,
            protected: &protected,
            shared: &compared.comparison.shared,
            out_of_sync: &compared.comparison.out_of_sync,
            never_await: &never_await,
            claims: &compared.comparison.claims,
            operation,
            options: &options,
            revision: compared.rendering.revision(),
            blocking_error: faults.first().copied(),
            window_open: compared.policy.may_go_on(
                app,
                operation,
                state.shown.started_at.timestamp(),
                self.now(),
            ),
            deletion_approved: approved,
            migration_manager: app.annotation(names::CLIENT_SIDE_APPLY_MIGRATION_MANAGER),
            permit: &|object, namespaced| compared.policy.permit(object, namespaced),
            kinds: &kinds,
            settings: &installation.sync,
            managed_namespace: policy.and_then(|policy| policy.managed_namespace_metadata.as_ref()),
            terminate: state.shown.phase == OperationPhase::Terminating,
            newer_revision: newer.map(|newer| newer.revision()),
            now: self.now(),
        };
        step(&input, state)
    }

    /// Writes the state of the operation before anything is done for it, so that whoever comes after a
    /// crash knows what was begun; with the end, what it adds to the history. `false` if that failed.
    async fn persist(
        &self,
        key: &AppKey,
        app: &mut Application,
        state: &SyncState,
        before: &mut Value,
    ) -> bool {
        let shown = Some(state.to_operation_state());
        if app.status.operation_state == shown {
            return true;
        }
        app.status.operation_state = shown;
        if state.is_completed() {
            record_history(app);
            // What has ended waits for nothing; the next look would say so a moment later than the end.
            app.status.conditions.retain(|condition| condition.kind != ConditionType::BlockedBy);
        }
        let written = self.write(key, before, app).await;
        if let Some(now) = self.cache.peek(&own_key(app)) {
            *before = Value::clone(&now);
        }
        if written {
            // What was asked for since is served after this one, not taken away with it.
            without_newer(before, &state.shown.operation);
        }
        written
    }

    /// Whether somebody has taken away the operation of an Application, as people do to be rid of one: asked
    /// of the API server, as what is known here may be of before it began.
    async fn was_taken_away(&self, key: &AppKey) -> bool {
        let Ok(resource) = application_resource(self.cache.cluster()).await else { return false };
        let now = self.cache.cluster().get(&resource, &key.namespace, &key.name).await;
        now.is_ok_and(|now| now.is_some_and(|app| has_no_operation(&app)))
    }

    /// An operation whose desired state cannot be known ends.
    fn fail_without_targets(&self, key: &AppKey, app: &mut Application, state: &mut SyncState) {
        let forbidden = self.forbidden_sources(app, &state.shown.operation).into_iter().next();
        let faults = app.status.conditions.iter().filter(|condition| condition.kind.is_error());
        // Its own sources say more than those of the Application.
        let own = self.operation_rendering(key);
        let own = own.and_then(|own| own.targets.as_ref().err().map(|error| format!("{error:#}")));
        let fault = forbidden.or(own).or_else(|| faults.map(|fault| fault.message.clone()).next());
        self.end_unbegun(app, state, fault.unwrap_or_else(|| "the sources do not render".to_owned()));
    }

    /// Ends an operation before anything was done for it.
    fn end_unbegun(&self, app: &mut Application, state: &mut SyncState, message: String) {
        state.shown.message = bounded(message);
        state.shown.phase = OperationPhase::Error;
        state.extension.ending = Some(Ending::Unbegun);
        state.shown.finished_at = Some(Time::from(self.now()));
        self.metrics.ended(app, &state.shown);
        app.status.operation_state = Some(state.to_operation_state());
    }
}

fn has_no_operation(app: &Value) -> bool {
    app.at(&["status", "operationState"]).is_none_or(Value::is_null)
}

/// The targets and the protected objects as an operation is to see them: an automated one leaves what is on
/// hold alone.
fn effective(
    operation: &Operation,
    compared: &Compared,
    namespace: &str,
    kinds: &Kinds,
) -> (Vec<Arc<Value>>, BTreeMap<ResourceKey, String>) {
    let mut targets = compared.comparison.targets.clone();
    let mut protected = compared.protected.clone();
    if operation.initiated_by.automated && !compared.paused.is_empty() {
        targets.retain(|target| !compared.paused.contains_key(&target_key(target, namespace, kinds)));
        let held = compared.paused.iter().map(|(key, until)| (key.clone(), format!("on hold until {until}")));
        protected.extend(held);
    }
    (targets, protected)
}

/// Whether an operation is about other sources than the Application's.
fn brings_its_own(sync: &SyncOperation) -> bool {
    sync.source.is_some() || !sync.sources.is_empty() || !sync.manifests.is_empty()
}

/// Names in the result what the revisions turned out to mean, and notes what was read of them.
fn note_revisions(state: &mut SyncState, rendering: &Rendering) {
    state.extension.inputs.clone_from(&rendering.identity);
    let Some(result) = state.shown.sync_result.as_mut().filter(|_| rendering.targets.is_ok()) else { return };
    match result.sources.is_empty() {
        true => rendering.revision().clone_into(&mut result.revision),
        false => result.revisions.clone_from(&rendering.revisions),
    }
}

/// Notes which metadata the destination namespace is given.
fn note_namespace(state: &mut SyncState, app: &Application) {
    let policy = app.spec.sync_policy.as_ref();
    let managed = policy.and_then(|policy| policy.managed_namespace_metadata.clone());
    if let Some(result) = &mut state.shown.sync_result {
        result.managed_namespace_metadata = managed;
    }
}

/// The options in force: the operation's if it has any, else the spec's.
fn options(app: &Application, operation: &Operation) -> SyncOptions {
    let own = operation.sync.as_ref().map(|sync| sync.sync_options.as_slice()).unwrap_or_default();
    if own.is_empty() { app.sync_options() } else { SyncOptions::from_list(own) }
}

/// The Application as an operation wants it: with its sources at its revisions.
fn pinned(
    app: &Application,
    source: &Option<tiphys_model::ApplicationSource>,
    sources: &[tiphys_model::ApplicationSource],
    revisions: Vec<String>,
) -> Application {
    let mut app = app.clone();
    if let Some(source) = source {
        app.spec.source = Some(source.clone());
        app.spec.sources.clear();
    }
    if !sources.is_empty() {
        app.spec.sources = sources.to_vec();
    }
    let all = if app.spec.sources.is_empty() {
        app.spec.source.as_mut_slice()
    } else {
        app.spec.sources.as_mut_slice()
    };
    for (source, revision) in all.iter_mut().zip(revisions) {
        if !revision.is_empty() {
            source.target_revision = revision;
        }
    }
    app
}
