//! What is admitted: a write, before it is done.

use crate::{ApiServer, Object, ops::At};

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A write as admission sees it.
pub(crate) struct Request<'a> {
    pub server: &'a ApiServer,
    pub at: &'a At,
    pub operation: Operation,
    pub old: Option<&'a Object>,
}
