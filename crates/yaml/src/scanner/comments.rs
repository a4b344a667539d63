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
        if ahead == LOOKAHEAD || self.byte_at(ahead) != b'#' {
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
        let mut run = self.comment_run(scan_mark);
        while run.peek < LOOKAHEAD {
            run.column += 1;
            let at = self.pos + run.peek;
            if is_blank(self.bytes, at) {
                run.peek += 1;
                continue;
            }
            let c = self.byte_at(run.peek);
            let here = self.mark_ahead(&run);
            let close_flow = self.flow_level > 0 && (c == b']' || c == b'}');
            if close_flow || is_breakz(self.bytes, at) {
                self.end_comment_line(&mut run, here, close_flow);
                if !is_break(self.bytes, at) {
                    break;
                }
                run.pass_break();
                continue;
            }
            if !run.text.is_empty() && run.outdents(here) && here.column != run.start.column {
                self.comments.push_back(run.foot(here));
            }
            if c != b'#' {
                break;
            }
            self.take_comment_line(&mut run, here);
        }
        if !run.text.is_empty() {
            let mut end = self.mark_ahead(&run);
            end.index = end.index.saturating_sub(1);
            let (scan, token, start, head) = (run.scan, run.start, run.start, run.text);
            self.comments.push_back(PendingComment {
                scan,
                token,
                start,
                end,
                head,
                ..PendingComment::default()
            });
        }
    }

    fn comment_run(&self, scan_mark: Mark) -> CommentRun {
        let mut token = self.tokens.back();
        if token.is_some_and(|t| t.kind == TokenKind::FlowEntry) && self.tokens.len() > 1 {
            token = self.tokens.get(self.tokens.len() - 2);
        }
        let mut foot_line = -1;
        if scan_mark.line > 0 {
            foot_line = i64::from(self.line) - i64::from(self.newlines) + 1;
            if self.newlines == 0 && self.column > 1 {
                foot_line += 1;
            }
        }
        CommentRun {
            scan: scan_mark,
            token: token.map_or(scan_mark, |t| t.start),
            start: Mark::default(),
            text: String::new(),
            after_value: token.is_some_and(|t| t.kind == TokenKind::Value),
            foot_line,
            indent: self.indent.max(0),
            recent_empty: false,
            first_empty: self.newlines <= 1,
            peek: 0,
            line: self.line,
            column: self.column,
        }
    }

    /// Where the lookahead of a run stands. Columns count from 1 there.
    fn mark_ahead(&self, run: &CommentRun) -> Mark {
        Mark {
            offset: (self.pos + run.peek) as u32,
            index: self.index + run.peek as u32,
            line: run.line,
            column: run.column,
        }
    }

    /// A line break, the end, or the end of a flow collection: what was gathered may be a foot comment
    /// of what came before.
    fn end_comment_line(&mut self, run: &mut CommentRun, here: Mark, close_flow: bool) {
        if run.recent_empty && !close_flow {
            return;
        }
        let outdented = run.outdents(run.start);
        let at_foot = i64::from(run.start.line) == run.foot_line && !run.after_value;
        if close_flow || run.first_empty && (at_foot || outdented) {
            if !run.text.is_empty() {
                if outdented {
                    run.token = run.start;
                }
                self.comments.push_back(run.foot(here));
            }
        } else if !run.text.is_empty() && self.byte_at(run.peek) != 0 {
            run.text.push('\n');
        }
    }

    /// One comment, from its `#` to the end of its line.
    fn take_comment_line(&mut self, run: &mut CommentRun, here: Mark) {
        if run.text.is_empty() {
            run.start = here;
        } else {
            run.text.push('\n');
        }
        self.skip_ahead(run.peek);
        let from = self.pos;
        self.skip_to(self.line_end());
        run.text.push_str(&self.text[from..self.pos]);
        run.recent_empty = false;
        // The break behind the comment is passed over without being looked at.
        run.peek = 1;
        run.column = 0;
        run.line = self.line;
        run.indent = self.indent.max(0);
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
    /// The comments stand behind a `:`.
    after_value: bool,
    /// The line on which a comment is about what came before.
    foot_line: i64,
    /// Indentation of the innermost collection.
    indent: i32,
    /// The line before was empty.
    recent_empty: bool,
    /// No empty line has been seen yet.
    first_empty: bool,
    /// Bytes looked ahead, with line and column there.
    peek: usize,
    line: u32,
    column: u32,
}

impl CommentRun {
    fn pass_break(&mut self) {
        self.first_empty = false;
        self.recent_empty = true;
        self.column = 0;
        self.line += 1;
        self.peek += 1;
    }

    /// Whether a place (with its column counted from 1) is left of the innermost collection.
    fn outdents(&self, place: Mark) -> bool {
        i64::from(place.column) - 1 < i64::from(self.indent)
    }

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
