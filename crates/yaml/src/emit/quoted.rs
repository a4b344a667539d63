//! Quoted scalars.

use std::fmt::Write as _;

use super::state::Emitter;
use crate::chars::{is_break_char, is_printable};

impl Emitter<'_> {
    pub(super) fn write_single_quoted(&mut self, text: &str, may_break: bool) {
        self.write_indicator("'", true, false, false);
        self.write_foldable(text, may_break, true);
        self.write_indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    pub(super) fn write_double_quoted(&mut self, text: &str, may_break: bool) {
        self.write_indicator("\"", true, false, false);
        // libyaml asks whether the text, not the character, begins with a byte order mark.
        let escape_all = text.starts_with('\u{FEFF}');
        let mut spaces = false;
        for (at, c) in text.char_indices() {
            if escape_all || !is_printable(c) || is_break_char(c) || c == '"' || c == '\\' {
                self.write_escape(c);
                spaces = false;
            } else if c == ' ' {
                let inside = at > 0 && at < text.len() - 1;
                if may_break && !spaces && self.column > self.best_width && inside {
                    self.write_indent();
                    if text.as_bytes().get(at + 1) == Some(&b' ') {
                        self.push_char('\\');
                    }
                } else {
                    self.push_char(c);
                }
                spaces = true;
            } else {
                self.push_char(c);
                spaces = false;
            }
        }
        self.write_indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn write_escape(&mut self, c: char) {
        let from = self.out.len();
        let short = match c {
            '\0' => '0',
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\u{B}' => 'v',
            '\u{C}' => 'f',
            '\r' => 'r',
            '\u{1B}' => 'e',
            '"' => '"',
            '\\' => '\\',
            '\u{85}' => 'N',
            '\u{A0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => '\0',
        };
        self.out.push('\\');
        let code = u32::from(c);
        // Writing to a string cannot fail.
        let _ = match code {
            _ if short != '\0' => self.out.write_char(short),
            0..=0xFF => write!(self.out, "x{code:02X}"),
            0x100..=0xFFFF => write!(self.out, "u{code:04X}"),
            _ => write!(self.out, "U{code:08X}"),
        };
        self.column += self.out.len() - from;
    }
}
