//! Flow sequences and mappings.

use super::*;
use crate::Style;

impl<'a> Events<'a> {
    pub(super) fn flow_sequence_entry(&mut self, first: bool) -> Scan<Event<'a>> {
        if first {
            self.enter()?;
        }
        self.take_separator(first, &TokenKind::FlowSequenceEnd, "did not find expected ',' or ']'")?;
        let (start, end) = self.peek_mark()?;
        match self.peek()? {
            TokenKind::FlowSequenceEnd => self.flow_end(EventKind::SequenceEnd),
            TokenKind::Key => {
                // A pair without braces: a mapping of its own.
                self.descend()?;
                self.state = State::FlowSequenceEntryMappingKey;
                self.scanner.take();
                let properties = Box::new(Properties { style: Style::Flow, ..Properties::default() });
                let kind = EventKind::MappingStart(properties);
                Ok(Event { kind, span: span(start, end), comments: None })
            }
            _ => {
                self.states.push(State::FlowSequenceEntry);
                self.node(false, false)
            }
        }
    }

    /// Takes the comma between two members.
    fn take_separator(&mut self, first: bool, closing: &TokenKind<'_>, problem: &'static str) -> Scan<()> {
        let (start, _) = self.peek_mark()?;
        let token = self.peek()?;
        if first || token == closing {
            return Ok(());
        }
        if *token != TokenKind::FlowEntry {
            let context = self.marks.pop().unwrap_or_default();
            return self.fault(context, problem, start);
        }
        self.scanner.take();
        Ok(())
    }

    fn flow_end(&mut self, kind: EventKind<'a>) -> Scan<Event<'a>> {
        let (start, end) = self.peek_mark()?;
        self.leave();
        self.marks.pop();
        let comments = self.take_comments();
        self.scanner.take();
        Ok(Event { kind, span: span(start, end), comments })
    }

    pub(super) fn flow_sequence_entry_mapping_key(&mut self) -> Scan<Event<'a>> {
        let (_, end) = self.peek_mark()?;
        if matches!(self.peek()?, TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowSequenceEnd) {
            // libyaml takes the token here, whatever it is.
            self.scanner.take();
            self.state = State::FlowSequenceEntryMappingValue;
            return Ok(self.empty_scalar(end));
        }
        self.states.push(State::FlowSequenceEntryMappingValue);
        self.node(false, false)
    }

    pub(super) fn flow_sequence_entry_mapping_value(&mut self) -> Scan<Event<'a>> {
        let (start, _) = self.peek_mark()?;
        if *self.peek()? == TokenKind::Value {
            self.scanner.take();
            if !matches!(self.peek()?, TokenKind::FlowEntry | TokenKind::FlowSequenceEnd) {
                self.states.push(State::FlowSequenceEntryMappingEnd);
                return self.node(false, false);
            }
        }
        self.state = State::FlowSequenceEntryMappingEnd;
        Ok(self.empty_scalar(start))
    }

    pub(super) fn flow_sequence_entry_mapping_end(&mut self) -> Scan<Event<'a>> {
        let (start, _) = self.peek_mark()?;
        self.depth = self.depth.saturating_sub(1);
        self.state = State::FlowSequenceEntry;
        Ok(Event { kind: EventKind::MappingEnd, span: span(start, start), comments: None })
    }

    pub(super) fn flow_mapping_key(&mut self, first: bool) -> Scan<Event<'a>> {
        if first {
            self.enter()?;
        }
        self.take_separator(first, &TokenKind::FlowMappingEnd, "did not find expected ',' or '}'")?;
        match self.peek()? {
            TokenKind::FlowMappingEnd => self.flow_end(EventKind::MappingEnd),
            TokenKind::Key => {
                self.scanner.take();
                self.flow_pair_member(State::FlowMappingValue)
            }
            _ => {
                self.states.push(State::FlowMappingEmptyValue);
                self.node(false, false)
            }
        }
    }

    pub(super) fn flow_mapping_value(&mut self, empty: bool) -> Scan<Event<'a>> {
        let (start, _) = self.peek_mark()?;
        if !empty && *self.peek()? == TokenKind::Value {
            self.scanner.take();
            if !matches!(self.peek()?, TokenKind::FlowEntry | TokenKind::FlowMappingEnd) {
                self.states.push(State::FlowMappingKey);
                return self.node(false, false);
            }
            let (next, _) = self.peek_mark()?;
            self.state = State::FlowMappingKey;
            return Ok(self.empty_scalar(next));
        }
        self.state = State::FlowMappingKey;
        Ok(self.empty_scalar(start))
    }

    fn flow_pair_member(&mut self, next: State) -> Scan<Event<'a>> {
        let (start, _) = self.peek_mark()?;
        if matches!(self.peek()?, TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowMappingEnd) {
            self.state = next;
            return Ok(self.empty_scalar(start));
        }
        self.states.push(next);
        self.node(false, false)
    }
}
