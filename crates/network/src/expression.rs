//! Calico's selector expressions: `role == 'db' && has(team)`.

use crate::tri_state::Tri;

/// What is known of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Label {
    /// Its value.
    Value(String),
    /// There is none.
    Missing,
    /// The repository does not tell.
    Unknown,
}

/// An expression over labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// `all()`, or nothing at all.
    All,
    /// `global()`: what belongs to no namespace.
    Global,
    /// `has(key)`.
    Has(String),
    /// A comparison of a label's value with texts.
    Compare(String, Comparison, Vec<String>),
    /// `!x`.
    Not(Box<Self>),
    /// `x && y`.
    And(Vec<Self>),
    /// `x || y`.
    Or(Vec<Self>),
}

/// How a label's value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// It is one of the texts.
    In,
    /// It is none of them, or there is no such label.
    NotIn,
    /// It holds the text.
    Contains,
    /// It starts with it.
    StartsWith,
    /// It ends with it.
    EndsWith,
}

impl Comparison {
    fn holds(self, value: &str, texts: &[String]) -> bool {
        let any = |test: fn(&str, &str) -> bool| texts.iter().any(|text| test(value, text));
        match self {
            Self::In => any(|value, text| value == text),
            Self::NotIn => !any(|value, text| value == text),
            Self::Contains => any(|value, text| value.contains(text)),
            Self::StartsWith => any(|value, text| value.starts_with(text)),
            Self::EndsWith => any(|value, text| value.ends_with(text)),
        }
    }
}

impl Expression {
    /// Reads an expression; `None` if it is none, or nested too deeply.
    pub fn parse(text: &str) -> Option<Self> {
        let tokens = tokens(text)?;
        if tokens.is_empty() {
            return Some(Self::All);
        }
        let mut reader = Reader { tokens: &tokens, at: 0, depth: 0 };
        let found = reader.either()?;
        (reader.at == tokens.len()).then_some(found)
    }

    /// Whether it holds where labels are as `label` says.
    pub fn matches(&self, label: &impl Fn(&str) -> Label) -> Tri {
        match self {
            Self::All => Tri::Yes,
            Self::Global => Tri::No,
            Self::Has(key) => match label(key) {
                Label::Value(_) => Tri::Yes,
                Label::Missing => Tri::No,
                Label::Unknown => Tri::Maybe,
            },
            Self::Compare(key, how, texts) => match label(key) {
                Label::Value(value) => Tri::from(how.holds(&value, texts)),
                Label::Missing => Tri::from(*how == Comparison::NotIn),
                Label::Unknown => Tri::Maybe,
            },
            Self::Not(inner) => match inner.matches(label) {
                Tri::No => Tri::Yes,
                Tri::Maybe => Tri::Maybe,
                Tri::Yes => Tri::No,
            },
            Self::And(all) => Tri::all(all.iter().map(|it| it.matches(label))),
            Self::Or(any) => Tri::any(any.iter().map(|it| it.matches(label))),
        }
    }

    /// The keys and values that it asks for, wherever they stand.
    pub fn wanted_labels(&self) -> Vec<(&str, &[String])> {
        match self {
            Self::Compare(key, Comparison::In, texts) => vec![(key.as_str(), texts.as_slice())],
            Self::And(inner) | Self::Or(inner) => inner.iter().flat_map(Self::wanted_labels).collect(),
            _ => Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A label's name, a word of an operator, or a call such as `has(x)`.
    Word(String),
    Text(String),
    Sign(&'static str),
}

const SIGNS: [&str; 9] = ["==", "!=", "&&", "||", "!", "(", ")", "{", "}"];

fn tokens(text: &str) -> Option<Vec<Token>> {
    const LONGEST: usize = 4096;
    let mut rest = text.trim_start();
    let mut found = Vec::new();
    if text.len() > LONGEST {
        return None;
    }
    while let Some(first) = rest.chars().next() {
        if first == '\'' || first == '"' {
            let end = rest[1..].find(first)?;
            found.push(Token::Text(rest[1..=end].to_owned()));
            rest = &rest[end + 2..];
        } else if let Some(sign) = SIGNS.into_iter().chain([","]).find(|sign| rest.starts_with(sign)) {
            found.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            found.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
    }
    Some(found)
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn takes(&mut self, sign: &str) -> bool {
        let is = matches!(self.tokens.get(self.at), Some(Token::Sign(found)) if *found == sign);
        self.at += usize::from(is);
        is
    }

    fn word(&mut self) -> Option<String> {
        let Some(Token::Word(word)) = self.tokens.get(self.at) else { return None };
        self.at += 1;
        Some(word.clone())
    }

    fn text(&mut self) -> Option<String> {
        let Some(Token::Text(text)) = self.tokens.get(self.at) else { return None };
        self.at += 1;
        Some(text.clone())
    }

    fn either(&mut self) -> Option<Expression> {
        let mut all = vec![self.conjunction()?];
        while self.takes("||") {
            all.push(self.conjunction()?);
        }
        Some(if all.len() == 1 { all.remove(0) } else { Expression::Or(all) })
    }

    fn conjunction(&mut self) -> Option<Expression> {
        let mut all = vec![self.operand()?];
        while self.takes("&&") {
            all.push(self.operand()?);
        }
        Some(if all.len() == 1 { all.remove(0) } else { Expression::And(all) })
    }

    fn operand(&mut self) -> Option<Expression> {
        const DEEPEST: usize = 32;
        let mut is_negated = false;
        while self.takes("!") {
            is_negated = !is_negated;
        }
        let found = if self.takes("(") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return None;
            }
            let inner = self.either()?;
            self.depth -= 1;
            self.takes(")").then_some(inner)?
        } else {
            self.term()?
        };
        Some(if is_negated { Expression::Not(Box::new(found)) } else { found })
    }

    fn term(&mut self) -> Option<Expression> {
        let key = self.word()?;
        if self.takes("(") {
            let found = match key.as_str() {
                "all" => Expression::All,
                "global" => Expression::Global,
                "has" => Expression::Has(self.word()?),
                _ => return None,
            };
            return self.takes(")").then_some(found);
        }
        let how = if self.takes("==") {
            Comparison::In
        } else if self.takes("!=") {
            Comparison::NotIn
        } else {
            match (self.word()?.as_str(), self.tokens.get(self.at)) {
                ("in", _) => return self.set(key, Comparison::In),
                ("not", _) if self.word()? == "in" => return self.set(key, Comparison::NotIn),
                ("contains", _) => Comparison::Contains,
                ("starts", _) if self.word()? == "with" => Comparison::StartsWith,
                ("ends", _) if self.word()? == "with" => Comparison::EndsWith,
                _ => return None,
            }
        };
        Some(Expression::Compare(key, how, vec![self.text()?]))
    }

    fn set(&mut self, key: String, how: Comparison) -> Option<Expression> {
        let mut texts = Vec::new();
        self.takes("{").then_some(())?;
        while let Some(text) = self.text() {
            texts.push(text);
            if !self.takes(",") {
                break;
            }
        }
        self.takes("}").then_some(Expression::Compare(key, how, texts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> Tri {
        let label = |key: &str| match key {
            "role" => Label::Value("db".into()),
            "app.kubernetes.io/name" => Label::Value("web-shop".into()),
            "far" => Label::Unknown,
            _ => Label::Missing,
        };
        Expression::parse(text).unwrap().matches(&label)
    }

    #[test]
    fn expressions_are_judged_with_three_values() {
        for text in [
            "",
            "all()",
            "role == 'db'",
            "role != \"web\"",
            "none != 'x'",
            "role in {'a', 'db'}",
            "role not in {'a'} && !has(none)",
            "!(role == 'a' || none == 'b')",
            "app.kubernetes.io/name starts with 'web' && app.kubernetes.io/name ends with \"shop\"",
            "app.kubernetes.io/name contains '-'",
            "far == 'x' || role == 'db'",
        ] {
            assert_eq!(holds(text), Tri::Yes, "{text}");
        }
        for text in ["global()", "none == 'x'", "has(none)", "!all()", "far == 'x' && role == 'a'"] {
            assert_eq!(holds(text), Tri::No, "{text}");
        }
        assert_eq!(holds("far == 'x'"), Tri::Maybe);
        assert_eq!(holds("!has(far)"), Tri::Maybe);
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        let deep = "(".repeat(100) + "all()" + &")".repeat(100);
        for text in [
            "role =",
            "role == db",
            "has(",
            "role in {'a'",
            "(all()",
            "all() all()",
            "ü == 'x'",
            "none(a)",
            &deep,
        ] {
            assert_eq!(Expression::parse(text), None, "{text}");
        }
    }
}
