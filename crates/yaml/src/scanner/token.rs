//! Tokens, marks and faults of the scanner.

use std::borrow::Cow;

use crate::{Position, Style};

/// A place in the stream. Lines and columns count from 0, `index` counts characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub offset: u32,
    pub index: u32,
    pub line: u32,
    pub column: u32,
}

impl Mark {
    /// The same place as users count.
    pub(crate) fn position(self) -> Position {
        Position { offset: self.offset, line: self.line + 1, column: self.column + 1 }
    }
}

/// A tag as written: handle (`!`, `!!`, `!name!`, or empty for verbatim tags) and suffix; for the
/// `%TAG` directive, handle and prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TagText {
    pub handle: String,
    pub suffix: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind<'a> {
    StreamStart,
    StreamEnd,
    VersionDirective(u8, u8),
    TagDirective(Box<TagText>),
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    Tag(Box<TagText>),
    Scalar(Cow<'a, str>, Style),
}

#[derive(Clone, Debug)]
pub(crate) struct Token<'a> {
    pub kind: TokenKind<'a>,
    pub start: Mark,
    pub end: Mark,
}

/// Which part of libyaml found a fault; go-yaml counts lines differently for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultSource {
    Reader,
    Scanner,
    Parser,
    Limit,
}

/// A syntax fault with libyaml's two marks.
#[derive(Debug)]
pub(crate) struct ScanError {
    pub source: FaultSource,
    pub problem: Cow<'static, str>,
    pub mark: Mark,
    pub context: Mark,
}

/// Boxed, because faults are rare and results are everywhere.
pub(crate) type Scan<T> = Result<T, Box<ScanError>>;

/// A comment waiting for the token it belongs to.
#[derive(Debug, Default)]
pub(crate) struct PendingComment {
    /// Where scanning for the next token began.
    pub scan: Mark,
    /// The token that the comment belongs to starts here or later.
    pub token: Mark,
    pub start: Mark,
    pub end: Mark,
    pub head: String,
    pub line: String,
    pub foot: String,
}
