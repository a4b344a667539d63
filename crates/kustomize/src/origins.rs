//! Who wrote each node: a table of entries, each naming a writer, a place and the entry before it.

use std::{collections::HashMap, sync::Arc};

use tiphys_value::{Location, Origin, OriginKind, Origins};

use crate::node::{Content, Node, WRITTEN};

/// A file or transformer that writes nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Writer {
    pub kind: OriginKind,
    pub file: Arc<str>,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Entry {
    writer: u32,
    line: u32,
    column: u32,
    /// The entry of the value that this one replaced; 0 for none.
    previous: u32,
}

/// The table of origins of one build. Entry 0 means that nothing is known.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    enabled: bool,
    writers: Vec<Writer>,
    entries: Vec<Entry>,
    known_writers: HashMap<Writer, u32>,
    rewritten: HashMap<Entry, u32>,
}

impl Tracker {
    /// A table that records, or one that does not.
    pub(crate) fn new(enabled: bool) -> Self {
        let nothing = Entry { writer: 0, line: 0, column: 0, previous: 0 };
        Self { enabled, entries: vec![nothing], ..Self::default() }
    }

    /// Whether origins are recorded.
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// The number of a writer.
    pub(crate) fn writer(&mut self, kind: OriginKind, file: &str, detail: &str) -> u32 {
        if !self.enabled {
            return 0;
        }
        let writer = Writer { kind, file: file.into(), detail: detail.to_owned() };
        let next = u32::try_from(self.writers.len()).unwrap_or(u32::MAX);
        *self.known_writers.entry(writer.clone()).or_insert_with(|| {
            self.writers.push(writer);
            next
        })
    }

    /// A new entry for a node that was read.
    pub(crate) fn entry(&mut self, writer: u32, line: u32, column: u32) -> u32 {
        self.push(Entry { writer, line, column, previous: 0 })
    }

    fn push(&mut self, entry: Entry) -> u32 {
        if !self.enabled {
            return 0;
        }
        self.entries.push(entry);
        u32::try_from(self.entries.len() - 1).unwrap_or(0)
    }

    /// The entry of a value from `newer` that replaced one from `older`.
    pub(crate) fn merge_entry(&mut self, newer: u32, older: u32) -> u32 {
        let (newer, older) = (newer & !WRITTEN, older & !WRITTEN);
        if !self.enabled || newer == older || older == 0 {
            return newer;
        }
        let Some(entry) = self.entries.get(newer as usize).copied() else { return newer };
        self.rewritten(Entry { previous: older, ..entry })
    }

    fn rewritten(&mut self, entry: Entry) -> u32 {
        if let Some(known) = self.rewritten.get(&entry) {
            return *known;
        }
        let number = self.push(entry);
        self.rewritten.insert(entry, number);
        number
    }

    /// Gives every node that was made or written since the last call an entry of `writer`.
    pub(crate) fn stamp(&mut self, node: &mut Node, writer: u32, line: u32, column: u32) {
        if self.enabled {
            self.stamp_below(node, Entry { writer, line, column, previous: 0 });
        }
    }

    fn stamp_below(&mut self, node: &mut Node, entry: Entry) {
        if node.origin == 0 || node.origin & WRITTEN != 0 {
            let previous = node.origin & !WRITTEN;
            node.origin = self.rewritten(Entry { previous, ..entry });
        }
        match &mut node.content {
            Content::Scalar(_) => {}
            Content::Seq(items) => items.iter_mut().for_each(|item| self.stamp_below(item, entry)),
            Content::Map(pairs) => pairs.iter_mut().for_each(|(_, value)| self.stamp_below(value, entry)),
        }
    }

    /// Gives every node the place of what made it: the lines of a text that is in no file lead nowhere.
    pub(crate) fn place(&mut self, node: &mut Node, writer: u32, line: u32, column: u32) {
        if self.enabled {
            let origin = self.rewritten(Entry { writer, line, column, previous: 0 });
            place_below(node, origin);
        }
    }

    /// Where an entry points.
    pub(crate) fn location(&self, origin: u32) -> Option<Location> {
        let entry = self.entries.get((origin & !WRITTEN) as usize).filter(|_| origin & !WRITTEN != 0)?;
        let writer = self.writers.get(entry.writer as usize)?;
        Some(Location::new(writer.file.clone(), entry.line, entry.column))
    }

    /// The chains of all nodes of an object.
    pub(crate) fn origins(&self, node: &Node) -> Origins {
        let mut origins = Origins::default();
        if self.enabled {
            self.collect(node, &mut origins);
        }
        origins
    }

    fn collect(&self, node: &Node, origins: &mut Origins) {
        origins.set_own(self.chain(node.origin & !WRITTEN));
        match &node.content {
            Content::Scalar(_) => {}
            Content::Seq(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.collect(item, origins.index(index));
                }
            }
            Content::Map(pairs) => {
                for (key, value) in pairs {
                    self.collect(value, origins.key(key.value()));
                }
            }
        }
    }

    fn chain(&self, origin: u32) -> Vec<Origin> {
        let mut chain = Vec::new();
        let mut at = origin;
        while at != 0 {
            let Some(entry) = self.entries.get(at as usize) else { break };
            let Some(writer) = self.writers.get(entry.writer as usize) else { break };
            chain.push(Origin {
                kind: writer.kind,
                location: Location::new(writer.file.clone(), entry.line, entry.column),
                detail: writer.detail.clone(),
            });
            at = entry.previous;
        }
        chain
    }
}

fn place_below(node: &mut Node, origin: u32) {
    node.origin = origin;
    match &mut node.content {
        Content::Scalar(_) => {}
        Content::Seq(items) => items.iter_mut().for_each(|item| place_below(item, origin)),
        Content::Map(pairs) => pairs.iter_mut().for_each(|(_, value)| place_below(value, origin)),
    }
}
