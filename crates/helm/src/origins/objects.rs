//! From the runs of a rendered file to the origins of an object's fields.

use std::sync::Arc;

use tiphys_value::{FieldPath, Location, Origin, OriginKind, Origins, RenderedObject, Segment, Value};
use tiphys_yaml::{Content, Node, Profile, parse_first};

use super::{
    Trace,
    record::{Place, Run},
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
    let mut builder = Builder { trace, runs, manifest, origins: Origins::default() };
    let start = document.root.span.start.offset as usize;
    let location = builder.location_at(start);
    builder.node(&document.root, &FieldPath::default());
    RenderedObject { value: manifest.value().clone(), location, origins: builder.origins }
}

struct Builder<'a> {
    trace: &'a Trace,
    runs: &'a [Run],
    manifest: &'a Manifest,
    origins: Origins,
}

impl Builder<'_> {
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
    fn run_of(&self, node: &Node) -> Vec<&Run> {
        let start = self.manifest.offset + node.span.start.offset as usize;
        let end = (self.manifest.offset + node.span.end.offset as usize).max(start + 1);
        let first = self.runs.partition_point(|run| run.end <= start);
        self.runs[first..].iter().take_while(|run| run.start < end).collect()
    }

    fn set(&mut self, node: &Node, path: &FieldPath) {
        let is_leaf = matches!(node.content, Content::Scalar(_));
        let runs = self.run_of(node);
        let Some(main) = runs.iter().find(|run| is_leaf && !run.reads.is_empty()).or(runs.first()) else {
            return;
        };
        let mut chain = self.places(&main.place);
        if is_leaf {
            let value = path.get(self.manifest.value());
            let mut seen: Vec<Vec<Segment>> = Vec::new();
            for run in &runs {
                for read in self.trace.paths(&run.reads) {
                    let read = self.refine(read, path, value);
                    if !seen.contains(&read) {
                        seen.push(read);
                    }
                }
            }
            chain.extend(seen.iter().filter_map(|read| self.values_origin(read)));
        }
        self.origins.set(path.clone(), chain);
    }

    fn values_origin(&self, read: &[Segment]) -> Option<Origin> {
        let location = self.trace.locator.locate(read)?;
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

    fn location_at(&self, offset: usize) -> Location {
        let at = self.manifest.offset + offset;
        let first = self.runs.partition_point(|run| run.end <= at);
        match self.runs.get(first) {
            Some(run) => self.location(&run.place, at.saturating_sub(run.start)),
            None => Location::new(self.manifest.path.as_str(), 0, 0),
        }
    }

    /// The template text or action, then the calls that led to it.
    fn places(&self, place: &Arc<Place>) -> Vec<Origin> {
        let mut chain = Vec::new();
        let mut at = Some(place);
        while let Some(place) = at {
            let kind = if chain.is_empty() { OriginKind::Template } else { OriginKind::Include };
            // Text given to `tpl` stands in no file: the call does.
            if self.trace.files.contains_key(place.file.as_str()) {
                let location = self.location(place, 0);
                chain.push(Origin { kind, location, detail: place.template.to_string() });
            }
            at = place.called_from.as_ref();
        }
        chain
    }

    fn location(&self, place: &Place, skip: usize) -> Location {
        let Some((path, text)) = self.trace.files.get(place.file.as_str()) else {
            return match &place.called_from {
                Some(call) => self.location(call, 0),
                None => Location::new(place.file.as_str(), 0, 0),
            };
        };
        let before = &text[..(place.offset + skip).min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
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
