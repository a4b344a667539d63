//! Sync windows, before somebody waits for an operation that none of them lets begin.

use anyhow::bail;
use jiff::Timestamp;
use tiphys_cluster::ClusterError;
use tiphys_model::{
    AppProject, Application, names,
    window::{SyncAttempt, SyncWindow, permits},
};
use tiphys_value::GroupVersionKind;

use super::session::{AppId, Session};

/// Refuses a sync that somebody asks for while the windows of the project are closed, as Argo CD's API server
/// does.
///
/// # Errors
/// They are closed, or cannot be read.
pub(crate) async fn check_open(session: &Session, id: &AppId) -> anyhow::Result<()> {
    let app = Application::from_value(&session.get(id).await?)?;
    let kind = GroupVersionKind::from_api_version(names::API_VERSION, "AppProject");
    let resource = session.cluster.resource(&kind).await?;
    let project = match session.cluster.get(&resource, &session.namespace, app.project()).await {
        Ok(Some(project)) => AppProject::from_value(&project)?,
        // The engine says what is wrong with it.
        Ok(None) | Err(ClusterError::Api { code: 403, .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    match closed(&project, &app, Timestamp::now()) {
        Some(why) => bail!("cannot sync {id}: {why}"),
        None => Ok(()),
    }
}

/// Why the windows of a project do not let a person sync an Application at an instant.
fn closed(project: &AppProject, app: &Application, now: Timestamp) -> Option<String> {
    let (windows, name) = (&project.spec.sync_windows, &project.metadata.name);
    match permits(windows, app, SyncAttempt { manual: true, started_at: None }, now) {
        Ok(true) => None,
        Ok(false) => {
            let shown: Vec<String> =
                windows.iter().filter(|window| window.concerns(app)).map(window_summary).collect();
            Some(format!(
                "the sync windows of project {name} are closed ({}); with manualSync: true they let people pass",
                shown.join("; ")
            ))
        }
        Err(why) => Some(format!("the sync windows of project {name} cannot be read: {why}")),
    }
}

fn window_summary(window: &SyncWindow) -> String {
    let zone = if window.time_zone.is_empty() { "UTC" } else { &window.time_zone };
    let note = if window.has_unknown_zone() { ", which nobody knows: UTC is taken" } else { "" };
    format!("{} {:?} for {} in {zone}{note}", window.kind, window.schedule, window.duration)
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    #[test]
    fn a_window_that_is_closed_is_named() {
        let project = |manual: bool| {
            AppProject::from_value(&json!({"apiVersion": names::API_VERSION, "kind": "AppProject",
                "metadata": {"name": "team"}, "spec": {"syncWindows": [
                    {"kind": "deny", "schedule": "0 12 * * *", "duration": "1h", "applications": ["*"],
                     "manualSync": manual, "timeZone": "Mars/Base"}]}}))
            .unwrap()
        };
        let app = Application::from_value(&json!({"apiVersion": names::API_VERSION, "kind": "Application",
            "metadata": {"name": "shop"}, "spec": {"project": "team"}}))
        .unwrap();
        let noon: Timestamp = "2026-01-01T12:30:00Z".parse().unwrap();
        let later: Timestamp = "2026-01-01T14:00:00Z".parse().unwrap();
        let why = closed(&project(false), &app, noon).unwrap();
        assert!(
            why.contains("project team are closed (deny \"0 12 * * *\" for 1h in Mars/Base, which nobody"),
            "{why}"
        );
        assert_eq!(closed(&project(true), &app, noon), None);
        assert_eq!(closed(&project(false), &app, later), None);
    }
}
