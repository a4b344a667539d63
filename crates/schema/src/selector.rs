//! Label selectors, as text (`app=x,tier in (a, b)`) and as `metav1.LabelSelector` objects.

use serde_json::Value;
use tiphys_value::label_selector::LabelOperator as Operator;

use crate::{FieldError, Path, names};

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Label key.
    pub key: String,
    /// Comparison.
    pub operator: Operator,
    /// Values to compare with.
    pub values: Vec<String>,
}

/// Conditions that must all hold; without conditions everything is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(pub Vec<Requirement>);

/// Why a selector cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseSelectorError(String);

impl Requirement {
    /// Whether labels (an object of strings, or null) meet the condition.
    pub fn matches(&self, labels: &Value) -> bool {
        let label = labels.get(&self.key).and_then(Value::as_str);
        self.operator.is_met(label, self.values.iter().map(String::as_str))
    }
}

impl LabelSelector {
    /// Whether labels (an object of strings, or null) meet all conditions.
    pub fn matches(&self, labels: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.matches(labels))
    }

    /// Whether there is no condition.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Labels that whatever is selected must have: a key with one value.
    pub fn required_labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|it| match (it.operator, it.values.as_slice()) {
            (Operator::In, [value]) => Some((it.key.as_str(), value.as_str())),
            _ => None,
        })
    }

    /// A selector that demands exactly these labels.
    pub fn from_labels(labels: &Value) -> Self {
        let entries = labels.as_object().into_iter().flatten();
        let mut found: Vec<_> = entries
            .map(|(key, value)| Requirement {
                key: key.clone(),
                operator: Operator::In,
                values: vec![value.as_str().unwrap_or_default().to_owned()],
            })
            .collect();
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Self(found)
    }

    /// Reads a `metav1.LabelSelector` object. Null and absence select nothing: that is `None`.
    ///
    /// # Errors
    /// An unknown operator.
    pub fn from_object(selector: &Value) -> Result<Option<Self>, ParseSelectorError> {
        if !selector.is_object() {
            return Ok(None);
        }
        let mut found = Self::from_labels(&selector["matchLabels"]);
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let text = |key: &str| expression[key].as_str().unwrap_or_default().to_owned();
            let operator =
                Operator::parse(&text("operator")).map_err(|it| ParseSelectorError(it.to_string()))?;
            let values = expression["values"].as_array().into_iter().flatten();
            let values = values.filter_map(|value| value.as_str().map(str::to_owned)).collect();
            found.0.push(Requirement { key: text("key"), operator, values });
        }
        Ok(Some(found))
    }

    /// Reads a selector as text: the `labelSelector` query parameter.
    ///
    /// # Errors
    /// Text that is no selector, in the API server's words.
    pub fn parse(text: &str) -> Result<Self, ParseSelectorError> {
        let tokens = tokens(text);
        let mut parser = Parser { tokens: &tokens, at: 0 };
        let mut found = parser.all().map_err(ParseSelectorError)?;
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self(found))
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Sign(&'static str),
}

const SIGNS: [&str; 10] = ["==", "!=", "=", "!", ",", "(", ")", ">", "<", ""];

fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).copied().unwrap_or_default();
        if sign.is_empty() {
            let end = rest.find(|c: char| c.is_whitespace() || "=!,()<>".contains(c)).unwrap_or(rest.len());
            out.push(Token::Word(rest[..end].to_owned()));
            rest = rest[end..].trim_start();
        } else {
            out.push(Token::Sign(sign));
            rest = rest[sign.len()..].trim_start();
        }
    }
    out
}

/// Keys are qualified names, values those of labels, and numbers where they are compared.
fn checked(requirement: Requirement) -> Result<Requirement, String> {
    let key = &requirement.key;
    if let Some(fault) = names::qualified_name(key).into_iter().next() {
        return Err(FieldError::invalid(&Path::root(), key.as_str(), fault).to_string());
    }
    let compares = matches!(requirement.operator, Operator::Gt | Operator::Lt);
    for (at, value) in requirement.values.iter().enumerate() {
        if compares && value.parse::<i64>().is_err() {
            let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
            return Err(
                FieldError::invalid(&Path::new("values").index(at), value.as_str(), detail).to_string()
            );
        }
        if let Some(fault) = names::label_value(value).into_iter().next() {
            let path = Path::new("values").index(at).key(key);
            return Err(FieldError::invalid(&path, value.as_str(), fault).to_string());
        }
    }
    Ok(requirement)
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(s)) if *s == sign);
        self.at += usize::from(found);
        found
    }

    fn found_text(token: Option<Token>) -> String {
        match token {
            None => String::new(),
            Some(Token::Word(word)) => word,
            Some(Token::Sign(sign)) => sign.to_owned(),
        }
    }

    fn all(&mut self) -> Result<Vec<Requirement>, String> {
        let mut out = Vec::new();
        if self.tokens.is_empty() {
            return Ok(out);
        }
        loop {
            match self.peek() {
                Some(Token::Word(_) | Token::Sign("!")) => {}
                _ => {
                    let found = Self::found_text(self.next());
                    return Err(format!("found '{found}', expected: !, identifier, or 'end of string'"));
                }
            }
            let requirement = self.requirement().and_then(checked);
            out.push(requirement.map_err(|reason| format!("unable to parse requirement: {reason}"))?);
            match self.next() {
                None => return Ok(out),
                Some(Token::Sign(",")) if self.peek().is_some() => {}
                Some(Token::Sign(",")) => return Err("found '', expected: identifier after ','".into()),
                other => {
                    return Err(format!(
                        "found '{}', expected: ',' or 'end of string'",
                        Self::found_text(other)
                    ));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.sign("!");
        let key = match self.next() {
            Some(Token::Word(word)) => word,
            other => return Err(format!("found '{}', expected: identifier", Self::found_text(other))),
        };
        let with = |operator, values| Ok(Requirement { key: key.clone(), operator, values });
        if absent {
            return with(Operator::DoesNotExist, Vec::new());
        }
        match self.peek().cloned() {
            None | Some(Token::Sign(",")) => with(Operator::Exists, Vec::new()),
            Some(Token::Sign("=" | "==")) => with(Operator::In, vec![self.value()?]),
            Some(Token::Sign("!=")) => with(Operator::NotIn, vec![self.value()?]),
            Some(Token::Sign(">")) => with(Operator::Gt, vec![self.value()?]),
            Some(Token::Sign("<")) => with(Operator::Lt, vec![self.value()?]),
            Some(Token::Word(word)) if word == "in" => with(Operator::In, self.values()?),
            Some(Token::Word(word)) if word == "notin" => with(Operator::NotIn, self.values()?),
            other => {
                Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", Self::found_text(other)))
            }
        }
    }

    /// The value behind a sign; may be empty.
    fn value(&mut self) -> Result<String, String> {
        self.at += 1;
        match self.peek() {
            None | Some(Token::Sign(",")) => Ok(String::new()),
            Some(Token::Word(_)) => Ok(Self::found_text(self.next())),
            Some(Token::Sign(sign)) => Err(format!("found '{sign}', expected: identifier")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        self.at += 1;
        if !self.sign("(") {
            return Err(format!("found '{}' expected: '('", Self::found_text(self.next())));
        }
        let mut out = Vec::new();
        loop {
            match self.next() {
                Some(Token::Word(word)) => out.push(word),
                Some(Token::Sign(",")) => out.push(String::new()),
                Some(Token::Sign(")")) => out.push(String::new()),
                other => {
                    return Err(format!(
                        "found '{}', expected: ',', ')' or identifier",
                        Self::found_text(other)
                    ));
                }
            }
            let closed = matches!(self.tokens.get(self.at - 1), Some(Token::Sign(")")));
            if closed || self.sign(")") {
                break;
            }
            self.sign(",");
        }
        out.sort();
        out.dedup();
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selects_by_text() {
        let labels = json!({"app": "web", "tier": "front", "n": "5"});
        for (text, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier!=back", true),
            ("app in (web, api)", true),
            ("app notin (web)", false),
            ("!missing", true),
            ("app", true),
            ("missing", false),
            ("n>4,n<6", true),
            ("missing!=x", true),
            ("app=", false),
        ] {
            let selector = LabelSelector::parse(text).expect(text);
            assert_eq!(selector.matches(&labels), expected, "{text}");
        }
    }

    #[test]
    fn refuses_malformed_text() {
        for text in ["app in web", "=x", "a=b=c", "a b", "a,,b", "a in (b"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn selects_by_object() {
        let selector = json!({"matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["back"]}]});
        let selector = LabelSelector::from_object(&selector).expect("reads").expect("there");
        assert!(selector.matches(&json!({"app": "web"})));
        assert!(!selector.matches(&json!({"app": "web", "tier": "back"})));
        assert_eq!(LabelSelector::from_object(&json!(null)), Ok(None));
    }
}
