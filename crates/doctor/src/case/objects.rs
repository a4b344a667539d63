//! Objects out of texts: Lists and single objects, YAML and JSON, streams of both, whole or cut off.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
};

use tiphys_value::{Budget, JsonError, ObjectExt as _, RenderLimits, Value, json_stream_within};
use tiphys_yaml::ErrorKind;

use super::{
    Case, Event, Log,
    salvage::{self, Salvaged},
};

/// Lists nested deeper than this are no dump.
const MAX_DEPTH: usize = 32;
/// More sentences about one text help nobody.
const MAX_FAULTS: usize = 100;
/// What `kubectl cluster-info dump` puts around the logs of a container.
pub(super) const LOG_START: &str = "==== START logs for container ";
const LOG_END: &str = "==== END logs for";

/// Text in UTF-8, or in UTF-16 as shells on Windows redirect it; bytes that are no text are replaced.
pub(super) fn decoded(bytes: Vec<u8>) -> String {
    let units = |of: fn([u8; 2]) -> u16, start: usize| -> String {
        let units = bytes[start..].chunks_exact(2).map(|pair| of([pair[0], pair[1]]));
        char::decode_utf16(units).map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    let text = match *bytes {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes, 2),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes, 2),
        // Without a mark the first letter tells, which is of ASCII.
        [0, first, ..] if first != 0 => units(u16::from_be_bytes, 0),
        [first, 0, ..] if first != 0 => units(u16::from_le_bytes, 0),
        _ => String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    };
    let text = if text.contains(ESCAPE) { without_colours(&text) } else { text };
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

const ESCAPE: char = '\u{1b}';

/// A text without the sequences by which terminals are told of colours.
pub(super) fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        if letter != ESCAPE {
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
    /// Whether no more is read, of this text and of others.
    pub(super) is_over_budget: bool,
}

impl Faults {
    fn from_text(text: String) -> Self {
        Self { texts: vec![text], ..Self::default() }
    }

    fn over_budget() -> Self {
        let text = format!(
            "the state takes more than {} MiB of memory, and no more of it was read ({} raises the limit)",
            Budget::of_saved_state().remaining_bytes() >> 20,
            RenderLimits::FLAGS[0]
        );
        Self { is_over_budget: true, ..Self::from_text(text) }
    }
}

/// Adds the objects, events and logs of a text to a case, as far as the budget reaches; returns what is wrong
/// with the rest.
pub(super) fn parse(text: &str, case: &mut Case, budget: &Budget) -> Faults {
    let text = text.trim_start_matches('\u{feff}');
    let text = if text.contains(LOG_START) {
        Cow::Owned(parse_marked_logs(text, case))
    } else {
        Cow::Borrowed(text)
    };
    let is_json =
        text.trim_start().starts_with(['{', '[']) && !text.lines().any(|line| line.starts_with("---"));
    if is_json { parse_json(&text, case, budget) } else { parse_yaml(&text, case, budget) }
}

fn parse_json(text: &str, case: &mut Case, budget: &Budget) -> Faults {
    let whole = Budget::new(budget.remaining_bytes());
    let mut counted = 0;
    for value in json_stream_within(text, &whole) {
        let error = match value {
            Ok(value) => {
                take_apart(value, 0, case);
                // There was as much.
                let _ = budget.take(whole.used_bytes() - counted);
                counted = whole.used_bytes();
                continue;
            }
            Err(error) => error,
        };
        if let Some(salvaged) = salvage::of_json(text, budget).filter(|it| !it.items.is_empty()) {
            return take_salvaged(salvaged, &error.to_string(), case);
        }
        return match error {
            JsonError::Budget(_) => Faults::over_budget(),
            JsonError::Syntax(error) if error.is_eof() => Faults::from_text("the JSON is cut off".to_owned()),
            // YAML in flow style is no JSON.
            JsonError::Syntax(error) => match read_document(text, budget) {
                Ok(value) => {
                    take_apart(value, 0, case);
                    Faults::default()
                }
                Err(_) => Faults::from_text(format!("no valid JSON: {error}")),
            },
        };
    }
    Faults::default()
}

fn parse_yaml(text: &str, case: &mut Case, budget: &Budget) -> Faults {
    let mut faults = Faults::default();
    for document in documents(text) {
        let found = match read_document(&document, budget) {
            Ok(Value::Null) => continue,
            Ok(value) => {
                take_apart(value, 0, case);
                continue;
            }
            Err(error) => match salvage::of_yaml(&document, budget) {
                // A list that is too long for one document is read item by item.
                Some(salvaged) if error.kind() == ErrorKind::Budget && salvaged.is_whole() => {
                    salvaged.items.into_iter().for_each(|item| take_apart(item, 1, case));
                    continue;
                }
                Some(salvaged) => take_salvaged(salvaged, &error.to_string(), case),
                None if budget.remaining_bytes() == 0 => Faults::over_budget(),
                None => Faults::from_text(format!("no valid YAML: {error}")),
            },
        };
        if faults.texts.len() < MAX_FAULTS {
            faults.texts.extend(found.texts);
        }
        faults.kinds.extend(found.kinds);
        faults.is_over_budget |= found.is_over_budget;
        if faults.is_over_budget {
            break;
        }
    }
    faults
}

/// Reads one document of YAML, and takes from the budget what it makes.
pub(super) fn read_document(text: &str, budget: &Budget) -> Result<Value, tiphys_yaml::Error> {
    let own = Budget::of_document_within(budget.remaining_bytes());
    let value = tiphys_yaml::from_yaml_within(text, &own)?;
    // There was as much.
    let _ = budget.take(own.used_bytes());
    Ok(value)
}

/// Adds what is whole of a list, and says what is not.
fn take_salvaged(salvaged: Salvaged, error: &str, case: &mut Case) -> Faults {
    let read = salvaged.items.len();
    let mut faults = match salvaged.is_over_budget {
        true => Faults::over_budget(),
        false => {
            Faults::from_text(format!("{} items are broken, {read} were read: {error}", salvaged.broken))
        }
    };
    faults.kinds = salvaged.items.iter().map(|item| item.kind().to_owned()).collect();
    salvaged.items.into_iter().for_each(|item| take_apart(item, 1, case));
    faults
}

/// The documents of a stream, without what kubectl says before them.
fn documents(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    const SAID: [&str; 4] = ["Warning: ", "Error from server", "error: ", "No resources found"];
    let is_said = |line: &str| SAID.iter().any(|start| line.starts_with(start));
    let mut rest = text;
    let whole = std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = 0;
        for line in rest.split_inclusive('\n') {
            if line.starts_with("---") {
                let (document, behind) = rest.split_at(end);
                rest = &behind[line.len()..];
                return Some(document);
            }
            end += line.len();
        }
        Some(std::mem::take(&mut rest))
    });
    let without_said = whole.map(move |document| match document.lines().any(is_said) {
        true => Cow::Owned(document.split_inclusive('\n').filter(|line| !is_said(line)).collect()),
        false => Cow::Borrowed(document),
    });
    without_said.filter(|document: &Cow<'_, str>| !document.trim().is_empty())
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
        parse(text, &mut case, &Budget::of_saved_state());
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
        assert_eq!(parse(dump, &mut case, &Budget::of_saved_state()), Faults::default());
        assert_eq!((case.objects.len(), case.logs.len()), (1, 1));
        assert_eq!((case.logs[0].pod.as_str(), case.logs[0].text.as_str()), ("b", "hello\n"));
    }

    #[test]
    fn what_is_cut_off_is_read_up_to_there() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: \"b";
        let mut case = Case::default();
        let faults = parse(text, &mut case, &Budget::of_saved_state());
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
        parse(text, &mut case, &Budget::of_saved_state());
        assert_eq!((case.events[0].message.as_str(), case.events[0].count), ("again", 7));
        assert_eq!(case.events[0].last, Some("2026-01-02T03:04:05Z".parse().unwrap()));
    }
}
