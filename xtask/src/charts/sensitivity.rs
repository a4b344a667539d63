//! Which values decide whether a Service is there, and which ports it has.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_value::{Map, Value};

use super::probe::{ChartVersion, RELEASE, Services, merged, value_at};

/// What values do to a Service.
#[derive(Default)]
pub(super) struct Deciding {
    /// Values without which it is another or not there, with their defaults.
    pub switches: BTreeSet<(String, String)>,
    /// The values that set its ports, by number.
    pub ports: BTreeMap<i64, String>,
}

/// A value, where it is, and what is put in its place.
struct Change {
    path: Vec<String>,
    before: Value,
    after: Value,
}

/// What stands in place of a port: no chart has it.
const PORT: i64 = 47_011;
/// Words that say which of several shapes a chart takes.
const SHAPES: [&str; 6] = ["architecture", "deploymentMode", "kind", "mode", "type", "controllerType"];

/// What decides on the Services of a chart, by their names.
pub(super) fn deciding(version: &ChartVersion, made: &Services) -> BTreeMap<String, Deciding> {
    let mut changes = Vec::new();
    let ports: BTreeSet<i64> = made.values().flatten().map(|(_, number)| *number).collect();
    collect(&version.values, &mut Vec::new(), &ports, &mut changes);
    let mut found: BTreeMap<String, Deciding> = BTreeMap::new();
    let (numbers, others): (Vec<Change>, Vec<Change>) =
        changes.into_iter().partition(|change| change.before.is_i64() || change.before.is_u64());
    for group in [numbers, others] {
        try_changes(version, made, &group, &mut found);
    }
    found
}

fn collect(value: &Value, path: &mut Vec<String>, ports: &BTreeSet<i64>, changes: &mut Vec<Change>) {
    const MAX_DEPTH: usize = 8;
    if path.len() > MAX_DEPTH {
        return;
    }
    let after = match value {
        Value::Object(map) => {
            for (key, below) in map {
                path.push(key.clone());
                collect(below, path, ports, changes);
                path.pop();
            }
            return;
        }
        Value::Bool(set) => Value::Bool(!set),
        Value::Number(number) if number.as_i64().is_some_and(|it| ports.contains(&it)) => Value::from(PORT),
        Value::String(text)
            if !text.is_empty() && path.last().is_some_and(|key| SHAPES.contains(&key.as_str())) =>
        {
            Value::from("xq")
        }
        _ => return,
    };
    // Keys with a dot in them cannot be written as a path.
    if path.iter().all(|step| !step.contains(['.', ' ', ':', '='])) {
        changes.push(Change { path: path.clone(), before: value.clone(), after });
    }
}

/// Tries changes together, and apart where they change something.
fn try_changes(
    version: &ChartVersion,
    made: &Services,
    changes: &[Change],
    found: &mut BTreeMap<String, Deciding>,
) {
    if changes.is_empty() {
        return;
    }
    let values = changes.iter().fold(Value::Object(Map::new()), |values, change| {
        merged(values, &value_at(&change.path, change.after.clone()))
    });
    let after = version.services(RELEASE, &values);
    if after.as_ref().is_ok_and(|after| after == made) {
        return;
    }
    let [change] = changes else {
        let (first, second) = changes.split_at(changes.len() / 2);
        try_changes(version, made, first, found);
        try_changes(version, made, second, found);
        return;
    };
    let path = change.path.join(".");
    let before = change.before.as_str().map_or_else(|| change.before.to_string(), str::to_owned);
    for (name, ports) in made {
        let now = match &after {
            Ok(after) => after.get(name),
            // What is refused as a shape decides on everything.
            Err(_) if change.before.is_string() => None,
            Err(_) => return,
        };
        if now == Some(ports) {
            continue;
        }
        let deciding = found.entry(name.clone()).or_default();
        let number = change.before.as_i64();
        let is_port = now.is_some_and(|now| {
            now.len() == ports.len()
                && now
                    .iter()
                    .zip(ports)
                    .all(|(now, was)| now == was || now.1 == PORT && Some(was.1) == number)
        });
        match number.filter(|_| is_port) {
            Some(number) => drop(deciding.ports.insert(number, path.clone())),
            None => drop(deciding.switches.insert((path.clone(), before.clone()))),
        }
    }
}
