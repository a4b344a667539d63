//! The parser: texts, lists of nodes and control structures. Its steps and look-ahead follow Go's, so that
//! errors name the same token and line.

use super::action_cache::{Action, Control, Head, Variables};
use super::batch::{Defined, NAMELESS, Parsing};
use super::lex::{Kind, Lexer, Token};
use super::node::{Branch, Call, List, Node, Pos, Span};
use crate::{ParseError, ParseFault};
use smol_str::SmolStr;
use tiphys_gocompat::strconv;

/// How deep parentheses and control structures may nest, each.
pub(super) const MAX_DEPTH: usize = 1000;
/// Stack left below which a new segment is made, and its size.
const RED_ZONE: usize = 64 << 10;
const STACK: usize = 1 << 20;
/// How deep a text may nest before anybody asks how much stack is left: to answer that for the first time the
/// system reads a file.
const SHALLOW: usize = 10;

/// Runs something at a depth, on more stack if little is left.
pub(super) fn at_depth<R>(depth: usize, run: impl FnOnce() -> R) -> R {
    if depth < SHALLOW { run() } else { stacker::maybe_grow(RED_ZONE, STACK, run) }
}

/// Parses a text into the trees that it defines.
pub(super) fn parse(name: &str, text: &str, parsing: &mut Parsing) -> Result<Vec<Defined>, ParseError> {
    if text.len() > u32::MAX as usize {
        return Err(ParseError {
            name: name.to_owned(),
            line: 1,
            message: "template too large".to_owned(),
            fault: None,
        });
    }
    let mut shared = Shared {
        lexer: Lexer::new(text),
        // No file has the name of what has none yet, and no error tells it.
        name: if name == NAMELESS { "" } else { name },
        text,
        parsing,
        trees: Vec::new(),
        nesting: 0,
        start: 0,
        variables: Variables::default(),
    };
    let functions = &shared.parsing.functions;
    shared.lexer.break_is_keyword = functions.id("break").is_none();
    shared.lexer.continue_is_keyword = functions.id("continue").is_none();
    let mut parser = Parser::new(&mut shared, SmolStr::new(name));
    parser.top_level().and_then(|root| parser.define(root)).map_err(|error| *error)?;
    Ok(shared.trees)
}

/// What all trees of a text share.
pub(super) struct Shared<'s> {
    pub(super) lexer: Lexer<'s>,
    name: &'s str,
    pub(super) text: &'s str,
    pub(super) parsing: &'s mut Parsing,
    trees: Vec<Defined>,
    pub(super) nesting: usize,
    /// Where the action begins that is being read.
    pub(super) start: Pos,
    /// The variables of that action.
    pub(super) variables: Variables,
}

/// Moves what was gathered since `from` to the other parts of its kind.
pub(super) fn move_since<T: Copy>(open: &mut Vec<T>, from: usize, parts: &mut Vec<T>) -> Span {
    let span = Span::adding(parts, &open[from..]);
    open.truncate(from);
    span
}

/// Adds a part; its place.
pub(super) fn push_part<T>(parts: &mut Vec<T>, part: T) -> u32 {
    parts.push(part);
    (parts.len() - 1) as u32
}

/// What ended a list of nodes.
enum Ending {
    End,
    Else,
    /// The control structure that follows `else` at once.
    ElseControl(Opened),
}

impl Ending {
    fn text(&self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else | Self::ElseControl(_) => "{{else}}",
        }
    }
}

enum Item {
    Node(Node),
    End(Ending),
}

/// A control structure up to its list.
struct Opened {
    control: Control,
    start: Pos,
    pipe: u32,
    /// How many variables were in scope before it.
    scope: usize,
}

/// The state of one tree.
pub(super) struct Parser<'p, 's> {
    pub(super) shared: &'p mut Shared<'s>,
    name: SmolStr,
    tokens: [Token; 3],
    peeked: usize,
    /// Variables in scope.
    pub(super) scope: Vec<u32>,
    /// The delimiter of the action being read.
    action: Option<Token>,
    range_depth: usize,
    pub(super) paren_depth: usize,
}

/// Errors are boxed, because they are rare and results are everywhere.
pub(super) type Parsed<T> = Result<T, Box<ParseError>>;

impl<'p, 's> Parser<'p, 's> {
    fn new(shared: &'p mut Shared<'s>, name: SmolStr) -> Self {
        Self {
            shared,
            name,
            tokens: [Token::NONE; 3],
            peeked: 0,
            scope: vec![0],
            action: None,
            range_depth: 0,
            paren_depth: 0,
        }
    }

    // Tokens

    pub(super) fn next(&mut self) -> Token {
        if self.peeked > 0 {
            self.peeked -= 1;
        } else {
            self.tokens[0] = self.shared.lexer.next_token();
        }
        self.tokens[self.peeked]
    }

    pub(super) fn backup(&mut self) {
        self.peeked += 1;
    }

    pub(super) fn backup2(&mut self, first: Token) {
        self.tokens[1] = first;
        self.peeked = 2;
    }

    pub(super) fn backup3(&mut self, second: Token, first: Token) {
        self.tokens[1] = first;
        self.tokens[2] = second;
        self.peeked = 3;
    }

    pub(super) fn peek(&mut self) -> Token {
        if self.peeked == 0 {
            self.peeked = 1;
            self.tokens[0] = self.shared.lexer.next_token();
        }
        self.tokens[self.peeked - 1]
    }

    pub(super) fn next_non_space(&mut self) -> Token {
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

    pub(super) fn peek_non_space(&mut self) -> Token {
        let token = self.next_non_space();
        self.backup();
        token
    }

    pub(super) fn text(&self, token: Token) -> &'s str {
        &self.shared.text[token.from as usize..token.to as usize]
    }

    /// Where a token stands in the action being read.
    pub(super) fn place(&self, token: Token) -> Pos {
        token.from - self.shared.start
    }

    // Errors

    pub(super) fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(Box::new(ParseError {
            name: self.shared.name.to_owned(),
            line: self.tokens[0].line(self.shared.text),
            message: message.into(),
            fault: None,
        }))
    }

    /// An error of a sort that callers tell from others.
    pub(super) fn error_of<T>(&self, fault: ParseFault, message: impl Into<String>) -> Parsed<T> {
        self.error(message).map_err(|error| Box::new(ParseError { fault: Some(fault), ..*error }))
    }

    pub(super) fn unexpected_token<T>(&self, token: Token, context: &str) -> Parsed<T> {
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
            let message = format!("{text}{extra}");
            return match self.shared.lexer.bad_character {
                Some(c) => self.error_of(ParseFault::BadCharacter(c), message),
                None => self.error(message),
            };
        }
        self.error(format!("unexpected {} in {context}", token.describe(self.shared.text)))
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Parsed<Token> {
        let token = self.next_non_space();
        if token.kind == kind { Ok(token) } else { self.unexpected_token(token, context) }
    }

    // Lists

    fn top_level(&mut self) -> Parsed<List> {
        let from = self.shared.parsing.open.nodes.len();
        loop {
            let token = self.next();
            if token.kind == Kind::Eof {
                break;
            }
            if token.kind == Kind::LeftDelim && self.shared.lexer.is_definition() {
                self.next_non_space();
                Parser::new(self.shared, SmolStr::default()).definition()?;
                continue;
            }
            match self.text_or_action(token, None)? {
                Item::Node(node) => self.shared.parsing.open.nodes.push(node),
                Item::End(end) => return self.error(format!("unexpected {}", end.text())),
            }
        }
        Ok(self.list(from))
    }

    /// The list of the nodes since `from`.
    fn list(&mut self, from: usize) -> List {
        let open = &mut self.shared.parsing.open;
        List { nodes: move_since(&mut open.nodes, from, &mut open.closed) }
    }

    fn definition(mut self) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let token = self.next_non_space();
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return self.unexpected_token(token, CONTEXT);
        }
        self.name = self.unquote(token)?;
        self.expect(Kind::RightDelim, CONTEXT)?;
        let (list, end) = self.item_list(None)?;
        if !matches!(end, Ending::End) {
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
        let is_empty = root.nodes.slice(&self.shared.parsing.open.closed).iter().all(is_blank);
        let tree = Defined { name: self.name.clone(), root, is_empty };
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

    pub(super) fn unquote(&self, token: Token) -> Parsed<SmolStr> {
        match strconv::unquote(self.text(token)) {
            Ok(text) => Ok(SmolStr::new(text)),
            Err(error) => self.error(error.to_string()),
        }
    }

    /// Reads nodes up to what ends them. `within` is the control structure that an `else` may be of.
    fn item_list(&mut self, within: Option<Control>) -> Parsed<(List, Ending)> {
        let from = self.shared.parsing.open.nodes.len();
        loop {
            let token = self.next_non_space();
            if token.kind == Kind::Eof {
                return self.error("unexpected EOF");
            }
            match self.text_or_action(token, within)? {
                Item::Node(node) => self.shared.parsing.open.nodes.push(node),
                Item::End(end) => return Ok((self.list(from), end)),
            }
        }
    }

    fn text_or_action(&mut self, token: Token, within: Option<Control>) -> Parsed<Item> {
        match token.kind {
            Kind::Text => Ok(Item::Node(Node::Text { from: token.from, to: token.to })),
            Kind::LeftDelim => {
                self.action = Some(token);
                let item = self.action(within)?;
                self.action = None;
                Ok(item)
            }
            _ => self.unexpected_token(token, "input"),
        }
    }

    // Actions

    fn action(&mut self, within: Option<Control>) -> Parsed<Item> {
        let (start, scope) = (self.shared.lexer.position() as Pos, self.scope.len());
        let head = match self.recall(within) {
            Some(head) => head,
            None => self.read(start, within)?,
        };
        let opened = |control, pipe| Opened { control, start, pipe, scope };
        Ok(Item::Node(match head {
            Head::Text { from, to } => Node::Text { from: start + from, to: start + to },
            Head::Pipe(pipe) => Node::Action { start, pipe },
            Head::Template(call) => Node::Template { start, call },
            Head::Control(control, pipe) => self.control(opened(control, pipe))?,
            Head::Break(pos) => self.jump("{{break}}", Node::Break { pos: start + pos })?,
            Head::Continue(pos) => self.jump("{{continue}}", Node::Continue { pos: start + pos })?,
            Head::Else => return Ok(Item::End(Ending::Else)),
            Head::ElseControl(control, pipe) => {
                return Ok(Item::End(Ending::ElseControl(opened(control, pipe))));
            }
            Head::End => return Ok(Item::End(Ending::End)),
        }))
    }

    /// The action that begins here, if it was read before.
    fn recall(&mut self, within: Option<Control>) -> Option<Head> {
        let Shared { lexer, parsing, .. } = &mut *self.shared;
        let scope = self.scope.len();
        let Action { head, length, trims } =
            parsing.known.recall(lexer.text_from(lexer.position()), &mut self.scope)?;
        if let Head::ElseControl(control, _) = head
            && Some(control) != within
        {
            self.scope.truncate(scope);
            return None;
        }
        self.tokens[0] = lexer.skip_action(length, trims);
        Some(head)
    }

    /// Reads the action that begins here.
    fn read(&mut self, start: Pos, within: Option<Control>) -> Parsed<Head> {
        self.shared.start = start;
        self.shared.variables.clear();
        let token = self.next_non_space();
        let head = self.head(token, within)?;
        let Shared { lexer, parsing, variables, .. } = &mut *self.shared;
        // A block is read to its end, and what follows an `else` that does not fit is left to be refused.
        if token.kind != Kind::Block && !lexer.is_in_action() {
            let text = lexer.text_from(start as usize);
            let length = (self.tokens[0].to - start) as usize;
            parsing.known.keep(text, Action { head, length, trims: lexer.trims() }, variables);
        }
        Ok(head)
    }

    fn head(&mut self, token: Token, within: Option<Control>) -> Parsed<Head> {
        Ok(match token.kind {
            Kind::Block => self.block()?,
            Kind::Break => Head::Break(self.lone(token, "{{break}}")?),
            Kind::Continue => Head::Continue(self.lone(token, "{{continue}}")?),
            Kind::Else => return self.else_head(within),
            Kind::End => {
                self.expect(Kind::RightDelim, "end")?;
                Head::End
            }
            Kind::If => self.control_head(Control::If)?,
            Kind::Range => self.control_head(Control::Range)?,
            Kind::With => self.control_head(Control::With)?,
            Kind::Template => self.template()?,
            Kind::String | Kind::RawString if self.is_plain(token) => {
                let (from, to) = (self.place(token) + 1, token.to - 1 - self.shared.start);
                self.next_non_space();
                Head::Text { from, to }
            }
            _ => {
                self.backup();
                Head::Pipe(self.pipeline("command", Kind::RightDelim)?)
            }
        })
    }

    /// Whether a string is all of an action and prints what stands there. What prints nothing but space is
    /// left to be an action: to Go it is more than text is.
    fn is_plain(&self, token: Token) -> bool {
        let text = self.text(token);
        let is_written_out = match token.kind {
            Kind::RawString => memchr::memchr(b'\r', text.as_bytes()).is_none(),
            _ => memchr::memchr(b'\\', text.as_bytes()).is_none(),
        };
        is_written_out && !text[1..text.len() - 1].trim().is_empty() && self.shared.lexer.is_at_end()
    }

    fn control_head(&mut self, control: Control) -> Parsed<Head> {
        Ok(Head::Control(control, self.pipeline(control.context(), Kind::RightDelim)?))
    }

    /// Reads to the end of an action that is one word; where that stands.
    fn lone(&mut self, token: Token, shown: &str) -> Parsed<Pos> {
        let next = self.next_non_space();
        if next.kind != Kind::RightDelim {
            return self.unexpected_token(next, shown);
        }
        Ok(self.place(token))
    }

    fn jump(&self, shown: &str, node: Node) -> Parsed<Node> {
        if self.range_depth == 0 {
            return self.error(format!("{shown} outside {{{{range}}}}"));
        }
        Ok(node)
    }

    fn else_head(&mut self, within: Option<Control>) -> Parsed<Head> {
        let control = match self.peek_non_space().kind {
            Kind::If => Control::If,
            Kind::With => Control::With,
            _ => {
                self.expect(Kind::RightDelim, "else")?;
                return Ok(Head::Else);
            }
        };
        // Go leaves the second keyword to whoever asked for the list; where it does not fit, nobody takes it.
        if within != Some(control) {
            return Ok(Head::Else);
        }
        self.next();
        Ok(Head::ElseControl(control, self.pipeline(control.context(), Kind::RightDelim)?))
    }

    fn control(&mut self, opened: Opened) -> Parsed<Node> {
        if self.shared.nesting >= MAX_DEPTH {
            return self.error("max nesting depth exceeded");
        }
        self.shared.nesting += 1;
        let control = opened.control;
        let branch = at_depth(self.shared.nesting, || self.branch(opened));
        self.shared.nesting -= 1;
        let branch = push_part(&mut self.shared.parsing.open.branches, branch?);
        Ok(match control {
            Control::If => Node::If(branch),
            Control::With => Node::With(branch),
            Control::Range => Node::Range(branch),
        })
    }

    fn branch(&mut self, opened: Opened) -> Parsed<Branch> {
        let Opened { control, start, pipe, scope } = opened;
        self.range_depth += usize::from(control == Control::Range);
        let (list, end) = self.item_list(Some(control))?;
        self.range_depth -= usize::from(control == Control::Range);
        let else_list = match end {
            Ending::End => None,
            Ending::Else => Some(self.else_list()?),
            Ending::ElseControl(opened) => {
                let (node, from) = (self.control(opened)?, self.shared.parsing.open.nodes.len());
                self.shared.parsing.open.nodes.push(node);
                Some(self.list(from))
            }
        };
        self.scope.truncate(scope);
        Ok(Branch { start, pipe, list, else_list })
    }

    fn else_list(&mut self) -> Parsed<List> {
        let (list, end) = self.item_list(None)?;
        if !matches!(end, Ending::End) {
            return self.error(format!("expected end; found {}", end.text()));
        }
        Ok(list)
    }

    fn block(&mut self) -> Parsed<Head> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let (pos, name) = (self.place(token), self.template_name(token, CONTEXT)?);
        let pipe = self.pipeline(CONTEXT, Kind::RightDelim)?;
        if self.shared.nesting >= MAX_DEPTH {
            return self.error("max nesting depth exceeded");
        }
        self.shared.nesting += 1;
        let mut block = Parser::new(self.shared, name.clone());
        let (list, end) = at_depth(block.shared.nesting, || block.item_list(None))?;
        if !matches!(end, Ending::End) {
            return self.error(format!("unexpected {} in {CONTEXT}", end.text()));
        }
        block.define(list)?;
        self.shared.nesting -= 1;
        Ok(self.call(Call { pos, name, pipe: Some(pipe) }))
    }

    fn template(&mut self) -> Parsed<Head> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(token, CONTEXT)?;
        let mut pipe = None;
        if self.next_non_space().kind != Kind::RightDelim {
            self.backup();
            pipe = Some(self.pipeline(CONTEXT, Kind::RightDelim)?);
        }
        Ok(self.call(Call { pos: self.place(token), name, pipe }))
    }

    fn call(&mut self, call: Call) -> Head {
        Head::Template(push_part(&mut self.shared.parsing.parts.calls, call))
    }

    fn template_name(&mut self, token: Token, context: &str) -> Parsed<SmolStr> {
        match token.kind {
            Kind::String | Kind::RawString => self.unquote(token),
            _ => self.unexpected_token(token, context),
        }
    }
}
