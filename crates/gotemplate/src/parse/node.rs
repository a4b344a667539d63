//! The syntax tree. Where Go's nodes have their positions, there are byte offsets here: of nodes and branches
//! into the parsed text, of everything in a pipeline from where its action begins.

use smol_str::SmolStr;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// A parsed text, shared by the trees that it defines.
#[derive(Debug)]
pub(crate) struct Source {
    /// What error messages call the text.
    pub(crate) name: SmolStr,
    pub(crate) text: Arc<str>,
    pub(super) nodes: Box<[Node]>,
    pub(super) branches: Box<[Branch]>,
    pub(crate) parts: Arc<Parts>,
}

impl Source {
    pub(crate) fn nodes(&self, list: List) -> &[Node] {
        list.nodes.slice(&self.nodes)
    }

    pub(crate) fn branch(&self, id: u32) -> &Branch {
        &self.branches[id as usize]
    }
}

/// What actions consist of, shared by texts that were parsed together: everything of one kind in one piece,
/// and of actions that read the same only one. That takes a fraction of the memory and of the time of pieces
/// of their own.
#[derive(Debug, Default)]
pub struct Parts {
    pub(super) calls: Vec<Call>,
    pub(super) pipes: Vec<Pipe>,
    pub(super) declared: Vec<Variable>,
    pub(super) commands: Vec<Command>,
    pub(super) operands: Vec<Operand>,
    pub(super) fields: Vec<Field>,
    pub(super) names: Vec<SmolStr>,
    /// Names of variables with their `$`, by [`Variable::id`]; the first is `$` itself.
    pub(super) variables: Vec<SmolStr>,
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
    pub(super) fn slice<T>(self, parts: &[T]) -> &[T] {
        &parts[self.from as usize..self.to as usize]
    }

    /// Adds parts to those of their kind.
    pub(super) fn adding<T: Copy>(parts: &mut Vec<T>, more: &[T]) -> Self {
        let from = parts.len() as u32;
        parts.extend_from_slice(more);
        Self { from, to: parts.len() as u32 }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.from == self.to
    }

    pub(crate) fn len(self) -> usize {
        (self.to - self.from) as usize
    }
}

impl Parts {
    /// Gives back the room that was left to grow: a parsed chart may be kept for long.
    pub(super) fn shrink(&mut self) {
        let Self { calls, pipes, declared, commands, operands, fields, names, variables, strings, numbers } =
            self;
        calls.shrink_to_fit();
        pipes.shrink_to_fit();
        declared.shrink_to_fit();
        commands.shrink_to_fit();
        operands.shrink_to_fit();
        fields.shrink_to_fit();
        names.shrink_to_fit();
        variables.shrink_to_fit();
        strings.shrink_to_fit();
        numbers.shrink_to_fit();
    }

    pub(crate) fn call(&self, id: u32) -> &Call {
        &self.calls[id as usize]
    }

    pub(crate) fn pipe(&self, id: u32) -> &Pipe {
        &self.pipes[id as usize]
    }

    /// The variables that a pipeline declares or assigns.
    pub(crate) fn declared_variables(&self, pipe: &Pipe) -> &[Variable] {
        pipe.variables.slice(&self.declared)
    }

    pub(crate) fn commands(&self, pipe: &Pipe) -> &[Command] {
        pipe.commands.slice(&self.commands)
    }

    /// The string that a pipeline is, if it is nothing else: how templates write what would be taken for an
    /// action.
    pub(crate) fn literal(&self, pipe: &Pipe) -> Option<&str> {
        match (self.declared_variables(pipe), self.commands(pipe)) {
            ([], [only]) => match self.args(only) {
                [Operand::String { text, .. }] => Some(self.string(*text)),
                _ => None,
            },
            _ => None,
        }
    }

    /// What a command is made of: what is called, and its arguments.
    pub(crate) fn args(&self, command: &Command) -> &[Operand] {
        command.args.slice(&self.operands)
    }

    pub(crate) fn operand(&self, id: u32) -> &Operand {
        &self.operands[id as usize]
    }

    /// The names of a chain of fields.
    pub(crate) fn fields(&self, fields: Span) -> impl DoubleEndedIterator<Item = Name<'_>> {
        let fields = fields.slice(&self.fields).iter();
        fields.map(|field| Name { text: &self.names[field.name as usize], found: &field.found })
    }

    /// The name of a variable, with its `$`.
    pub(crate) fn variable(&self, id: u32) -> &SmolStr {
        &self.variables[id as usize]
    }

    pub(crate) fn string(&self, id: u32) -> &SmolStr {
        &self.strings[id as usize]
    }

    pub(crate) fn number(&self, id: u32) -> &Number {
        &self.numbers[id as usize]
    }
}

/// A field where it is named.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: u32,
    found: AtomicU32,
}

impl Field {
    pub(super) fn new(name: u32) -> Self {
        Self { name, found: AtomicU32::new(0) }
    }
}

/// The name of a field, where it is named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'p> {
    pub(crate) text: &'p SmolStr,
    found: &'p AtomicU32,
}

impl Name<'_> {
    /// At which entry of a map it was found last.
    pub(crate) fn last_entry(self) -> usize {
        self.found.load(Ordering::Relaxed) as usize
    }

    /// Says at which entry of a map it was found.
    pub(crate) fn find_at(self, entry: usize) {
        self.found.store(entry as u32, Ordering::Relaxed);
    }
}

/// One parsed template.
#[derive(Debug)]
pub struct Tree {
    pub(crate) name: SmolStr,
    pub(crate) source: Arc<Source>,
    pub(crate) root: List,
    pub(super) is_empty: bool,
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
        &self.source.name
    }

    /// The parsed text.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// Whether there is nothing but space and comments.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }
}

pub(crate) type Pos = u32;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    pub(super) nodes: Span,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    Text {
        from: Pos,
        to: Pos,
    },
    /// Positions in the pipe are from `start` on.
    Action {
        start: Pos,
        pipe: u32,
    },
    If(u32),
    With(u32),
    Range(u32),
    /// Positions in the call are from `start` on.
    Template {
        start: Pos,
        call: u32,
    },
    Break {
        pos: Pos,
    },
    Continue {
        pos: Pos,
    },
}

#[derive(Debug)]
pub(crate) struct Branch {
    /// Positions in the pipe are from here on.
    pub(crate) start: Pos,
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
