//! The texts that diagnostics point into.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

use crate::{Position, Span};

/// The texts of the files that diagnostics point into; files that are not here are shown by name only.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: BTreeMap<Arc<str>, SourceText>,
}

/// A file's text.
#[derive(Clone, Debug)]
struct SourceText {
    text: Arc<str>,
    /// The byte at which each line starts. Thousands of diagnostics may point into one text.
    starts: OnceLock<Vec<usize>>,
}

impl SourceText {
    fn new(text: Arc<str>) -> Self {
        Self { text, starts: OnceLock::new() }
    }

    /// The byte at which a line starts, counted from 1.
    fn line_start(&self, line: u32) -> Option<usize> {
        let find = || {
            let breaks = self.text.match_indices('\n').map(|(newline, _)| newline + 1);
            std::iter::once(0).chain(breaks).collect()
        };
        self.starts.get_or_init(find).get(line.max(1) as usize - 1).copied()
    }

    /// The byte at which a position lies; positions behind the text or the line lie at its end.
    fn offset(&self, at: Position) -> usize {
        let Some(start) = self.line_start(at.line) else { return self.text.len() };
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        let mut columns = line.char_indices().map(|(byte, _)| byte).chain([line.len()]);
        start + columns.nth(at.column.max(1) as usize - 1).unwrap_or(line.len())
    }
}

impl SourceMap {
    /// Adds a file's text.
    pub fn insert(&mut self, file: impl Into<Arc<str>>, text: impl Into<Arc<str>>) {
        self.files.insert(file.into(), SourceText::new(text.into()));
    }

    /// The same files with other texts; what is made of one has the same lines and columns.
    #[must_use]
    pub fn map(&self, mut change: impl FnMut(&str, &str) -> Option<String>) -> Self {
        let texts = self.files.iter().map(|(file, source)| {
            let changed = change(file, &source.text).map(|text| SourceText::new(text.into()));
            (file.clone(), changed.unwrap_or_else(|| source.clone()))
        });
        Self { files: texts.collect() }
    }

    /// A file's text.
    pub fn text(&self, file: &str) -> Option<&str> {
        self.files.get(file).map(|source| source.text.as_ref())
    }

    /// The bytes of a file that a span covers, at least one character if there is one.
    pub fn bytes(&self, span: &Span) -> Option<Range<usize>> {
        let source = self.files.get(&span.file)?;
        let start = source.offset(span.start);
        let end = source.offset(span.end).max(start);
        let one = source.text[start..].chars().next().filter(|c| *c != '\n').map_or(0, char::len_utf8);
        Some(start..end.max(start + one))
    }

    /// The line on which a span starts, without its line end. Of a line of over a thousand bytes the part
    /// around the start: some lines are whole files, and thousands of faults stand in one.
    pub fn line(&self, span: &Span) -> Option<&str> {
        const LONG: usize = 1_000;
        const BEFORE: usize = 100;
        let source = self.files.get(&span.file)?;
        let line = source.text[source.line_start(span.start.line)?..].lines().next()?;
        if line.len() <= LONG {
            return Some(line);
        }
        let first = (span.start.column.max(1) as usize - 1).saturating_sub(BEFORE);
        let start = line.char_indices().nth(first).map_or(line.len(), |(byte, _)| byte);
        let rest = &line[start..];
        let end = rest.char_indices().nth(LONG / 2).map_or(rest.len(), |(byte, _)| byte);
        Some(&rest[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_and_stay_inside_the_text() {
        let mut map = SourceMap::default();
        map.insert("f", "aé: b\nc\n");
        assert_eq!(map.bytes(&Span::point("f", 1, 3)), Some(3..4));
        assert_eq!(map.bytes(&Span::point("f", 2, 9)), Some(8..8));
        assert_eq!(map.bytes(&Span::point("f", 9, 1)), Some(9..9));
        assert_eq!(map.line(&Span::point("f", 2, 1)), Some("c"));
        let long: String = (0..3_000).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
        map.insert("long", format!("x\n{long}\n"));
        assert_eq!(map.line(&Span::point("long", 2, 1)), Some(&long[..500]));
        assert_eq!(map.line(&Span::point("long", 2, 2_001)), Some(&long[1_900..2_400]));
        assert_eq!(map.line(&Span::point("long", 2, 9_000)), Some(""));
        assert_eq!(map.bytes(&Span::point("g", 1, 1)), None);
    }
}
