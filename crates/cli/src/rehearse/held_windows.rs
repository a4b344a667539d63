//! Applications that a sync window holds back: virtual time passes until it lets them.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_model::{
    AppProject, Application, SyncStatusCode, names,
    window::{SyncAttempt, permits},
};
use tiphys_value::ObjectExt;

/// How far apart the times are that are asked for: schedules know minutes.
const STEP: SignedDuration = SignedDuration::from_mins(1);

/// How long until a window lets an Application synchronise that it holds back now; `None` if there is none, or
/// no window does within that time.
pub(super) fn next_opening(snapshot: &Snapshot, now: Timestamp, within: Duration) -> Option<Duration> {
    let applications = snapshot.list(&ResourceId::new(names::GROUP, "applications"), None);
    let held = applications.filter_map(|object| {
        let app = Application::from_value(object.value()).ok()?;
        let waits = app.status.sync.status == SyncStatusCode::OutOfSync && app.automated_policy().is_some();
        let project = if app.spec.project.is_empty() { "default" } else { &app.spec.project };
        let id = ResourceId::new(names::GROUP, "appprojects");
        let project = snapshot.get(&id, object.value().namespace(), project).filter(|_| waits)?;
        let windows = AppProject::from_value(project.value()).ok()?.spec.sync_windows;
        let attempt = SyncAttempt { manual: false, started_at: None };
        let may = |at: Timestamp| permits(&windows, &app, attempt, at).unwrap_or(false);
        if windows.is_empty() || may(now) {
            return None;
        }
        let steps = i32::try_from(within.as_secs() / 60).unwrap_or(i32::MAX);
        let later = (1..=steps).map_while(|step| now.checked_add(STEP * step).ok());
        later.into_iter().find(|at| may(*at))
    });
    let at = held.min()?;
    Duration::try_from(at.duration_since(now)).ok()
}
