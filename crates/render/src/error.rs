//! Why an Application could not be rendered.

use std::fmt;

use tiphys_diag::{Diagnostic, SourceMap, render::full};

/// Why an Application could not be rendered: a sentence, and where a file is to blame, the place.
#[derive(Clone, Debug)]
pub struct RenderError {
    message: String,
    shown: Option<Box<Shown>>,
    transient: bool,
}

#[derive(Clone, Debug)]
struct Shown {
    diagnostic: Diagnostic,
    sources: SourceMap,
}

impl RenderError {
    /// A fault without a place.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), shown: None, transient: false }
    }

    /// A fault at a place of a file, whose text is shown.
    pub fn at(diagnostic: Diagnostic, file: &str, text: &str) -> Self {
        let mut sources = SourceMap::default();
        sources.insert(file, text);
        let place = diagnostic.primary.as_ref().map(|label| format!("{}: ", label.span));
        let message = format!("{}{}", place.unwrap_or_default(), diagnostic.message);
        Self { message, shown: Some(Box::new(Shown { diagnostic, sources })), transient: false }
    }

    /// The same fault, known to pass by itself.
    #[must_use]
    pub fn transient(mut self, transient: bool) -> Self {
        self.transient = transient;
        self
    }

    /// Whether trying again later, with nothing changed, may succeed.
    pub fn is_transient(&self) -> bool {
        self.transient
    }

    /// The fault as data, if it has a place.
    pub fn diagnostic(&self) -> Option<&Diagnostic> {
        self.shown.as_ref().map(|shown| &shown.diagnostic)
    }

    /// One line: `file:line:column: what is wrong`.
    pub fn headline(&self) -> &str {
        &self.message
    }

    /// Several lines with the text at fault, where there is one.
    pub fn full(&self, color: bool) -> String {
        match &self.shown {
            Some(shown) => full(&shown.diagnostic, &shown.sources, color),
            None => format!("error: {}", self.message),
        }
    }
}

/// The headline; with `#` ([`fmt::Formatter::alternate`]) followed by the line at fault.
impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let Some(shown) = self.shown.as_ref().filter(|_| f.alternate()) else { return Ok(()) };
        let Some(label) = &shown.diagnostic.primary else { return Ok(()) };
        match shown.sources.line(&label.span) {
            Some(line) => write!(f, "\n    {} | {line}", label.span.start.line),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RenderError {}
