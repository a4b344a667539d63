//! The syntax tree. Positions are byte offsets into the parsed text, where Go's nodes have theirs.

use smol_str::SmolStr;
use std::sync::{Arc, OnceLock};

/// A parsed text, shared by the trees that it defines.
#[derive(Debug)]
pub(crate) struct Source {
    /// Set once it is known.
    pub(crate) name: OnceLock<SmolStr>,
    pub(crate) text: Box<str>,
}

impl Source {
    /// The text's name; empty before it is known.
    pub(crate) fn name(&self) -> &str {
        self.name.get().map_or("", SmolStr::as_str)
    }
}

/// One parsed template.
#[derive(Debug)]
pub struct Tree {
    pub(crate) name: SmolStr,
    pub(crate) source: Arc<Source>,
    pub(crate) root: List,
    /// Names of the tree's variables, by [`Variable::id`]; the first is `$`.
    pub(crate) variables: Vec<SmolStr>,
    /// Identifies the tree's name, the same in every process.
    pub(crate) hash: u64,
}

impl Tree {
    /// Name of the template: that of the text or of the `define`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of the parsed text.
    pub fn file(&self) -> &str {
        self.source.name()
    }

    /// The parsed text.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// Whether there is nothing but space and comments.
    pub fn is_empty(&self) -> bool {
        self.root.nodes.iter().all(|node| match node {
            Node::Text { from, to } => self.source.text[*from as usize..*to as usize].trim().is_empty(),
            _ => false,
        })
    }
}

pub(crate) type Pos = u32;

#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) nodes: Box<[Node]>,
}

#[derive(Debug)]
pub(crate) enum Node {
    Text { from: Pos, to: Pos },
    Action { pos: Pos, pipe: Pipe },
    If(Box<Branch>),
    With(Box<Branch>),
    Range(Box<Branch>),
    Template(Box<Call>),
    Break { pos: Pos },
    Continue { pos: Pos },
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pos: Pos,
    pub(crate) pipe: Pipe,
    pub(crate) list: List,
    pub(crate) else_list: Option<List>,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) pos: Pos,
    pub(crate) name: SmolStr,
    pub(crate) pipe: Option<Pipe>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) pos: Pos,
    pub(crate) assign: bool,
    pub(crate) variables: Vec<Variable>,
    pub(crate) commands: Box<[Command]>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) args: Box<[Operand]>,
}

#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) pos: Pos,
    pub(crate) id: u32,
    pub(crate) fields: Box<[SmolStr]>,
}

#[derive(Debug)]
pub(crate) enum Operand {
    Dot {
        pos: Pos,
    },
    Nil {
        pos: Pos,
    },
    Bool {
        pos: Pos,
        value: bool,
    },
    Number(Box<Number>),
    /// From `pos` to `end` it stands in the source, quotes included.
    String {
        pos: Pos,
        end: Pos,
        text: SmolStr,
    },
    Field {
        pos: Pos,
        names: Box<[SmolStr]>,
    },
    Variable(Variable),
    Function {
        pos: Pos,
        /// Behind the name, which stands in the source from `pos` on.
        end: Pos,
        /// Id in the table of functions.
        function: u32,
    },
    Chain {
        pos: Pos,
        base: Box<Operand>,
        names: Box<[SmolStr]>,
    },
    Pipe(Box<Pipe>),
}

/// A number literal with every reading that its text allows.
#[derive(Debug)]
pub(crate) struct Number {
    pub(crate) pos: Pos,
    pub(crate) text: SmolStr,
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    pub(crate) complex: bool,
}

impl Operand {
    pub(crate) fn pos(&self) -> Pos {
        match self {
            Self::Dot { pos }
            | Self::Nil { pos }
            | Self::Bool { pos, .. }
            | Self::String { pos, .. }
            | Self::Field { pos, .. }
            | Self::Function { pos, .. }
            | Self::Chain { pos, .. } => *pos,
            Self::Number(number) => number.pos,
            Self::Variable(variable) => variable.pos,
            Self::Pipe(pipe) => pipe.pos,
        }
    }
}
