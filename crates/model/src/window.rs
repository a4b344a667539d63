//! Sync windows: when an Application may synchronise (Argo CD docs, "Sync Windows").

use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

use tiphys_gocompat::{cron::Schedule, time::zone};

use crate::{Application, duration, glob, source::is_false, time::after};

/// One window of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncWindow {
    /// `allow` or `deny`.
    pub kind: String,
    /// Schedule of its beginnings.
    pub schedule: String,
    /// How long it is open.
    pub duration: String,
    /// Globs of Application names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<String>,
    /// Globs of destination namespaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Globs of destination clusters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    /// Syncs asked for by people pass.
    #[serde(skip_serializing_if = "is_false")]
    pub manual_sync: bool,
    /// Time zone; empty means UTC.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub time_zone: String,
    /// All of applications, namespaces, clusters must match, not one of them.
    #[serde(skip_serializing_if = "is_false")]
    pub and_operator: bool,
    /// A sync that began before goes on.
    #[serde(skip_serializing_if = "is_false")]
    pub sync_overrun: bool,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// A question to the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncAttempt {
    /// Asked for by a person.
    pub manual: bool,
    /// When the operation began, if it is under way.
    pub started_at: Option<Timestamp>,
}

impl SyncWindow {
    /// Whether the window is open at an instant.
    ///
    /// # Errors
    /// Schedule, duration or time zone cannot be read.
    pub fn is_active(&self, at: Timestamp) -> Result<bool, String> {
        let schedule = Schedule::parse(&self.schedule)
            .map_err(|error| format!("cannot read schedule {:?}: {error}", self.schedule))?;
        let length = duration::parse(&self.duration)
            .ok_or_else(|| format!("cannot read duration {:?} of a sync window", self.duration))?;
        let zone = if self.time_zone.is_empty() {
            TimeZone::UTC
        } else {
            zone(&self.time_zone).ok_or_else(|| format!("unknown time zone {}", self.time_zone))?
        };
        let earliest =
            at.checked_sub(jiff::SignedDuration::try_from(length).unwrap_or(jiff::SignedDuration::MAX));
        let Ok(earliest) = earliest else { return Err(format!("duration {:?} is too long", self.duration)) };
        let begun = schedule.next_after(earliest, &zone);
        Ok(begun.is_some_and(|begun| begun <= at && at < after(begun, length)))
    }

    /// Whether the window concerns an Application.
    pub fn concerns(&self, app: &Application) -> bool {
        let any = |globs: &[String], text: &str| globs.iter().any(|pattern| glob::matches(pattern, text));
        let destination = &app.spec.destination;
        let cluster = any(&self.clusters, &destination.server)
            || (!destination.name.is_empty() && any(&self.clusters, &destination.name));
        let checks = [
            (&self.applications, any(&self.applications, &app.metadata.name)),
            (&self.namespaces, any(&self.namespaces, &destination.namespace)),
            (&self.clusters, cluster),
        ];
        let mut given = checks.iter().filter(|(globs, _)| !globs.is_empty());
        if self.and_operator {
            given.clone().next().is_some() && given.all(|(_, hit)| *hit)
        } else {
            given.any(|(_, hit)| *hit)
        }
    }

    fn is_deny(&self) -> bool {
        self.kind == "deny"
    }
}

/// Whether the windows that concern an Application let it synchronise at an instant. A window that cannot
/// be read forbids everything, with its error.
///
/// # Errors
/// A window cannot be read.
pub fn permits(
    windows: &[SyncWindow],
    app: &Application,
    attempt: SyncAttempt,
    now: Timestamp,
) -> Result<bool, String> {
    let concerning: Vec<&SyncWindow> = windows.iter().filter(|window| window.concerns(app)).collect();
    if let Some(started) = attempt.started_at
        && may_overrun(&concerning, attempt.manual, started, now)?
    {
        return Ok(true);
    }
    decide(&concerning, attempt.manual, now)
}

fn split<'a>(windows: &[&'a SyncWindow], at: Timestamp) -> Result<[Vec<&'a SyncWindow>; 3], String> {
    let [mut denies, mut allows, mut lapsed] = [Vec::new(), Vec::new(), Vec::new()];
    for window in windows {
        match (window.is_active(at)?, window.is_deny()) {
            (true, true) => denies.push(*window),
            (true, false) => allows.push(*window),
            (false, false) => lapsed.push(*window),
            (false, true) => {}
        }
    }
    Ok([denies, allows, lapsed])
}

fn decide(windows: &[&SyncWindow], manual: bool, now: Timestamp) -> Result<bool, String> {
    let [denies, allows, lapsed] = split(windows, now)?;
    let by_hand = |windows: &[&SyncWindow]| manual && windows.iter().all(|window| window.manual_sync);
    if !denies.is_empty() {
        return Ok(by_hand(&denies));
    }
    Ok(!allows.is_empty() || lapsed.is_empty() || by_hand(&lapsed))
}

/// An operation that was permitted when it began goes on if all that would now forbid it lets it.
fn may_overrun(
    windows: &[&SyncWindow],
    manual: bool,
    started: Timestamp,
    now: Timestamp,
) -> Result<bool, String> {
    if !decide(windows, manual, started)? {
        return Ok(false);
    }
    let [denies, allows, _] = split(windows, now)?;
    if !denies.is_empty() {
        return Ok(denies.iter().all(|window| window.sync_overrun));
    }
    let [_, allowed_then, _] = split(windows, started)?;
    Ok(allows.is_empty() && !allowed_then.is_empty() && allowed_then.iter().all(|window| window.sync_overrun))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(kind: &str, schedule: &str, manual: bool, overrun: bool) -> SyncWindow {
        SyncWindow {
            kind: kind.into(),
            schedule: schedule.into(),
            duration: "1h".into(),
            applications: vec!["*".into()],
            manual_sync: manual,
            sync_overrun: overrun,
            ..SyncWindow::default()
        }
    }

    fn ask(windows: &[SyncWindow], manual: bool, started: Option<&str>) -> bool {
        let attempt = SyncAttempt { manual, started_at: started.map(|text| text.parse().expect("valid")) };
        permits(windows, &Application::default(), attempt, "2026-01-01T12:30:00Z".parse().expect("valid"))
            .expect("readable")
    }

    #[test]
    fn v11_denies_beat_allows_and_manual_needs_all_of_them() {
        let (deny, deny_manual) =
            (window("deny", "0 12 * * *", false, false), window("deny", "0 12 * * *", true, false));
        let (open, shut) =
            (window("allow", "0 12 * * *", false, false), window("allow", "0 3 * * *", false, false));
        assert!(ask(&[], false, None));
        assert!(!ask(&[deny_manual.clone(), deny.clone()], true, None));
        assert!(ask(std::slice::from_ref(&deny_manual), true, None));
        assert!(!ask(std::slice::from_ref(&deny_manual), false, None));
        assert!(!ask(std::slice::from_ref(&shut), false, None));
        assert!(ask(&[open.clone(), shut], false, None));
        assert!(!ask(&[open, deny], false, None));
    }

    #[test]
    fn v11_a_window_is_for_what_any_or_with_the_operator_all_of_its_lists_name() {
        let window = |operator: bool, cluster: &str| SyncWindow {
            applications: vec!["shop-*".into()],
            namespaces: vec!["prod".into()],
            clusters: vec![cluster.into()],
            and_operator: operator,
            ..window("deny", "0 12 * * *", false, false)
        };
        let app = |name: &str, namespace: &str| {
            let mut app = Application::default();
            app.metadata.name = name.into();
            app.spec.destination.namespace = namespace.into();
            app.spec.destination.server = "https://a".into();
            app
        };
        assert!(window(false, "https://b").concerns(&app("shop-eu", "dev")));
        assert!(window(false, "https://b").concerns(&app("blog", "prod")));
        assert!(!window(false, "https://b").concerns(&app("blog", "dev")));
        assert!(window(true, "https://a").concerns(&app("shop-eu", "prod")));
        assert!(!window(true, "https://a").concerns(&app("shop-eu", "dev")));
        assert!(!window(true, "https://b").concerns(&app("shop-eu", "prod")));
        // A list that is not given is not asked for.
        let named = SyncWindow { namespaces: Vec::new(), clusters: Vec::new(), ..window(true, "") };
        assert!(named.concerns(&app("shop-eu", "dev")) && !named.concerns(&app("blog", "dev")));
    }

    #[test]
    fn v11_an_operation_may_overrun_the_end_of_what_allowed_it() {
        let lapsed = |overrun: bool| window("allow", "0 11 * * *", false, overrun);
        let begun = Some("2026-01-01T11:50:00Z");
        assert!(ask(&[lapsed(true)], false, begun));
        assert!(!ask(&[lapsed(true)], false, None), "it begins nothing");
        assert!(!ask(&[lapsed(false)], false, begun));
        assert!(!ask(&[lapsed(true), lapsed(false)], false, begun), "all that allowed it have to let it");
    }

    #[test]
    fn v11_an_operation_begun_before_a_deny_may_overrun() {
        let overrun = window("deny", "0 12 * * *", false, true);
        assert!(ask(std::slice::from_ref(&overrun), false, Some("2026-01-01T11:50:00Z")));
        let strict = window("deny", "0 12 * * *", false, false);
        assert!(!ask(&[overrun, strict], false, Some("2026-01-01T11:50:00Z")));
    }
}
