//! Replacing aliases by what they stand for.

use std::collections::HashMap;

use smol_str::SmolStr;

use crate::{Content, Error, ErrorKind, Node};

/// Nodes that the aliases of one document may add up to.
const MAX_COPIED: usize = 1_000_000;
/// The bytes of a text that count as much as a node: copies share them, until they are written.
const TEXT: usize = 128;

impl Node {
    /// Replaces every alias below here by a copy of what its anchor marks, and drops the anchors.
    /// Merge keys stay.
    ///
    /// # Errors
    /// An alias without anchor, an anchor that contains itself, or copies beyond a million nodes.
    pub fn expand_aliases(&mut self) -> Result<(), Error> {
        Expansion { anchors: HashMap::new(), open: Vec::new(), copied: 0 }.expand(self).map(drop)
    }
}

struct Expansion {
    /// Expanded nodes with their sizes.
    anchors: HashMap<SmolStr, (Node, usize)>,
    /// Anchors of nodes that are being expanded.
    open: Vec<SmolStr>,
    copied: usize,
}

impl Expansion {
    /// Expands a node and returns how many nodes it has then.
    fn expand(&mut self, node: &mut Node) -> Result<usize, Error> {
        let anchor = node.anchor.take();
        self.open.extend(anchor.clone());
        let size = match &mut node.content {
            Content::Scalar(text) => 1 + text.len() / TEXT,
            Content::Sequence(items) => {
                let mut size = 1;
                for item in items {
                    size += self.expand(item)?;
                }
                size
            }
            Content::Mapping(pairs) => {
                let mut size = 1;
                for (key, value) in pairs {
                    size += self.expand(key)? + self.expand(value)?;
                }
                size
            }
            Content::Alias(name) => {
                let name = name.clone();
                let (copy, size) = self.copy(&name, node)?;
                let (comments, span) = (node.comments.take(), node.span);
                *node = copy;
                node.comments = comments;
                node.span = span;
                size
            }
        };
        if let Some(anchor) = anchor {
            self.open.pop();
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok(size)
    }

    fn copy(&mut self, name: &SmolStr, alias: &Node) -> Result<(Node, usize), Error> {
        let fail = |kind, message: String| Err(Error::new(kind, message).located_at(alias.span.start));
        if self.open.contains(name) {
            return fail(ErrorKind::Decode, format!("yaml: anchor '{name}' value contains itself"));
        }
        let Some((node, size)) = self.anchors.get(name) else {
            return fail(ErrorKind::Syntax, format!("yaml: unknown anchor '{name}' referenced"));
        };
        self.copied = self.copied.saturating_add(*size);
        if self.copied > MAX_COPIED {
            return fail(ErrorKind::Limit, "yaml: document contains excessive aliasing".to_owned());
        }
        Ok((node.clone(), *size))
    }
}
