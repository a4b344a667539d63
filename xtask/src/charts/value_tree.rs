//! The tree of values that a chart knows, and how the table says it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use tiphys_value::Value;

use super::schemas::Schemas;

/// What stands for every key of a map and every element of a list.
pub(super) const ANY: &str = "*";

/// What a value is, as far as a chart's schema or its own values tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// Nothing tells it.
    #[default]
    Open,
    /// The chart's own value is of this kind: its letter in the table.
    Usual(char),
    /// The schema refuses other kinds.
    Asked(char),
    /// Two sources say different things.
    Several,
}

impl Kind {
    /// The kind of a chart's own value; an empty one may stand for any.
    fn of_default(value: &Value) -> Self {
        match value {
            Value::Bool(_) => Self::Usual('b'),
            Value::Number(_) => Self::Usual('n'),
            Value::String(text) if !text.is_empty() => Self::Usual('s'),
            Value::Array(_) => Self::Usual('l'),
            Value::Object(_) => Self::Usual('m'),
            _ => Self::Open,
        }
    }

    /// The kind that a schema asks for, if it is one.
    fn of_schema(schema: &Value) -> Self {
        let types = match schema.get("type") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => return Self::Open,
        };
        let choices = ["anyOf", "oneOf", "allOf", "$ref"];
        match types.into_iter().filter(|it| *it != "null").collect::<Vec<_>>()[..] {
            _ if choices.iter().any(|word| schema.get(word).is_some()) => Self::Open,
            ["boolean"] => Self::Asked('b'),
            ["integer" | "number"] => Self::Asked('n'),
            ["string"] => Self::Asked('s'),
            ["array"] => Self::Asked('l'),
            ["object"] => Self::Asked('m'),
            _ => Self::Several,
        }
    }

    /// What the schema and the chart's own value say together: the schema first.
    fn of_both(self, other: Self) -> Self {
        match (self, other) {
            (Self::Asked(_) | Self::Several, _) => self,
            (_, Self::Asked(_) | Self::Several) | (Self::Open, _) => other,
            _ if self == other || other == Self::Open => self,
            _ => Self::Several,
        }
    }

    /// What two versions say alike.
    fn of_versions(self, other: Self) -> Self {
        match (self, other) {
            _ if self == other => self,
            (Self::Open, Self::Usual(letter) | Self::Asked(letter))
            | (Self::Usual(letter) | Self::Asked(letter), Self::Open) => Self::Usual(letter),
            (Self::Asked(one) | Self::Usual(one), Self::Asked(two) | Self::Usual(two)) if one == two => {
                Self::Usual(one)
            }
            _ => Self::Several,
        }
    }

    /// What stands behind the value's name.
    fn mark(self) -> String {
        match self {
            Self::Usual(letter) => format!("={letter}"),
            Self::Asked(letter) => format!("={}", letter.to_ascii_uppercase()),
            Self::Open | Self::Several => String::new(),
        }
    }
}

/// A value that a chart knows.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueTree {
    children: BTreeMap<String, Self>,
    kind: Kind,
    /// Whether templates hand it on as it is, with whatever stands below.
    is_whole: bool,
    /// Whether the chart's schema refuses keys that are not among the children.
    is_strict: bool,
}

impl ValueTree {
    /// Notes that a value is read.
    pub(super) fn read(&mut self, path: &[String]) -> &mut Self {
        path.iter().fold(self, |node, step| node.children.entry(step.clone()).or_default())
    }

    /// Notes that a value is read with whatever stands below it.
    pub(super) fn read_whole(&mut self, path: &[String]) {
        self.read(path).is_whole = true;
    }

    /// Whether templates read a value, itself or as a part of another.
    pub(super) fn knows(&self, path: &[String]) -> bool {
        let Some((first, rest)) = path.split_first() else { return true };
        let mut children = [first.as_str(), ANY].into_iter().filter_map(|key| self.children.get(key));
        self.is_whole || children.any(|child| child.knows(rest))
    }

    /// Adds the keys of the chart's own values.
    pub(super) fn add_defaults(&mut self, values: &Value) {
        self.kind = self.kind.of_both(Kind::of_default(values));
        match values {
            Value::Object(map) => {
                for (key, below) in map {
                    self.children.entry(key.clone()).or_default().add_defaults(below);
                }
            }
            Value::Array(items) => {
                for item in items.iter().filter(|item| item.is_object()) {
                    self.children.entry(ANY.to_owned()).or_default().add_defaults(item);
                }
            }
            _ => {}
        }
    }

    /// Adds what a JSON schema says.
    pub(super) fn add_schema(&mut self, schema: &Value, files: &Schemas<'_>, depth: usize) {
        const MAX_DEPTH: usize = 24;
        if depth > MAX_DEPTH {
            self.is_whole = true;
            return;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            match files.find(reference) {
                Some((meant, files)) => self.add_schema(meant, &files, depth + 1),
                None => self.is_whole = true,
            }
        }
        self.kind = Kind::of_schema(schema).of_both(self.kind);
        for (key, below) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.children.entry(key.clone()).or_default().add_schema(below, files, depth + 1);
        }
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false)) && patterns.is_none();
        let open = schema.get("additionalProperties").filter(|it| it.is_object());
        let items = schema.get("items").filter(|it| it.is_object());
        for below in patterns.into_iter().flat_map(|map| map.values()).chain(open).chain(items) {
            self.children.entry(ANY.to_owned()).or_default().add_schema(below, files, depth + 1);
        }
        self.is_strict |= is_closed && schema.get("properties").is_some();
        let parts = |word: &str| schema.get(word).and_then(Value::as_array).into_iter().flatten();
        for part in parts("allOf") {
            self.add_schema(part, files, depth + 1);
        }
        for word in ["then", "else"] {
            let mut part = Self::default();
            schema.get(word).into_iter().for_each(|it| part.add_schema(it, files, depth + 1));
            part.forget_strictness();
            self.add(part);
        }
        for word in ["anyOf", "oneOf"] {
            let mut all = Self::default();
            let mut choices = Vec::new();
            for choice in parts(word) {
                let mut own = Self::default();
                own.add_schema(choice, files, depth + 1);
                choices.push(own);
            }
            // What takes a text or a number refuses no key.
            choices.retain(|choice| choice.is_whole || !choice.children.is_empty());
            let is_strict = !choices.is_empty() && choices.iter().all(|choice| choice.is_strict);
            choices.into_iter().for_each(|choice| all.add(choice));
            if !is_strict {
                all.is_strict = false;
            }
            self.add(all);
        }
    }

    fn forget_strictness(&mut self) {
        self.is_strict = false;
        self.children.values_mut().for_each(Self::forget_strictness);
    }

    /// Adds what another version of the chart knows: what either reads is known, and only what both refuse is
    /// refused.
    pub(super) fn add_version(&mut self, other: Self) {
        self.is_strict &= other.is_strict;
        self.is_whole |= other.is_whole;
        self.kind = self.kind.of_versions(other.kind);
        for (key, theirs) in other.children {
            match self.children.get_mut(&key) {
                Some(ours) => ours.add_version(theirs),
                None => drop(self.children.insert(key, theirs)),
            }
        }
    }

    fn add(&mut self, other: Self) {
        self.is_whole |= other.is_whole;
        self.is_strict |= other.is_strict;
        // What holds under a condition alone asks for nothing.
        if other.kind != Kind::Open && other.kind != self.kind {
            self.kind = if self.kind == Kind::Open { Kind::Open } else { Kind::Several };
        }
        for (key, theirs) in other.children {
            self.children.entry(key).or_default().add(theirs);
        }
    }

    /// Leaves out what nothing can be said of: what is below values that are handed on as they are.
    pub(super) fn prune(&mut self) {
        if self.is_whole && !self.is_strict || self.children.keys().any(|key| !is_plain(key)) {
            self.forget_children();
        }
        // What holds for every key holds for those that are named, too.
        if let Some(any) = self.children.get(ANY).cloned() {
            for (_, child) in self.children.iter_mut().filter(|(key, _)| *key != ANY) {
                child.add(any.clone());
            }
        }
        self.children.values_mut().for_each(Self::prune);
        let is_open = self.children.contains_key(ANY);
        if is_open && self.children.values().all(|child| child.children.is_empty()) {
            self.forget_children();
        }
    }

    /// Takes every key below, also where another version knows some of them.
    fn forget_children(&mut self) {
        self.children.clear();
        self.is_strict = false;
        self.is_whole = true;
    }

    /// The tree that a table says, as [`Self::to_table`] writes it.
    pub(super) fn from_table(table: &str) -> Self {
        let mut root = Self::default();
        let mut path: Vec<String> = Vec::new();
        for line in table.lines() {
            let depth = line.len() - line.trim_start().len();
            let (name, leaves) = line.trim_start().split_once(": ").unwrap_or((line.trim_start(), ""));
            path.truncate(depth);
            path.push(name.trim_end_matches('!').to_owned());
            let node = root.read(path.get(1..).unwrap_or_default());
            node.is_strict = name.ends_with('!');
            for leaf in leaves.split(' ').filter(|leaf| !leaf.is_empty()) {
                let name = leaf.split('=').next().unwrap_or(leaf);
                node.children.entry(name.to_owned()).or_default();
            }
        }
        root
    }

    /// Takes from another tree of the chart what the values are that have none below them here, and the names
    /// that it has beside those that are known.
    pub(super) fn take_kinds(&mut self, other: &Self) {
        for (key, child) in &mut self.children {
            let Some(theirs) = other.children.get(key) else { continue };
            child.kind = theirs.kind;
            child.take_kinds(theirs);
        }
        if !self.children.is_empty() && !self.is_strict && !self.children.contains_key(ANY) {
            for (key, theirs) in other.children.iter().filter(|(key, _)| *key != ANY) {
                self.children.entry(key.clone()).or_insert_with(|| theirs.clone());
            }
        }
    }

    /// Forgets what the values of some names usually are: templates ask for their kind.
    pub(super) fn forget_usual_kinds(&mut self, names: &BTreeSet<String>) {
        for (key, child) in &mut self.children {
            if names.contains(key) && matches!(child.kind, Kind::Usual(_)) {
                child.kind = Kind::Several;
            }
            child.forget_usual_kinds(names);
        }
    }

    /// The lines of the table: each value that has others below it, with those that have none behind a colon.
    pub(super) fn to_lines(&self, depth: usize, text: &mut String) {
        for (key, child) in self.children.iter().filter(|(_, child)| !child.children.is_empty()) {
            let mark = if child.is_strict { "!" } else { "" };
            let _ = write!(text, "{}{key}{mark}", " ".repeat(depth));
            let leaves = child.children.iter().filter(|(_, below)| below.children.is_empty());
            let leaves: Vec<String> =
                leaves.map(|(key, below)| format!("{key}{}", below.kind.mark())).collect();
            if !leaves.is_empty() {
                let _ = write!(text, ": {}", leaves.join(" "));
            }
            text.push('\n');
            child.to_lines(depth + 1, text);
        }
    }

    /// All of it as one tree below a name that stands for the whole.
    pub(super) fn to_table(&self) -> String {
        let mut root = Self::default();
        root.children.insert("values".to_owned(), self.clone());
        let mut text = String::new();
        root.to_lines(0, &mut text);
        text
    }
}

/// Whether a key can stand in the table.
fn is_plain(key: &str) -> bool {
    !key.is_empty() && !key.contains(|c: char| c.is_whitespace() || matches!(c, ':' | '!' | '='))
}
