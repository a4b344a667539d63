//! Everyday YAML straight to the tree, without the parser's nodes between. For builds that record no origins:
//! places are not noted.

use std::borrow::Cow;

use tiphys_yaml as yaml;

use super::{Content, Node, Style, Tag};

/// Makes nodes, so many of them at most.
struct Maker {
    budget: usize,
}

/// The only document of a text: `Some(None)` if it is empty, `None` if the whole of YAML has to read it.
pub(crate) fn read_simple(text: &str, budget: usize) -> Option<Option<Node>> {
    yaml::read_simple(text, &mut Maker { budget })
}

impl yaml::Make for Maker {
    type Node = Node;
    type Map = Vec<(Node, Node)>;
    const PROFILE: yaml::Profile = yaml::Profile::Go3;

    fn plain(&mut self, text: Cow<'_, str>) -> Option<Node> {
        self.budget = self.budget.checked_sub(1)?;
        let tag = match yaml::resolve(&text, yaml::Profile::Go3) {
            yaml::Scalar::Null => Tag::Null,
            yaml::Scalar::Bool(_) => Tag::Bool,
            yaml::Scalar::Int(_) | yaml::Scalar::Uint(_) => Tag::Int,
            yaml::Scalar::Float(_) => Tag::Float,
            yaml::Scalar::Timestamp(_) => Tag::Timestamp,
            yaml::Scalar::Merge => return None,
            yaml::Scalar::Str(_) => Tag::Str,
        };
        Some(Node::tagged(&*text, tag))
    }

    fn text(&mut self, text: Cow<'_, str>, style: yaml::Style) -> Node {
        Node { style: super::convert::style_of(style), ..Node::tagged(&*text, Tag::Str) }
    }

    fn sequence(&mut self, items: Vec<Node>, flow: bool) -> Node {
        collection(Content::Seq(items), Tag::Seq, flow)
    }

    fn pair(
        &mut self,
        map: &mut Self::Map,
        key: Cow<'_, str>,
        style: yaml::Style,
        value: Node,
    ) -> Option<()> {
        self.budget = self.budget.checked_sub(2)?;
        let key = self.text(key, style);
        map.push((key, value));
        Some(())
    }

    fn mapping(&mut self, map: Self::Map, flow: bool) -> Node {
        collection(Content::Map(map), Tag::Map, flow)
    }

    fn unwanted_node() -> Node {
        Node::null()
    }
}

fn collection(content: Content, tag: Tag, flow: bool) -> Node {
    let style = if flow { Style::Flow } else { Style::Plain };
    Node { style, ..Node::make(content, tag) }
}
