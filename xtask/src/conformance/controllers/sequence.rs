//! Sequences of steps: YAML files, each entry multiplied by its parameters.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use tiphys_merge::merge_patch;
use tiphys_value::ObjectExt;

use crate::conformance::corpus::Exchange;

/// Where the kind of an object is served: its plural, and whether it lives in namespaces.
pub(super) type Places<'a> = dyn Fn(&Value) -> Option<(String, bool)> + 'a;

/// Steps that are played in a namespace of their own.
pub(super) struct Sequence {
    /// The file that it stands in.
    pub family: String,
    /// Its name, which is its namespace's.
    pub name: String,
    /// Whether it has the cluster for itself, because it changes nodes.
    pub is_alone: bool,
    /// What is done, in order.
    pub actions: Vec<Action>,
    /// The names of the objects in it: what has another ending was given it by a controller.
    pub names: Vec<String>,
}

/// One step, ready to be done on either cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// Send a request; the answers are compared.
    Request(Exchange),
    /// Do something to the first pods that a selector selects: their names are made up by each cluster.
    Pods {
        /// What to do.
        verb: PodVerb,
        /// Label selector, as in a query.
        selector: String,
        /// How many; all of them if `None`.
        count: Option<usize>,
    },
    /// Wait until nothing in the namespace has changed for a while.
    Settle,
    /// Wait for so long.
    Wait(Duration),
    /// Wait until the clock shows so many seconds past a minute.
    Align(u32),
    /// Silence the kubelet of a node, or let it speak again.
    Kubelet {
        /// The node.
        node: String,
        /// Whether it is silent.
        is_silent: bool,
    },
}

/// What is done to pods that are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodVerb {
    /// Ask for their eviction.
    Evict,
    /// Delete them.
    Delete,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    alone: bool,
    #[serde(default)]
    with: BTreeMap<String, Vec<Value>>,
    steps: Vec<Value>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Step {
    Create(Value),
    Patch(Value),
    Status(Value),
    Delete(Value),
    EvictPods(Chosen),
    DeletePods(Chosen),
    Settle,
    Wait(u64),
    Align(u32),
    Silence(String),
    Speak(String),
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Chosen {
    labels: String,
    #[serde(default)]
    count: Option<usize>,
}

/// Reads every file of a folder. `bases` has objects that others are written as changes of.
///
/// # Errors
/// A file cannot be read, or an entry is of another form.
pub(super) fn read(folder: &Path, bases: &Path, places: &Places<'_>) -> anyhow::Result<Vec<Sequence>> {
    let bases = yaml(bases)?;
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let mut all = Vec::new();
    for file in &files {
        let family = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let entries: Vec<Entry> =
            serde_json::from_value(yaml(file)?).with_context(|| file.display().to_string())?;
        for entry in entries {
            for (number, parameters) in combinations(&entry.with).into_iter().enumerate() {
                let name = match entry.with.is_empty() {
                    true => format!("{family}-{}", entry.name),
                    false => format!("{family}-{}-{number}", entry.name),
                };
                let sequence = Builder { name: &name, parameters: &parameters, bases: &bases, places };
                let sequence = sequence.build(&family, &entry).with_context(|| name.clone())?;
                all.push(sequence);
            }
        }
    }
    Ok(all)
}

fn yaml(path: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    tiphys_yaml::from_yaml(&text).with_context(|| path.display().to_string())
}

/// Every choice of one value for each parameter.
fn combinations(with: &BTreeMap<String, Vec<Value>>) -> Vec<BTreeMap<String, Value>> {
    with.iter().fold(vec![BTreeMap::new()], |all, (name, values)| {
        let extended = |known: BTreeMap<String, Value>| {
            values.iter().map(move |value| {
                let mut known = known.clone();
                known.insert(name.clone(), value.clone());
                known
            })
        };
        all.into_iter().flat_map(extended).collect()
    })
}

/// One sequence in the making.
struct Builder<'a> {
    name: &'a str,
    parameters: &'a BTreeMap<String, Value>,
    bases: &'a Value,
    places: &'a Places<'a>,
}

impl Builder<'_> {
    fn build(&self, family: &str, entry: &Entry) -> anyhow::Result<Sequence> {
        let mut sequence = Sequence {
            family: family.to_owned(),
            name: self.name.to_owned(),
            is_alone: entry.alone,
            actions: Vec::new(),
            names: Vec::new(),
        };
        for step in &entry.steps {
            let step = self.filled(step);
            let step: Step = serde_json::from_value(step.clone()).with_context(|| step.to_string())?;
            self.add(step, &mut sequence)?;
        }
        sequence.actions.push(Action::Settle);
        Ok(sequence)
    }

    fn add(&self, step: Step, sequence: &mut Sequence) -> anyhow::Result<()> {
        let pods = |verb, chosen: Chosen| Action::Pods { verb, selector: chosen.labels, count: chosen.count };
        let action = match step {
            Step::Create(object) => Action::Request(self.create(object, &mut sequence.names)?),
            Step::Patch(object) => Action::Request(self.patch(object, "")?),
            Step::Status(object) => Action::Request(self.patch(object, "/status")?),
            Step::Delete(object) => Action::Request(self.delete(object)?),
            Step::EvictPods(chosen) => pods(PodVerb::Evict, chosen),
            Step::DeletePods(chosen) => pods(PodVerb::Delete, chosen),
            Step::Settle => Action::Settle,
            Step::Wait(seconds) => Action::Wait(Duration::from_secs(seconds)),
            Step::Align(second) => Action::Align(second),
            Step::Silence(node) => Action::Kubelet { node, is_silent: true },
            Step::Speak(node) => Action::Kubelet { node, is_silent: false },
        };
        sequence.actions.push(action);
        Ok(())
    }

    /// A value with its parameters put in: `${name}` as the whole text gives the parameter itself.
    fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.filled_text(text),
            Value::Array(items) => items.iter().map(|item| self.filled(item)).collect(),
            Value::Object(map) => {
                let filled = map.iter().map(|(key, value)| {
                    let key = self.filled_text(key);
                    (key.as_str().map_or_else(|| key.to_string(), str::to_owned), self.filled(value))
                });
                filled.collect::<Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }

    fn filled_text(&self, text: &str) -> Value {
        if let Some(value) = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'))
            && let Some(value) = self.parameters.get(value)
        {
            return value.clone();
        }
        let text = text.replace("${ns}", self.name);
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let filled = self
            .parameters
            .iter()
            .fold(text, |text, (name, value)| text.replace(&format!("${{{name}}}"), &plain(value)));
        filled.into()
    }

    /// The object that a change of a base stands for.
    fn whole(&self, mut object: Value) -> anyhow::Result<Value> {
        let base = object.as_object_mut().and_then(|fields| fields.remove("base"));
        let Some(base) = base else { return Ok(object) };
        let base = base.as_str().unwrap_or_default();
        let found = self.bases.get(base).with_context(|| format!("no base is called {base:?}"))?;
        Ok(merge_patch(&self.filled(found), &object))
    }

    /// The path of an object's collection.
    fn collection(&self, object: &Value) -> anyhow::Result<String> {
        let Some((plural, is_namespaced)) = (self.places)(object) else {
            bail!("no kind {} {}", object.api_version(), object.kind());
        };
        let version = object.api_version();
        let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
        let namespace = object.str_at(&["metadata", "namespace"]).unwrap_or(self.name);
        Ok(match is_namespaced {
            true => format!("{root}/namespaces/{namespace}/{plural}"),
            false => format!("{root}/{plural}"),
        })
    }

    fn create(&self, object: Value, names: &mut Vec<String>) -> anyhow::Result<Exchange> {
        let object = self.whole(object)?;
        names.push(object.name().to_owned());
        let path = self.collection(&object)?;
        Ok(Exchange::new("POST", path, &object))
    }

    fn patch(&self, object: Value, subresource: &str) -> anyhow::Result<Exchange> {
        let path = format!("{}/{}{subresource}", self.collection(&object)?, object.name());
        Ok(Exchange::new("PATCH", path, &object).of_type("application/merge-patch+json"))
    }

    fn delete(&self, mut object: Value) -> anyhow::Result<Exchange> {
        let path = format!("{}/{}", self.collection(&object)?, object.name());
        let propagation = object.as_object_mut().and_then(|fields| fields.remove("propagation"));
        let propagation = propagation.unwrap_or_else(|| "Background".into());
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation});
        Ok(Exchange::new("DELETE", path, &options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_stands_for_every_choice_of_its_parameters() {
        let with = BTreeMap::from([
            ("a".to_owned(), vec![json!(1), json!(2)]),
            ("b".to_owned(), vec![json!("x"), json!("y"), json!("z")]),
        ]);
        let all = combinations(&with);
        assert_eq!(all.len(), 6);
        let builder = Builder { name: "ns", parameters: &all[1], bases: &Value::Null, places: &|_| None };
        let filled = builder.filled(&json!({"n": "${a}", "t": "${ns}-${a}-${b}"}));
        assert_eq!(filled, json!({"n": 1, "t": "ns-1-y"}));
    }

    #[test]
    fn every_sequence_of_ours_can_be_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/controllers");
        let places = |_: &Value| Some(("things".to_owned(), true));
        let all = read(&root.join("sequences"), &root.join("bases.yaml"), &places).unwrap();
        assert!(all.len() >= 300, "{}", all.len());
        let mut names: Vec<_> = all.iter().map(|sequence| &sequence.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
        assert!(names.iter().all(|name| name.len() <= 63));
    }
}
