//! The syntax tree. Positions are byte offsets into the parsed text, where Go's nodes have theirs.

use smol_str::SmolStr;
use std::sync::{Arc, OnceLock, atomic::AtomicU32};

/// A parsed text, shared by the trees that it defines.
#[derive(Debug)]
pub(crate) struct Source {
    /// Set once it is known.
    pub(crate) name: OnceLock<SmolStr>,
    pub(crate) text: Arc<str>,
    pub(crate) parts: Parts,
}

impl Source {
    /// The text's name; empty before it is known.
    pub(crate) fn name(&self) -> &str {
        self.name.get().map_or("", SmolStr::as_str)
    }
}

/// What the trees of a text consist of: everything of one kind in one piece, which takes a fraction of the memory and of
/// the time of pieces of their own.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(super) nodes: Vec<Node>,
    pub(super) branches: Vec<Branch>,
    pub(super) calls: Vec<Call>,
    pub(super) pipes: Vec<Pipe>,
    pub(super) declared: Vec<Variable>,
    pub(super) commands: Vec<Command>,
    pub(super) operands: Vec<Operand>,
    pub(super) fields: Vec<u32>,
    pub(super) names: Vec<Name>,
    pub(super) strings: Vec<SmolStr>,
    pub(super) numbers: Vec<Number>,
}

/// Parts of one kind that stand side by side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(super) from: u32,
    pub(super) to: u32,
}

impl Span {
    fn of<T>(self, parts: &[T]) -> &[T] {
        &parts[self.from as usize..self.to as usize]
    }

    pub(crate) fn is_empty(self) -> bool {
        self.from == self.to
    }

    pub(crate) fn len(self) -> usize {
        (self.to - self.from) as usize
    }
}

impl Parts {
    /// Takes all parts out, and leaves the room that they had.
    pub(super) fn take(&mut self) -> Self {
        fn all<T>(parts: &mut Vec<T>) -> Vec<T> {
            let mut taken = Vec::with_capacity(parts.len());
            taken.append(parts);
            taken
        }
        Self {
            nodes: all(&mut self.nodes),
            branches: all(&mut self.branches),
            calls: all(&mut self.calls),
            pipes: all(&mut self.pipes),
            declared: all(&mut self.declared),
            commands: all(&mut self.commands),
            operands: all(&mut self.operands),
            fields: all(&mut self.fields),
            names: all(&mut self.names),
            strings: all(&mut self.strings),
            numbers: all(&mut self.numbers),
        }
    }

    pub(crate) fn nodes(&self, list: List) -> &[Node] {
        list.nodes.of(&self.nodes)
    }

    pub(crate) fn branch(&self, id: u32) -> &Branch {
        &self.branches[id as usize]
    }

    pub(crate) fn call(&self, id: u32) -> &Call {
        &self.calls[id as usize]
    }

    pub(crate) fn pipe(&self, id: u32) -> &Pipe {
        &self.pipes[id as usize]
    }

    /// The variables that a pipeline declares or assigns.
    pub(crate) fn declared(&self, pipe: &Pipe) -> &[Variable] {
        pipe.variables.of(&self.declared)
    }

    pub(crate) fn commands(&self, pipe: &Pipe) -> &[Command] {
        pipe.commands.of(&self.commands)
    }

    /// The string that a pipeline is, if it is nothing else: how templates write what would be taken for an action.
    pub(crate) fn literal(&self, pipe: &Pipe) -> Option<&str> {
        match (self.declared(pipe), self.commands(pipe)) {
            ([], [only]) => match self.args(only) {
                [Operand::String { text, .. }] => Some(self.string(*text)),
                _ => None,
            },
            _ => None,
        }
    }

    /// What a command is made of: what is called, and its arguments.
    pub(crate) fn args(&self, command: &Command) -> &[Operand] {
        command.args.of(&self.operands)
    }

    pub(crate) fn operand(&self, id: u32) -> &Operand {
        &self.operands[id as usize]
    }

    /// The names of a chain of fields.
    pub(crate) fn fields(&self, fields: Span) -> impl DoubleEndedIterator<Item = &Name> {
        fields.of(&self.fields).iter().map(|id| &self.names[*id as usize])
    }

    pub(crate) fn string(&self, id: u32) -> &SmolStr {
        &self.strings[id as usize]
    }

    pub(crate) fn number(&self, id: u32) -> &Number {
        &self.numbers[id as usize]
    }
}

/// The name of a field, wherever it occurs in the text.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) text: SmolStr,
    /// At which entry of a map it was found last.
    pub(crate) found: AtomicU32,
}

impl Name {
    pub(super) fn new(text: &str) -> Self {
        Self { text: SmolStr::new(text), found: AtomicU32::new(0) }
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
        self.source.parts.nodes(self.root).iter().all(|node| match node {
            Node::Text { from, to } => self.source.text[*from as usize..*to as usize].trim().is_empty(),
            _ => false,
        })
    }
}

pub(crate) type Pos = u32;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    pub(super) nodes: Span,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    Text { from: Pos, to: Pos },
    Action { pos: Pos, pipe: u32 },
    If(u32),
    With(u32),
    Range(u32),
    Template(u32),
    Break { pos: Pos },
    Continue { pos: Pos },
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pos: Pos,
    pub(crate) pipe: u32,
    pub(crate) list: List,
    pub(crate) else_list: Option<List>,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) pos: Pos,
    pub(crate) name: SmolStr,
    pub(crate) pipe: Option<u32>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) pos: Pos,
    pub(crate) assign: bool,
    pub(crate) variables: Span,
    pub(crate) commands: Span,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub(super) args: Span,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    pub(crate) pos: Pos,
    pub(crate) id: u32,
    pub(crate) fields: Span,
}

#[derive(Clone, Copy, Debug)]
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
    Number {
        pos: Pos,
        number: u32,
    },
    /// From `pos` to `end` it stands in the source, quotes included.
    String {
        pos: Pos,
        end: Pos,
        text: u32,
    },
    Field {
        pos: Pos,
        names: Span,
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
        base: u32,
        names: Span,
    },
    Pipe {
        pos: Pos,
        pipe: u32,
    },
}

/// A number literal with every reading that its text allows.
#[derive(Debug)]
pub(crate) struct Number {
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
            | Self::Number { pos, .. }
            | Self::Chain { pos, .. }
            | Self::Pipe { pos, .. } => *pos,
            Self::Variable(variable) => variable.pos,
        }
    }
}
