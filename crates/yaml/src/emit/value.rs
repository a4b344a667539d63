//! JSON values as go-yaml's encoders write Go values.

use serde_json::{Map, Number, Value};

use super::{
    events::{Event, Kind},
    simple,
    state::Emitter,
};
use crate::{
    Node, Profile, Style,
    number::go_float,
    resolve::{Scalar, resolve, yaml11_bool},
    sort::sort_keys,
};

/// `sigs.k8s.io/yaml.Marshal`.
pub(crate) fn emit_value(value: &Value) -> String {
    simple::write(value).unwrap_or_else(|| emit_with_emitter(value))
}

/// The same, whatever the value.
pub(super) fn emit_with_emitter(value: &Value) -> String {
    let mut scratch = Numbers::default();
    scratch.collect(value);
    let mut emitter = Emitter::go2();
    emitter.begin_document("");
    emitter.value(value, &mut scratch.texts.iter());
    emitter.end_document("");
    emitter.finish()
}

/// Texts of all numbers in the order of writing, because events borrow.
#[derive(Default)]
struct Numbers {
    texts: Vec<String>,
}

impl Numbers {
    fn collect(&mut self, value: &Value) {
        match value {
            Value::Number(number) => self.texts.push(number_text(number)),
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(map) if is_sorted(map) => map.values().for_each(|value| self.collect(value)),
            Value::Object(map) => sorted(map).into_iter().for_each(|(_, value)| self.collect(value)),
            _ => {}
        }
    }
}

/// A number on its way through JSON and back: integral floats have become integers.
pub(super) fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e21 => {
            let digits = float.to_string();
            if digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok() {
                return if digits == "-0" { "0".to_owned() } else { digits };
            }
            go_float(float)
        }
        Some(float) if number.is_f64() => go_float(float),
        _ => number.to_string(),
    }
}

/// Whether the order of the map, that of bytes, is go-yaml's: it is as long as nothing but letters occurs.
fn is_sorted(map: &Map<String, Value>) -> bool {
    map.len() < 2
        || map.keys().all(|key| key.bytes().all(|b| b.is_ascii_alphabetic())) && map.keys().is_sorted()
}

fn sorted(map: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let pairs = || map.iter().map(|(key, value)| (key.as_str(), value)).collect();
    sorted_unless(map).unwrap_or_else(pairs)
}

/// The entries in go-yaml's order, unless that is the map's own.
pub(super) fn sorted_unless(map: &Map<String, Value>) -> Option<Vec<(&str, &Value)>> {
    if is_sorted(map) {
        return None;
    }
    let mut pairs: Vec<(&str, &Value)> = map.iter().map(|(key, value)| (key.as_str(), value)).collect();
    sort_keys(&mut pairs, |pair| pair.0);
    Some(pairs)
}

impl<'a> Emitter<'a> {
    fn value(&mut self, value: &'a Value, numbers: &mut std::slice::Iter<'a, String>) {
        match value {
            Value::Null => self.plain("null"),
            Value::Bool(true) => self.plain("true"),
            Value::Bool(false) => self.plain("false"),
            Value::Number(_) => {
                let text = numbers.next().map_or("0", String::as_str);
                self.plain(text);
            }
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.event(Event::new(Kind::SequenceStart { flow: false, empty: items.is_empty() }));
                for item in items {
                    self.value(item, numbers);
                }
                self.event(Event::new(Kind::SequenceEnd));
            }
            Value::Object(map) => {
                self.event(Event::new(Kind::MappingStart { flow: false, empty: map.is_empty() }));
                for (key, value) in sorted(map) {
                    self.string(key);
                    self.value(value, numbers);
                }
                self.event(Event::new(Kind::MappingEnd));
            }
        }
    }

    fn plain(&mut self, text: &'a str) {
        self.event(Event::new(Kind::Scalar(text, Style::Plain)));
    }

    fn string(&mut self, text: &'a str) {
        self.event(Event::new(Kind::Scalar(text, string_style(text, Profile::Go2))));
    }
}

/// The style in which go-yaml marshals a Go string, before it looks whether the text can be written so.
pub fn string_style(text: &str, profile: Profile) -> Style {
    if text.contains('\n') {
        return Style::Literal;
    }
    let is_text = matches!(resolve(text, profile), Scalar::Str(_))
        && !is_base60(text)
        && (profile == Profile::Go2 || yaml11_bool(text).is_none());
    if is_text { Style::Plain } else { Style::DoubleQuoted }
}

/// `190:20:30`, a number in YAML 1.1: `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`.
fn is_base60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit()) || !unsigned.contains(':') {
        return false;
    }
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let mut parts = whole.split(':');
    parts.next().is_some_and(is_digits)
        && is_digits(fraction)
        && parts.all(|part| match part.as_bytes() {
            [ones] => ones.is_ascii_digit(),
            [tens, ones] => (b'0'..=b'5').contains(tens) && ones.is_ascii_digit(),
            _ => false,
        })
}

/// A node tree that go-yaml v3 writes as it would write the value itself.
pub(crate) fn value_to_node(value: &Value) -> Node {
    match value {
        Value::Null => Node::null(),
        Value::Bool(value) => Node::typed(if *value { "true" } else { "false" }, "!!bool"),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => Node::typed(go_float(float), "!!float"),
            _ => Node::typed(number.to_string(), "!!int"),
        },
        Value::String(text) => {
            let mut node = Node::string(text.as_str());
            node.style = string_style(text, Profile::Go3);
            node
        }
        Value::Array(items) => Node::sequence(items.iter().map(value_to_node).collect()),
        Value::Object(map) => {
            let pairs = sorted(map);
            Node::mapping(
                pairs
                    .into_iter()
                    .map(|(key, value)| (value_to_node(&Value::from(key)), value_to_node(value)))
                    .collect(),
            )
        }
    }
}
