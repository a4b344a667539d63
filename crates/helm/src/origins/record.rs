//! Which part of the output was written where, while templates run.
//!
//! Text that went through `include` and then through functions such as `nindent` is found again line
//! by line, so that it keeps the place in the included template.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use smol_str::SmolStr;
use tiphys_gotemplate::{OriginId, Part, Site};

/// In how many of the texts made last a printed line is looked for.
const LATEST: usize = 32;

/// How many texts that were made for one buffer are kept.
const MAX_CHILDREN: usize = 4096;

/// How many parts of the output are noted. A chart writes some ten thousand; what a loop without end writes
/// behind these has no known place.
const MAX_RUNS: usize = 1_000_000;

/// A place in a template, and the calls that led there.
#[derive(Clone, Debug)]
pub(super) struct TemplatePosition {
    pub(super) file: SmolStr,
    pub(super) template: SmolStr,
    pub(super) offset: usize,
    pub(super) called_from: Option<Arc<TemplatePosition>>,
}

/// A part of the output that one node of a template wrote.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) place: Arc<TemplatePosition>,
    pub(super) reads: Arc<[OriginId]>,
}

#[derive(Debug, Default)]
struct Buffer {
    runs: Vec<Run>,
    children: Vec<Arc<Child>>,
    /// For each run which children it may have printed; none for literal text.
    known: Vec<PrintBounds>,
}

/// Which of the texts made before an action may have printed: how many there were before it, and when it had
/// written.
#[derive(Clone, Copy, Debug, Default)]
struct PrintBounds {
    before: usize,
    after: usize,
}

/// The single reads that origins stand for.
pub(super) type Expand<'a> = &'a dyn Fn(&[OriginId]) -> HashSet<OriginId>;

/// A text that an included template or a function made.
#[derive(Debug)]
struct Child {
    text: String,
    runs: Vec<Run>,
    /// All that its runs read.
    reads: Vec<OriginId>,
    /// Where each trimmed line starts.
    lines: HashMap<String, Vec<usize>>,
}

/// Notes what templates write.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    buffers: Vec<Buffer>,
    calls: Vec<Option<Arc<TemplatePosition>>>,
    /// Texts that are being executed as templates: the name of their file, and where their parts came from.
    sources: Vec<(SmolStr, Vec<Part>)>,
    done: Vec<Run>,
    /// How many runs were noted.
    noted: usize,
}

impl Recorder {
    /// The runs of the outermost template.
    pub(super) fn finish(self) -> Vec<Run> {
        self.done
    }

    fn place(&self, site: Site<'_>) -> Arc<TemplatePosition> {
        Arc::new(TemplatePosition {
            file: SmolStr::new(site.file),
            template: SmolStr::new(site.template),
            offset: site.offset,
            called_from: self.calls.last().cloned().flatten(),
        })
    }

    pub(super) fn enter(&mut self, _name: &SmolStr, call: Option<Site<'_>>, own_buffer: bool) {
        let place = call.map(|site| self.place(site));
        self.calls.push(place);
        if own_buffer {
            self.buffers.push(Buffer::default());
        }
    }

    /// Literal text was written.
    pub(super) fn text(&mut self, site: Site<'_>, output: Range<usize>) {
        let parts = self.source_parts(site, output.len());
        let mut written = output.start;
        for (part, origin) in parts {
            let (from, to) = (output.start + part.start, output.start + part.end);
            let at = |to: usize| Site { offset: site.offset + to - output.start, ..site };
            self.write(at(written), written..from, &[], false);
            self.write(at(from), from..to, &[origin], false);
            written = to;
        }
        let rest = Site { offset: site.offset + written - output.start, ..site };
        self.write(rest, written..output.end, &[], false);
    }

    /// The parts of so many bytes at a place of a text that is being executed, as ranges of these bytes.
    fn source_parts(&self, site: Site<'_>, length: usize) -> Vec<Part> {
        let Some((_, parts)) = self.sources.last().filter(|(file, _)| file == site.file) else {
            return Vec::new();
        };
        let end = site.offset + length;
        let first = parts.partition_point(|(part, _)| part.end <= site.offset);
        let overlapping = parts[first..].iter().take_while(|(part, _)| part.start < end);
        let within = |(part, origin): &Part| {
            (part.start.max(site.offset) - site.offset..part.end.min(end) - site.offset, *origin)
        };
        overlapping.map(within).collect()
    }

    /// An action wrote what it read, or what the text that it stands in says.
    pub(super) fn action(&mut self, site: Site<'_>, output: Range<usize>, reads: &[OriginId]) {
        let around = self.source_parts(site, 1);
        if around.is_empty() {
            return self.write(site, output, reads, true);
        }
        let all: Vec<OriginId> = reads.iter().copied().chain(around.into_iter().map(|(_, it)| it)).collect();
        self.write(site, output, &all, true);
    }

    pub(super) fn enter_text(&mut self, file: &str, parts: Vec<Part>) {
        self.sources.push((SmolStr::new(file), parts));
    }

    pub(super) fn leave_text(&mut self) {
        self.sources.pop();
    }

    /// Keeps a text that a function made, so that its lines are found again where they are printed.
    pub(super) fn record_made(&mut self, site: Site<'_>, text: &str, parts: &[Part]) {
        let place = self.place(site);
        let Some(buffer) = self.buffers.last_mut() else { return };
        let mut start = 0;
        let runs = parts.iter().map(|(part, origin)| {
            // What stands before a part, such as its key, goes with it.
            let run = Run { start, end: part.end, place: place.clone(), reads: [*origin].into() };
            start = part.end;
            run
        });
        buffer.keep(Child::new(text, runs.collect()));
    }

    /// The parts of a text whose lines are found in texts made before, and what made them; nothing if none is
    /// found.
    pub(super) fn parts(
        &self,
        text: &str,
        whole: OriginId,
        expand: Expand<'_>,
    ) -> Vec<(Range<usize>, Arc<[OriginId]>)> {
        let Some(buffer) = self.buffers.last().filter(|buffer| !buffer.children.is_empty()) else {
            return Vec::new();
        };
        let place = TemplatePosition {
            file: SmolStr::default(),
            template: SmolStr::default(),
            offset: 0,
            called_from: None,
        };
        let reads = if whole == 0 { Arc::default() } else { Arc::from([whole]) };
        let run = Run { start: 0, end: text.len(), place: Arc::new(place), reads };
        let mut resolved = Vec::new();
        if !buffer.resolve_run(&run, text, buffer.known_now(), expand, &mut resolved) {
            return Vec::new();
        }
        let said = |run: &Run| text.get(run.start..run.end).is_some_and(|part| !part.trim().is_empty());
        resolved.into_iter().filter(said).map(|run| (run.start..run.end, run.reads)).collect()
    }

    fn write(&mut self, site: Site<'_>, output: Range<usize>, reads: &[OriginId], is_action: bool) {
        if output.is_empty() || self.noted >= MAX_RUNS {
            return;
        }
        self.noted += 1;
        let place = self.place(site);
        let Some(buffer) = self.buffers.last_mut() else { return };
        buffer.known.push(if is_action { buffer.known_now() } else { PrintBounds::default() });
        buffer.runs.push(Run { start: output.start, end: output.end, place, reads: reads.into() });
    }

    pub(super) fn leave(&mut self, output: Option<&str>, expand: Expand<'_>) {
        self.calls.pop();
        let Some(text) = output else { return };
        let Some(buffer) = self.buffers.pop() else { return };
        let runs = buffer.resolve(text, expand);
        match self.buffers.last_mut() {
            None => self.done = runs,
            Some(outer) => outer.keep(Child::new(text, runs)),
        }
    }
}

impl Child {
    fn new(text: &str, runs: Vec<Run>) -> Self {
        let mut lines: HashMap<String, Vec<usize>> = HashMap::new();
        for (start, line) in trimmed_lines(text) {
            lines.entry(line.to_owned()).or_default().push(start);
        }
        let mut reads: Vec<OriginId> = runs.iter().flat_map(|run| run.reads.iter().copied()).collect();
        reads.sort_unstable();
        reads.dedup();
        Self { text: text.to_owned(), runs, reads, lines }
    }
}

/// The lines that are not blank, without the white space around them, with their offsets.
fn trimmed_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at + (line.len() - line.trim_start().len());
        at += line.len();
        let line = line.trim();
        (!line.is_empty()).then_some((start, line))
    })
}

impl Buffer {
    fn keep(&mut self, child: Child) {
        if self.children.len() >= MAX_CHILDREN {
            let gone = MAX_CHILDREN / 2;
            self.children.drain(..gone);
            for known in &mut self.known {
                *known = PrintBounds {
                    before: known.before.saturating_sub(gone),
                    after: known.after.saturating_sub(gone),
                };
            }
        }
        self.children.push(Arc::new(child));
    }

    fn known_now(&self) -> PrintBounds {
        let before = self.known.iter().rev().map(|known| known.after).find(|after| *after > 0);
        PrintBounds { before: before.unwrap_or(0), after: self.children.len() }
    }

    /// The runs, those that stand for included text replaced by its own runs.
    fn resolve(self, text: &str, expand: Expand<'_>) -> Vec<Run> {
        let mut resolved = Vec::with_capacity(self.runs.len());
        for (run, known) in self.runs.iter().zip(&self.known) {
            match text.get(run.start..run.end) {
                Some(part) if known.after > 0 => {
                    self.resolve_run(run, part, *known, expand, &mut resolved);
                }
                _ => resolved.push(run.clone()),
            }
        }
        resolved
    }

    /// Puts the runs of texts made before in the place of a run, where its lines are found in them; says
    /// whether any is.
    fn resolve_run(
        &self,
        run: &Run,
        part: &str,
        known: PrintBounds,
        expand: Expand<'_>,
        resolved: &mut Vec<Run>,
    ) -> bool {
        let mut found = false;
        let mut search = Search { buffer: self, run, known, expand, read: None, fit: HashMap::new() };
        let mut used: HashMap<usize, usize> = HashMap::new();
        let mut covered = run.start;
        for (at, line) in trimmed_lines(part) {
            let start = run.start + at;
            let Some((number, from)) = search.line(line, &used) else { continue };
            found = true;
            used.insert(number, from + line.len());
            if covered < start {
                resolved.push(Run { start: covered, end: start, ..run.clone() });
            }
            let child = &self.children[number];
            let first = child.runs.partition_point(|inner| inner.end <= from);
            for inner in child.runs[first..].iter().take_while(|inner| inner.start < from + line.len()) {
                resolved.push(Run {
                    start: start + inner.start.max(from) - from,
                    end: start + inner.end.min(from + line.len()) - from,
                    ..inner.clone()
                });
            }
            covered = start + line.len();
        }
        if covered < run.end {
            resolved.push(Run { start: covered, end: run.end, ..run.clone() });
        }
        found
    }
}

/// Looks for the lines of one run in texts made before.
struct Search<'a> {
    buffer: &'a Buffer,
    run: &'a Run,
    known: PrintBounds,
    expand: Expand<'a>,
    /// All that the run read, once it is needed.
    read: Option<HashSet<OriginId>>,
    /// Which older texts the run may have printed.
    fit: HashMap<usize, bool>,
}

impl Search<'_> {
    /// A line in the latest text that has it, behind the lines already found there.
    fn line(&mut self, line: &str, used: &HashMap<usize, usize>) -> Option<(usize, usize)> {
        let after = self.known.after.min(self.buffer.children.len());
        (after.saturating_sub(LATEST)..after).rev().find_map(|number| {
            let child = &self.buffer.children[number];
            let starts = child.lines.get(line)?;
            let from = used.get(&number).copied().unwrap_or(0);
            let start = starts.iter().find(|start| **start >= from).or(starts.first())?;
            debug_assert!(child.text[*start..].starts_with(line));
            self.may_have_printed(number).then_some((number, *start))
        })
    }

    /// Whether the run may have printed a text: one made while it ran, or one of which it read all that made
    /// it.
    fn may_have_printed(&mut self, number: usize) -> bool {
        if number >= self.known.before {
            return true;
        }
        if let Some(known) = self.fit.get(&number) {
            return *known;
        }
        let wanted = &self.buffer.children[number].reads;
        let fits = if wanted.is_empty() {
            self.run.reads.is_empty()
        } else {
            let read = self.read.get_or_insert_with(|| (self.expand)(&self.run.reads));
            (self.expand)(wanted).is_subset(read)
        };
        self.fit.insert(number, fits);
        fits
    }
}
