//! Reading the characters, names and values of a TOML text, with the faults that `github.com/BurntSushi/toml`
//! finds in them.

use tiphys_gocompat::{
    rawstr,
    strconv::{NumError, parse_float, parse_int, quote, quote_rune},
    unicode::is_letter,
};
use tiphys_gotemplate::Value;

use super::time_text;

/// What is wrong with a text, and in which line.
#[derive(Debug)]
pub(super) struct TomlError {
    pub(super) line: usize,
    pub(super) message: String,
}

pub(super) type Scan<T> = Result<T, TomlError>;

/// A place in a TOML text.
pub(super) struct Scanner<'t> {
    text: &'t str,
    at: usize,
    pub(super) line: usize,
    /// The last character asked for was the one after the end.
    ended: bool,
}

/// Go's scanner sees the end as this character, which no text may have.
const END: char = '\0';

pub(super) fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

pub(super) fn is_newline(c: char) -> bool {
    c == '\n' || c == '\r'
}

/// A character in a message, or the end.
fn describe_char(c: char) -> String {
    if c == END { "end of file".to_owned() } else { format!("'{c}'") }
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1, ended: false }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The next character, which is looked at only; the end is a NUL.
    pub(super) fn peek(&self) -> Scan<char> {
        let Some(c) = self.rest().chars().next() else { return Ok(END) };
        if let Some(byte) = rawstr::byte_of(c) {
            return self.fail(format!("invalid UTF-8 byte: 0x{byte:02x}"));
        }
        let alone = c == '\r' && !self.rest().starts_with("\r\n");
        if alone || (c.is_ascii_control() && !is_blank(c) && !is_newline(c)) {
            let code = u32::from(c);
            return self.fail(format!("TOML files cannot contain control characters: '0x{code:02x}'"));
        }
        Ok(c)
    }

    pub(super) fn next(&mut self) -> Scan<char> {
        let c = self.peek()?;
        self.ended = c == END;
        if !self.ended {
            self.at += c.len_utf8();
            self.line += usize::from(c == '\n');
        }
        Ok(c)
    }

    fn accept(&mut self, wanted: char) -> Scan<bool> {
        let found = self.peek()? == wanted;
        if found {
            self.next()?;
        }
        Ok(found)
    }

    pub(super) fn skip(&mut self, skipped: impl Fn(char) -> bool) -> Scan<()> {
        while skipped(self.peek()?) {
            self.next()?;
        }
        Ok(())
    }

    /// A fault here; at the end, in the last line that says something.
    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Scan<T> {
        let blank = self.ended && self.text.ends_with('\n');
        Err(TomlError { line: self.line - usize::from(blank), message: message.into() })
    }

    /// A fault in the line before, since that of the newline has begun.
    fn fail_before<T>(&self, message: impl Into<String>) -> Scan<T> {
        Err(TomlError { line: self.line - 1, message: message.into() })
    }

    /// What was expected where another character is, which has been read.
    fn expected<T>(&self, wanted: &str, found: char) -> Scan<T> {
        let message = format!("expected {wanted}, but got {} instead", quote_rune(found));
        if found == '\n' && wanted == "'.' or '='" { self.fail_before(message) } else { self.fail(message) }
    }

    /// Goes on to the end of a line, behind a number sign.
    fn comment(&mut self) -> Scan<()> {
        self.skip(|c| !is_newline(c) && c != END)
    }

    /// Skips white space, newlines and comments.
    fn space(&mut self) -> Scan<char> {
        loop {
            match self.peek()? {
                '#' => self.comment()?,
                c if is_blank(c) || is_newline(c) => drop(self.next()?),
                c => return Ok(c),
            }
        }
    }

    /// Goes to the next table or key of the whole text; its first character.
    pub(super) fn top(&mut self) -> Scan<Option<char>> {
        let c = self.space()?;
        Ok((c != END).then_some(c))
    }

    /// The end of the line after a table's name or a value.
    pub(super) fn line_end(&mut self) -> Scan<()> {
        self.skip(is_blank)?;
        match self.next()? {
            '#' => self.comment(),
            c if is_newline(c) || c == END => Ok(()),
            c => {
                let found = quote_rune(c);
                self.fail(format!(
                    "expected a top-level item to end with a newline, comment, or EOF, but got {found} instead"
                ))
            }
        }
    }

    fn part(&mut self) -> Scan<String> {
        match self.peek()? {
            '"' => {
                self.next()?;
                self.basic()
            }
            '\'' => {
                self.next()?;
                self.literal()
            }
            _ => {
                let start = self.at;
                self.skip(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')?;
                Ok(self.text[start..self.at].to_owned())
            }
        }
    }

    /// The name of a table in brackets, behind the first one; whether it is one of several, and the line of
    /// the name.
    pub(super) fn table_name(&mut self) -> Scan<(Vec<String>, bool, usize)> {
        let several = self.accept('[')?;
        let mut parts = Vec::new();
        let mut line = None;
        loop {
            self.skip(is_blank)?;
            match self.peek()? {
                ']' | END => {
                    return self.fail("unexpected end of table name (table names cannot be empty)");
                }
                '.' => return self.fail("unexpected table separator (table names cannot be empty)"),
                _ => parts.push(self.part()?),
            }
            line.get_or_insert(self.line);
            self.skip(is_blank)?;
            match self.next()? {
                '.' => {}
                ']' => break,
                c => return self.expected("'.' or ']' to end table name", c),
            }
        }
        if several {
            match self.next()? {
                ']' => {}
                c => return self.expected("end of table array name delimiter ']'", c),
            }
        }
        Ok((parts, several, line.unwrap_or(self.line)))
    }

    /// The parts of a key up to its equals sign, and their line.
    pub(super) fn key(&mut self) -> Scan<(Vec<String>, usize)> {
        self.skip(is_blank)?;
        match self.peek()? {
            '=' | END => return self.fail("unexpected '=': key name appears blank"),
            '.' => return self.fail("unexpected '.': keys cannot start with a '.'"),
            _ => {}
        }
        let mut parts = Vec::new();
        let mut line = None;
        loop {
            self.skip(is_blank)?;
            match self.peek()? {
                '=' | END => return self.fail("unexpected '='"),
                '.' => return self.fail("unexpected '.'"),
                _ => parts.push(self.part()?),
            }
            line.get_or_insert(self.line);
            self.skip(is_blank)?;
            match self.next()? {
                '.' => {}
                '=' => return Ok((parts, line.unwrap_or(self.line))),
                END => return self.fail("unexpected EOF; expected key separator '='"),
                c => return self.expected("'.' or '='", c),
            }
        }
    }

    /// What follows a value of an array or an inline table: whether there may be more.
    pub(super) fn has_more(&mut self, close: char) -> Scan<bool> {
        match self.space()? {
            ',' => {
                self.next()?;
                if close == '}' {
                    self.skip(is_blank)?;
                    return if self.peek()? == close { self.has_more(close) } else { Ok(true) };
                }
                Ok(true)
            }
            c if c == close => {
                self.next()?;
                Ok(false)
            }
            _ => {
                let c = self.next()?;
                let found = describe_char(c);
                self.fail(match close {
                    ']' => format!("expected a comma (',') or array terminator (']'), but got {found}"),
                    _ => format!(
                        "expected a comma or an inline table terminator '}}', but got {found} instead"
                    ),
                })
            }
        }
    }

    /// Whether an array or an inline table has another value here, or ends, which is read over.
    pub(super) fn another(&mut self, close: char) -> Scan<bool> {
        match self.space()? {
            ',' => {
                self.next()?;
                self.fail("unexpected comma")
            }
            c if c == close => self.next().map(|_| false),
            _ => Ok(true),
        }
    }

    /// The first character of a value.
    pub(super) fn value_start(&mut self) -> Scan<char> {
        self.skip(is_blank)?;
        self.peek()
    }

    /// A value that is no array and no table.
    pub(super) fn scalar(&mut self) -> Scan<Value> {
        let start = self.at;
        let first = self.next()?;
        match first {
            '"' if self.rest().starts_with("\"\"") => {
                self.at += 2;
                self.long_basic().map(Value::from)
            }
            '"' => self.basic().map(Value::from),
            '\'' if self.rest().starts_with("''") => {
                self.at += 2;
                self.long_literal().map(Value::from)
            }
            '\'' => self.literal().map(Value::from),
            '.' => self.fail("floats must start with a digit, not '.'"),
            '0'..='9' => self.number_or_date(start, first),
            '+' | '-' => self.signed(start),
            'i' | 'n' if self.special()? => self.float(start),
            c if is_letter(c) => self.word(),
            END => self.fail("unexpected EOF; expected value"),
            '\n' => self.fail_before("expected value but found '\\n' instead"),
            c => self.fail(format!("expected value but found {} instead", quote_rune(c))),
        }
    }

    /// The rest of `inf` or `nan`, as far as it is there.
    fn special(&mut self) -> Scan<bool> {
        Ok((self.accept('n')? && self.accept('f')?) || (self.accept('a')? && self.accept('n')?))
    }

    /// A word that begins with the character read last.
    fn word(&mut self) -> Scan<Value> {
        let start = self.text[..self.at].char_indices().next_back().map_or(0, |(at, _)| at);
        self.skip(is_letter)?;
        match &self.text[start..self.at] {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            word => self.fail(format!("expected value but found {} instead", quote(word))),
        }
    }

    fn number_or_date(&mut self, start: usize, first: char) -> Scan<Value> {
        if first == '0' {
            match self.peek()? {
                'b' => return self.based(start, "a binary", |c| matches!(c, '0' | '1')),
                'o' => return self.based(start, "an octal", |c| matches!(c, '0'..='7')),
                'x' => return self.based(start, "a hexadecimal", |c| c.is_ascii_hexdigit()),
                _ => {}
            }
        }
        self.skip(|c| c.is_ascii_digit())?;
        match self.peek()? {
            '-' | ':' if self.at - start > 1 || first != '0' => {
                let is_part =
                    |c| matches!(c, '0'..='9' | '-' | ':' | 'T' | 't' | ' ' | '.' | 'Z' | 'z' | '+');
                self.skip(is_part)?;
                self.date(self.text[start..self.at].trim())
            }
            _ => self.decimal(start),
        }
    }

    fn based(&mut self, start: usize, kind: &str, is_digit: fn(char) -> bool) -> Scan<Value> {
        self.next()?;
        let c = self.peek()?;
        if !is_digit(c) {
            let read = &self.text[start..self.at];
            return self.fail(format!("not {kind} number: '{read}{c}'"));
        }
        self.skip(|c| is_digit(c) || c == '_')?;
        self.integer(start)
    }

    fn signed(&mut self, start: usize) -> Scan<Value> {
        let c = self.next()?;
        let rest = match c {
            'i' => "nf",
            'n' => "an",
            '0' if matches!(self.peek()?, 'b' | 'o' | 'x') => {
                let (read, base) = (&self.text[start..self.at], self.peek()?);
                return self.fail(format!("cannot use sign with non-decimal numbers: '{read}{base}'"));
            }
            '.' => return self.fail("floats must start with a digit, not '.'"),
            c if c.is_ascii_digit() => return self.decimal(start),
            c => return self.fail(format!("expected a digit but got {}", quote_rune(c))),
        };
        for wanted in rest.chars() {
            if !self.accept(wanted)? {
                let read = &self.text[start..self.at];
                return self.fail(format!("invalid float: '{read}'"));
            }
        }
        self.float(start)
    }

    /// A decimal number of which the first digit is read.
    fn decimal(&mut self, start: usize) -> Scan<Value> {
        self.skip(|c| c.is_ascii_digit() || c == '_')?;
        if !matches!(self.peek()?, '.' | 'e' | 'E') {
            return self.integer(start);
        }
        self.skip(|c| matches!(c, '0'..='9' | '_' | '.' | '-' | '+' | 'e' | 'E'))?;
        self.float(start)
    }

    fn integer(&self, start: usize) -> Scan<Value> {
        let text = &self.text[start..self.at];
        let bad = |why: &str| self.fail(format!("Invalid integer {}: {why}", quote(text)));
        if !underscores_fit(text) {
            return bad("underscores must be surrounded by digits");
        }
        if has_leading_zero(text) {
            return bad("cannot have leading zeroes");
        }
        match parse_int(&text.replace('_', ""), 0) {
            Ok(number) => Ok(Value::Int64(number)),
            Err(NumError::Range) => self.fail(format!("{text} is out of range for int64")),
            Err(NumError::Syntax) => bad("not a number"),
        }
    }

    fn float(&self, start: usize) -> Scan<Value> {
        let text = &self.text[start..self.at];
        let bad = |why: &str| self.fail(format!("Invalid float {}: {why}", quote(text)));
        let mut parts = text.split(['.', 'e', 'E']).filter(|part| !part.is_empty());
        if !parts.clone().all(underscores_fit) {
            return bad("underscores must be surrounded by digits");
        }
        if parts.next().is_some_and(has_leading_zero) {
            return bad("cannot have leading zeroes");
        }
        let mut after_dots = text.split('.').skip(1);
        if !after_dots.all(|after| after.starts_with(|c: char| c.is_ascii_digit())) {
            return bad("'.' must be followed by one or more digits");
        }
        match text {
            "nan" | "+nan" => return Ok(Value::Float64(f64::NAN)),
            "-nan" => return Ok(Value::Float64(-f64::NAN)),
            _ => {}
        }
        match parse_float(&text.replace('_', "")) {
            Ok(number) => Ok(Value::Float64(number)),
            Err(NumError::Range) => self.fail(format!("{text} is out of range for float64")),
            Err(NumError::Syntax) => self.fail(format!("Invalid float value: {}", quote(text))),
        }
    }

    fn date(&self, text: &str) -> Scan<Value> {
        match text.parse::<::toml::value::Datetime>() {
            Ok(time) => Ok(Value::string(time_text(&time))),
            Err(_) => {
                let text = text.replace(['t', ' '], "T").replace('z', "Z");
                self.fail(format!("invalid datetime: {}", quote(&text)))
            }
        }
    }

    /// A text in double quotes, behind the first one.
    fn basic(&mut self) -> Scan<String> {
        let start = self.at;
        let mut out = String::new();
        let mut fault = None;
        loop {
            match self.next()? {
                END => return self.fail("unexpected EOF; expected '\"'"),
                c if is_newline(c) => return self.fail_before("strings cannot contain newlines"),
                '"' => break,
                '\\' => fault = self.escape(start, &mut out)?.or(fault),
                c => out.push(c),
            }
        }
        fault.map_or(Ok(out), |fault| self.fail(fault))
    }

    /// A text in three double quotes, behind these.
    fn long_basic(&mut self) -> Scan<String> {
        self.first_newline();
        let start = self.at;
        let mut out = String::new();
        let mut fault = None;
        loop {
            match self.next()? {
                END => return self.fail("unexpected EOF; expected '\"\"\"'"),
                '"' => {
                    if let Some(quotes) = self.closing('"', "'\"\"\"\"\"\"'")? {
                        out.push_str(&"\"".repeat(quotes));
                        break;
                    }
                    out.push('"');
                }
                '\\' => {
                    let blank =
                        self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\r', '\n']).len();
                    if self.rest()[..blank].contains('\n') {
                        self.skip(|c| is_blank(c) || is_newline(c))?;
                    } else {
                        fault = self.escape(start, &mut out)?.or(fault);
                    }
                }
                c => out.push(c),
            }
        }
        fault.map_or(Ok(out), |fault| self.fail(fault))
    }

    /// A text in single quotes, behind the first one.
    fn literal(&mut self) -> Scan<String> {
        let start = self.at;
        loop {
            match self.next()? {
                END => return self.fail("unexpected EOF; expected \"'\""),
                c if is_newline(c) => return self.fail_before("strings cannot contain newlines"),
                '\'' => return Ok(self.text[start..self.at - 1].to_owned()),
                _ => {}
            }
        }
    }

    /// A text in three single quotes, behind these.
    fn long_literal(&mut self) -> Scan<String> {
        self.first_newline();
        let start = self.at;
        loop {
            match self.next()? {
                END => return self.fail("unexpected EOF; expected \"'''\""),
                '\'' if self.closing('\'', "\"''''''\"")?.is_some() => {
                    return Ok(self.text[start..self.at - 3].to_owned());
                }
                _ => {}
            }
        }
    }

    /// A newline straight after the opening quotes is none of the text.
    fn first_newline(&mut self) {
        for newline in ["\n", "\r\n"] {
            if self.rest().starts_with(newline) {
                self.at += newline.len();
                self.line += 1;
                return;
            }
        }
    }

    /// Behind a quote: if it is the first of three that close the text, how many stand before those; they are
    /// all read.
    fn closing(&mut self, mark: char, too_many: &str) -> Scan<Option<usize>> {
        let further = self.rest().chars().take_while(|c| *c == mark).count();
        match further {
            0 | 1 => Ok(None),
            2..=4 => {
                self.at += further;
                // Go looks whether another quote follows while it reads the text.
                self.peek()?;
                Ok(Some(further - 2))
            }
            _ => self.fail(format!("unexpected {too_many}")),
        }
    }

    /// What follows a backslash in a text that began at an offset. A fault that Go finds only when it has
    /// read all of the text is handed back.
    fn escape(&mut self, start: usize, out: &mut String) -> Scan<Option<String>> {
        let (kind, count) = match self.next()? {
            'x' => ("two hexadecimal digits after '\\x'", 2),
            'u' => ("four hexadecimal digits after '\\u'", 4),
            'U' => ("eight hexadecimal digits after '\\U'", 8),
            c @ (' ' | '\t') => return Ok(Some(format!("invalid escape: '\\{c}'"))),
            c => {
                let meant = match c {
                    'b' => '\u{8}',
                    't' => '\t',
                    'n' => '\n',
                    'f' => '\u{c}',
                    'r' => '\r',
                    'e' => '\u{1b}',
                    '"' | '\\' => c,
                    c => {
                        let message = format!("invalid escape in string '\\{c}'");
                        return if c == END { self.fail_before(message) } else { self.fail(message) };
                    }
                };
                out.push(meant);
                return Ok(None);
            }
        };
        let digits = self.at;
        for _ in 0..count {
            if !self.next()?.is_ascii_hexdigit() {
                let read = quote(&self.text[start..self.at]);
                return self.fail(format!("expected {kind}, but got {read} instead"));
            }
        }
        let digits = &self.text[digits..self.at];
        Ok(match u32::from_str_radix(digits, 16).ok().and_then(char::from_u32) {
            Some(c) => {
                out.push(c);
                None
            }
            None => Some(format!("Escaped character '\\u{digits}' is not valid UTF-8.")),
        })
    }
}

/// Whether every underscore stands between digits.
fn underscores_fit(number: &str) -> bool {
    if matches!(number.trim_start_matches(['+', '-']), "nan" | "inf") {
        return true;
    }
    let mut fits = false;
    for c in number.chars() {
        if c == '_' && !fits {
            return false;
        }
        fits = c.is_ascii_hexdigit();
    }
    fits
}

fn has_leading_zero(number: &str) -> bool {
    match number.as_bytes() {
        [b'0', next, ..] => !matches!(next, b'b' | b'o' | b'x'),
        [b'+' | b'-', b'0', _, ..] => true,
        _ => false,
    }
}
