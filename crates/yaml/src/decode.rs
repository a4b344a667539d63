//! Node trees into JSON values, as go-yaml decodes into `interface{}` and as sigs.k8s.io/yaml turns
//! that into JSON.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};

use base64::{Engine, alphabet, engine};
use serde_json::{Map, Number, Value};
use tiphys_value::{Budget, VALUE_BYTES, map_bytes};

use crate::{
    Content, Error, ErrorKind, Node, Profile, Style,
    number::go_float32,
    resolve::{Scalar, resolve, resolve_with},
};

/// Below this share of a large document may come from aliases; up to it, 99 %. go-yaml's numbers.
const ALIAS_RANGE: (f64, f64) = (400_000.0, 4_000_000.0);

/// What becomes of a float that is whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Floats {
    /// It comes back from JSON as an integer.
    AsJson,
    /// It stays a float.
    Kept,
}

/// Decodes one document.
pub(crate) struct Decoder<'n> {
    profile: Profile,
    strict: bool,
    floats: Floats,
    budget: &'n Budget,
    targets: HashMap<*const Node, &'n Node>,
    /// Aliases being followed, to find loops.
    following: HashSet<*const Node>,
    decoded: u64,
    decoded_in_alias: u64,
    /// Faults that go-yaml gathers and reports together.
    gathered: Vec<String>,
    /// A fault that only the conversion of keys to strings would meet.
    key_fault: Option<Error>,
    /// A fault that only writing JSON would meet.
    json_fault: Option<Error>,
}

/// A decoded key: go-yaml keeps keys of different types apart until they are turned into strings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Str(String),
    Int(i64),
    Uint(u64),
    /// The bits of a float.
    Float(u64),
    Bool(bool),
    Null,
}

/// Keys that a map has already, where that matters.
type SeenKeys = HashSet<Key>;

impl<'n> Decoder<'n> {
    /// Decodes `root`, the top of a document.
    pub(crate) fn decode(
        root: &'n Node,
        profile: Profile,
        strict: bool,
        floats: Floats,
        budget: &'n Budget,
    ) -> Result<Value, Error> {
        let targets = alias_targets(root)?;
        let mut decoder = Self {
            profile,
            strict,
            floats,
            budget,
            targets,
            following: HashSet::new(),
            decoded: 0,
            decoded_in_alias: 0,
            gathered: Vec::new(),
            key_fault: None,
            json_fault: None,
        };
        let value = decoder.value(root)?;
        if !decoder.gathered.is_empty() {
            let message = format!("yaml: unmarshal errors:\n  {}", decoder.gathered.join("\n  "));
            return Err(Error::new(ErrorKind::Decode, message));
        }
        match decoder.key_fault.or(decoder.json_fault) {
            Some(fault) => Err(fault),
            None => Ok(value),
        }
    }

    /// Counts a decoding step; too large a share of them inside aliases is an attack.
    fn count(&mut self) -> Result<(), Error> {
        self.decoded += 1;
        if self.following.is_empty() {
            return Ok(());
        }
        self.decoded_in_alias += 1;
        if self.decoded_in_alias > 100 && self.decoded > 1000 {
            let share = self.decoded_in_alias as f64 / self.decoded as f64;
            if share > allowed_alias_share(self.decoded as f64) {
                let message = "yaml: document contains excessive aliasing".to_owned();
                return Err(Error::new(ErrorKind::Limit, message));
            }
        }
        Ok(())
    }

    /// Counts bytes that a node's value takes.
    fn take(&self, node: &Node, bytes: u64) -> Result<(), Error> {
        self.budget.take(bytes).map_err(|fault| Error::over_budget(fault).located_at(node.span.start))
    }

    fn value(&mut self, node: &'n Node) -> Result<Value, Error> {
        self.count()?;
        match &node.content {
            Content::Scalar(text) => {
                self.take(node, text.len() as u64)?;
                self.scalar(node, text)
            }
            Content::Sequence(items) => {
                self.take(node, items.len() as u64 * VALUE_BYTES)?;
                items.iter().map(|item| self.value(item)).collect()
            }
            Content::Mapping(pairs) => {
                let mut map = Map::new();
                let mut seen = SeenKeys::new();
                if self.profile == Profile::Go3 && self.has_duplicates(pairs) {
                    return Ok(Value::Null);
                }
                self.take(node, map_bytes(pairs.len()))?;
                self.mapping(pairs, &mut map, &mut seen)?;
                Ok(Value::Object(map))
            }
            Content::Alias(name) => self.follow(node, name, |decoder, target| decoder.value(target)),
        }
    }

    fn follow<T>(
        &mut self,
        node: &'n Node,
        name: &str,
        then: impl FnOnce(&mut Self, &'n Node) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let at = std::ptr::from_ref(node);
        let Some(&target) = self.targets.get(&at) else {
            return Err(unknown_anchor(node, name));
        };
        if !self.following.insert(at) {
            let message = format!("yaml: anchor '{name}' value contains itself");
            return Err(Error::new(ErrorKind::Decode, message).located_at(node.span.start));
        }
        let result = then(self, target);
        self.following.remove(&at);
        result
    }

    /// go-yaml v3 refuses duplicate keys always.
    fn has_duplicates(&mut self, pairs: &[(Node, Node)]) -> bool {
        let mut first: HashMap<&str, &Node> = HashMap::with_capacity(pairs.len());
        let before = self.gathered.len();
        for (key, _) in pairs {
            let Content::Scalar(text) = &key.content else { continue };
            match first.get(text.as_str()) {
                None => {
                    first.insert(text, key);
                }
                Some(earlier) => self.gathered.push(format!(
                    "line {}: mapping key {} already defined at line {}",
                    key.span.start.line,
                    go_quote(text),
                    earlier.span.start.line
                )),
            }
        }
        self.gathered.len() > before
    }

    fn mapping(
        &mut self,
        pairs: &'n [(Node, Node)],
        map: &mut Map<String, Value>,
        seen: &mut SeenKeys,
    ) -> Result<(), Error> {
        let mut merge = None;
        for (key_node, value_node) in pairs {
            if is_merge(key_node) {
                match self.profile {
                    // v2 merges where the key stands, so that earlier keys are overwritten.
                    Profile::Go2 => self.merge(value_node, map, seen)?,
                    Profile::Go3 => merge = Some(value_node),
                }
                continue;
            }
            let key = self.key(key_node)?;
            if let Key::Str(text) = &key {
                self.take(key_node, text.len() as u64)?;
            }
            let value = self.value(value_node)?;
            if self.profile == Profile::Go3 {
                // In a merged map only what is not there yet counts; `seen` holds what is.
                if !seen.insert(key.clone()) {
                    continue;
                }
            } else if self.strict && !seen.insert(key.clone()) {
                let line = value_node.span.start.line;
                self.gathered.push(format!("line {line}: key {} already set in map", key.go_syntax()));
                continue;
            }
            if let Some(name) = self.key_name(&key, &value) {
                map.insert(name, value);
            }
        }
        match merge {
            Some(merge) => self.merge(merge, map, seen),
            None => Ok(()),
        }
    }

    fn merge(
        &mut self,
        node: &'n Node,
        map: &mut Map<String, Value>,
        seen: &mut SeenKeys,
    ) -> Result<(), Error> {
        match &node.content {
            Content::Mapping(_) | Content::Alias(_) => self.merge_one(node, map, seen),
            Content::Sequence(items) if self.profile == Profile::Go2 => {
                // Backwards, because the earlier one wins.
                items.iter().rev().try_for_each(|item| self.merge_one(item, map, seen))
            }
            Content::Sequence(items) => items.iter().try_for_each(|item| self.merge_one(item, map, seen)),
            Content::Scalar(_) => Err(want_map(node)),
        }
    }

    fn merge_one(
        &mut self,
        node: &'n Node,
        map: &mut Map<String, Value>,
        seen: &mut SeenKeys,
    ) -> Result<(), Error> {
        self.count()?;
        match &node.content {
            Content::Mapping(pairs) => self.mapping(pairs, map, seen),
            Content::Alias(name) => self.follow(node, name, |decoder, target| match &target.content {
                Content::Mapping(pairs) => {
                    decoder.count()?;
                    decoder.mapping(pairs, map, seen)
                }
                _ => Err(want_map(node)),
            }),
            _ => Err(want_map(node)),
        }
    }

    fn key(&mut self, node: &'n Node) -> Result<Key, Error> {
        self.count()?;
        match &node.content {
            Content::Scalar(text) => {
                let scalar = self.typed(node, text)?;
                Ok(match scalar {
                    Typed::Scalar(Scalar::Null) => Key::Null,
                    Typed::Scalar(Scalar::Bool(value)) => Key::Bool(value),
                    Typed::Scalar(Scalar::Int(value)) => Key::Int(value),
                    Typed::Scalar(Scalar::Uint(value)) => Key::Uint(value),
                    Typed::Scalar(Scalar::Float(value)) => Key::Float(value.to_bits()),
                    Typed::Scalar(Scalar::Merge) => Key::Str("<<".to_owned()),
                    Typed::Scalar(Scalar::Str(text) | Scalar::Timestamp(text)) => Key::Str(text.to_owned()),
                    Typed::Bytes(text) => Key::Str(text),
                })
            }
            Content::Alias(name) => self.follow(node, name, |decoder, target| decoder.key(target)),
            Content::Mapping(_) | Content::Sequence(_) => {
                let value = self.value(node)?;
                let message = format!("yaml: invalid map key: {}", go_syntax(&value));
                Err(Error::new(ErrorKind::Decode, message).located_at(node.span.start))
            }
        }
    }

    /// The string that sigs.k8s.io/yaml makes of a key.
    fn key_name(&mut self, key: &Key, value: &Value) -> Option<String> {
        Some(match key {
            Key::Str(text) => text.clone(),
            Key::Int(value) => value.to_string(),
            Key::Float(bits) => go_float32(f64::from_bits(*bits)),
            Key::Bool(value) => value.to_string(),
            Key::Null | Key::Uint(_) => {
                let kind = if *key == Key::Null { "%!s(<nil>)" } else { "uint64" };
                let message = format!(
                    "unsupported map key of type: {kind}, key: {}, value: {}",
                    key.go_syntax(),
                    if value.is_null() { "<nil>".to_owned() } else { go_syntax(value) }
                );
                self.key_fault.get_or_insert(Error::new(ErrorKind::Decode, message));
                return None;
            }
        })
    }

    fn scalar(&mut self, node: &'n Node, text: &'n str) -> Result<Value, Error> {
        let scalar = match self.typed(node, text)? {
            Typed::Bytes(text) => return Ok(Value::String(text)),
            Typed::Scalar(scalar) => scalar,
        };
        Ok(json_scalar(scalar, self.floats).unwrap_or_else(|| {
            let text = match scalar {
                Scalar::Float(f64::INFINITY) => "+Inf",
                Scalar::Float(f64::NEG_INFINITY) => "-Inf",
                _ => "NaN",
            };
            let message = format!("json: unsupported value: {text}");
            self.json_fault.get_or_insert(Error::new(ErrorKind::Decode, message).located_at(node.span.start));
            Value::Null
        }))
    }

    fn typed(&self, node: &'n Node, text: &'n str) -> Result<Typed<'n>, Error> {
        if !node.explicit_tag {
            let is_text = node.style != Style::Plain || self.profile == Profile::Go3 && node.tag == "!!str";
            return Ok(Typed::Scalar(match is_text {
                true => Scalar::Str(text),
                false => resolve(text, self.profile),
            }));
        }
        let tag = node.tag.as_str();
        match tag {
            "!!str" => Ok(Typed::Scalar(Scalar::Str(text))),
            "!!binary" => decode_binary(text, node).map(Typed::Bytes),
            "!!bool" | "!!int" | "!!float" | "!!null" | "!!timestamp" => {
                let scalar = resolve_with(text, self.profile, tag == "!!timestamp");
                match scalar {
                    Scalar::Int(value) if tag == "!!float" => Ok(Typed::Scalar(Scalar::Float(value as f64))),
                    _ if scalar.tag() == tag => Ok(Typed::Scalar(scalar)),
                    _ => {
                        let message = format!("yaml: cannot decode {} `{text}` as a {tag}", scalar.tag());
                        Err(Error::new(ErrorKind::Decode, message).located_at(node.span.start))
                    }
                }
            }
            _ => Ok(Typed::Scalar(Scalar::Str(text))),
        }
    }
}

/// The JSON value of a scalar; floats that are not finite have none.
///
/// JSON writes integral floats without point or exponent up to 1e21, so that they come back as integers (of
/// the shortest digits that mean the float). Of those only the negative zero stays a float: no integer is
/// one.
pub(crate) fn json_scalar(scalar: Scalar<'_>, floats: Floats) -> Option<Value> {
    Some(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(value) => Value::Bool(value),
        Scalar::Int(value) => Value::from(value),
        Scalar::Uint(value) => Value::from(value),
        Scalar::Float(value) => {
            let is_negative_zero = value == 0.0 && value.is_sign_negative();
            let integer =
                floats == Floats::AsJson && value.fract() == 0.0 && value.abs() < 1e19 && !is_negative_zero;
            match integer.then(|| value.to_string().parse::<i64>()) {
                Some(Ok(integer)) => Value::from(integer),
                _ => Value::Number(Number::from_f64(value)?),
            }
        }
        Scalar::Merge => Value::from("<<"),
        Scalar::Str(text) | Scalar::Timestamp(text) => Value::from(text),
    })
}

enum Typed<'n> {
    Scalar(Scalar<'n>),
    Bytes(String),
}

/// go-yaml decodes base64 into a Go string; JSON then replaces each byte that is not UTF-8.
fn decode_binary(text: &str, node: &Node) -> Result<String, Error> {
    let config = engine::GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    let decoder = engine::GeneralPurpose::new(&alphabet::STANDARD, config);
    let compact: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    let Ok(bytes) = decoder.decode(compact) else {
        let message = "yaml: !!binary value contains invalid base64 data".to_owned();
        return Err(Error::new(ErrorKind::Decode, message).located_at(node.span.start));
    };
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| '\u{FFFD}'));
    }
    Ok(out)
}

pub(crate) fn is_merge(node: &Node) -> bool {
    let Content::Scalar(text) = &node.content else { return false };
    text == "<<" && (node.tag == "!!merge" || node.tag.is_empty() || node.tag == "!")
}

fn want_map(node: &Node) -> Error {
    let message = "yaml: map merge requires map or sequence of maps as the value".to_owned();
    Error::new(ErrorKind::Decode, message).located_at(node.span.start)
}

fn unknown_anchor(node: &Node, name: &str) -> Error {
    let message = format!("yaml: unknown anchor '{name}' referenced");
    Error::new(ErrorKind::Syntax, message).located_at(node.span.start)
}

fn allowed_alias_share(decoded: f64) -> f64 {
    let (low, high) = ALIAS_RANGE;
    0.99 - 0.89 * ((decoded - low) / (high - low)).clamp(0.0, 1.0)
}

/// What each alias of a tree stands for: an anchor means the node that last carried it before.
pub(crate) fn alias_targets(root: &Node) -> Result<HashMap<*const Node, &Node>, Error> {
    fn visit<'n>(
        node: &'n Node,
        anchors: &mut HashMap<&'n str, &'n Node>,
        targets: &mut HashMap<*const Node, &'n Node>,
    ) -> Result<(), Error> {
        if let Some(anchor) = &node.anchor {
            anchors.insert(anchor, node);
        }
        match &node.content {
            Content::Scalar(_) => Ok(()),
            Content::Sequence(items) => items.iter().try_for_each(|item| visit(item, anchors, targets)),
            Content::Mapping(pairs) => pairs.iter().try_for_each(|(key, value)| {
                visit(key, anchors, targets)?;
                visit(value, anchors, targets)
            }),
            Content::Alias(name) => match anchors.get(name.as_str()) {
                Some(&target) => {
                    targets.insert(std::ptr::from_ref(node), target);
                    Ok(())
                }
                None => Err(unknown_anchor(node, name)),
            },
        }
    }
    let mut targets = HashMap::new();
    visit(root, &mut HashMap::new(), &mut targets)?;
    Ok(targets)
}

impl Key {
    fn go_syntax(&self) -> String {
        match self {
            Key::Str(text) => go_quote(text),
            Key::Int(value) => value.to_string(),
            Key::Uint(value) => format!("{value:#x}"),
            Key::Float(bits) => crate::number::go_float(f64::from_bits(*bits)),
            Key::Bool(value) => value.to_string(),
            Key::Null => "<nil>".to_owned(),
        }
    }
}

/// A string as Go's `%#v` prints it.
fn go_quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{B}' => out.push_str("\\v"),
            '\u{C}' => out.push_str("\\f"),
            c if u32::from(c) < 0x20 || c == '\u{7F}' => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A decoded value as Go's `%#v` prints it.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => go_quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let pairs: Vec<String> =
                map.iter().map(|(key, value)| format!("{}:{}", go_quote(key), go_syntax(value))).collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", pairs.join(", "))
        }
    }
}
