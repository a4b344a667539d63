//! The texts that diagnostics point into.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use crate::{Position, Span};

/// The texts of the files that diagnostics point into; files that are not here are shown by name only.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: BTreeMap<Arc<str>, Arc<str>>,
}

impl SourceMap {
    /// Adds a file's text.
    pub fn insert(&mut self, file: impl Into<Arc<str>>, text: impl Into<Arc<str>>) {
        self.files.insert(file.into(), text.into());
    }

    /// The same files with other texts; what is made of one has the same lines and columns.
    #[must_use]
    pub fn map(&self, mut change: impl FnMut(&str, &str) -> Option<String>) -> Self {
        let texts = self.files.iter().map(|(file, text)| {
            let text = change(file, text).map_or_else(|| text.clone(), Arc::from);
            (file.clone(), text)
        });
        Self { files: texts.collect() }
    }

    /// A file's text.
    pub fn text(&self, file: &str) -> Option<&str> {
        self.files.get(file).map(AsRef::as_ref)
    }

    /// The bytes of a file that a span covers, at least one character if there is one.
    pub fn bytes(&self, span: &Span) -> Option<Range<usize>> {
        let text = self.text(&span.file)?;
        let start = offset(text, span.start);
        let end = offset(text, span.end).max(start);
        let one = text[start..].chars().next().filter(|c| *c != '\n').map_or(0, char::len_utf8);
        Some(start..end.max(start + one))
    }

    /// The whole line on which a span starts, without its line end.
    pub fn line(&self, span: &Span) -> Option<&str> {
        self.text(&span.file)?.lines().nth(span.start.line.max(1) as usize - 1)
    }
}

/// The byte at which a position lies; positions behind the text or the line lie at its end.
fn offset(text: &str, at: Position) -> usize {
    let skip = at.line.max(1) as usize - 1;
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(newline, _)| newline + 1));
    let Some(start) = starts.clone().nth(skip) else { return text.len() };
    let line = text[start..].split('\n').next().unwrap_or_default();
    let mut columns = line.char_indices().map(|(byte, _)| byte).chain([line.len()]);
    start + columns.nth(at.column.max(1) as usize - 1).unwrap_or(line.len())
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
        assert_eq!(map.bytes(&Span::point("g", 1, 1)), None);
    }
}
