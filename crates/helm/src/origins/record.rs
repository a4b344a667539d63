//! Which part of the output was written where, while templates run.
//!
//! Text that went through `include` and then through functions such as `nindent` is found again line
//! by line, so that it keeps the place in the included template.

use std::{collections::HashMap, ops::Range, sync::Arc};

use smol_str::SmolStr;
use tiphys_gotemplate::{OriginId, Site};

/// How many included texts of one buffer are kept for finding lines again.
const MAX_CHILDREN: usize = 32;

/// A place in a template, and the calls that led there.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) file: SmolStr,
    pub(super) template: SmolStr,
    pub(super) offset: usize,
    pub(super) called_from: Option<Arc<Place>>,
}

/// A part of the output that one node of a template wrote.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) place: Arc<Place>,
    pub(super) reads: Arc<[OriginId]>,
}

#[derive(Debug, Default)]
struct Buffer {
    runs: Vec<Run>,
    children: Vec<Arc<Child>>,
    /// For each run how many children there were when it was written.
    known: Vec<usize>,
}

/// The text of an included template.
#[derive(Debug)]
struct Child {
    text: String,
    runs: Vec<Run>,
    /// Where each trimmed line starts.
    lines: HashMap<String, Vec<usize>>,
}

/// Notes what templates write.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    buffers: Vec<Buffer>,
    calls: Vec<Option<Arc<Place>>>,
    done: Vec<Run>,
}

impl Recorder {
    /// The runs of the outermost template.
    pub(super) fn finish(self) -> Vec<Run> {
        self.done
    }

    fn place(&self, site: Site<'_>) -> Arc<Place> {
        Arc::new(Place {
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

    pub(super) fn write(&mut self, site: Site<'_>, output: Range<usize>, reads: &[OriginId]) {
        if output.is_empty() {
            return;
        }
        let place = self.place(site);
        let Some(buffer) = self.buffers.last_mut() else { return };
        buffer.known.push(buffer.children.len());
        buffer.runs.push(Run { start: output.start, end: output.end, place, reads: reads.into() });
    }

    pub(super) fn leave(&mut self, output: Option<&str>) {
        self.calls.pop();
        let Some(text) = output else { return };
        let Some(buffer) = self.buffers.pop() else { return };
        let runs = buffer.resolve(text);
        match self.buffers.last_mut() {
            None => self.done = runs,
            Some(outer) => {
                if outer.children.len() >= MAX_CHILDREN {
                    outer.children.remove(0);
                    outer.known.iter_mut().for_each(|known| *known = known.saturating_sub(1));
                }
                outer.children.push(Arc::new(Child::new(text, runs)));
            }
        }
    }
}

impl Child {
    fn new(text: &str, runs: Vec<Run>) -> Self {
        let mut lines: HashMap<String, Vec<usize>> = HashMap::new();
        for (start, line) in trimmed_lines(text) {
            lines.entry(line.to_owned()).or_default().push(start);
        }
        Self { text: text.to_owned(), runs, lines }
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
    /// The runs, those that stand for included text replaced by its own runs.
    fn resolve(self, text: &str) -> Vec<Run> {
        let mut resolved = Vec::with_capacity(self.runs.len());
        for (run, known) in self.runs.iter().zip(&self.known) {
            let children = &self.children[..(*known).min(self.children.len())];
            match text.get(run.start..run.end) {
                Some(part) if !children.is_empty() => resolve_run(run, part, children, &mut resolved),
                _ => resolved.push(run.clone()),
            }
        }
        resolved
    }
}

fn resolve_run(run: &Run, part: &str, children: &[Arc<Child>], resolved: &mut Vec<Run>) {
    let mut used: HashMap<usize, usize> = HashMap::new();
    let mut covered = run.start;
    for (at, line) in trimmed_lines(part) {
        let start = run.start + at;
        let Some((number, from)) = find_line(children, line, &used) else { continue };
        used.insert(number, from + line.len());
        if covered < start {
            resolved.push(Run { start: covered, end: start, ..run.clone() });
        }
        let child = &children[number];
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
}

/// A line in the latest included text that has it, behind the lines already found there.
fn find_line(children: &[Arc<Child>], line: &str, used: &HashMap<usize, usize>) -> Option<(usize, usize)> {
    children.iter().enumerate().rev().find_map(|(number, child)| {
        let starts = child.lines.get(line)?;
        let from = used.get(&number).copied().unwrap_or(0);
        let start = starts.iter().find(|start| **start >= from).or(starts.first())?;
        debug_assert!(child.text[*start..].starts_with(line));
        Some((number, *start))
    })
}
