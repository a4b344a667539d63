//! What can be wrong with a YAML text, in go-yaml's words.

use std::fmt;

use tiphys_value::OverBudget;

/// A place in a text: byte offset from 0, line and column (in characters) from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Bytes from the start of the text.
    pub offset: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// What sort of fault an [`Error`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text is not YAML.
    Syntax,
    /// The text is YAML, but cannot be turned into a value.
    Decode,
    /// A limit of this crate or of go-yaml was exceeded.
    Limit,
    /// What the text means takes more memory than its reader's [`Budget`](tiphys_value::Budget).
    Budget,
}

/// A fault in a YAML text. Its `Display` is go-yaml's message, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    position: Option<Position>,
}

impl Error {
    /// An error whose text is `message`.
    pub fn new(kind: ErrorKind, message: String) -> Self {
        Self { kind, message, position: None }
    }

    /// A text that means more than its budget allows.
    pub(crate) fn over_budget(fault: OverBudget) -> Self {
        Self::new(
            ErrorKind::Budget,
            format!("yaml: {fault}, mostly by aliases or dense lists: write less, or split the file"),
        )
    }

    /// The same error, at a place of the text.
    pub fn located_at(mut self, position: Position) -> Self {
        self.position = Some(position);
        self
    }

    /// The sort of fault.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where the fault is, exactly (go-yaml's own line numbers, in the message, are sometimes one off).
    pub fn position(&self) -> Option<Position> {
        self.position
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
