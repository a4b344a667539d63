//! The scanner: text and the tokens of actions.

use super::node::Pos;
use memchr::{memchr, memmem};
use tiphys_gocompat::{fmt, strconv, unicode};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Kind {
    fn keyword(word: &str) -> Option<Self> {
        Some(match word {
            "." => Self::Dot,
            "block" => Self::Block,
            "break" => Self::Break,
            "continue" => Self::Continue,
            "define" => Self::Define,
            "else" => Self::Else,
            "end" => Self::End,
            "if" => Self::If,
            "range" => Self::Range,
            "nil" => Self::Nil,
            "template" => Self::Template,
            "with" => Self::With,
            _ => return None,
        })
    }

    fn is_keyword(self) -> bool {
        self as u8 >= Self::Block as u8
    }
}

/// A token: a part of the input. The text of an error is [`Lexer::fault`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) from: Pos,
    pub(super) to: Pos,
    pub(super) line: u32,
}

impl Token {
    pub(super) const NONE: Self = Self { kind: Kind::Eof, from: 0, to: 0, line: 0 };

    /// The token as error messages show it.
    pub(super) fn describe(self, input: &str) -> String {
        let text = &input[self.from as usize..self.to as usize];
        match self.kind {
            Kind::Eof => "EOF".to_owned(),
            kind if kind.is_keyword() => format!("<{text}>"),
            _ if text.len() > 10 => fmt::sprintf("%.10q...", &[&text]),
            _ => strconv::quote(text),
        }
    }
}

const LEFT: &str = "{{";
const RIGHT: &str = "}}";
/// Length of a trim marker: the minus and the space beside it.
const MARKER: usize = 2;

pub(super) struct Lexer<'s> {
    input: &'s str,
    pos: usize,
    start: usize,
    line: u32,
    start_line: u32,
    paren_depth: usize,
    in_action: bool,
    at_eof: bool,
    left: memmem::Finder<'static>,
    /// What the first error token is about.
    pub(super) fault: Option<Box<str>>,
    pub(super) break_is_keyword: bool,
    pub(super) continue_is_keyword: bool,
}

impl<'s> Lexer<'s> {
    pub(super) fn new(input: &'s str) -> Self {
        Self {
            input,
            pos: 0,
            start: 0,
            line: 1,
            start_line: 1,
            paren_depth: 0,
            in_action: false,
            at_eof: false,
            left: memmem::Finder::new(LEFT),
            fault: None,
            break_is_keyword: true,
            continue_is_keyword: true,
        }
    }

    pub(super) fn next_token(&mut self) -> Token {
        if self.in_action { self.inside_action() } else { self.text() }
    }

    fn rest(&self) -> &'s str {
        &self.input[self.pos..]
    }

    fn next(&mut self) -> Option<char> {
        let Some(c) = self.rest().chars().next() else {
            self.at_eof = true;
            return None;
        };
        self.pos += c.len_utf8();
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The byte so far ahead; 0 behind the end.
    fn byte(&self, ahead: usize) -> u8 {
        self.input.as_bytes().get(self.pos + ahead).copied().unwrap_or(0)
    }

    fn backup(&mut self) {
        if self.at_eof {
            return;
        }
        if let Some(c) = self.input[..self.pos].chars().next_back() {
            self.pos -= c.len_utf8();
            if c == '\n' {
                self.line -= 1;
            }
        }
    }

    fn emit(&mut self, kind: Kind) -> Token {
        let token = Token { kind, from: self.start as Pos, to: self.pos as Pos, line: self.start_line };
        self.start = self.pos;
        self.start_line = self.line;
        token
    }

    fn newlines(&self) -> u32 {
        let skipped = &self.input.as_bytes()[self.start..self.pos];
        skipped.iter().map(|byte| u32::from(*byte == b'\n')).sum()
    }

    fn ignore(&mut self) {
        self.line += self.newlines();
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn accept(&mut self, valid: impl Fn(char) -> bool) -> bool {
        match self.peek() {
            Some(c) if valid(c) => {
                self.next();
                true
            }
            Some(_) => false,
            None => {
                self.at_eof = true;
                false
            }
        }
    }

    fn accept_run(&mut self, valid: impl Fn(char) -> bool) {
        while self.accept(&valid) {}
    }

    fn error(&mut self, message: impl Into<String>) -> Token {
        let message: String = message.into();
        self.fault.get_or_insert(message.into_boxed_str());
        let at = self.start as Pos;
        let token = Token { kind: Kind::Error, from: at, to: at, line: self.start_line };
        self.input = "";
        (self.pos, self.start, self.in_action) = (0, 0, self.in_action);
        token
    }

    /// Text up to the next action, without the space that a trim marker removes.
    fn text(&mut self) -> Token {
        loop {
            let Some(length) = self.left.find(self.rest().as_bytes()) else {
                self.pos = self.input.len();
                if self.pos > self.start {
                    self.line += self.newlines();
                    return self.emit(Kind::Text);
                }
                return self.emit(Kind::Eof);
            };
            if length > 0 {
                self.pos += length;
                let mut trim = 0;
                if has_left_marker(&self.input[self.pos + LEFT.len()..]) {
                    let text = &self.input.as_bytes()[self.start..self.pos];
                    trim = text.iter().rev().take_while(|byte| is_space(**byte)).count();
                }
                self.pos -= trim;
                self.line += self.newlines();
                let token = self.emit(Kind::Text);
                self.pos += trim;
                self.ignore();
                if token.to > token.from {
                    return token;
                }
            }
            if let Some(token) = self.left_delim() {
                return token;
            }
        }
    }

    /// The delimiter, or nothing after skipping a comment.
    fn left_delim(&mut self) -> Option<Token> {
        self.pos += LEFT.len();
        let marker = if has_left_marker(self.rest()) { MARKER } else { 0 };
        if self.input[self.pos + marker..].starts_with("/*") {
            self.pos += marker;
            self.ignore();
            return self.comment();
        }
        let token = self.emit(Kind::LeftDelim);
        self.in_action = true;
        self.pos += marker;
        self.ignore();
        self.paren_depth = 0;
        Some(token)
    }

    fn comment(&mut self) -> Option<Token> {
        self.pos += 2;
        let Some(length) = self.rest().find("*/") else {
            return Some(self.error("unclosed comment"));
        };
        self.pos += length + 2;
        let Some(trim) = self.right_delim_here() else {
            return Some(self.error("comment ends before closing delimiter"));
        };
        self.line += self.newlines();
        self.start = self.pos;
        self.start_line = self.line;
        self.pos += RIGHT.len();
        if trim {
            self.pos += MARKER;
            self.skip_space();
        }
        self.ignore();
        None
    }

    fn skip_space(&mut self) {
        let rest = &self.input.as_bytes()[self.pos..];
        self.pos += rest.iter().take_while(|byte| is_space(**byte)).count();
    }

    /// Whether a right delimiter starts here, and whether it trims.
    fn right_delim_here(&self) -> Option<bool> {
        match &self.input.as_bytes()[self.pos..] {
            [b'}', b'}', ..] => Some(false),
            [b' ' | b'\t' | b'\r' | b'\n', b'-', b'}', b'}', ..] => Some(true),
            _ => None,
        }
    }

    fn right_delim(&mut self) -> Token {
        let trim = self.right_delim_here() == Some(true);
        if trim {
            self.pos += MARKER;
            self.ignore();
        }
        self.pos += RIGHT.len();
        let token = self.emit(Kind::RightDelim);
        if trim {
            self.skip_space();
            self.ignore();
        }
        self.in_action = false;
        token
    }

    fn inside_action(&mut self) -> Token {
        // What most tokens begin with, none of it a right delimiter.
        let (first, second) = (self.byte(0), self.byte(1));
        match first {
            b' ' if !matches!(second, b' ' | b'\t' | b'\r' | b'\n' | b'-') => {
                self.pos += 1;
                return self.emit(Kind::Space);
            }
            b'.' if IN_WORD[usize::from(second)] && !second.is_ascii_digit() => {
                self.pos += 1;
                return self.field_or_variable(Kind::Field);
            }
            b'$' => {
                self.pos += 1;
                return self.field_or_variable(Kind::Variable);
            }
            b'"' => {
                self.pos += 1;
                return self.quoted('"', Kind::String, "unterminated quoted string");
            }
            first if IN_WORD[usize::from(first)] && !first.is_ascii_digit() => return self.identifier(),
            _ => {}
        }
        if self.right_delim_here().is_some() {
            return if self.paren_depth == 0 {
                self.right_delim()
            } else {
                self.error("unclosed left paren")
            };
        }
        let Some(c) = self.next() else {
            return self.error("unclosed action");
        };
        match c {
            ' ' | '\t' | '\r' | '\n' => {
                self.backup();
                self.space()
            }
            '=' => self.emit(Kind::Assign),
            ':' if self.next() == Some('=') => self.emit(Kind::Declare),
            ':' => self.error("expected :="),
            '|' => self.emit(Kind::Pipe),
            '\'' => self.quoted('\'', Kind::CharConstant, "unterminated character constant"),
            '`' => self.raw_string(),
            '.' if self.peek().is_some_and(|c| !c.is_ascii_digit()) => self.field_or_variable(Kind::Field),
            '.' | '+' | '-' | '0'..='9' => {
                self.backup();
                self.number()
            }
            c if is_alphanumeric(c) => self.identifier(),
            '(' => {
                self.paren_depth += 1;
                self.emit(Kind::LeftParen)
            }
            ')' if self.paren_depth == 0 => self.error("unexpected right paren"),
            ')' => {
                self.paren_depth -= 1;
                self.emit(Kind::RightParen)
            }
            c if c.is_ascii() && unicode::is_print(c) => self.emit(Kind::Char),
            c => self.error(format!("unrecognized character in action: {}", describe_char(c))),
        }
    }

    fn space(&mut self) -> Token {
        let mut count = 0;
        while is_space(self.byte(0)) {
            self.next();
            count += 1;
        }
        // The last space may belong to a closing trim marker.
        let from_last = &self.input[self.pos - 1..];
        if has_right_marker(from_last) && from_last[MARKER..].starts_with(RIGHT) {
            self.backup();
            if count == 1 {
                return self.right_delim();
            }
        }
        self.emit(Kind::Space)
    }

    fn at_terminator(&self) -> bool {
        match self.input.as_bytes().get(self.pos) {
            None | Some(b' ' | b'\t' | b'\r' | b'\n' | b'.' | b',' | b'|' | b':' | b')' | b'(') => true,
            Some(b'}') => self.byte(1) == b'}',
            Some(_) => false,
        }
    }

    /// Moves over letters, digits and underscores.
    fn skip_word(&mut self) {
        loop {
            let rest = &self.input.as_bytes()[self.pos..];
            let word = |byte: &u8| IN_WORD[usize::from(*byte)];
            let length = rest.iter().position(|byte| !word(byte)).unwrap_or(rest.len());
            self.pos += length;
            if rest.get(length).is_none_or(u8::is_ascii) || !self.accept(is_alphanumeric) {
                return;
            }
        }
    }

    fn bad_character(&mut self) -> Token {
        let c = self.peek().unwrap_or('\u{FFFD}');
        self.error(format!("bad character {}", describe_char(c)))
    }

    fn identifier(&mut self) -> Token {
        self.skip_word();
        if !self.at_terminator() {
            return self.bad_character();
        }
        let word = &self.input[self.start..self.pos];
        match Kind::keyword(word) {
            Some(Kind::Break) if !self.break_is_keyword => self.emit(Kind::Identifier),
            Some(Kind::Continue) if !self.continue_is_keyword => self.emit(Kind::Identifier),
            Some(keyword) => self.emit(keyword),
            None if matches!(word, "true" | "false") => self.emit(Kind::Bool),
            None => self.emit(Kind::Identifier),
        }
    }

    fn field_or_variable(&mut self, kind: Kind) -> Token {
        if self.at_terminator() {
            return self.emit(if kind == Kind::Variable { kind } else { Kind::Dot });
        }
        self.skip_word();
        if !self.at_terminator() {
            return self.bad_character();
        }
        self.emit(kind)
    }

    fn quoted(&mut self, mark: char, kind: Kind, unterminated: &str) -> Token {
        let mark = mark as u8;
        loop {
            let rest = &self.input.as_bytes()[self.pos..];
            let stop = |byte: &u8| *byte == mark || matches!(byte, b'\\' | b'\n');
            let Some(length) = rest.iter().position(stop) else { return self.error(unterminated) };
            self.pos += length + 1;
            match rest[length] {
                b'\n' => return self.error(unterminated),
                b'\\' if matches!(self.next(), None | Some('\n')) => return self.error(unterminated),
                b'\\' => {}
                _ => return self.emit(kind),
            }
        }
    }

    fn raw_string(&mut self) -> Token {
        let rest = &self.input.as_bytes()[self.pos..];
        let Some(length) = memchr(b'`', rest) else { return self.error("unterminated raw quoted string") };
        self.pos += length + 1;
        self.line += self.newlines();
        self.emit(Kind::RawString)
    }

    fn number(&mut self) -> Token {
        let ok = self.scan_number();
        if ok && !matches!(self.peek(), Some('+' | '-')) {
            return self.emit(Kind::Number);
        }
        // A second part makes it complex: 1+2i.
        if ok && self.scan_number() && self.input[..self.pos].ends_with('i') {
            return self.emit(Kind::Complex);
        }
        self.error(format!("bad number syntax: {}", strconv::quote(&self.input[self.start..self.pos])))
    }

    fn scan_number(&mut self) -> bool {
        self.accept(|c| matches!(c, '+' | '-'));
        let mut radix = 10;
        if self.accept(|c| c == '0') {
            if self.accept(|c| matches!(c, 'x' | 'X')) {
                radix = 16;
            } else if self.accept(|c| matches!(c, 'o' | 'O')) {
                radix = 8;
            } else if self.accept(|c| matches!(c, 'b' | 'B')) {
                radix = 2;
            }
        }
        let digit = move |c: char| c == '_' || c.is_digit(radix);
        self.accept_run(digit);
        if self.accept(|c| c == '.') {
            self.accept_run(digit);
        }
        let has_exponent = (radix == 10 && self.accept(|c| matches!(c, 'e' | 'E')))
            || (radix == 16 && self.accept(|c| matches!(c, 'p' | 'P')));
        if has_exponent {
            self.accept(|c| matches!(c, '+' | '-'));
            self.accept_run(|c| c == '_' || c.is_ascii_digit());
        }
        self.accept(|c| c == 'i');
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }
}

/// Whether a byte is a letter, a digit or an underscore.
static IN_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || unicode::is_letter(c) || unicode::is_digit(c)
}

fn has_left_marker(text: &str) -> bool {
    matches!(text.as_bytes(), [b'-', b' ' | b'\t' | b'\r' | b'\n', ..])
}

fn has_right_marker(text: &str) -> bool {
    matches!(text.as_bytes(), [b' ' | b'\t' | b'\r' | b'\n', b'-', ..])
}

/// `%#U`
fn describe_char(c: char) -> String {
    let shown = if unicode::is_print(c) { format!(" '{c}'") } else { String::new() };
    format!("U+{:04X}{shown}", u32::from(c))
}
