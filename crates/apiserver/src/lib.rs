//! The embedded Kubernetes API: a forkable, revisioned store behind the API machinery that kubectl,
//! Helm and controllers expect. In process it is a [`tower::Service`] and a plain [`Client`]; for
//! everyone else it serves HTTP over TLS.
//!
//! Layers, top down: `http` (paths, negotiation, discovery, tables, watches) → `auth` → `ops` (the
//! verbs: decode, admit, validate, commit) → `store` (snapshots, revisions, change log). What is known
//! of built-in kinds is data in `tiphys-schema`; how patches merge is in `tiphys-merge`.

mod admission;
mod auth;
mod bootstrap;
mod client;
mod clock;
mod error;
mod expressions;
mod http;
mod import;
mod kinds;
mod meta;
mod ops;
mod registry;
mod selectors;
mod server;
mod store;
mod tls;
mod version;

pub use admission::quota_status;
pub use auth::why_account_may_not;
pub use client::{Client, DeleteOptions, List, ListOptions, Patch};
pub use clock::{Clock, Entropy, SharedClock, TokioClock, rfc3339_micros, rfc3339_seconds};
pub use error::{ApiError, ApiResult, Cause, Named};
pub use http::{ApiService, ResponseBody, ServeError, Serving, write_kubeconfig};
pub use import::Imported;
pub use ops::Propagation;
pub use server::{ApiServer, ApiServerOptions, Outbound, PodBackend, WebhookBackend, WebhookCall};
pub use store::{
    Change, ChangeKind, Object, ResourceId, ServiceNetwork, ServiceNetworkError, Snapshot, StateError, TooOld,
};
pub use tls::TlsIdentity;
pub use version::KubernetesVersion;
