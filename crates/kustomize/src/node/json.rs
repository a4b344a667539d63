//! Between nodes and JSON, as kyaml goes: nodes are written as YAML, read again by go-yaml v3 and
//! printed by `encoding/json`. What that detour does to tags and styles is done here directly.

use base64::Engine;
use serde_json::{Map, Number, Value};
use smol_str::SmolStr;
use tiphys_yaml as yaml;

use tiphys_gocompat::strconv::quote;

use super::{Content, ExplicitTag, Node, Resolved, Style, Tag, WRITTEN, resolve};

/// How deep a tree may be: go-yaml refuses more than 10,000 levels, JSON decoders of Go as many.
/// Ours recurse, so the bound is lower.
pub(crate) const MAX_DEPTH: usize = 512;

/// The JSON value of a node (`RNode.MarshalJSON`, then `JSONToYAML`'s reading of numbers).
///
/// # Errors
/// In Go's words: keys given twice, keys that are no text, values without a JSON form.
pub(crate) fn to_json(node: &Node) -> Result<Value, String> {
    value_of(node, 0).map_err(|fault| match fault {
        JsonError::Duplicate(key) => duplicates(node, &key),
        JsonError::Other(text) => text,
    })
}

/// Why a node has no JSON value.
enum JsonError {
    /// This key of one of its mappings is there twice.
    Duplicate(String),
    Other(String),
}

impl From<String> for JsonError {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

/// What go-yaml says of keys that are there twice. The lines it names are those of the text that
/// `MarshalJSON` writes first and then reads; kustomize counts the lines of comments, which nodes do not keep
/// here.
fn duplicates(node: &Node, key: &str) -> String {
    let written = yaml::emit(&node.to_yaml_node(), yaml::EmitOptions::KYAML);
    let read = yaml::parse_first(&written, yaml::Profile::Go3)
        .and_then(|document| document.map(|it| yaml::to_value(&it.root, yaml::Profile::Go3)).transpose());
    match read {
        Err(error) => error.to_string(),
        Ok(_) => format!("yaml: unmarshal errors:\n  mapping key {} already defined", quote(key)),
    }
}

fn value_of(node: &Node, depth: usize) -> Result<Value, JsonError> {
    if depth > MAX_DEPTH {
        return Err(format!("exceeded max depth of {MAX_DEPTH}").into());
    }
    match &node.content {
        Content::Scalar(text) => Ok(scalar_value(node, text)?),
        Content::Seq(items) => items.iter().map(|item| value_of(item, depth + 1)).collect(),
        Content::Map(pairs) => {
            let mut map = Map::new();
            for (key, value) in pairs {
                if depth > 0 && !reads_back_as_text(key) {
                    return Err("json: unsupported type: map[interface {}]interface {}".to_owned().into());
                }
                let value = value_of(value, depth + 1)?;
                if map.insert(key.value().to_owned(), value).is_some() {
                    return Err(JsonError::Duplicate(key.value().to_owned()));
                }
            }
            Ok(Value::Object(map))
        }
    }
}

/// Whether a key is still text once it is written and read again.
pub(super) fn reads_back_as_text(key: &Node) -> bool {
    matches!(meaning(key), Ok(Meaning::Text | Meaning::Decoded(_)))
}

pub(super) enum Meaning {
    Text,
    /// Text after decoding (`!!binary`).
    Decoded(String),
    Other(Resolved),
}

/// What a scalar means after it is written and read again.
pub(super) fn meaning(node: &Node) -> Result<Meaning, String> {
    let text = node.value();
    let explicit = match node.tag {
        Tag::Explicit(tag) => Some(tag),
        _ => None,
    };
    if let Some(tag) = explicit {
        return explicit_meaning(tag, text);
    }
    if node.tag == Tag::Str || node.is_quoted() {
        return Ok(Meaning::Text);
    }
    let resolved = resolve(text);
    match node.tag {
        Tag::Binary => explicit_meaning(ExplicitTag::Binary, text),
        Tag::Unset => Ok(plain(text, resolved)),
        tag if tag == resolved.tag() => Ok(plain(text, resolved)),
        tag => explicit_meaning(written_out(tag), text),
    }
}

/// A plain text of several lines is written as a block and read as text.
fn plain(text: &str, resolved: Resolved) -> Meaning {
    match resolved {
        Resolved::Str | Resolved::Merge => Meaning::Text,
        _ if text.contains('\n') => Meaning::Text,
        other => Meaning::Other(other),
    }
}

fn written_out(tag: Tag) -> ExplicitTag {
    match tag {
        Tag::Int => ExplicitTag::Int,
        Tag::Float => ExplicitTag::Float,
        Tag::Bool => ExplicitTag::Bool,
        Tag::Null => ExplicitTag::Null,
        Tag::Timestamp => ExplicitTag::Timestamp,
        Tag::Binary => ExplicitTag::Binary,
        _ => ExplicitTag::Other,
    }
}

fn explicit_meaning(tag: ExplicitTag, text: &str) -> Result<Meaning, String> {
    let resolved = resolve(text);
    let found = resolved.tag();
    match (tag, resolved) {
        (ExplicitTag::Str | ExplicitTag::Other, _) => Ok(Meaning::Text),
        (ExplicitTag::Binary, _) => {
            let bare: String = text.split_ascii_whitespace().collect();
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(bare)
                .map_err(|_| "yaml: !!binary value contains invalid base64 data".to_owned())?;
            Ok(Meaning::Decoded(String::from_utf8_lossy(&bytes).into_owned()))
        }
        (ExplicitTag::Float, Resolved::Int(value)) => Ok(Meaning::Other(Resolved::Float(value as f64))),
        (tag, resolved) if written_out(found) == tag => Ok(Meaning::Other(resolved)),
        (tag, _) => {
            Err(format!("yaml: cannot decode {} `{text}` as a {}", tag_name(found), explicit_name(tag)))
        }
    }
}

fn tag_name(tag: Tag) -> &'static str {
    match tag {
        Tag::Str | Tag::Unset => "!!str",
        Tag::Merge => "!!merge",
        Tag::Map => "!!map",
        Tag::Seq => "!!seq",
        Tag::Explicit(tag) => explicit_name(tag),
        other => explicit_name(written_out(other)),
    }
}

fn explicit_name(tag: ExplicitTag) -> &'static str {
    match tag {
        ExplicitTag::Str => "!!str",
        ExplicitTag::Int => "!!int",
        ExplicitTag::Float => "!!float",
        ExplicitTag::Bool => "!!bool",
        ExplicitTag::Null => "!!null",
        ExplicitTag::Timestamp => "!!timestamp",
        ExplicitTag::Binary => "!!binary",
        ExplicitTag::Other => "!",
    }
}

fn scalar_value(node: &Node, text: &SmolStr) -> Result<Value, String> {
    Ok(match meaning(node)? {
        Meaning::Text if node.style == Style::Folded => Value::String(refolded(text)),
        Meaning::Text => Value::String(text.to_string()),
        Meaning::Decoded(text) => Value::String(text),
        Meaning::Other(Resolved::Null) => Value::Null,
        Meaning::Other(Resolved::Bool(value)) => Value::Bool(value),
        Meaning::Other(Resolved::Int(value)) => Value::from(value),
        Meaning::Other(Resolved::UInt(value)) => Value::from(value),
        Meaning::Other(Resolved::Float(value)) => float_value(value)?,
        Meaning::Other(Resolved::Timestamp(text)) => Value::String(text),
        Meaning::Other(Resolved::Str | Resolved::Merge) => Value::String(text.to_string()),
    })
}

/// A folded text after it was written and read again: go-yaml gains line breaks there.
fn refolded(text: &SmolStr) -> String {
    let folded = yaml::Node { style: yaml::Style::Folded, ..yaml::Node::string(text.clone()) };
    let document = yaml::Node::mapping(vec![(yaml::Node::string("text"), folded)]);
    let written = yaml::emit(&document, yaml::EmitOptions::KYAML);
    let read = yaml::parse_first(&written, yaml::Profile::Go3).ok().flatten();
    let text_again = read.as_ref().and_then(|read| read.root.get("text")).and_then(yaml::Node::as_str);
    text_again.unwrap_or(text).to_owned()
}

/// `encoding/json` prints whole floats below 1e21 without a point: they are integers from then on.
fn float_value(value: f64) -> Result<Value, String> {
    if value.is_nan() {
        return Err("json: unsupported value: NaN".to_owned());
    }
    if value.is_infinite() {
        return Err(format!("json: unsupported value: {}Inf", if value > 0.0 { "+" } else { "-" }));
    }
    if value.fract() == 0.0 && value.abs() < 1e21 {
        if value.abs() < 9.2e18 {
            return Ok(Value::from(value as i64));
        }
        if value > 0.0 && value < 1.8e19 {
            return Ok(Value::from(shortest_integer(value)));
        }
    }
    Number::from_f64(value).map(Value::Number).ok_or_else(|| "json: unsupported value".to_owned())
}

/// The integer that Go prints for a whole float above 2^63: its shortest digits, padded with zeros.
fn shortest_integer(value: f64) -> u64 {
    let printed = format!("{value:e}");
    let (digits, exponent) = printed.split_once('e').unwrap_or((&printed, "0"));
    let exponent: usize = exponent.parse().unwrap_or(0);
    let mut digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    while digits.len() <= exponent {
        digits.push('0');
    }
    digits.parse().unwrap_or(u64::MAX)
}

/// A float as go-yaml v3 writes it: Go's `FormatFloat(f, 'g', -1, 64)`.
pub(crate) fn go_float(value: f64) -> String {
    let printed = format!("{value:e}");
    let (mantissa, exponent) = printed.split_once('e').unwrap_or((&printed, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // For the shortest form Go decides between plain and exponent as if the precision were 6.
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// The node that kyaml makes of a JSON value (`FromMap`): written by go-yaml v3 and parsed again.
/// Every number went through a float.
pub(crate) fn from_json(value: &Value) -> Node {
    match value {
        Value::Null => Node::null(),
        Value::Bool(value) => Node::tagged(if *value { "true" } else { "false" }, Tag::Bool),
        Value::Number(number) => number_node(number),
        Value::String(text) => string_node(text),
        Value::Array(items) => Node::seq(items.iter().map(from_json).collect()),
        Value::Object(map) => {
            Node::map(map.iter().map(|(key, value)| (string_node(key), from_json(value))).collect())
        }
    }
}

/// Text in the style that go-yaml v3 writes it in; a later writer of the scalar may keep it.
fn string_node(text: &str) -> Node {
    let style = match yaml::string_style(text, yaml::Profile::Go3) {
        yaml::Style::DoubleQuoted => Style::DoubleQuoted,
        yaml::Style::Plain if is_simple(text) => Style::Plain,
        style => written_style(text, style),
    };
    Node { style, ..Node::tagged(text, Tag::Str) }
}

/// Whether a text has nothing that YAML could take for syntax.
fn is_simple(text: &str) -> bool {
    let is_inner = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.' | b'/');
    text.bytes().all(is_inner) && text.bytes().next().is_none_or(|c| c.is_ascii_alphanumeric())
}

/// What becomes of a style when the text is written.
fn written_style(text: &str, style: yaml::Style) -> Style {
    let value = yaml::Node { style, ..yaml::Node::string(text) };
    let document = yaml::Node::mapping(vec![(yaml::Node::string("a"), value)]);
    let written = yaml::emit(&document, yaml::EmitOptions::KYAML);
    match written.strip_prefix("a: ").and_then(|value| value.chars().next()) {
        Some('"') => Style::DoubleQuoted,
        Some('\'') => Style::SingleQuoted,
        Some('|') => Style::Block,
        _ => Style::Plain,
    }
}

fn number_node(number: &Number) -> Node {
    let value = number.as_f64().unwrap_or_default();
    let text = go_float(value);
    let tag = resolve(&text).tag();
    Node::tagged(text, tag)
}

/// The node that a parser makes of JSON text: numbers as they are, text in quotes.
pub(crate) fn from_json_text(value: &Value) -> Node {
    let quoted = |text: &str| Node { style: Style::DoubleQuoted, ..Node::tagged(text, Tag::Str) };
    match value {
        Value::Number(number) => Node::scalar_of(&number.to_string()),
        Value::String(text) => quoted(text),
        Value::Array(items) => Node::seq(items.iter().map(from_json_text).collect()),
        Value::Object(map) => {
            Node::map(map.iter().map(|(key, value)| (quoted(key), from_json_text(value))).collect())
        }
        other => from_json(other),
    }
}

impl Node {
    /// A plain scalar with the tag that its text has.
    fn scalar_of(text: &str) -> Self {
        Self::tagged(text, resolve(text).tag())
    }
}

/// Turns a node into what it is after `MarshalJSON` and `UnmarshalJSON`: plain JSON types. Origins
/// of nodes stay.
///
/// # Errors
/// As [`to_json`].
pub(crate) fn normalize(node: &mut Node) -> Result<(), String> {
    let value = to_json(node)?;
    let mut fresh = from_json(&value);
    keep_origins(&mut fresh, node);
    *node = fresh;
    Ok(())
}

/// Gives nodes of a rebuilt tree the origins of those at the same places.
pub(crate) fn keep_origins(fresh: &mut Node, old: &Node) {
    fresh.origin = old.origin;
    match (&mut fresh.content, &old.content) {
        (Content::Seq(fresh), Content::Seq(old)) => {
            fresh.iter_mut().zip(old).for_each(|(fresh, old)| keep_origins(fresh, old));
        }
        (Content::Map(fresh), Content::Map(old)) => {
            for (key, value) in fresh {
                if let Some((old_key, old_value)) = old.iter().find(|(k, _)| k.value() == key.value()) {
                    key.origin = old_key.origin & !WRITTEN;
                    keep_origins(value, old_value);
                }
            }
        }
        _ => {}
    }
}

/// JSON text as Go's `json.Marshal` prints it (HTML characters escaped), keys sorted.
pub(crate) fn quoted_json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_get_the_style_that_they_are_written_in() {
        for (text, style) in [
            ("plain", Style::Plain),
            ("a b", Style::Plain),
            ("", Style::DoubleQuoted),
            ("12", Style::DoubleQuoted),
            ("1:30", Style::DoubleQuoted),
            ("{{a}}", Style::SingleQuoted),
            ("a: b", Style::SingleQuoted),
            ("a\tb", Style::DoubleQuoted),
            ("a\nb\n", Style::Block),
            ("a \nb", Style::DoubleQuoted),
        ] {
            assert_eq!(string_node(text).style, style, "{text:?}");
        }
    }

    #[test]
    fn types_of_scalars_follow_tag_style_and_text() {
        let quoted = Node { style: Style::DoubleQuoted, ..Node::tagged("5", Tag::Int) };
        for (node, expected) in [
            (Node::scalar("5"), json!(5)),
            (Node::string("5"), json!("5")),
            (quoted, json!("5")),
            (Node::tagged("5", Tag::Int), json!(5)),
            (Node::scalar(""), json!(null)),
            (Node::string(""), json!("")),
            (Node::scalar("1.0"), json!(1)),
            (Node::tagged("abc", Tag::Unset), json!("abc")),
            (Node::tagged("12", Tag::Explicit(ExplicitTag::Str)), json!("12")),
        ] {
            assert_eq!(to_json(&node).unwrap(), expected, "{node:?}");
        }
        assert!(to_json(&Node::tagged("abc", Tag::Int)).unwrap_err().contains("cannot decode !!str `abc`"));
    }

    #[test]
    fn numbers_pass_through_a_float() {
        assert_eq!(from_json(&json!(8080)).value(), "8080");
        assert_eq!(from_json(&json!(1234567)).value(), "1.234567e+06");
        assert_eq!(to_json(&from_json(&json!(1234567))).unwrap(), json!(1234567));
        let large = from_json(&json!(12345678901234567890_u64));
        assert_eq!(to_json(&large).unwrap().to_string(), "12345678901234567000");
        assert_eq!(go_float(1e21), "1e+21");
        assert_eq!(go_float(1e-7), "1e-07");
    }
}
