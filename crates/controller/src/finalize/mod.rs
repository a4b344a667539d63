//! What happens when an Application is deleted (Argo CD user guide, "App Deletion", "Resource Hooks"):
//! PreDelete hooks, its objects wave by wave, PostDelete hooks, the hooks' own end. The finalizers of the
//! Application say how far it came, so that an engine that is killed goes on where it stopped.

mod hooks;
mod stage;

use std::sync::Arc;

use hooks::DeleteHooks;
pub(crate) use hooks::hook_finalizers;
use jiff::Timestamp;
use stage::{HOOKS, PATIENCE, RETRY, Stage, delete};
use tiphys_cluster::Propagation;
use tiphys_model::{
    Application, Cascade, ConditionType, Time, hook, names,
    options::{DeletionPolicy, deletion_policy},
};
use tiphys_value::{ObjectExt, Value};

use crate::{
    AppKey,
    app_state::AppMemory,
    destinations::{Absent, Clusters, ConnectedCluster},
    home::Home,
    journal::Entry,
    project_policy::Policies,
    reconcile::{
        Writer,
        render::Renderer,
        report::{Next, Report},
    },
    status_writer::own_key,
};

/// The finalizers that take the objects along.
const CASCADE: [&str; 3] =
    [names::RESOURCES_FINALIZER, names::FOREGROUND_FINALIZER, names::BACKGROUND_FINALIZER];

/// The live objects of an Application that is deleted.
#[derive(Default)]
pub(crate) struct Members {
    /// Those that its deletion takes along.
    pub going: Vec<Arc<Value>>,
    /// Those that it must not touch.
    left: Vec<Arc<Value>>,
}

/// Brings deletions forward.
pub(crate) struct Finalizer {
    home: Arc<Home>,
    clusters: Arc<Clusters>,
    policies: Arc<Policies>,
    writer: Arc<Writer>,
    hooks: DeleteHooks,
}

impl Finalizer {
    pub(crate) fn new(
        home: Arc<Home>,
        clusters: Arc<Clusters>,
        policies: Arc<Policies>,
        apps: Arc<AppMemory>,
        renderer: Arc<Renderer>,
        writer: Arc<Writer>,
    ) -> Self {
        let hooks = DeleteHooks { home: home.clone(), policies: policies.clone(), apps, renderer };
        Self { home, clusters, policies, writer, hooks }
    }

    /// Brings the deletion of an Application forward by one stage.
    pub(crate) async fn finalize(&self, key: &AppKey, app: &Application, report: &mut Report) -> Next {
        let has = |finalizer: &str| app.metadata.finalizers.iter().any(|held| held == finalizer);
        let all = HOOKS.iter().flat_map(|(_, run, cleanup)| [*run, *cleanup]).chain(CASCADE);
        if !all.clone().any(has) {
            return Next::default();
        }
        let [(pre, before, before_end), (post, after, after_end)] = HOOKS;
        let (stage, finalizers) = match self.clusters.cluster_of(app) {
            Err(Absent::Pending) => return Next::default(),
            Err(Absent::Unreachable(why)) => (Stage::fails(Next::default(), why), Vec::new()),
            Err(Absent::Unknown(why)) => {
                // As Argo CD does: nobody can ever delete anything there.
                report
                    .events
                    .push(orphaned(app, format!("its objects, if there are any, are left behind: {why}")));
                (Stage::Done, all.collect())
            }
            Ok(cluster) if has(before) => {
                (self.hooks.run(key, app, &cluster, pre, report).await, vec![before])
            }
            Ok(cluster) if CASCADE.into_iter().any(has) => {
                (self.delete_members(app, &cluster, report).await, CASCADE.to_vec())
            }
            Ok(cluster) if has(after) => {
                (self.hooks.run(key, app, &cluster, post, report).await, vec![after])
            }
            Ok(cluster) if has(before_end) => (self.hooks.end(app, &cluster, pre).await, vec![before_end]),
            Ok(cluster) => (self.hooks.end(app, &cluster, post).await, vec![after_end]),
        };
        self.writer.events(app, report).await;
        match stage {
            Stage::Waits { next, condition } => {
                if let Some(mut condition) = condition {
                    condition.last_transition_time = Some(Time::from(self.home.now()));
                    self.writer.condition(key, app, condition).await;
                }
                next
            }
            Stage::Done => {
                let held = app.metadata.finalizers.iter();
                let kept: Vec<&String> = held.filter(|held| !finalizers.contains(&held.as_str())).collect();
                // The change leads to the next stage.
                self.writer.finalizers(key, app, &kept).await;
                Next::default()
            }
        }
    }

    /// Deletes the objects of an Application, the highest wave first.
    async fn delete_members(
        &self,
        app: &Application,
        cluster: &ConnectedCluster,
        report: &mut Report,
    ) -> Stage {
        let propagation = match app.cascade() {
            Cascade::Background => Propagation::Background,
            Cascade::Foreground | Cascade::Orphan => Propagation::Foreground,
        };
        let Members { going: members, left } = match self.members(app, cluster) {
            Ok(members) => members,
            Err(why) => {
                return Stage::fails(Next::default(), why);
            }
        };
        let approved = app.annotation(names::DELETION_APPROVED).and_then(Time::parse);
        let unapproved = members.iter().find(|object| {
            policy(app, object) == DeletionPolicy::Confirm && approved < app.metadata.deletion_timestamp
        });
        if let Some(object) = unapproved {
            let message = format!(
                "{} is deleted only with an approval: set the annotation {} to the present time",
                object.resource_key(),
                names::DELETION_APPROVED
            );
            return Stage::fails(Next::default(), message);
        }
        let Some(wave) = members.iter().map(|object| hook::wave(object)).max() else {
            report.events.extend(left_behind(app, &left));
            return Stage::Done;
        };
        let cluster = match self.policies.acting_to_delete(app, cluster) {
            Ok(cluster) => cluster,
            Err(why) => {
                return Stage::fails(Next::default(), why);
            }
        };
        let wave: Vec<&Arc<Value>> = members.iter().filter(|object| hook::wave(object) == wave).collect();
        for object in wave.iter().filter(|object| !object.is_terminating()) {
            if let Err(error) = delete(&cluster, object, propagation).await {
                let message = format!("cannot delete {}: {error}", object.resource_key());
                return Stage::fails(Next::after(RETRY, self.home.now()), message);
            }
        }
        held_objects(&wave, self.home.now())
    }

    /// The live objects of an Application that its deletion takes along, and those that it would if its
    /// project permitted them and their kinds were not excluded.
    ///
    /// # Errors
    /// There are some, and the project that has to permit them is not known.
    pub(crate) fn members(&self, app: &Application, cluster: &ConnectedCluster) -> Result<Members, String> {
        let instance = app.instance_name(&self.home.settings.namespace);
        let mut members = cluster.cache.tracked_by(&instance);
        members.retain(|object| {
            object.kind() != "CustomResourceDefinition"
                && !(cluster.is_home && object.resource_key() == own_key(app))
                && object.owner_references().is_empty()
                && self.home.settings.tracking.is_self_referencing(object)
                && policy(app, object) != DeletionPolicy::Forbidden
                && object.annotation(names::HELM_RESOURCE_POLICY) != Some("keep")
                && !HOOKS.iter().any(|(stage, ..)| hook::hook_types(object).contains(stage))
        });
        if members.is_empty() {
            return Ok(Members::default());
        }
        let (policy, installation) = (self.policies.policy_of(app)?, self.home.installation());
        let (going, left) = members.into_iter().partition(|object| {
            !installation.excludes(&object.resource_key().group_kind(), &cluster.server)
                && policy.permit(object, !object.namespace().is_empty()).is_ok()
        });
        Ok(Members { going, left })
    }
}

/// What is told of objects that stay though their Application goes.
fn orphaned(app: &Application, message: String) -> Entry {
    tracing::warn!(app = %app.metadata.name, "{message}");
    Entry::normal("ResourcesOrphaned", message)
}

/// An Application that is gone leaves no trace of what it left behind but this.
fn left_behind(app: &Application, left: &[Arc<Value>]) -> Option<Entry> {
    let first = left.first()?;
    let more = if left.len() > 1 { format!(" and {} more", left.len() - 1) } else { String::new() };
    let message = format!(
        "{}{more} left behind: the project or the settings of resource exclusions do not let it be touched",
        first.resource_key()
    );
    Some(orphaned(app, message))
}

/// Objects that do not go are told of with what holds them.
fn held_objects(going: &[&Arc<Value>], now: Timestamp) -> Stage {
    let held = going.iter().find(|object| {
        let since = object.str_at(&["metadata", "deletionTimestamp"]).and_then(Time::parse);
        since.is_some_and(|since| tiphys_model::time::elapsed(since.timestamp(), now) >= PATIENCE)
    });
    let Some(object) = held else { return Stage::waits(Next::after(PATIENCE, now)) };
    let finalizers = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    let finalizers: Vec<&str> = finalizers.into_iter().flatten().filter_map(Value::as_str).collect();
    let holder = match finalizers.as_slice() {
        [] => "what it owns is still there".to_owned(),
        some => format!("its finalizers {} are not removed by whoever set them", some.join(", ")),
    };
    let more = if going.len() > 1 { format!(" and {} more", going.len() - 1) } else { String::new() };
    let message = format!("waiting for deletion of {}{more}: {holder}", object.resource_key());
    Stage::waits_for(Next::default(), ConditionType::Deleting, message)
}

fn policy(app: &Application, object: &Value) -> DeletionPolicy {
    deletion_policy("Delete", object, &app.sync_options())
}
