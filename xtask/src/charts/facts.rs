//! What all versions of a chart have in common, and how the table says it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use tiphys_value::{Map, Value};

use super::{
    naming::{Naming, Namings},
    probe::{ChartVersion, Port, RELEASE},
    sensitivity::{Deciding, deciding},
};

/// What is known of a chart, or of a run of its versions.
#[derive(Clone)]
pub(super) struct Facts {
    oldest: String,
    newest: String,
    services: BTreeMap<Naming, Service>,
}

/// A Service that every version makes.
#[derive(Clone)]
struct Service {
    /// The ports that any version gives it, each with the value that sets it; none where one is headless.
    ports: BTreeSet<(String, i64, Option<String>)>,
    switches: BTreeSet<(String, String)>,
}

impl Service {
    fn new(ports: Vec<Port>, deciding: Deciding) -> Self {
        let with_path = |(name, number): Port| {
            let path = deciding.ports.get(&number).cloned();
            (name, number, path)
        };
        Self { ports: ports.into_iter().map(with_path).collect(), switches: deciding.switches }
    }

    /// Its ports without what sets them, which may move from one version to the next.
    fn numbers(&self) -> BTreeSet<(&str, i64)> {
        self.ports.iter().map(|(name, number, _)| (name.as_str(), *number)).collect()
    }
}

impl Facts {
    /// What one version makes. A chart that wants values first says nothing about its Services.
    fn of_version(version: &ChartVersion) -> Self {
        let mut services = BTreeMap::new();
        if let Ok(made) = version.services(RELEASE, &Value::Object(Map::new())) {
            let mut decided = deciding(version, &made);
            let mut namings = Namings::new(version);
            for (name, ports) in made {
                let Some(naming) = namings.naming_of(&name) else { continue };
                let deciding = decided.remove(&name).unwrap_or_default();
                services.insert(naming, Service::new(ports, deciding));
            }
        }
        Self { oldest: version.version.clone(), newest: version.version.clone(), services }
    }

    /// What versions make, the oldest first: each run of them that makes the same, and behind these what all
    /// have in common, which holds between the runs, too. Nothing if there is no version.
    pub(super) fn from_versions(versions: &[ChartVersion]) -> Vec<Self> {
        let mut runs: Vec<Self> = Vec::new();
        for made in versions.iter().map(Self::of_version) {
            match runs.last_mut() {
                Some(run) if run.makes_as(&made) => run.extend(made),
                _ => runs.push(made),
            }
        }
        let whole = runs.iter().cloned().reduce(|mut all, run| {
            all.extend(run);
            all
        });
        // What the whole says need not be said of a part again.
        runs.retain(|run| !run.services.is_empty() && whole.as_ref().is_none_or(|all| !run.is_as(all)));
        runs.into_iter().chain(whole).collect()
    }

    /// Whether another version makes the same Services with the same ports.
    fn makes_as(&self, other: &Self) -> bool {
        self.services.len() == other.services.len()
            && self.services.iter().all(|(naming, service)| {
                other.services.get(naming).is_some_and(|it| it.numbers() == service.numbers())
            })
    }

    /// Whether the lines of two would say the same but for their versions.
    fn is_as(&self, other: &Self) -> bool {
        self.service_lines() == other.service_lines()
    }

    /// Takes a later version along.
    fn extend(&mut self, later: Self) {
        self.newest = later.newest;
        self.services = common(std::mem::take(&mut self.services), later.services);
    }

    /// The versions that it is known from.
    pub(super) fn versions(&self) -> (&str, &str) {
        (&self.oldest, &self.newest)
    }

    /// The lines of the table.
    pub(super) fn to_lines(&self, chart: &str, owner: &str) -> String {
        format!("{chart} {owner} {} {}\n{}", self.oldest, self.newest, self.service_lines())
    }

    fn service_lines(&self) -> String {
        let mut text = String::new();
        for (naming, service) in &self.services {
            let _ = write!(text, " service {naming}");
            for (name, number, path) in &service.ports {
                let _ = write!(text, " {name}={number}");
                if let Some(path) = path {
                    let _ = write!(text, ":{path}");
                }
            }
            if !service.switches.is_empty() {
                text.push_str(" if");
            }
            for (path, before) in &service.switches {
                let _ = write!(text, " {path}={before}");
            }
            text.push('\n');
        }
        text
    }
}

/// The Services that two versions make, with all that decides on them in either.
fn common(
    mut before: BTreeMap<Naming, Service>,
    now: BTreeMap<Naming, Service>,
) -> BTreeMap<Naming, Service> {
    let mut both = BTreeMap::new();
    for (naming, mut service) in now {
        let Some(older) = before.remove(&naming) else { continue };
        if service.ports.is_empty() || older.ports.is_empty() {
            service.ports.clear();
        } else {
            service.ports.extend(older.ports);
        }
        service.switches.extend(older.switches);
        both.insert(naming, service);
    }
    both
}
