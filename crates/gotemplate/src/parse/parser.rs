//! The parser. Its steps and look-ahead follow Go's, so that errors name the same token and line.

use super::lex::{Kind, Lexer, Token};
use super::node::{
    Branch, Call, Command, List, Name, Node, Operand, Parts, Pipe, Pos, Source, Span, Tree, Variable,
};
use super::number;
use crate::{Functions, ParseError};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::{
    cell::Cell,
    sync::{Arc, OnceLock},
};
use tiphys_gocompat::strconv;

/// How deep parentheses and control structures may nest, each.
const MAX_DEPTH: usize = 1000;
/// Stack left below which a new segment is made, and its size.
const RED_ZONE: usize = 64 << 10;
const STACK: usize = 1 << 20;
/// How deep a text may nest before anybody asks how much stack is left: to answer that for the first time the system
/// reads a file.
const SHALLOW: usize = 10;

/// Runs something at a depth, on more stack if little is left.
fn at_depth<R>(depth: usize, run: impl FnOnce() -> R) -> R {
    if depth < SHALLOW { run() } else { stacker::maybe_grow(RED_ZONE, STACK, run) }
}

/// What a text is called whose name is not known yet; no file has it.
pub(super) const NAMELESS: &str = "\0";

thread_local! {
    /// What grew for the texts before, empty: to grow anew for each text takes longer than to parse it.
    static ROOM: Cell<Parts> = Cell::default();
}

/// Parses a text into the trees it defines: itself last, unless it defines its own name.
pub(crate) fn parse(name: &str, text: Arc<str>, functions: &Functions) -> Result<Vec<Tree>, ParseError> {
    if text.len() > u32::MAX as usize {
        return Err(ParseError { name: name.to_owned(), line: 1, message: "template too large".to_owned() });
    }
    let mut shared = Shared {
        lexer: Lexer::new(&text),
        // No file has the name of what has none yet, and no error tells it.
        name: if name == NAMELESS { "" } else { name },
        text: &text,
        functions,
        trees: Vec::new(),
        nesting: 0,
        parts: ROOM.take(),
        names: FxHashMap::default(),
        nodes: Vec::new(),
        commands: Vec::new(),
        operands: Vec::new(),
    };
    shared.lexer.break_is_keyword = functions.get("break").is_none();
    shared.lexer.continue_is_keyword = functions.get("continue").is_none();
    let mut parser = Parser::new(&mut shared, SmolStr::new(name));
    let parsed = parser.top_level().and_then(|root| parser.define(root)).map_err(|error| *error);
    let Shared { trees, parts: mut room, .. } = shared;
    let parts = room.take();
    ROOM.set(room);
    parsed?;
    let known = OnceLock::from(SmolStr::new(name));
    let name = if name == NAMELESS { OnceLock::new() } else { known };
    let source = Arc::new(Source { name, text, parts });
    Ok(trees.into_iter().map(|tree| tree.of(&source)).collect())
}

/// What all trees of a text share.
struct Shared<'s> {
    lexer: Lexer<'s>,
    name: &'s str,
    text: &'s str,
    functions: &'s Functions,
    trees: Vec<Defined>,
    nesting: usize,
    parts: Parts,
    /// Where the names of fields stand among the parts.
    names: FxHashMap<&'s str, u32>,
    /// Parts of what is still open, innermost last, until their number is known.
    nodes: Vec<Node>,
    commands: Vec<Command>,
    operands: Vec<Operand>,
}

/// A tree before its text is parsed to the end.
struct Defined {
    name: SmolStr,
    root: List,
    is_empty: bool,
    variables: Vec<SmolStr>,
}

impl Defined {
    fn of(self, source: &Arc<Source>) -> Tree {
        let Self { name, root, variables, .. } = self;
        let hash = name_hash(&name);
        Tree { name, source: source.clone(), root, variables, hash }
    }
}

/// Moves what was gathered since `from` to the other parts of its kind.
fn gathered<T: Copy>(open: &mut Vec<T>, from: usize, parts: &mut Vec<T>) -> Span {
    let start = parts.len() as u32;
    parts.extend_from_slice(&open[from..]);
    open.truncate(from);
    Span { from: start, to: parts.len() as u32 }
}

/// Adds a part; its place.
fn added<T>(parts: &mut Vec<T>, part: T) -> u32 {
    parts.push(part);
    (parts.len() - 1) as u32
}

/// What ended a list of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    End,
    Else,
}

impl End {
    fn text(self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

enum Item {
    Node(Node),
    End(End),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    If,
    With,
    Range,
}

impl Control {
    fn context(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::With => "with",
            Self::Range => "range",
        }
    }
}

/// The state of one tree.
struct Parser<'p, 's> {
    shared: &'p mut Shared<'s>,
    name: SmolStr,
    tokens: [Token; 3],
    peeked: usize,
    /// Names of all variables of the tree; the position is the variable's id.
    names: Vec<&'s str>,
    /// Variables in scope.
    scope: Vec<u32>,
    /// The delimiter of the action being read.
    action: Option<Token>,
    range_depth: usize,
    paren_depth: usize,
}

/// Errors are boxed, because they are rare and results are everywhere.
type Parsed<T> = Result<T, Box<ParseError>>;

impl<'p, 's> Parser<'p, 's> {
    fn new(shared: &'p mut Shared<'s>, name: SmolStr) -> Self {
        Self {
            shared,
            name,
            tokens: [Token::NONE; 3],
            peeked: 0,
            names: vec!["$"],
            scope: vec![0],
            action: None,
            range_depth: 0,
            paren_depth: 0,
        }
    }

    // Tokens

    fn next(&mut self) -> Token {
        if self.peeked > 0 {
            self.peeked -= 1;
        } else {
            self.tokens[0] = self.shared.lexer.next_token();
        }
        self.tokens[self.peeked]
    }

    fn backup(&mut self) {
        self.peeked += 1;
    }

    fn backup2(&mut self, first: Token) {
        self.tokens[1] = first;
        self.peeked = 2;
    }

    fn backup3(&mut self, second: Token, first: Token) {
        self.tokens[1] = first;
        self.tokens[2] = second;
        self.peeked = 3;
    }

    fn peek(&mut self) -> Token {
        if self.peeked == 0 {
            self.peeked = 1;
            self.tokens[0] = self.shared.lexer.next_token();
        }
        self.tokens[self.peeked - 1]
    }

    fn next_non_space(&mut self) -> Token {
        if self.peeked == 0 {
            self.shared.lexer.skip_blank();
        }
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> Token {
        let token = self.next_non_space();
        self.backup();
        token
    }

    fn text(&self, token: Token) -> &str {
        &self.shared.text[token.from as usize..token.to as usize]
    }

    // Errors

    fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(Box::new(ParseError {
            name: self.shared.name.to_owned(),
            line: self.tokens[0].line(self.shared.text),
            message: message.into(),
        }))
    }

    fn unexpected<T>(&self, token: Token, context: &str) -> Parsed<T> {
        if token.kind == Kind::Error
            && let Some(text) = &self.shared.lexer.fault
        {
            let mut extra = String::new();
            if let Some(line) = self.action.map(|delim| delim.line(self.shared.text))
                && line != token.line(self.shared.text)
            {
                let action = if text.ends_with(" action") { "" } else { " in action" };
                extra = format!("{action} started at {}:{line}", self.shared.name);
            }
            return self.error(format!("{text}{extra}"));
        }
        self.error(format!("unexpected {} in {context}", token.describe(self.shared.text)))
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Parsed<Token> {
        let token = self.next_non_space();
        if token.kind == kind { Ok(token) } else { self.unexpected(token, context) }
    }

    // Lists

    fn top_level(&mut self) -> Parsed<List> {
        let from = self.shared.nodes.len();
        loop {
            let token = self.next();
            if token.kind == Kind::Eof {
                break;
            }
            if token.kind == Kind::LeftDelim {
                if self.next_non_space().kind == Kind::Define {
                    Parser::new(self.shared, SmolStr::default()).definition()?;
                    continue;
                }
                self.backup();
            }
            match self.text_or_action(token)? {
                Item::Node(node) => self.shared.nodes.push(node),
                Item::End(end) => return self.error(format!("unexpected {}", end.text())),
            }
        }
        Ok(self.list(from))
    }

    /// The list of the nodes since `from`.
    fn list(&mut self, from: usize) -> List {
        List { nodes: gathered(&mut self.shared.nodes, from, &mut self.shared.parts.nodes) }
    }

    fn definition(mut self) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let token = self.next_non_space();
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return self.unexpected(token, CONTEXT);
        }
        self.name = self.unquote(token)?;
        self.expect(Kind::RightDelim, CONTEXT)?;
        let (list, end) = self.item_list()?;
        if end != End::End {
            return self.error(format!("unexpected {} in {CONTEXT}", end.text()));
        }
        self.define(list)
    }

    /// Adds the finished tree to the text's trees.
    fn define(self, root: List) -> Parsed<()> {
        let text = self.shared.text;
        let is_blank = |node: &Node| match node {
            Node::Text { from, to } => text[*from as usize..*to as usize].trim().is_empty(),
            _ => false,
        };
        let is_empty = self.shared.parts.nodes(root).iter().all(is_blank);
        let variables = self.names.iter().map(SmolStr::new).collect();
        let tree = Defined { name: self.name.clone(), root, is_empty, variables };
        match self.shared.trees.iter_mut().find(|other| other.name == tree.name) {
            None => self.shared.trees.push(tree),
            Some(other) if other.is_empty => *other = tree,
            Some(_) if tree.is_empty => {}
            Some(_) => {
                let name = strconv::quote(&self.name);
                return self.error(format!("template: multiple definition of template {name}"));
            }
        }
        Ok(())
    }

    fn unquote(&self, token: Token) -> Parsed<SmolStr> {
        match strconv::unquote(self.text(token)) {
            Ok(text) => Ok(SmolStr::new(text)),
            Err(error) => self.error(error.to_string()),
        }
    }

    fn item_list(&mut self) -> Parsed<(List, End)> {
        let from = self.shared.nodes.len();
        loop {
            let token = self.next_non_space();
            if token.kind == Kind::Eof {
                return self.error("unexpected EOF");
            }
            match self.text_or_action(token)? {
                Item::Node(node) => self.shared.nodes.push(node),
                Item::End(end) => return Ok((self.list(from), end)),
            }
        }
    }

    fn text_or_action(&mut self, token: Token) -> Parsed<Item> {
        match token.kind {
            Kind::Text => Ok(Item::Node(Node::Text { from: token.from, to: token.to })),
            Kind::LeftDelim => {
                self.action = Some(token);
                let item = self.action()?;
                self.action = None;
                Ok(item)
            }
            _ => self.unexpected(token, "input"),
        }
    }

    // Actions

    fn action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        let node = match token.kind {
            Kind::Block => self.block()?,
            Kind::Break => self.jump("{{break}}", Node::Break { pos: token.from })?,
            Kind::Continue => self.jump("{{continue}}", Node::Continue { pos: token.from })?,
            Kind::Else => return self.else_control(),
            Kind::End => {
                self.expect(Kind::RightDelim, "end")?;
                return Ok(Item::End(End::End));
            }
            Kind::If => self.control(Control::If)?,
            Kind::Range => self.control(Control::Range)?,
            Kind::With => self.control(Control::With)?,
            Kind::Template => self.template()?,
            _ => {
                self.backup();
                let (_, pipe) = self.pipeline("command", Kind::RightDelim)?;
                Node::Action { pos: token.from, pipe }
            }
        };
        Ok(Item::Node(node))
    }

    fn jump(&mut self, shown: &str, node: Node) -> Parsed<Node> {
        let token = self.next_non_space();
        if token.kind != Kind::RightDelim {
            return self.unexpected(token, shown);
        }
        if self.range_depth == 0 {
            return self.error(format!("{shown} outside {{{{range}}}}"));
        }
        Ok(node)
    }

    fn else_control(&mut self) -> Parsed<Item> {
        // `else if` and `else with` leave the second keyword for the caller.
        if !matches!(self.peek_non_space().kind, Kind::If | Kind::With) {
            self.expect(Kind::RightDelim, "else")?;
        }
        Ok(Item::End(End::Else))
    }

    fn control(&mut self, control: Control) -> Parsed<Node> {
        if self.shared.nesting >= MAX_DEPTH {
            return self.error("max nesting depth exceeded");
        }
        self.shared.nesting += 1;
        let branch = at_depth(self.shared.nesting + self.paren_depth, || self.branch(control));
        self.shared.nesting -= 1;
        let branch = added(&mut self.shared.parts.branches, branch?);
        Ok(match control {
            Control::If => Node::If(branch),
            Control::With => Node::With(branch),
            Control::Range => Node::Range(branch),
        })
    }

    fn branch(&mut self, control: Control) -> Parsed<Branch> {
        let scope = self.scope.len();
        let (pos, pipe) = self.pipeline(control.context(), Kind::RightDelim)?;
        self.range_depth += usize::from(control == Control::Range);
        let (list, end) = self.item_list()?;
        self.range_depth -= usize::from(control == Control::Range);
        let else_list = if end == End::Else { Some(self.else_list(control)?) } else { None };
        self.scope.truncate(scope);
        Ok(Branch { pos, pipe, list, else_list })
    }

    fn else_list(&mut self, control: Control) -> Parsed<List> {
        let chained =
            matches!((control, self.peek().kind), (Control::If, Kind::If) | (Control::With, Kind::With));
        if chained {
            self.next();
            let (node, from) = (self.control(control)?, self.shared.nodes.len());
            self.shared.nodes.push(node);
            return Ok(self.list(from));
        }
        let (list, end) = self.item_list()?;
        if end != End::End {
            return self.error(format!("expected end; found {}", end.text()));
        }
        Ok(list)
    }

    fn block(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.template_name(token, CONTEXT)?;
        let (_, pipe) = self.pipeline(CONTEXT, Kind::RightDelim)?;
        if self.shared.nesting >= MAX_DEPTH {
            return self.error("max nesting depth exceeded");
        }
        self.shared.nesting += 1;
        let mut block = Parser::new(self.shared, name.clone());
        let (list, end) = at_depth(block.shared.nesting, || block.item_list())?;
        if end != End::End {
            return self.error(format!("unexpected {} in {CONTEXT}", end.text()));
        }
        block.define(list)?;
        self.shared.nesting -= 1;
        Ok(self.call(Call { pos: token.from, name, pipe: Some(pipe) }))
    }

    fn template(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(token, CONTEXT)?;
        let mut pipe = None;
        if self.next_non_space().kind != Kind::RightDelim {
            self.backup();
            pipe = Some(self.pipeline(CONTEXT, Kind::RightDelim)?.1);
        }
        Ok(self.call(Call { pos: token.from, name, pipe }))
    }

    fn call(&mut self, call: Call) -> Node {
        Node::Template(added(&mut self.shared.parts.calls, call))
    }

    fn template_name(&mut self, token: Token, context: &str) -> Parsed<SmolStr> {
        match token.kind {
            Kind::String | Kind::RawString => self.unquote(token),
            _ => self.unexpected(token, context),
        }
    }

    // Pipelines

    /// Reads a pipeline; its position and its place among the parts.
    fn pipeline(&mut self, context: &str, end: Kind) -> Parsed<(Pos, u32)> {
        let first = self.peek_non_space();
        let pos = first.from;
        let declared = self.shared.parts.declared.len() as u32;
        let variables = Span { from: declared, to: declared };
        let mut pipe = Pipe { pos, assign: false, variables, commands: Span::default() };
        let from = self.shared.commands.len();
        while first.kind == Kind::Variable && self.declaration(&mut pipe, context)? {}
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => {
                    pipe.commands =
                        gathered(&mut self.shared.commands, from, &mut self.shared.parts.commands);
                    self.check_pipeline(&pipe, context)?;
                    return Ok((pos, added(&mut self.shared.parts.pipes, pipe)));
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
                    self.shared.commands.push(command);
                }
                _ => return self.unexpected(token, context),
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
                if context == "range" && self.shared.parts.declared(pipe).len() < 2 {
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
        let id = self.variable_id(token);
        self.scope.push(id);
        let variable = Variable { pos: token.from, id, fields: Span::default() };
        pipe.variables.to = added(&mut self.shared.parts.declared, variable) + 1;
    }

    fn variable_id(&mut self, token: Token) -> u32 {
        let name = &self.shared.text[token.from as usize..token.to as usize];
        let at = self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        at as u32
    }

    fn check_pipeline(&self, pipe: &Pipe, context: &str) -> Parsed<()> {
        if pipe.commands.is_empty() {
            return self.error(format!("missing value for {context}"));
        }
        let parts = &self.shared.parts;
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
        let from = self.shared.operands.len();
        let mut token = first;
        loop {
            if let Some(operand) = self.operand(token)? {
                self.shared.operands.push(operand);
            }
            match self.next() {
                Token { kind: Kind::Space, .. } => token = self.next_non_space(),
                Token { kind: Kind::RightDelim | Kind::RightParen, .. } => {
                    self.backup();
                    break;
                }
                Token { kind: Kind::Pipe, .. } => break,
                other => return self.unexpected(other, "operand"),
            }
        }
        let args = gathered(&mut self.shared.operands, from, &mut self.shared.parts.operands);
        if args.is_empty() {
            return self.error("empty command");
        }
        Ok(Command { args })
    }

    /// The operand that begins with a token; nothing, and the token is left, if none does.
    fn operand(&mut self, first: Token) -> Parsed<Option<Operand>> {
        if first.kind == Kind::Field {
            let (names, second) = self.fields(first);
            return Ok(Some(Operand::Field { pos: second.unwrap_or(first.from), names }));
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
        let (pos, (names, _)) = (next.from, self.fields(next));
        Ok(Some(match term {
            Operand::Variable(variable) => {
                Operand::Variable(Variable { pos, id: variable.id, fields: names })
            }
            Operand::Bool { value, .. } => return self.dot_after(if value { "true" } else { "false" }),
            Operand::String { pos, end, .. } => {
                return self.dot_after(&self.shared.text[pos as usize..end as usize]);
            }
            Operand::Number { number, .. } => {
                return self.dot_after(&self.shared.parts.number(number).text);
            }
            Operand::Nil { .. } => return self.dot_after("nil"),
            Operand::Dot { .. } => return self.dot_after("."),
            other => Operand::Chain { pos, base: added(&mut self.shared.parts.operands, other), names },
        }))
    }

    /// The names of a field and of those that follow it, and where the second one stands.
    fn fields(&mut self, first: Token) -> (Span, Option<Pos>) {
        let from = self.shared.parts.fields.len() as u32;
        let (mut token, mut second) = (first, None);
        loop {
            let name = self.name_id(token);
            let to = added(&mut self.shared.parts.fields, name) + 1;
            token = self.next();
            if token.kind != Kind::Field {
                self.backup();
                return (Span { from, to }, second);
            }
            second.get_or_insert(token.from);
        }
    }

    /// The place of a field's name among the parts.
    fn name_id(&mut self, token: Token) -> u32 {
        let name = &self.shared.text[token.from as usize + 1..token.to as usize];
        let names = &mut self.shared.parts.names;
        *self.shared.names.entry(name).or_insert_with(|| added(names, Name::new(name)))
    }

    fn dot_after<T>(&self, term: &str) -> Parsed<T> {
        self.error(format!("unexpected . after term {}", strconv::quote(term)))
    }

    /// The operand of one token, or in parentheses; nothing, and the token is left, if none begins with it.
    fn term(&mut self, token: Token) -> Parsed<Option<Operand>> {
        let pos = token.from;
        Ok(Some(match token.kind {
            Kind::Identifier => {
                let name = self.text(token);
                match self.shared.functions.id(name) {
                    Some(function) => Operand::Function { pos, end: token.to, function },
                    None => return self.error(format!("function {} not defined", strconv::quote(name))),
                }
            }
            Kind::Dot => Operand::Dot { pos },
            Kind::Nil => Operand::Nil { pos },
            Kind::Variable => self.use_variable(token)?,
            Kind::Bool => Operand::Bool { pos, value: self.text(token) == "true" },
            Kind::CharConstant | Kind::Complex | Kind::Number => {
                match number::parse(self.text(token), token.kind) {
                    Ok(number) => {
                        Operand::Number { pos, number: added(&mut self.shared.parts.numbers, number) }
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
                let (pos, pipe) = pipe?;
                Operand::Pipe { pos, pipe }
            }
            Kind::String | Kind::RawString => {
                let text = self.unquote(token)?;
                Operand::String { pos, end: token.to, text: added(&mut self.shared.parts.strings, text) }
            }
            _ => {
                self.backup();
                return Ok(None);
            }
        }))
    }

    fn use_variable(&mut self, token: Token) -> Parsed<Operand> {
        let id = self.variable_id(token);
        if !self.scope.contains(&id) {
            return self.error(format!("undefined variable {}", strconv::quote(self.text(token))));
        }
        Ok(Operand::Variable(Variable { pos: token.from, id, fields: Span::default() }))
    }
}

/// FNV-1a
pub(super) fn name_hash(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
