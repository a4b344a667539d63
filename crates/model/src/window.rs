//! Sync windows: when an Application may synchronise (Argo CD docs, "Sync Windows").

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

use tiphys_gocompat::{
    cron::Schedule,
    time::{Duration, zone},
};

use crate::{Application, glob, source::is_false};

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
    /// Whether the window is open at an instant: it began before, and not longer ago than it lasts. A time
    /// zone that nobody knows is UTC.
    ///
    /// # Errors
    /// Schedule or duration cannot be read.
    pub fn is_active(&self, at: Timestamp) -> Result<bool, String> {
        let schedule = Schedule::parse_fields(&self.schedule)
            .map_err(|error| format!("cannot parse schedule '{}': {error}", self.schedule))?;
        let length = Duration::parse(&self.duration)
            .map_err(|error| format!("cannot parse duration '{}': {error}", self.duration))?;
        let zone = zone(&self.time_zone).unwrap_or(TimeZone::UTC);
        let earliest = at.checked_sub(SignedDuration::from_nanos(length.0)).unwrap_or(Timestamp::MIN);
        Ok(schedule.next_after(earliest, &zone).is_some_and(|begun| begun < at))
    }

    /// Whether the window names a time zone that nobody knows.
    pub fn has_unknown_zone(&self) -> bool {
        !self.time_zone.is_empty() && zone(&self.time_zone).is_none()
    }

    /// Whether the window concerns an Application.
    pub fn concerns(&self, app: &Application) -> bool {
        let any = |globs: &[String], text: &str| globs.iter().any(|pattern| glob::matches(pattern, text));
        let destination = &app.spec.destination;
        let cluster = [&destination.server, &destination.name];
        let cluster = cluster.into_iter().any(|given| !given.is_empty() && any(&self.clusters, given));
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
    let barring = barring(&concerning, attempt.manual, now)?;
    let Some(started) = attempt.started_at.filter(|_| !barring.is_empty()) else {
        return Ok(barring.is_empty());
    };
    // An operation that was permitted when it began goes on if all that bars it now lets it.
    Ok(barring.iter().all(|window| window.sync_overrun)
        && self::barring(&concerning, attempt.manual, started)?.is_empty())
}

/// The windows that bar a sync at an instant: those that deny it, or where none does and none allows it,
/// those that would allow it at another time. None, if they let people pass and it is theirs.
fn barring<'a>(
    windows: &[&'a SyncWindow],
    manual: bool,
    at: Timestamp,
) -> Result<Vec<&'a SyncWindow>, String> {
    let [denies, allows, lapsed] = split(windows, at)?;
    let barring = match (denies.is_empty(), allows.is_empty()) {
        (false, _) => denies,
        (true, true) => lapsed,
        (true, false) => Vec::new(),
    };
    let lets_pass = manual && barring.iter().all(|window| window.manual_sync);
    Ok(if lets_pass { Vec::new() } else { barring })
}

fn split<'a>(windows: &[&'a SyncWindow], at: Timestamp) -> Result<[Vec<&'a SyncWindow>; 3], String> {
    let [mut denies, mut allows, mut lapsed] = [Vec::new(), Vec::new(), Vec::new()];
    for window in windows {
        match (window.is_active(at)?, window.kind.as_str()) {
            (true, "deny") => denies.push(*window),
            (true, "allow") => allows.push(*window),
            (false, "allow") => lapsed.push(*window),
            _ => {}
        }
    }
    Ok([denies, allows, lapsed])
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
    fn a_window_is_open_after_its_beginning_for_as_long_as_it_lasts() {
        let is_active = |schedule: &str, duration: &str, zone: &str, at: &str| {
            let (duration, time_zone) = (duration.to_owned(), zone.to_owned());
            let window = SyncWindow { duration, time_zone, ..window("allow", schedule, false, false) };
            window.is_active(at.parse().expect("valid"))
        };
        assert_eq!(is_active("0 12 * * *", "1h", "", "2026-01-01T12:00:00Z"), Ok(false));
        assert_eq!(is_active("0 12 * * *", "1h", "", "2026-01-01T12:00:01Z"), Ok(true));
        assert_eq!(is_active("0 12 * * *", "1h", "Asia/Seoul", "2026-01-01T03:30:00Z"), Ok(true));
        assert_eq!(is_active("0 12 * * *", "1h", "Nowhere/None", "2026-01-01T12:30:00Z"), Ok(true));
        let named = |time_zone: &str| SyncWindow { time_zone: time_zone.to_owned(), ..SyncWindow::default() };
        assert!(named("Nowhere/None").has_unknown_zone());
        assert!(!named("Asia/Seoul").has_unknown_zone() && !named("").has_unknown_zone());
        assert_eq!(is_active("0 12 * * *", "-1h", "", "2026-01-01T12:30:00Z"), Ok(false));
        let refused = is_active("@hourly", "1h", "", "2026-01-01T12:30:00Z").unwrap_err();
        assert_eq!(refused, "cannot parse schedule '@hourly': parser does not accept descriptors: @hourly");
        assert!(is_active("0 12 * * *", "1d", "", "2026-01-01T12:30:00Z").is_err());
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
