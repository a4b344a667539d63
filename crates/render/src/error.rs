//! Why an Application could not be rendered.

use std::fmt;

use tiphys_diag::{Diagnostic, SourceMap, render::full};
use tiphys_value::Location;

use crate::secret_masking;

/// Why an Application could not be rendered: a sentence, and where a file is to blame, the place.
#[derive(Clone, Debug)]
pub struct RenderError {
    message: String,
    shown: Option<Box<Excerpt>>,
    transient: bool,
    cause: Cause,
    place: Option<Box<Location>>,
    subject: Option<Box<Subject>>,
    missing: Option<Box<str>>,
}

/// What a fault is about, where programs ask for it. Worker processes do not pass it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An entry of `valueFiles`, as it is written.
    ValueFile(String),
    /// A `$ref` that no source of the Application has.
    Reference,
    /// A source without an address.
    Address,
    /// A template of a chart.
    Template {
        /// The template, by chart and path: `web/templates/app.yaml`.
        name: String,
        /// Its line, from 1; 0 if it is not known.
        line: u32,
        /// Whether it does not parse, which no values could mend.
        is_syntax: bool,
    },
}

/// The sorts of faults that programs have to distinguish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// Any other.
    #[default]
    Other,
    /// Something that the engine's tools can do, but that is not done here: a plugin, a remote base.
    Unsupported,
    /// A kustomization names a file outside of its folder.
    LoadRestricted,
    /// A path that a source names does not exist in its repository.
    Missing,
    /// A source that cannot be had here: nothing is fetched, or its host is not there.
    OutOfReach,
    /// A limit of the kernel ended the process that rendered.
    Ended,
}

#[derive(Clone, Debug)]
enum Excerpt {
    /// The fault as data, with the text that it is about.
    Source { diagnostic: Diagnostic, sources: SourceMap },
    /// What another process shows of the text.
    Text(String),
}

impl RenderError {
    /// A fault without a place. Of a message that is longer than 64 KiB, as of templates that quote
    /// themselves, the middle is left out: faults are kept.
    pub fn new(message: impl Into<String>) -> Self {
        const HALF: usize = 32 * 1024;
        let mut message = message.into();
        if message.len() > 2 * HALF {
            let head = &message[..message.floor_char_boundary(HALF)];
            let tail = &message[message.ceil_char_boundary(message.len() - HALF)..];
            message = format!("{head}…{tail}");
        }
        Self {
            message,
            shown: None,
            transient: false,
            cause: Cause::Other,
            place: None,
            subject: None,
            missing: None,
        }
    }

    /// A fault at a place of a file, whose text is shown.
    pub fn in_file(diagnostic: Diagnostic, file: &str, text: &str) -> Self {
        let mut sources = SourceMap::default();
        // Errors are posted and logged: who wants the line as it is has the file.
        sources.insert(file, secret_masking::mask_secrets(text).unwrap_or_else(|| text.to_owned()));
        let place = diagnostic.primary.as_ref().map(|label| format!("{}: ", label.span));
        let message = format!("{}{}", place.unwrap_or_default(), diagnostic.message);
        Self { shown: Some(Box::new(Excerpt::Source { diagnostic, sources })), ..Self::new(message) }
    }

    /// A fault that another process found, with what it shows of the text at fault ([`Self::excerpt`]).
    pub fn with_excerpt(message: impl Into<String>, excerpt: String) -> Self {
        Self { shown: Some(Box::new(Excerpt::Text(excerpt))), ..Self::new(message) }
    }

    /// The same fault, known to pass by itself.
    #[must_use]
    pub fn transient(mut self, transient: bool) -> Self {
        self.transient = transient;
        self
    }

    /// The same fault, of a sort.
    #[must_use]
    pub fn caused_by(mut self, cause: Cause) -> Self {
        self.cause = cause;
        self
    }

    /// The same fault, with what it is about.
    #[must_use]
    pub fn about(mut self, subject: Subject) -> Self {
        self.subject = Some(Box::new(subject));
        self
    }

    /// What the fault is about, where it is of those that programs ask for.
    pub fn subject(&self) -> Option<&Subject> {
        self.subject.as_deref()
    }

    /// The same fault, with the path of the repository at which nothing stands.
    #[must_use]
    pub fn missing(mut self, path: Option<&str>) -> Self {
        self.missing = path.map(Into::into);
        self
    }

    /// The path of the repository at which nothing stands, where that is the fault and it is known.
    pub fn missing_path(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    /// The same fault with the place that is to blame.
    #[must_use]
    pub fn with_location(mut self, place: Option<&Location>) -> Self {
        self.place = place.cloned().map(Box::new);
        self
    }

    /// The same fault, with something more that has to be known of it.
    #[must_use]
    pub fn noting(mut self, note: &str) -> Self {
        self.message = format!("{}; {note}", self.message);
        self
    }

    /// What sort of fault it is.
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// The place that is to blame, if it is known and no [`Self::diagnostic`] says it.
    pub fn place(&self) -> Option<&Location> {
        self.place.as_deref()
    }

    /// Whether trying again later, with nothing changed, may succeed.
    pub fn is_transient(&self) -> bool {
        self.transient
    }

    /// The fault as data, if it has a place.
    pub fn diagnostic(&self) -> Option<&Diagnostic> {
        match self.shown.as_deref() {
            Some(Excerpt::Source { diagnostic, .. }) => Some(diagnostic),
            _ => None,
        }
    }

    /// The line at fault with its number, as [`fmt::Display`] shows it below the headline.
    pub fn excerpt(&self) -> Option<String> {
        match self.shown.as_deref()? {
            Excerpt::Text(text) => Some(text.clone()),
            Excerpt::Source { diagnostic, sources } => {
                let label = diagnostic.primary.as_ref()?;
                let line = sources.line(&label.span)?;
                Some(format!("    {} | {line}", label.span.start.line))
            }
        }
    }

    /// One line: `file:line:column: what is wrong`.
    pub fn headline(&self) -> &str {
        &self.message
    }

    /// Several lines with the text at fault, where there is one.
    pub fn full(&self, color: bool) -> String {
        match self.shown.as_deref() {
            Some(Excerpt::Source { diagnostic, sources }) => full(diagnostic, sources, color),
            Some(Excerpt::Text(excerpt)) => format!("error: {}\n{excerpt}", self.message),
            None => format!("error: {}", self.message),
        }
    }
}

/// The headline; with `#` ([`fmt::Formatter::alternate`]) followed by the line at fault.
impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.excerpt().filter(|_| f.alternate()) {
            Some(excerpt) => write!(f, "\n{excerpt}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RenderError {}
