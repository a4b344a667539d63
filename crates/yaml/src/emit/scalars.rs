//! Plain and block scalars.

use super::state::{Dialect, Emitter};
use crate::{Style, chars::is_break_char};

impl Emitter<'_> {
    pub(super) fn write_scalar(&mut self, text: &str, style: Style) {
        let may_break = !self.context.simple_key;
        match style {
            Style::Plain | Style::Flow => self.write_plain(text, may_break),
            Style::SingleQuoted => self.write_single_quoted(text, may_break),
            Style::DoubleQuoted => self.write_double_quoted(text, may_break),
            Style::Literal => self.write_literal(text),
            Style::Folded => self.write_folded(text),
        }
    }

    /// Whether text of one line stays within the width, so that nothing can be folded.
    pub(super) fn fits(&self, text: &str, may_break: bool) -> bool {
        let narrow = !may_break || self.column + text.len() <= self.best_width;
        narrow && !text.chars().any(is_break_char)
    }

    fn write_plain(&mut self, text: &str, may_break: bool) {
        if !self.whitespace && (!text.is_empty() || self.dialect == Dialect::Go2) {
            self.push_char(' ');
        }
        if self.fits(text, may_break) {
            self.push_text(text);
        } else {
            self.write_foldable(text, may_break, false);
        }
        if !text.is_empty() || self.dialect == Dialect::Go2 {
            self.whitespace = false;
        }
        self.indention = false;
    }

    /// Plain or single-quoted text that may be folded at single spaces.
    pub(super) fn write_foldable(&mut self, text: &str, may_break: bool, quoted: bool) {
        let mut spaces = false;
        let mut breaks = false;
        for (at, c) in text.char_indices() {
            if c == ' ' {
                let next_is_space = text.as_bytes().get(at + 1) == Some(&b' ');
                let inside = !quoted || at > 0 && at < text.len() - 1;
                if may_break && !spaces && self.column > self.best_width && inside && !next_is_space {
                    self.write_indent();
                } else {
                    self.push_char(c);
                }
                spaces = true;
            } else if is_break_char(c) {
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.write_break(c);
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if quoted && c == '\'' {
                    self.push_char(c);
                }
                self.push_char(c);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
        }
    }

    /// Indentation and chomping indicators.
    fn write_block_hints(&mut self, text: &str) {
        if text.starts_with(|c| c == ' ' || is_break_char(c)) {
            let hint = self.best_indent.to_string();
            self.write_indicator(&hint, false, false, false);
        }
        let mut last = text.chars().rev();
        let chomp = match (last.next(), last.next()) {
            (Some(end), _) if !is_break_char(end) => "-",
            (None, _) => "-",
            (Some(_), None) => "+",
            (Some(_), Some(before)) if is_break_char(before) => "+",
            _ => return,
        };
        self.write_indicator(chomp, false, false, false);
    }

    fn write_literal(&mut self, text: &str) {
        self.write_indicator("|", true, false, false);
        self.write_block_hints(text);
        self.process_header_comment();
        self.whitespace = true;
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(is_break_char).unwrap_or(rest.len());
            if end > 0 {
                self.write_indent();
                self.push_text(&rest[..end]);
                self.indention = false;
            }
            rest = &rest[end..];
            if let Some(c) = rest.chars().next() {
                self.write_break(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }

    fn write_folded(&mut self, text: &str) {
        self.write_indicator(">", true, false, false);
        self.write_block_hints(text);
        self.process_header_comment();
        self.whitespace = true;
        // go-yaml looks at the first line of the whole text, whichever line it is about to write.
        let first_is_blank =
            text.trim_start_matches(is_break_char).chars().next().is_none_or(|c| matches!(c, ' ' | '\t'));
        let mut breaks = true;
        let mut leading_spaces = true;
        for (at, c) in text.char_indices() {
            if is_break_char(c) {
                if !breaks && !leading_spaces && c == '\n' && !first_is_blank {
                    self.put_break();
                }
                self.write_break(c);
                breaks = true;
                continue;
            }
            if breaks {
                self.write_indent();
                leading_spaces = matches!(c, ' ' | '\t');
            }
            let next_is_space = text.as_bytes().get(at + 1) == Some(&b' ');
            if !breaks && c == ' ' && !next_is_space && self.column > self.best_width {
                self.write_indent();
            } else {
                self.push_char(c);
            }
            self.indention = false;
            breaks = false;
        }
    }
}
