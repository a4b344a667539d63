//! Deleting what belongs to a deleted Application (Argo CD user guide, "App Deletion").

use std::sync::Arc;

use tiphys_cluster::Propagation;
use tiphys_model::{
    Application, Cascade, Condition, ConditionType, Time, hook, names,
    options::{DeletionPolicy, deletion_policy},
};
use tiphys_value::{ObjectExt, Value, json};

use crate::{
    AppKey,
    controller::Inner,
    reconcile::{Next, own_key},
    status,
};

/// How long after a deletion was refused it is asked for again.
const RETRY: std::time::Duration = std::time::Duration::from_secs(5);

impl Inner {
    /// Deletes the objects of an Application, the highest wave first, and then lets it go.
    pub(crate) async fn finalize(self: &Arc<Self>, key: &AppKey, app: &Application) -> Next {
        let propagation = match app.cascade() {
            Cascade::Orphan => return Next::default(),
            Cascade::Foreground => Propagation::Foreground,
            Cascade::Background => Propagation::Background,
        };
        let members = self.members(app);
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
            self.report(key, message).await;
            return Next::default();
        }
        let Some(wave) = members.iter().map(|object| hook::wave(object)).max() else {
            self.release(key, app).await;
            return Next::default();
        };
        let due = members.iter().filter(|object| hook::wave(object) == wave && !object.is_terminating());
        for object in due {
            if let Err(error) = self.delete(object, propagation).await {
                self.report(key, format!("cannot delete {}: {error}", object.resource_key())).await;
                return Next { at: Some(tiphys_model::time::after(self.now(), RETRY)), again: false };
            }
        }
        // Changes of the objects lead back here.
        Next::default()
    }

    /// The live objects of an Application that its deletion takes along.
    pub(crate) fn members(&self, app: &Application) -> Vec<Arc<Value>> {
        let instance = app.instance_name(&self.settings.namespace);
        let mut members = self.cache.marked(&instance);
        members.retain(|object| {
            let owned = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
            object.kind() != "CustomResourceDefinition"
                && object.resource_key() != own_key(app)
                && owned.is_none_or(Vec::is_empty)
                && self.settings.tracking.is_self_referencing(object)
                && policy(app, object) != DeletionPolicy::Forbidden
                && object.annotation(names::HELM_RESOURCE_POLICY) != Some("keep")
        });
        members
    }

    async fn delete(
        &self,
        object: &Value,
        propagation: Propagation,
    ) -> Result<(), tiphys_cluster::ClusterError> {
        let cluster = self.cache.cluster();
        let resource = cluster.resource(&object.gvk()).await?;
        let name = (object.namespace(), object.name());
        match cluster.delete(&resource, name, propagation, object.uid(), false).await {
            // Another object of that name took its place; it is not ours.
            Err(error) if error.is_conflict() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Takes our finalizers off.
    async fn release(&self, key: &AppKey, app: &Application) {
        let ours = [
            names::RESOURCES_FINALIZER,
            names::FOREGROUND_FINALIZER,
            names::BACKGROUND_FINALIZER,
            names::PRE_DELETE_FINALIZER,
            names::PRE_DELETE_CLEANUP_FINALIZER,
            names::POST_DELETE_FINALIZER,
            names::POST_DELETE_CLEANUP_FINALIZER,
        ];
        let kept: Vec<&String> =
            app.metadata.finalizers.iter().filter(|f| !ours.contains(&f.as_str())).collect();
        let patch =
            json!({"metadata": {"finalizers": kept, "resourceVersion": app.metadata.resource_version}});
        match status::patch_application(&self.cache, key, &patch).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => tracing::warn!(app = %key.name, %error, "cannot remove the finalizers"),
        }
    }

    async fn report(&self, key: &AppKey, message: String) {
        let condition = Condition::new(ConditionType::DeletionError, message);
        let patch = json!({"status": {"conditions": [condition]}});
        if let Err(error) = status::patch_application(&self.cache, key, &patch).await {
            tracing::warn!(app = %key.name, %error, "cannot write the status");
        }
    }
}

fn policy(app: &Application, object: &Value) -> DeletionPolicy {
    deletion_policy("Delete", object, &app.sync_options())
}
