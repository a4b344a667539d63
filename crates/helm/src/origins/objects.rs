//! From the runs of a rendered file to the origins of an object's fields.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    rc::Rc,
    sync::Arc,
};

use smol_str::SmolStr;
use tiphys_gotemplate::OriginId;
use tiphys_value::{FieldPath, Location, Origin, OriginKind, Origins, RenderedObject, Segment, Value};
use tiphys_yaml::{Content, Node, Profile, parse_first};

use super::{
    Trace,
    record::{Run, TemplatePosition},
};
use crate::{Manifest, values::Val};

/// A document with the origins of its fields; without, if nothing was traced.
pub(crate) fn object(manifest: &Manifest, trace: Option<&Trace>) -> RenderedObject {
    let plain = RenderedObject {
        value: manifest.value().clone(),
        location: Location::new(manifest.path.as_str(), 0, 0),
        origins: Origins::default(),
    };
    let Some(trace) = trace else { return plain };
    let Some(runs) = trace.rendered.get(&manifest.path) else { return plain };
    let Ok(Some(document)) = parse_first(&manifest.content, Profile::Go2) else { return plain };
    let mut builder = Builder {
        trace,
        runs,
        manifest,
        lines: RefCell::default(),
        paths: HashMap::new(),
        origins: Origins::default(),
    };
    let location = builder.start(&document.root);
    builder.node(&document.root, &FieldPath::default());
    RenderedObject { value: manifest.value().clone(), location, origins: builder.origins }
}

/// How many values are told to have made one scalar. A text that a whole table was merged into has more, and
/// nobody reads them.
const MAX_VALUES: usize = 64;

struct Builder<'a> {
    trace: &'a Trace,
    runs: &'a [Run],
    manifest: &'a Manifest,
    /// Where the lines of each template file start.
    lines: RefCell<HashMap<SmolStr, Rc<[usize]>>>,
    /// The values that runs read, by what the runs noted.
    paths: HashMap<Arc<[OriginId]>, Rc<[Vec<Segment>]>>,
    origins: Origins,
}

impl<'a> Builder<'a> {
    fn node(&mut self, node: &Node, path: &FieldPath) {
        match &node.content {
            Content::Mapping(pairs) => {
                self.set(node, path);
                for (key, value) in pairs {
                    if let Content::Scalar(key) = &key.content {
                        self.node(value, &path.key(key.as_str()));
                    }
                }
            }
            Content::Sequence(items) => {
                self.set(node, path);
                for (index, item) in items.iter().enumerate() {
                    self.node(item, &path.index(index));
                }
            }
            Content::Scalar(_) | Content::Alias(_) => self.set(node, path),
        }
    }

    /// The run that wrote most of the scalar: one that read values if any did.
    fn run_of(&self, node: &Node) -> Vec<&'a Run> {
        let start = self.manifest.offset() + node.span.start.offset as usize;
        let end = (self.manifest.offset() + node.span.end.offset as usize).max(start + 1);
        let first = self.runs.partition_point(|run| run.end <= start);
        self.runs[first..].iter().take_while(|run| run.start < end).collect()
    }

    fn set(&mut self, node: &Node, path: &FieldPath) {
        let is_leaf = matches!(node.content, Content::Scalar(_));
        let runs = self.run_of(node);
        let Some(main) = runs.iter().find(|run| is_leaf && !run.reads.is_empty()).or(runs.first()) else {
            return;
        };
        let mut chain = self.places(&main.place, self.skipped(main, node));
        if is_leaf {
            chain.extend(self.values_of(&runs, path));
        }
        self.origins.set(path, chain);
    }

    /// The values that the runs of a scalar read.
    fn values_of(&mut self, runs: &[&Run], path: &FieldPath) -> Vec<Origin> {
        let value = path.get(self.manifest.value());
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for run in runs {
            for read in self.paths_of(run).iter() {
                if found.len() >= MAX_VALUES {
                    return found;
                }
                let read = self.trace.locator.effective(self.refine(read.clone(), path, value));
                if seen.insert(read.clone()) {
                    found.extend(self.values_origin(&read));
                }
            }
        }
        found
    }

    fn paths_of(&mut self, run: &Run) -> Rc<[Vec<Segment>]> {
        if let Some(known) = self.paths.get(&run.reads) {
            return known.clone();
        }
        let paths: Rc<[Vec<Segment>]> = self.trace.paths(&run.reads).into();
        self.paths.insert(run.reads.clone(), paths.clone());
        paths
    }

    fn values_origin(&self, read: &[Segment]) -> Option<Origin> {
        // What nobody set would stand in the table that does not have it.
        let mut tables = (1..=read.len()).rev();
        let location = tables.find_map(|keep| self.trace.locator.locate(&read[..keep]))?;
        let detail = format!(".Values{}", FieldPath(read.to_vec()));
        Some(Origin { kind: OriginKind::Values, location, detail })
    }

    /// A whole table was printed (`toYaml`): the value below it that the end of the field's path
    /// leads to.
    fn refine(&self, read: Vec<Segment>, path: &FieldPath, value: Option<&Value>) -> Vec<Segment> {
        let is_container = matches!(self.trace.locator.value(&read), Some(Val::Table(_) | Val::List(_)));
        let Some(value) = value.filter(|_| is_container) else { return read };
        for keep in 0..path.0.len() {
            let below = [read.as_slice(), &path.0[keep..]].concat();
            if self.trace.locator.value(&below).is_some_and(|found| same_scalar(found, value)) {
                return below;
            }
        }
        read
    }

    /// Where a node starts in its template.
    fn start(&self, node: &Node) -> Location {
        match self.run_of(node).first() {
            Some(run) => self.location(&run.place, self.skipped(run, node)),
            None => Location::new(self.manifest.path.as_str(), 0, 0),
        }
    }

    /// How far into a run a node starts, if the run is text of the template as it stands there; 0 if it is
    /// what an action printed.
    fn skipped(&self, run: &Run, node: &Node) -> usize {
        let (from, to) = (node.span.start.offset as usize, node.span.end.offset as usize);
        let skip = (self.manifest.offset() + from).saturating_sub(run.start);
        let said = self.manifest.content.as_bytes().get(from..to).unwrap_or_default();
        let first = said.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let in_run = &first[..first.len().min(run.end.saturating_sub(run.start + skip))];
        let Some((_, text)) = self.trace.files.get(run.place.file.as_str()) else { return 0 };
        let there = text.get(run.place.offset + skip..).unwrap_or_default();
        if !in_run.is_empty() && there.starts_with(in_run) { skip } else { 0 }
    }

    /// The template text or action, then the calls that led to it.
    fn places(&self, place: &Arc<TemplatePosition>, skip: usize) -> Vec<Origin> {
        let mut chain = Vec::new();
        let mut at = Some(place);
        while let Some(place) = at {
            let kind = if chain.is_empty() { OriginKind::Template } else { OriginKind::Include };
            // Text given to `tpl` stands in no file: the call does.
            if self.trace.files.contains_key(place.file.as_str()) {
                let location = self.location(place, if chain.is_empty() { skip } else { 0 });
                chain.push(Origin { kind, location, detail: place.template.to_string() });
            }
            at = place.called_from.as_ref();
        }
        chain
    }

    fn line_starts(&self, file: &SmolStr, text: &[u8]) -> Rc<[usize]> {
        let starts = || {
            let newlines = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect()
        };
        self.lines.borrow_mut().entry(file.clone()).or_insert_with(starts).clone()
    }

    fn location(&self, place: &TemplatePosition, skip: usize) -> Location {
        let Some((path, text)) = self.trace.files.get(place.file.as_str()) else {
            return match &place.called_from {
                Some(call) => self.location(call, 0),
                None => Location::new(place.file.as_str(), 0, 0),
            };
        };
        let at = (place.offset + skip).min(text.len());
        let starts = self.line_starts(&place.file, text);
        let line = starts.partition_point(|start| *start <= at);
        let column = String::from_utf8_lossy(&text[starts[line - 1]..at]).chars().count() + 1;
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Location::new(path.clone(), number(line), number(column))
    }
}

fn same_scalar(found: &Val, value: &Value) -> bool {
    match (found, value) {
        (Val::Null, Value::Null) => true,
        (Val::Bool(a), Value::Bool(b)) => a == b,
        (Val::Int(_) | Val::Float(_), Value::Number(b)) => found.to_json().as_f64() == b.as_f64(),
        (Val::Str(a), Value::String(b)) => **a == **b,
        _ => false,
    }
}
