//! Why a kustomization could not be built: kustomize's own text, the place of the fault and advice.

use tiphys_value::Location;

/// What sort of fault an [`Error`] reports; decides how callers up the chain treat it, and lets
/// programs tell faults apart without reading texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The kustomization file is missing, doubled, empty or not one.
    Kustomization,
    /// A file is not YAML, or not a Kubernetes object.
    MalformedYaml,
    /// A file or folder is missing or unreadable.
    Load,
    /// A path leads where it must not (above the root, outside a cloned repository, absolute).
    Restricted,
    /// Kustomizations that contain each other.
    Cycle,
    /// A remote file answered with an HTTP error.
    Http,
    /// A remote base took too long.
    Timeout,
    /// A remote base or file, and no loader for it.
    Remote,
    /// Two objects with one id, or nothing where one was expected.
    Conflict,
    /// A transformer or generator refused its configuration or its input.
    Transform,
    /// Something kustomize can do and this crate refuses to (functions, plugins).
    Unsupported,
    /// A limit on size, depth or count was exceeded.
    Limit,
}

/// A build that failed. `Display` is the text of `kustomize build` without its leading `Error: `;
/// location and advice are beside it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    location: Option<Box<Location>>,
    advice: Vec<String>,
    missing: Option<Box<str>>,
}

/// Results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error with kustomize's text.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), location: None, advice: Vec::new(), missing: None }
    }

    /// Notes the path of the tree at which nothing stands.
    pub(crate) fn missing(mut self, path: &str) -> Self {
        self.missing = Some(path.into());
        self
    }

    /// The path of the tree at which nothing stands, where that is the fault.
    pub fn missing_path(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    pub(crate) fn transform(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Transform, message)
    }

    /// Puts `prefix: ` before the text, as kustomize wraps errors on the way up.
    pub(crate) fn context(mut self, prefix: impl std::fmt::Display) -> Self {
        self.message = format!("{prefix}: {}", self.message);
        self
    }

    /// Replaces the text, for wrappings other than a prefix.
    pub(crate) fn reword(mut self, text: impl FnOnce(&str) -> String) -> Self {
        self.message = text(&self.message);
        self
    }

    /// Sets the place, unless a more exact one is known already.
    pub(crate) fn located_at(mut self, location: Option<Location>) -> Self {
        if self.location.is_none() {
            self.location = location.map(Box::new);
        }
        self
    }

    /// Sets the place even if another is known.
    pub(crate) fn at_first(mut self, location: Option<Location>) -> Self {
        if let Some(location) = location {
            self.location = Some(Box::new(location));
        }
        self
    }

    /// Sets the sort of fault, for one of two errors that tells the reason of both.
    pub(crate) fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Adds a way to mend the fault.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }

    /// The sort of fault.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The file and line at fault, where they are known.
    pub fn location(&self) -> Option<&Location> {
        self.location.as_deref()
    }

    /// Ways to mend the fault, best first.
    pub fn advice(&self) -> &[String] {
        &self.advice
    }
}

/// Adds kustomize's prefixes to errors of results.
pub(crate) trait Context<T> {
    /// Puts `prefix: ` before the text of an error.
    fn context<D: std::fmt::Display>(self, prefix: impl FnOnce() -> D) -> Result<T>;
}

impl<T> Context<T> for Result<T> {
    fn context<D: std::fmt::Display>(self, prefix: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| error.context(prefix()))
    }
}
