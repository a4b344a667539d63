//! Stream and documents.

use super::*;

const DEFAULT_TAG_DIRECTIVES: [(&str, &str); 2] = [("!", "!"), ("!!", "tag:yaml.org,2002:")];

impl<'a> Events<'a> {
    pub(super) fn stream_start(&mut self) -> Scan<Event<'a>> {
        let (start, end) = self.peek_mark()?;
        self.state = State::ImplicitDocumentStart;
        self.scanner.take();
        Ok(Event { kind: EventKind::StreamStart, span: span(start, end), comments: None })
    }

    pub(super) fn document_start(&mut self, implicit: bool) -> Scan<Event<'a>> {
        if !implicit {
            while *self.peek()? == TokenKind::DocumentEnd {
                self.scanner.take();
            }
        }
        let (start, end) = self.peek_mark()?;
        match self.peek()? {
            TokenKind::StreamEnd => {
                self.state = State::End;
                self.scanner.take();
                Ok(Event { kind: EventKind::StreamEnd, span: span(start, end), comments: None })
            }
            TokenKind::VersionDirective(..) | TokenKind::TagDirective(_) | TokenKind::DocumentStart => {
                self.explicit_document(start)
            }
            _ if implicit => {
                self.process_directives()?;
                self.states.push(State::DocumentEnd);
                self.state = State::BlockNode;
                let head = self.split_document_comment();
                let comments = (!head.is_empty()).then(|| Box::new(Comments { head, ..Comments::default() }));
                Ok(Event { kind: EventKind::DocumentStart, span: span(start, end), comments })
            }
            _ => self.explicit_document(start),
        }
    }

    fn explicit_document(&mut self, start: Mark) -> Scan<Event<'a>> {
        self.process_directives()?;
        let (at, end) = self.peek_mark()?;
        if *self.peek()? != TokenKind::DocumentStart {
            return self.fault(Mark::default(), "did not find expected <document start>", at);
        }
        self.states.push(State::DocumentEnd);
        self.state = State::DocumentContent;
        self.scanner.take();
        Ok(Event { kind: EventKind::DocumentStart, span: span(start, end), comments: None })
    }

    /// Of the comments before an implicit document, those before the last empty line are the
    /// document's; the rest stays for its first node.
    fn split_document_comment(&mut self) -> String {
        let bytes = self.head_comment.as_bytes();
        for at in (1..bytes.len()).rev() {
            if bytes[at] != b'\n' {
                continue;
            }
            let end = if at == bytes.len() - 1 {
                at
            } else if bytes[at - 1] == b'\n' {
                at - 1
            } else {
                continue;
            };
            let rest = self.head_comment.split_off(at + 1);
            self.head_comment.truncate(end);
            return std::mem::replace(&mut self.head_comment, rest);
        }
        String::new()
    }

    pub(super) fn document_content(&mut self) -> Scan<Event<'a>> {
        let (start, _) = self.peek_mark()?;
        match self.peek()? {
            TokenKind::VersionDirective(..)
            | TokenKind::TagDirective(_)
            | TokenKind::DocumentStart
            | TokenKind::DocumentEnd
            | TokenKind::StreamEnd => {
                self.pop_state();
                Ok(self.empty_scalar(start))
            }
            _ => self.node(true, false),
        }
    }

    pub(super) fn document_end(&mut self) -> Scan<Event<'a>> {
        let (start, token_end) = self.peek_mark()?;
        let mut end = start;
        if *self.peek()? == TokenKind::DocumentEnd {
            end = token_end;
            self.scanner.take();
        }
        self.tag_directives.clear();
        self.state = State::DocumentStart;
        let mut comments = self.take_comments();
        if let Some(comments) = &mut comments
            && comments.foot.is_empty()
        {
            comments.foot = std::mem::take(&mut comments.head);
        }
        Ok(Event { kind: EventKind::DocumentEnd, span: span(start, end), comments })
    }

    fn process_directives(&mut self) -> Scan<()> {
        let mut seen_version = false;
        loop {
            let (mark, _) = self.peek_mark()?;
            match self.peek()? {
                TokenKind::VersionDirective(major, minor) => {
                    let supported = (*major, *minor) == (1, 1);
                    if seen_version {
                        return self.fault(Mark::default(), "found duplicate %YAML directive", mark);
                    }
                    if !supported {
                        return self.fault(Mark::default(), "found incompatible YAML document", mark);
                    }
                    seen_version = true;
                }
                TokenKind::TagDirective(tag) => {
                    let TagText { handle, suffix } = tag.as_ref().clone();
                    match self.tag_directives.entry(handle) {
                        Entry::Occupied(_) => {
                            return self.fault(Mark::default(), "found duplicate %TAG directive", mark);
                        }
                        Entry::Vacant(free) => drop(free.insert(suffix)),
                    }
                }
                _ => break,
            }
            self.scanner.take();
        }
        for (handle, prefix) in DEFAULT_TAG_DIRECTIVES {
            self.tag_directives.entry(handle.to_owned()).or_insert_with(|| prefix.to_owned());
        }
        Ok(())
    }
}
