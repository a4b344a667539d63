//! Which token comes next: indentation, simple keys, indicators.

use super::*;

impl<'a> Scanner<'a> {
    /// Fetches until the front token is final: no key can still be inserted before it.
    pub(super) fn fetch_more_tokens(&mut self) -> Scan<()> {
        let lookahead = if self.keep_comments { 2 } else { 0 };
        loop {
            let at_end = self.tokens.back().is_some_and(|token| token.kind == TokenKind::StreamEnd);
            if at_end || self.tokens.len() > lookahead {
                let head = self.tokens_taken;
                let key = self.simple_keys.iter().position(|key| key.awaited && key.token_number == head);
                match key {
                    None => break,
                    Some(at) if !self.is_simple_key_valid(at)? => break,
                    Some(_) if at_end => break,
                    Some(_) => {}
                }
            }
            self.fetch_next_token()?;
        }
        self.token_available = true;
        Ok(())
    }

    fn fetch_next_token(&mut self) -> Scan<()> {
        if !self.stream_started {
            self.stream_started = true;
            self.simple_keys.push(SimpleKey::default());
            self.simple_key_allowed = true;
            let mark = self.mark();
            self.push(TokenKind::StreamStart, mark);
            return Ok(());
        }
        let scan_mark = self.mark();
        self.scan_to_next_token()?;
        self.unroll_indent(self.column as i32, scan_mark);

        if self.at_end() {
            return self.fetch_stream_end();
        }
        if self.column == 0 {
            if self.byte_at(0) == b'%' {
                return self.fetch_directive();
            }
            if is_document_indicator(self.bytes, self.pos) {
                return self.fetch_document_indicator();
            }
        }
        if !self.keep_comments {
            return self.fetch_content_token();
        }
        let mut comment_mark = self.mark();
        if let Some(last) = self.tokens.back()
            && (self.flow_level == 0 && self.byte_at(0) == b':'
                || self.flow_level > 0 && self.byte_at(0) == b',')
        {
            comment_mark = last.start;
        }
        self.fetch_content_token()?;
        if !self.tokens.back().is_some_and(|token| token.kind == TokenKind::BlockEntry) {
            self.scan_line_comment(comment_mark);
        }
        Ok(())
    }

    fn fetch_content_token(&mut self) -> Scan<()> {
        let block = self.flow_level == 0;
        match self.byte_at(0) {
            b'[' => self.fetch_flow_start(TokenKind::FlowSequenceStart),
            b'{' => self.fetch_flow_start(TokenKind::FlowMappingStart),
            b']' => self.fetch_flow_end(TokenKind::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(TokenKind::FlowMappingEnd),
            b',' => self.fetch_flow_entry(),
            b'-' if is_blankz(self.bytes, self.pos + 1) => self.fetch_block_entry(),
            b'?' if !block || is_blankz(self.bytes, self.pos + 1) => self.fetch_key(),
            b':' if !block || is_blankz(self.bytes, self.pos + 1) => self.fetch_value(),
            b'*' => self.fetch_simple(|s| s.scan_anchor(true)),
            b'&' => self.fetch_simple(|s| s.scan_anchor(false)),
            b'!' => self.fetch_simple(Self::scan_tag),
            b'|' if block => self.fetch_block_scalar(true),
            b'>' if block => self.fetch_block_scalar(false),
            b'\'' => self.fetch_simple(|s| s.scan_flow_scalar(true)),
            b'"' => self.fetch_simple(|s| s.scan_flow_scalar(false)),
            b'-' if !is_blank(self.bytes, self.pos + 1) => self.fetch_simple(Self::scan_plain_scalar),
            b'?' | b':' if block => self.fetch_simple(Self::scan_plain_scalar),
            b'-' | b'?' | b':' | b'#' | b'|' | b'>' | b'%' | b'@' | b'`' => self.fetch_nothing(),
            _ if is_blankz(self.bytes, self.pos) => self.fetch_nothing(),
            _ => self.fetch_simple(Self::scan_plain_scalar),
        }
    }

    fn fetch_nothing(&mut self) -> Scan<()> {
        self.fault(self.mark(), "found character that cannot start any token")
    }

    fn push(&mut self, kind: TokenKind<'a>, start: Mark) {
        let end = self.mark();
        self.tokens.push_back(Token { kind, start, end });
    }

    /// Puts a token without extent before the token with that number. If the parser has taken that one
    /// already (an empty flow collection, which is not awaited as key), it comes last, as in go-yaml.
    fn insert(&mut self, number: usize, kind: TokenKind<'a>, mark: Mark) {
        let at = number.checked_sub(self.tokens_taken).unwrap_or(usize::MAX).min(self.tokens.len());
        self.tokens.insert(at, Token { kind, start: mark, end: mark });
    }

    fn is_simple_key_valid(&mut self, at: usize) -> Scan<bool> {
        let key = self.simple_keys[at];
        if !key.possible {
            return Ok(false);
        }
        if key.mark.line < self.line || key.mark.index + SIMPLE_KEY_LENGTH < self.index {
            if key.required {
                return self.fault(key.mark, "could not find expected ':'");
            }
            self.simple_keys[at].possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    /// Remembers that a key may start here.
    fn save_simple_key(&mut self) -> Scan<()> {
        if !self.simple_key_allowed {
            return Ok(());
        }
        let key = SimpleKey {
            possible: true,
            awaited: true,
            required: self.flow_level == 0 && self.indent == self.column as i32,
            token_number: self.tokens_taken + self.tokens.len(),
            mark: self.mark(),
        };
        self.remove_simple_key()?;
        if let Some(last) = self.simple_keys.last_mut() {
            *last = key;
        }
        Ok(())
    }

    fn remove_simple_key(&mut self) -> Scan<()> {
        let Some(&key) = self.simple_keys.last() else { return Ok(()) };
        if key.possible && key.required {
            return self.fault(key.mark, "could not find expected ':'");
        }
        if let Some(last) = self.simple_keys.last_mut() {
            last.possible = false;
            last.awaited = false;
        }
        Ok(())
    }

    /// Opens a block collection if `column` is deeper than the current one. `before` is the number of
    /// the token that it starts with, if that is not the next.
    fn roll_indent(
        &mut self,
        column: u32,
        before: Option<usize>,
        kind: TokenKind<'a>,
        mark: Mark,
    ) -> Scan<()> {
        let column = column as i32;
        if self.flow_level > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > MAX_DEPTH {
            return self.too_deep();
        }
        let number = before.unwrap_or(self.tokens_taken + self.tokens.len());
        self.insert(number, kind, mark);
        Ok(())
    }

    fn too_deep(&self) -> Scan<()> {
        let problem = format!("exceeded max depth of {MAX_DEPTH}");
        self.fault_at(FaultSource::Limit, self.mark(), self.mark(), problem.into())
    }

    /// Closes block collections deeper than `column`. Where they end decides which of the comments
    /// before here are still inside.
    fn unroll_indent(&mut self, column: i32, scan_mark: Mark) {
        if self.flow_level > 0 || self.indent <= column {
            return;
        }
        let mut block_mark = if self.keep_comments { scan_mark } else { self.mark() };
        if self.keep_comments {
            block_mark.index = block_mark.index.saturating_sub(1);
        }
        while self.indent > column {
            let mut stop = block_mark.index;
            for comment in self.comments.iter().rev() {
                if comment.end.index < stop {
                    break;
                }
                if comment.start.column as i32 == self.indent + 1 {
                    block_mark = comment.start;
                }
                stop = comment.scan.index;
            }
            self.tokens.push_back(Token { kind: TokenKind::BlockEnd, start: block_mark, end: block_mark });
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn fetch_stream_end(&mut self) -> Scan<()> {
        if self.column != 0 {
            self.column = 0;
            self.line += 1;
        }
        self.unroll_indent(-1, self.mark());
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.mark();
        self.push(TokenKind::StreamEnd, mark);
        Ok(())
    }

    fn fetch_directive(&mut self) -> Scan<()> {
        self.unroll_indent(-1, self.mark());
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let token = self.scan_directive()?;
        self.tokens.push_back(token);
        Ok(())
    }

    fn fetch_document_indicator(&mut self) -> Scan<()> {
        let kind = if self.byte_at(0) == b'-' { TokenKind::DocumentStart } else { TokenKind::DocumentEnd };
        self.unroll_indent(-1, self.mark());
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.mark();
        self.skip_run(self.pos + 3, 3);
        self.push(kind, start);
        Ok(())
    }

    /// One character that is an indicator.
    fn push_indicator(&mut self, kind: TokenKind<'a>) {
        let start = self.mark();
        self.skip();
        self.push(kind, start);
    }

    fn fetch_flow_start(&mut self, kind: TokenKind<'a>) -> Scan<()> {
        self.save_simple_key()?;
        let token_number = self.tokens_taken + self.tokens.len();
        self.simple_keys.push(SimpleKey { token_number, ..SimpleKey::default() });
        self.flow_level += 1;
        if self.flow_level > MAX_DEPTH {
            return self.too_deep();
        }
        self.simple_key_allowed = true;
        self.push_indicator(kind);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: TokenKind<'a>) -> Scan<()> {
        self.remove_simple_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            let closed = self.simple_keys.pop().map_or(0, |key| key.token_number);
            // go-yaml forgets the key that begins with the bracket if nothing inside began one: an
            // empty flow collection is no key.
            for key in self.simple_keys.iter_mut().filter(|key| key.token_number == closed) {
                key.awaited = false;
            }
        }
        self.simple_key_allowed = false;
        self.push_indicator(kind);
        Ok(())
    }

    fn fetch_flow_entry(&mut self) -> Scan<()> {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.push_indicator(TokenKind::FlowEntry);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Scan<()> {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return self.fault(self.mark(), "block sequence entries are not allowed in this context");
            }
            self.roll_indent(self.column, None, TokenKind::BlockSequenceStart, self.mark())?;
        }
        // In flow context the parser will complain.
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.push_indicator(TokenKind::BlockEntry);
        Ok(())
    }

    fn fetch_key(&mut self) -> Scan<()> {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return self.fault(self.mark(), "mapping keys are not allowed in this context");
            }
            self.roll_indent(self.column, None, TokenKind::BlockMappingStart, self.mark())?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = self.flow_level == 0;
        self.push_indicator(TokenKind::Key);
        Ok(())
    }

    fn fetch_value(&mut self) -> Scan<()> {
        let last = self.simple_keys.len() - 1;
        if self.is_simple_key_valid(last)? {
            let key = self.simple_keys[last];
            self.insert(key.token_number, TokenKind::Key, key.mark);
            let start = TokenKind::BlockMappingStart;
            self.roll_indent(key.mark.column, Some(key.token_number), start, key.mark)?;
            self.simple_keys[last].possible = false;
            self.simple_keys[last].awaited = false;
            self.simple_key_allowed = false;
        } else {
            if self.flow_level == 0 {
                if !self.simple_key_allowed {
                    return self.fault(self.mark(), "mapping values are not allowed in this context");
                }
                self.roll_indent(self.column, None, TokenKind::BlockMappingStart, self.mark())?;
            }
            self.simple_key_allowed = self.flow_level == 0;
        }
        self.push_indicator(TokenKind::Value);
        Ok(())
    }

    /// A token that may itself be a key.
    #[inline]
    fn fetch_simple(&mut self, scan: impl FnOnce(&mut Self) -> Scan<Token<'a>>) -> Scan<()> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let token = scan(self)?;
        self.tokens.push_back(token);
        Ok(())
    }

    fn fetch_block_scalar(&mut self, literal: bool) -> Scan<()> {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        let token = self.scan_block_scalar(literal)?;
        self.tokens.push_back(token);
        Ok(())
    }

    fn scan_to_next_token(&mut self) -> Scan<()> {
        let scan_mark = self.mark();
        loop {
            if self.index == 0 && self.bytes[self.pos.min(self.bytes.len())..].starts_with(b"\xEF\xBB\xBF") {
                self.skip();
            }
            loop {
                match self.byte_at(0) {
                    b' ' => {}
                    b'\t' if self.flow_level > 0 || !self.simple_key_allowed => {}
                    _ => break,
                }
                self.pos += 1;
                self.index += 1;
                self.column += 1;
            }
            if self.keep_comments {
                self.turn_line_comment_into_head();
            }
            if self.byte_at(0) == b'#' {
                if self.keep_comments {
                    self.scan_comments(scan_mark);
                } else {
                    self.skip_to(self.line_end());
                }
            }
            if !is_break(self.bytes, self.pos) {
                return Ok(());
            }
            self.read_line();
            if self.flow_level == 0 {
                self.simple_key_allowed = true;
            }
        }
    }
}
