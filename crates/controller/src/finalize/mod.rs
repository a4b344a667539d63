//! What happens when an Application is deleted (Argo CD user guide, "App Deletion", "Resource Hooks"):
//! PreDelete hooks, its objects wave by wave, PostDelete hooks, the hooks' own end. The finalizers of the
//! Application say how far it came, so that an engine that is killed goes on where it stopped.

mod hooks;

use std::{sync::Arc, time::Duration};

use tiphys_cluster::{Cluster, ClusterError, Propagation};
use tiphys_model::{
    Application, Cascade, Condition, ConditionType, HookType, Time, hook, names,
    options::{DeletionPolicy, deletion_policy},
    settings::Impersonation,
};
use tiphys_value::{ObjectExt, Value, json};

use crate::{
    AppKey,
    destinations::{Absent, ConnectedCluster},
    engine::Engine,
    reconcile::{Next, own_key},
    status_writer,
};

/// How long after a deletion was refused it is asked for again.
const RETRY: Duration = Duration::from_secs(5);
/// How long an object may take to go before it is told of with what holds it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The finalizers that take the objects along.
const CASCADE: [&str; 3] =
    [names::RESOURCES_FINALIZER, names::FOREGROUND_FINALIZER, names::BACKGROUND_FINALIZER];
/// Each stage that hooks have, with its finalizer.
const HOOKS: [(HookType, &str, &str); 2] = [
    (HookType::PreDelete, names::PRE_DELETE_FINALIZER, names::PRE_DELETE_CLEANUP_FINALIZER),
    (HookType::PostDelete, names::POST_DELETE_FINALIZER, names::POST_DELETE_CLEANUP_FINALIZER),
];

/// How far a stage of a deletion came.
enum Stage {
    /// It is over.
    Done,
    /// Changes in the cluster lead back here, or time does.
    Waits(Next),
}

/// The live objects of an Application that is deleted.
#[derive(Default)]
pub(crate) struct Members {
    /// Those that its deletion takes along.
    pub going: Vec<Arc<Value>>,
    /// Those that it must not touch.
    left: Vec<Arc<Value>>,
}

impl Engine {
    /// Brings the deletion of an Application forward by one stage.
    pub(crate) async fn finalize(self: &Arc<Self>, key: &AppKey, app: &Application) -> Next {
        let has = |finalizer: &str| app.metadata.finalizers.iter().any(|held| held == finalizer);
        let all = HOOKS.iter().flat_map(|(_, run, cleanup)| [*run, *cleanup]).chain(CASCADE);
        if !all.clone().any(has) {
            return Next::default();
        }
        let place = match self.place_of(app) {
            Ok(place) => place,
            Err(Absent::Pending) => return Next::default(),
            Err(Absent::Unreachable(why)) => {
                self.report(key, app, ConditionType::DeletionError, why).await;
                return Next::default();
            }
            Err(Absent::Unknown(why)) => {
                // As Argo CD does: nobody can ever delete anything there.
                let message = format!("its objects, if there are any, are left behind: {why}");
                tracing::warn!(app = %key.name, "{message}");
                crate::events::record(&self.cache, app, "ResourcesOrphaned", &message, self.now()).await;
                self.release(key, app, &all.collect::<Vec<_>>()).await;
                return Next::default();
            }
        };
        let [(pre, before, before_end), (post, after, after_end)] = HOOKS;
        let (stage, finalizers) = if has(before) {
            (self.run_hooks(key, app, &place, pre).await, vec![before])
        } else if CASCADE.into_iter().any(has) {
            (self.delete_members(key, app, &place).await, CASCADE.to_vec())
        } else if has(after) {
            (self.run_hooks(key, app, &place, post).await, vec![after])
        } else if has(before_end) {
            (self.end_hooks(key, app, &place, pre).await, vec![before_end])
        } else {
            (self.end_hooks(key, app, &place, post).await, vec![after_end])
        };
        match stage {
            Stage::Waits(next) => next,
            Stage::Done => {
                // The change leads to the next stage.
                self.release(key, app, &finalizers).await;
                Next::default()
            }
        }
    }

    /// Deletes the objects of an Application, the highest wave first.
    async fn delete_members(
        self: &Arc<Self>,
        key: &AppKey,
        app: &Application,
        place: &ConnectedCluster,
    ) -> Stage {
        let propagation = match app.cascade() {
            Cascade::Background => Propagation::Background,
            Cascade::Foreground | Cascade::Orphan => Propagation::Foreground,
        };
        let Members { going: members, left } = match self.members(app, place) {
            Ok(members) => members,
            Err(why) => {
                self.report(key, app, ConditionType::DeletionError, why).await;
                return Stage::Waits(Next::default());
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
            self.report(key, app, ConditionType::DeletionError, message).await;
            return Stage::Waits(Next::default());
        }
        let Some(wave) = members.iter().map(|object| hook::wave(object)).max() else {
            self.tell_of_left(app, &left).await;
            return Stage::Done;
        };
        let cluster = match self.acting_to_delete(app, place) {
            Ok(cluster) => cluster,
            Err(why) => {
                self.report(key, app, ConditionType::DeletionError, why).await;
                return Stage::Waits(Next::default());
            }
        };
        let wave: Vec<&Arc<Value>> = members.iter().filter(|object| hook::wave(object) == wave).collect();
        for object in wave.iter().filter(|object| !object.is_terminating()) {
            if let Err(error) = delete(&cluster, object, propagation).await {
                let message = format!("cannot delete {}: {error}", object.resource_key());
                self.report(key, app, ConditionType::DeletionError, message).await;
                return Stage::Waits(self.again_in(RETRY));
            }
        }
        Stage::Waits(self.tell_of_held(key, app, &wave).await)
    }

    /// An Application that is gone leaves no trace of what it left behind but this.
    async fn tell_of_left(&self, app: &Application, left: &[Arc<Value>]) {
        let Some(first) = left.first() else { return };
        let more = if left.len() > 1 { format!(" and {} more", left.len() - 1) } else { String::new() };
        let message = format!(
            "{}{more} left behind: the project or the settings of resource exclusions do not let it be touched",
            first.resource_key()
        );
        tracing::warn!(app = %app.metadata.name, "{message}");
        crate::events::record(&self.cache, app, "ResourcesOrphaned", &message, self.now()).await;
    }

    /// Objects that do not go are told of with what holds them.
    async fn tell_of_held(&self, key: &AppKey, app: &Application, going: &[&Arc<Value>]) -> Next {
        let now = self.now();
        let held = going.iter().find(|object| {
            let since = object.str_at(&["metadata", "deletionTimestamp"]).and_then(Time::parse);
            since.is_some_and(|since| tiphys_model::time::elapsed(since.timestamp(), now) >= PATIENCE)
        });
        let Some(object) = held else { return self.again_in(PATIENCE) };
        let finalizers = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
        let finalizers: Vec<&str> = finalizers.into_iter().flatten().filter_map(Value::as_str).collect();
        let holder = match finalizers.as_slice() {
            [] => "what it owns is still there".to_owned(),
            some => format!("its finalizers {} are not removed by whoever set them", some.join(", ")),
        };
        let more = if going.len() > 1 { format!(" and {} more", going.len() - 1) } else { String::new() };
        let message = format!("waiting for deletion of {}{more}: {holder}", object.resource_key());
        self.report(key, app, ConditionType::Deleting, message).await;
        Next::default()
    }

    /// The cluster of an Application's objects, by requests of the one that its project wants syncs to be
    /// made as.
    ///
    /// # Errors
    /// The project has to name somebody and does not.
    pub(crate) fn acting(&self, app: &Application, place: &ConnectedCluster) -> Result<Cluster, String> {
        self.acting_by(app, place, self.installation().argo.impersonation)
    }

    /// The same for a deletion, which the engine makes itself where the project names nobody: else what
    /// cannot be synced could not be deleted either (Argo CD, controller `applyImpersonationConfig`).
    fn acting_to_delete(&self, app: &Application, place: &ConnectedCluster) -> Result<Cluster, String> {
        let impersonation = Impersonation { enforced: false, ..self.installation().argo.impersonation };
        self.acting_by(app, place, impersonation)
    }

    fn acting_by(
        &self,
        app: &Application,
        place: &ConnectedCluster,
        impersonation: Impersonation,
    ) -> Result<Cluster, String> {
        let user = self.policy_of(app)?.service_account(app, impersonation)?;
        let cluster = place.cache.cluster();
        Ok(user.map_or_else(|| cluster.clone(), |user| cluster.acting_as(&user)))
    }

    pub(crate) fn again_in(&self, wait: Duration) -> Next {
        Next { at: Some(tiphys_model::time::after(self.now(), wait)), ..Next::default() }
    }

    /// The live objects of an Application that its deletion takes along, and those that it would if its
    /// project permitted them and their kinds were not excluded.
    ///
    /// # Errors
    /// There are some, and the project that has to permit them is not known.
    pub(crate) fn members(&self, app: &Application, place: &ConnectedCluster) -> Result<Members, String> {
        let instance = app.instance_name(&self.settings.namespace);
        let mut members = place.cache.tracked_by(&instance);
        members.retain(|object| {
            let owned = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
            object.kind() != "CustomResourceDefinition"
                && !(place.is_home && object.resource_key() == own_key(app))
                && owned.is_none_or(Vec::is_empty)
                && self.settings.tracking.is_self_referencing(object)
                && policy(app, object) != DeletionPolicy::Forbidden
                && object.annotation(names::HELM_RESOURCE_POLICY) != Some("keep")
                && !HOOKS.iter().any(|(stage, ..)| hook::hook_types(object).contains(stage))
        });
        if members.is_empty() {
            return Ok(Members::default());
        }
        let (policy, installation) = (self.policy_of(app)?, self.installation());
        let (going, left) = members.into_iter().partition(|object| {
            !installation.excludes(&object.resource_key().group_kind(), &place.server)
                && policy.permit(object, !object.namespace().is_empty()).is_ok()
        });
        Ok(Members { going, left })
    }

    /// Takes finalizers of ours off.
    async fn release(&self, key: &AppKey, app: &Application, finalizers: &[&str]) {
        let held = app.metadata.finalizers.iter();
        let kept: Vec<&String> = held.filter(|held| !finalizers.contains(&held.as_str())).collect();
        self.set_finalizers(key, app, &kept).await;
    }

    /// Writes the finalizers of an Application, if nobody changed it meanwhile.
    async fn set_finalizers(&self, key: &AppKey, app: &Application, finalizers: &[&String]) {
        let patch =
            json!({"metadata": {"finalizers": finalizers, "resourceVersion": app.metadata.resource_version}});
        match status_writer::patch_application(&self.cache, key, &patch).await {
            Ok(_) => {}
            // Whoever changed it leads back here.
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => self.lost_write(key, &error),
        }
    }

    /// Puts what the deletion waits for, or why it does not get on, into the status.
    async fn report(&self, key: &AppKey, app: &Application, kind: ConditionType, message: String) {
        let message = status_writer::bounded(message);
        let known = &app.status.conditions;
        if known.len() == 1 && known[0].kind == kind && known[0].message == message {
            return;
        }
        let mut condition = Condition::new(kind, message);
        condition.last_transition_time = Some(Time::from(self.now()));
        let patch = json!({"status": {"conditions": [condition]}});
        if let Err(error) = status_writer::patch_application(&self.cache, key, &patch).await {
            self.lost_write(key, &error);
        }
    }
}

async fn delete(cluster: &Cluster, object: &Value, propagation: Propagation) -> Result<(), ClusterError> {
    let resource = cluster.resource(&object.gvk()).await?;
    let name = (object.namespace(), object.name());
    match cluster.delete(&resource, name, propagation, object.uid(), false).await {
        // Another object of that name took its place; it is not ours.
        Err(error) if error.is_conflict() => Ok(()),
        other => other.map(|_| ()),
    }
}

fn policy(app: &Application, object: &Value) -> DeletionPolicy {
    deletion_policy("Delete", object, &app.sync_options())
}
