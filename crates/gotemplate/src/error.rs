//! Errors of parsing and executing, with Go's texts.

use std::fmt;

use tiphys_value::RenderLimits;

/// A template that does not parse. Its text is Go's: `template: NAME:LINE: MESSAGE`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("template: {name}:{line}: {message}")]
pub struct ParseError {
    /// Name of the parsed text.
    pub name: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// The sort of fault, where callers have to know it.
    pub fault: Option<ParseFault>,
}

/// Faults of a text that callers tell from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseFault {
    /// A function that the set does not have.
    UndefinedFunction,
    /// A character that no token has.
    BadCharacter(char),
}

/// A limit that a render ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Templates calling templates, or values nested, too deep.
    Depth,
    /// Too many bytes of output.
    Output,
    /// Too many executed nodes.
    Steps,
    /// Too much time.
    Time,
    /// Too much memory.
    Memory,
}

impl Limit {
    /// The flag that raises it, if one does.
    pub fn flag(self) -> Option<&'static str> {
        let [memory, time, _] = RenderLimits::FLAGS;
        match self {
            Self::Memory | Self::Output => Some(memory),
            Self::Time | Self::Steps => Some(time),
            Self::Depth => None,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Depth => "template depth",
            Self::Output => "output size",
            Self::Steps => "number of steps",
            Self::Time => "render time",
            Self::Memory => "memory",
        })
    }
}

/// A failed execution. `message` is Go's text, with the location in front.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExecError {
    /// The whole text.
    pub message: String,
    /// Name of the executing template.
    pub template: String,
    /// Name of the text that the template was parsed from; empty if there is no location.
    pub file: String,
    /// Line in the parsed text, from 1; 0 if there is no location.
    pub line: usize,
    /// Byte column as Go counts it; 0 if there is no location.
    pub column: usize,
    /// The limit that ended the render, if one did.
    pub limit: Option<Limit>,
    /// Whether a field or key was asked for that is not there.
    pub is_missing_field: bool,
}

impl ExecError {
    /// An error without a location.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            template: String::new(),
            file: String::new(),
            line: 0,
            column: 0,
            limit: None,
            is_missing_field: false,
        }
    }
}

/// The error a template function returns. The executor wraps it in `error calling NAME: …`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// What is wrong.
    pub message: String,
    /// The limit that was hit below, if any.
    pub limit: Option<Limit>,
}

impl CallError {
    /// An error with a text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), limit: None }
    }
}

impl From<ExecError> for CallError {
    fn from(error: ExecError) -> Self {
        Self { message: error.message, limit: error.limit }
    }
}

impl From<ParseError> for CallError {
    fn from(error: ParseError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<String> for CallError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for CallError {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}
