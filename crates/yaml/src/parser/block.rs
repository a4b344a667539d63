//! Block sequences and mappings.

use super::*;

impl<'a> Events<'a> {
    /// Takes the token that opens a collection and remembers where it was.
    pub(super) fn enter(&mut self) -> Scan<()> {
        let (start, _) = self.peek_mark()?;
        self.marks.push(start);
        self.scanner.take();
        Ok(())
    }

    pub(super) fn block_sequence_entry(&mut self, first: bool) -> Scan<Event<'a>> {
        if first {
            self.enter()?;
        }
        let (start, end) = self.peek_mark()?;
        match self.peek()? {
            TokenKind::BlockEntry => {
                self.take_entry()?;
                if matches!(self.peek()?, TokenKind::BlockEntry | TokenKind::BlockEnd) {
                    self.state = State::BlockSequenceEntry;
                    return Ok(self.empty_scalar(end));
                }
                self.states.push(State::BlockSequenceEntry);
                self.node(true, false)
            }
            TokenKind::BlockEnd => {
                self.leave();
                self.marks.pop();
                self.scanner.take();
                Ok(Event { kind: EventKind::SequenceEnd, span: span(start, end), comments: None })
            }
            _ => {
                let context = self.marks.pop().unwrap_or_default();
                self.fault(context, "did not find expected '-' indicator", start)
            }
        }
    }

    pub(super) fn indentless_sequence_entry(&mut self) -> Scan<Event<'a>> {
        let (start, end) = self.peek_mark()?;
        if *self.peek()? != TokenKind::BlockEntry {
            self.leave();
            return Ok(Event { kind: EventKind::SequenceEnd, span: span(start, start), comments: None });
        }
        self.take_entry()?;
        if matches!(
            self.peek()?,
            TokenKind::BlockEntry | TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd
        ) {
            self.state = State::IndentlessSequenceEntry;
            return Ok(self.empty_scalar(end));
        }
        self.states.push(State::IndentlessSequenceEntry);
        self.node(true, false)
    }

    /// Takes a `-`. If a collection follows, the comments before the `-` are about that whole
    /// collection, not about its first node.
    fn take_entry(&mut self) -> Scan<()> {
        let stem = self.head_comment.len();
        self.scanner.take();
        if stem == 0 {
            return Ok(());
        }
        if matches!(self.peek()?, TokenKind::BlockSequenceStart | TokenKind::BlockMappingStart) {
            let rest = self.head_comment.get(stem + 1..).unwrap_or("").to_owned();
            self.head_comment.truncate(stem);
            self.stem_comment = Some(std::mem::replace(&mut self.head_comment, rest));
        }
        Ok(())
    }

    pub(super) fn block_mapping_key(&mut self, first: bool) -> Scan<Event<'a>> {
        if first {
            self.enter()?;
        }
        let (start, end) = self.peek_mark()?;
        match self.peek()? {
            TokenKind::Key => {
                self.scanner.take();
                self.pair_member(State::BlockMappingValue, end)
            }
            TokenKind::BlockEnd => {
                self.leave();
                self.marks.pop();
                let comments = self.take_comments();
                self.scanner.take();
                Ok(Event { kind: EventKind::MappingEnd, span: span(start, end), comments })
            }
            _ => {
                let context = self.marks.pop().unwrap_or_default();
                self.fault(context, "did not find expected key", start)
            }
        }
    }

    pub(super) fn block_mapping_value(&mut self) -> Scan<Event<'a>> {
        let (start, end) = self.peek_mark()?;
        if *self.peek()? == TokenKind::Value {
            self.scanner.take();
            return self.pair_member(State::BlockMappingKey, end);
        }
        self.state = State::BlockMappingKey;
        Ok(self.empty_scalar(start))
    }

    /// The key or value after its indicator, or null if none follows; then `next`.
    fn pair_member(&mut self, next: State, indicator_end: Mark) -> Scan<Event<'a>> {
        if matches!(self.peek()?, TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd) {
            self.state = next;
            return Ok(self.empty_scalar(indicator_end));
        }
        self.states.push(next);
        self.node(true, true)
    }
}
