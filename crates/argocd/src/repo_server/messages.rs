//! The messages of the calls, as far as they are read or written (Argo CD,
//! `reposerver/repository/repository.proto` and the Protobuf form of its API types). Fields that are not
//! named are passed over.

use std::collections::HashMap;

use super::source::Source;

/// A repository. Its credentials are read where it is tested; where it is rendered, those that are declared
/// count.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Repository {
    /// Address.
    #[prost(string, tag = "1")]
    pub repo: String,
    /// User.
    #[prost(string, tag = "2")]
    pub username: String,
    /// Password.
    #[prost(string, tag = "3")]
    pub password: String,
    /// Key for SSH, as PEM.
    #[prost(string, tag = "4")]
    pub ssh_private_key: String,
    /// The older name of `insecure` for SSH.
    #[prost(bool, tag = "6")]
    pub insecure_ignore_host_key: bool,
    /// Whoever answers is believed.
    #[prost(bool, tag = "7")]
    pub insecure: bool,
    /// Certificate of the client, as PEM.
    #[prost(string, tag = "9")]
    pub tls_client_cert_data: String,
    /// Its key.
    #[prost(string, tag = "10")]
    pub tls_client_cert_key: String,
    /// `git`, `helm` or `oci`; empty means Git.
    #[prost(string, tag = "11")]
    pub kind: String,
    /// Whether a repository of charts is a registry.
    #[prost(bool, tag = "14")]
    pub enable_oci: bool,
    /// Key of a GitHub App, as PEM.
    #[prost(string, tag = "15")]
    pub github_app_private_key: String,
    /// Number of the GitHub App.
    #[prost(int64, tag = "16")]
    pub github_app_id: i64,
    /// Number of its installation.
    #[prost(int64, tag = "17")]
    pub github_app_installation_id: i64,
    /// Address of the API of a GitHub of one's own.
    #[prost(string, tag = "18")]
    pub github_app_enterprise_base_url: String,
    /// Address of a proxy.
    #[prost(string, tag = "19")]
    pub proxy: String,
    /// The project that it is declared for.
    #[prost(string, tag = "20")]
    pub project: String,
    /// Key of a service account of Google's, as JSON.
    #[prost(string, tag = "21")]
    pub gcp_service_account_key: String,
    /// Hosts that are not asked through the proxy.
    #[prost(string, tag = "23")]
    pub no_proxy: String,
    /// Whether Azure knows the asker as its workload.
    #[prost(bool, tag = "24")]
    pub use_azure_workload_identity: bool,
    /// Token.
    #[prost(string, tag = "25")]
    pub bearer_token: String,
    /// Whether a registry is asked without TLS.
    #[prost(bool, tag = "26")]
    pub insecure_oci_force_http: bool,
}

/// A source that another refers to.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RefTarget {
    /// Its repository.
    #[prost(message, optional, tag = "1")]
    pub repo: Option<Repository>,
    /// Its revision.
    #[prost(string, tag = "2")]
    pub target_revision: String,
}

/// An Application, as far as its sources go.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Application {
    /// `spec`.
    #[prost(message, optional, tag = "2")]
    pub spec: Option<ApplicationSpec>,
}

/// `spec` of an Application.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ApplicationSpec {
    /// `source`.
    #[prost(message, optional, tag = "1")]
    pub source: Option<Source>,
    /// `project`.
    #[prost(string, tag = "3")]
    pub project: String,
    /// `sources`.
    #[prost(message, repeated, tag = "8")]
    pub sources: Vec<Source>,
    /// `sourceHydrator`.
    #[prost(message, optional, tag = "9")]
    pub source_hydrator: Option<SourceHydrator>,
}

/// `sourceHydrator`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SourceHydrator {
    /// `drySource`.
    #[prost(message, optional, tag = "1")]
    pub dry_source: Option<DrySource>,
    /// `syncSource`.
    #[prost(message, optional, tag = "2")]
    pub sync_source: Option<SyncSource>,
}

/// `sourceHydrator.drySource`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DrySource {
    /// `repoURL`.
    #[prost(string, tag = "1")]
    pub repo_url: String,
}

/// `sourceHydrator.syncSource`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SyncSource {
    /// `targetBranch`.
    #[prost(string, tag = "1")]
    pub target_branch: String,
    /// `path`.
    #[prost(string, tag = "2")]
    pub path: String,
    /// `repoURL`, if not the dry source's.
    #[prost(string, tag = "3")]
    pub repo_url: String,
}

/// Asks what a revision means.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ResolveRevisionRequest {
    /// The repository.
    #[prost(message, optional, tag = "1")]
    pub repo: Option<Repository>,
    /// The Application.
    #[prost(message, optional, tag = "2")]
    pub app: Option<Application>,
    /// The revision.
    #[prost(string, tag = "3")]
    pub ambiguous_revision: String,
    /// Which of several sources it is of, counted from zero.
    #[prost(int64, tag = "4")]
    pub source_index: i64,
}

/// What a revision means.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ResolveRevisionResponse {
    /// Commit, version or digest.
    #[prost(string, tag = "1")]
    pub revision: String,
    /// The revision as it was asked for, with what it means in parentheses.
    #[prost(string, tag = "2")]
    pub ambiguous_revision: String,
}

/// Asks whether a repository can be had.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TestRepositoryRequest {
    /// The repository.
    #[prost(message, optional, tag = "1")]
    pub repo: Option<Repository>,
}

/// A repository can be had.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TestRepositoryResponse {
    /// Whether signatures are verified: never said here, as nobody reads it.
    #[prost(bool, tag = "1")]
    pub verified_repository: bool,
}

/// Asks what a source renders to.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ManifestRequest {
    /// The repository.
    #[prost(message, optional, tag = "1")]
    pub repo: Option<Repository>,
    /// The revision.
    #[prost(string, tag = "2")]
    pub revision: String,
    /// Whether nothing that was kept may be used.
    #[prost(bool, tag = "3")]
    pub no_cache: bool,
    /// Name of the Application.
    #[prost(string, tag = "5")]
    pub app_name: String,
    /// Namespace of the destination.
    #[prost(string, tag = "8")]
    pub namespace: String,
    /// The source.
    #[prost(message, optional, tag = "10")]
    pub application_source: Option<Source>,
    /// Version of the destination cluster.
    #[prost(string, tag = "14")]
    pub kube_version: String,
    /// What the destination cluster serves.
    #[prost(string, repeated, tag = "15")]
    pub api_versions: Vec<String>,
    /// Whether revisions that were resolved before may be others now.
    #[prost(bool, tag = "18")]
    pub no_revision_cache: bool,
    /// The sources with `ref`, by `$name`.
    #[prost(map = "string, message", tag = "23")]
    pub ref_sources: HashMap<String, RefTarget>,
    /// The project.
    #[prost(string, tag = "25")]
    pub project_name: String,
}

/// A piece of the question what files render to: the request, then what is said of the archive, then its
/// bytes.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ManifestRequestWithFiles {
    /// The piece.
    #[prost(oneof = "Part", tags = "1, 2, 3")]
    pub part: Option<Part>,
}

/// A piece of [`ManifestRequestWithFiles`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Part {
    /// The source, whose files follow.
    #[prost(message, boxed, tag = "1")]
    Request(Box<ManifestRequest>),
    /// What is said of the archive.
    #[prost(message, tag = "2")]
    Metadata(ManifestFileMetadata),
    /// Some of the archive.
    #[prost(message, tag = "3")]
    Chunk(ManifestFileChunk),
}

/// What is said of an archive of files.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ManifestFileMetadata {
    /// SHA-256 of it in hexadecimal digits.
    #[prost(string, tag = "1")]
    pub checksum: String,
}

/// Some of an archive of files.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ManifestFileChunk {
    /// The bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub chunk: Vec<u8>,
}

/// What a source renders to.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ManifestResponse {
    /// The objects as JSON.
    #[prost(string, repeated, tag = "1")]
    pub manifests: Vec<String>,
    /// Namespace of the destination.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// The revision that was read.
    #[prost(string, tag = "4")]
    pub revision: String,
    /// The tool.
    #[prost(string, tag = "6")]
    pub source_type: String,
}
