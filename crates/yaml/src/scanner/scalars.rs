//! Plain, quoted and block scalars. Text that needs no unfolding or unescaping is borrowed.

use super::*;
use crate::Style;

/// Text of a scalar that is borrowed as long as it is one piece of the input.
struct Pieces<'a> {
    text: &'a str,
    out: String,
    owned: bool,
    /// Start of the piece that has not been copied yet.
    from: usize,
}

impl<'a> Pieces<'a> {
    fn new(text: &'a str, from: usize) -> Self {
        Self { text, out: String::new(), owned: false, from }
    }

    /// Copies the open piece up to `end`.
    fn flush(&mut self, end: usize) {
        self.owned = true;
        self.out.push_str(&self.text[self.from..end]);
        self.from = end;
    }

    fn push_fold(&mut self, leading: &str, trailing: &str) {
        if leading == "\n" {
            self.out.push_str(if trailing.is_empty() { " " } else { trailing });
        } else {
            self.out.push_str(leading);
            self.out.push_str(trailing);
        }
    }

    fn finish(mut self, end: usize) -> Cow<'a, str> {
        if !self.owned {
            return Cow::Borrowed(&self.text[self.from..end]);
        }
        self.flush(end);
        Cow::Owned(self.out)
    }
}

/// How a byte ends a run of a plain scalar.
const ORDINARY: u8 = 0;
const STOP: u8 = 1;
const COLON: u8 = 2;
const FLOW: u8 = 3;
const WIDE_BREAK: u8 = 4;
const CONTINUATION: u8 = 5;

static PLAIN: [u8; 256] = {
    let mut table = [ORDINARY; 256];
    table[0] = STOP;
    table[b' ' as usize] = STOP;
    table[b'\t' as usize] = STOP;
    table[b'\n' as usize] = STOP;
    table[b'\r' as usize] = STOP;
    table[b':' as usize] = COLON;
    table[b',' as usize] = FLOW;
    table[b'?' as usize] = FLOW;
    table[b'[' as usize] = FLOW;
    table[b']' as usize] = FLOW;
    table[b'{' as usize] = FLOW;
    table[b'}' as usize] = FLOW;
    let mut b = 0x80;
    while b < 0xC0 {
        table[b] = CONTINUATION;
        b += 1;
    }
    table[0xC2] = WIDE_BREAK;
    table[0xE2] = WIDE_BREAK;
    table
};

impl<'a> Scanner<'a> {
    /// Moves over characters of a plain scalar up to a blank, a break or an indicator that ends it.
    /// Returns whether it moved.
    #[inline]
    fn skip_plain_run(&mut self) -> bool {
        let mut at = self.pos;
        let mut continuation = 0;
        while at < self.bytes.len() {
            match PLAIN[self.bytes[at] as usize] {
                ORDINARY => {}
                STOP => break,
                COLON if is_blankz(self.bytes, at + 1) => break,
                FLOW if self.flow_level > 0 => break,
                WIDE_BREAK if is_break(self.bytes, at) => break,
                CONTINUATION => continuation += 1,
                _ => {}
            }
            at += 1;
        }
        if at == self.pos {
            return false;
        }
        let chars = (at - self.pos) as u32 - continuation;
        self.skip_run(at, chars);
        true
    }

    pub(super) fn scan_plain_scalar(&mut self) -> Scan<Token<'a>> {
        let start = self.mark();
        let mut end = start;
        let indent = self.indent + 1;
        let mut pieces = Pieces::new(self.text, self.pos);
        let mut leading_break: Option<&str> = None;
        let mut trailing_breaks = String::new();
        loop {
            if self.column == 0 && is_document_indicator(self.bytes, self.pos) || self.byte_at(0) == b'#' {
                break;
            }
            let run = self.pos;
            if self.skip_plain_run() {
                if let Some(leading) = leading_break.take() {
                    pieces.flush(end.offset as usize);
                    pieces.push_fold(leading, &trailing_breaks);
                    trailing_breaks.clear();
                    pieces.from = run;
                }
                end = self.mark();
            }
            if !is_blank(self.bytes, self.pos) && !is_break(self.bytes, self.pos) {
                break;
            }
            loop {
                if is_blank(self.bytes, self.pos) {
                    if leading_break.is_some() && (self.column as i32) < indent && self.byte_at(0) == b'\t' {
                        return self.fault(start, "found a tab character that violates indentation");
                    }
                    self.skip();
                } else if is_break(self.bytes, self.pos) {
                    let text = self.read_line();
                    match leading_break {
                        None => leading_break = Some(text),
                        Some(_) => trailing_breaks.push_str(text),
                    }
                } else {
                    break;
                }
            }
            if self.flow_level == 0 && (self.column as i32) < indent {
                break;
            }
        }
        if leading_break.is_some() {
            self.simple_key_allowed = true;
        }
        let value = pieces.finish(end.offset as usize);
        Ok(Token { kind: TokenKind::Scalar(value, Style::Plain), start, end })
    }

    pub(super) fn scan_flow_scalar(&mut self, single: bool) -> Scan<Token<'a>> {
        let start = self.mark();
        let quote = if single { b'\'' } else { b'"' };
        self.skip();
        let mut pieces = Pieces::new(self.text, self.pos);
        loop {
            if self.column == 0 && is_document_indicator(self.bytes, self.pos) {
                return self.fault(start, "found unexpected document indicator");
            }
            if self.at_end() {
                return self.fault(start, "found unexpected end of stream");
            }
            let escaped_break = self.scan_quoted_run(quote, &mut pieces, start)?;
            if self.byte_at(0) == quote {
                break;
            }
            self.fold_quoted_blanks(escaped_break, &mut pieces);
        }
        let end = self.pos;
        self.skip();
        let style = if single { Style::SingleQuoted } else { Style::DoubleQuoted };
        let kind = TokenKind::Scalar(pieces.finish(end), style);
        Ok(Token { kind, start, end: self.mark() })
    }

    /// Characters of a quoted scalar up to a blank, a break or the quote. Returns whether it stopped
    /// behind an escaped line break.
    fn scan_quoted_run(&mut self, quote: u8, pieces: &mut Pieces<'a>, start: Mark) -> Scan<bool> {
        loop {
            let mut at = self.pos;
            let mut continuation = 0;
            loop {
                let b = byte(self.bytes, at);
                if b == quote || b == b'\\' && quote == b'"' || is_blankz(self.bytes, at) {
                    break;
                }
                continuation += u32::from(b & 0xC0 == 0x80);
                at += 1;
            }
            if at > self.pos {
                let chars = (at - self.pos) as u32 - continuation;
                self.skip_run(at, chars);
            }
            let b = self.byte_at(0);
            if b == b'\'' && quote == b'\'' && self.byte_at(1) == b'\'' {
                pieces.flush(self.pos + 1);
                self.skip_run(self.pos + 2, 2);
                pieces.from = self.pos;
            } else if b == b'\\' && quote == b'"' {
                pieces.flush(self.pos);
                if is_break(self.bytes, self.pos + 1) {
                    self.skip();
                    self.read_line();
                    pieces.from = self.pos;
                    return Ok(true);
                }
                self.scan_escape(pieces, start)?;
                pieces.from = self.pos;
            } else {
                return Ok(false);
            }
        }
    }

    fn scan_escape(&mut self, pieces: &mut Pieces<'a>, start: Mark) -> Scan<()> {
        let mut digits = 0;
        let simple = match self.byte_at(1) {
            b'0' => '\0',
            b'a' => '\u{7}',
            b'b' => '\u{8}',
            b't' | b'\t' => '\t',
            b'n' => '\n',
            b'v' => '\u{B}',
            b'f' => '\u{C}',
            b'r' => '\r',
            b'e' => '\u{1B}',
            b' ' => ' ',
            b'"' => '"',
            b'\'' => '\'',
            b'\\' => '\\',
            b'N' => '\u{85}',
            b'_' => '\u{A0}',
            b'L' => '\u{2028}',
            b'P' => '\u{2029}',
            b'x' => {
                digits = 2;
                '\0'
            }
            b'u' => {
                digits = 4;
                '\0'
            }
            b'U' => {
                digits = 8;
                '\0'
            }
            _ => return self.fault(start, "found unknown escape character"),
        };
        self.skip();
        self.skip();
        if digits == 0 {
            pieces.out.push(simple);
            return Ok(());
        }
        let mut value: u64 = 0;
        for ahead in 0..digits {
            let Some(digit) = (self.byte_at(ahead) as char).to_digit(16) else {
                return self.fault(start, "did not find expected hexdecimal number");
            };
            value = value * 16 + u64::from(digit);
        }
        let Some(c) = u32::try_from(value).ok().and_then(char::from_u32) else {
            return self.fault(start, "found invalid Unicode character escape code");
        };
        pieces.out.push(c);
        self.skip_run(self.pos + digits, digits as u32);
        Ok(())
    }

    /// Blanks and breaks inside a quoted scalar.
    fn fold_quoted_blanks(&mut self, escaped_break: bool, pieces: &mut Pieces<'a>) {
        let blanks = self.pos;
        let mut folding = escaped_break;
        let mut leading = "";
        let mut trailing = String::new();
        loop {
            if is_blank(self.bytes, self.pos) {
                self.skip();
            } else if is_break(self.bytes, self.pos) {
                let text = self.read_line();
                if folding {
                    trailing.push_str(text);
                } else {
                    pieces.flush(blanks);
                    leading = text;
                    folding = true;
                }
            } else {
                break;
            }
        }
        if folding {
            pieces.push_fold(leading, &trailing);
            pieces.from = self.pos;
        }
    }

    pub(super) fn scan_block_scalar(&mut self, literal: bool) -> Scan<Token<'a>> {
        let start = self.mark();
        self.skip();
        let (chomping, increment) = self.scan_block_header(start)?;
        let mut indent = 0;
        if increment > 0 {
            indent = self.indent.max(0) + increment;
        }
        let mut out = String::new();
        let mut leading_break = "";
        let mut trailing_breaks = String::new();
        let mut leading_blank = false;
        let mut end = self.scan_block_breaks(&mut indent, &mut trailing_breaks, start)?;
        while self.column as i32 == indent && !self.at_end() {
            let trailing_blank = is_blank(self.bytes, self.pos);
            if !literal && !leading_blank && !trailing_blank && leading_break == "\n" {
                if trailing_breaks.is_empty() {
                    out.push(' ');
                }
            } else {
                out.push_str(leading_break);
            }
            out.push_str(&trailing_breaks);
            trailing_breaks.clear();
            leading_blank = trailing_blank;

            let from = self.pos;
            self.skip_to(self.line_end());
            out.push_str(&self.text[from..self.pos]);
            leading_break = self.read_line();
            end = self.scan_block_breaks(&mut indent, &mut trailing_breaks, start)?;
        }
        if chomping != Chomping::Strip {
            out.push_str(leading_break);
        }
        if chomping == Chomping::Keep {
            out.push_str(&trailing_breaks);
        }
        let style = if literal { Style::Literal } else { Style::Folded };
        Ok(Token { kind: TokenKind::Scalar(Cow::Owned(out), style), start, end })
    }

    /// Chomping and indentation indicators in either order, and the rest of their line.
    fn scan_block_header(&mut self, start: Mark) -> Scan<(Chomping, i32)> {
        let mut chomping = self.scan_chomping();
        let mut increment = 0;
        if self.byte_at(0).is_ascii_digit() {
            if self.byte_at(0) == b'0' {
                return self.fault(start, "found an indentation indicator equal to 0");
            }
            increment = i32::from(self.byte_at(0) - b'0');
            self.skip();
            if chomping == Chomping::Clip {
                chomping = self.scan_chomping();
            }
        }
        self.skip_blanks();
        if self.byte_at(0) == b'#' {
            if self.keep_comments {
                self.scan_line_comment(start);
            }
            self.skip_to(self.line_end());
        }
        if !is_breakz(self.bytes, self.pos) {
            return self.fault(start, "did not find expected comment or line break");
        }
        self.read_line();
        Ok((chomping, increment))
    }

    fn scan_chomping(&mut self) -> Chomping {
        let chomping = match self.byte_at(0) {
            b'+' => Chomping::Keep,
            b'-' => Chomping::Strip,
            _ => return Chomping::Clip,
        };
        self.skip();
        chomping
    }

    /// Indentation and empty lines before a line of a block scalar; finds the indentation if it is
    /// still 0. Returns where the last empty line ended.
    fn scan_block_breaks(&mut self, indent: &mut i32, breaks: &mut String, start: Mark) -> Scan<Mark> {
        let mut end = self.mark();
        let mut deepest = 0;
        loop {
            while (*indent == 0 || (self.column as i32) < *indent) && self.byte_at(0) == b' ' {
                self.pos += 1;
                self.index += 1;
                self.column += 1;
            }
            deepest = deepest.max(self.column as i32);
            if (*indent == 0 || (self.column as i32) < *indent) && self.byte_at(0) == b'\t' {
                return self.fault(start, "found a tab character where an indentation space is expected");
            }
            if !is_break(self.bytes, self.pos) {
                break;
            }
            breaks.push_str(self.read_line());
            end = self.mark();
        }
        if *indent == 0 {
            *indent = deepest.max(self.indent + 1).max(1);
        }
        Ok(end)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    Clip,
    Strip,
    Keep,
}
