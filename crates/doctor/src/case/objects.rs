//! Objects out of texts: Lists and single objects, YAML and JSON, streams of both, whole or cut off.

use std::collections::{BTreeSet, HashMap};

use tiphys_value::{ObjectExt as _, Value};

use super::{
    Case, Event, Log,
    salvage::{self, Salvaged},
};

/// Lists nested deeper than this are no dump.
const MAX_DEPTH: usize = 32;
/// What `kubectl cluster-info dump` puts around the logs of a container.
pub(super) const LOG_START: &str = "==== START logs for container ";
const LOG_END: &str = "==== END logs for";

/// Text in UTF-8, or in UTF-16 as shells on Windows redirect it; bytes that are no text are replaced.
pub(super) fn decoded(bytes: &[u8]) -> String {
    let units = |of: fn([u8; 2]) -> u16, start: usize| -> String {
        let units: Vec<u16> = bytes[start..].chunks_exact(2).map(|pair| of([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    let text = match bytes {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes, 2),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes, 2),
        // Without a mark the first letter tells, which is of ASCII.
        [0, first, ..] if *first != 0 => units(u16::from_be_bytes, 0),
        [first, 0, ..] if *first != 0 => units(u16::from_le_bytes, 0),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    let text = without_colours(&text);
    let is_strange = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    let text = if text.contains(is_strange) { text.replace(is_strange, " ") } else { text };
    if text.contains("\r\n") { text.replace("\r\n", "\n") } else { text }
}

/// Whether a text begins as objects do, whatever its file is called.
pub(super) fn starts_as_objects(start: &str) -> bool {
    let start = start.trim_start_matches('\u{feff}').trim_start();
    let has_word = |word: &str| start.lines().take(4).any(|line| line.starts_with(word));
    has_word("apiVersion:") && start.contains("kind:")
        || has_word("kind:") && start.contains("apiVersion:")
        || start.starts_with('{')
            && start.contains("\"apiVersion\"")
            && start.contains("\"kind\"")
            && (start.contains("\"metadata\"") || start.contains("\"items\""))
}

/// A text without the sequences by which terminals are told of colours.
pub(super) fn without_colours(text: &str) -> String {
    if !text.contains('\u{1b}') {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        if letter != '\u{1b}' {
            plain.push(letter);
        } else if rest.clone().next() == Some('[') {
            // `ESC [`, numbers, and the letter that ends the sequence.
            rest.next();
            let _ = rest.by_ref().find(|letter| letter.is_ascii_alphabetic());
        }
    }
    plain
}

/// What could not be read of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    /// What is wrong, in a sentence each.
    pub(super) texts: Vec<String>,
    /// The kinds that stand in a broken list: objects of them may be lost.
    pub(super) kinds: BTreeSet<String>,
}

impl Faults {
    fn from_text(text: String) -> Self {
        Self { texts: vec![text], kinds: BTreeSet::new() }
    }
}

/// Adds the objects, events and logs of a text to a case; returns what is wrong with the rest.
pub(super) fn parse(text: &str, case: &mut Case) -> Faults {
    let text = text.trim_start_matches('\u{feff}');
    let text = if text.contains(LOG_START) { parse_marked_logs(text, case) } else { text.to_owned() };
    let is_json =
        text.trim_start().starts_with(['{', '[']) && !text.lines().any(|line| line.starts_with("---"));
    if is_json { parse_json(&text, case) } else { parse_yaml(&text, case) }
}

fn parse_json(text: &str, case: &mut Case) -> Faults {
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value {
            Ok(value) => take_apart(value, 0, case),
            Err(error) => {
                if let Some(salvaged) = salvage::of_json(text).filter(|it| !it.items.is_empty()) {
                    return take_salvaged(salvaged, &error.to_string(), case);
                }
                if error.is_eof() {
                    return Faults::from_text("the JSON is cut off".to_owned());
                }
                // YAML in flow style is no JSON.
                match tiphys_yaml::from_yaml(text) {
                    Ok(value) => take_apart(value, 0, case),
                    Err(_) => return Faults::from_text(format!("no valid JSON: {error}")),
                }
            }
        }
    }
    Faults::default()
}

fn parse_yaml(text: &str, case: &mut Case) -> Faults {
    let mut faults = Faults::default();
    for document in documents(text) {
        let found = match tiphys_yaml::from_yaml(&document) {
            Ok(Value::Null) => continue,
            Ok(value) => {
                take_apart(value, 0, case);
                continue;
            }
            Err(error) => match salvage::of_yaml(&document) {
                Some(salvaged) => take_salvaged(salvaged, &error.to_string(), case),
                None => Faults::from_text(format!("no valid YAML: {error}")),
            },
        };
        faults.texts.extend(found.texts);
        faults.kinds.extend(found.kinds);
    }
    faults
}

/// Adds what is whole of a list, and says what is not.
fn take_salvaged(salvaged: Salvaged, error: &str, case: &mut Case) -> Faults {
    let read = salvaged.items.len();
    let kinds = salvaged.items.iter().map(|item| item.kind().to_owned()).collect();
    salvaged.items.into_iter().for_each(|item| take_apart(item, 1, case));
    Faults { texts: vec![format!("{} items are broken, {read} were read: {error}", salvaged.broken)], kinds }
}

/// The documents of a stream, without what kubectl says before them.
fn documents(text: &str) -> Vec<String> {
    const SAID: [&str; 4] = ["Warning: ", "Error from server", "error: ", "No resources found"];
    let mut found = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.starts_with("---") {
            found.push(String::new());
        } else if !SAID.iter().any(|start| line.starts_with(start))
            && let Some(last) = found.last_mut()
        {
            last.push_str(line);
        }
    }
    found.retain(|document| !document.trim().is_empty());
    found
}

/// Adds an object, or the items of a list, which may be lists.
fn take_apart(mut value: Value, depth: usize, case: &mut Case) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Value::Array(items) = value {
        return items.into_iter().for_each(|item| take_apart(item, depth + 1, case));
    }
    let (kind, api_version) = (value.kind().to_owned(), value.api_version().to_owned());
    match value.get_mut("items") {
        Some(Value::Array(items)) if kind.ends_with("List") || kind.is_empty() => {
            let of = kind.strip_suffix("List").unwrap_or_default().to_owned();
            for mut item in std::mem::take(items) {
                if let (Some(root), false) = (item.as_object_mut(), of.is_empty()) {
                    root.entry("apiVersion").or_insert_with(|| api_version.as_str().into());
                    root.entry("kind").or_insert_with(|| of.as_str().into());
                }
                take_apart(item, depth + 1, case);
            }
        }
        _ if kind.is_empty() || api_version.is_empty() || kind.ends_with("List") => {}
        _ => match Event::from_live(&value) {
            Some(event) => case.events.push(event),
            None if value.name().is_empty() => {}
            None => case.objects.push(value),
        },
    }
}

/// Takes the logs out of the output of `kubectl cluster-info dump`; returns the rest.
pub(super) fn parse_marked_logs(text: &str, case: &mut Case) -> String {
    let mut rest = String::new();
    let mut log: Option<Log> = None;
    for line in text.split_inclusive('\n') {
        if let Some(title) = line.strip_prefix(LOG_START) {
            log = title.trim_end_matches(['=', ' ', '\n']).split_once(" of pod ").and_then(
                |(container, pod)| {
                    let (namespace, pod) = pod.split_once('/')?;
                    let [namespace, pod, container] = [namespace, pod, container].map(str::to_owned);
                    Some(Log { namespace, pod, container, ..Log::default() })
                },
            );
        } else if line.starts_with(LOG_END) {
            case.logs.extend(log.take().map(clipped));
        } else if let Some(log) = &mut log {
            log.text.push_str(line);
        } else {
            rest.push_str(line);
        }
    }
    case.logs.extend(log.take().map(clipped));
    rest
}

/// A log with no more than its end.
fn clipped(mut log: Log) -> Log {
    let limit = usize::try_from(super::folder::TAIL).unwrap_or(usize::MAX);
    if log.text.len() > limit {
        let mut start = log.text.len() - limit;
        while !log.text.is_char_boundary(start) {
            start += 1;
        }
        log.text.drain(..start);
    }
    log
}

impl Case {
    /// Keeps the newest of the objects, and one of the events and logs, that stand there more than once.
    pub(super) fn drop_repeated(&mut self) {
        let version = |object: &Value| object.resource_version().parse::<u64>().unwrap_or(0);
        let mut newest: HashMap<_, usize> = HashMap::new();
        let mut kept = vec![true; self.objects.len()];
        for (at, object) in self.objects.iter().enumerate() {
            if let Some(before) = newest.insert(object.resource_key(), at) {
                let older = if version(&self.objects[before]) > version(object) { at } else { before };
                kept[older] = false;
                if older == at {
                    newest.insert(object.resource_key(), before);
                }
            }
        }
        let mut kept = kept.into_iter();
        self.objects.retain(|_| kept.next().unwrap_or(true));
        let mut seen = std::collections::HashSet::new();
        self.events.retain(|event| {
            seen.insert((event.object.clone(), event.reason.clone(), event.message.clone(), event.last))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let mut case = Case::default();
        parse(text, &mut case);
        case.objects.iter().map(|object| format!("{}/{}", object.kind(), object.name())).collect()
    }

    #[test]
    fn lists_streams_and_logs_between_them() {
        assert_eq!(
            names("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n"),
            ["Pod/a"]
        );
        let dump = "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"items\":[{\"metadata\":{\"name\":\"n\"}}]}\n==== START logs for container c of pod a/b ====\nhello\n==== END logs for container c of pod a/b ====\n{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[]}\n";
        let mut case = Case::default();
        assert_eq!(parse(dump, &mut case), Faults::default());
        assert_eq!((case.objects.len(), case.logs.len()), (1, 1));
        assert_eq!((case.logs[0].pod.as_str(), case.logs[0].text.as_str()), ("b", "hello\n"));
    }

    #[test]
    fn what_is_cut_off_is_read_up_to_there() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: \"b";
        let mut case = Case::default();
        let faults = parse(text, &mut case);
        assert_eq!((faults.texts.len(), faults.kinds.contains("Pod")), (1, true));
        assert_eq!(case.objects.len(), 1);
    }

    #[test]
    fn colours_are_taken_off() {
        assert_eq!(without_colours("\u{1b}[31mERROR\u{1b}[0m x \u{1b}[1;33mb\u{1b}[m"), "ERROR x b");
        assert_eq!(without_colours("cut \u{1b}["), "cut ");
    }

    #[test]
    fn objects_are_known_by_their_first_lines() {
        assert!(starts_as_objects("apiVersion: v1\nitems:\n- kind: Pod\n"));
        assert!(starts_as_objects("{\n \"apiVersion\": \"v1\", \"items\": [], \"kind\": \"List\"}"));
        assert!(!starts_as_objects("{\"level\":\"info\",\"kind\":\"Pod\",\"msg\":\"reconciled\"}"));
        assert!(!starts_as_objects("INFO kind: Pod\n"));
    }

    #[test]
    fn events_of_both_apis() {
        let text = "apiVersion: events.k8s.io/v1\nkind: Event\nmetadata: {name: e, namespace: a}\nregarding: {kind: Pod, name: p, namespace: a}\nreason: BackOff\nnote: again\ntype: Warning\nseries: {count: 7, lastObservedTime: '2026-01-02T03:04:05.000000Z'}\n";
        let mut case = Case::default();
        parse(text, &mut case);
        assert_eq!((case.events[0].message.as_str(), case.events[0].count), ("again", 7));
        assert_eq!(case.events[0].last, Some("2026-01-02T03:04:05Z".parse().unwrap()));
    }
}
