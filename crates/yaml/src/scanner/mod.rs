//! The scanner: text into tokens, by libyaml's algorithm as go-yaml maintains it.
//!
//! go-yaml v2 and v3 share it up to comments (v3 only) and the lookahead that these need, which
//! decides whether a scanner or a parser fault is found first.

mod comments;
mod directives;
mod fetch;
mod scalars;
mod token;

use std::{borrow::Cow, collections::VecDeque};

use crate::{Profile, chars::*};

use token::PendingComment;
pub(crate) use token::{FaultSource, Mark, Scan, ScanError, TagText, Token, TokenKind};

/// go-yaml reads its input in pieces of this many bytes and looks for forbidden characters piecewise.
const READ_CHUNK: usize = 512;
/// It looks this far ahead at indicators.
const READ_AHEAD: usize = 4;
/// A key without `?` must end within this many characters.
const SIMPLE_KEY_LENGTH: u32 = 1024;
/// Open collections at one time. go-yaml allows 10,000, which trees on a thread's stack do not.
pub(crate) const MAX_DEPTH: usize = 512;

/// A place where a key may have begun before its `:` is seen.
#[derive(Clone, Copy, Default)]
struct SimpleKey {
    possible: bool,
    /// Whether the token's turn waits for the `:`.
    awaited: bool,
    required: bool,
    token_number: usize,
    mark: Mark,
}

pub(crate) struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    index: u32,
    line: u32,
    column: u32,
    /// Line breaks since the last character that is not blank.
    newlines: u32,
    /// go-yaml v3: collect comments.
    keep_comments: bool,
    /// Where the piece of input starts that go-yaml would refuse to read, and the character's offset.
    unreadable: Option<(usize, usize)>,
    /// Tokens that the parser has not taken yet.
    tokens: VecDeque<Token<'a>>,
    tokens_taken: usize,
    token_available: bool,
    stream_started: bool,
    indent: i32,
    indents: Vec<i32>,
    flow_level: usize,
    simple_key_allowed: bool,
    simple_keys: Vec<SimpleKey>,
    pub(crate) comments: VecDeque<PendingComment>,
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of `text`; a byte order mark is skipped.
    pub(crate) fn new(text: &'a str, profile: Profile) -> Self {
        let start = if text.starts_with('\u{FEFF}') { 3 } else { 0 };
        let unreadable = find_forbidden(text).map(|at| {
            let chunk = at / READ_CHUNK * READ_CHUNK;
            (chunk, at)
        });
        let readable = unreadable.map_or(text, |(_, at)| &text[..at]);
        Self {
            text: readable,
            bytes: readable.as_bytes(),
            pos: start,
            index: 0,
            line: 0,
            column: 0,
            newlines: 0,
            keep_comments: profile == Profile::Go3,
            unreadable,
            tokens: VecDeque::with_capacity(16),
            tokens_taken: 0,
            token_available: false,
            stream_started: false,
            indent: -1,
            indents: Vec::new(),
            flow_level: 0,
            simple_key_allowed: false,
            simple_keys: Vec::new(),
            comments: VecDeque::new(),
        }
    }

    /// The next token, which stays; comments that belong to it wait in `self.comments`.
    #[inline]
    pub(crate) fn peek(&mut self) -> Scan<&Token<'a>> {
        if !self.token_available {
            self.fetch_more_tokens()?;
        }
        Ok(self.tokens.front().expect("fetching made a token available"))
    }

    /// Takes the token that was peeked.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Token<'a>> {
        self.token_available = false;
        self.tokens_taken += 1;
        self.tokens.pop_front()
    }

    /// Where the scanner stands.
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark { offset: self.pos as u32, index: self.index, line: self.line, column: self.column }
    }

    #[inline(always)]
    fn byte_at(&self, ahead: usize) -> u8 {
        byte(self.bytes, self.pos + ahead)
    }

    /// Whether the stream is over here.
    #[inline]
    fn at_end(&self) -> bool {
        self.byte_at(0) == 0
    }

    fn fault<T>(&self, context: Mark, problem: impl Into<Cow<'static, str>>) -> Scan<T> {
        self.fault_at(FaultSource::Scanner, context, self.mark(), problem.into())
    }

    /// A fault at a mark; if go-yaml could not have read that far, a reader fault instead.
    pub(crate) fn fault_at<T>(
        &self,
        source: FaultSource,
        context: Mark,
        mark: Mark,
        problem: Cow<'static, str>,
    ) -> Scan<T> {
        self.check_readable()?;
        Err(Box::new(ScanError { source, problem, mark, context }))
    }

    /// Fails if go-yaml would have come upon a forbidden character by now.
    #[inline]
    pub(crate) fn check_readable(&self) -> Scan<()> {
        match self.unreadable {
            Some((chunk, _)) if self.pos + READ_AHEAD > chunk => Err(Box::new(self.unreadable_fault())),
            _ => Ok(()),
        }
    }

    fn unreadable_fault(&self) -> ScanError {
        let offset = self.unreadable.map_or(self.pos, |(_, at)| at);
        let line_start = self.text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let mark = Mark {
            offset: offset as u32,
            index: 0,
            line: self.text[..offset].matches('\n').count() as u32,
            column: self.text[line_start..offset].chars().count() as u32,
        };
        ScanError {
            source: FaultSource::Reader,
            problem: "control characters are not allowed".into(),
            mark,
            context: Mark::default(),
        }
    }

    /// Moves over one character that is no line break.
    #[inline]
    fn skip(&mut self) {
        let b = self.byte_at(0);
        if b != b' ' && b != b'\t' {
            self.newlines = 0;
        }
        self.pos += char_width(b);
        self.index += 1;
        self.column += 1;
    }

    /// Moves over `count` bytes of one line, at least one of which is not blank.
    #[inline]
    fn skip_run(&mut self, end: usize, chars: u32) {
        self.newlines = 0;
        self.pos = end;
        self.index += chars;
        self.column += chars;
    }

    /// Moves to `end` on the same line, counting characters.
    fn skip_to(&mut self, end: usize) {
        let text = &self.text[self.pos..end];
        if text.bytes().any(|b| b != b' ' && b != b'\t') {
            self.newlines = 0;
        }
        let chars = text.chars().count() as u32;
        self.pos = end;
        self.index += chars;
        self.column += chars;
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while is_blank(self.bytes, self.pos) {
            self.pos += 1;
            self.index += 1;
            self.column += 1;
        }
    }

    /// Moves over a line break, if there is one, and returns it as folded text has it.
    #[inline]
    fn read_line(&mut self) -> &'static str {
        let (width, chars, text) = match self.byte_at(0) {
            b'\r' if self.byte_at(1) == b'\n' => (2, 2, "\n"),
            b'\n' | b'\r' => (1, 1, "\n"),
            0xC2 if self.byte_at(1) == 0x85 => (2, 1, "\n"),
            0xE2 if self.byte_at(1) == 0x80 && self.byte_at(2) == 0xA8 => (3, 1, "\u{2028}"),
            0xE2 if self.byte_at(1) == 0x80 && self.byte_at(2) == 0xA9 => (3, 1, "\u{2029}"),
            _ => return "",
        };
        self.pos += width;
        self.index += chars;
        self.column = 0;
        self.line += 1;
        self.newlines += 1;
        text
    }

    /// The offset of the next line break or the end.
    #[inline]
    fn line_end(&self) -> usize {
        let mut at = self.pos;
        while at < self.bytes.len() {
            match self.bytes[at] {
                b'\n' | b'\r' => break,
                0xC2 | 0xE2 if is_break(self.bytes, at) => break,
                _ => at += 1,
            }
        }
        at
    }
}

/// Bytes of the character that starts with `lead`; 1 at the end of the stream.
#[inline(always)]
fn char_width(lead: u8) -> usize {
    match lead {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xFF => 4,
        _ => 1,
    }
}
