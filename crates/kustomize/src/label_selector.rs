//! Label selectors as Kubernetes writes them: `a=b,c in (d,e),!f`.

use std::collections::BTreeSet;

use tiphys_gocompat::strconv::quote;

use crate::node::StringMap;

/// What a label has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Greater(i64),
    Less(i64),
}

/// A label selector, which everything fits if it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<(String, Test)>);

impl LabelSelector {
    /// Reads a selector.
    ///
    /// # Errors
    /// What `labels.Parse` of Kubernetes says.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { tokens: tokens(text), at: 0 };
        let mut requirements = Vec::new();
        loop {
            match parser.peek() {
                Token::Word(_) | Token::Not => {
                    let requirement = parser.requirement();
                    requirements
                        .push(requirement.map_err(|error| format!("unable to parse requirement: {error}"))?);
                }
                Token::End => return Ok(Self(requirements)),
                other => {
                    return Err(format!(
                        "found '{}', expected: !, identifier, or 'end of string'",
                        other.text()
                    ));
                }
            }
            match parser.next() {
                Token::End => return Ok(Self(requirements)),
                Token::Comma => match parser.peek() {
                    Token::Word(_) | Token::Not => {}
                    other => return Err(format!("found '{}', expected: identifier after ','", other.text())),
                },
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
            }
        }
    }

    /// Whether labels fit.
    pub(crate) fn matches(&self, labels: &StringMap) -> bool {
        self.0.iter().all(|(key, test)| test.matches_value(labels.get(key).map(String::as_str)))
    }
}

impl Test {
    fn matches_value(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::In(wanted) => value.is_some_and(|value| wanted.contains(value)),
            Self::NotIn(refused) => value.is_none_or(|value| !refused.contains(value)),
            Self::Greater(bound) => number().is_some_and(|number| number > *bound),
            Self::Less(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    End,
    Open,
    Close,
    Comma,
    Not,
    /// `=`, `==`, `!=`, `>`, `<`.
    Operator(&'static str),
    /// A key, a value, or `in` and `notin`.
    Word(String),
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::End => "",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::Not => "!",
            Self::Operator(text) => text,
            Self::Word(text) => text,
        }
    }

    /// The longest symbol that a text starts with.
    fn symbol(text: &str) -> Option<(Self, usize)> {
        let operator = ["==", "!=", "=", ">", "<"].into_iter().find(|operator| text.starts_with(operator));
        if let Some(operator) = operator {
            return Some((Self::Operator(operator), operator.len()));
        }
        let token = match text.chars().next()? {
            '(' => Self::Open,
            ')' => Self::Close,
            ',' => Self::Comma,
            '!' => Self::Not,
            _ => return None,
        };
        Some((token, 1))
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let is_symbol = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
    // Kubernetes' scanner takes a NUL for the end.
    let mut rest = text.split('\0').next().unwrap_or_default();
    let mut tokens = Vec::new();
    loop {
        rest = rest.trim_start_matches(is_space);
        if rest.is_empty() {
            tokens.push(Token::End);
            return tokens;
        }
        let (token, length) = Token::symbol(rest).unwrap_or_else(|| {
            let length = rest.find(|c| is_space(c) || is_symbol(c)).unwrap_or(rest.len());
            (Token::Word(rest[..length].to_owned()), length)
        });
        tokens.push(token);
        rest = &rest[length..];
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<(String, Test), String> {
        let mut token = self.next();
        let absent = token == Token::Not;
        if absent {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return Err(format!("found '{}', expected: identifier", token.text()));
        };
        check_key(&key)?;
        if absent {
            return Ok((key, Test::Absent));
        }
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok((key, Test::Exists));
        }
        let test = self.test(&key)?;
        Ok((key, test))
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        let operator = self.next();
        let values = match &operator {
            Token::Operator(_) => BTreeSet::from([self.exact_value()?]),
            Token::Word(word) if word == "in" || word == "notin" => self.values()?,
            other => {
                return Err(format!("found '{}', expected: '=', '!=', '==', 'in', notin'", other.text()));
            }
        };
        let bound = || {
            let number = values.first().and_then(|value| value.parse().ok());
            number.ok_or_else(|| "for 'Gt', 'Lt' operators, the value must be an integer".to_owned())
        };
        let test = match operator.text() {
            ">" => Test::Greater(bound()?),
            "<" => Test::Less(bound()?),
            "!=" | "notin" => Test::NotIn(values.clone()),
            _ => Test::In(values.clone()),
        };
        values.iter().try_for_each(|value| check_value(key, value))?;
        Ok(test)
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(value) => Ok(value),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    /// `(a,b)`, where every value may be empty.
    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let open = self.next();
        if open != Token::Open {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        match self.peek() {
            Token::Close => {
                self.next();
                return Ok(BTreeSet::from([String::new()]));
            }
            Token::Word(_) | Token::Comma => {}
            other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
        }
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                Token::Word(value) => {
                    values.insert(value);
                    match self.peek() {
                        Token::Comma => {}
                        Token::Close => break,
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Comma => {
                    if values.is_empty() || matches!(self.peek(), Token::Close | Token::Comma) {
                        values.insert(String::new());
                    }
                    match self.peek() {
                        Token::Close => break,
                        Token::Comma => drop(self.next()),
                        _ => {}
                    }
                }
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
        }
        self.next();
        Ok(values)
    }
}

const MAX_LENGTH: usize = 63;
const MAX_PREFIX_LENGTH: usize = 253;

fn check_key(key: &str) -> Result<(), String> {
    const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let mut faults = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
        (name, None, _) => name,
        (prefix, Some(name), None) => {
            faults.extend(prefix_faults(prefix).into_iter().map(|fault| format!("prefix part {fault}")));
            name
        }
        _ => {
            return Err(format!(
                "invalid label key {}: a qualified name {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                quote(key)
            ));
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_LENGTH {
        faults.push(format!("name part must be no more than {MAX_LENGTH} characters"));
    }
    if name.is_empty() || !is_name(name) {
        faults.push(format!("name part {NAME}"));
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(format!("invalid label key {}: {}", quote(key), faults.join("; ")))
    }
}

fn prefix_faults(prefix: &str) -> Vec<String> {
    const SUBDOMAIN: &str = "a DNS-1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    if prefix.is_empty() {
        return vec!["must be non-empty".to_owned()];
    }
    let mut faults = Vec::new();
    if prefix.len() > MAX_PREFIX_LENGTH {
        faults.push(format!("must be no more than {MAX_PREFIX_LENGTH} characters"));
    }
    let is_label = |label: &str| {
        is_name(label)
            && !label.is_empty()
            && label.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
    };
    if !prefix.split('.').all(is_label) {
        faults.push(SUBDOMAIN.to_owned());
    }
    faults
}

fn check_value(key: &str, value: &str) -> Result<(), String> {
    const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let mut faults = Vec::new();
    if value.len() > MAX_LENGTH {
        faults.push(format!("must be no more than {MAX_LENGTH} characters"));
    }
    if !is_name(value) {
        faults.push(VALUE.to_owned());
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "invalid label value: {}: at key: {}: {}",
            quote(value),
            quote(key),
            faults.join("; ")
        )),
    }
}

/// Letters, digits, `-`, `_` and `.`, with letters or digits at both ends; also the empty text.
fn is_name(text: &str) -> bool {
    let is_inner = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    let is_end = |c: Option<&u8>| c.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.iter().all(|c| is_inner(*c)) && is_end(bytes.first()) && is_end(bytes.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_fit_or_not() {
        let labels = [("app", "web"), ("tier", "front"), ("n", "5")];
        let have = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web, tier!=back", true),
            ("app in (web, api),tier notin (back)", true),
            ("app in (,web)", true),
            ("app notin ()", true),
            ("!missing,app", true),
            ("missing notin (a)", true),
            ("n>4", true),
            ("n<4", false),
            ("app=api", false),
            ("app=", false),
            ("missing", false),
        ] {
            assert_eq!(LabelSelector::parse(selector).unwrap().matches(&have), expected, "{selector}");
        }
    }

    #[test]
    fn faults_are_told_as_by_kubernetes() {
        for (selector, expected) in [
            (
                "bad selector (",
                "unable to parse requirement: found 'selector', expected: '=', '!=', '==', 'in', notin'",
            ),
            ("=a", "found '=', expected: !, identifier, or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
            ("!,", "unable to parse requirement: found ',', expected: identifier"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
            ("a=(", "unable to parse requirement: found '(', expected: identifier"),
            ("a>b", "unable to parse requirement: for 'Gt', 'Lt' operators, the value must be an integer"),
        ] {
            assert_eq!(LabelSelector::parse(selector).unwrap_err(), expected, "{selector}");
        }
        let key = LabelSelector::parse("-a/b/c").unwrap_err();
        assert!(key.contains("with an optional DNS subdomain prefix"), "{key}");
        let value = LabelSelector::parse("a=*").unwrap_err();
        assert!(
            value.contains("invalid label value: \"*\": at key: \"a\": a valid label must be"),
            "{value}"
        );
    }
}
