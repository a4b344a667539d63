//! Everyday values written at once, without the emitter's states: block collections, scalars of one line that
//! need no folding, literal text. Whatever needs more thought makes the answer `None`, and the emitter has
//! its turn; a property test holds the two together.

use serde_json::{Map, Value};

use super::{
    analyze::Analysis,
    value::{number_text, sorted_unless, string_style},
};
use crate::{Profile, Style};

/// Columns after which go-yaml v2 folds text.
const WIDTH: usize = 80;
/// Keys of more bytes are written behind a `?`.
const MAX_KEY: usize = 128;
/// How deep collections may nest.
const MAX_DEPTH: usize = 64;

/// A mapping as go-yaml v2 writes it; `None` if the emitter has to.
pub(super) fn write(value: &Value) -> Option<String> {
    let Value::Object(map) = value else { return None };
    if map.is_empty() {
        return None;
    }
    let mut writer = Writer { out: String::with_capacity(1024), line: 0, depth: 0 };
    writer.mapping(map, 0, false)?;
    Some(writer.out)
}

struct Writer {
    out: String,
    /// Where the line begins.
    line: usize,
    depth: usize,
}

impl Writer {
    fn end_line(&mut self) {
        self.out.push('\n');
        self.line = self.out.len();
    }

    fn indent(&mut self, columns: usize) {
        const SPACES: &str = "                                                                ";
        let mut left = columns;
        while left > 0 {
            let some = left.min(SPACES.len());
            self.out.push_str(&SPACES[..some]);
            left -= some;
        }
    }

    /// Entries in a column, the first of which may follow a `- `.
    fn mapping(&mut self, map: &Map<String, Value>, column: usize, inline: bool) -> Option<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let reordered = sorted_unless(map);
        let mut first = inline;
        let mut entry = |key: &str, value: &Value| {
            if !std::mem::take(&mut first) {
                self.indent(column);
            }
            if key.len() > MAX_KEY {
                return None;
            }
            self.text(key, None)?;
            self.out.push(':');
            self.value(value, column)
        };
        match &reordered {
            Some(pairs) => pairs.iter().try_for_each(|(key, value)| entry(key, value))?,
            None => map.iter().try_for_each(|(key, value)| entry(key, value))?,
        }
        self.depth -= 1;
        Some(())
    }

    /// What follows the `:` of a key in a column.
    fn value(&mut self, value: &Value, column: usize) -> Option<()> {
        match value {
            Value::Object(map) if !map.is_empty() => {
                self.end_line();
                self.mapping(map, column + 2, false)
            }
            Value::Array(items) if !items.is_empty() => {
                self.end_line();
                self.sequence(items, column, false)
            }
            scalar => {
                self.out.push(' ');
                self.scalar(scalar, column)
            }
        }
    }

    /// Items in a column, the first of which may follow a `- `.
    fn sequence(&mut self, items: &[Value], column: usize, inline: bool) -> Option<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        for (at, item) in items.iter().enumerate() {
            if at > 0 || !inline {
                self.indent(column);
            }
            self.out.push_str("- ");
            match item {
                Value::Object(map) if !map.is_empty() => self.mapping(map, column + 2, true)?,
                Value::Array(items) if !items.is_empty() => self.sequence(items, column + 2, true)?,
                scalar => self.scalar(scalar, column)?,
            }
        }
        self.depth -= 1;
        Some(())
    }

    /// A scalar or an empty collection, and the end of the line.
    fn scalar(&mut self, value: &Value, column: usize) -> Option<()> {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Number(number) => self.out.push_str(&number_text(number)),
            Value::Array(_) => self.out.push_str("[]"),
            Value::Object(_) => self.out.push_str("{}"),
            Value::String(text) => self.text(text, Some(column + 2))?,
        }
        self.end_line();
        Some(())
    }

    /// Text; only where `column` says where its lines would begin may it have several.
    fn text(&mut self, text: &str, column: Option<usize>) -> Option<()> {
        let style = string_style(text, Profile::Go2);
        if text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/'))
            && !text.starts_with("...")
        {
            return self.quoted(text, if style == Style::Plain { "" } else { "\"" });
        }
        let analysis = Analysis::from_text(text, false);
        match style {
            Style::Literal if analysis.block => self.literal(text, column?),
            Style::Literal => None,
            _ if !text.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) => None,
            _ if column.is_some()
                && text.contains(' ')
                && self.out.len() - self.line + text.len() + 2 > WIDTH =>
            {
                None
            }
            Style::Plain if analysis.block_plain => self.quoted(text, ""),
            Style::Plain if analysis.single_quoted && !text.contains('\'') => self.quoted(text, "'"),
            Style::DoubleQuoted if !text.contains(['"', '\\']) => self.quoted(text, "\""),
            _ => None,
        }
    }

    fn quoted(&mut self, text: &str, quote: &str) -> Option<()> {
        self.out.push_str(quote);
        self.out.push_str(text);
        self.out.push_str(quote);
        Some(())
    }

    /// Literal text that needs no hint at its indentation, and no `+`.
    fn literal(&mut self, text: &str, column: usize) -> Option<()> {
        let odd = text.starts_with([' ', '\n'])
            || text.ends_with("\n\n")
            || text.contains(['\r', '\u{85}', '\u{2028}', '\u{2029}']);
        if odd {
            return None;
        }
        let body = text.strip_suffix('\n');
        self.out.push_str(if body.is_some() { "|" } else { "|-" });
        for line in body.unwrap_or(text).split('\n') {
            self.end_line();
            if !line.is_empty() {
                self.indent(column);
                self.out.push_str(line);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use crate::emit::value::emit_with_emitter;

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-zA-Z0-9_./-]{0,12}",
            "[a-c:#'\"\\\\\\[\\]{},&*!|>%@` \n\té-]{0,9}",
            "[a-z ]{60,140}",
            "[a-c \n]{0,20}",
            prop::sample::select(vec![
                "true",
                "yes",
                "1",
                "1.5",
                "0x1f",
                "~",
                "null",
                "12:30:45",
                "=",
                "<<",
                "---",
                "...",
                "2001-01-01"
            ])
            .prop_map(str::to_owned),
        ]
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(text(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn writes_what_the_emitter_writes(value in prop::collection::btree_map(text(), value(), 1..4)) {
            let value = Value::Object(value.into_iter().collect());
            if let Some(text) = super::write(&value) {
                prop_assert_eq!(text, emit_with_emitter(&value));
            }
        }
    }

    #[test]
    fn writes_a_manifest() {
        let value = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a-b", "labels": {"a/b": "true"}, "annotations": {}},
            "data": {"key": "one\n\n  two\n", "other": "a: b", "last": "x\ny"},
            "list": [1, "two", [], {"a": 1.5, "b": [[1], [{"c": null}]]}],
        });
        let text = super::write(&value).expect("is simple");
        assert_eq!(text, emit_with_emitter(&value));
    }
}
