//! Places in texts that other parsers count in bytes or lines.

use std::{ops::Range, sync::Arc};

use tiphys_diag::{Position, Span};
use tiphys_value::Location;
use tiphys_yaml::{Node, Style};

use crate::Files;

/// Where the lines of a text start.
#[derive(Clone, Debug)]
pub struct Lines {
    file: Arc<str>,
    text: Arc<str>,
    starts: Vec<usize>,
}

impl Lines {
    /// The lines of a file's text.
    pub fn new(file: &Arc<str>, text: &Arc<str>) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { file: file.clone(), text: text.clone(), starts }
    }

    /// A stretch of bytes as a span; one over several lines ends with the first.
    pub fn span(&self, bytes: Range<usize>) -> Span {
        let start = bytes.start.min(self.text.len());
        let line = self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let end = bytes.end.clamp(start, start + line.len());
        Span { file: self.file.clone(), start: self.position(start), end: self.position(end) }
    }

    /// The line, from 1, on which a byte lies.
    pub fn line(&self, byte: usize) -> u32 {
        let line = self.starts.partition_point(|start| *start <= byte).max(1);
        u32::try_from(line).unwrap_or(u32::MAX)
    }

    fn position(&self, byte: usize) -> Position {
        let line = self.line(byte);
        let start = self.starts[line as usize - 1];
        let before = self.text.get(start..byte).unwrap_or_default();
        Position { line, column: u32::try_from(before.chars().count()).unwrap_or(u32::MAX - 1) + 1 }
    }
}

/// Shell text with its place.
#[derive(Clone, Debug)]
pub struct Script {
    /// The file that it stands in.
    pub file: Arc<str>,
    /// The line of its first line.
    pub line: u32,
    /// The text.
    pub text: String,
    /// Whether its line breaks are those of the file.
    pub is_literal: bool,
}

impl Script {
    /// The script that a scalar of a YAML file is.
    pub fn of_node(file: &Arc<str>, node: &Node) -> Option<Self> {
        let text = node.as_str()?.to_owned();
        let is_block = matches!(node.style, Style::Literal | Style::Folded);
        let line = node.span.start.line.max(1) + u32::from(is_block);
        Some(Self { file: file.clone(), line, text, is_literal: node.style == Style::Literal })
    }

    /// The place of one of its lines, from 1.
    pub fn span(&self, files: &Files, line: u32) -> Span {
        let line = if self.is_literal { self.line + line - 1 } else { self.line };
        files.span(&Location::new(self.file.clone(), line, 0))
    }
}

/// The place of a node of a YAML file.
pub fn node_span(files: &Files, file: &Arc<str>, node: &Node) -> Span {
    files.span(&Location::new(file.clone(), node.span.start.line.max(1), node.span.start.column.max(1)))
}
