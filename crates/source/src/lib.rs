//! Where Applications come from: repositories as [`FileTree`](tiphys_vfs::FileTree)s at a revision.
//!
//! A [`Repositories`] serves the working tree that the user gave for every spelling of its own
//! address, and fetches other repositories with Git. What was read of a tree is recorded in a
//! [`Footprint`], so that a change concerns only those who read what changed. [`Charts`] fetches charts
//! from chart repositories and OCI registries; a [`Fetcher`] holds all that is fetched.

mod checkout;
mod error;
mod fetcher;
mod footprint;
mod functions;
mod git;
mod git_credentials;
mod git_folder;
mod git_objects;
mod git_requests;
mod git_tree;
mod github_app;
mod history;
mod host_backoff;
mod local_folders;
mod outages;
mod plugins;
mod program;
mod project_fetcher;
mod remote;
mod repositories;
mod revisions;
mod signatures;
mod ssh;
mod submodules;
mod token_login;
mod url;
mod watch;
mod working_tree;

pub use checkout::Checkout;
pub use error::SourceError;
pub use fetcher::Fetcher;
pub use footprint::{Footprint, RecordingTree};
pub use functions::{FunctionError, Functions};
pub use git::{CheckoutOptions, GitCache, is_commit_id};
pub use git_requests::{GitRequests, Histogram};
pub use github_app::GithubApp;
pub use history::FileChange;
pub use local_folders::LocalRepositories;
pub use outages::Outages;
pub use plugins::{Plugin, PluginError, PluginInput, Plugins};
pub use project_fetcher::ProjectFetcher;
pub use remote::{
    Access, AccessTable, Artifact, ChartRequest, Charts, DeclaredAccess, FetchedChart, MAX_ARCHIVE_BYTES,
    MAX_ENTRIES, MAX_UNPACKED_BYTES, OciReference, Registry, post_json, registry_credentials, unpack,
};
pub use repositories::Repositories;
pub use revisions::tag_revision;
pub use signatures::{Keyring, Signed, SignedRevision, Verdict};
pub use url::RepoId;
pub use watch::{WatchGuard, watch};
pub use working_tree::WorkingTree;
