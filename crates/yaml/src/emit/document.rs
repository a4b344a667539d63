//! Whole documents, and the smallest steps of writing.

use super::state::{Dialect, Emitter};
use crate::{Node, chars::is_break_char};

impl<'a> Emitter<'a> {
    /// One document with the comments around it.
    pub(super) fn document(&mut self, head: &'a str, root: &'a Node, foot: &'a str) {
        self.begin_document(head);
        self.node(root, "", false);
        self.end_document(foot);
    }

    #[inline]
    pub(super) fn push_char(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    pub(super) fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
        self.indention = true;
    }

    /// A line break as it is in the text.
    pub(super) fn write_break(&mut self, c: char) {
        debug_assert!(is_break_char(c), "only breaks break lines");
        if c == '\n' {
            self.put_break();
        } else {
            self.out.push(c);
            self.column = 0;
            self.indention = true;
        }
    }

    /// Text without line breaks.
    pub(super) fn write_text(&mut self, text: &str) {
        self.push_text(text);
        self.whitespace = false;
        self.indention = false;
    }

    #[inline]
    pub(super) fn push_text(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    /// Goes to the current indentation, on a new line unless this one is still empty.
    pub(super) fn write_indent(&mut self) {
        let indent = self.indent.max(0);
        let columns = indent as usize;
        if !self.indention || self.column > columns || self.column == columns && !self.whitespace {
            self.put_break();
        }
        if self.foot_indent == indent {
            self.put_break();
        }
        while self.column < columns {
            self.push_char(' ');
        }
        self.whitespace = true;
        if self.dialect == Dialect::Go2 {
            self.indention = true;
        }
        self.foot_indent = -1;
    }

    pub(super) fn write_indicator(
        &mut self,
        indicator: &str,
        need_whitespace: bool,
        is_whitespace: bool,
        is_indention: bool,
    ) {
        if need_whitespace && !self.whitespace {
            self.push_char(' ');
        }
        self.out.push_str(indicator);
        self.column += indicator.len();
        self.whitespace = is_whitespace;
        self.indention = self.indention && is_indention;
    }
}
