//! The embedded Kubernetes API.

mod clock;
mod error;
mod registry;
mod store;

pub use clock::{Clock, Entropy, SharedClock, TokioClock, rfc3339_micros, rfc3339_seconds};
pub use error::{ApiError, ApiResult, Cause, Named};
pub use store::{Change, ChangeKind, Object, ResourceId, Snapshot, StateError, TooOld};
