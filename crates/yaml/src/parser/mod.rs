//! The parser: tokens into events, by libyaml's state machine as go-yaml maintains it, with go-yaml
//! v3's attachment of comments.

mod block;
mod document;
mod event;
mod flow;
mod node;

use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
};

use crate::{
    Comments, Error, ErrorKind, Profile, Span,
    scanner::{FaultSource, MAX_DEPTH, Mark, Scan, ScanError, Scanner, TagText, TokenKind},
};
pub use event::{Event, EventKind, Properties};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    StreamStart,
    ImplicitDocumentStart,
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    BlockNode,
    BlockSequenceFirstEntry,
    BlockSequenceEntry,
    IndentlessSequenceEntry,
    BlockMappingFirstKey,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequenceFirstEntry,
    FlowSequenceEntry,
    FlowSequenceEntryMappingKey,
    FlowSequenceEntryMappingValue,
    FlowSequenceEntryMappingEnd,
    FlowMappingFirstKey,
    FlowMappingKey,
    FlowMappingValue,
    FlowMappingEmptyValue,
    End,
}

/// An iterator over the events of a YAML stream. It ends after [`EventKind::StreamEnd`] or the first
/// error.
pub struct Events<'a> {
    scanner: Scanner<'a>,
    profile: Profile,
    state: State,
    states: Vec<State>,
    /// Starts of open collections, for messages.
    marks: Vec<Mark>,
    /// By handle what it stands for.
    tag_directives: HashMap<String, String>,
    depth: usize,
    head_comment: String,
    line_comment: String,
    foot_comment: String,
    stem_comment: Option<String>,
}

impl<'a> Events<'a> {
    /// Events of a text, read as `profile` reads.
    pub fn new(text: &'a str, profile: Profile) -> Self {
        Self {
            scanner: Scanner::new(text, profile),
            profile,
            state: State::StreamStart,
            states: Vec::new(),
            marks: Vec::new(),
            tag_directives: HashMap::new(),
            depth: 0,
            head_comment: String::new(),
            line_comment: String::new(),
            foot_comment: String::new(),
            stem_comment: None,
        }
    }

    /// The next event; `None` after the end of the stream.
    ///
    /// # Errors
    /// The first syntax error, with go-yaml's text. The iterator ends there.
    #[inline]
    pub fn next_event(&mut self) -> Result<Option<Event<'a>>, Error> {
        if self.state == State::End {
            return Ok(None);
        }
        let event = self.step();
        match event.and_then(|event| self.scanner.check_readable().map(|()| event)) {
            Ok(event) => Ok(Some(event)),
            Err(fault) => {
                self.state = State::End;
                Err(to_error(&fault, self.profile))
            }
        }
    }

    fn step(&mut self) -> Scan<Event<'a>> {
        match self.state {
            State::StreamStart => self.stream_start(),
            State::ImplicitDocumentStart => self.document_start(true),
            State::DocumentStart => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(true, false),
            State::BlockSequenceFirstEntry => self.block_sequence_entry(true),
            State::BlockSequenceEntry => self.block_sequence_entry(false),
            State::IndentlessSequenceEntry => self.indentless_sequence_entry(),
            State::BlockMappingFirstKey => self.block_mapping_key(true),
            State::BlockMappingKey => self.block_mapping_key(false),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceFirstEntry => self.flow_sequence_entry(true),
            State::FlowSequenceEntry => self.flow_sequence_entry(false),
            State::FlowSequenceEntryMappingKey => self.flow_sequence_entry_mapping_key(),
            State::FlowSequenceEntryMappingValue => self.flow_sequence_entry_mapping_value(),
            State::FlowSequenceEntryMappingEnd => self.flow_sequence_entry_mapping_end(),
            State::FlowMappingFirstKey => self.flow_mapping_key(true),
            State::FlowMappingKey => self.flow_mapping_key(false),
            State::FlowMappingValue => self.flow_mapping_value(false),
            State::FlowMappingEmptyValue => self.flow_mapping_value(true),
            State::End => {
                self.fault(Mark::default(), "unknown problem parsing YAML content", self.scanner.mark())
            }
        }
    }

    /// The kind of the next token. Its comments, and those before it, are taken in.
    #[inline]
    fn peek(&mut self) -> Scan<&TokenKind<'a>> {
        self.peek_mark()?;
        Ok(&self.scanner.peek()?.kind)
    }

    /// Start and end of the next token.
    #[inline]
    fn peek_mark(&mut self) -> Scan<(Mark, Mark)> {
        let token = self.scanner.peek()?;
        let marks = (token.start, token.end);
        if !self.scanner.comments.is_empty() {
            self.unfold_comments()?;
        }
        Ok(marks)
    }

    /// Takes in the comments that belong to the next token or stand before it.
    fn unfold_comments(&mut self) -> Scan<()> {
        let token = self.scanner.peek()?;
        let index = token.start.index;
        let is_block_end = token.kind == TokenKind::BlockEnd;
        while let Some(comment) = self.scanner.comments.front() {
            if comment.token.index > index || is_block_end && !comment.head.is_empty() {
                break;
            }
            if let Some(comment) = self.scanner.comments.pop_front() {
                append_comment(&mut self.head_comment, comment.head);
                append_comment(&mut self.foot_comment, comment.foot);
                append_comment(&mut self.line_comment, comment.line);
            }
        }
        Ok(())
    }

    /// The comments taken in since the last event that had any.
    #[inline]
    fn take_comments(&mut self) -> Option<Box<Comments>> {
        self.stem_comment = None;
        if self.head_comment.is_empty() && self.line_comment.is_empty() && self.foot_comment.is_empty() {
            return None;
        }
        Some(Box::new(Comments {
            head: std::mem::take(&mut self.head_comment),
            line: std::mem::take(&mut self.line_comment),
            foot: std::mem::take(&mut self.foot_comment),
        }))
    }

    fn fault<T>(&self, context: Mark, problem: &'static str, mark: Mark) -> Scan<T> {
        self.scanner.fault_at(FaultSource::Parser, context, mark, Cow::Borrowed(problem))
    }

    /// Counts an open collection.
    fn descend(&mut self) -> Scan<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let mark = self.scanner.mark();
            let problem = format!("exceeded max depth of {MAX_DEPTH}");
            return self.scanner.fault_at(FaultSource::Limit, mark, mark, problem.into());
        }
        Ok(())
    }

    fn pop_state(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    /// The end of a collection: back to what it stands in.
    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.pop_state();
    }

    /// A node that is not written, which means null.
    fn empty_scalar(&self, mark: Mark) -> Event<'a> {
        let kind =
            EventKind::Scalar { value: Cow::Borrowed(""), style: crate::Style::Plain, properties: None };
        Event { kind, span: span(mark, mark), comments: None }
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<Event<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_event().transpose()
    }
}

fn span(start: Mark, end: Mark) -> Span {
    Span { start: start.position(), end: end.position() }
}

fn append_comment(to: &mut String, comment: String) {
    if to.is_empty() {
        *to = comment;
    } else if !comment.is_empty() {
        to.push('\n');
        to.push_str(&comment);
    }
}

/// go-yaml's message: it names a line unless that is the first; scanner faults count from 1, parser
/// faults from 0; v3 prefers the context's line, v2 the problem's.
fn to_error(fault: &ScanError, profile: Profile) -> Error {
    let one = u32::from(fault.source != FaultSource::Parser);
    let (context, problem) = (fault.context.line, fault.mark.line);
    let line = match (profile, fault.source) {
        (_, FaultSource::Reader) => 0,
        (Profile::Go2, _) if problem != 0 => problem + one,
        (Profile::Go2, _) => context,
        (Profile::Go3, _) if context != 0 => context + one,
        (Profile::Go3, _) if problem != 0 => problem + one,
        (Profile::Go3, _) => 0,
    };
    let place = if line == 0 { String::new() } else { format!("line {line}: ") };
    let kind = if fault.source == FaultSource::Limit { ErrorKind::Limit } else { ErrorKind::Syntax };
    Error::new(kind, format!("yaml: {place}{}", fault.problem)).located_at(fault.mark.position())
}
