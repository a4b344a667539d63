//! Client of any Kubernetes API, real or embedded: what is served, the live state, and the requests
//! that change it. The only crate that knows `kube`.
//!
//! Objects are [`tiphys_value::Value`]s: nothing is lost in typed structs. Whether a request goes
//! over TLS or to a service in this process is decided where a [`Cluster`] is made, never later.

mod bulk_read;
mod cache;
mod client;
mod cluster_secret;
mod connect;
mod discovery;
mod error;
mod fence;
mod index;
mod object;
mod retry;
mod token_auth;
mod watch;

pub use bulk_read::{Bounds, Cut, Extent, LogTail, Selection};
pub use cache::{Change, LiveCache, WatchScope};
pub use client::{ApplyOptions, Cluster, List, PatchType, Propagation};
pub use cluster_secret::Access;
pub use connect::{Connection, context_namespace};
pub use discovery::{Discovery, Resource};
pub use error::ClusterError;
pub use fence::Fence;
pub use watch::Report;
