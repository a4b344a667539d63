//! What an expression says.

use tiphys_diag::Span;

/// A value, as far as it is written out.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string without interpolation.
    String(String),
    /// A list.
    List(Vec<Expression>),
    /// An object; keys that are no plain words or strings are left out.
    Object(Vec<(String, Expression)>),
    /// Anything that is known only when it is planned.
    Unknown,
}

/// A name that an expression refers to: `aws_security_group.node.id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its steps; indices are left out.
    pub path: Vec<String>,
    /// Where it stands.
    pub span: Span,
    /// Whether it stands in `try` or `can`, where an attribute that is not there is an answer.
    pub is_tried: bool,
    /// How many of its steps come before the first index or splat; all of them without one.
    pub before_index: usize,
}

/// An expression with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// What it says.
    pub value: Value,
    /// The names that it refers to, however deep.
    pub references: Vec<Reference>,
    /// Where it stands.
    pub span: Span,
}

impl Expression {
    /// The text of a plain string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// A number, also one that is written as a string.
    pub fn as_number(&self) -> Option<f64> {
        match &self.value {
            Value::Number(number) => Some(*number),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// A truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match &self.value {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn items(&self) -> &[Expression] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The value of a key of an object.
    pub fn get(&self, key: &str) -> Option<&Expression> {
        match &self.value {
            Value::Object(pairs) => pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Whether every part of it is written out.
    pub fn is_known(&self) -> bool {
        match &self.value {
            Value::Unknown => false,
            Value::List(items) => items.iter().all(Self::is_known),
            Value::Object(pairs) => pairs.iter().all(|(_, value)| value.is_known()),
            _ => true,
        }
    }
}
