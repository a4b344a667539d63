//! The engine's loops: Applications are read back from the API, rendered, compared with the live
//! state, synced, and their status written.

mod checkouts;
pub mod crds;
mod executor;
mod migrate;
mod queue;
mod status;

pub use queue::{AppKey, Level};
