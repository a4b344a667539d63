//! Comparing two streams of manifests, with places hidden that differ between two runs of the same
//! program.

use std::collections::BTreeMap;

use serde_json::Value;

use super::report::Outcome;

/// A stream of documents as data.
struct Stream(Vec<(String, Value)>);

const HIDDEN: &str = "<random>";

/// Compares outputs; `again` runs the real program once more.
pub(super) fn outputs(ours: &str, real: &str, again: impl FnOnce() -> Option<String>) -> Outcome {
    if ours == real {
        return Outcome::Bytes;
    }
    let ours_docs = Stream::read(ours);
    let real_docs = Stream::read(real);
    if same_meaning(&ours_docs, &real_docs) {
        return Outcome::Meaning;
    }
    let Some(second) = again().filter(|second| second != real) else {
        return different(&ours_docs, &real_docs, &BTreeMap::new());
    };
    if hide_lines(ours, real, &second).is_some_and(|(ours, real)| ours == real) {
        return Outcome::BytesButRandom;
    }
    let second = Stream::read(&second);
    let mut random = BTreeMap::new();
    for (at, (real, second)) in real_docs.0.iter().zip(&second.0).enumerate() {
        let mut paths = Vec::new();
        differing(&real.1, &second.1, &mut String::new(), &mut paths);
        random.insert(at, paths);
    }
    let (ours_docs, real_docs) = (ours_docs.hide(&random), real_docs.hide(&random));
    if same_meaning(&ours_docs, &real_docs) {
        return Outcome::MeaningButRandom;
    }
    different(&ours_docs, &real_docs, &random)
}

fn same_meaning(a: &Stream, b: &Stream) -> bool {
    a.0.len() == b.0.len() && a.0.iter().zip(&b.0).all(|(a, b)| a.1 == b.1)
}

/// Hides the lines in which two runs of the real program differ.
fn hide_lines(ours: &str, real: &str, second: &str) -> Option<(String, String)> {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (mut ours, mut real, second) = (lines(ours), lines(real), lines(second));
    if ours.len() != real.len() || real.len() != second.len() {
        return None;
    }
    for at in 0..real.len() {
        if real[at] != second[at] {
            HIDDEN.clone_into(&mut ours[at]);
            HIDDEN.clone_into(&mut real[at]);
        }
    }
    Some((ours.join("\n"), real.join("\n")))
}

impl Stream {
    fn read(text: &str) -> Self {
        let documents = tiphys_yaml::split_helm_manifests(text);
        Self(
            documents
                .into_iter()
                .map(|(_, document)| {
                    let source = document.lines().next().unwrap_or_default().to_owned();
                    // What is no YAML is compared as text.
                    let value = tiphys_yaml::from_yaml(document);
                    (source, value.unwrap_or_else(|_| Value::String(document.to_owned())))
                })
                .filter(|(_, value)| !value.is_null())
                .collect(),
        )
    }

    fn hide(self, random: &BTreeMap<usize, Vec<String>>) -> Self {
        let hide = |(at, (source, mut value)): (usize, (String, Value))| {
            for path in random.get(&at).into_iter().flatten() {
                if let Some(found) = value.pointer_mut(path) {
                    *found = Value::from(HIDDEN);
                }
            }
            (source, value)
        };
        Self(self.0.into_iter().enumerate().map(hide).collect())
    }
}

/// JSON pointers of the places in which two values differ.
fn differing(a: &Value, b: &Value, at: &mut String, paths: &mut Vec<String>) {
    let length = at.len();
    match (a, b) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for (key, a) in a {
                at.push('/');
                at.push_str(&key.replace('~', "~0").replace('/', "~1"));
                differing(a, &b[key], at, paths);
                at.truncate(length);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                at.push_str(&format!("/{index}"));
                differing(a, b, at, paths);
                at.truncate(length);
            }
        }
        (a, b) if a != b => paths.push(at.clone()),
        _ => {}
    }
}

fn different(ours: &Stream, real: &Stream, _random: &BTreeMap<usize, Vec<String>>) -> Outcome {
    for (ours, real) in ours.0.iter().zip(&real.0) {
        if ours.1 == real.1 {
            continue;
        }
        let mut paths = Vec::new();
        differing(&ours.1, &real.1, &mut String::new(), &mut paths);
        let path = paths.into_iter().next().unwrap_or_default();
        let show = |value: &Value| {
            let text = value.pointer(&path).map(ToString::to_string).unwrap_or_default();
            text.chars().take(400).collect::<String>()
        };
        let first = format!(
            "{}\n  {path}\n  ours: {}\n  real: {}{}",
            real.0,
            show(&ours.1),
            show(&real.1),
            if ours.0 == real.0 { String::new() } else { format!("\n  ours is of {}", ours.0) }
        );
        return Outcome::Different { cause: "other value".to_owned(), first };
    }
    let first = format!("{} documents, real has {}", ours.0.len(), real.0.len());
    Outcome::Different { cause: "other number of documents".to_owned(), first }
}

/// Compares the texts of failures.
pub(super) fn failures(ours: &str, real: &str) -> Outcome {
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.trim().lines().map(str::trim_end).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    // Where Go walks a map, the order of lines is that of the moment.
    if ours.trim() == real.trim() || sorted(ours) == sorted(real) {
        return Outcome::SameError;
    }
    Outcome::Different {
        cause: "other error text".to_owned(),
        first: format!("  ours: {}\n  real: {}", ours.trim(), real.trim()),
    }
}
