//! Where every field came from: which template text or action wrote it, through which includes, and
//! from which values, each with the file and line that set it.

mod locate;
mod objects;
mod record;

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
    sync::Arc,
};

use smol_str::SmolStr;
use tiphys_gotemplate::{OriginId, Part, Site, Tracer};
use tiphys_value::Segment;

use crate::{Chart, Compat, ValuesSource, engine::NO_VALUE, values::Table};

use locate::Locator;
pub(crate) use objects::object;
use record::{Recorder, Run};

/// How many values are told that one action read; what reads more has merged whole tables.
const MAX_PATHS: usize = 256;

/// One step to a value: from the table or list above it.
#[derive(Clone, Debug)]
enum AccessStep {
    /// The table of all values.
    Values,
    Step(OriginId, Segment),
    Union(Arc<[OriginId]>),
    Copy(Copied),
}

/// A table or list that was read from a text.
#[derive(Clone, Debug)]
struct Copied {
    /// The tables that have some of its values under the same keys: a key that it lacks would be one of
    /// theirs.
    of: Arc<[OriginId]>,
    /// What made its other values.
    others: Arc<[OriginId]>,
    /// What made its values, each by itself.
    parts: Arc<[OriginId]>,
}

/// What a rendering notes while it runs.
#[derive(Debug)]
pub(crate) struct Trace {
    /// The meaning of origin ids, from 1.
    reads: Vec<AccessStep>,
    /// The origin of what no value made; 0 before it is needed.
    nothing: OriginId,
    /// The origin of the table of all values where it is one of several; 0 before it is needed.
    values: OriginId,
    recorder: Recorder,
    /// The runs of every rendered file, in the order of its text.
    rendered: BTreeMap<String, Vec<Run>>,
    /// Template files: full name to path and text.
    files: BTreeMap<String, (Arc<str>, Arc<[u8]>)>,
    locator: Locator,
}

impl Trace {
    /// Prepares to trace a rendering.
    pub(crate) fn new(chart: &Chart, values: &Table, sources: &[ValuesSource], compat: Compat) -> Self {
        let mut files = BTreeMap::new();
        collect_files(chart, chart.name(), &mut files);
        Self {
            reads: Vec::new(),
            nothing: 0,
            values: 0,
            recorder: Recorder::default(),
            rendered: BTreeMap::new(),
            files,
            locator: Locator::new(chart, values, sources, compat),
        }
    }

    fn add(&mut self, read: AccessStep) -> OriginId {
        self.reads.push(read);
        OriginId::try_from(self.reads.len()).unwrap_or(0)
    }

    /// The origin of what no value made.
    fn nothing(&mut self) -> OriginId {
        if self.nothing == 0 {
            self.nothing = self.add(AccessStep::Union(Arc::default()));
        }
        self.nothing
    }

    /// The origin of the table of all values, where it is one of several.
    fn values(&mut self) -> OriginId {
        if self.values == 0 {
            self.values = self.add(AccessStep::Values);
        }
        self.values
    }

    /// The origin of what was read from a text under these keys.
    fn copied(&mut self, entries: impl Iterator<Item = (Segment, OriginId)>) -> OriginId {
        let (mut of, mut others, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for (key, origin) in entries.filter(|(_, origin)| *origin != 0) {
            parts.push(origin);
            let above = self.parents_of(origin, &key);
            if above.is_empty() {
                others.push(origin);
            }
            of.extend(above);
        }
        if of.is_empty() {
            return self.union(&parts);
        }
        for ids in [&mut of, &mut others, &mut parts] {
            ids.sort_unstable();
            ids.dedup();
        }
        self.add(AccessStep::Copy(Copied { of: of.into(), others: others.into(), parts: parts.into() }))
    }

    /// The tables or lists that a value stands in under a key.
    fn parents_of(&mut self, id: OriginId, key: &Segment) -> Vec<OriginId> {
        let candidates: Arc<[OriginId]> = match self.read(id) {
            Some(AccessStep::Step(..)) => [id].into(),
            Some(AccessStep::Union(ids)) => ids.clone(),
            Some(AccessStep::Copy(copied)) => copied.of.clone(),
            _ => return Vec::new(),
        };
        let step = |id: &OriginId| match self.read(*id) {
            Some(AccessStep::Step(above, segment)) if segment == key => Some(*above),
            _ => None,
        };
        let above: Vec<OriginId> = candidates.iter().filter_map(step).collect();
        above.into_iter().map(|id| if id == 0 { self.values() } else { id }).collect()
    }

    /// The origin of a key of a table; 0 is the table of all values.
    pub(crate) fn child(&mut self, table: OriginId, key: &str) -> OriginId {
        self.add(AccessStep::Step(table, Segment::Key(key.to_owned())))
    }

    /// The origin of an item of a list.
    pub(crate) fn item(&mut self, list: OriginId, index: usize) -> OriginId {
        self.add(AccessStep::Step(list, Segment::Index(index)))
    }

    /// Begins a template file.
    pub(crate) fn begin(&mut self, _name: &str) -> &mut dyn Tracer {
        self.recorder = Recorder::default();
        self
    }

    /// Keeps what was noted of a file; returns its text as Helm prints it.
    pub(crate) fn finish(&mut self, name: &str, output: String) -> String {
        let mut runs = std::mem::take(&mut self.recorder).finish();
        let mut text = output;
        while let Some(at) = text.find(NO_VALUE) {
            text.replace_range(at..at + NO_VALUE.len(), "");
            for run in &mut runs {
                for end in [&mut run.start, &mut run.end] {
                    if *end > at {
                        *end = end.saturating_sub(NO_VALUE.len()).max(at);
                    }
                }
            }
        }
        self.rendered.insert(name.to_owned(), runs);
        text
    }

    /// The paths below `.Values` that an origin stands for, the first [`MAX_PATHS`] of them.
    fn paths(&self, ids: &[OriginId]) -> Vec<Vec<Segment>> {
        let mut paths = Vec::new();
        // Unions are made of unions that share much.
        let (mut seen, mut known) = (HashSet::new(), HashSet::new());
        let mut open: Vec<OriginId> = ids.iter().rev().copied().collect();
        while let Some(id) = open.pop().filter(|_| paths.len() < MAX_PATHS) {
            match self.read(id).filter(|_| seen.insert(id)) {
                Some(AccessStep::Union(ids)) => open.extend(ids.iter().rev()),
                Some(AccessStep::Copy(copied)) => open.extend(copied.others.iter().chain(&*copied.of).rev()),
                Some(AccessStep::Step(..)) => {
                    let path = self.path(id);
                    if known.insert(path.clone()) {
                        paths.push(path);
                    }
                }
                Some(AccessStep::Values) | None => {}
            }
        }
        paths
    }

    fn read(&self, id: OriginId) -> Option<&AccessStep> {
        self.reads.get(usize::try_from(id).ok()?.checked_sub(1)?)
    }

    fn path(&self, mut id: OriginId) -> Vec<Segment> {
        let mut path = Vec::new();
        while let Some(AccessStep::Step(above, segment)) = self.read(id) {
            path.push(segment.clone());
            id = *above;
        }
        path.reverse();
        path
    }
}

/// The single reads that origins stand for.
fn expand(reads: &[AccessStep], ids: &[OriginId]) -> HashSet<OriginId> {
    let (mut single, mut unions) = (HashSet::new(), HashSet::new());
    let mut open = ids.to_vec();
    while let Some(id) = open.pop() {
        let read = usize::try_from(id).ok().and_then(|id| reads.get(id.checked_sub(1)?));
        match read {
            Some(AccessStep::Union(ids)) if unions.insert(id) => open.extend(ids.iter()),
            Some(AccessStep::Copy(copied)) if unions.insert(id) => {
                open.extend(copied.parts.iter().chain(&*copied.of))
            }
            Some(AccessStep::Step(..) | AccessStep::Values) => {
                single.insert(id);
            }
            _ => {}
        }
    }
    single
}

fn collect_files(chart: &Chart, path: &str, files: &mut BTreeMap<String, (Arc<str>, Arc<[u8]>)>) {
    for file in chart.templates.iter() {
        let place = match &*chart.location {
            "" => file.name.clone(),
            location => Arc::from(format!("{location}/{}", file.name)),
        };
        if let Ok(data) = file.data() {
            files.insert(format!("{path}/{}", file.name), (place, data.clone()));
        }
    }
    for subchart in &chart.dependencies {
        collect_files(subchart, &format!("{path}/charts/{}", subchart.name()), files);
    }
}

impl Tracer for Trace {
    fn union(&mut self, ids: &[OriginId]) -> OriginId {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        match ids.as_slice() {
            [only] => *only,
            [] => self.nothing(),
            many => {
                let many = Arc::from(many);
                self.add(AccessStep::Union(many))
            }
        }
    }

    fn table(&mut self, entries: &[(&str, OriginId)]) -> OriginId {
        self.copied(entries.iter().map(|(key, origin)| (Segment::Key((*key).to_owned()), *origin)))
    }

    fn list(&mut self, items: &[OriginId]) -> OriginId {
        self.copied(items.iter().enumerate().map(|(at, origin)| (Segment::Index(at), *origin)))
    }

    fn text(&mut self, site: Site<'_>, output: Range<usize>) {
        self.recorder.text(site, output);
    }

    fn action(&mut self, site: Site<'_>, output: Range<usize>, reads: &[OriginId]) {
        self.recorder.action(site, output, reads);
    }

    fn is_step(&self, below: OriginId, above: OriginId) -> bool {
        matches!(self.read(below), Some(AccessStep::Step(from, _)) if *from == above)
    }

    fn missing(&mut self, table: OriginId, key: &str) -> OriginId {
        match self.read(table) {
            Some(AccessStep::Step(..) | AccessStep::Values) => self.child(table, key),
            Some(AccessStep::Copy(copied)) => {
                let of = copied.of.clone();
                let keys: Vec<OriginId> = of.iter().map(|table| self.child(*table, key)).collect();
                self.union(&keys)
            }
            _ => table,
        }
    }

    fn text_made(&mut self, site: Site<'_>, text: &str, parts: &[Part]) {
        self.recorder.record_made(site, text, parts);
    }

    fn parts(&mut self, text: &str, whole: OriginId) -> Vec<Part> {
        let parts = self.recorder.parts(text, whole, &|ids| expand(&self.reads, ids));
        parts.into_iter().map(|(range, reads)| (range, self.union(&reads))).collect()
    }

    fn enter_text(&mut self, file: &str, parts: Vec<Part>) {
        self.recorder.enter_text(file, parts);
    }

    fn leave_text(&mut self) {
        self.recorder.leave_text();
    }

    fn enter_template(&mut self, name: &str, call: Option<Site<'_>>, own_buffer: bool) {
        self.recorder.enter(&SmolStr::new(name), call, own_buffer);
    }

    fn leave_template(&mut self, output: Option<&str>) {
        self.recorder.leave(output, &|ids| expand(&self.reads, ids));
    }
}
