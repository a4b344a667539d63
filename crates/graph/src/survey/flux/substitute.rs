//! Variables that Flux puts into what a Kustomization builds (Flux docs, "Post build variable substitution").

use std::collections::{BTreeMap, BTreeSet};

use tiphys_value::{Map, ObjectExt, Value};

/// What is known of the variables of one Kustomization.
#[derive(Debug, Default)]
pub(super) struct Variables {
    known: BTreeMap<String, String>,
    /// Those that have a value that nobody can read: the keys of encrypted Secrets.
    hidden: BTreeSet<String>,
    /// Whether there may be others: something that gives some is not in the repository.
    is_open: bool,
}

/// A ConfigMap or Secret that variables come from.
pub(super) enum Giver<'a> {
    /// It is this one.
    Known(&'a Value),
    /// It is not in the repository, or nobody knows which of several it is.
    Open,
}

impl Variables {
    /// The variables of a `postBuild`, later ones in place of earlier ones; those that stand in it count
    /// most.
    pub(super) fn from_post_build<'a>(post_build: &Value, find: &dyn Fn(&str, &str) -> Giver<'a>) -> Self {
        let mut variables = Self::default();
        for entry in post_build["substituteFrom"].as_array().into_iter().flatten() {
            let text = |field: &str| entry[field].as_str().unwrap_or_default();
            match find(text("kind"), text("name")) {
                Giver::Known(giver) => variables.take(giver),
                Giver::Open => variables.is_open = true,
            }
        }
        for (name, value) in post_build["substitute"].as_object().into_iter().flatten() {
            variables.hidden.remove(name);
            variables.known.insert(name.clone(), plain(value));
        }
        variables
    }

    /// Whether nothing gives any: Flux substitutes nothing then.
    pub(super) fn are_none(&self) -> bool {
        !self.is_open && self.known.is_empty() && self.hidden.is_empty()
    }

    fn take(&mut self, giver: &Value) {
        let is_encrypted = giver.get("sops").is_some();
        for field in ["data", "stringData"] {
            for (name, value) in giver[field].as_object().into_iter().flatten() {
                let text = plain(value);
                // What a Secret holds in base64 is a secret that somebody forgot to encrypt, and no name of
                // anything.
                if is_encrypted || text.starts_with("ENC[") || giver.kind() == "Secret" && field == "data" {
                    self.known.remove(name);
                    self.hidden.insert(name.clone());
                } else {
                    self.hidden.remove(name);
                    self.known.insert(name.clone(), text);
                }
            }
        }
    }

    /// A value with what is known in place of its variables; the others stay as they are.
    pub(super) fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if text.contains("${") => self.typed(text),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(map) => {
                let filled: Map<String, Value> = map
                    .iter()
                    .map(|(key, below)| {
                        let key = if key.contains("${") { self.text(key) } else { key.clone() };
                        (key, self.fill(below))
                    })
                    .collect();
                Value::Object(filled)
            }
            other => other.clone(),
        }
    }

    /// A text that is one variable and nothing else is read as YAML once it is filled in.
    fn typed(&self, text: &str) -> Value {
        let filled = self.text(text);
        let is_whole = text.starts_with("${") && text.find('}') == Some(text.len() - 1);
        match tiphys_yaml::from_yaml(&filled) {
            Ok(scalar @ (Value::Number(_) | Value::Bool(_))) if is_whole => scalar,
            _ => Value::String(filled),
        }
    }

    /// The variables of a text that become nothing: nothing gives them a value, and they have no default.
    /// Flux looks for none where it knows of none at all.
    pub(super) fn unset<'t>(&self, text: &'t str) -> Vec<&'t str> {
        if self.are_none() {
            return Vec::new();
        }
        let is_unknown = |name: &&str| !self.known.contains_key(*name) && !self.hidden.contains(*name);
        let is_told = |name: &&str| is_unknown(name) && (!self.is_open || is_assigned(text, name));
        numbers(text).into_iter().chain(plain_names(text).into_iter().filter(is_told)).collect()
    }

    /// The variables of a text that nothing is known to give.
    pub(super) fn unknown<'t>(&self, text: &'t str) -> Vec<&'t str> {
        if self.are_none() {
            return Vec::new();
        }
        let is_unknown = |name: &&str| !self.known.contains_key(*name) && !self.hidden.contains(*name);
        plain_names(text).into_iter().filter(is_unknown).collect()
    }

    fn text(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            // `$${NAME}` stands for itself.
            if rest[..at].ends_with('$') {
                filled.push_str(&rest[..at - 1]);
                filled.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            filled.push_str(&rest[..at]);
            let inner = &rest[at + 2..];
            let Some(end) = end_of_expression(inner) else {
                rest = &rest[at..];
                break;
            };
            match self.value(&inner[..end]) {
                Some(value) => filled.push_str(&value),
                None => filled.push_str(&rest[at..at + 2 + end + 1]),
            }
            rest = &inner[end + 1..];
        }
        filled.push_str(rest);
        filled
    }

    /// What stands for `NAME` or `NAME:=default`, if that is sure.
    fn value(&self, expression: &str) -> Option<String> {
        let end =
            expression.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(expression.len());
        let (name, rest) = expression.split_at(end);
        let default = [":-", ":=", "-", "="].iter().find_map(|sign| rest.strip_prefix(sign));
        if name.is_empty() || default.is_none() && !rest.is_empty() {
            return None;
        }
        // A default may have variables itself: `${CLAIM:=${APP}}`.
        let default = || default.map(|it| self.text(it)).filter(|it| !it.contains("${"));
        match self.known.get(name) {
            Some(known) if known.is_empty() && rest.starts_with(':') => default(),
            Some(known) => Some(known.clone()),
            None if self.is_open || self.hidden.contains(name) => None,
            None => default(),
        }
    }
}

/// Where the expression ends whose text follows `${`, with others inside of it.
fn end_of_expression(inner: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in inner.char_indices() {
        match c {
            '{' if inner[..at].ends_with('$') => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether a script gives a variable its value itself, so that nobody else means to.
fn is_assigned(text: &str, name: &str) -> bool {
    let starts_word = |before: &str| before.is_empty() || before.ends_with([' ', '\t', '\n', ';', '(']);
    text.match_indices(name).any(|(at, _)| {
        let after = &text[at + name.len()..];
        starts_word(&text[..at]) && after.starts_with('=') && !after.starts_with("==")
    })
}

/// The numbers that a text asks for as if they were variables, such as the groups of a pattern: no variable
/// of Flux is called so, and they become nothing.
fn numbers(text: &str) -> Vec<&str> {
    let is_number = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_digit());
    expressions(text).filter(is_number).collect()
}

/// The variables of a text that have no default and are asked for as they are: `${NAME}`.
pub fn plain_names(text: &str) -> Vec<&str> {
    let is_name = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    expressions(text).filter(is_name).collect()
}

/// What stands in a text between `${` and the next brace, but for `$${`, which is written out.
fn expressions(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("${").filter(|(at, _)| !text[..*at].ends_with('$'));
    starts.filter_map(|(at, mark)| text[at + mark.len()..].split_once('}')).map(|it| it.0)
}

/// The expressions of a text that Flux cannot read, so that it builds nothing (fluxcd/pkg, `envsubst`): it
/// knows bash's, but for `${NAME-other}`, `${NAME+other}`, `${NAME[0]}` and `${!NAME}`.
pub(super) fn unreadable(text: &str) -> Vec<&str> {
    const LONGEST: usize = 60;
    let starts = text.match_indices("${").filter(|(at, _)| !text[..*at].ends_with('$'));
    let bad = starts.filter(|(at, mark)| !is_readable(&text[at + mark.len()..]));
    bad.map(|(at, _)| {
        let expression = text[at..].lines().next().unwrap_or_default();
        let end = expression.find('}').map_or(expression.len(), |end| end + 1).min(LONGEST);
        &expression[..expression.floor_char_boundary(end)]
    })
    .collect()
}

/// Whether what follows `${` is a name with what may follow one.
fn is_readable(inner: &str) -> bool {
    let (is_length, inner) = inner.strip_prefix('#').map_or((false, inner), |rest| (true, rest));
    let end = inner.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inner.len());
    match inner[end..].chars().next() {
        Some('}') => end > 0,
        Some(':' | '=' | ',' | '^' | '/' | '#' | '%') => end > 0 && !is_length,
        _ => false,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use tiphys_value::{Value, json};

    use super::{Giver, Variables, unreadable};

    fn filled(post_build: &Value, giver: Option<&Value>, text: &str) -> Value {
        let find = |_: &str, _: &str| giver.map_or(Giver::Open, Giver::Known);
        Variables::from_post_build(post_build, &find).fill(&json!(text))
    }

    #[test]
    fn what_is_known_is_filled_in_and_the_rest_stays() {
        let own = json!({"substitute": {"APP": "web", "PORT": "80", "NONE": ""}});
        for (text, value) in [
            ("${APP}-data", json!("web-data")),
            ("${PORT}", json!(80)),
            ("${SIZE:=5Gi}", json!("5Gi")),
            ("${NONE:-x}", json!("x")),
            ("$${APP}", json!("${APP}")),
            ("${GONE}", json!("${GONE}")),
            ("${APP", json!("${APP")),
            ("${CLAIM:=${APP}}-0", json!("web-0")),
            ("${CLAIM:=${GONE}}", json!("${CLAIM:=${GONE}}")),
            ("${APP/a/b}", json!("${APP/a/b}")),
            ("$APP", json!("$APP")),
        ] {
            assert_eq!(filled(&own, None, text), value, "{text}");
        }
    }

    #[test]
    fn what_becomes_nothing_is_known() {
        let unset = |post_build: &Value, giver: Option<&Value>, text: &str| -> Vec<String> {
            let find = |_: &str, _: &str| giver.map_or(Giver::Open, Giver::Known);
            let variables = Variables::from_post_build(post_build, &find);
            variables.unset(text).into_iter().map(str::to_owned).collect()
        };
        let own = json!({"substitute": {"APP": "web"}});
        assert_eq!(unset(&own, None, "${APP}-${NS}-${SIZE:=1}-$${RAW}-${A^^}"), ["NS"]);
        // Where nothing is given, Flux fills in nothing.
        assert!(unset(&json!({}), None, "${NS}").is_empty());
        let from = json!({"substituteFrom": [{"kind": "Secret", "name": "vars"}]});
        assert!(unset(&from, None, "${NS}").is_empty());
        // No variable has a number for its name.
        assert_eq!(unset(&from, None, "${NS}_${1}_$${2}"), ["1"]);
        // A script that sets one itself means its own.
        assert_eq!(unset(&from, None, "at=\"$(date)\"\necho ${at} ${NS}"), ["at"]);
        let secret = json!({"kind": "Secret", "stringData": {"DOMAIN": "ENC[x]"}, "sops": {}});
        assert_eq!(unset(&from, Some(&secret), "${DOMAIN}/${NS}"), ["NS"]);
    }

    #[test]
    fn what_flux_cannot_read_is_known() {
        for text in [
            "${A}", "${A:-b}", "${A:=}", "${A/b/c}", "${A##*/}", "${A%.*}", "${A^^}", "${#A}", "${A:1:2}",
            "$${a.b}", "$A", "$(date)",
        ] {
            assert!(unreadable(text).is_empty(), "{text}");
        }
        for text in ["${A-b}", "${A+b}", "${a.b}", "${A[@]}", "${#A[@]}", "${!A}", "${}", "${ A }", "${f(x)}"]
        {
            assert_eq!(unreadable(text), [text]);
        }
        assert_eq!(unreadable("url: `file:${path.join(\"a\")}`\n"), ["${path.join(\"a\")}"]);
    }

    #[test]
    fn what_nobody_can_read_is_left_open() {
        let from = json!({"substituteFrom": [{"kind": "Secret", "name": "vars"}], "substitute": {"A": "a"}});
        let secret = json!({"kind": "Secret", "stringData": {"DOMAIN": "ENC[x]"}, "sops": {}});
        assert_eq!(filled(&from, Some(&secret), "${A}.${DOMAIN:=x}"), json!("a.${DOMAIN:=x}"));
        assert_eq!(filled(&from, Some(&secret), "${OTHER:=x}"), json!("x"));
        // A Secret that is not there may give anything.
        assert_eq!(filled(&from, None, "${OTHER:=x}"), json!("${OTHER:=x}"));
        let map = json!({"kind": "ConfigMap", "data": {"A": "b", "ZONE": "eu"}});
        assert_eq!(filled(&from, Some(&map), "${A}.${ZONE}"), json!("a.eu"));
    }
}
