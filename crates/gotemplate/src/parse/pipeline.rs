//! The parser: pipelines, commands and operands.

use super::lex::{Kind, Token};
use super::node::{Command, Field, Operand, Parts, Pipe, Pos, Span, Variable};
use super::number;
use super::parser::{MAX_DEPTH, Parsed, Parser, at_depth, move_since, push_part};
use tiphys_gocompat::strconv;

impl<'s> Parser<'_, 's> {
    fn parts(&mut self) -> &mut Parts {
        &mut self.shared.parsing.parts
    }

    /// Reads a pipeline; its place among the parts.
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Parsed<u32> {
        let first = self.peek_non_space();
        let pos = self.place(first);
        let declared = self.parts().declared.len() as u32;
        let variables = Span { from: declared, to: declared };
        let mut pipe = Pipe { pos, assign: false, variables, commands: Span::default() };
        let from = self.shared.parsing.open.commands.len();
        while first.kind == Kind::Variable && self.declaration(&mut pipe, context)? {}
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => {
                    let parsing = &mut *self.shared.parsing;
                    pipe.commands = move_since(&mut parsing.open.commands, from, &mut parsing.parts.commands);
                    self.check_pipeline(&pipe, context)?;
                    return Ok(push_part(&mut self.parts().pipes, pipe));
                }
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParen => {
                    let command = self.command(token)?;
                    self.shared.parsing.open.commands.push(command);
                }
                _ => return self.unexpected_token(token, context),
            }
        }
    }

    /// Reads one declared variable; true if another one may follow.
    fn declaration(&mut self, pipe: &mut Pipe, context: &str) -> Parsed<bool> {
        let variable = self.peek_non_space();
        if variable.kind != Kind::Variable {
            return Ok(false);
        }
        self.next();
        // Spaces are tokens: `$x foo` needs a look at `foo` to know that $x is an argument.
        let after = self.peek();
        let next = self.peek_non_space();
        match next.kind {
            Kind::Assign | Kind::Declare => {
                pipe.assign = next.kind == Kind::Assign;
                self.next_non_space();
                self.declare(pipe, variable);
                Ok(false)
            }
            Kind::Char if self.text(next) == "," => {
                self.next_non_space();
                self.declare(pipe, variable);
                if context == "range" && self.parts().declared_variables(pipe).len() < 2 {
                    return match self.peek_non_space().kind {
                        Kind::Variable | Kind::RightDelim | Kind::RightParen => Ok(true),
                        _ => self.error("range can only initialize variables"),
                    };
                }
                self.error(format!("too many declarations in {context}"))
            }
            _ => {
                if after.kind == Kind::Space {
                    self.backup3(variable, after);
                } else {
                    self.backup2(variable);
                }
                Ok(false)
            }
        }
    }

    fn declare(&mut self, pipe: &mut Pipe, token: Token) {
        let id = self.shared.parsing.variable(self.text(token));
        self.scope.push(id);
        self.shared.variables.declared.push(id);
        let variable = Variable { pos: self.place(token), id, fields: Span::default() };
        pipe.variables.to = push_part(&mut self.parts().declared, variable) + 1;
    }

    fn check_pipeline(&self, pipe: &Pipe, context: &str) -> Parsed<()> {
        if pipe.commands.is_empty() {
            return self.error(format!("missing value for {context}"));
        }
        let parts = &self.shared.parsing.parts;
        for (at, command) in parts.commands(pipe).iter().enumerate().skip(1) {
            if matches!(
                parts.args(command)[0],
                Operand::Bool { .. }
                    | Operand::Dot { .. }
                    | Operand::Nil { .. }
                    | Operand::Number { .. }
                    | Operand::String { .. }
            ) {
                return self.error(format!("non executable command in pipeline stage {}", at + 1));
            }
        }
        Ok(())
    }

    /// Reads the command whose first token is that.
    fn command(&mut self, first: Token) -> Parsed<Command> {
        let from = self.shared.parsing.open.operands.len();
        let mut token = first;
        loop {
            if let Some(operand) = self.operand(token)? {
                self.shared.parsing.open.operands.push(operand);
            }
            match self.next() {
                Token { kind: Kind::Space, .. } => token = self.next_non_space(),
                Token { kind: Kind::RightDelim | Kind::RightParen, .. } => {
                    self.backup();
                    break;
                }
                Token { kind: Kind::Pipe, .. } => break,
                other => return self.unexpected_token(other, "operand"),
            }
        }
        let parsing = &mut *self.shared.parsing;
        let args = move_since(&mut parsing.open.operands, from, &mut parsing.parts.operands);
        if args.is_empty() {
            return self.error("empty command");
        }
        Ok(Command { args })
    }

    /// The operand that begins with a token; nothing, and the token is left, if none does.
    fn operand(&mut self, first: Token) -> Parsed<Option<Operand>> {
        if first.kind == Kind::Field {
            let (names, second) = self.fields(first);
            return Ok(Some(Operand::Field { pos: second.unwrap_or(self.place(first)), names }));
        }
        let Some(term) = self.term(first)? else {
            return Ok(None);
        };
        let next = self.next();
        if next.kind != Kind::Field {
            self.backup();
            return Ok(Some(term));
        }
        // Go gives the whole chain the position of its second part.
        let (pos, (names, _)) = (self.place(next), self.fields(next));
        Ok(Some(match term {
            Operand::Variable(variable) => {
                Operand::Variable(Variable { pos, id: variable.id, fields: names })
            }
            Operand::Bool { .. }
            | Operand::String { .. }
            | Operand::Number { .. }
            | Operand::Nil { .. }
            | Operand::Dot { .. } => return self.dot_after(first),
            other => Operand::Chain { pos, base: push_part(&mut self.parts().operands, other), names },
        }))
    }

    /// The names of a field and of those that follow it, and where the second one stands.
    fn fields(&mut self, first: Token) -> (Span, Option<Pos>) {
        let from = self.parts().fields.len() as u32;
        let (mut token, mut second) = (first, None);
        loop {
            let name = self.shared.parsing.name(&self.text(token)[1..]);
            let to = push_part(&mut self.parts().fields, Field::new(name)) + 1;
            token = self.next();
            if token.kind != Kind::Field {
                self.backup();
                return (Span { from, to }, second);
            }
            second.get_or_insert(self.place(token));
        }
    }

    fn dot_after<T>(&self, term: Token) -> Parsed<T> {
        self.error(format!("unexpected . after term {}", strconv::quote(self.text(term))))
    }

    /// The operand of one token, or in parentheses; nothing, and the token is left, if none begins with it.
    fn term(&mut self, token: Token) -> Parsed<Option<Operand>> {
        let (pos, end) = (self.place(token), token.to - self.shared.start);
        Ok(Some(match token.kind {
            Kind::Identifier => {
                let name = self.text(token);
                match self.shared.parsing.functions.id(name) {
                    Some(function) => Operand::Function { pos, end, function },
                    None => {
                        let message = format!("function {} not defined", strconv::quote(name));
                        return self.error_of(crate::ParseFault::UndefinedFunction, message);
                    }
                }
            }
            Kind::Dot => Operand::Dot { pos },
            Kind::Nil => Operand::Nil { pos },
            Kind::Variable => self.use_variable(token)?,
            Kind::Bool => Operand::Bool { pos, value: self.text(token) == "true" },
            Kind::CharConstant | Kind::Complex | Kind::Number => {
                match number::parse(self.text(token), token.kind) {
                    Ok(number) => {
                        Operand::Number { pos, number: push_part(&mut self.parts().numbers, number) }
                    }
                    Err(message) => return self.error(message),
                }
            }
            Kind::LeftParen => {
                if self.paren_depth >= MAX_DEPTH {
                    return self.error("max expression depth exceeded");
                }
                self.paren_depth += 1;
                let pipe = at_depth(self.shared.nesting + self.paren_depth, || {
                    self.pipeline("parenthesized pipeline", Kind::RightParen)
                });
                self.paren_depth -= 1;
                let pipe = pipe?;
                Operand::Pipe { pos: self.parts().pipe(pipe).pos, pipe }
            }
            Kind::String | Kind::RawString => {
                let text = self.unquote(token)?;
                Operand::String { pos, end, text: push_part(&mut self.parts().strings, text) }
            }
            _ => {
                self.backup();
                return Ok(None);
            }
        }))
    }

    fn use_variable(&mut self, token: Token) -> Parsed<Operand> {
        let id = self.shared.parsing.variable(self.text(token));
        if !self.scope.contains(&id) {
            return self.error(format!("undefined variable {}", strconv::quote(self.text(token))));
        }
        self.shared.variables.add_used(id);
        Ok(Operand::Variable(Variable { pos: self.place(token), id, fields: Span::default() }))
    }
}
