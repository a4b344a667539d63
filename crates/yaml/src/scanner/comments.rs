//! Which comments there are, and to which token each belongs: go-yaml v3's rules.

use super::*;

/// go-yaml looks this many bytes ahead for the next comment.
const LOOKAHEAD: usize = 512;

impl Scanner<'_> {
    /// `- # text` followed by content: the comment is about the item.
    pub(super) fn turn_line_comment_into_head(&mut self) {
        let line = self.line;
        let mark = self.mark();
        let Some(comment) = self.comments.back_mut() else { return };
        let count = self.tokens.len();
        if count < 2 || comment.line.is_empty() {
            return;
        }
        if self.tokens[count - 2].kind == TokenKind::BlockSequenceStart
            && self.tokens[count - 1].kind == TokenKind::BlockEntry
            && !is_break(self.bytes, self.pos)
        {
            comment.head = std::mem::take(&mut comment.line);
            if comment.start.line + 1 == line {
                comment.token = mark;
            }
        }
    }

    /// A comment behind the token that was just scanned.
    pub(super) fn scan_line_comment(&mut self, token: Mark) {
        if self.newlines > 0 {
            return;
        }
        let mut ahead = 0;
        while ahead < LOOKAHEAD && is_blank(self.bytes, self.pos + ahead) {
            ahead += 1;
        }
        if ahead == LOOKAHEAD || self.at(ahead) != b'#' {
            return;
        }
        self.skip_blanks();
        let start = self.mark();
        let line = self.read_comment_text().to_owned();
        self.comments.push_back(PendingComment { token, start, line, ..PendingComment::default() });
    }

    /// The rest of the line, from the `#`.
    fn read_comment_text(&mut self) -> &str {
        let from = self.pos;
        self.skip_to(self.line_end());
        &self.text[from..self.pos]
    }

    /// The comments from here to the next token, as head and foot comments.
    pub(super) fn scan_comments(&mut self, scan_mark: Mark) {
        let mut token = self.tokens.back();
        if token.is_some_and(|t| t.kind == TokenKind::FlowEntry) && self.tokens.len() > 1 {
            token = self.tokens.get(self.tokens.len() - 2);
        }
        let after_value = token.is_some_and(|t| t.kind == TokenKind::Value);
        let mut state = CommentRun {
            scan: scan_mark,
            token: token.map_or(scan_mark, |t| t.start),
            start: Mark::default(),
            text: String::new(),
        };
        let mut next_indent = self.indent.max(0);
        let mut recent_empty = false;
        let mut first_empty = self.newlines <= 1;
        let mut line = self.line;
        let mut column = self.column;
        let mut foot_line = -1;
        if scan_mark.line > 0 {
            foot_line = i64::from(self.line) - i64::from(self.newlines) + 1;
            if self.newlines == 0 && self.column > 1 {
                foot_line += 1;
            }
        }

        let mut peek = 0;
        while peek < LOOKAHEAD {
            column += 1;
            if is_blank(self.bytes, self.pos + peek) {
                peek += 1;
                continue;
            }
            let c = self.at(peek);
            let here =
                Mark { offset: (self.pos + peek) as u32, index: self.index + peek as u32, line, column };
            let close_flow = self.flow_level > 0 && (c == b']' || c == b'}');
            if close_flow || is_breakz(self.bytes, self.pos + peek) {
                if close_flow || !recent_empty {
                    let outdented = i64::from(state.start.column) - 1 < i64::from(next_indent);
                    let at_foot = i64::from(state.start.line) == foot_line && !after_value;
                    if close_flow || first_empty && (at_foot || outdented) {
                        if !state.text.is_empty() {
                            if outdented {
                                state.token = state.start;
                            }
                            self.comments.push_back(state.foot(here));
                        }
                    } else if !state.text.is_empty() && c != 0 {
                        state.text.push('\n');
                    }
                }
                if !is_break(self.bytes, self.pos + peek) {
                    break;
                }
                first_empty = false;
                recent_empty = true;
                column = 0;
                line += 1;
                peek += 1;
                continue;
            }
            let outdented = i64::from(column) - 1 < i64::from(next_indent) && column != state.start.column;
            if !state.text.is_empty() && (close_flow || outdented) {
                self.comments.push_back(state.foot(here));
            }
            if c != b'#' {
                break;
            }
            if state.text.is_empty() {
                state.start = here;
            } else {
                state.text.push('\n');
            }
            recent_empty = false;
            self.skip_ahead(peek);
            let from = self.pos;
            self.skip_to(self.line_end());
            state.text.push_str(&self.text[from..self.pos]);

            // The break after the comment is passed over without being looked at.
            peek = 1;
            column = 0;
            line = self.line;
            next_indent = self.indent.max(0);
        }

        if !state.text.is_empty() {
            let end = Mark {
                offset: (self.pos + peek) as u32,
                index: (self.index + peek as u32).saturating_sub(1),
                line,
                column,
            };
            self.comments.push_back(PendingComment {
                scan: state.scan,
                token: state.start,
                start: state.start,
                end,
                head: state.text,
                ..PendingComment::default()
            });
        }
    }

    /// Moves over blanks and breaks up to the byte that is `ahead` of here.
    fn skip_ahead(&mut self, ahead: usize) {
        let target = self.pos + ahead;
        while self.pos < target {
            if is_break(self.bytes, self.pos) {
                self.read_line();
            } else {
                self.skip();
            }
        }
    }
}

/// Comment lines being gathered.
struct CommentRun {
    scan: Mark,
    token: Mark,
    start: Mark,
    text: String,
}

impl CommentRun {
    /// What was gathered, as a foot comment that ends at `end`; gathering starts anew there.
    fn foot(&mut self, end: Mark) -> PendingComment {
        let comment = PendingComment {
            scan: self.scan,
            token: self.token,
            start: self.start,
            end,
            foot: std::mem::take(&mut self.text),
            ..PendingComment::default()
        };
        self.scan = end;
        self.token = end;
        comment
    }
}
