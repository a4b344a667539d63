//! AppProjects that are deleted: one with a finalizer stays until no Application refers to it any more (Argo
//! CD docs, "Projects"; controller `finalizeProjectDeletion`).

use std::{sync::Arc, time::Duration};

use tiphys_cluster::{Change, ClusterError, PatchType};
use tiphys_model::{AppProject, names};
use tiphys_value::{ObjectExt, Value, json};
use tokio::sync::Notify;

use crate::{
    home::Home,
    project_objects::{project_kind, project_name},
    replicas::does_exclusive_work,
    sets::finalizers_of,
    status_writer::{FIELD_MANAGER, application_kind},
};

/// How long after a finalizer could not be removed it is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// Lets deleted projects go as soon as nobody refers to them.
pub(crate) async fn follow_projects(home: Arc<Home>, may_be_free: Arc<Notify>) {
    loop {
        while !release_projects(&home).await {
            tokio::time::sleep(RETRY).await;
        }
        may_be_free.notified().await;
    }
}

/// Whether after a change a deleted project may be free to go.
pub(crate) fn may_free(change: &Change) -> bool {
    let kind = change.key.group_kind();
    if kind == project_kind() {
        return change.new.as_ref().is_some_and(|new| is_held(new));
    }
    let project = |object: &Option<Arc<Value>>| object.as_deref().map(project_name).map(str::to_owned);
    kind == application_kind() && change.old.is_some() && project(&change.old) != project(&change.new)
}

/// Whether a project is being deleted and waits for its finalizer.
fn is_held(project: &Value) -> bool {
    project.is_terminating() && finalizers_of(project).iter().any(|held| held == names::RESOURCES_FINALIZER)
}

/// Takes the finalizer of every deleted project that no Application refers to; `false` if one could not
/// be taken.
async fn release_projects(home: &Home) -> bool {
    if home.settings.shadow.is_some() || !does_exclusive_work(&home.settings) {
        return true;
    }
    let mut is_done = true;
    let projects = home.cache.of_kind(&project_kind());
    let own = projects.iter().filter(|project| project.namespace() == home.settings.namespace);
    for project in own.filter(|project| is_held(project) && !is_referred_to(home, project)) {
        match release_project(home, project).await {
            Ok(()) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                tracing::warn!(project = project.name(), %error, "cannot remove the finalizer; it is tried again");
                is_done = false;
            }
        }
    }
    is_done
}

/// Whether an Application that may be in a project is.
fn is_referred_to(home: &Home, project: &Value) -> bool {
    let installation = home.installation();
    let rules = AppProject::from_value(project).ok();
    home.cache.each_of(&application_kind()).any(|app| {
        let namespace = app.namespace();
        let may_be_in = |rules: &AppProject| rules.permits_app_namespace(namespace, &home.settings.namespace);
        project_name(&app) == project.name()
            && installation.serves(namespace, &home.settings)
            && rules.as_ref().is_none_or(may_be_in)
    })
}

async fn release_project(home: &Home, project: &Value) -> Result<(), ClusterError> {
    let mut kept = finalizers_of(project);
    kept.retain(|held| held != names::RESOURCES_FINALIZER);
    let patch = json!({"metadata": {"finalizers": kept, "resourceVersion": project.resource_version()}});
    let cluster = home.cache.cluster();
    let resource = cluster.resource(&project.gvk()).await?;
    let name = (project.namespace(), project.name());
    cluster.patch(&resource, name, "", PatchType::Merge, &patch, FIELD_MANAGER).await.map(drop)
}
