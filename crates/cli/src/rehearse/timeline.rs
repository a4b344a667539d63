//! What happens, by waves: the Applications of one wave that end alike are one line.

use std::{collections::BTreeMap, fmt::Write as _};

use tiphys_render::out_of_reach;
use tiphys_stage::{
    object_state::Level,
    story::{AppEnd, Story, What},
};
use tiphys_value::ResourceKey;

use super::{
    effects::{Waited, waits},
    text::{NAMED, is_application, object_name, short, some_of, time},
};

/// How long an object is on its way before that is told, in milliseconds.
const SLOW: u64 = 30_000;

/// The waits of each Application, by its name.
type Waits = BTreeMap<String, Vec<Waited>>;

/// Writes the Applications by waves.
pub(super) fn write(story: &Story, text: &mut String) {
    let waits = waits(story);
    let _ = writeln!(text, "\nwhat happens:");
    let is_of_one_wave = |one: &AppEnd, other: &AppEnd| {
        (one.depth, one.wave, one.began_ms / 1000) == (other.depth, other.wave, other.began_ms / 1000)
    };
    for wave in story.applications.chunk_by(is_of_one_wave) {
        for group in alike(wave, &waits) {
            group.write(story, &waits, text);
        }
    }
    if !story.not_begun.is_empty() {
        let names: Vec<String> = story.not_begun.iter().map(|key| key.name.clone()).collect();
        let _ =
            writeln!(text, "   never            {}: what comes before does not end", some_of(&names, NAMED));
    }
}

/// Applications of one wave that end alike.
struct Group<'a> {
    end: End,
    applications: Vec<&'a AppEnd>,
}

/// How an Application ends, as far as it is told.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Green,
    /// Its state, and what it waits for at last.
    Red {
        state: String,
        wait: Option<String>,
    },
}

impl End {
    fn from_app(app: &AppEnd, waits: &Waits) -> Self {
        if app.is_green {
            return Self::Green;
        }
        let wait = waits.get(&app.name).and_then(|all| all.first());
        Self::Red { state: app.state.clone(), wait: wait.map(told_of_many) }
    }
}

/// The Applications of a wave, those that end alike together, in the order of the first of them.
fn alike<'a>(wave: &'a [AppEnd], waits: &Waits) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for app in wave {
        let end = End::from_app(app, waits);
        match groups.iter_mut().find(|group| group.end == end) {
            Some(group) => group.applications.push(app),
            None => groups.push(Group { end, applications: vec![app] }),
        }
    }
    groups
}

impl Group<'_> {
    fn write(&self, story: &Story, waits: &Waits, text: &mut String) {
        let first = self.applications[0];
        let names: Vec<String> = self.applications.iter().map(|app| app.name.clone()).collect();
        let objects: usize = self.applications.iter().map(|app| app.objects).sum();
        let state = match &self.end {
            End::Green => match self.applications.iter().filter_map(|app| app.green_ms).max() {
                Some(green) => format!("green at {}", time(green)),
                None => first.state.clone(),
            },
            End::Red { state, .. } => state.clone(),
        };
        let indent = "  ".repeat(first.depth);
        let _ = writeln!(
            text,
            "  {:>6}  wave {:>3}  {indent}{} ({objects} objects): {state}",
            time(first.began_ms),
            first.wave,
            some_of(&names, NAMED),
        );
        for line in self.reasons(story, waits) {
            let _ = writeln!(text, "                      {indent}{line}");
        }
    }

    /// What the Applications waited for: of those that are green, each for itself.
    fn reasons(&self, story: &Story, waits: &Waits) -> Vec<String> {
        let own = |app: &AppEnd| waits.get(&app.name).and_then(|all| all.first()).map(waited);
        let is_alone = self.applications.len() == 1;
        match &self.end {
            End::Red { wait, .. } if !is_alone => wait.iter().cloned().collect(),
            End::Red { .. } => own(self.applications[0]).into_iter().collect(),
            End::Green => self
                .applications
                .iter()
                .filter_map(|app| {
                    let told = own(app).or_else(|| slowest_object(story, app))?;
                    Some(if is_alone { told } else { format!("{} {told}", app.name) })
                })
                .collect(),
        }
    }
}

/// A wait, and how long it lasted.
pub(super) fn waited(wait: &Waited) -> String {
    format!("{} ({})", short(&wait.wait), lasted(wait))
}

/// A wait as many may have it: which address could not be reached is told among the causes.
fn told_of_many(wait: &Waited) -> String {
    match out_of_reach(&wait.wait) {
        Some(missing) => {
            format!("its source cannot be fetched: {} ({})", short(missing.reason), lasted(wait))
        }
        None => waited(wait),
    }
}

fn lasted(wait: &Waited) -> String {
    if wait.is_open { "to the end".to_owned() } else { time(wait.ms) }
}

/// The object that an Application became green with, if it was long on its way: `Certificate shop/web was
/// Progressing (5m00s)`.
fn slowest_object(story: &Story, app: &AppEnd) -> Option<String> {
    let own = story.moments.iter().filter(|moment| {
        moment.from_git
            && moment.application.as_deref() == Some(app.id.as_str())
            && !is_application(&moment.object)
    });
    let mut since: BTreeMap<&ResourceKey, (&str, u64)> = BTreeMap::new();
    let mut slowest: Option<(u64, &ResourceKey, &str)> = None;
    for moment in own.filter(|moment| moment.what != What::Changed) {
        if moment.level != Level::Good {
            since.entry(&moment.object).or_insert((&moment.to, moment.at_ms));
        } else if let Some((state, from)) = since.remove(&moment.object) {
            let took = moment.at_ms - from;
            slowest = slowest.max(Some((took, &moment.object, state)));
        }
    }
    let (took, object, state) = slowest.filter(|(took, ..)| *took >= SLOW)?;
    Some(format!("{} was {state} ({})", object_name(object), time(took)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(name: &str, is_green: bool) -> AppEnd {
        AppEnd {
            namespace: "argocd".to_owned(),
            name: name.to_owned(),
            id: name.to_owned(),
            parent: None,
            wave: 0,
            depth: 0,
            state: if is_green { "Synced Healthy" } else { "Unknown Unknown" }.to_owned(),
            is_green,
            began_ms: 0,
            green_ms: is_green.then_some(2000),
            objects: 1,
            mechanism: None,
            waits: Vec::new(),
        }
    }

    #[test]
    fn those_that_cannot_be_fetched_for_one_reason_are_together() {
        let apps = [app("a", false), app("b", true), app("c", false), app("d", false)];
        let wait =
            |text: &str| vec![Waited { wait: text.to_owned(), mechanism: None, ms: 9000, is_open: true }];
        let waits = Waits::from([
            ("a".to_owned(), wait("cannot fetch https://one.example.com/x: working offline")),
            ("c".to_owned(), wait("cannot fetch https://two.example.com/y: working offline")),
            ("d".to_owned(), wait("no such folder")),
        ]);
        let groups = alike(&apps, &waits);
        let names: Vec<String> = groups
            .iter()
            .map(|group| group.applications.iter().map(|app| app.name.as_str()).collect())
            .collect();
        assert_eq!(names, ["ac", "b", "d"]);
        assert_eq!(
            groups[0].end,
            End::Red {
                state: "Unknown Unknown".to_owned(),
                wait: Some("its source cannot be fetched: working offline (to the end)".to_owned())
            }
        );
    }
}
