//! The table of a group as text.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Write as _,
};

use serde_json::Value;

use super::{
    core_types::CoreTypes,
    node::{Field, Node, Range, Shape},
};

/// What has fewer fields than this is written where it is used.
const MIN_SHARED_LINES: usize = 4;
/// Patterns shorter than this are written where they are used.
const MIN_SHARED_PATTERN: usize = 24;
/// The longest default that is written.
const MAX_DEFAULT: usize = 64;

/// Writes the kinds of a group.
pub(super) struct Writer<'a> {
    core: &'a CoreTypes,
    /// How often each object is asked for, by its text.
    uses: HashMap<String, usize>,
    /// The names of objects that are used more than once, and their texts with such names in them.
    names: HashMap<String, String>,
    shared: BTreeMap<String, String>,
    /// The names of patterns that are used more than once.
    patterns: HashMap<String, String>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(core: &'a CoreTypes) -> Self {
        Self {
            core,
            uses: HashMap::new(),
            names: HashMap::new(),
            shared: BTreeMap::new(),
            patterns: HashMap::new(),
        }
    }

    /// The table of a group: its kinds by version and name.
    pub(super) fn table(&mut self, group: &str, kinds: &BTreeMap<(String, String), Node>) -> String {
        for node in kinds.values() {
            self.count(node);
        }
        let mut patterns: BTreeMap<&str, usize> = BTreeMap::new();
        for node in kinds.values() {
            count_patterns(node, &mut patterns);
        }
        let often = patterns.iter().filter(|(text, uses)| **uses > 1 && text.len() >= MIN_SHARED_PATTERN);
        for (at, (text, _)) in often.enumerate() {
            self.patterns.insert((*text).to_owned(), format!("{}", at + 1));
        }
        // Versions and kinds with the same fields are one entry.
        let mut texts: BTreeMap<(Vec<String>, String), Vec<String>> = BTreeMap::new();
        let mut by_kind: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
        for ((version, kind), node) in kinds {
            let text = self.block(node, 1);
            by_kind.entry((kind, text)).or_default().push(version.clone());
        }
        for ((kind, text), versions) in by_kind {
            texts.entry((versions, text)).or_default().push(kind.to_owned());
        }
        let mut entries: Vec<(String, String)> = texts
            .into_iter()
            .map(|((versions, text), kinds)| {
                (format!("{group}/{} {}\n", versions.join(","), kinds.join(",")), text)
            })
            .collect();
        entries.sort_by(|a, b| a.0.split_once(' ').map(|it| it.1).cmp(&b.0.split_once(' ').map(|it| it.1)));
        let mut out = String::new();
        let mut patterns: Vec<(&String, &String)> = self.patterns.iter().collect();
        patterns.sort_by_key(|(_, name)| name.parse::<usize>().unwrap_or_default());
        for (pattern, name) in patterns {
            let _ = writeln!(out, "~{name} {pattern}");
        }
        for (name, text) in &self.shared {
            let _ = write!(out, "@{name}\n{text}");
        }
        for (line, text) in entries {
            out.push_str(&line);
            out.push_str(&text);
        }
        out
    }

    /// Counts objects below a node; what is in an object that was met before is not counted again.
    fn count(&mut self, node: &Node) {
        match &node.shape {
            Shape::Object { fields, .. } => {
                for field in fields.values() {
                    let Some(object) = object_of(&field.node) else { continue };
                    if self.core.name_of(object).is_some() {
                        continue;
                    }
                    let uses = self.uses.entry(key_of(object)).or_default();
                    *uses += 1;
                    if *uses == 1 {
                        self.count(object);
                    }
                }
            }
            Shape::Map(inner) | Shape::List { item: inner, .. } => self.count(inner),
            _ => {}
        }
    }

    /// The lines of an object's fields.
    fn block(&mut self, node: &Node, depth: usize) -> String {
        let mut out = String::new();
        let indent = " ".repeat(depth);
        for rule in &node.rules {
            let _ = writeln!(out, "{indent}? {}", rule.to_line());
        }
        if let Shape::Object { fields, .. } = &node.shape {
            for (name, field) in fields {
                let mark = if field.is_required { "!" } else { "" };
                let (ty, below) = self.field_type(name, field, depth);
                let _ = writeln!(out, "{indent}{name}{mark} {ty}");
                out.push_str(&below);
            }
        }
        out
    }

    /// The type of a field, and the lines below it.
    fn field_type(&mut self, name: &str, field: &Field, depth: usize) -> (String, String) {
        let mut ty = String::new();
        let mut node = &field.node;
        loop {
            match &node.shape {
                Shape::List { item, unique } => {
                    ty.push('[');
                    if let Some(keys) = unique {
                        let _ = write!(ty, "^{}:", keys.join(","));
                    }
                    ty.push_str(&range(node.range));
                    node = item;
                }
                Shape::Map(inner) => {
                    ty.push('{');
                    ty.push_str(&range(node.range));
                    node = inner;
                }
                _ => break,
            }
        }
        let mut below = String::new();
        match &node.shape {
            Shape::Object { .. } => {
                let (own, lines) = self.object_type(name, node, depth);
                ty.push_str(&own);
                below = lines;
            }
            Shape::Text => ty.push('s'),
            Shape::Integer => ty.push('i'),
            Shape::Number => ty.push('n'),
            Shape::Boolean => ty.push('b'),
            Shape::IntegerOrText => ty.push('x'),
            _ => ty.push('*'),
        }
        if !node.has_fields() {
            ty.push_str(&range(node.range));
            if let Some(format) = node.format.as_deref().filter(|format| is_checked(format)) {
                let _ = write!(ty, "%{format}");
            }
            if let Some(values) = &node.values {
                let _ = write!(ty, "({})", values.join("|"));
            }
        }
        // Of an object or list a default only says that the field need not be given.
        if let Some(default) = default(&field.node) {
            let _ = write!(ty, " ={default}");
        }
        if let Some(pattern) = node.pattern.as_deref().filter(|it| !it.contains('\n') && it.trim() == *it) {
            match self.patterns.get(pattern) {
                Some(name) => drop(write!(ty, " ~{name}")),
                None => drop(write!(ty, " /{pattern}")),
            }
        }
        (ty, below)
    }

    /// An object: the name of its type, or `o` and its fields.
    fn object_type(&mut self, name: &str, node: &Node, depth: usize) -> (String, String) {
        if let Some(core) = self.core.name_of(node) {
            return (format!("@{core}"), String::new());
        }
        let keeps = matches!(&node.shape, Shape::Object { keeps_others: true, .. });
        let open = format!("o{}{}", if keeps { "+" } else { "" }, range(node.range));
        let key = key_of(node);
        let is_shared =
            self.uses.get(&key).is_some_and(|uses| *uses > 1) && lines_of(node) >= MIN_SHARED_LINES;
        if !is_shared {
            return (open, self.block(node, depth + 1));
        }
        let known = match self.names.get(&key) {
            Some(known) => known.clone(),
            None => {
                let taken: HashSet<&String> = self.names.values().collect();
                let mut numbered = (2..).map(|number| format!("{name}{number}"));
                let mut own = name.to_owned();
                while taken.contains(&own) {
                    own = numbered.next().unwrap_or_default();
                }
                self.names.insert(key, own.clone());
                let text = self.block(node, 1);
                self.shared.insert(own.clone(), text);
                own
            }
        };
        let range = range(node.range);
        let mark = match (keeps, range.is_empty()) {
            (true, _) => "+",
            (false, true) => "",
            (false, false) => ":",
        };
        (format!("@{known}{mark}{range}"), String::new())
    }
}

/// The object that a field is, or has a list or a map of.
fn object_of(node: &Node) -> Option<&Node> {
    match &node.shape {
        Shape::Object { .. } => Some(node),
        Shape::Map(inner) | Shape::List { item: inner, .. } => object_of(inner),
        _ => None,
    }
}

/// What tells an object's fields from those of others; its own range and openness stand where it is used.
fn key_of(node: &Node) -> String {
    match &node.shape {
        Shape::Object { fields, .. } => format!("{fields:?}{:?}", node.rules),
        _ => String::new(),
    }
}

fn lines_of(node: &Node) -> usize {
    match &node.shape {
        Shape::Object { fields, .. } => {
            fields.values().map(|field| 1 + object_of(&field.node).map_or(0, lines_of)).sum::<usize>()
        }
        _ => 0,
    }
}

fn count_patterns<'a>(node: &'a Node, patterns: &mut BTreeMap<&'a str, usize>) {
    if let Some(pattern) = &node.pattern {
        *patterns.entry(pattern).or_default() += 1;
    }
    match &node.shape {
        Shape::Object { fields, .. } => {
            fields.values().for_each(|field| count_patterns(&field.node, patterns));
        }
        Shape::Map(inner) | Shape::List { item: inner, .. } => count_patterns(inner, patterns),
        _ => {}
    }
}

/// `1..63`, `..16`, `0<..`; nothing if all is allowed.
fn range(range: Range) -> String {
    if range == Range::default() {
        return String::new();
    }
    let min = range
        .min
        .map_or_else(String::new, |it| format!("{}{}", it.at, if it.is_exclusive { "<" } else { "" }));
    let max = range
        .max
        .map_or_else(String::new, |it| format!("{}{}", if it.is_exclusive { "<" } else { "" }, it.at));
    format!("{min}..{max}")
}

/// The formats that the API server checks.
fn is_checked(format: &str) -> bool {
    matches!(format, "date-time" | "date" | "ipv4" | "ipv6" | "cidr" | "byte" | "uuid" | "email")
}

/// A scalar default that can be written on the line.
fn default(node: &Node) -> Option<String> {
    let text = match (node.default.as_ref()?, &node.shape) {
        (Value::String(text), Shape::Text | Shape::IntegerOrText) => text.clone(),
        (Value::Number(number), Shape::Integer | Shape::Number | Shape::IntegerOrText) => number.to_string(),
        (Value::Bool(value), Shape::Boolean) => value.to_string(),
        _ => return None,
    };
    (text.len() <= MAX_DEFAULT && !text.contains(char::is_whitespace)).then_some(text)
}
