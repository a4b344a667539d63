//! Nodes with their properties.

use super::*;
use crate::{Style, scanner::Token};

impl<'a> Events<'a> {
    pub(super) fn node(&mut self, block: bool, indentless_sequence: bool) -> Scan<Event<'a>> {
        let (mut start, mut end) = self.peek_mark()?;
        let mut properties = None;
        match self.peek()? {
            TokenKind::Alias(name) => {
                let kind = EventKind::Alias(name);
                self.pop_state();
                let comments = self.take_comments();
                self.scanner.take();
                return Ok(Event { kind, span: span(start, end), comments });
            }
            TokenKind::Anchor(_) | TokenKind::Tag(_) => {
                let found = self.properties(start)?;
                end = found.1;
                properties = Some(Box::new(found.0));
            }
            _ => end = start,
        }
        let (token_start, token_end) = self.peek_mark()?;
        if properties.is_none() {
            start = token_start;
        }
        match self.peek()? {
            TokenKind::Scalar(..) => self.scalar(start, properties),
            TokenKind::BlockEntry if indentless_sequence => {
                self.open(State::IndentlessSequenceEntry, true, Style::Plain, properties, start, token_end)
            }
            TokenKind::FlowSequenceStart => {
                self.open(State::FlowSequenceFirstEntry, true, Style::Flow, properties, start, token_end)
            }
            TokenKind::FlowMappingStart => {
                self.open(State::FlowMappingFirstKey, false, Style::Flow, properties, start, token_end)
            }
            TokenKind::BlockSequenceStart if block => {
                self.open(State::BlockSequenceFirstEntry, true, Style::Plain, properties, start, token_end)
            }
            TokenKind::BlockMappingStart if block => {
                self.open(State::BlockMappingFirstKey, false, Style::Plain, properties, start, token_end)
            }
            _ if properties.is_some() => {
                self.pop_state();
                let kind = EventKind::Scalar { value: Cow::Borrowed(""), style: Style::Plain, properties };
                Ok(Event { kind, span: span(start, end), comments: None })
            }
            _ => self.fault(start, "did not find expected node content", token_start),
        }
    }

    fn scalar(&mut self, start: Mark, properties: Option<Box<Properties<'a>>>) -> Scan<Event<'a>> {
        self.pop_state();
        let comments = self.take_comments();
        let Some(Token { kind: TokenKind::Scalar(value, style), end, .. }) = self.scanner.take() else {
            return self.fault(start, "did not find expected node content", start);
        };
        let kind = EventKind::Scalar { value, style, properties };
        Ok(Event { kind, span: span(start, end), comments })
    }

    /// A collection begins; its first token stays.
    fn open(
        &mut self,
        state: State,
        sequence: bool,
        style: Style,
        properties: Option<Box<Properties<'a>>>,
        start: Mark,
        end: Mark,
    ) -> Scan<Event<'a>> {
        self.descend()?;
        self.state = state;
        let mut properties = properties.unwrap_or_default();
        properties.style = style;
        let comments = match state {
            State::IndentlessSequenceEntry => None,
            _ if style == Style::Flow => self.take_comments(),
            _ => self.stem_comment.take().map(|head| Box::new(Comments { head, ..Comments::default() })),
        };
        let kind =
            if sequence { EventKind::SequenceStart(properties) } else { EventKind::MappingStart(properties) };
        Ok(Event { kind, span: span(start, end), comments })
    }

    /// Anchor and tag in either order, each at most once. Also returns where they end.
    fn properties(&mut self, start: Mark) -> Scan<(Properties<'a>, Mark)> {
        let mut properties = Properties::default();
        let mut tag_mark = start;
        let mut tag = None;
        let mut end = start;
        loop {
            let (token_start, token_end) = self.peek_mark()?;
            match self.peek()? {
                TokenKind::Anchor(name) if properties.anchor.is_none() => properties.anchor = Some(name),
                TokenKind::Tag(text) if tag.is_none() => {
                    tag = Some(text.as_ref().clone());
                    tag_mark = token_start;
                }
                _ => break,
            }
            end = token_end;
            self.scanner.take();
        }
        if let Some(TagText { handle, suffix }) = tag {
            let resolved = if handle.is_empty() {
                suffix
            } else {
                match self.tag_directives.get(&handle) {
                    Some(prefix) => format!("{prefix}{suffix}"),
                    None => return self.fault(start, "found undefined tag handle", tag_mark),
                }
            };
            properties.tag = Some(resolved);
        }
        Ok((properties, end))
    }
}
