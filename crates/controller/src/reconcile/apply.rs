//! Working on an operation: the planner says what, the executor does it, until there is nothing to
//! do but wait. Each step is written before it is done.

use std::sync::Arc;

use tiphys_cluster::Cluster;
use tiphys_model::{Application, ConditionType};
use tiphys_sync::{SyncState, SyncStep, record, record_history};
use tiphys_value::{ObjectExt, Value};

use super::{
    compare::{Compared, Comparer},
    operation::{
        self, Wanted, end_unbegun, fault_without_targets, note_namespace, note_revisions, own_sources,
        revision_fault, take_newest, take_up,
    },
    render::Renderer,
    report::{Next, Report},
    status::{note_generated, show},
    step::plan,
    write::Writer,
};
use crate::{
    AppKey, Refresh,
    app_state::AppMemory,
    destinations::ConnectedCluster,
    executor::execute,
    home::Home,
    metrics::Count,
    operation_field::{is_running, without_newer},
    project_policy::Policies,
    sources::Sources,
    status_writer::{application_resource, own_key},
    tombstones::keep_pruned,
};

/// How many steps one look may take; a plan that never comes to rest is given time to others.
const MAX_STEPS: usize = 200;

/// Works on operations.
pub(crate) struct Operator {
    pub home: Arc<Home>,
    pub sources: Arc<Sources>,
    pub policies: Arc<Policies>,
    pub apps: Arc<AppMemory>,
    pub renderer: Arc<Renderer>,
    pub comparer: Arc<Comparer>,
    pub writer: Arc<Writer>,
}

impl Operator {
    /// Works on the operation of an Application until it waits or ends.
    pub(crate) async fn operate(
        &self,
        key: &AppKey,
        app: &mut Application,
        compared: Option<Compared>,
        before: &mut Arc<Value>,
        cluster: &Arc<ConnectedCluster>,
        report: &mut Report,
    ) -> Next {
        let is_new = !is_running(app);
        let newest = compared.as_ref().map(|compared| compared.rendering.revisions.clone());
        let Some(taken) = take_up(app, newest.as_ref(), self.home.now()) else { return Next::default() };
        if let Some(compared) = compared.as_ref().filter(|_| taken.is_newest) {
            self.apps.keep_operation_rendering(key, compared.rendering.clone());
        }
        let mut state = taken.state;
        let has_revisions = |url: &str| self.sources.repositories.has_revisions(url);
        let newest_or_none = newest.as_deref().unwrap_or_default();
        if is_new && let Some(fault) = revision_fault(app, &state, newest_or_none, &has_revisions) {
            report.counts.push(end_unbegun(app, &mut state, fault, self.home.now()));
            return Next::at_once();
        }
        if take_newest(&mut state, newest.as_ref()) {
            self.apps.drop_operation_rendering(key);
        }
        let Some(compared) = self.desired(key, app, &state, compared, cluster, report).await else {
            self.fail_without_targets(key, app, &mut state, report);
            return Next::at_once();
        };
        let acting = match self.policies.acting(app, &compared.cluster) {
            Ok(cluster) => cluster,
            Err(fault) => {
                report.counts.push(end_unbegun(app, &mut state, fault, self.home.now()));
                self.apps.drop_operation_rendering(key);
                return Next::at_once();
            }
        };
        note_revisions(&mut state, &compared.rendering);
        note_namespace(&mut state, app);
        self.take_steps(app, state, compared, before, &acting, report).await
    }

    /// Plans and acts until there is nothing to do but wait.
    async fn take_steps(
        &self,
        app: &mut Application,
        mut state: SyncState,
        mut compared: Compared,
        before: &mut Arc<Value>,
        acting: &Cluster,
        report: &mut Report,
    ) -> Next {
        let key = &AppKey::from_app(app);
        let is_out_of_reach = |key: &AppKey| self.apps.is_out_of_reach(key);
        for _ in 0..MAX_STEPS {
            let newest = self.apps.known_rendering(key);
            let SyncStep { state: planned, batch, requeue_at } =
                plan(&self.home, app, &state, &compared, newest.as_deref(), &is_out_of_reach);
            state = planned;
            if state.is_completed() {
                // What the end cleans up comes before it is written: who dies in between does it again. What
                // does not succeed of it changes no verdict.
                let outcomes = execute(&compared.cluster.cache, acting, batch.clone()).await;
                report.counts.extend(Count::requests(app, &outcomes));
                note_generated(app, &state, &compared.comparison);
                self.show_outcome(key, app, &compared).await;
            }
            if !self.persist(key, app, &state, before, report).await {
                // What is done without a trace would be done twice after a crash.
                return Next::default();
            }
            if !state.is_completed() && has_no_operation(before) && self.was_taken_away(key).await {
                // The next writing would bring it back.
                app.status.operation_state = None;
                self.apps.note_taken_away(key, Some(state.shown.operation));
                self.apps.drop_operation_rendering(key);
                return Next::at_once();
            }
            if state.is_completed() {
                report.counts.push(Count::sync(app, &state.shown));
                self.apps.drop_operation_rendering(key);
                return Next::at_once();
            }
            if batch.is_empty() {
                return Next { at: requeue_at, ..Next::default() };
            }
            let defines_kinds =
                batch.iter().flatten().any(|action| action.gvk.kind == "CustomResourceDefinition");
            let cluster = compared.cluster.clone();
            keep_pruned(&self.home, app, &batch, &compared.live, &cluster).await;
            let outcomes = execute(&cluster.cache, acting, batch).await;
            report.counts.extend(Count::requests(app, &outcomes));
            if defines_kinds && let Err(error) = cluster.cache.follow_new_kinds().await {
                tracing::warn!(%error, "cannot discover new kinds");
            }
            record(&mut state, &outcomes, &self.home.installation().sync, self.home.now());
            match self.comparer.compare(app, compared.rendering.clone(), &cluster).await {
                Some(again) => compared = again,
                None => break,
            }
        }
        self.persist(key, app, &state, before, report).await;
        Next::at_once()
    }

    /// Puts into the status what an operation that ends has brought about. One of another revision is
    /// compared with what the sources want now.
    async fn show_outcome(&self, key: &AppKey, app: &mut Application, compared: &Compared) {
        let Some(newest) = self.apps.known_rendering(key).filter(|known| known.targets.is_ok()) else {
            return;
        };
        let is_current = newest.has_the_targets_of(&compared.rendering);
        let again = match is_current && compared.comparison.generated.is_empty() {
            true => None,
            false => self.comparer.compare(app, newest, &compared.cluster).await,
        };
        let compared = Some(again.as_ref().unwrap_or(compared));
        show(app, compared, Refresh::LiveState, &self.home.settings.namespace, self.home.now());
    }

    /// The desired state that the operation is to bring about: that of its own revision and sources.
    async fn desired(
        &self,
        key: &AppKey,
        app: &Application,
        state: &SyncState,
        compared: Option<Compared>,
        cluster: &Arc<ConnectedCluster>,
        report: &mut Report,
    ) -> Option<Compared> {
        if !self.forbidden_sources(app, state).is_empty() {
            return None;
        }
        if let Some(kept) = self.apps.operation_rendering(key) {
            let is_current =
                compared.as_ref().is_some_and(|compared| Arc::ptr_eq(&compared.rendering, &kept));
            return if is_current { compared } else { self.comparer.compare(app, kept, cluster).await };
        }
        let newest = compared.as_ref().map(|compared| &compared.rendering.revisions);
        let rendering = match operation::wanted_state(app, state, newest, || self.sources.have_revisions(app))
        {
            Wanted::InForce => return compared,
            Wanted::Manifests(manifests) => self.renderer.render_given(app, manifests, cluster).await,
            Wanted::Rendered(wanted) => self.renderer.render(&wanted, cluster, report).await,
        };
        let rendering = Arc::new(rendering);
        self.apps.keep_operation_rendering(key, rendering.clone());
        self.comparer.compare(app, rendering, cluster).await
    }

    /// What the project does not permit of the sources that an operation brings along.
    fn forbidden_sources(&self, app: &Application, state: &SyncState) -> Vec<String> {
        let operation = &state.shown.operation;
        if operation.sync.is_none() {
            return Vec::new();
        }
        match self.policies.policy_of(app) {
            Ok(policy) => policy.source_faults(&own_sources(operation)),
            Err(fault) => vec![fault],
        }
    }

    /// Ends the operation of an Application whose spec is not valid.
    pub(crate) fn refuse(&self, key: &AppKey, app: &mut Application, report: &mut Report) {
        if let Some(mut taken) = take_up(app, None, self.home.now()) {
            self.fail_without_targets(key, app, &mut taken.state, report);
        }
    }

    /// An operation whose desired state cannot be known ends.
    fn fail_without_targets(
        &self,
        key: &AppKey,
        app: &mut Application,
        state: &mut SyncState,
        report: &mut Report,
    ) {
        let own = self.apps.operation_rendering(key);
        let fault = fault_without_targets(app, self.forbidden_sources(app, state), own.as_deref());
        report.counts.push(end_unbegun(app, state, fault, self.home.now()));
        self.apps.drop_operation_rendering(key);
    }

    /// Writes the state of the operation before anything is done for it, so that whoever comes after a
    /// crash knows what was begun; with the end, what it adds to the history. `false` if that failed.
    async fn persist(
        &self,
        key: &AppKey,
        app: &mut Application,
        state: &SyncState,
        before: &mut Arc<Value>,
        report: &mut Report,
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
        let written = self.writer.status(key, before, app, report).await;
        if let Some(now) = self.home.cache.peek(&own_key(app)) {
            *before = now;
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
        let cluster = self.home.cache.cluster();
        let Ok(resource) = application_resource(cluster).await else { return false };
        let now = cluster.get(&resource, &key.namespace, &key.name).await;
        now.is_ok_and(|now| now.is_some_and(|app| has_no_operation(&app)))
    }
}

fn has_no_operation(app: &Value) -> bool {
    app.at(&["status", "operationState"]).is_none_or(Value::is_null)
}
