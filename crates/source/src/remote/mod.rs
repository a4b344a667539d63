//! What is fetched over HTTP: charts from repositories with an index, charts and other artifacts from
//! OCI registries. Everything is kept by content, and served from there when offline.

mod access;
mod archive;
mod charts;
mod content_store;
mod docker;
mod helm_config;
mod http;
mod index;
mod json_client;
mod oci;
mod tls;

pub use access::{Access, AccessTable, DeclaredAccess};
pub use archive::{MAX_ARCHIVE_BYTES, MAX_ENTRIES, MAX_UNPACKED_BYTES, unpack};
pub use charts::{ChartRequest, Charts, FetchedChart};
pub use docker::registry_credentials;
pub(crate) use helm_config::HelmRepositories;
pub(crate) use http::{Http, read_ok, with_advice, with_transport};
pub use json_client::post_json;
pub use oci::{Artifact, OciReference, Registry};
