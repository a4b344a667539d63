//! The node tree: what go-yaml v3 calls `yaml.Node`, owned and mutable.

use smol_str::SmolStr;
use tiphys_value::{FieldPath, Segment};

use crate::Position;

/// The part of a text that a node was read from; `start == end` for nodes that were made, not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First character.
    pub start: Position,
    /// One past the last character.
    pub end: Position,
}

/// How a node is (to be) written. `Plain` on collections means block style.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Style {
    /// Unquoted scalar, or block collection; the emitter quotes where it must.
    #[default]
    Plain,
    /// `"…"`
    DoubleQuoted,
    /// `'…'`
    SingleQuoted,
    /// `|`
    Literal,
    /// `>`
    Folded,
    /// `{…}` or `[…]`
    Flow,
}

/// The kind of a [`Node`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A single value.
    Scalar,
    /// Keys and values in the order of the text.
    Mapping,
    /// Items.
    Sequence,
    /// A reference to an anchor.
    Alias,
}

/// Kind and children of a [`Node`].
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// The text of a scalar after unquoting and unfolding.
    Scalar(SmolStr),
    /// Pairs in the order of the text.
    Mapping(Vec<(Node, Node)>),
    /// Items in order.
    Sequence(Vec<Node>),
    /// The name of the anchor that is meant.
    Alias(SmolStr),
}

/// Comments around a node, with their `#`, as go-yaml v3 attaches them. Empty when there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comments {
    /// Lines before the node, not separated from it by an empty line.
    pub head: String,
    /// At the end of the node's line.
    pub line: String,
    /// Lines after the node, before an empty line.
    pub foot: String,
}

/// A node of a YAML document.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Kind and children.
    pub content: Content,
    /// The tag in short form (`!!str`, `!!map`, `!custom`). Set by the parser for every node, implicit
    /// or not; empty means: to be resolved from value and style.
    pub tag: SmolStr,
    /// Whether the tag was (is to be) written out.
    pub explicit_tag: bool,
    /// How it is written.
    pub style: Style,
    /// The anchor's name, without `&`.
    pub anchor: Option<SmolStr>,
    /// Comments, if any.
    pub comments: Option<Box<Comments>>,
    /// Where it was read.
    pub span: Span,
    /// Free for users of this crate; 0 from the parser; kept by `clone`.
    pub origin: u32,
}

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The top node; a null scalar if the document is empty.
    pub root: Node,
    /// Comments before everything, separated by an empty line from the content.
    pub head_comment: String,
    /// Comments after everything.
    pub foot_comment: String,
}

impl Node {
    fn with(content: Content, tag: &'static str) -> Self {
        Self {
            content,
            tag: SmolStr::new_static(tag),
            explicit_tag: false,
            style: Style::Plain,
            anchor: None,
            comments: None,
            span: Span::default(),
            origin: 0,
        }
    }

    /// A `!!str` scalar in plain style; the emitter quotes it where plain would change its meaning.
    pub fn string(value: impl Into<SmolStr>) -> Self {
        Self::with(Content::Scalar(value.into()), "!!str")
    }

    /// A scalar whose type follows from its text, as if written plain.
    pub fn scalar(value: impl Into<SmolStr>) -> Self {
        Self::with(Content::Scalar(value.into()), "")
    }

    /// `null`.
    pub fn null() -> Self {
        Self::with(Content::Scalar(SmolStr::new_static("null")), "!!null")
    }

    /// A block mapping.
    pub fn mapping(pairs: Vec<(Node, Node)>) -> Self {
        Self::with(Content::Mapping(pairs), "!!map")
    }

    /// A block sequence.
    pub fn sequence(items: Vec<Node>) -> Self {
        Self::with(Content::Sequence(items), "!!seq")
    }

    pub(crate) fn typed(value: impl Into<SmolStr>, tag: &'static str) -> Self {
        Self::with(Content::Scalar(value.into()), tag)
    }

    /// A reference to an anchor.
    pub fn alias(anchor: impl Into<SmolStr>) -> Self {
        Self::with(Content::Alias(anchor.into()), "")
    }

    /// The foot comment, empty if there is none.
    pub(crate) fn foot(&self) -> &str {
        self.comments.as_deref().map_or("", |comments| &comments.foot)
    }

    pub(crate) fn take_foot(&mut self) -> String {
        self.comments.as_deref_mut().map_or_else(String::new, |comments| std::mem::take(&mut comments.foot))
    }

    /// The kind of node.
    pub fn kind(&self) -> Kind {
        match self.content {
            Content::Scalar(_) => Kind::Scalar,
            Content::Mapping(_) => Kind::Mapping,
            Content::Sequence(_) => Kind::Sequence,
            Content::Alias(_) => Kind::Alias,
        }
    }

    /// The text of a scalar.
    pub fn as_str(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(value) => Some(value),
            _ => None,
        }
    }

    /// The pairs of a mapping.
    pub fn pairs(&self) -> Option<&[(Node, Node)]> {
        match &self.content {
            Content::Mapping(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// The pairs of a mapping, to change.
    pub fn pairs_mut(&mut self) -> Option<&mut Vec<(Node, Node)>> {
        match &mut self.content {
            Content::Mapping(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// The items of a sequence.
    pub fn items(&self) -> Option<&[Node]> {
        match &self.content {
            Content::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The items of a sequence, to change.
    pub fn items_mut(&mut self) -> Option<&mut Vec<Node>> {
        match &mut self.content {
            Content::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// Whether this is a null scalar.
    pub fn is_null(&self) -> bool {
        self.tag == "!!null"
    }

    /// The value under a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.pairs()?.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, value)| value)
    }

    /// The value under a key of a mapping, to change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.pairs_mut()?.iter_mut().find(|(k, _)| k.as_str() == Some(key)).map(|(_, value)| value)
    }

    /// The key node of a field of a mapping.
    pub fn key_node(&self, key: &str) -> Option<&Node> {
        self.pairs()?.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(key, _)| key)
    }

    /// Sets a field of a mapping: replaces the value in place (the key node is kept), or appends.
    /// Returns whether `self` is a mapping.
    pub fn set(&mut self, key: &str, value: Node) -> bool {
        if let Some(slot) = self.get_mut(key) {
            *slot = value;
            return true;
        }
        match self.pairs_mut() {
            Some(pairs) => {
                pairs.push((Node::string(key), value));
                true
            }
            None => false,
        }
    }

    /// Takes a field out of a mapping.
    pub fn remove(&mut self, key: &str) -> Option<(Node, Node)> {
        let pairs = self.pairs_mut()?;
        let at = pairs.iter().position(|(k, _)| k.as_str() == Some(key))?;
        Some(pairs.remove(at))
    }

    /// The node that a path leads to.
    pub fn at_path(&self, path: &FieldPath) -> Option<&Node> {
        path.0.iter().try_fold(self, |node, segment| match segment {
            Segment::Key(key) => node.get(key),
            Segment::Index(index) => node.items()?.get(*index),
        })
    }

    /// The node that a path leads to, to change.
    pub fn at_path_mut(&mut self, path: &FieldPath) -> Option<&mut Node> {
        path.0.iter().try_fold(self, |node, segment| match segment {
            Segment::Key(key) => node.get_mut(key),
            Segment::Index(index) => node.items_mut()?.get_mut(*index),
        })
    }

    /// The comments, made if there are none yet.
    pub fn comments_mut(&mut self) -> &mut Comments {
        self.comments.get_or_insert_default()
    }

    /// Where the value at `path` stands, and its key if it is a field.
    pub fn spans(&self, path: &FieldPath) -> Option<(Option<Span>, Span)> {
        let value = self.at_path(path)?.span;
        let key = match (path.parent(), path.0.last()) {
            (Some(parent), Some(Segment::Key(key))) => self.at_path(&parent)?.key_node(key).map(|k| k.span),
            _ => None,
        };
        Some((key, value))
    }
}
