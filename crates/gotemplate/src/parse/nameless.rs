//! Texts that are parsed before their names are known.

use std::sync::Arc;

use smol_str::SmolStr;

use super::node::Tree;
use super::parser::{NAMELESS, name_hash, parse};
use crate::Functions;

/// A text that was parsed before its name was known.
pub struct Nameless {
    trees: Vec<Tree>,
}

impl Nameless {
    /// Parses a text; nothing if Go's parser refuses it, which only the name makes an error that can be shown.
    pub fn parse(text: Arc<str>, functions: &Functions) -> Option<Self> {
        parse(NAMELESS, text, functions).ok().map(|trees| Self { trees })
    }

    /// The trees under the name, as parsing the text under that name gives them.
    ///
    /// # Errors
    /// The text itself, if it defines its own name: it has to be parsed with that.
    pub(crate) fn named(mut self, name: &str) -> Result<Vec<Tree>, Arc<str>> {
        let name = SmolStr::new(name);
        if let Some(tree) = self.trees.iter().find(|tree| tree.name == name) {
            return Err(tree.source.text.clone());
        }
        for tree in &mut self.trees {
            if tree.name == NAMELESS {
                tree.name = name.clone();
                tree.hash = name_hash(&name);
            }
            // All trees share the source: every but the first find it named.
            let _ = tree.source.name.set(name.clone());
        }
        Ok(self.trees)
    }
}
