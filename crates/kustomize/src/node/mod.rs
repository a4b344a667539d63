//! The tree that transformers work on: like kyaml's `RNode`, without comments, with origins.

mod convert;
mod fast_parser;
mod fields;
mod go_value;
mod json;
mod matcher;
mod metadata;
mod path;
mod scalar;
mod shared_nodes;

use smol_str::SmolStr;

pub(crate) use convert::{Conversion, from_yaml_node};
pub(crate) use fast_parser::read_simple;
pub(crate) use fields::kind_error;
pub(crate) use go_value::go_syntax;
pub(crate) use json::{
    MAX_DEPTH, from_json, from_json_text, go_float, keep_origins, normalize, quoted_json, to_json,
};
pub(crate) use matcher::PathMatcher;
pub(crate) use metadata::StringMap;
pub(crate) use path::{
    at_positions, list_index, lookup, lookup_create, lookup_mut, positions, smarter_split, split_path,
};
pub(crate) use scalar::{Resolved, reads_as_string, resolve};
pub(crate) use shared_nodes::sync_shared;

/// The bit of [`Node::origin`] that marks a value written since origins were last recorded; the
/// other bits are then the entry of the value that it replaced.
pub(crate) const WRITTEN: u32 = 1 << 31;

/// The bit of [`Node::group`] that marks a member written since its group was last brought in line.
pub(crate) const GROUP_WRITTEN: u32 = 1 << 31;

/// The YAML tag of a node; explicit ones keep that they were written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tag {
    /// To be resolved from text and style.
    #[default]
    Unset,
    Str,
    Int,
    Float,
    Bool,
    Null,
    Timestamp,
    Binary,
    Merge,
    Map,
    Seq,
    /// `!!str` and so on, written out in the source.
    Explicit(ExplicitTag),
}

/// Tags written out in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExplicitTag {
    Str,
    Int,
    Float,
    Bool,
    Null,
    Timestamp,
    Binary,
    /// A local or unknown tag: decodes as text.
    Other,
}

/// How a node is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    #[default]
    Plain,
    DoubleQuoted,
    SingleQuoted,
    /// `|`
    Block,
    /// `>`
    Folded,
    /// Flow collection.
    Flow,
}

/// Kind and children.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Scalar(SmolStr),
    Map(Vec<(Node, Node)>),
    Seq(Vec<Node>),
}

/// The kind of a node, as kyaml names kinds in errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar,
    Map,
    Seq,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub content: Content,
    pub tag: Tag,
    pub style: Style,
    /// Entry in the table of origins (0: none), or with [`WRITTEN`] the entry that was replaced.
    pub origin: u32,
    /// Labels and annotations that one transformer adds in several places of an object are one node
    /// in kustomize: a later write to one of them changes all. 0: not shared.
    pub group: u32,
}

impl Node {
    fn make(content: Content, tag: Tag) -> Self {
        Self { content, tag, style: Style::Plain, origin: 0, group: 0 }
    }

    /// A scalar whose type follows from its text (`NewScalarRNode`).
    pub(crate) fn scalar(value: impl Into<SmolStr>) -> Self {
        Self::make(Content::Scalar(value.into()), Tag::Unset)
    }

    /// A scalar with a tag.
    pub(crate) fn tagged(value: impl Into<SmolStr>, tag: Tag) -> Self {
        Self::make(Content::Scalar(value.into()), tag)
    }

    /// A text, in literal style where it has several lines (`NewStringRNode`).
    pub(crate) fn string(value: impl Into<SmolStr>) -> Self {
        let value = value.into();
        let style = if value.contains('\n') { Style::Block } else { Style::Plain };
        Self { style, ..Self::make(Content::Scalar(value), Tag::Str) }
    }

    /// `null`.
    pub(crate) fn null() -> Self {
        Self::make(Content::Scalar(SmolStr::new_static("null")), Tag::Null)
    }

    /// A mapping.
    pub(crate) fn map(pairs: Vec<(Node, Node)>) -> Self {
        Self::make(Content::Map(pairs), Tag::Map)
    }

    /// A sequence.
    pub(crate) fn seq(items: Vec<Node>) -> Self {
        Self::make(Content::Seq(items), Tag::Seq)
    }

    /// An empty node of a kind, as `LookupCreate` makes it.
    pub(crate) fn empty(kind: Kind) -> Self {
        match kind {
            Kind::Scalar => Self::scalar(""),
            Kind::Map => Self::map(Vec::new()),
            Kind::Seq => Self::seq(Vec::new()),
        }
    }

    /// The kind.
    pub(crate) fn kind(&self) -> Kind {
        match self.content {
            Content::Scalar(_) => Kind::Scalar,
            Content::Map(_) => Kind::Map,
            Content::Seq(_) => Kind::Seq,
        }
    }

    /// The text of a scalar; empty for collections, as the `Value` of go-yaml's nodes.
    pub(crate) fn value(&self) -> &str {
        match &self.content {
            Content::Scalar(value) => value,
            _ => "",
        }
    }

    /// The text of a scalar, shared.
    pub(crate) fn value_smol(&self) -> SmolStr {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            _ => SmolStr::default(),
        }
    }

    /// The pairs of a mapping; none for other kinds.
    pub(crate) fn pairs(&self) -> &[(Node, Node)] {
        match &self.content {
            Content::Map(pairs) => pairs,
            _ => &[],
        }
    }

    /// The pairs of a mapping.
    pub(crate) fn pairs_mut(&mut self) -> Option<&mut Vec<(Node, Node)>> {
        match &mut self.content {
            Content::Map(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// The items of a sequence; none for other kinds.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.content {
            Content::Seq(items) => items,
            _ => &[],
        }
    }

    /// The items of a sequence.
    pub(crate) fn items_mut(&mut self) -> Option<&mut Vec<Node>> {
        match &mut self.content {
            Content::Seq(items) => Some(items),
            _ => None,
        }
    }

    /// Whether the node is a null.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.tag, Tag::Null | Tag::Explicit(ExplicitTag::Null))
    }

    /// Whether the node is null or an empty collection.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_null()
            || match &self.content {
                Content::Scalar(_) => false,
                Content::Map(pairs) => pairs.is_empty(),
                Content::Seq(items) => items.is_empty(),
            }
    }

    /// Whether the node is null or an empty mapping.
    pub(crate) fn is_empty_map(&self) -> bool {
        self.is_null() || matches!(&self.content, Content::Map(pairs) if pairs.is_empty())
    }

    /// Whether the node is a scalar that is, or may be, text (`IsYNodeString`).
    pub(crate) fn is_string(&self) -> bool {
        self.kind() == Kind::Scalar
            && matches!(self.tag, Tag::Str | Tag::Unset | Tag::Explicit(ExplicitTag::Str))
    }

    /// Whether the scalar is written in quotes or as a block.
    pub(crate) fn is_quoted(&self) -> bool {
        matches!(self.style, Style::DoubleQuoted | Style::SingleQuoted | Style::Block | Style::Folded)
    }

    /// Puts another node's content in this one's place, noting that it was written. Kind, tag and
    /// style are the other's (`SetYNode`).
    pub(crate) fn assign(&mut self, other: Node) {
        let origin = if other.origin == 0 { (self.origin & !WRITTEN) | WRITTEN } else { other.origin };
        let group = if self.group == 0 { 0 } else { self.group | GROUP_WRITTEN };
        *self = Node { origin, group, ..other };
    }

    /// Replaces the text of a scalar, keeping tag and style.
    pub(crate) fn assign_value(&mut self, value: impl Into<SmolStr>) {
        self.content = Content::Scalar(value.into());
        self.touch();
    }

    /// Notes that the node was written in place.
    pub(crate) fn touch(&mut self) {
        self.origin |= WRITTEN;
        if self.group != 0 {
            self.group |= GROUP_WRITTEN;
        }
    }
}

impl Kind {
    /// The name in kyaml's errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scalar => "ScalarNode",
            Self::Map => "MappingNode",
            Self::Seq => "SequenceNode",
        }
    }
}
