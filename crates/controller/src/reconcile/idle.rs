//! An Application at rest is only asked whether its sources have moved.

use std::{sync::Arc, time::Duration};

use super::{render::Renderer, report::Report};
use crate::{
    AppKey, Refresh, app_state::AppMemory, blocking::blocking, home::Home, metrics::Count, sources::Sources,
};

/// How long an Application at rest is not looked at as a whole. Every change that concerns it leads to such a
/// look; this is for what changes by time alone, such as the verdict of a health rule.
const WHOLE_LOOK: Duration = Duration::from_secs(3600);

/// Whether an Application is at rest and its sources are where they were: then it need not be looked at until
/// they are asked again.
pub(super) async fn is_unmoved(
    key: &AppKey,
    home: &Home,
    sources: &Arc<Sources>,
    apps: &AppMemory,
    renderer: &Renderer,
    report: &mut Report,
) -> bool {
    if home.settings.sync.compat || renderer.due_level(key, Refresh::Sources) == Refresh::Hard {
        return false;
    }
    let Some(known) = apps.calm(key, WHOLE_LOOK) else { return false };
    let (sources, asked) = (sources.clone(), known.clone());
    if !blocking(move || sources.stand(&asked)).await.unwrap_or_default() {
        return false;
    }
    report.counts.push(Count::Unmoved);
    report.looks.extend(renderer.next_poll(key, &known));
    true
}
