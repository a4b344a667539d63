//! Faults as they cross from one process to another, and back again.

use std::{io, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tiphys_helm::ArchiveError;
use tiphys_kustomize::RemoteError;
use tiphys_render::{Cause, RenderError};
use tiphys_vfs::{VfsError, VfsErrorKind};

/// [`RenderError`]; of the text at fault only what is shown of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RenderFault {
    headline: String,
    /// The line at fault, as it is shown below the headline.
    excerpt: Option<String>,
    is_transient: bool,
    sort: Sort,
}

/// [`Cause`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Sort {
    Other,
    Unsupported,
    LoadRestricted,
    Missing,
    OutOfReach,
}

impl From<&RenderError> for RenderFault {
    fn from(error: &RenderError) -> Self {
        Self {
            headline: error.headline().to_owned(),
            excerpt: error.excerpt(),
            is_transient: error.is_transient(),
            sort: match error.cause() {
                Cause::Other => Sort::Other,
                Cause::Unsupported => Sort::Unsupported,
                Cause::LoadRestricted => Sort::LoadRestricted,
                Cause::Missing => Sort::Missing,
                Cause::OutOfReach => Sort::OutOfReach,
                // Who is ended says nothing any more.
                Cause::Ended => Sort::Other,
            },
        }
    }
}

impl From<RenderFault> for RenderError {
    fn from(fault: RenderFault) -> Self {
        let error = match fault.excerpt {
            Some(excerpt) => Self::with_excerpt(fault.headline, excerpt),
            None => Self::new(fault.headline),
        };
        error.transient(fault.is_transient).caused_by(match fault.sort {
            Sort::Other => Cause::Other,
            Sort::Unsupported => Cause::Unsupported,
            Sort::LoadRestricted => Cause::LoadRestricted,
            Sort::Missing => Cause::Missing,
            Sort::OutOfReach => Cause::OutOfReach,
        })
    }
}

/// [`VfsError`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileFault {
    path: String,
    kind: FileFaultKind,
}

#[derive(Debug, Serialize, Deserialize)]
enum FileFaultKind {
    NotFound,
    IsDir,
    NotDir,
    Special,
    OutsideTree,
    TooManyLinks,
    TooLarge { size: u64, limit: u64 },
    WriteThroughLink,
    Other(String),
}

impl From<VfsError> for FileFault {
    fn from(error: VfsError) -> Self {
        let kind = match error.kind {
            VfsErrorKind::NotFound => FileFaultKind::NotFound,
            VfsErrorKind::IsDir => FileFaultKind::IsDir,
            VfsErrorKind::NotDir => FileFaultKind::NotDir,
            VfsErrorKind::Special => FileFaultKind::Special,
            VfsErrorKind::OutsideTree => FileFaultKind::OutsideTree,
            VfsErrorKind::TooManyLinks => FileFaultKind::TooManyLinks,
            VfsErrorKind::TooLarge { size, limit } => FileFaultKind::TooLarge { size, limit },
            VfsErrorKind::WriteThroughLink => FileFaultKind::WriteThroughLink,
            other => FileFaultKind::Other(other.to_string()),
        };
        Self { path: error.path, kind }
    }
}

impl From<FileFault> for VfsError {
    fn from(fault: FileFault) -> Self {
        let kind = match fault.kind {
            FileFaultKind::NotFound => VfsErrorKind::NotFound,
            FileFaultKind::IsDir => VfsErrorKind::IsDir,
            FileFaultKind::NotDir => VfsErrorKind::NotDir,
            FileFaultKind::Special => VfsErrorKind::Special,
            FileFaultKind::OutsideTree => VfsErrorKind::OutsideTree,
            FileFaultKind::TooManyLinks => VfsErrorKind::TooManyLinks,
            FileFaultKind::TooLarge { size, limit } => VfsErrorKind::TooLarge { size, limit },
            FileFaultKind::WriteThroughLink => VfsErrorKind::WriteThroughLink,
            FileFaultKind::Other(text) => VfsErrorKind::Io(Arc::new(io::Error::other(text))),
        };
        Self { path: fault.path, kind }
    }
}

/// [`RemoteError`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RemoteFault {
    Status { code: u16, text: String },
    Timeout { limit_ms: u64, what: String },
    Other(String),
}

impl From<RemoteError> for RemoteFault {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Status { code, text } => Self::Status { code, text },
            RemoteError::Timeout { limit, what } => {
                Self::Timeout { limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX), what }
            }
            RemoteError::Other(text) => Self::Other(text),
        }
    }
}

impl From<RemoteFault> for RemoteError {
    fn from(fault: RemoteFault) -> Self {
        match fault {
            RemoteFault::Status { code, text } => Self::Status { code, text },
            RemoteFault::Timeout { limit_ms, what } => {
                Self::Timeout { limit: Duration::from_millis(limit_ms), what }
            }
            RemoteFault::Other(text) => Self::Other(text),
        }
    }
}

/// [`ArchiveError`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ArchiveFault {
    reason: String,
    is_transient: bool,
    is_out_of_reach: bool,
}

impl From<ArchiveError> for ArchiveFault {
    fn from(ArchiveError { reason, is_transient, is_out_of_reach }: ArchiveError) -> Self {
        Self { reason, is_transient, is_out_of_reach }
    }
}

impl From<ArchiveFault> for ArchiveError {
    fn from(ArchiveFault { reason, is_transient, is_out_of_reach }: ArchiveFault) -> Self {
        Self { reason, is_transient, is_out_of_reach }
    }
}
