//! Values as JSON, with the bytes of Go's `encoding/json`.

use crate::{Kind, Map, Value};
use serde_json::Value as Json;
use std::fmt::Write;
use tiphys_gocompat::base64;
use tiphys_gocompat::json::{push_float, push_string};

/// How deep values may nest; `encoding/json` gives up at the same depth only for values that contain
/// themselves.
const MAX_DEPTH: usize = 1000;

/// How to write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Two spaces of indentation per level, and newlines.
    pub pretty: bool,
    /// Write `<`, `>` and `&` as they are.
    pub raw_html: bool,
}

/// `json.Marshal`
///
/// # Errors
/// Go's texts: floats that are not finite, and values that nest too deep or contain themselves.
pub fn to_string(value: &Value, options: Options) -> Result<String, String> {
    let mut writer = Writer { out: String::new(), options, depth: 0 };
    writer.value(value)?;
    Ok(writer.out)
}

struct Writer {
    out: String,
    options: Options,
    depth: usize,
}

impl Writer {
    fn value(&mut self, value: &Value) -> Result<(), String> {
        // Writing to a string cannot fail.
        let _ = match value {
            Value::NoValue | Value::Nil => self.out.write_str("null"),
            Value::Bool(value) => write!(self.out, "{value}"),
            Value::Int(value) | Value::Int64(value) => write!(self.out, "{value}"),
            Value::Uint8(value) => write!(self.out, "{value}"),
            Value::Uint64(value) => write!(self.out, "{value}"),
            Value::Float64(value) if !value.is_finite() => return Err(unsupported(*value)),
            Value::Float64(value) => {
                push_float(&mut self.out, *value);
                Ok(())
            }
            Value::String(text) => {
                push_string(&mut self.out, text, !self.options.raw_html);
                Ok(())
            }
            Value::Bytes(bytes) => write!(self.out, "\"{}\"", base64::encode(bytes)),
            Value::List(list) if list.is_nil() => self.out.write_str("null"),
            Value::List(list) => return self.items(list.items().iter()),
            Value::Map(map) if map.is_nil() => self.out.write_str("null"),
            Value::Map(map) => {
                return self.entries(map.entries().iter().map(|entry| (entry.key.as_str(), &entry.value)));
            }
            Value::Object(object) => {
                let (fields, kind) = (object.to_json(), object.kind());
                return match &fields {
                    // Fields of a struct keep their order; those that are empty may be left out.
                    Value::Map(map) if kind != Kind::Named && !object.json_names().is_empty() => {
                        let names = object.json_names().iter();
                        let values: Vec<_> = names.filter_map(|name| Some((*name, map.get(name)?))).collect();
                        self.entries(values.iter().map(|(name, value)| (*name, value)))
                    }
                    other => self.value(other),
                };
            }
        };
        Ok(())
    }

    fn enter(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("json: unsupported value: nested too deep".to_owned());
        }
        Ok(())
    }

    fn newline(&mut self) {
        if self.options.pretty {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("  ", self.depth));
        }
    }

    fn items<'v>(&mut self, items: impl ExactSizeIterator<Item = &'v Value>) -> Result<(), String> {
        if items.len() == 0 {
            self.out.push_str("[]");
            return Ok(());
        }
        self.enter()?;
        self.out.push('[');
        for (at, item) in items.enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.newline();
            self.value(item)?;
        }
        self.depth -= 1;
        self.newline();
        self.out.push(']');
        Ok(())
    }

    fn entries<'v>(
        &mut self,
        entries: impl ExactSizeIterator<Item = (&'v str, &'v Value)>,
    ) -> Result<(), String> {
        if entries.len() == 0 {
            self.out.push_str("{}");
            return Ok(());
        }
        self.enter()?;
        self.out.push('{');
        for (at, (key, value)) in entries.enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.newline();
            push_string(&mut self.out, key, !self.options.raw_html);
            self.out.push_str(if self.options.pretty { ": " } else { ":" });
            self.value(value)?;
        }
        self.depth -= 1;
        self.newline();
        self.out.push('}');
        Ok(())
    }
}

fn unsupported(value: f64) -> String {
    use tiphys_gocompat::strconv::{FloatFormat, format_float};
    format!("json: unsupported value: {}", format_float(value, FloatFormat::General, None))
}

/// See [`Value::to_json`].
pub(crate) fn to_plain(value: &Value) -> Result<Json, String> {
    plain(value, 0)
}

fn plain(value: &Value, depth: usize) -> Result<Json, String> {
    if depth > MAX_DEPTH {
        return Err("json: unsupported value: nested too deep".to_owned());
    }
    Ok(match value {
        Value::NoValue | Value::Nil => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) | Value::Int64(value) => Json::from(*value),
        Value::Uint8(value) => Json::from(*value),
        Value::Uint64(value) => Json::from(*value),
        Value::Float64(value) => plain_float(*value)?,
        Value::String(text) => Json::from(text.as_str()),
        Value::Bytes(bytes) => Json::from(base64::encode(bytes)),
        Value::List(list) if list.is_nil() => Json::Null,
        Value::List(list) => {
            Json::Array(list.items().iter().map(|item| plain(item, depth + 1)).collect::<Result<_, _>>()?)
        }
        Value::Map(map) if map.is_nil() => Json::Null,
        Value::Map(map) => {
            let entries = map.entries();
            let fields =
                entries.iter().map(|entry| Ok((entry.key.to_string(), plain(&entry.value, depth + 1)?)));
            Json::Object(fields.collect::<Result<_, String>>()?)
        }
        Value::Object(object) => plain(&object.to_json(), depth + 1)?,
    })
}

/// Up to here every integer is a float: 2 to the power of 53.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Whole floats are written without a point and read back as integers.
fn plain_float(value: f64) -> Result<Json, String> {
    if !value.is_finite() {
        return Err(unsupported(value));
    }
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Ok(Json::from(value as i64));
    }
    if value.fract() == 0.0 && value.abs() < 1e21 {
        // Go writes the fewest digits that tell the float from its neighbours, and zeros after them.
        let digits = value.to_string();
        let signed = digits.parse::<i64>().map(Json::from);
        if let Ok(integer) = signed.or_else(|_| digits.parse::<u64>().map(Json::from)) {
            return Ok(integer);
        }
    }
    Ok(Json::from(value))
}

/// `json.Unmarshal` into an empty interface: all numbers are floats.
///
/// # Errors
/// Go's texts.
pub fn from_str(text: &str) -> Result<Value, String> {
    tiphys_gocompat::json::check(text)?;
    Reader { text, at: 0 }.value()
}

/// Reads a text that was checked to be JSON.
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// Skips space, commas and colons, whose places were checked.
    fn skip(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n' | b',' | b':') {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        self.skip();
        Ok(match self.peek() {
            b'{' => {
                self.at += 1;
                let map = Map::new();
                while self.more(b'}') {
                    let key = self.string();
                    map.insert(key, self.value()?);
                }
                map.into()
            }
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                while self.more(b']') {
                    items.push(self.value()?);
                }
                Value::list(items)
            }
            b'"' => self.string().into(),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Nil),
            _ => self.number()?,
        })
    }

    /// Whether another item follows; else the closing bracket is skipped.
    fn more(&mut self, close: u8) -> bool {
        self.skip();
        if self.peek() == close {
            self.at += 1;
            return false;
        }
        self.at < self.text.len()
    }

    fn word(&mut self, word: &str, value: Value) -> Value {
        self.at += word.len();
        value
    }

    fn number(&mut self) -> Result<Value, String> {
        let rest = &self.text[self.at..];
        let end =
            rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        self.at += end.max(1);
        let number = &rest[..end];
        match number.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Value::Float64(value)),
            _ => Err(format!("json: cannot unmarshal number {number} into Go value of type float64")),
        }
    }

    fn string(&mut self) -> String {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(end) = rest.find(['"', '\\']) else {
                return out;
            };
            out.push_str(&rest[..end]);
            self.at += end + 1;
            if rest.as_bytes()[end] == b'"' {
                return out;
            }
            self.escape(&mut out);
        }
    }

    fn escape(&mut self, out: &mut String) {
        let escape = self.peek();
        self.at += 1;
        out.push(match escape {
            b'b' => '\x08',
            b'f' => '\x0C',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => self.unicode(),
            other => char::from(other),
        });
    }

    /// A character by its number, or a pair of surrogates; lone ones become U+FFFD.
    fn unicode(&mut self) -> char {
        let first = self.hex();
        if let Some(c) = char::from_u32(first) {
            return c;
        }
        if first < 0xDC00 && self.text[self.at..].starts_with("\\u") {
            let before = self.at;
            self.at += 2;
            let second = self.hex();
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x10000 + ((first - 0xD800) << 10 | (second - 0xDC00));
                return char::from_u32(code).unwrap_or('\u{FFFD}');
            }
            self.at = before;
        }
        '\u{FFFD}'
    }

    fn hex(&mut self) -> u32 {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
        self.at += 4;
        u32::from_str_radix(digits, 16).unwrap_or(0xFFFD)
    }
}
