//! Telling of progress: lines on a pipe, a live view on a terminal, JSON for programs.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use tiphys_diag::sanitize;
use tiphys_graph::{Outcome, Survey};
use tiphys_model::HealthCode;
use tiphys_render::out_of_reach;
use tiphys_sync::Wait;

use super::{
    app_rows::Row,
    reason::{OutOfPlace, Reason, State},
    table::table,
    wait_messages,
};
use crate::duration::humanize;

/// Tells of progress.
pub(super) struct Reporter {
    json: bool,
    started: Instant,
    told: BTreeMap<Key, Row>,
    live: Option<Live>,
    was_green: bool,
}

/// Whether it is an ApplicationSet, namespace and name: an Application may have the name of a set.
type Key = (bool, String, String);

fn key_of(row: &Row) -> Key {
    (row.is_set, row.namespace.clone(), row.name.clone())
}

/// The live view on a terminal: a line for each Application that is not green.
struct Live {
    all: MultiProgress,
    bars: BTreeMap<Key, ProgressBar>,
}

impl Reporter {
    /// Tells on stdout.
    pub(super) fn new(json: bool, started: Instant) -> Self {
        let live = (!json && std::io::stdout().is_terminal() && std::io::stderr().is_terminal())
            .then(|| Live { all: MultiProgress::new(), bars: BTreeMap::new() });
        Self { json, started, told: BTreeMap::new(), live, was_green: false }
    }

    /// Whether the view moves though nothing changes.
    pub(super) fn is_animated(&self) -> bool {
        self.live.as_ref().is_some_and(|live| !live.bars.is_empty())
    }

    /// Something worth saying once.
    pub(super) fn notice(&mut self, text: &str) {
        if self.json {
            self.event(json!({"event": "notice", "message": text}));
        } else {
            self.line(&format!("note: {text}"));
        }
    }

    /// What is going to be run.
    pub(super) fn plan(&mut self, survey: &Survey) {
        if !self.json {
            return;
        }
        // Of two with one name only one can run.
        let all = survey.apps.iter().filter(|app| !matches!(app.outcome, Outcome::Duplicate(_)));
        let apps = all.map(|app| {
            let (namespace, name) = app.declared_id().id;
            json!({"environment": survey.environments[app.environment.0].name, "namespace": namespace,
                "name": name, "digest": survey.digest(app)})
        });
        self.event(json!({"event": "plan", "applications": apps.collect::<Vec<_>>()}));
    }

    /// The cluster is ready.
    pub(super) fn cluster(&mut self, address: &str, kubeconfig: &Path, ready_in: Duration) {
        let kubeconfig = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_path_buf());
        if self.json {
            self.event(json!({
                "event": "cluster",
                "address": address,
                "kubeconfig": kubeconfig,
                "readyMilliseconds": u64::try_from(ready_in.as_millis()).unwrap_or(u64::MAX),
            }));
            return;
        }
        self.line(&format!("cluster ready in {} at {address}; point kubectl at it with", humanize(ready_in)));
        self.line(&format!("\n    export KUBECONFIG={}\n", kubeconfig.display()));
    }

    /// The Applications as they stand; only what changed is told. Returns whether one is new, or has another
    /// revision than was told: a change so quick that nothing was ever seen out of place.
    pub(super) fn rows(&mut self, rows: &[Row]) -> bool {
        let mut moved = false;
        for row in rows {
            let key = key_of(row);
            if self.live.is_some() {
                self.animate(&key, row);
            }
            if self.told.get(&key) == Some(row) {
                continue;
            }
            let old = self.told.insert(key, row.clone());
            let known = old.as_ref().map_or(&[][..], |old| &old.warnings);
            for warning in row.warnings.iter().filter(|warning| !known.contains(warning) && !self.json) {
                self.line(&format!("note: {}: {warning}", row.title));
            }
            moved |= old.as_ref().is_none_or(|old| old.revision != row.revision);
            let changed = old.is_none_or(|old| visible(&old) != visible(row));
            if self.json {
                let mut event = serde_json::to_value(row).unwrap_or_default();
                event["event"] = "application".into();
                self.event(event);
            } else if changed && (self.live.is_none() || row.is_green()) {
                self.line(&self.described(row));
            }
        }
        let gone: Vec<_> =
            self.told.keys().filter(|key| !rows.iter().any(|row| key_of(row) == **key)).cloned().collect();
        for key in gone {
            self.told.remove(&key);
            if let Some(bar) = self.live.as_mut().and_then(|live| live.bars.remove(&key)) {
                bar.finish_and_clear();
            }
            // A set is shown only while something is the matter with it.
            let (is_set, namespace, name) = key;
            if is_set {
                continue;
            }
            if self.json {
                self.event(json!({"event": "deleted", "namespace": namespace, "name": name}));
            } else {
                self.line(&format!("{:>7}  {name} is deleted", humanize(self.started.elapsed())));
            }
        }
        moved
    }

    /// All is green: the table the first time, a line later.
    pub(super) fn green(&mut self, rows: &[Row]) {
        if std::mem::replace(&mut self.was_green, true) && !self.json {
            self.line(&format!("{:>7}  {}", humanize(self.started.elapsed()), all_green(rows)));
        } else {
            self.end(rows, true);
        }
    }

    /// All is green, or time is up: the table, and what is missing.
    pub(super) fn end(&mut self, rows: &[Row], green: bool) {
        self.close();
        let seconds = self.started.elapsed().as_secs_f64();
        if self.json {
            self.event(json!({"event": "result", "green": green, "seconds": seconds, "applications": rows}));
            return;
        }
        self.line(&format!("\n{}", table(rows)));
        if green {
            self.line(&format!("{} after {}", all_green(rows), humanize(self.started.elapsed())));
            let sets: Vec<&Row> = rows.iter().filter(|row| row.is_set).collect();
            for alike in alike(&sets) {
                let names: Vec<&str> = alike.iter().map(|set| set.title.as_str()).collect();
                self.line(&format!("  {}: {}", names.join(", "), alike[0].doing));
            }
            return;
        }
        let missing = rows.iter().filter(|row| !row.is_green());
        let (away, missing): (Vec<&Row>, Vec<&Row>) = missing.partition(|row| row.is_out_of_reach);
        let count = missing.len() + away.len();
        let because = match away.len() {
            0 => String::new(),
            away => format!(" ({away} because their sources cannot be had from here)"),
        };
        let what = if rows.iter().any(|row| row.is_set) { " and ApplicationSets" } else { "" };
        let all = rows.len();
        self.line(&format!("{count} of {all} Applications{what} are not Synced and Healthy{because}:"));
        for rows in alike(&missing) {
            let row = rows[0];
            let names: Vec<&str> = rows.iter().map(|row| row.title.as_str()).collect();
            self.line(&format!("\n{}: {} {}", names.join(", "), row.sync.as_str(), row.health_text()));
            for line in wait_messages::lines(&row.waits) {
                self.line(&format!("  {line}"));
            }
            for reason in together(&beside(&row.reasons, &row.waits)) {
                self.line(&format!("  {}", reason.replace('\n', "\n  ")));
            }
        }
        self.out_of_reach(&away);
    }

    /// Applications whose sources cannot be had, in short: they say little of the repository.
    fn out_of_reach(&self, rows: &[&Row]) {
        let mut by_cause: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for row in rows {
            by_cause.entry(cause_in_short(row)).or_default().push(&row.title);
        }
        if !by_cause.is_empty() {
            self.line("\nsources that cannot be had from here (--output json has the whole reasons):");
        }
        for (cause, names) in by_cause {
            self.line(&format!("  {}: {}", names.join(", "), cause.replace('\n', "\n    ")));
        }
    }

    /// Takes the live view off the terminal.
    pub(super) fn close(&mut self) {
        if let Some(live) = &mut self.live {
            for bar in std::mem::take(&mut live.bars).into_values() {
                bar.finish_and_clear();
            }
        }
    }

    fn animate(&mut self, key: &Key, row: &Row) {
        let Some(live) = &mut self.live else { return };
        if row.is_green() {
            if let Some(bar) = live.bars.remove(key) {
                bar.finish_and_clear();
            }
            return;
        }
        let bar = live.bars.entry(key.clone()).or_insert_with(|| {
            let bar = live.all.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        let since = row.doing_since(jiff::Timestamp::now());
        bar.set_message(format!(
            "{:<24} wave {:>3}  {:<9} {:<11} {since}",
            sanitize::line(&row.title),
            row.wave,
            row.sync.as_str(),
            row.health_text()
        ));
        bar.tick();
    }

    fn described(&self, row: &Row) -> String {
        format!(
            "{:>7}  {:<24} wave {:>3}  {:<9}  {:<11}  {}",
            humanize(self.started.elapsed()),
            sanitize::line(&row.title),
            row.wave,
            row.sync.as_str(),
            row.health_text(),
            in_one_line(&row.doing)
        )
        .trim_end()
        .to_owned()
    }

    fn event(&self, mut event: Value) {
        event["time"] = jiff::Timestamp::now().to_string().into();
        self.write_line(&sanitize::json(&event.to_string()));
    }

    /// Text for people, as a terminal may have it.
    fn line(&self, text: &str) {
        self.write_line(&sanitize::terminal(text));
    }

    /// One line. That stdout is closed ends nobody's work.
    fn write_line(&self, text: &str) {
        match &self.live {
            Some(live) => {
                let _ = live.all.println(text);
            }
            None => {
                let _ = writeln!(std::io::stdout().lock(), "{text}");
            }
        }
    }
}

/// A text of several lines in one: a fault of a rendering says where it is in the first, and what it is after
/// that.
fn in_one_line(text: &str) -> String {
    const LONGEST: usize = 300;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let whole = lines.iter().fold(String::new(), |whole, line| match whole.is_empty() {
        true => (*line).to_owned(),
        false if whole.ends_with(':') => format!("{whole} {line}"),
        false => format!("{whole}; {line}"),
    });
    match whole.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &whole[..at]),
        None => whole,
    }
}

/// The reasons that say more than what is waited for: a cause is told once.
fn beside(reasons: &[Reason], waits: &[Wait]) -> Vec<Reason> {
    let is_told = |reason: &&Reason| {
        let text = reason.to_string();
        waits.iter().any(|wait| !wait.cause.is_empty() && text.contains(wait.cause.as_str()))
    };
    reasons.iter().filter(|reason| !is_told(reason)).cloned().collect()
}

/// That all is green, and of how many ApplicationSets nothing comes.
fn all_green(rows: &[Row]) -> String {
    let sets = rows.iter().filter(|row| row.is_set).count();
    let none = match sets {
        0 => String::new(),
        1 => "one ApplicationSet yields none".to_owned(),
        more => format!("{more} ApplicationSets yield none"),
    };
    match rows.len() - sets {
        0 => format!("there is no Application, for {none},"),
        all if sets == 0 => format!("all {all} Applications are Synced and Healthy"),
        all => format!("all {all} Applications are Synced and Healthy, and {none},"),
    }
}

/// Why the sources of an Application cannot be had: of a request that failed only what failed.
fn cause_in_short(row: &Row) -> String {
    let reason = row.reasons.first().map(Reason::to_string).unwrap_or_default();
    match out_of_reach(&reason) {
        Some(found) => found.reason.to_owned(),
        None => reason,
    }
}

/// How many objects have to be in the same state to be told of in one line.
const MANY: usize = 4;
/// How many of them are named.
const NAMED: usize = 8;

/// How many lines of objects that are not there yet stand behind why they are not.
const FEW: usize = 6;

/// An object of which no more is told than its state, which others may share.
fn plain(reason: &Reason) -> Option<&OutOfPlace> {
    reason.object().filter(|object| object.underlying.is_none())
}

/// The reasons, one line for many objects of a kind that are in the same state. Where something else is told,
/// and of many kinds only that a sync has not come to them, they are counted.
fn together(reasons: &[Reason]) -> Vec<String> {
    let is_left = |reason: &Reason| {
        plain(reason).is_some_and(|object| {
            matches!(object.state, State::Unhealthy(HealthCode::Missing) | State::OutOfSync)
                && object.message.is_empty()
        })
    };
    let (left, others): (Vec<Reason>, Vec<Reason>) = reasons.iter().cloned().partition(is_left);
    if others.is_empty() || by_kind(&left).len() <= FEW {
        return by_kind(reasons);
    }
    let is_missing = |object: &&OutOfPlace| object.state == State::Unhealthy(HealthCode::Missing);
    let missing = left.iter().filter_map(Reason::object).filter(is_missing).count();
    let counted = [(missing, "Missing"), (left.len() - missing, "out of sync")];
    let counted =
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, state)| format!("{count} {state}"));
    let rest =
        format!("of its objects {} (--output json names them)", counted.collect::<Vec<_>>().join(", "));
    by_kind(&others).into_iter().chain([rest]).collect()
}

fn by_kind(reasons: &[Reason]) -> Vec<String> {
    let what = |object: &OutOfPlace| (object.key.kind.clone(), object.state_text());
    let mut names: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    for object in reasons.iter().filter_map(plain) {
        names.entry(what(object)).or_default().push(&object.key.name);
    }
    let mut lines = Vec::new();
    for reason in reasons {
        let Some(object) = plain(reason).filter(|object| names[&what(object)].len() >= MANY) else {
            lines.push(reason.to_string());
            continue;
        };
        let all = &names[&what(object)];
        if all[0] != object.key.name {
            continue;
        }
        let shown = all[..all.len().min(NAMED)].join(", ");
        let more = all.len().saturating_sub(NAMED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        lines.push(format!(
            "{} of kind {} are {}: {shown}{more}",
            all.len(),
            object.key.kind,
            object.state_text()
        ));
    }
    lines
}

/// Rows of which the same is to be told, together, at the place of the first.
fn alike<'a>(rows: &[&'a Row]) -> Vec<Vec<&'a Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        let same = |group: &&mut Vec<&Row>| {
            let first = group[0];
            !row.reasons.is_empty()
                && (first.sync, first.health, &first.reasons) == (row.sync, row.health, &row.reasons)
                && first.waits.is_empty()
                && row.waits.is_empty()
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// What of a row is worth a line when it changes.
fn visible(row: &Row) -> (&'static str, &'static str, &str) {
    (row.sync.as_str(), row.health_text(), row.doing.as_str())
}

#[cfg(test)]
mod tests {
    use tiphys_value::ResourceKey;

    use super::*;

    fn object(kind: &str, name: &str, code: HealthCode, message: &str) -> Reason {
        let key = ResourceKey::new("", kind, "shop", name);
        let (state, message) = (State::Unhealthy(code), message.to_owned());
        Reason::Object(OutOfPlace { key, state, message, underlying: None })
    }

    #[test]
    fn behind_why_a_sync_fails_many_objects_are_counted() {
        let left = |count: usize| {
            (0..count).map(|number| object(&format!("Kind{number}"), "a", HealthCode::Missing, ""))
        };
        let why = || Reason::Other("sync Failed: why".to_owned());
        let all = |count| together(&[why()].into_iter().chain(left(count)).collect::<Vec<_>>());
        assert_eq!(all(6).len(), 7);
        assert_eq!(all(7), ["sync Failed: why", "of its objects 7 Missing (--output json names them)"]);
        assert_eq!(together(&left(7).collect::<Vec<_>>()).len(), 7, "nothing else is told");
    }

    #[test]
    fn many_objects_in_one_state_are_one_line() {
        let missing = |n| object("Application", &format!("a{n}"), HealthCode::Missing, "");
        let mut reasons: Vec<Reason> = (0..10).map(missing).collect();
        reasons.insert(3, object("Deployment", "web", HealthCode::Progressing, "slow"));
        let lines = together(&reasons);
        assert_eq!(
            lines,
            [
                "10 of kind Application are Missing: a0, a1, a2, a3, a4, a5, a6, a7 and 2 more",
                "Deployment/web is Progressing: slow"
            ]
        );
        let few: Vec<String> = reasons[..3].iter().map(Reason::to_string).collect();
        assert_eq!(together(&reasons[..3]), few);
    }

    #[test]
    fn what_a_wait_tells_is_not_told_again() {
        let wait: Wait = serde_json::from_value(json!({"kind": "Blocked", "cause": "no webhook answers",
            "since": "2026-01-01T00:00:00Z"}))
        .unwrap();
        let told = Reason::Other("the last attempt: no webhook answers".to_owned());
        let other = object("Job", "x", HealthCode::Degraded, "");
        assert_eq!(beside(&[told, other.clone()], &[wait]), [other]);
    }

    #[test]
    fn what_sources_say_is_read_back() {
        let url = "https://h.example.com/x".to_owned();
        let error = tiphys_source::SourceError::Offline { url };
        let reason = "working offline, and it is not the repository that was given";
        assert_eq!(out_of_reach(&error.to_string()).map(|found| found.reason), Some(reason));
    }

    #[test]
    fn a_text_of_many_lines_is_one() {
        assert_eq!(in_one_line("helm: a.yaml:3:\n  no value\nmore"), "helm: a.yaml:3: no value; more");
    }
}
