//! Nodes as text, for error messages.

use super::node::{
    Branch, Call, Command, List, Node, Operand, Parts, Pipe, Pos, Source, Span, Tree, Variable,
};
use tiphys_gocompat::strconv;

/// What an error message quotes.
#[derive(Clone, Copy)]
pub(crate) enum Quoted<'t> {
    None,
    Node(&'t Node),
    Pipe(&'t Pipe),
    Operand(&'t Operand),
    Command(&'t Command),
}

impl Quoted<'_> {
    /// Where it stands in a text, in the action that begins at `start`.
    pub(crate) fn pos(self, source: &Source, start: Pos) -> Pos {
        let parts = &source.parts;
        match self {
            Self::None => 0,
            Self::Node(node) => match node {
                Node::Text { from, .. } => *from,
                Node::Action { start, pipe } => start + parts.pipe(*pipe).pos,
                Node::Break { pos } | Node::Continue { pos } => *pos,
                Node::If(branch) | Node::With(branch) | Node::Range(branch) => {
                    let branch = source.branch(*branch);
                    branch.start + parts.pipe(branch.pipe).pos
                }
                Node::Template { start, call } => start + parts.call(*call).pos,
            },
            Self::Pipe(pipe) => start + pipe.pos,
            Self::Operand(operand) => start + operand.pos(),
            Self::Command(command) => start + parts.args(command).first().map_or(0, Operand::pos),
        }
    }
}

impl Tree {
    /// The text of a node as Go's `String` methods give it; what is no node stands in the action that begins
    /// at `start`.
    pub(crate) fn quote(&self, quoted: Quoted<'_>, start: Pos) -> String {
        let mut printer = Printer { source: &self.source, start, out: String::new() };
        match quoted {
            Quoted::None => {}
            Quoted::Node(node) => printer.node(node),
            Quoted::Pipe(pipe) => printer.pipe(pipe),
            Quoted::Operand(operand) => printer.operand(operand),
            Quoted::Command(command) => printer.command(command),
        }
        printer.out
    }

    /// `NAME:LINE:COLUMN` of a position, with the line from 1 and the column in bytes from 0 – on the first
    /// line, as in Go, and everywhere.
    pub(crate) fn line_column(&self, pos: u32) -> (usize, usize) {
        let before = &self.source.text.as_bytes()[..pos as usize];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let column =
            before.iter().rposition(|byte| *byte == b'\n').map_or(before.len(), |at| before.len() - at - 1);
        (line, column)
    }
}

struct Printer<'t> {
    source: &'t Source,
    /// Where the action begins that is being printed.
    start: Pos,
    out: String,
}

impl<'t> Printer<'t> {
    fn parts(&self) -> &'t Parts {
        &self.source.parts
    }

    fn list(&mut self, list: List) {
        for node in self.source.nodes(list) {
            self.node(node);
        }
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Text { from, to } => self.out.push_str(&self.source.text[*from as usize..*to as usize]),
            Node::Action { start, pipe } => {
                self.start = *start;
                self.out.push_str("{{");
                self.pipe(self.parts().pipe(*pipe));
                self.out.push_str("}}");
            }
            Node::If(branch) => self.branch("if", self.source.branch(*branch)),
            Node::With(branch) => self.branch("with", self.source.branch(*branch)),
            Node::Range(branch) => self.branch("range", self.source.branch(*branch)),
            Node::Template { start, call } => {
                self.start = *start;
                self.call(self.parts().call(*call));
            }
            Node::Break { .. } => self.out.push_str("{{break}}"),
            Node::Continue { .. } => self.out.push_str("{{continue}}"),
        }
    }

    fn branch(&mut self, keyword: &str, branch: &Branch) {
        self.out.push_str("{{");
        self.out.push_str(keyword);
        self.out.push(' ');
        self.start = branch.start;
        self.pipe(self.parts().pipe(branch.pipe));
        self.out.push_str("}}");
        self.list(branch.list);
        if let Some(list) = branch.else_list {
            self.out.push_str("{{else}}");
            self.list(list);
        }
        self.out.push_str("{{end}}");
    }

    fn call(&mut self, call: &Call) {
        self.out.push_str("{{template ");
        self.out.push_str(&strconv::quote(&call.name));
        if let Some(pipe) = call.pipe {
            self.out.push(' ');
            self.pipe(self.parts().pipe(pipe));
        }
        self.out.push_str("}}");
    }

    fn pipe(&mut self, pipe: &Pipe) {
        for (at, variable) in self.parts().declared_variables(pipe).iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            self.variable(variable);
        }
        if !pipe.variables.is_empty() {
            self.out.push_str(if pipe.assign { " = " } else { " := " });
        }
        for (at, command) in self.parts().commands(pipe).iter().enumerate() {
            if at > 0 {
                self.out.push_str(" | ");
            }
            self.command(command);
        }
    }

    fn command(&mut self, command: &Command) {
        for (at, arg) in self.parts().args(command).iter().enumerate() {
            if at > 0 {
                self.out.push(' ');
            }
            self.parenthesised(arg);
        }
    }

    fn parenthesised(&mut self, operand: &Operand) {
        if let Operand::Pipe { pipe, .. } = operand {
            self.out.push('(');
            self.pipe(self.parts().pipe(*pipe));
            self.out.push(')');
        } else {
            self.operand(operand);
        }
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Dot { .. } => self.out.push('.'),
            Operand::Nil { .. } => self.out.push_str("nil"),
            Operand::Bool { value, .. } => self.out.push_str(if *value { "true" } else { "false" }),
            Operand::Number { number, .. } => self.out.push_str(&self.parts().number(*number).text),
            Operand::String { pos, end, .. } | Operand::Function { pos, end, .. } => {
                let (from, to) = (self.start + pos, self.start + end);
                self.out.push_str(&self.source.text[from as usize..to as usize]);
            }
            Operand::Field { names, .. } => self.names(*names),
            Operand::Variable(variable) => self.variable(variable),
            Operand::Chain { base, names, .. } => {
                self.parenthesised(self.parts().operand(*base));
                self.names(*names);
            }
            Operand::Pipe { pipe, .. } => self.pipe(self.parts().pipe(*pipe)),
        }
    }

    fn variable(&mut self, variable: &Variable) {
        self.out.push_str(self.parts().variable(variable.id));
        self.names(variable.fields);
    }

    fn names(&mut self, names: Span) {
        for name in self.parts().fields(names) {
            self.out.push('.');
            self.out.push_str(name.text);
        }
    }
}
