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

/// What is known of a chart.
pub(super) struct Facts {
    oldest: String,
    newest: String,
    services: BTreeMap<Naming, Service>,
}

/// A Service that every version makes.
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
}

impl Facts {
    /// What versions have in common, the oldest first; nothing if none renders.
    pub(super) fn from_versions(versions: &[ChartVersion]) -> Option<Self> {
        let mut services: Option<BTreeMap<Naming, Service>> = None;
        let mut seen = Vec::new();
        for version in versions {
            seen.push(version.version.as_str());
            let Ok(made) = version.services(RELEASE, &Value::Object(Map::new())) else {
                // A chart that wants values first says nothing about its Services.
                services = Some(BTreeMap::new());
                continue;
            };
            let mut decided = deciding(version, &made);
            let mut namings = Namings::new(version);
            let mut found = BTreeMap::new();
            for (name, ports) in made {
                let Some(naming) = namings.naming_of(&name) else { continue };
                let deciding = decided.remove(&name).unwrap_or_default();
                found.insert(naming, Service::new(ports, deciding));
            }
            services = Some(match services {
                None => found,
                Some(before) => common(before, found),
            });
        }
        let (oldest, newest) = ((*seen.first()?).to_owned(), (*seen.last()?).to_owned());
        Some(Self { oldest, newest, services: services.unwrap_or_default() })
    }

    /// The lines of the table.
    pub(super) fn to_lines(&self, chart: &str, owner: &str) -> String {
        let mut text = format!("{chart} {owner} {} {}\n", self.oldest, self.newest);
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
