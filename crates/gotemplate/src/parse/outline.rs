//! The syntax of a template as plain data, for programs that read templates and do not execute them.

use smol_str::SmolStr;

use super::node::{List, Node, Operand, Parts, Pipe, Span, Tree, Variable};

/// A step of a template.
#[derive(Clone, Debug)]
pub enum Step {
    /// `{{ pipeline }}`
    Action(Pipeline),
    /// `{{ if pipeline }}`, `{{ with pipeline }}` and `{{ range pipeline }}`
    Branch {
        /// Which of them.
        kind: BranchKind,
        /// What is asked.
        pipeline: Pipeline,
        /// What is done then.
        body: Vec<Step>,
        /// What is done else.
        otherwise: Vec<Step>,
    },
    /// `{{ template "name" pipeline }}`
    Call {
        /// The template.
        name: SmolStr,
        /// What it is given.
        argument: Option<Pipeline>,
    },
}

/// What a branch does with its pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchKind {
    /// Asks whether it is true.
    If,
    /// Makes it the dot, if it is true.
    With,
    /// Makes each of its elements the dot.
    Range,
}

/// Commands, each of which gets the result of the one before as its last argument.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    /// Variables that are declared or assigned, with their `$`.
    pub variables: Vec<SmolStr>,
    /// Whether they are assigned (`=`) and not declared (`:=`).
    pub is_assignment: bool,
    /// Each the operands of a command, what is called first.
    pub commands: Vec<Vec<Term>>,
}

/// An operand of a command.
#[derive(Clone, Debug)]
pub enum Term {
    /// `.`
    Dot,
    /// `nil`, a number or a truth value, as it is written.
    Constant(SmolStr),
    /// A string.
    Text(SmolStr),
    /// `.a.b`
    Field(Vec<SmolStr>),
    /// `$x.a.b`, with its `$`.
    Variable(SmolStr, Vec<SmolStr>),
    /// A function's name.
    Function(SmolStr),
    /// `(…).a.b`, or `(…)`.
    Nested(Box<Pipeline>, Vec<SmolStr>),
}

impl Tree {
    /// The template's steps; text between them is left out.
    pub fn outline(&self) -> Vec<Step> {
        self.outline_list(self.root)
    }

    fn outline_list(&self, list: List) -> Vec<Step> {
        self.source.nodes(list).iter().filter_map(|node| self.outline_node(node)).collect()
    }

    fn outline_node(&self, node: &Node) -> Option<Step> {
        let parts: &Parts = &self.source.parts;
        let (kind, branch) = match node {
            Node::Text { .. } | Node::Break { .. } | Node::Continue { .. } => return None,
            Node::Action { start, pipe } => {
                return Some(Step::Action(self.outline_pipe(parts.pipe(*pipe), *start)));
            }
            Node::Template { start, call } => {
                let call = parts.call(*call);
                let argument = call.pipe.map(|pipe| self.outline_pipe(parts.pipe(pipe), *start));
                return Some(Step::Call { name: call.name.clone(), argument });
            }
            Node::If(branch) => (BranchKind::If, *branch),
            Node::With(branch) => (BranchKind::With, *branch),
            Node::Range(branch) => (BranchKind::Range, *branch),
        };
        let branch = self.source.branch(branch);
        Some(Step::Branch {
            kind,
            pipeline: self.outline_pipe(parts.pipe(branch.pipe), branch.start),
            body: self.outline_list(branch.list),
            otherwise: branch.else_list.map(|list| self.outline_list(list)).unwrap_or_default(),
        })
    }

    fn outline_pipe(&self, pipe: &Pipe, start: u32) -> Pipeline {
        let parts: &Parts = &self.source.parts;
        let terms = |command| parts.args(command).iter().map(|term| self.outline_term(term, start)).collect();
        let name = |variable: &Variable| parts.variable(variable.id).clone();
        Pipeline {
            variables: parts.declared_variables(pipe).iter().map(name).collect(),
            is_assignment: pipe.assign,
            commands: parts.commands(pipe).iter().map(terms).collect(),
        }
    }

    fn outline_term(&self, operand: &Operand, start: u32) -> Term {
        let parts: &Parts = &self.source.parts;
        let names = |names: Span| parts.fields(names).map(|name| name.text.clone()).collect();
        match operand {
            Operand::Dot { .. } => Term::Dot,
            Operand::Nil { .. } => Term::Constant("nil".into()),
            Operand::Bool { value, .. } => Term::Constant(if *value { "true" } else { "false" }.into()),
            Operand::Number { number, .. } => Term::Constant(parts.number(*number).text.clone()),
            Operand::String { text, .. } => Term::Text(parts.string(*text).clone()),
            Operand::Field { names: fields, .. } => Term::Field(names(*fields)),
            Operand::Variable(variable) => {
                Term::Variable(parts.variable(variable.id).clone(), names(variable.fields))
            }
            Operand::Function { pos, end, .. } => {
                let (from, to) = ((start + pos) as usize, (start + end) as usize);
                Term::Function(SmolStr::new(&self.source.text[from..to]))
            }
            Operand::Chain { base, names: fields, .. } => match parts.operand(*base) {
                Operand::Pipe { pipe, .. } => {
                    Term::Nested(Box::new(self.outline_pipe(parts.pipe(*pipe), start)), names(*fields))
                }
                other => {
                    let commands = vec![vec![self.outline_term(other, start)]];
                    Term::Nested(Box::new(Pipeline { commands, ..Pipeline::default() }), names(*fields))
                }
            },
            Operand::Pipe { pipe, .. } => {
                Term::Nested(Box::new(self.outline_pipe(parts.pipe(*pipe), start)), Vec::new())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Functions, TemplateSet};

    #[test]
    fn steps_show_what_a_template_reads() {
        let mut set = TemplateSet::new(Arc::new(Functions::sprig()));
        let text = r#"x{{ with .Values.a }}{{ $b := (dict "k" .c).k | default "d" }}{{ else }}{{ template "t" $ }}{{ end }}"#;
        set.parse("one", text).expect("is parsed");
        let steps = set.get("one").expect("is there").outline();
        let [Step::Branch { kind: BranchKind::With, pipeline, body, otherwise }] = steps.as_slice() else {
            panic!("{steps:?}");
        };
        assert!(matches!(&pipeline.commands[0][0], Term::Field(path) if path == &["Values", "a"]));
        let [Step::Action(declared)] = body.as_slice() else { panic!("{body:?}") };
        assert_eq!(
            (declared.variables.as_slice(), declared.is_assignment),
            ([SmolStr::new("$b")].as_slice(), false)
        );
        assert!(matches!(&declared.commands[0][0], Term::Nested(inner, path)
            if path == &["k"] && matches!(&inner.commands[0][0], Term::Function(name) if name == "dict")));
        assert!(matches!(&declared.commands[1][1], Term::Text(text) if text == "d"));
        let [Step::Call { name, argument: Some(argument) }] = otherwise.as_slice() else {
            panic!("{otherwise:?}")
        };
        assert_eq!(name, "t");
        assert!(
            matches!(&argument.commands[0][0], Term::Variable(name, path) if name == "$" && path.is_empty())
        );
    }
}
