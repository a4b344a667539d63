//! The diagnostic itself.

use std::{fmt, sync::Arc};

use serde::Serialize;

/// How bad a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// It may fail, or fails in part.
    Warning,
    /// It fails.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A line and a column in it, both from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// A stretch of a file; `end` is behind the last character.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Span {
    /// Path as the user would write it.
    pub file: Arc<str>,
    /// First character.
    pub start: Position,
    /// Behind the last character; equal to `start` for a point.
    pub end: Position,
}

impl Span {
    /// A single point of a file.
    pub fn point(file: impl Into<Arc<str>>, line: u32, column: u32) -> Self {
        let at = Position { line, column };
        Self { file: file.into(), start: at, end: at }
    }
}

/// `file:line:column`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.start.line, self.start.column)
    }
}

/// A place with a few words about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is to be seen there; may be empty.
    pub text: String,
}

/// A replacement of a stretch of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Edit {
    /// What is replaced; a point to insert before it.
    pub span: Span,
    /// What stands there afterwards.
    pub replacement: String,
}

/// One fault in what a user wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Stable name of what found it, such as `yaml-syntax`.
    pub rule: String,
    /// How bad it is.
    pub severity: Severity,
    /// One line: what is wrong.
    pub message: String,
    /// Where it is wrong; absent if no file is to blame.
    pub primary: Option<Label>,
    /// Other places that explain it.
    pub related: Vec<Label>,
    /// Why it goes wrong; may be empty.
    pub mechanism: String,
    /// What to do about it, one entry per way.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// A fault of severity error without a place yet.
    pub fn error(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            rule: rule.into(),
            severity: Severity::Error,
            message: message.into(),
            primary: None,
            related: Vec::new(),
            mechanism: String::new(),
            help: Vec::new(),
        }
    }

    /// The same with its place.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.primary = Some(Label { span, text: text.into() });
        self
    }

    /// The same with one more place that explains it.
    #[must_use]
    pub fn see(mut self, span: Span, text: impl Into<String>) -> Self {
        self.related.push(Label { span, text: text.into() });
        self
    }

    /// The same with why it goes wrong.
    #[must_use]
    pub fn because(mut self, mechanism: impl Into<String>) -> Self {
        self.mechanism = mechanism.into();
        self
    }

    /// The same with one more way to mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }
}
