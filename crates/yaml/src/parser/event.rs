//! Events: what a YAML stream consists of.

use std::borrow::Cow;

use crate::{Comments, Span, Style};

/// One step through a YAML stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<'a> {
    /// What begins, ends or stands here.
    pub kind: EventKind<'a>,
    /// Its text. A block collection starts and ends without extent.
    pub span: Span,
    /// go-yaml v3's comments, if any.
    pub comments: Option<Box<Comments>>,
}

/// Kinds of [`Event`].
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind<'a> {
    /// Always the first.
    StreamStart,
    /// Always the last.
    StreamEnd,
    /// A document, with or without `---`.
    DocumentStart,
    /// The end of a document, with or without `...`.
    DocumentEnd,
    /// A mapping; keys and values follow in turn.
    MappingStart(Box<Properties<'a>>),
    /// The end of the innermost mapping.
    MappingEnd,
    /// A sequence.
    SequenceStart(Box<Properties<'a>>),
    /// The end of the innermost sequence.
    SequenceEnd,
    /// A scalar.
    Scalar {
        /// Its text after unquoting and unfolding.
        value: Cow<'a, str>,
        /// How it is written.
        style: Style,
        /// Anchor and tag, if any.
        properties: Option<Box<Properties<'a>>>,
    },
    /// `*name`
    Alias(&'a str),
}

/// Anchor, tag and style of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties<'a> {
    /// The name after `&`.
    pub anchor: Option<&'a str>,
    /// The tag with its handle expanded (`tag:yaml.org,2002:str`), or `!`.
    pub tag: Option<String>,
    /// Flow or plain (block).
    pub style: Style,
}
