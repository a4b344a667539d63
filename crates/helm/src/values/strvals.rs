//! The little language of `--set` and its relatives, with Helm's error texts.

use std::sync::Arc;

use tiphys_value::Value;

use tiphys_gocompat::strconv::{quote, quote_rune};

use super::{Table, Val};
use crate::Compat;

/// The largest list index.
const MAX_INDEX: i64 = 65_536;

/// The deepest nesting of names.
const MAX_NESTED_NAME_LEVEL: usize = 30;

/// How the text behind `=` becomes a value.
#[derive(Clone, Copy)]
pub(crate) enum Mode<'a> {
    /// `--set`: `true`, `false`, `null` and whole numbers are typed.
    Typed,
    /// `--set-string`.
    String,
    /// `--set-json`.
    Json,
    /// `--set-file`: the text names a file, which is looked up here.
    File(&'a dyn Fn(&str) -> Result<String, String>),
    /// `--set-literal`: everything behind the first `=` is the value; no escapes.
    Literal,
}

/// How parsing stopped.
enum Stop {
    /// At the end of the text. A key may have been set.
    End,
    /// At a fault.
    Fault(String),
}

type Step<T> = Result<T, Stop>;

fn fault<T>(text: String) -> Step<T> {
    Err(Stop::Fault(text))
}

/// Lays the assignments of a text over `dest`.
///
/// # Errors
/// Helm's text, without the prefix that names the flag.
pub(crate) fn parse_into(text: &str, dest: &mut Table, mode: Mode<'_>, compat: Compat) -> Result<(), String> {
    let mut parser = Parser { text, at: 0, mode, compat };
    loop {
        match parser.key(dest, 0) {
            Ok(()) => {}
            Err(Stop::End) => return Ok(()),
            Err(Stop::Fault(text)) => return Err(text),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    mode: Mode<'a>,
    compat: Compat,
}

/// What [`Parser::runes_until`] read: the text, and the stop character, or `None` at the end.
struct Run {
    text: String,
    last: Option<char>,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.text[self.at..].chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn is_literal(&self) -> bool {
        matches!(self.mode, Mode::Literal)
    }

    /// Reads up to a stop character; a backslash makes the next character plain (not in literals).
    fn runes_until(&mut self, stop: &[char]) -> Run {
        let mut text = String::new();
        while let Some(next) = self.next() {
            if stop.contains(&next) {
                return Run { text, last: Some(next) };
            }
            if next != '\\' || self.is_literal() {
                text.push(next);
                continue;
            }
            match self.next() {
                Some(escaped) => text.push(escaped),
                None => break,
            }
        }
        Run { text, last: None }
    }

    fn key(&mut self, data: &mut Table, level: usize) -> Step<()> {
        let stop: &[char] = if self.is_literal() { &['=', '[', '.'] } else { &['=', '[', ',', '.'] };
        let Run { text: key, last } = self.runes_until(stop);
        match last {
            None if key.is_empty() => Err(Stop::End),
            None => fault(format!("key {} has no value", quote(&key))),
            Some('[') => self.indexed(data, key, level),
            Some('=') => self.assign(data, key),
            Some(',') => {
                let text = format!("key {} has no value (cannot end with ,)", quote(&key));
                set(data, key, Val::string(""));
                fault(text)
            }
            Some(_) => self.nested(data, key, level + 1),
        }
    }

    fn indexed(&mut self, data: &mut Table, key: String, level: usize) -> Step<()> {
        let index = self.key_index()?;
        let mut list = match data.remove(key.as_str()) {
            None => Vec::new(),
            Some(Val::List(list)) => Arc::unwrap_or_clone(list),
            Some(other) => return fault(wrong_type(&other, "[]interface {}")),
        };
        let done = self.list_item(&mut list, index, level);
        set(data, key, Val::List(Arc::new(list)));
        done
    }

    fn nested(&mut self, data: &mut Table, key: String, level: usize) -> Step<()> {
        check_level(level)?;
        let known = data.remove(key.as_str());
        let is_known = known.is_some();
        let mut inner = match known {
            None => Arc::default(),
            Some(Val::Table(table)) => table,
            Some(other) => return fault(wrong_type(&other, "map[string]interface {}")),
        };
        let done = self.key(Arc::make_mut(&mut inner), level);
        if done.is_ok() && inner.is_empty() {
            return fault(format!("key map {} has no value", quote(&key)));
        }
        if is_known || !inner.is_empty() {
            set(data, key, Val::Table(inner));
        }
        done
    }

    fn assign(&mut self, data: &mut Table, key: String) -> Step<()> {
        match self.mode {
            Mode::Literal => {
                let value = Val::string(self.rest());
                self.at = self.text.len();
                set(data, key, value);
                Ok(())
            }
            Mode::Json => {
                let value = self.json_value()?;
                set(data, key, value);
                Ok(())
            }
            _ if self.rest().is_empty() => {
                set(data, key, Val::string(""));
                Err(Stop::End)
            }
            _ => {
                let value = self.value()?;
                set(data, key, value);
                Ok(())
            }
        }
    }

    /// The value behind `=`; the text is not at its end.
    fn value(&mut self) -> Step<Val> {
        if self.rest().starts_with('{') {
            self.at += 1;
            return Ok(Val::List(Arc::new(self.value_list()?)));
        }
        let run = self.runes_until(&[',']);
        self.read(&run.text)
    }

    fn value_list(&mut self) -> Step<Vec<Val>> {
        let mut list = Vec::new();
        loop {
            let run = self.runes_until(&[',', '}']);
            match run.last {
                None => return fault("list must terminate with '}'".to_owned()),
                Some('}') => {
                    if self.rest().starts_with(',') {
                        self.at += 1;
                    }
                    list.push(self.read(&run.text)?);
                    return Ok(list);
                }
                Some(_) => list.push(self.read(&run.text)?),
            }
        }
    }

    fn read(&self, text: &str) -> Step<Val> {
        match self.mode {
            Mode::File(read) => read(text).map(|content| Val::string(&content)).map_err(Stop::Fault),
            Mode::Typed => Ok(typed(text)),
            Mode::String | Mode::Json | Mode::Literal => Ok(Val::string(text)),
        }
    }

    /// One JSON value and the comma behind it; nothing but blanks means `null`.
    fn json_value(&mut self) -> Step<Val> {
        if self.blank_value() {
            return Ok(Val::Null);
        }
        let mut stream = serde_json::Deserializer::from_str(self.rest()).into_iter::<Value>();
        let value = match stream.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => return fault(error.to_string()),
            None => return fault("EOF".to_owned()),
        };
        self.at += stream.byte_offset();
        self.blank_value();
        Ok(Val::from_json(value))
    }

    /// Skips blanks; whether a comma (which is skipped too) or the end follows.
    fn blank_value(&mut self) -> bool {
        loop {
            let before = self.at;
            match self.next() {
                None | Some(',') => return true,
                Some(next) if next.is_whitespace() => {}
                Some(_) => {
                    self.at = before;
                    return false;
                }
            }
        }
    }

    fn key_index(&mut self) -> Step<i64> {
        let run = self.runes_until(&[']']);
        if run.last.is_none() {
            return match self.compat {
                Compat::Helm4 => Err(Stop::End),
                Compat::Helm3 => fault("error parsing index: EOF".to_owned()),
            };
        }
        run.text.parse::<i64>().map_err(|error| {
            let reason = match error.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                    "value out of range"
                }
                _ => "invalid syntax",
            };
            Stop::Fault(format!("error parsing index: strconv.Atoi: parsing {}: {reason}", quote(&run.text)))
        })
    }

    fn list_item(&mut self, list: &mut Vec<Val>, index: i64, level: usize) -> Step<()> {
        if index < 0 {
            return fault(format!("negative {index} index not allowed"));
        }
        let Run { text, last } = self.runes_until(&['[', '.', '=']);
        if !text.is_empty() {
            let quoted: Vec<_> = text.chars().map(quote_rune).collect();
            return fault(format!("unexpected data at end of array index: [{}]", quoted.join(" ")));
        }
        match last {
            None => Err(Stop::End),
            Some('=') => {
                let value = self.item_value()?;
                set_index(list, index, value)
            }
            Some('[') => self.nested_index(list, index, level),
            Some(_) => self.item_table(list, index, level),
        }
    }

    fn item_value(&mut self) -> Step<Val> {
        match self.mode {
            Mode::Literal => {
                let value = Val::string(self.rest());
                self.at = self.text.len();
                Ok(value)
            }
            Mode::Json => self.json_value(),
            _ if self.rest().is_empty() => Ok(Val::string("")),
            _ => self.value(),
        }
    }

    fn nested_index(&mut self, list: &mut Vec<Val>, index: i64, level: usize) -> Step<()> {
        check_level(level + 1)?;
        let next = self.key_index()?;
        let mut inner = match existing(list, index) {
            None | Some(Val::Null) => Vec::new(),
            Some(Val::List(inner)) => (**inner).clone(),
            Some(other) => return fault(wrong_type(other, "[]interface {}")),
        };
        self.list_item(&mut inner, next, level + 1)?;
        set_index(list, index, Val::List(Arc::new(inner)))
    }

    fn item_table(&mut self, list: &mut Vec<Val>, index: i64, level: usize) -> Step<()> {
        check_level(level + 1)?;
        let mut inner = match existing(list, index) {
            Some(Val::Table(table)) => table.clone(),
            _ => Arc::default(),
        };
        self.key(Arc::make_mut(&mut inner), level + 1)?;
        set_index(list, index, Val::Table(inner))
    }
}

/// Helm bounds dots only; brackets are bounded here as well, so that no text exhausts the stack.
fn check_level(level: usize) -> Step<()> {
    if level <= MAX_NESTED_NAME_LEVEL {
        return Ok(());
    }
    fault(format!(
        "value name nested level is greater than maximum supported nested level of {MAX_NESTED_NAME_LEVEL}"
    ))
}

fn existing(list: &[Val], index: i64) -> Option<&Val> {
    list.get(usize::try_from(index).ok()?)
}

/// What Go says of a type assertion that does not hold, as Helm passes it on.
fn wrong_type(value: &Val, wanted: &str) -> String {
    format!("unable to parse key: interface conversion: interface {{}} is {}, not {wanted}", value.go_type())
}

fn set(data: &mut Table, key: String, value: Val) {
    if !key.is_empty() {
        data.insert(Arc::from(key), value);
    }
}

fn set_index(list: &mut Vec<Val>, index: i64, value: Val) -> Step<()> {
    if index > MAX_INDEX {
        return fault(format!("index of {index} is greater than maximum supported index of {MAX_INDEX}"));
    }
    let Ok(at) = usize::try_from(index) else {
        return fault(format!("negative {index} index not allowed"));
    };
    if list.len() <= at {
        list.resize(at + 1, Val::Null);
    }
    list[at] = value;
    Ok(())
}

fn typed(text: &str) -> Val {
    if text.eq_ignore_ascii_case("true") {
        return Val::Bool(true);
    }
    if text.eq_ignore_ascii_case("false") {
        return Val::Bool(false);
    }
    if text.eq_ignore_ascii_case("null") {
        return Val::Null;
    }
    if text == "0" {
        return Val::Int(0);
    }
    if !text.is_empty()
        && !text.starts_with('0')
        && let Ok(int) = text.parse::<i64>()
    {
        return Val::Int(int);
    }
    Val::string(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str, mode: Mode<'_>) -> Result<String, String> {
        let mut table = Table::new();
        parse_into(text, &mut table, mode, Compat::Helm4)?;
        Ok(Val::Table(Arc::new(table)).to_json().to_string())
    }

    #[test]
    fn reads_typed_values_lists_and_escapes() {
        for (text, expected) in [
            (
                "a=1,b=true,c=null,d=0,e=01,f=-7,g=1.5",
                r#"{"a":1,"b":true,"c":null,"d":0,"e":"01","f":-7,"g":"1.5"}"#,
            ),
            ("a.b.c=x,a.b.d=y", r#"{"a":{"b":{"c":"x","d":"y"}}}"#),
            ("a={x,y,1},b=2", r#"{"a":["x","y",1],"b":2}"#),
            ("a[0].b=x,a[2]=y", r#"{"a":[{"b":"x"},null,"y"]}"#),
            ("a[0][1]=x", r#"{"a":[[null,"x"]]}"#),
            (r"a\.b/c=x\,y", r#"{"a.b/c":"x,y"}"#),
            ("a=", r#"{"a":""}"#),
            ("a={}", r#"{"a":[""]}"#),
            ("=x", "{}"),
        ] {
            assert_eq!(parse(text, Mode::Typed).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_modes_keep_text_or_decode_json() {
        assert_eq!(parse("a=1,b=true", Mode::String).as_deref(), Ok(r#"{"a":"1","b":"true"}"#));
        assert_eq!(parse(r#"a={"x":[1,2]},b=3"#, Mode::Json).as_deref(), Ok(r#"{"a":{"x":[1,2]},"b":3}"#));
        assert_eq!(parse(r"a.b=x,y=\{", Mode::Literal).as_deref(), Ok(r#"{"a":{"b":"x,y=\\{"}}"#));
        let read = |name: &str| Ok(format!("<{name}>"));
        assert_eq!(parse("a=f.txt", Mode::File(&read)).as_deref(), Ok(r#"{"a":"<f.txt>"}"#));
    }

    #[test]
    fn a_key_that_ends_with_a_dot_leaves_what_is_there() {
        let mut table = Table::from([(Arc::from("a"), Val::Table(Arc::default()))]);
        parse_into("a.", &mut table, Mode::String, Compat::Helm4).unwrap();
        assert!(table.get("a").is_some_and(|value| value.as_table().is_some_and(Table::is_empty)));
    }

    #[test]
    fn faults_read_as_helms_do() {
        for (text, expected) in [
            ("a", r#"key "a" has no value"#),
            ("a,b=1", r#"key "a" has no value (cannot end with ,)"#),
            ("a.=x", r#"key map "a" has no value"#),
            ("a\u{2028}", r#"key "a\u2028" has no value"#),
            ("a[x]=1", r#"error parsing index: strconv.Atoi: parsing "x": invalid syntax"#),
            ("a[-1]=1", "negative -1 index not allowed"),
            ("a[99999]=1", "index of 99999 is greater than maximum supported index of 65536"),
            ("a={x", "list must terminate with '}'"),
            ("a[0]b=1", "unexpected data at end of array index: ['b']"),
            (
                "a=1,a.b=2",
                "unable to parse key: interface conversion: interface {} is int64, not map[string]interface {}",
            ),
        ] {
            assert_eq!(parse(text, Mode::Typed), Err(expected.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a-c.,=\\[\\]{}0-9\\\\\" é-]{0,40}") {
            for mode in [Mode::Typed, Mode::String, Mode::Json, Mode::Literal] {
                let _ = parse(&text, mode);
            }
        }

        #[test]
        fn a_string_set_under_a_key_is_found_there(key in "[a-z]{1,8}", value in "[a-z0-9 ]{0,12}") {
            let mut table = Table::new();
            parse_into(&format!("x.{key}={value}"), &mut table, Mode::String, Compat::Helm4).unwrap();
            prop_assert_eq!(super::super::path_value(&table, &format!("x.{key}")), Some(&Val::string(&value)));
        }
    }
}
