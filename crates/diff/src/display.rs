//! Differences for people.

use std::fmt::Write as _;

use serde_json::Value;
use similar::TextDiff;

/// Two objects as sorted YAML, compared line by line, in unified form with three lines of context. Mask
/// Secrets before. Empty if the texts are equal.
pub fn unified(live: &Value, target: &Value, live_name: &str, target_name: &str) -> String {
    let (old, new) = (readable(live), readable(target));
    unified_texts(&old, &new, live_name, target_name)
}

/// Two texts, compared line by line, in unified form with three lines of context. Empty if they are equal.
pub fn unified_texts(old: &str, new: &str, old_name: &str, new_name: &str) -> String {
    if old == new {
        return String::new();
    }
    TextDiff::from_lines(old, new).unified_diff().context_radius(3).header(old_name, new_name).to_string()
}

/// An object as sorted YAML for people: every line of a text is a line, which the tools' YAML folds, or
/// writes as one long quoted string where a line of it ends in a space. Not meant to be read by a program.
pub fn readable(object: &Value) -> String {
    let mut text = String::new();
    block(object, 0, &mut text);
    text
}

/// A value on lines of its own.
fn block(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            for (key, value) in fields {
                let _ = write!(text, "{:indent$}{}:", "", scalar(&Value::from(key.as_str())));
                after_key(value, indent, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut inner = String::new();
                block(item, indent + 2, &mut inner);
                let _ = write!(text, "{:indent$}- {}", "", inner.trim_start_matches(' '));
            }
        }
        other => {
            let _ = write!(text, "{:indent$}", "");
            leaf(other, indent, text);
        }
    }
}

/// A value beside its key: lists at the same depth, as is customary.
fn after_key(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            block(value, indent + 2, text);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            block(value, indent, text);
        }
        _ => {
            text.push(' ');
            leaf(value, indent + 2, text);
        }
    }
}

fn leaf(value: &Value, indent: usize, text: &mut String) {
    match value.as_str().filter(|string| string.contains('\n')) {
        Some(string) => {
            let chomp = if string.ends_with('\n') { "|" } else { "|-" };
            let _ = writeln!(text, "{chomp}");
            for line in string.strip_suffix('\n').unwrap_or(string).split('\n') {
                let _ = match line {
                    "" => writeln!(text),
                    line => writeln!(text, "{:indent$}{line}", ""),
                };
            }
        }
        None => {
            let _ = writeln!(text, "{}", scalar(value));
        }
    }
}

/// A value on one line.
fn scalar(value: &Value) -> String {
    let written = tiphys_yaml::to_yaml(value);
    let written = written.trim_end_matches('\n');
    if written.contains('\n') { value.to_string() } else { written.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_line_of_a_text_is_a_line() {
        let long = "word ".repeat(40);
        let object = json!({"data": {"conf": "a: 1 \n\n  b\n", "last": "x\ny", "long": long.trim()}, "list": [{"a": [1, []], "b": {}}, "s", ["n"]], "yes": "no"});
        let expected = format!(
            "data:\n  conf: |\n    a: 1 \n\n      b\n  last: |-\n    x\n    y\n  long: {}\nlist:\n- a:\n  - 1\n  - []\n  b: {{}}\n- s\n- - \"n\"\n\"yes\": \"no\"\n",
            Value::from(long.trim())
        );
        assert_eq!(readable(&object), expected);
        // Where the tools write a text line by line, so does this.
        let plain = json!({"kind": "A", "spec": {"script": "one\ntwo\n", "list": [{"a": 1, "b": "2"}]}});
        assert_eq!(readable(&plain), tiphys_yaml::to_yaml(&plain));
    }

    #[test]
    fn a_change_of_one_line_is_one_line() {
        let object = |line: &str| json!({"data": {"conf": format!("first \n{line}\nlast\n")}});
        let diff = unified(&object("old"), &object("new"), "before", "after");
        let changed = diff.lines().skip(2).filter(|line| line.starts_with(['+', '-'])).count();
        assert_eq!(changed, 2, "{diff}");
    }
}
