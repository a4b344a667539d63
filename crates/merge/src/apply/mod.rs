//! Server-side apply: every field has owners, kept in `metadata.managedFields`
//! (Kubernetes documentation, "Server-Side Apply"; structured-merge-diff).

mod compare;
mod managers;
mod merge;
mod set;
mod typed;
mod update;

pub use managers::{Entry, Operation};
pub use merge::{ItemOrigin, interleave};
pub use set::FieldSet;
pub use update::{ApplyError, Conflict, Request, apply, track_update};
