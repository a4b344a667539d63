//! Texts that are parsed together, and those whose names are not known yet.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smol_str::SmolStr;

use super::action_cache::ParsedActions;
use super::node::{Branch, Command, List, Node, Operand, Parts, Source, Tree};
use super::parser;
use crate::ParseError;

/// What a text is called whose name is not known yet; no file has it.
pub(super) const NAMELESS: &str = "\0";

/// Parses texts one after the other. What they have in common is read and kept once.
pub struct Parsing {
    pub(super) functions: Arc<dyn CallableNames>,
    pub(super) parts: Parts,
    pub(super) known: ParsedActions,
    /// Where names of fields and variables stand among the parts.
    pub(super) names: FxHashMap<SmolStr, u32>,
    pub(super) variables: FxHashMap<SmolStr, u32>,
    pub(super) open: Open,
}

/// Parts of what is still open, innermost last, until their number is known.
#[derive(Default)]
pub(super) struct Open {
    pub(super) nodes: Vec<Node>,
    pub(super) commands: Vec<Command>,
    pub(super) operands: Vec<Operand>,
    /// Nodes and branches of the text that are not open any more.
    pub(super) closed: Vec<Node>,
    pub(super) branches: Vec<Branch>,
}

impl Open {
    fn clear(&mut self) {
        self.nodes.clear();
        self.commands.clear();
        self.operands.clear();
        self.closed.clear();
        self.branches.clear();
    }
}

/// The names of the functions that a text may call.
pub trait CallableNames: Send + Sync {
    /// What the parsed text calls the function of that name by, if there is one.
    fn id(&self, name: &str) -> Option<u32>;
}

impl Parsing {
    /// Nothing parsed yet. Texts may call `functions`.
    pub fn new(functions: Arc<dyn CallableNames>) -> Self {
        let mut parsing = Self {
            functions,
            parts: Parts::default(),
            known: ParsedActions::default(),
            names: FxHashMap::default(),
            variables: FxHashMap::default(),
            open: Open::default(),
        };
        parsing.variable("$");
        parsing
    }

    /// Parses a text whose name is not known yet; nothing if Go's parser refuses it, which only the name
    /// makes an error that can be shown.
    pub fn nameless(&mut self, text: Arc<str>) -> Option<Draft> {
        self.parse(NAMELESS, text).ok()
    }

    /// Parses a text.
    ///
    /// # Errors
    /// Text that Go's parser refuses, with its words.
    pub(crate) fn parse(&mut self, name: &str, text: Arc<str>) -> Result<Draft, ParseError> {
        self.open.clear();
        let trees = parser::parse(name, &text, self)?;
        let Open { closed, branches, .. } = &mut self.open;
        let (nodes, branches) = (closed.drain(..).collect(), branches.drain(..).collect());
        Ok(Draft { name: SmolStr::new(name), text, nodes, branches, trees })
    }

    /// What the parsed texts consist of.
    pub fn finish(mut self) -> Arc<Parts> {
        self.parts.shrink();
        Arc::new(self.parts)
    }

    /// The id of a variable.
    pub(super) fn variable(&mut self, name: &str) -> u32 {
        id(name, &mut self.variables, &mut self.parts.variables)
    }

    /// The id of a field's name.
    pub(super) fn name(&mut self, name: &str) -> u32 {
        id(name, &mut self.names, &mut self.parts.names)
    }
}

fn id(name: &str, ids: &mut FxHashMap<SmolStr, u32>, names: &mut Vec<SmolStr>) -> u32 {
    if let Some(id) = ids.get(name) {
        return *id;
    }
    let (id, name) = (names.len() as u32, SmolStr::new(name));
    names.push(name.clone());
    ids.insert(name, id);
    id
}

/// A parsed text without what it shares with those that were parsed together with it.
pub struct Draft {
    name: SmolStr,
    text: Arc<str>,
    nodes: Box<[Node]>,
    branches: Box<[Branch]>,
    trees: Vec<Defined>,
}

/// A tree of a draft.
pub(super) struct Defined {
    pub(super) name: SmolStr,
    pub(super) root: List,
    pub(super) is_empty: bool,
}

impl Draft {
    /// The trees that the text defines: itself last, unless it defines its own name.
    pub(crate) fn trees(self, parts: &Arc<Parts>) -> Vec<Tree> {
        let Self { name, text, nodes, branches, trees } = self;
        let source = Arc::new(Source { name, text, nodes, branches, parts: parts.clone() });
        let tree = |Defined { name, root, is_empty }| {
            let hash = name_hash(&name);
            Tree { name, source: source.clone(), root, is_empty, hash }
        };
        trees.into_iter().map(tree).collect()
    }
}

/// A text that was parsed before its name was known.
pub struct Nameless {
    draft: Draft,
    parts: Arc<Parts>,
}

impl Nameless {
    /// A draft without a name, and what its [`Parsing`] ended with.
    pub fn new(draft: Draft, parts: Arc<Parts>) -> Self {
        Self { draft, parts }
    }

    /// The trees under the name, as parsing the text under that name gives them.
    ///
    /// # Errors
    /// The text itself, if it defines its own name: it has to be parsed with that.
    pub(crate) fn into_trees(self, name: &str) -> Result<Vec<Tree>, Arc<str>> {
        let Self { mut draft, parts } = self;
        if draft.trees.iter().any(|tree| tree.name == name) {
            return Err(draft.text);
        }
        draft.name = SmolStr::new(name);
        for tree in draft.trees.iter_mut().filter(|tree| tree.name == NAMELESS) {
            tree.name = draft.name.clone();
        }
        Ok(draft.trees(&parts))
    }
}

/// FNV-1a
fn name_hash(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
