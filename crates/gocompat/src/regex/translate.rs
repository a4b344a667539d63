//! From Go's syntax to that of the regex crate.

use super::RegexError;
use super::class;
use super::expand::Names;

const MAX_REPEAT: u32 = 1000;
const MAX_NESTING: usize = 1000;

/// The pattern for the regex crate, whose groups have no names, and the names.
pub(super) fn translate(pattern: &str) -> Result<(String, Names), RegexError> {
    let mut translator = Translator {
        pattern,
        rest: pattern,
        out: String::with_capacity(pattern.len() + 16),
        groups: Vec::new(),
        captures: 0,
        names: Names::new(),
        has_operand: false,
        last_repeat: None,
        flags_at: None,
    };
    translator.run()?;
    Ok((translator.out, translator.names))
}

struct Translator<'p> {
    pattern: &'p str,
    rest: &'p str,
    out: String,
    /// For each open group, whether something stood before it.
    groups: Vec<bool>,
    /// How many groups capture so far.
    captures: usize,
    names: Names,
    /// Whether something can be repeated here.
    has_operand: bool,
    /// The input from the last repetition on, if it ends here.
    last_repeat: Option<&'p str>,
    /// Where in the output flags begin that stand between an operand and its repetition.
    flags_at: Option<usize>,
}

pub(super) fn error<T>(code: &'static str, part: &str) -> Result<T, RegexError> {
    Err(RegexError { code, part: part.to_owned() })
}

/// Appends a character that means itself.
pub(super) fn push_literal(out: &mut String, c: char) {
    if c.is_ascii()
        && !c.is_ascii_alphanumeric()
        && !c.is_ascii_control()
        && !matches!(c, ' ' | '<' | '>' | '_' | '"' | '\'')
    {
        out.push('\\');
    }
    if c.is_ascii_control() {
        out.push_str(&format!("\\x{:02X}", u32::from(c)));
    } else {
        out.push(c);
    }
}

impl<'p> Translator<'p> {
    fn run(&mut self) -> Result<(), RegexError> {
        while let Some(c) = self.rest.chars().next() {
            let mut repeat = None;
            let flags_at = self.flags_at;
            match c {
                '(' => self.open()?,
                ')' => self.close()?,
                '|' => {
                    self.advance(1);
                    self.out.push('|');
                    self.has_operand = false;
                }
                '^' | '$' | '.' => {
                    self.advance(1);
                    self.out.push(c);
                    self.has_operand = true;
                }
                '[' => {
                    self.rest = class::bracket(self.rest, &mut self.out)?;
                    self.has_operand = true;
                }
                '*' | '+' | '?' => {
                    repeat = Some(self.rest);
                    let operator = &self.rest[..1];
                    self.repetition(operator.to_owned(), 1)?;
                }
                '{' => match parse_repeat(self.rest) {
                    Some((low, high, length)) => {
                        repeat = Some(self.rest);
                        self.counted(low, high, length)?;
                    }
                    None => self.literal('{'),
                },
                '\\' => self.escape()?,
                c => self.literal(c),
            }
            self.last_repeat = repeat;
            if self.flags_at == flags_at {
                self.flags_at = None;
            }
        }
        if !self.groups.is_empty() {
            return error("missing closing )", self.pattern);
        }
        Ok(())
    }

    fn advance(&mut self, bytes: usize) -> &'p str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn literal(&mut self, c: char) {
        self.advance(c.len_utf8());
        push_literal(&mut self.out, c);
        self.has_operand = true;
    }

    fn counted(
        &mut self,
        low: Option<u32>,
        high: Option<Option<u32>>,
        length: usize,
    ) -> Result<(), RegexError> {
        let text = &self.rest[..length];
        let Some(low) = low.filter(|low| *low <= MAX_REPEAT) else {
            return error("invalid repeat count", text);
        };
        let operator = match high {
            Some(Some(high)) if high > MAX_REPEAT || low > high => {
                return error("invalid repeat count", text);
            }
            Some(Some(high)) if high == low => format!("{{{low}}}"),
            Some(Some(high)) => format!("{{{low},{high}}}"),
            Some(None) => format!("{{{low},}}"),
            None => return error("invalid repeat count", text),
        };
        self.repetition(operator, length)
    }

    fn repetition(&mut self, operator: String, length: usize) -> Result<(), RegexError> {
        let before = self.rest;
        self.advance(length);
        let mut operator = operator;
        if self.rest.starts_with('?') {
            self.advance(1);
            operator.push('?');
        }
        match self.flags_at {
            Some(at) => self.out.insert_str(at, &operator),
            None => self.out.push_str(&operator),
        }
        if let Some(last) = self.last_repeat {
            return error("invalid nested repetition operator", &last[..last.len() - self.rest.len()]);
        }
        if !self.has_operand {
            return error(
                "missing argument to repetition operator",
                &before[..before.len() - self.rest.len()],
            );
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(), RegexError> {
        if self.groups.len() >= MAX_NESTING {
            return error("expression nests too deeply", self.pattern);
        }
        if !self.rest.starts_with("(?") {
            self.advance(1);
            return self.capture();
        }
        let body = &self.rest[2..];
        let named = body.strip_prefix("P<").or_else(|| body.strip_prefix('<'));
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            return self.named_group(named);
        }
        self.flags(body)
    }

    fn opened(&mut self) -> Result<(), RegexError> {
        self.groups.push(self.has_operand);
        self.has_operand = false;
        Ok(())
    }

    fn named_group(&mut self, named: &'p str) -> Result<(), RegexError> {
        let Some(end) = named.find('>') else {
            return error("invalid named capture", self.rest);
        };
        let name = &named[..end];
        let head = self.rest.len() - named.len() + end + 1;
        if name.is_empty() || !name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
            return error("invalid named capture", &self.rest[..head]);
        }
        self.advance(head);
        self.names.entry(name.to_owned()).or_default().push(self.captures + 1);
        self.capture()
    }

    /// A group that captures, without a name: the regex crate has other rules for them.
    fn capture(&mut self) -> Result<(), RegexError> {
        self.captures += 1;
        self.out.push('(');
        self.opened()
    }

    fn flags(&mut self, body: &'p str) -> Result<(), RegexError> {
        let (mut negative, mut seen) = (false, false);
        for (at, c) in body.char_indices() {
            match c {
                'i' | 'm' | 's' | 'U' => seen = true,
                '-' if !negative => (negative, seen) = (true, false),
                ':' | ')' if !negative || seen => {
                    let text = self.advance(2 + at + 1);
                    if c == ':' {
                        self.out.push_str(text);
                        return self.opened();
                    }
                    if self.has_operand && !text.contains('U') && self.flags_at.is_none() {
                        self.flags_at = Some(self.out.len());
                    }
                    if text != "(?)" {
                        self.out.push_str(text);
                    }
                    return Ok(());
                }
                c => return error("invalid or unsupported Perl syntax", &self.rest[..2 + at + c.len_utf8()]),
            }
        }
        error("missing closing )", self.pattern)
    }

    fn close(&mut self) -> Result<(), RegexError> {
        if self.groups.pop().is_none() {
            return error("unexpected )", self.pattern);
        }
        self.advance(1);
        self.out.push(')');
        self.has_operand = true;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), RegexError> {
        let next = self.rest[1..].chars().next();
        self.has_operand = true;
        match next {
            Some('A') => self.out.push_str(r"\A"),
            Some('z') => self.out.push_str(r"\z"),
            Some('b') => self.out.push_str(r"(?-u:\b)"),
            Some('B') => self.out.push_str(r"(?-u:\B)"),
            Some('C') => return error("invalid escape sequence", r"\C"),
            Some('Q') => {
                let body = &self.rest[2..];
                let end = body.find(r"\E");
                let literal = &body[..end.unwrap_or(body.len())];
                literal.chars().for_each(|c| push_literal(&mut self.out, c));
                self.has_operand |= !literal.is_empty();
                self.rest = end.map_or("", |end| &body[end + 2..]);
                return Ok(());
            }
            _ => {
                self.rest = class::escape(self.rest, &mut self.out)?;
                return Ok(());
            }
        }
        self.advance(2);
        Ok(())
    }
}

/// Bounds and length of `{n}`, `{n,}` or `{n,m}`; a bound that is too large is none.
#[allow(clippy::type_complexity, reason = "two bounds, either of which may be missing or too large")]
fn parse_repeat(text: &str) -> Option<(Option<u32>, Option<Option<u32>>, usize)> {
    let end = text.find('}')?;
    let body = &text[1..end];
    let (low, high) = match body.split_once(',') {
        None => (body, Some(body)),
        Some((low, "")) => (low, None),
        Some((low, high)) => (low, Some(high)),
    };
    let number = |text: &str| -> Option<Option<u32>> {
        let valid = !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && !(text.len() > 1 && text.starts_with('0'));
        valid.then(|| text.parse().ok().filter(|number| *number < 100_000_000))
    };
    let low = number(low)?;
    let high = match high {
        None => Some(None),
        Some(high) => number(high)?.map(Some),
    };
    Some((low, high, end + 1))
}
