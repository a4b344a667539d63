//! Expressions between `${{` and `}}` (GitHub docs, "Evaluate expressions in workflows and actions").

/// A part of a text that is an expression: its text, and where it starts in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'t> {
    pub(crate) text: &'t str,
    pub(crate) start: usize,
}

/// What an expression asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Name<'t> {
    /// A context, with its position in the expression in bytes and the names behind its dots.
    Context { name: &'t str, at: usize, path: Vec<&'t str> },
    /// A function, with its position.
    Function { name: &'t str, at: usize },
}

/// Why a text or an expression cannot be read, in GitHub's words, and where, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) message: String,
    pub(crate) at: usize,
}

/// How deep parentheses and indexes may nest; GitHub allows 50.
const MAX_DEPTH: usize = 50;

/// The expressions of a text.
///
/// # Errors
/// One that does not end.
pub(crate) fn parts(text: &str) -> Result<Vec<Part<'_>>, Unreadable> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("${{") {
        let start = from + at + 3;
        let Some(length) = end(&text[start..]) else {
            return Err(Unreadable {
                message:
                    "The expression is not closed. An unescaped ${{ sequence was found, but the closing }} \
                          sequence was not found."
                        .to_owned(),
                at: from + at,
            });
        };
        found.push(Part { text: &text[start..start + length], start });
        from = start + length + 2;
    }
    Ok(found)
}

/// Where an expression ends: before the next `}}` that is not in a string.
fn end(text: &str) -> Option<usize> {
    let mut in_string = false;
    let bytes = text.as_bytes();
    (0..bytes.len()).find(|&at| {
        in_string ^= bytes[at] == b'\'';
        !in_string && bytes[at..].starts_with(b"}}")
    })
}

/// The contexts and functions that an expression asks for, in its order.
///
/// # Errors
/// It is no expression, in GitHub's words.
pub(crate) fn names(text: &str) -> Result<Vec<Name<'_>>, Unreadable> {
    if text.trim().is_empty() {
        return Err(Unreadable { message: "An expression was expected".to_owned(), at: 0 });
    }
    let mut parser = Parser { text, tokens: tokens(text)?, at: 0, names: Vec::new() };
    parser.operation(0)?;
    match parser.tokens.get(parser.at) {
        None => Ok(parser.names),
        Some(token) => Err(parser.unexpected(*token)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A string, number, or one of the words that are values.
    Literal,
    Name,
    Operator,
    Not,
    Open,
    Close,
    OpenIndex,
    CloseIndex,
    Dot,
    Comma,
    Star,
}

#[derive(Clone, Copy, Debug)]
struct Token {
    kind: Kind,
    from: usize,
    to: usize,
}

/// Words that are values.
const WORDS: [&str; 5] = ["true", "false", "null", "NaN", "Infinity"];

fn tokens(text: &str) -> Result<Vec<Token>, Unreadable> {
    let bytes = text.as_bytes();
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let behind_dot = tokens.last().is_some_and(|last| last.kind == Kind::Dot);
        let (kind, length) = token(&text[at..], behind_dot).ok_or_else(|| symbol(text, at))?;
        tokens.push(Token { kind, from: at, to: at + length });
        at += length;
    }
    Ok(tokens)
}

/// The kind and length of the token that a text begins with.
fn token(text: &str, behind_dot: bool) -> Option<(Kind, usize)> {
    let two = ["&&", "||", "==", "!=", "<=", ">="].iter().any(|it| text.starts_with(it));
    if two {
        return Some((Kind::Operator, 2));
    }
    let first = text.chars().next()?;
    Some(match first {
        '(' => (Kind::Open, 1),
        ')' => (Kind::Close, 1),
        '[' => (Kind::OpenIndex, 1),
        ']' => (Kind::CloseIndex, 1),
        ',' => (Kind::Comma, 1),
        '*' => (Kind::Star, 1),
        '!' => (Kind::Not, 1),
        '<' | '>' => (Kind::Operator, 1),
        '\'' => (Kind::Literal, string(text)?),
        '0'..='9' | '+' | '-' => (Kind::Literal, number(text)?),
        '.' if text[1..].starts_with(|c: char| c.is_ascii_digit()) => (Kind::Literal, number(text)?),
        '.' => (Kind::Dot, 1),
        'a'..='z' | 'A'..='Z' | '_' => {
            let length = word(text);
            let is_value = !behind_dot && WORDS.contains(&&text[..length]);
            (if is_value { Kind::Literal } else { Kind::Name }, length)
        }
        _ => return None,
    })
}

fn word(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(text.len())
}

/// The length of a string; two quotes in it mean one.
fn string(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        at += text[at..].find('\'')? + 1;
        if bytes.get(at) != Some(&b'\'') {
            return Some(at);
        }
        at += 1;
    }
}

/// The length of a number; `None` if it is none.
fn number(text: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '_');
    let length = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let unsigned = text[..length].trim_start_matches(['+', '-']);
    let of_radix = |prefix: &str, radix| {
        unsigned.strip_prefix(prefix).is_some_and(|digits| u64::from_str_radix(digits, radix).is_ok())
    };
    let is_number = unsigned.parse::<f64>().is_ok() || of_radix("0x", 16) || of_radix("0o", 8);
    is_number.then_some(length)
}

/// GitHub names what cannot be read up to the next space.
fn symbol(text: &str, at: usize) -> Unreadable {
    let rest = &text[at..];
    let shown = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
    Unreadable { message: format!("Unexpected symbol: '{shown}'. {}", position_text(text, at)), at }
}

/// Where something is, as GitHub says it.
pub(crate) fn position_text(text: &str, at: usize) -> String {
    let blank = text.len() - text.trim_start().len();
    let position = text[blank.min(at)..at].chars().count() + 1;
    format!("Located at position {position} within expression: {}", text.trim())
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    at: usize,
    names: Vec<Name<'t>>,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<Kind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.peek() == Some(kind);
        self.at += usize::from(found);
        found
    }

    fn text_of(&self, token: Token) -> &'t str {
        &self.text[token.from..token.to]
    }

    fn unexpected(&self, token: Token) -> Unreadable {
        let message =
            format!("Unexpected symbol: '{}'. {}", self.text_of(token), position_text(self.text, token.from));
        Unreadable { message, at: token.from }
    }

    /// The fault of the token that comes next, or of the end.
    fn fault(&self) -> Unreadable {
        match self.tokens.get(self.at) {
            Some(token) => self.unexpected(*token),
            None => Unreadable {
                message: format!("Unexpected end of expression: {}", self.text.trim()),
                at: self.text.trim_end().len(),
            },
        }
    }

    fn expect(&mut self, kind: Kind) -> Result<(), Unreadable> {
        if self.eat(kind) { Ok(()) } else { Err(self.fault()) }
    }

    /// Operands with operators between them; which binds tighter does not matter to what is asked for.
    fn operation(&mut self, depth: usize) -> Result<(), Unreadable> {
        if depth > MAX_DEPTH {
            let message = format!("Exceeded max expression depth {MAX_DEPTH}");
            return Err(Unreadable { message, at: 0 });
        }
        loop {
            while self.eat(Kind::Not) {}
            self.operand(depth)?;
            if !self.eat(Kind::Operator) {
                return Ok(());
            }
        }
    }

    fn operand(&mut self, depth: usize) -> Result<(), Unreadable> {
        let Some(token) = self.tokens.get(self.at).copied() else { return Err(self.fault()) };
        match token.kind {
            Kind::Literal => {
                self.at += 1;
                return Ok(());
            }
            Kind::Open => {
                self.at += 1;
                self.operation(depth + 1)?;
                self.expect(Kind::Close)?;
            }
            Kind::Name => {
                self.at += 1;
                let (name, at) = (self.text_of(token), token.from);
                if self.eat(Kind::Open) {
                    self.names.push(Name::Function { name, at });
                    self.arguments(depth)?;
                } else {
                    self.names.push(Name::Context { name, at, path: Vec::new() });
                    return self.fields(depth, Some(self.names.len() - 1));
                }
            }
            _ => return Err(self.fault()),
        }
        self.fields(depth, None)
    }

    fn arguments(&mut self, depth: usize) -> Result<(), Unreadable> {
        if self.eat(Kind::Close) {
            return Ok(());
        }
        loop {
            self.operation(depth + 1)?;
            if !self.eat(Kind::Comma) {
                return self.expect(Kind::Close);
            }
        }
    }

    /// Fields and indexes; those that are known beforehand belong to the path of the context that `of` names.
    fn fields(&mut self, depth: usize, of: Option<usize>) -> Result<(), Unreadable> {
        let mut of = of;
        loop {
            if self.eat(Kind::Dot) {
                let token = self.tokens.get(self.at).copied();
                if !self.eat(Kind::Star) {
                    self.expect(Kind::Name)?;
                }
                let name = token.map_or("", |token| self.text_of(token));
                if let Some(Name::Context { path, .. }) = of.and_then(|of| self.names.get_mut(of)) {
                    path.push(name);
                }
            } else if self.eat(Kind::OpenIndex) {
                of = None;
                if !self.eat(Kind::Star) {
                    self.operation(depth + 1)?;
                }
                self.expect(Kind::CloseIndex)?;
            } else {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_found_between_their_marks() {
        let found = parts("a ${{ x }} b ${{ format('}}{0}', y) }}").expect("they end");
        assert_eq!(found.iter().map(|part| part.text).collect::<Vec<_>>(), [" x ", " format('}}{0}', y) "]);
        assert!(parts("a ${{ 'x }}").is_err());
    }

    #[test]
    fn names_of_an_expression() {
        let names = names(
            "!cancelled() && (needs.build.outputs.tag != '' || github['ref'] == 'it''s') && 0x1F > -1.5e3",
        )
        .expect("it is one");
        assert_eq!(
            names,
            [
                Name::Function { name: "cancelled", at: 1 },
                Name::Context { name: "needs", at: 17, path: vec!["build", "outputs", "tag"] },
                Name::Context { name: "github", at: 50, path: vec![] },
            ]
        );
        assert!(super::names("github.event.*.name && matrix.true").is_ok());
    }

    #[test]
    fn what_is_no_expression_is_refused_as_github_refuses_it() {
        for (text, expected) in [
            (
                " env.A == \"b\" ",
                "Unexpected symbol: '\"b\"'. Located at position 10 within expression: env.A == \"b\"",
            ),
            ("a &&", "Unexpected end of expression: a &&"),
            ("a b", "Unexpected symbol: 'b'. Located at position 3 within expression: a b"),
            ("f(a,)", "Unexpected symbol: ')'. Located at position 5 within expression: f(a,)"),
            (" ", "An expression was expected"),
            ("a = b", "Unexpected symbol: '='. Located at position 3 within expression: a = b"),
        ] {
            assert_eq!(names(text).map_err(|error| error.message), Err(expected.to_owned()), "{text}");
        }
        let deep = format!("{}a{}", "(".repeat(200), ")".repeat(200));
        assert!(names(&deep).is_err());
    }
}
