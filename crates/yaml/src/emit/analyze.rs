//! In which styles a text can be written.

use crate::chars::{is_break_char, is_printable};

/// What styles keep a scalar's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Analysis {
    pub multiline: bool,
    pub flow_plain: bool,
    pub block_plain: bool,
    pub single_quoted: bool,
    pub block: bool,
}

impl Analysis {
    /// Analyses a text. go-yaml v2 counts tabs as unprintable (`tabs_are_text` is false), so that
    /// even multi-line text with tabs is double-quoted.
    pub(super) fn from_text(text: &str, tabs_are_text: bool) -> Self {
        if text.is_empty() {
            return Self {
                multiline: false,
                flow_plain: false,
                block_plain: true,
                single_quoted: true,
                block: false,
            };
        }
        let marks = text.starts_with("---") || text.starts_with("...");
        let mut found = Found { block_indicators: marks, flow_indicators: marks, ..Found::default() };
        if text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/')) {
            return found.judge();
        }
        found.scan(text, tabs_are_text);
        found.judge()
    }
}

#[derive(Default)]
struct Found {
    block_indicators: bool,
    flow_indicators: bool,
    line_breaks: bool,
    special: bool,
    tabs: bool,
    leading_or_trailing: bool,
    trailing_space: bool,
    break_space: bool,
    space_break: bool,
}

impl Found {
    fn scan(&mut self, text: &str, tabs_are_text: bool) {
        let mut preceded_by_whitespace = true;
        let mut previous_space = false;
        let mut previous_break = false;
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map(|&(_, next)| next);
            let followed_by_whitespace = next.is_none_or(|next| matches!(next, ' ' | '\t'));
            self.indicators(c, at == 0, preceded_by_whitespace, followed_by_whitespace);
            if c == '\t' && tabs_are_text {
                self.tabs = true;
            } else if !is_printable(c) {
                self.special = true;
            }
            let edge = at == 0 || next.is_none();
            if c == ' ' {
                self.leading_or_trailing |= edge;
                self.trailing_space |= next.is_none();
                self.break_space |= previous_break;
            } else if is_break_char(c) {
                self.line_breaks = true;
                self.leading_or_trailing |= edge;
                self.space_break |= previous_space;
            }
            previous_space = c == ' ';
            previous_break = is_break_char(c);
            preceded_by_whitespace = matches!(c, ' ' | '\t' | '\0') || previous_break;
        }
    }

    fn indicators(&mut self, c: char, first: bool, after_whitespace: bool, before_whitespace: bool) {
        let (flow, block) = match c {
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
            | '`'
                if first =>
            {
                (true, true)
            }
            '-' if first => (before_whitespace, before_whitespace),
            ',' | '?' | '[' | ']' | '{' | '}' => (true, first && before_whitespace),
            ':' => (true, before_whitespace),
            '#' => (after_whitespace, after_whitespace),
            _ => return,
        };
        self.flow_indicators |= flow;
        self.block_indicators |= block;
    }

    fn judge(&self) -> Analysis {
        let quoting = self.break_space || self.space_break || self.tabs || self.special;
        let plain = !(self.leading_or_trailing || quoting || self.line_breaks);
        Analysis {
            multiline: self.line_breaks,
            flow_plain: plain && !self.flow_indicators,
            block_plain: plain && !self.block_indicators,
            single_quoted: !quoting,
            block: !(self.trailing_space || self.space_break || self.special),
        }
    }
}
