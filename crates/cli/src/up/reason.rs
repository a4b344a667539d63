//! Why an Application is not green, in a line.

use std::fmt;

use serde::{Serialize, Serializer};
use tiphys_model::HealthCode;
use tiphys_value::ResourceKey;

/// A fault of an Application, or an object that keeps it from being green.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// An object that is not as it should be.
    Object(OutOfPlace),
    /// Anything else, in words.
    Other(String),
}

/// An object that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutOfPlace {
    /// The object.
    pub(crate) key: ResourceKey,
    /// What is wrong with it.
    pub(crate) state: State,
    /// What its health says; may be empty.
    pub(crate) message: String,
    /// What the cluster knows of the cause, if that was asked for.
    pub(crate) underlying: Option<String>,
}

/// What is wrong with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// Its health is bad.
    Unhealthy(HealthCode),
    /// It differs from its manifest.
    OutOfSync,
    /// No manifest has it any more.
    ToBePruned,
}

impl State {
    /// In words, as they follow on "is".
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unhealthy(health) => health.as_str(),
            Self::OutOfSync => "out of sync",
            Self::ToBePruned => "to be pruned",
        }
    }
}

impl Reason {
    /// The object, if it is one that is not as it should be.
    pub(crate) fn object(&self) -> Option<&OutOfPlace> {
        match self {
            Self::Object(object) => Some(object),
            Self::Other(_) => None,
        }
    }
}

impl OutOfPlace {
    /// Its state with what its health says.
    pub(crate) fn state_text(&self) -> String {
        match self.message.as_str() {
            "" => self.state.as_str().to_owned(),
            message => format!("{}: {message}", self.state.as_str()),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(object) => {
                write!(f, "{}/{} is {}", object.key.kind, object.key.name, object.state_text())?;
                object.underlying.iter().try_for_each(|cause| write!(f, "\n  {cause}"))
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}
