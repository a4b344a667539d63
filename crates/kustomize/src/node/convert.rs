//! From parsed YAML to the tree: aliases are expanded and merge keys applied, as kyaml's `DeAnchor`
//! does for every resource that kustomize loads.

use std::collections::HashMap;

use smol_str::SmolStr;
use tiphys_yaml as yaml;

use super::{Content, ExplicitTag, Node, Style, Tag, json::MAX_DEPTH};
use crate::origins::Tracker;

/// The state of converting one document.
pub(crate) struct Conversion<'a> {
    /// Where origins are recorded.
    pub tracker: &'a mut Tracker,
    /// Who wrote the document.
    pub writer: u32,
    /// Lines of the file before the document.
    pub line_offset: u32,
    /// How many nodes the document may still make.
    pub budget: usize,
    /// Values of anchors met so far.
    pub anchors: HashMap<SmolStr, Node>,
}

/// Converts a document.
///
/// # Errors
/// Unknown anchors, merges of what is no mapping, too many nodes or levels.
pub(crate) fn from_yaml_node(node: yaml::Node, state: &mut Conversion<'_>) -> Result<Node, String> {
    state.convert(node, 0)
}

impl Conversion<'_> {
    fn convert(&mut self, node: yaml::Node, depth: usize) -> Result<Node, String> {
        if depth > MAX_DEPTH {
            return Err(format!("exceeded max depth of {MAX_DEPTH}"));
        }
        self.spend(1)?;
        let origin = self.origin(&node.span);
        let tag = tag_of(&node);
        let style = style_of(node.style);
        let anchor = node.anchor;
        let content = match node.content {
            yaml::Content::Scalar(text) => Content::Scalar(text),
            yaml::Content::Sequence(items) => Content::Seq(
                items.into_iter().map(|item| self.convert(item, depth + 1)).collect::<Result<_, _>>()?,
            ),
            yaml::Content::Mapping(pairs) => Content::Map(self.mapping(pairs, depth)?),
            yaml::Content::Alias(name) => return self.alias(&name),
        };
        let node = Node { content, tag, style, origin, group: 0 };
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn spend(&mut self, nodes: usize) -> Result<(), String> {
        self.budget = self.budget.checked_sub(nodes).ok_or("document contains excessive aliasing")?;
        Ok(())
    }

    fn origin(&mut self, span: &yaml::Span) -> u32 {
        if !self.tracker.is_enabled() {
            return 0;
        }
        self.tracker.entry(self.writer, span.start.line + self.line_offset, span.start.column)
    }

    fn alias(&mut self, name: &SmolStr) -> Result<Node, String> {
        let target = self.anchors.get(name).cloned();
        let node = target.ok_or_else(|| format!("yaml: anchor '{name}' value contains itself"))?;
        self.spend(count(&node))?;
        Ok(node)
    }

    fn mapping(
        &mut self,
        pairs: Vec<(yaml::Node, yaml::Node)>,
        depth: usize,
    ) -> Result<Vec<(Node, Node)>, String> {
        let mut own = Vec::with_capacity(pairs.len());
        let mut merged: Option<Vec<Node>> = None;
        for (key, value) in pairs {
            let is_merge = key.tag == "!!merge";
            let key = self.convert(key, depth + 1)?;
            if !is_merge {
                own.push((key, self.convert(value, depth + 1)?));
                continue;
            }
            let via_alias = is_alias(&value);
            let items = value.items().unwrap_or_default().iter().map(is_alias).collect::<Vec<_>>();
            let value = self.convert(value, depth + 1)?;
            if merged.replace(merge_sources(value, via_alias, &items)?).is_some() {
                return Err("duplicate merge key".to_owned());
            }
        }
        if let Some(sources) = merged {
            apply_merges(&mut own, sources);
        }
        Ok(own)
    }
}

fn is_alias(node: &yaml::Node) -> bool {
    matches!(node.content, yaml::Content::Alias(_))
}

/// The mappings that a merge key names, weakest first; `aliases` says which items of a list are aliases.
fn merge_sources(value: Node, via_alias: bool, aliases: &[bool]) -> Result<Vec<Node>, String> {
    match &value.content {
        Content::Map(_) => Ok(vec![value]),
        _ if via_alias => Err("invalid map merge: received alias for a non-map value".to_owned()),
        Content::Scalar(_) => Err("map merge requires map or sequence of maps as the value".to_owned()),
        Content::Seq(items) => {
            let mut sources = Vec::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                match item.content {
                    Content::Map(_) => sources.push(item.clone()),
                    _ if aliases.get(at) == Some(&true) => {
                        return Err("invalid map merge: received alias for a non-map value".to_owned());
                    }
                    Content::Seq(_) => {
                        return Err("invalid map merge: received a nested sequence".to_owned());
                    }
                    Content::Scalar(_) => {
                        return Err("map merge requires map or sequence of maps as the value".to_owned());
                    }
                }
            }
            sources.reverse();
            Ok(sources)
        }
    }
}

/// Adds the fields of merged mappings that the mapping has not itself; later sources win.
fn apply_merges(own: &mut Vec<(Node, Node)>, sources: Vec<Node>) {
    let fixed = own.len();
    for source in sources {
        let Content::Map(pairs) = source.content else { continue };
        for (key, value) in pairs {
            match own.iter().position(|(k, _)| k.value() == key.value()) {
                Some(at) if at < fixed => {}
                Some(at) => own[at] = (key, value),
                None => own.push((key, value)),
            }
        }
    }
}

fn count(node: &Node) -> usize {
    1 + match &node.content {
        Content::Scalar(_) => 0,
        Content::Seq(items) => items.iter().map(count).sum(),
        Content::Map(pairs) => pairs.iter().map(|(key, value)| count(key) + count(value)).sum::<usize>(),
    }
}

/// The style of a parsed node.
pub(super) fn style_of(style: yaml::Style) -> Style {
    match style {
        yaml::Style::Plain => Style::Plain,
        yaml::Style::DoubleQuoted => Style::DoubleQuoted,
        yaml::Style::SingleQuoted => Style::SingleQuoted,
        yaml::Style::Literal => Style::Block,
        yaml::Style::Folded => Style::Folded,
        yaml::Style::Flow => Style::Flow,
    }
}

fn tag_of(node: &yaml::Node) -> Tag {
    let tag = node.tag.as_str();
    if node.explicit_tag && matches!(node.content, yaml::Content::Scalar(_)) {
        return Tag::Explicit(match tag {
            "!!str" => ExplicitTag::Str,
            "!!int" => ExplicitTag::Int,
            "!!float" => ExplicitTag::Float,
            "!!bool" => ExplicitTag::Bool,
            "!!null" => ExplicitTag::Null,
            "!!timestamp" => ExplicitTag::Timestamp,
            "!!binary" => ExplicitTag::Binary,
            _ => ExplicitTag::Other,
        });
    }
    match tag {
        "!!str" => Tag::Str,
        "!!int" => Tag::Int,
        "!!float" => Tag::Float,
        "!!bool" => Tag::Bool,
        "!!null" => Tag::Null,
        "!!timestamp" => Tag::Timestamp,
        "!!binary" => Tag::Binary,
        "!!merge" => Tag::Merge,
        "!!map" => Tag::Map,
        "!!seq" => Tag::Seq,
        _ => Tag::Unset,
    }
}

impl Node {
    /// The node for the emitter of YAML; comments are gone.
    pub(crate) fn to_yaml_node(&self) -> yaml::Node {
        let mut node = match &self.content {
            Content::Scalar(text) => yaml::Node::scalar(text.clone()),
            Content::Seq(items) => yaml::Node::sequence(items.iter().map(Node::to_yaml_node).collect()),
            Content::Map(pairs) => {
                let pair = |(key, value): &(Node, Node)| (key.to_yaml_node(), value.to_yaml_node());
                yaml::Node::mapping(pairs.iter().map(pair).collect())
            }
        };
        node.style = match self.style {
            Style::Plain => yaml::Style::Plain,
            Style::DoubleQuoted => yaml::Style::DoubleQuoted,
            Style::SingleQuoted => yaml::Style::SingleQuoted,
            Style::Block => yaml::Style::Literal,
            Style::Folded => yaml::Style::Folded,
            Style::Flow => yaml::Style::Flow,
        };
        node.tag = match self.tag {
            Tag::Str => "!!str",
            Tag::Int => "!!int",
            Tag::Float => "!!float",
            Tag::Bool => "!!bool",
            Tag::Null => "!!null",
            Tag::Map => "!!map",
            Tag::Seq => "!!seq",
            _ => "",
        }
        .into();
        node
    }
}
