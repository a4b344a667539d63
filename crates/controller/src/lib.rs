//! The engine's loops: Applications are read back from the API, rendered, compared with the live
//! state, synced, and their status written.
//!
//! Nothing is polled but remote repositories: changes of the live state, of Applications and of the
//! working tree put the Applications that they concern into a queue; a worker looks at one of them
//! at a time. All state of an operation is in the Application's status, so that an engine that is
//! killed goes on where it stopped.

mod blocking;
mod changes;
mod checkouts;
mod client_side;
mod clusters;
mod controller;
pub mod crds;
mod credentials;
mod engine;
mod events;
mod executor;
mod finalize;
mod installation;
mod integrity;
mod journal;
mod lease;
mod live;
mod memory;
mod metrics;
mod migrate;
mod operate;
mod orphans;
mod places;
mod policy;
mod predict;
mod prevent;
mod projects;
mod queue;
mod reconcile;
mod rendering;
mod report;
mod rest;
mod sets;
mod settings;
mod shadow;
mod status;
mod targets;
mod tombstones;
mod undeclared;
mod under_way;
mod views;
mod webhook;

pub use checkouts::Checkouts;
pub use clusters::declared_cluster;
pub use controller::Controller;
pub use lease::Lease;
pub use places::open_destination;
pub use queue::{AppKey, Level};
pub use sets::SetInputs;
pub use settings::{Destinations, Opener, Renderers, Settings};
pub use shadow::{Decision, Difference, Shadow};
pub use views::{RenderedSource, RepositoryKind, RepositoryRequest, SourceRequest};
pub use webhook::WebhookError;
