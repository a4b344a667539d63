//! The engine's loops: Applications are read back from the API, rendered, compared with the live
//! state, synced, and their status written.
//!
//! Nothing is polled but remote repositories: changes of the live state, of Applications and of the
//! working tree put the Applications that they concern into a queue; a worker looks at one of them
//! at a time. All state of an operation is in the Application's status, so that an engine that is
//! killed goes on where it stopped.

mod affected_apps;
mod app_state;
mod apply_fixups;
mod argocd_views;
mod blocking;
mod checkouts;
mod client_side_apply;
mod clusters;
mod controller;
pub mod crds;
mod credentials;
mod destinations;
mod engine;
mod events;
mod executor;
mod field_migration;
mod finalize;
mod home;
mod idle;
mod installation;
mod journal;
mod live_state;
mod metrics;
mod operation_field;
mod orphans;
mod project_objects;
mod project_policy;
mod projects;
mod queue;
mod reconcile;
mod rendering;
mod replicas;
mod safeguards;
mod server_side_diff;
mod sets;
mod settings;
mod shadow;
mod source_integrity;
mod sources;
mod status_writer;
mod targets;
mod tombstones;
mod webhook;

pub use argocd_views::{RenderedSource, RepositoryKind, RepositoryRequest, SourceRequest};
pub use checkouts::Checkouts;
pub use clusters::{declared_cluster, secret_text};
pub use controller::Controller;
pub use destinations::open_destination;
pub use queue::{AppKey, Refresh};
pub use replicas::{JoinError, Lost, Replica, Share, replica_name, replica_of};
pub use sets::SetInputs;
pub use settings::{Destinations, Opener, Renderers, Settings};
pub use shadow::{Decision, Difference, Shadow};
pub use webhook::WebhookError;
