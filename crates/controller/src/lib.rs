//! The engine's loops: Applications are read back from the API, rendered, compared with the live
//! state, synced, and their status written.
//!
//! Nothing is polled but remote repositories: changes of the live state, of Applications and of the
//! working tree put the Applications that they concern into a queue; a worker looks at one of them
//! at a time. All state of an operation is in the Application's status, so that an engine that is
//! killed goes on where it stopped.

mod blocking;
mod affected_apps;
mod checkouts;
mod client_side_apply;
mod clusters;
mod controller;
pub mod crds;
mod credentials;
mod engine;
mod events;
mod executor;
mod finalize;
mod installation;
mod source_integrity;
mod journal;
mod lease;
mod live_state;
mod app_state;
mod metrics;
mod field_migration;
mod operation_loop;
mod orphans;
mod destinations;
mod project_policy;
mod server_side_diff;
mod safeguards;
mod projects;
mod queue;
mod reconcile;
mod rendering;
mod status_fields;
mod idle;
mod sets;
mod settings;
mod shadow;
mod status_writer;
mod targets;
mod tombstones;
mod apply_fixups;
mod operation_field;
mod argocd_views;
mod webhook;

pub use checkouts::Checkouts;
pub use clusters::declared_cluster;
pub use controller::Controller;
pub use lease::Lease;
pub use destinations::open_destination;
pub use queue::{AppKey, Refresh};
pub use sets::SetInputs;
pub use settings::{Destinations, Opener, Renderers, Settings};
pub use shadow::{Decision, Difference, Shadow};
pub use argocd_views::{RenderedSource, RepositoryKind, RepositoryRequest, SourceRequest};
pub use webhook::WebhookError;
