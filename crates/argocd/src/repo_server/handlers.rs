//! What is answered to each call.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_controller::{Controller, RepositoryKind, RepositoryRequest, SourceRequest};
use tiphys_model::{ApplicationSource, SourceType};
use tiphys_render::RenderError;
use tiphys_vfs::FileTree;
use tonic::Status;

use super::{
    messages::{
        ApplicationSpec, ManifestRequest, ManifestResponse, Repository, ResolveRevisionRequest,
        ResolveRevisionResponse, TestRepositoryRequest, TestRepositoryResponse,
    },
    source::Source,
};

/// What is told of a failure. The codes say whether it is worthwhile to ask again.
fn failed(error: &RenderError) -> Status {
    let text = format!("{error:#}");
    if error.is_transient() { Status::unavailable(text) } else { Status::unknown(text) }
}

pub(super) fn invalid_argument(what: impl Into<String>) -> Status {
    Status::invalid_argument(what)
}

fn to_model(source: &Source) -> Result<ApplicationSource, Status> {
    source.to_model().map_err(|error| invalid_argument(format!("the source cannot be read: {error}")))
}

pub(super) async fn resolve_revision(
    controller: Arc<Controller>,
    request: ResolveRevisionRequest,
) -> Result<ResolveRevisionResponse, Status> {
    let spec = request.app.and_then(|app| app.spec).unwrap_or_default();
    let mut source = source_at(&spec, request.source_index)?;
    source.target_revision.clone_from(&request.ambiguous_revision);
    if source.path.is_empty() && source.chart.is_empty() {
        // Only the revision is asked for.
        ".".clone_into(&mut source.path);
    }
    let resolved = controller.resolve_revision(&spec.project, source).await;
    let revision = resolved.map_err(|error| failed(&error))?;
    let ambiguous_revision = format!("{} ({revision})", request.ambiguous_revision);
    Ok(ResolveRevisionResponse { revision, ambiguous_revision })
}

/// The source that an index means: of several the one at that place, the first for one below zero.
fn source_at(spec: &ApplicationSpec, index: i64) -> Result<ApplicationSource, Status> {
    if let Some(hydrator) = &spec.source_hydrator {
        let sync = hydrator.sync_source.clone().unwrap_or_default();
        let dry = hydrator.dry_source.clone().unwrap_or_default();
        let repo_url = if sync.repo_url.is_empty() { dry.repo_url } else { sync.repo_url };
        return Ok(ApplicationSource { repo_url, path: sync.path, ..ApplicationSource::default() });
    }
    let chosen = match spec.sources.as_slice() {
        [] => spec.source.as_ref(),
        several => several.get(usize::try_from(index).unwrap_or(0)),
    };
    let chosen = chosen
        .ok_or_else(|| invalid_argument(format!("the Application has no source at position {index}")))?;
    to_model(chosen)
}

pub(super) async fn test_repository(
    controller: Arc<Controller>,
    request: TestRepositoryRequest,
) -> Result<TestRepositoryResponse, Status> {
    let repo = request.repo.ok_or_else(|| invalid_argument("no repository is named"))?;
    let kind = match repo.kind.as_str() {
        "" | "git" => RepositoryKind::Git,
        "helm" | "oci" => RepositoryKind::Charts,
        other => return Err(Status::unknown(format!("unsupported repository type {other:?}"))),
    };
    let is_bare_registry = repo.kind == "helm" && repo.enable_oci && !repo.repo.contains("://");
    let address = if is_bare_registry { format!("oci://{}", repo.repo) } else { repo.repo.clone() };
    let (fields, project) = (credentials(&repo), repo.project);
    let tested = controller.test_repository(RepositoryRequest { address, kind, project, fields }).await;
    tested.map_err(|error| {
        let told = failed(&error);
        Status::new(told.code(), format!("error testing repository connectivity: {}", told.message()))
    })?;
    Ok(TestRepositoryResponse::default())
}

/// The fields of the Secret that would declare a repository's credentials; none if it comes without any.
fn credentials(repo: &Repository) -> BTreeMap<String, String> {
    let number = |number: i64| if number == 0 { String::new() } else { number.to_string() };
    let flag = |flag: bool| if flag { "true".to_owned() } else { String::new() };
    let logins = [
        ("username", repo.username.clone()),
        ("password", repo.password.clone()),
        ("bearerToken", repo.bearer_token.clone()),
        ("sshPrivateKey", repo.ssh_private_key.clone()),
        ("tlsClientCertData", repo.tls_client_cert_data.clone()),
        ("tlsClientCertKey", repo.tls_client_cert_key.clone()),
        ("githubAppPrivateKey", repo.github_app_private_key.clone()),
        ("gcpServiceAccountKey", repo.gcp_service_account_key.clone()),
        ("useAzureWorkloadIdentity", flag(repo.use_azure_workload_identity)),
    ];
    if logins.iter().all(|(_, value)| value.is_empty()) && !repo.insecure && repo.proxy.is_empty() {
        return BTreeMap::new();
    }
    let more = [
        ("githubAppID", number(repo.github_app_id)),
        ("githubAppInstallationID", number(repo.github_app_installation_id)),
        ("githubAppEnterpriseBaseUrl", repo.github_app_enterprise_base_url.clone()),
        ("insecure", flag(repo.insecure)),
        ("insecureIgnoreHostKey", flag(repo.insecure_ignore_host_key)),
        ("insecureOCIForceHttp", flag(repo.insecure_oci_force_http)),
        ("proxy", repo.proxy.clone()),
        ("noProxy", repo.no_proxy.clone()),
        ("type", repo.kind.clone()),
        ("enableOCI", flag(repo.enable_oci)),
    ];
    let all = logins.into_iter().chain(more).filter(|(_, value)| !value.is_empty());
    all.map(|(key, value)| (key.to_owned(), value)).collect()
}

pub(super) async fn generate_manifest(
    controller: Arc<Controller>,
    request: ManifestRequest,
) -> Result<ManifestResponse, Status> {
    generate(controller, request, None).await
}

/// What a source renders to, from files that stand in its place if there are some.
pub(super) async fn generate(
    controller: Arc<Controller>,
    request: ManifestRequest,
    files: Option<Arc<dyn FileTree>>,
) -> Result<ManifestResponse, Status> {
    let source = request.application_source.ok_or_else(|| invalid_argument("no source is given"))?;
    let mut source = to_model(&source)?;
    source.target_revision = request.revision;
    let namespace = request.namespace;
    let mut references: Vec<ApplicationSource> = request
        .ref_sources
        .into_iter()
        .filter(|(name, _)| name.trim_start_matches('$') != source.reference)
        .map(|(name, target)| ApplicationSource {
            repo_url: target.repo.unwrap_or_default().repo,
            target_revision: target.target_revision,
            reference: name.trim_start_matches('$').to_owned(),
            ..ApplicationSource::default()
        })
        .collect();
    references.sort_by(|a, b| a.reference.cmp(&b.reference));
    let rendered = controller.render_source(SourceRequest {
        app: request.app_name,
        project: request.project_name,
        namespace: namespace.clone(),
        source,
        references,
        files,
        kube_version: request.kube_version,
        api_versions: request.api_versions,
        fresh: request.no_cache || request.no_revision_cache,
    });
    let rendered = rendered.await.map_err(|error| failed(&error))?;
    Ok(ManifestResponse {
        manifests: rendered.objects.iter().map(ToString::to_string).collect(),
        namespace,
        revision: rendered.revision,
        source_type: rendered.source_type.map(name_of).unwrap_or_default().to_owned(),
    })
}

fn name_of(tool: SourceType) -> &'static str {
    match tool {
        SourceType::Helm => "Helm",
        SourceType::Kustomize => "Kustomize",
        SourceType::Directory => "Directory",
        SourceType::Plugin => "Plugin",
    }
}
