//! The scanner: text and the tokens of actions.

use super::node::Pos;
use memchr::{memchr, memmem};
use std::sync::LazyLock;
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
}

impl Token {
    pub(super) const NONE: Self = Self { kind: Kind::Eof, from: 0, to: 0 };

    /// The line that the token begins in. Only errors ask for it, so that nobody counts lines but for them.
    pub(super) fn line(self, input: &str) -> usize {
        1 + memchr::memchr_iter(b'\n', &input.as_bytes()[..self.from as usize]).count()
    }

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

/// Finds the next action.
static ACTION: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(LEFT));
const LEFT: &str = "{{";
const RIGHT: &str = "}}";
/// Length of a trim marker: the minus and the space beside it.
const MARKER: usize = 2;

pub(super) struct Lexer<'s> {
    input: &'s str,
    pos: usize,
    start: usize,
    paren_depth: usize,
    in_action: bool,
    at_eof: bool,
    /// Whether the last right delimiter trims what follows.
    trims: bool,
    /// What the first error token is about.
    pub(super) fault: Option<Box<str>>,
    /// The character that the fault is about, if it is one.
    pub(super) bad_character: Option<char>,
    pub(super) break_is_keyword: bool,
    pub(super) continue_is_keyword: bool,
}

impl<'s> Lexer<'s> {
    pub(super) fn new(input: &'s str) -> Self {
        Self {
            input,
            pos: 0,
            start: 0,
            paren_depth: 0,
            in_action: false,
            at_eof: false,
            trims: false,
            fault: None,
            bad_character: None,
            break_is_keyword: true,
            continue_is_keyword: true,
        }
    }

    #[inline]
    pub(super) fn next_token(&mut self) -> Token {
        if !self.in_action {
            return self.text();
        }
        let (first, second) = (self.byte(0), self.byte(1));
        // What most tokens begin with, none of it a right delimiter.
        match BEGINS[usize::from(first)] {
            Begin::Word => self.identifier(),
            Begin::Space if !matches!(second, b' ' | b'\t' | b'\r' | b'\n' | b'-') => {
                self.pos += 1;
                self.emit(Kind::Space)
            }
            Begin::Dot if matches!(BEGINS[usize::from(second)], Begin::Word) => self.word(Kind::Field),
            Begin::Dollar => self.word(Kind::Variable),
            Begin::Quote => self.quoted('"', Kind::String, "unterminated quoted string"),
            Begin::Brace if second == b'}' && self.paren_depth == 0 => {
                self.pos += 2;
                self.in_action = false;
                self.trims = false;
                self.emit(Kind::RightDelim)
            }
            _ => self.inside_action(),
        }
    }

    /// Where the next token begins, unless it is a right delimiter that trims.
    pub(super) fn position(&self) -> usize {
        self.start
    }

    /// The text from a position on.
    pub(super) fn text_from(&self, position: usize) -> &'s [u8] {
        &self.input.as_bytes()[position..]
    }

    pub(super) fn is_in_action(&self) -> bool {
        self.in_action
    }

    /// Whether the right delimiter of the action that was read last trims what follows.
    pub(super) fn trims(&self) -> bool {
        self.trims
    }

    /// Whether the action that begins here defines a template.
    pub(super) fn is_definition(&self) -> bool {
        const WORD: &[u8] = b"define";
        after_space(self.text_from(self.start)).strip_prefix(WORD).is_some_and(|rest| match rest {
            [] | [b'}', b'}', ..] => true,
            [byte, ..] => ENDS_WORD[usize::from(*byte)],
        })
    }

    /// Whether nothing but space is left of the action.
    pub(super) fn is_at_end(&self) -> bool {
        let rest = self.text_from(self.pos);
        match after_space(rest) {
            [b'}', b'}', ..] => true,
            [b'-', b'}', b'}', ..] => rest[0] != b'-',
            _ => false,
        }
    }

    /// Moves over an action that was read before, up to and with its right delimiter; that.
    pub(super) fn skip_action(&mut self, length: usize, trims: bool) -> Token {
        self.pos += length;
        let to = self.pos as Pos;
        if trims {
            self.skip_space();
        }
        self.ignore();
        self.in_action = false;
        Token { kind: Kind::RightDelim, from: to - RIGHT.len() as Pos, to }
    }

    /// Moves over the space inside of an action that belongs to no trim marker.
    #[inline]
    pub(super) fn skip_blank(&mut self) {
        if !self.in_action || !is_space(self.byte(0)) {
            return;
        }
        self.skip_space();
        self.pos -= 1;
        if self.right_delim_here().is_none() {
            self.pos += 1;
        }
        self.ignore();
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
        }
    }

    fn emit(&mut self, kind: Kind) -> Token {
        let token = Token { kind, from: self.start as Pos, to: self.pos as Pos };
        self.ignore();
        token
    }

    fn ignore(&mut self) {
        self.start = self.pos;
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
        self.input = "";
        (self.pos, self.start) = (0, 0);
        Token { kind: Kind::Error, from: at, to: at }
    }

    /// Text up to the next action, without the space that a trim marker removes.
    fn text(&mut self) -> Token {
        loop {
            let Some(length) = self.up_to_action() else {
                self.pos = self.input.len();
                return self.emit(if self.pos > self.start { Kind::Text } else { Kind::Eof });
            };
            if length > 0 {
                self.pos += length;
                let mut trim = 0;
                if has_left_marker(&self.input.as_bytes()[self.pos + LEFT.len()..]) {
                    let text = &self.input.as_bytes()[self.start..self.pos];
                    trim = text.iter().rev().take_while(|byte| is_space(**byte)).count();
                }
                self.pos -= trim;
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

    /// Bytes before the next left delimiter.
    fn up_to_action(&self) -> Option<usize> {
        ACTION.find(&self.input.as_bytes()[self.pos..])
    }

    /// The delimiter, or nothing after skipping a comment.
    fn left_delim(&mut self) -> Option<Token> {
        self.pos += LEFT.len();
        let rest = &self.input.as_bytes()[self.pos..];
        let marker = if has_left_marker(rest) { MARKER } else { 0 };
        if rest[marker..].starts_with(b"/*") {
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
        self.pos += RIGHT.len();
        if trim {
            self.pos += MARKER;
            self.skip_space();
        }
        self.ignore();
        None
    }

    fn skip_space(&mut self) {
        self.pos = self.input.len() - after_space(self.text_from(self.pos)).len();
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
        self.trims = trim;
        token
    }

    fn inside_action(&mut self) -> Token {
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
            '\'' => self.after_mark('\'', Kind::CharConstant, "unterminated character constant"),
            '`' => self.raw_string(),
            '.' if self.peek().is_some_and(|c| !c.is_ascii_digit()) => self.after_sign(Kind::Field),
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

    #[inline]
    fn at_terminator(&self) -> bool {
        match self.input.as_bytes().get(self.pos) {
            None => true,
            Some(byte) => ENDS_WORD[usize::from(*byte)] || (*byte == b'}' && self.byte(1) == b'}'),
        }
    }

    /// Moves over letters, digits and underscores.
    #[inline]
    fn skip_word(&mut self) {
        let rest = &self.input.as_bytes()[self.pos..];
        let length = rest.iter().position(|byte| !IN_WORD[usize::from(*byte)]).unwrap_or(rest.len());
        self.pos += length;
        if rest.get(length).is_some_and(|byte| !byte.is_ascii()) {
            self.accept_run(is_alphanumeric);
        }
    }

    fn bad_character(&mut self) -> Token {
        let c = self.peek().unwrap_or('\u{FFFD}');
        self.bad_character.get_or_insert(c);
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

    /// A field or variable that begins here.
    fn word(&mut self, kind: Kind) -> Token {
        self.pos += 1;
        self.after_sign(kind)
    }

    /// A field or variable whose first character has been read.
    #[inline]
    fn after_sign(&mut self, kind: Kind) -> Token {
        if self.at_terminator() {
            return self.emit(if kind == Kind::Variable { kind } else { Kind::Dot });
        }
        self.skip_word();
        if !self.at_terminator() {
            return self.bad_character();
        }
        self.emit(kind)
    }

    /// A literal that begins here.
    fn quoted(&mut self, mark: char, kind: Kind, unterminated: &str) -> Token {
        self.pos += 1;
        self.after_mark(mark, kind, unterminated)
    }

    /// A literal whose first mark has been read.
    #[inline]
    fn after_mark(&mut self, mark: char, kind: Kind, unterminated: &str) -> Token {
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

/// What a token may be that begins with a byte.
#[derive(Clone, Copy)]
enum Begin {
    /// An identifier or keyword: a letter or an underscore.
    Word,
    Space,
    Dot,
    Dollar,
    Quote,
    Brace,
    Other,
}

static BEGINS: [Begin; 256] = {
    let mut table = [Begin::Other; 256];
    let mut byte = 0;
    while byte < 128 {
        if IN_WORD[byte] && !(byte as u8).is_ascii_digit() {
            table[byte] = Begin::Word;
        }
        byte += 1;
    }
    table[b' ' as usize] = Begin::Space;
    table[b'.' as usize] = Begin::Dot;
    table[b'$' as usize] = Begin::Dollar;
    table[b'"' as usize] = Begin::Quote;
    table[b'}' as usize] = Begin::Brace;
    table
};

/// Whether a byte may stand behind a word; two closing braces may, too.
static ENDS_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let ends = b" \t\r\n.,|:)(";
    let mut at = 0;
    while at < ends.len() {
        table[ends[at] as usize] = true;
        at += 1;
    }
    table
};

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

fn after_space(text: &[u8]) -> &[u8] {
    let blank = text.iter().take_while(|byte| is_space(**byte)).count();
    &text[blank..]
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || unicode::is_letter(c) || unicode::is_digit(c)
}

fn has_left_marker(text: &[u8]) -> bool {
    matches!(text, [b'-', b' ' | b'\t' | b'\r' | b'\n', ..])
}

fn has_right_marker(text: &str) -> bool {
    matches!(text.as_bytes(), [b' ' | b'\t' | b'\r' | b'\n', b'-', ..])
}

/// `%#U`
fn describe_char(c: char) -> String {
    let shown = if unicode::is_print(c) { format!(" '{c}'") } else { String::new() };
    format!("U+{:04X}{shown}", u32::from(c))
}
