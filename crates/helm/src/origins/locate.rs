//! Which file and line set a value.

use std::{cell::OnceCell, sync::Arc};

use tiphys_value::{Location, Segment};
use tiphys_yaml::{Content, Document, Node, Profile, parse_documents};

use crate::{
    Chart, Compat, ValuesSource,
    values::{Defaults, GLOBAL, Table, Val, apply},
};

/// A source of values that can be looked into.
#[derive(Debug)]
struct Source {
    name: Arc<str>,
    table: Arc<Defaults>,
    /// The text, if the source is a file.
    text: Option<Arc<[u8]>>,
    documents: OnceCell<Vec<Document>>,
    /// For the defaults of a subchart: the names that lead to it.
    prefix: Vec<String>,
}

/// Finds the places that set values.
#[derive(Debug)]
pub(super) struct Locator {
    /// The strongest first.
    sources: Vec<Source>,
    values: Table,
    /// Path of a chart, path in its own values, path below the subchart: from `import-values`.
    imports: Vec<(Vec<String>, Vec<String>)>,
}

impl Locator {
    pub(super) fn new(chart: &Chart, values: &Table, given: &[ValuesSource], compat: Compat) -> Self {
        let mut sources: Vec<Source> = Vec::new();
        let rank = |source: &ValuesSource| match source {
            ValuesSource::File(..) => 0,
            ValuesSource::SetJson(_) => 1,
            ValuesSource::Set(_) => 2,
            ValuesSource::SetString(_) => 3,
            ValuesSource::SetFile(..) => 4,
            ValuesSource::SetLiteral(_) => 5,
        };
        let mut ordered: Vec<_> = given.iter().collect();
        ordered.sort_by_key(|source| rank(source));
        for source in ordered.into_iter().rev() {
            sources.push(given_source(source, compat));
        }
        let mut imports = Vec::new();
        chart_sources(chart, &mut Vec::new(), &mut sources, &mut imports);
        Self { sources, values: values.clone(), imports }
    }

    /// The value at a path.
    pub(super) fn value(&self, path: &[Segment]) -> Option<&Val> {
        at_path(&self.values, path)
    }

    /// The path at which a value counts: that of a global is in the topmost chart that has it, which
    /// overrides the same global of the charts below.
    pub(super) fn effective(&self, path: Vec<Segment>) -> Vec<Segment> {
        let Some(at) = path.iter().position(is_global) else { return path };
        let is_chart = |steps: &[Segment]| {
            let leads = |source: &Source| {
                source.prefix.len() == steps.len()
                    && source.prefix.iter().zip(steps).all(|(name, step)| is_key(step, name))
            };
            self.sources.iter().any(leads)
        };
        let above = (0..at).filter(|keep| is_chart(&path[..*keep]));
        let mut lifted = above.map(|keep| [&path[..keep], &path[at..]].concat());
        let found = lifted.find(|path| self.value(path).is_some()).filter(|_| is_chart(&path[..at]));
        found.unwrap_or(path)
    }

    /// The place that set the value at a path.
    pub(super) fn locate(&self, path: &[Segment]) -> Option<Location> {
        let value = self.value(path);
        let candidates = self.candidates(path);
        let has = |same: bool| {
            candidates.iter().find_map(|path| {
                self.sources.iter().find_map(|source| {
                    let below = source.path_below(path)?;
                    let found = at_path(&source.table, below)?;
                    let equal =
                        same && value.is_some_and(|value| !matches!(value, Val::Table(_)) && value == found);
                    (equal || !same).then(|| source.location(below))
                })
            })
        };
        has(true).or_else(|| has(false))
    }

    /// The path, and the paths that the value may have been copied from: globals of charts above,
    /// imported values of subcharts.
    fn candidates(&self, path: &[Segment]) -> Vec<Vec<Segment>> {
        let mut candidates = vec![path.to_vec()];
        if let Some(at) = path.iter().position(is_global) {
            candidates.extend((0..at).rev().map(|keep| [&path[..keep], &path[at..]].concat()));
        }
        for (parent, child) in &self.imports {
            let keys =
                |names: &[String]| -> Vec<Segment> { names.iter().cloned().map(Segment::Key).collect() };
            if let Some(rest) = path.strip_prefix(keys(parent).as_slice()) {
                candidates.push([&keys(child), rest].concat());
            }
        }
        candidates
    }
}

fn is_key(segment: &Segment, name: &str) -> bool {
    matches!(segment, Segment::Key(key) if key == name)
}

fn is_global(segment: &Segment) -> bool {
    is_key(segment, GLOBAL)
}

fn given_source(source: &ValuesSource, compat: Compat) -> Source {
    let mut table = Table::new();
    // What cannot be read has failed the rendering before.
    let _ = apply(&mut table, source, compat);
    let (name, text) = match source {
        ValuesSource::File(name, text) => (name.clone(), Some(text.clone())),
        ValuesSource::SetJson(text) => (format!("--set-json {text}"), None),
        ValuesSource::Set(text) => (format!("--set {text}"), None),
        ValuesSource::SetString(text) => (format!("--set-string {text}"), None),
        ValuesSource::SetFile(text, _) => (format!("--set-file {text}"), None),
        ValuesSource::SetLiteral(text) => (format!("--set-literal {text}"), None),
    };
    Source {
        name: name.into(),
        table: Arc::new(table.into()),
        text,
        documents: OnceCell::new(),
        prefix: Vec::new(),
    }
}

/// The defaults of a chart, then of its subcharts.
fn chart_sources(
    chart: &Chart,
    prefix: &mut Vec<String>,
    sources: &mut Vec<Source>,
    imports: &mut Vec<(Vec<String>, Vec<String>)>,
) {
    let place = match &*chart.location {
        "" => "values.yaml".to_owned(),
        location => format!("{location}/values.yaml"),
    };
    sources.push(Source {
        name: place.into(),
        table: chart.own_values.clone(),
        text: chart.values_text.clone(),
        documents: OnceCell::new(),
        prefix: prefix.clone(),
    });
    for dependency in &chart.metadata.dependencies {
        for pair in &dependency.import_values {
            let text = |key: &str| pair.get(key).and_then(tiphys_value::Value::as_str);
            let (Some(child), Some(parent)) = (text("child"), text("parent")) else { continue };
            let steps = |path: &str| {
                path.split('.').filter(|it| !it.is_empty()).map(str::to_owned).collect::<Vec<_>>()
            };
            let from = [prefix.as_slice(), std::slice::from_ref(&dependency.name), &steps(child)].concat();
            imports.push(([prefix.as_slice(), &steps(parent)].concat(), from));
        }
    }
    for subchart in &chart.dependencies {
        prefix.push(subchart.name().to_owned());
        chart_sources(subchart, prefix, sources, imports);
        prefix.pop();
    }
}

fn at_path<'a>(table: &'a Table, path: &[Segment]) -> Option<&'a Val> {
    let (first, rest) = path.split_first()?;
    let Segment::Key(first) = first else { return None };
    rest.iter().try_fold(table.get(first.as_str())?, |value, segment| match (value, segment) {
        (Val::Table(table), Segment::Key(key)) => table.get(key.as_str()),
        (Val::List(items), Segment::Index(index)) => items.get(*index),
        _ => None,
    })
}

impl Source {
    fn path_below<'p>(&self, path: &'p [Segment]) -> Option<&'p [Segment]> {
        let leads = |(segment, name): (&Segment, &String)| is_key(segment, name);
        let fits = path.len() > self.prefix.len() && path.iter().zip(&self.prefix).all(leads);
        fits.then(|| &path[self.prefix.len()..])
    }

    /// The place of a path in the file; the whole source if it is no file.
    fn location(&self, path: &[Segment]) -> Location {
        let documents = self.documents.get_or_init(|| {
            let text = self.text.as_deref().map(String::from_utf8_lossy);
            text.and_then(|text| parse_documents(&text, Profile::Go2).ok()).unwrap_or_default()
        });
        let found = documents.iter().rev().find_map(|document| find(&document.root, &document.root, path, 0));
        let (line, column) = found.unwrap_or_default();
        Location::new(self.name.clone(), line, column)
    }
}

/// Follows aliases no deeper than this.
const MAX_ALIASES: usize = 16;

fn find(root: &Node, node: &Node, path: &[Segment], aliases: usize) -> Option<(u32, u32)> {
    let Some((first, rest)) = path.split_first() else {
        return Some((node.span.start.line, node.span.start.column));
    };
    match (&node.content, first) {
        (Content::Mapping(pairs), Segment::Key(key)) => {
            let is_key =
                |name: &Node, key: &str| matches!(&name.content, Content::Scalar(text) if text == key);
            if let Some((name, value)) = pairs.iter().rev().find(|(name, _)| is_key(name, key)) {
                let is_scalar = matches!(value.content, Content::Scalar(_));
                if rest.is_empty() && !is_scalar {
                    return Some((name.span.start.line, name.span.start.column));
                }
                return find(root, value, rest, aliases)
                    .or(Some((name.span.start.line, name.span.start.column)));
            }
            let (_, merged) = pairs.iter().find(|(name, _)| is_key(name, "<<"))?;
            find(root, merged, path, aliases)
        }
        (Content::Sequence(items), Segment::Index(index)) => find(root, items.get(*index)?, rest, aliases),
        // The value of a merge key may be a list of mappings.
        (Content::Sequence(items), Segment::Key(_)) => {
            items.iter().find_map(|item| find(root, item, path, aliases))
        }
        (Content::Alias(name), _) if aliases < MAX_ALIASES => {
            find(root, anchored(root, name)?, path, aliases + 1)
        }
        _ => None,
    }
}

fn anchored<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if node.anchor.as_deref() == Some(name) {
            return Some(node);
        }
        match &node.content {
            Content::Mapping(pairs) => open.extend(pairs.iter().flat_map(|(key, value)| [key, value])),
            Content::Sequence(items) => open.extend(items),
            _ => {}
        }
    }
    None
}
