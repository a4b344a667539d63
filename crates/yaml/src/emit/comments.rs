//! Comments, as go-yaml v3 writes them.

use super::state::Emitter;
use crate::chars::is_break_char;

impl Emitter<'_> {
    pub(super) fn process_head_comment(&mut self) {
        if !self.tail_comment.is_empty() {
            let tail = std::mem::take(&mut self.tail_comment);
            self.write_indent();
            self.write_comment(tail);
            self.foot_indent = self.indent.max(0);
        }
        if !self.head_comment.is_empty() {
            let head = std::mem::take(&mut self.head_comment);
            self.write_indent();
            self.write_comment(head);
        }
    }

    pub(super) fn process_line_comment(&mut self) {
        if self.line_comment.is_empty() {
            return;
        }
        if !self.whitespace {
            self.push_char(' ');
        }
        let line = std::mem::take(&mut self.line_comment);
        self.write_comment(line);
    }

    /// The line comment of a block scalar's header, or just the end of its line.
    pub(super) fn process_header_comment(&mut self) {
        if self.line_comment.is_empty() {
            self.put_break();
        } else {
            self.process_line_comment();
        }
    }

    pub(super) fn process_foot_comment(&mut self) {
        if self.foot_comment.is_empty() {
            return;
        }
        let foot = std::mem::take(&mut self.foot_comment);
        self.write_indent();
        self.write_comment(foot);
        self.foot_indent = self.indent.max(0);
    }

    fn write_comment(&mut self, comment: &str) {
        let mut breaks = false;
        let mut pound = false;
        for c in comment.chars() {
            if is_break_char(c) {
                self.write_break(c);
                breaks = true;
                pound = false;
                continue;
            }
            if breaks {
                self.write_indent();
            }
            if !pound {
                if c != '#' {
                    self.push_char('#');
                    self.push_char(' ');
                }
                pound = true;
            }
            self.push_char(c);
            self.indention = false;
            breaks = false;
        }
        if !breaks {
            self.put_break();
        }
        self.whitespace = true;
    }

    /// Whether comments wait that need a line of their own.
    pub(super) fn has_trailing_comments(&self) -> bool {
        !self.line_comment.is_empty() || !self.foot_comment.is_empty() || !self.tail_comment.is_empty()
    }
}
