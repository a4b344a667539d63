//! Scalars: plain and quoted ones of one line, literal and folded text.

use std::borrow::Cow;

use super::{Make, Reader, quoted_style};
use crate::{Style, chars::byte};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    Clip,
    Strip,
    Keep,
}

impl<'a, M: Make> Reader<'a, '_, M> {
    /// The scalar or flow collection that starts there, in a block collection of that column, up to the next
    /// line.
    pub(super) fn scalar(&mut self, at: usize, column: i32, keep: bool) -> Option<M::Node> {
        let value = match self.bytes[at] {
            b'|' | b'>' => self.block_scalar(at, column, keep)?,
            quote @ (b'"' | b'\'') => {
                let (text, end) = self.quoted_lines(at)?;
                self.finish_line(end)?;
                self.text_if(text, quoted_style(quote), keep)
            }
            b'[' | b'{' => {
                let (value, end) = self.flow(at, keep)?;
                self.finish_line(end)?;
                value
            }
            _ => {
                let (text, end) = self.plain(at, column)?;
                self.end_line(end)?;
                self.typed(text, keep)?
            }
        };
        // What is deeper would go on with a scalar.
        (self.indent <= column).then_some(value)
    }

    /// A plain scalar; `None` if this is not for here to say.
    pub(super) fn typed(&mut self, text: Cow<'_, str>, keep: bool) -> Option<M::Node> {
        // Without a wish for the value only what could fail has to be looked at.
        if !keep && !text.starts_with(['.', '+', '-', '<']) {
            return Some(M::unwanted_node());
        }
        if text == "<<" { None } else { self.make.plain(text) }
    }

    /// Text, if it is wanted.
    pub(super) fn text_if(&mut self, text: Cow<'_, str>, style: Style, keep: bool) -> M::Node {
        if keep { self.make.text(text, style) } else { M::unwanted_node() }
    }

    /// Nothing but blanks and a comment may follow on the line.
    fn finish_line(&mut self, at: usize) -> Option<()> {
        let end = self.skip_spaces(at);
        if self.is_line_end(end) { self.end_line(end) } else { None }
    }

    /// A plain scalar in a block collection of that column, and where the rest of its last line begins.
    fn plain(&self, at: usize, column: i32) -> Option<(Cow<'a, str>, usize)> {
        if !self.starts_plain(at) {
            return None;
        }
        let (first, mut end) = self.plain_line(at)?;
        let mut out = Cow::Borrowed(first);
        while let Some((blank_lines, next)) = self.goes_on(end, column)? {
            let (line, line_end) = self.plain_line(next)?;
            fold(&mut out, blank_lines);
            out += line;
            end = line_end;
        }
        Some((out, end))
    }

    /// One line of a plain scalar without the spaces behind it, and where the line ends or a comment begins.
    fn plain_line(&self, at: usize) -> Option<(&'a str, usize)> {
        let mut end = at;
        loop {
            end = self.skip_plain(end);
            match byte(self.bytes, end) {
                b'\n' | 0 => break,
                b'#' if self.bytes[end - 1] == b' ' => break,
                b':' if self.is_gap(end + 1) => return None,
                b'\t' => return None,
                _ => end += 1,
            }
        }
        Some((self.text[at..end].trim_end_matches(' '), end))
    }

    /// Whether a plain scalar that has reached the end of a line goes on: how many lines are blank, and where
    /// it does.
    fn goes_on(&self, end: usize, column: i32) -> Option<Option<(usize, usize)>> {
        if byte(self.bytes, end) != b'\n' {
            return Some(None);
        }
        let (blank_lines, next) = self.skip_blank_lines(end + 1);
        let line = self.bytes[..next].iter().rposition(|&b| b != b' ').map_or(0, |last| last + 1);
        match byte(self.bytes, next) {
            b'\t' => None,
            0 | b'#' => Some(None),
            _ if i32::try_from(next - line).ok()? <= column => Some(None),
            _ => Some(Some((blank_lines, next))),
        }
    }

    /// Skips blank lines from the start of a line on, and the spaces before what comes then.
    fn skip_blank_lines(&self, mut at: usize) -> (usize, usize) {
        let mut blank_lines = 0;
        loop {
            at = self.skip_spaces(at);
            if byte(self.bytes, at) != b'\n' {
                return (blank_lines, at);
            }
            blank_lines += 1;
            at += 1;
        }
    }

    /// A quoted scalar, and the offset behind it.
    fn quoted_lines(&self, at: usize) -> Option<(Cow<'a, str>, usize)> {
        let quote = self.bytes[at];
        let (mut out, mut end, mut done) = self.quoted_line(quote, at + 1)?;
        while !done {
            if let Cow::Borrowed(_) = out {
                out = Cow::Owned(out.into_owned());
            }
            let (blank_lines, next) = self.skip_blank_lines(end + 1);
            let at_margin = self.bytes[next - 1] == b'\n';
            if at_margin && matches!(byte(self.bytes, next), b'-' | b'.') {
                return None;
            }
            fold(&mut out, blank_lines);
            let (line, line_end, last) = self.quoted_line(quote, next)?;
            out += line;
            (end, done) = (line_end, last);
        }
        Some((out, end))
    }

    /// A quoted scalar of one line, and the offset behind it; `Some(None)` if it does not end on the line.
    pub(super) fn quoted(&self, at: usize) -> Option<Option<(Cow<'a, str>, usize)>> {
        let (text, end, done) = self.quoted_line(self.bytes[at], at + 1)?;
        Some(done.then_some((text, end)))
    }

    /// What one line adds to a quoted scalar, and either the offset behind the closing quote and true, or
    /// that of the line break and false.
    fn quoted_line(&self, quote: u8, at: usize) -> Option<(Cow<'a, str>, usize, bool)> {
        let mut out = Cow::Borrowed("");
        let (mut from, mut end) = (at, at);
        loop {
            match *self.bytes.get(end)? {
                b if b == quote => {
                    out += &self.text[from..end];
                    if quote == b'"' || byte(self.bytes, end + 1) != quote {
                        return Some((out, end + 1, true));
                    }
                    out += "'";
                    end += 2;
                    from = end;
                }
                b'\\' if quote == b'"' => {
                    out += &self.text[from..end];
                    out += match byte(self.bytes, end + 1) {
                        b'n' => "\n",
                        b't' => "\t",
                        b'"' => "\"",
                        b'\\' => "\\",
                        _ => return None,
                    };
                    end += 2;
                    from = end;
                }
                b'\n' => {
                    out += self.text[from..end].trim_end_matches(' ');
                    return Some((out, end, false));
                }
                b'\t' => return None,
                _ => end += 1,
            }
        }
    }

    /// Literal or folded text without an indentation of its own choice.
    fn block_scalar(&mut self, at: usize, column: i32, keep: bool) -> Option<M::Node> {
        let folded = self.bytes[at] == b'>';
        let (chomping, rest) = match byte(self.bytes, at + 1) {
            b'-' => (Chomping::Strip, at + 2),
            b'+' => (Chomping::Keep, at + 2),
            _ => (Chomping::Clip, at + 1),
        };
        let rest = self.skip_spaces(rest);
        if byte(self.bytes, rest) != b'\n' {
            return None;
        }
        let indent = self.text_indent(rest + 1, column)?;
        let (text, end) = self.text_lines(rest + 1, indent, folded, chomping, keep)?;
        self.start_line(end)?;
        let style = if folded { Style::Folded } else { Style::Literal };
        Some(self.text_if(text.into(), style, keep))
    }

    /// The indentation of the first line of a text that is not blank.
    fn text_indent(&self, mut at: usize, column: i32) -> Option<usize> {
        let mut blank = 0;
        loop {
            let content = self.skip_spaces(at);
            let indent = content - at;
            match byte(self.bytes, content) {
                b'\n' => {
                    blank = blank.max(indent);
                    at = content + 1;
                }
                0 | b'\t' => return None,
                _ => {
                    return (indent >= blank && i32::try_from(indent).ok()? > column.max(0))
                        .then_some(indent);
                }
            }
        }
    }

    /// The lines of a text, and where the first line behind it starts.
    fn text_lines(
        &self,
        mut at: usize,
        indent: usize,
        folded: bool,
        chomping: Chomping,
        keep: bool,
    ) -> Option<(String, usize)> {
        let mut out = String::new();
        let (mut broken, mut blank_lines, mut after_indented) = (false, 0, false);
        loop {
            let line = at;
            while at < line + indent && byte(self.bytes, at) == b' ' {
                at += 1;
            }
            let first = byte(self.bytes, at);
            if first == b'\n' {
                blank_lines += 1;
                at += 1;
                continue;
            }
            if at < line + indent || first == 0 {
                if first == b'\t' {
                    return None;
                }
                if broken && chomping != Chomping::Strip {
                    out.push('\n');
                }
                if chomping == Chomping::Keep {
                    out.extend(std::iter::repeat_n('\n', blank_lines));
                }
                return Some((out, line));
            }
            let end = self.line_end(at);
            if keep {
                let indented = matches!(first, b' ' | b'\t');
                match folded && broken && !indented && !after_indented {
                    true if blank_lines == 0 => out.push(' '),
                    true => {}
                    false if broken => out.push('\n'),
                    false => {}
                }
                out.extend(std::iter::repeat_n('\n', blank_lines));
                after_indented = indented;
                out.push_str(&self.text[at..end]);
            }
            (broken, blank_lines) = (end < self.bytes.len(), 0);
            at = (end + 1).min(self.bytes.len());
        }
    }
}

/// Joins two lines of a scalar that have so many blank lines between them.
fn fold(out: &mut Cow<'_, str>, blank_lines: usize) {
    match blank_lines {
        0 => *out += " ",
        _ => out.to_mut().extend(std::iter::repeat_n('\n', blank_lines)),
    }
}
