//! The values that charts know which are out of reach: one table a chart, made by `cargo xtask charts
//! values`.
//!
//! A table begins with the chart's name, parts of addresses that it is published under, and the oldest and
//! newest version that was looked at; behind them, where the kinds of values are known, the oldest version
//! that these were taken from. Each further line is a value that has others below it, one blank deeper
//! for each step; behind its colon stand those that have none, or of which nothing is known. `*` is every key
//! of a map and every element of a list. Behind `!` the chart's schema refuses all other keys. Behind `=` is what
//! a value is: `b`oolean, `n`umber, `s`tring, `l`ist or `m`ap, in capitals where the schema refuses all else.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{LazyLock, OnceLock},
};

use tiphys_diag::similar_names;
use tiphys_value::Value;

use super::{
    chart_uses::ChartUse,
    known_charts::{is_in_range, may_be_in_range},
    packed_tables::PackedTables,
    placeholders,
    value_steps::Step,
};

/// The charts' tables, by the files' names.
static TABLES: PackedTables =
    PackedTables::new(include_bytes!(concat!(env!("OUT_DIR"), "/chart-values.packed")));
const ANY: &str = "*";

static TABLES_READ: LazyLock<Vec<KnownValues>> =
    LazyLock::new(|| TABLES.all().iter().filter_map(|(_, table)| KnownValues::read(table)).collect());

/// The values that some versions of a chart know.
pub(crate) struct KnownValues {
    /// The chart's name.
    pub chart: &'static str,
    /// The oldest and the newest version that was looked at.
    pub versions: (&'static str, &'static str),
    /// The oldest version that the kinds of its values are known of.
    kinds_since: Option<&'static str>,
    /// Parts of addresses that it is published under.
    owners: Vec<&'static str>,
    /// The lines behind the first, of most tables never read.
    lines: &'static str,
    root: OnceLock<Node>,
}

#[derive(Default)]
struct Node {
    children: BTreeMap<&'static str, Self>,
    is_strict: bool,
    kind: Option<Kind>,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    what: What,
    /// Whether the chart's schema refuses all else; else the chart's own value is of the kind.
    pub is_asked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Boolean,
    Number,
    Text,
    List,
    Map,
}

/// Its name with an article.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.what {
            What::Boolean => "a boolean",
            What::Number => "a number",
            What::Text => "a string",
            What::List => "a list",
            What::Map => "a map",
        })
    }
}

impl Kind {
    fn read(mark: &str) -> Option<Self> {
        let what = match mark.to_ascii_lowercase().as_str() {
            "b" => What::Boolean,
            "n" => What::Number,
            "s" => What::Text,
            "l" => What::List,
            "m" => What::Map,
            _ => return None,
        };
        Some(Self { what, is_asked: mark.starts_with(|c: char| c.is_ascii_uppercase()) })
    }

    /// Whether a value is wrong for sure where this kind is meant. What is empty switches things off, and
    /// templates take a text for most.
    fn is_missed_by(self, value: &Value) -> bool {
        let is_open = |text: &str| text.contains("{{") || text.contains("${") || placeholders::is_in(text);
        match (self.what, value) {
            (_, Value::Null)
            | (What::Boolean, Value::Bool(_))
            | (What::Number, Value::Number(_))
            | (What::Text, Value::String(_))
            | (What::List, Value::Array(_))
            | (What::Map, Value::Object(_)) => false,
            (_, Value::String(text)) if self.is_asked => !is_open(text),
            // Every text that is not empty is true.
            (What::Boolean, Value::String(text)) => matches!(text.as_str(), "false" | "no" | "off"),
            _ if self.is_asked => true,
            (What::List | What::Text, Value::Object(map)) => !map.is_empty(),
            (What::Map | What::Text, Value::Array(items)) => !items.is_empty(),
            (What::List | What::Map, Value::Number(_)) => true,
            (What::List | What::Map, Value::Bool(is_on)) => *is_on,
            _ => false,
        }
    }
}

/// A value that is of another kind than the chart takes.
pub(crate) struct WrongKind<'a> {
    /// Where it is.
    pub path: Vec<Step<'a>>,
    /// What it is.
    pub given: &'static str,
    /// What the chart takes.
    pub wanted: Kind,
}

/// Its path as people write it.
impl fmt::Display for WrongKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(&self.path, f)
    }
}

/// A value that a chart does not know.
pub(crate) struct Unread<'a> {
    /// Where it is.
    pub path: Vec<Step<'a>>,
    /// Whether the chart's schema refuses it.
    pub is_refused: bool,
    /// Where it may be meant to be.
    pub meant: Vec<String>,
    /// What the chart knows in its place.
    pub known: Vec<&'static str>,
}

/// A value that is a text or a number, where the chart reads values below it.
pub(crate) struct Scalar<'a> {
    /// Where it is.
    pub path: Vec<Step<'a>>,
    /// What the chart reads below it.
    pub known: Vec<&'static str>,
}

/// Its path as people write it.
impl fmt::Display for Unread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(&self.path, f)
    }
}

/// Its path as people write it.
impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(&self.path, f)
    }
}

fn write_path(path: &[Step<'_>], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (at, step) in path.iter().enumerate() {
        match step {
            Step::Key(key) if at == 0 => f.write_str(key)?,
            Step::Key(key) => write!(f, ".{key}")?,
            Step::Index(at) => write!(f, "[{at}]")?,
        }
    }
    Ok(())
}

impl KnownValues {
    fn read(table: &'static str) -> Option<Self> {
        let (head, lines) = table.split_once('\n')?;
        let words: Vec<&str> = head.split(' ').collect();
        let ([chart, owners, oldest, newest] | [chart, owners, oldest, newest, _]) = words[..] else {
            return None;
        };
        let (owners, kinds_since) = (owners.split(',').collect(), words.get(4).copied());
        let (versions, root) = ((oldest, newest), OnceLock::new());
        Some(Self { chart, versions, kinds_since, owners, lines, root })
    }

    /// What is known of the chart that something takes, in a version that was looked at or between two
    /// that were. Of a range of versions it is what any of them knows.
    pub(crate) fn of_use(used: &ChartUse) -> Option<&'static Self> {
        let all = || TABLES_READ.iter().filter(|known| known.chart == used.chart);
        let mut open = all().filter(|known| may_be_in_range(used, &known.owners, known.versions));
        let exact = all().find(|known| is_in_range(used, &known.owners, known.versions));
        // Where a chart has several tables, a range says too little.
        exact.or_else(|| open.next().filter(|_| open.next().is_none()))
    }

    /// Whether a key stands at the top of the chart's values.
    pub(crate) fn has_top(&self, key: &str) -> bool {
        self.root().children.contains_key(key)
    }

    /// Whether the chart knows a key below some steps.
    pub(crate) fn has_below(&self, path: &[Step<'_>], key: &str) -> bool {
        let mut node = self.root();
        for step in path {
            let Some(child) = node.children.get(step_name(*step)).or_else(|| node.children.get(ANY)) else {
                return false;
            };
            node = child;
        }
        node.children.contains_key(key)
    }

    fn root(&self) -> &Node {
        self.root.get_or_init(|| read_tree(self.lines))
    }

    /// The values that the chart does not know.
    pub(crate) fn find_unread<'a>(&self, values: &'a Value) -> Vec<Unread<'a>> {
        let mut found = Vec::new();
        self.walk(values, self.root(), &mut Vec::new(), &mut found);
        found
    }

    /// The values that are no maps, where the chart reads what is below them.
    pub(crate) fn find_scalars<'a>(&self, values: &'a Value) -> Vec<Scalar<'a>> {
        let mut found = Vec::new();
        scalars(values, self.root(), &mut Vec::new(), &mut found);
        found
    }

    /// The values that are of another kind than the chart takes in the version of a use.
    pub(crate) fn find_wrong_kinds<'a>(&self, used: &ChartUse, values: &'a Value) -> Vec<WrongKind<'a>> {
        let mut found = Vec::new();
        if let Some(since) = self.kinds_since
            && is_in_range(used, &self.owners, (since, self.versions.1))
        {
            wrong_kinds(values, self.root(), &mut Vec::new(), &mut found);
        }
        found
    }

    fn walk<'a>(&self, value: &'a Value, node: &Node, path: &mut Vec<Step<'a>>, found: &mut Vec<Unread<'a>>) {
        if node.children.is_empty() {
            return;
        }
        match value {
            Value::Array(items) => {
                let Some(below) = node.children.get(ANY) else { return };
                for (at, item) in items.iter().enumerate() {
                    path.push(Step::Index(at));
                    self.walk(item, below, path, found);
                    path.pop();
                }
            }
            Value::Object(map) => {
                for (key, below) in map {
                    path.push(Step::Key(key));
                    match node.children.get(key.as_str()).or_else(|| node.children.get(ANY)) {
                        Some(known) => self.walk(below, known, path, found),
                        None if is_aside(key, below, node.is_strict) => {}
                        None => found.push(Unread {
                            path: path.clone(),
                            is_refused: node.is_strict,
                            meant: self.meant(path, key, below, value, node),
                            known: node.children.keys().copied().collect(),
                        }),
                    }
                    path.pop();
                }
            }
            _ => {}
        }
    }

    /// Where a value may be meant to be: under a name that is nearly the same, or at another level.
    fn meant(&self, path: &[Step<'_>], key: &str, value: &Value, beside: &Value, node: &Node) -> Vec<String> {
        let free = |name: &&str| beside.get(*name).is_none();
        let above: Vec<&str> = path[..path.len() - 1].iter().map(|step| step_name(*step)).collect();
        if let Some(near) = nearest(key, node).filter(free) {
            return vec![[above.as_slice(), &[near]].concat().join(".")];
        }
        // `web: {replicaCount: 3}` for `replicaCount: 3`
        if let Some(map) = value.as_object()
            && !map.is_empty()
            && map
                .keys()
                .all(|below| node.children.contains_key(below.as_str()) && beside.get(below).is_none())
        {
            return map.keys().map(|below| [above.as_slice(), &[below]].concat().join(".")).collect();
        }
        const MOST: usize = 3;
        let mut elsewhere = Vec::new();
        self.root().find(key, value, &mut Vec::new(), &mut elsewhere);
        let near_first = |found: &Vec<&str>| {
            let shared = found.iter().zip(&above).take_while(|(one, other)| one == other).count();
            (above.len() - shared + (found.len() - 1 - shared.min(found.len() - 1)), found.len())
        };
        elsewhere.sort_by_key(near_first);
        let Some(best) = elsewhere.first().map(|found| near_first(found).0) else { return Vec::new() };
        // A word that stands everywhere says nothing.
        const FARTHEST: usize = 2;
        elsewhere.retain(|found| near_first(found).0 == best);
        match best <= FARTHEST && elsewhere.len() <= MOST {
            true => elsewhere.into_iter().map(|found| found.join(".")).collect(),
            false => Vec::new(),
        }
    }
}

/// Gathers the values that are no maps where a node has others below it. What is empty or false switches
/// things off.
fn scalars<'a>(value: &'a Value, node: &Node, path: &mut Vec<Step<'a>>, found: &mut Vec<Scalar<'a>>) {
    let is_text = |text: &str| !text.is_empty() && !text.contains("{{") && !placeholders::is_in(text);
    let is_set = match value {
        Value::Object(map) => {
            for (key, below) in map {
                let Some(known) = node.children.get(key.as_str()) else { continue };
                path.push(Step::Key(key));
                scalars(below, known, path, found);
                path.pop();
            }
            false
        }
        Value::String(text) => is_text(text),
        Value::Number(_) => true,
        _ => false,
    };
    if is_set && !node.children.is_empty() && !node.children.contains_key(ANY) {
        found.push(Scalar { path: path.clone(), known: node.children.keys().copied().collect() });
    }
}

/// Gathers the values that are of another kind than a node.
fn wrong_kinds<'a>(value: &'a Value, node: &Node, path: &mut Vec<Step<'a>>, found: &mut Vec<WrongKind<'a>>) {
    if let Some(wanted) = node.kind.filter(|kind| kind.is_missed_by(value)) {
        let given = match value {
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            _ => "a map",
        };
        found.push(WrongKind { path: path.clone(), given, wanted });
    }
    let below = |key: &str| node.children.get(key).or_else(|| node.children.get(ANY));
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let Some(known) = below(key) else { continue };
                path.push(Step::Key(key));
                wrong_kinds(value, known, path, found);
                path.pop();
            }
        }
        Value::Array(items) => {
            let Some(known) = node.children.get(ANY) else { return };
            for (at, item) in items.iter().enumerate() {
                path.push(Step::Index(at));
                wrong_kinds(item, known, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

impl Node {
    /// Finds the values of a name that can be what a value is meant to be.
    fn find<'n>(&'n self, key: &str, value: &Value, path: &mut Vec<&'n str>, found: &mut Vec<Vec<&'n str>>) {
        const MAX_DEPTH: usize = 8;
        if path.len() > MAX_DEPTH {
            return;
        }
        for (name, child) in &self.children {
            path.push(name);
            let fits = child.children.is_empty()
                || value.as_object().is_some_and(|map| {
                    map.keys().all(|below| {
                        child.children.contains_key(below.as_str()) || child.children.contains_key(ANY)
                    })
                });
            if *name == key && fits {
                found.push(path.clone());
            }
            child.find(key, value, path, found);
            path.pop();
        }
    }
}

/// The key that is nearly the same, also but for the case of its letters or an `s` at its end.
fn nearest(key: &str, node: &Node) -> Option<&'static str> {
    let same = node.children.keys().copied().find(|known| known.eq_ignore_ascii_case(key));
    same.or_else(|| {
        similar_names::nearest_slip(key, node.children.keys().copied().filter(|known| *known != ANY))
    })
}

fn step_name<'a>(step: Step<'a>) -> &'a str {
    match step {
        Step::Key(key) => key,
        Step::Index(_) => ANY,
    }
}

/// Whether a value is not meant for the chart, or says nothing: anchors, `x-…`, what is empty.
fn is_aside(key: &str, value: &Value, is_strict: bool) -> bool {
    let is_empty = value.is_null()
        || value.as_object().is_some_and(|map| map.is_empty())
        || value.as_array().is_some_and(Vec::is_empty)
        || value.as_str() == Some("");
    // Nothing would be other if it were read.
    let is_as_ever = key == "enabled" && value.as_bool() == Some(true);
    let says_nothing = !is_strict && (is_empty || is_as_ever);
    says_nothing
        || key.starts_with(['.', '_', '$', '&'])
        || key.starts_with("x-")
        // A parameter of an Application that sets an element of a list.
        || key.contains('[')
        || key == "<<"
        || placeholders::is_in(key)
}

fn read_tree(lines: &'static str) -> Node {
    let mut root = Node::default();
    let mut path: Vec<&'static str> = Vec::new();
    for line in lines.lines() {
        let depth = line.len() - line.trim_start().len();
        let (name, leaves) = line.trim_start().split_once(": ").unwrap_or((line.trim_start(), ""));
        let is_strict = name.ends_with('!');
        path.truncate(depth);
        path.push(name.trim_end_matches('!'));
        let node = path.iter().skip(1).fold(&mut root, |node, step| node.children.entry(step).or_default());
        node.is_strict = is_strict;
        for leaf in leaves.split(' ').filter(|leaf| !leaf.is_empty()) {
            let (name, mark) = leaf.split_once('=').unwrap_or((leaf, ""));
            node.children.entry(name).or_default().kind = Kind::read(mark);
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "\
values: nameOverride replicas=N
 server!: image replicas=n args=l env=l tls=b
  ingress: enabled hosts
   tls
    *: secretName
";

    fn known() -> KnownValues {
        KnownValues {
            chart: "web",
            versions: ("1.0.0", "2.0.0"),
            kinds_since: Some("1.0.0"),
            owners: Vec::new(),
            lines: LINES,
            root: OnceLock::new(),
        }
    }

    fn unread(values: &str) -> Vec<(String, bool, Vec<String>)> {
        let values = tiphys_yaml::from_yaml(values).expect("YAML");
        let known = known();
        let found = known.find_unread(&values).into_iter();
        found.map(|it| (it.to_string(), it.is_refused, it.meant)).collect()
    }

    #[test]
    fn what_a_chart_knows_is_not_told() {
        assert!(
            unread("server: {image: {any: thing}, ingress: {tls: [{secretName: a}]}}\nnameOverride: x")
                .is_empty()
        );
        assert!(unread("x-anchors: {a: 1}\nother: {}\nenabled: true").is_empty());
    }

    #[test]
    fn a_slip_and_a_wrong_level_are_told_with_what_is_meant() {
        assert_eq!(
            unread("server: {ingres: {}}"),
            [("server.ingres".into(), true, vec!["server.ingress".into()])]
        );
        assert_eq!(
            unread("ingress: {enabled: true}"),
            [("ingress".into(), false, vec!["server.ingress".into()])]
        );
        assert_eq!(
            unread("server: {ingress: {tls: [{secretname: a}]}}"),
            [(
                "server.ingress.tls[0].secretname".into(),
                false,
                vec!["server.ingress.tls.*.secretName".into()]
            )]
        );
        assert_eq!(unread("web: {replicas: 3}"), [("web".into(), false, vec!["replicas".into()])]);
    }

    #[test]
    fn a_value_of_another_kind_is_told_where_that_is_sure() {
        let of = |values: &str| {
            let values = tiphys_yaml::from_yaml(values).expect("YAML");
            let mut found = Vec::new();
            wrong_kinds(&values, known().root(), &mut Vec::new(), &mut found);
            found.iter().map(|it| format!("{it}: {}, not {}", it.wanted, it.given)).collect::<Vec<_>>()
        };
        assert_eq!(of("replicas: '3'"), ["replicas: a number, not a string"]);
        assert_eq!(of("server: {env: {A: b}}"), ["server.env: a list, not a map"]);
        assert_eq!(of("server: {tls: 'false'}"), ["server.tls: a boolean, not a string"]);
        // Templates take a text for a number, and may render it.
        assert!(of("replicas: '{{ .Values.n }}'\nserver: {replicas: '3', env: {}, args: -v}").is_empty());
        assert!(of("replicas: null\nserver: {env: [], args: [a], tls: 'true'}").is_empty());
    }

    #[test]
    fn every_table_is_read() {
        assert_eq!(TABLES_READ.len(), TABLES.all().len());
        for (known, (_, table)) in TABLES_READ.iter().zip(TABLES.all()) {
            assert!(!table.trim_end().is_empty() && !known.versions.0.is_empty());
            // A chart of which nothing is known that its templates leave out has one line.
            assert_eq!(known.root().children.is_empty(), table.lines().count() == 1, "{}", known.chart);
        }
        let grafana = TABLES_READ
            .iter()
            .find(|known| known.chart == "grafana" && known.owners == ["grafana"])
            .expect("is known");
        assert!(grafana.root().children["ingress"].children.contains_key("hosts"));
    }
}
