//! What sources render to, asked by somebody who has a source at hand and no look at an Application.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_diff::{encoded_secret, mask_secret};
use tiphys_model::{Application, ApplicationSource, SourceType};
use tiphys_render::{Context, RenderError, Sources as _, open_source, render};
use tiphys_value::{GroupVersionKind, Value};
use tiphys_vfs::FileTree;

use crate::{
    Checkouts, Controller, blocking::blocking, checkouts::out_of_reach, credentials, engine::Engine,
    home::Home, sources::Sources,
};

/// A source of an Application that is to be rendered.
#[derive(Clone, Default)]
pub struct SourceRequest {
    /// Name of the Application.
    pub app: String,
    /// Its project: whose credentials and demands count.
    pub project: String,
    /// Namespace of its destination.
    pub namespace: String,
    /// The source, at the revision that is wanted.
    pub source: ApplicationSource,
    /// The sources that it refers to as `$ref`.
    pub references: Vec<ApplicationSource>,
    /// Files that stand in the place of those of the source, if they are not its own.
    pub files: Option<Arc<dyn FileTree>>,
    /// Version of the destination cluster; empty takes that of the engine's own.
    pub kube_version: String,
    /// What the destination cluster serves; empty takes what the engine's own does.
    pub api_versions: Vec<String>,
    /// Whether repositories are asked for their present state.
    pub fresh: bool,
}

/// What became of a source.
#[derive(Clone, Debug, Default)]
pub struct RenderedSource {
    /// The objects, with the values of Secrets masked.
    pub objects: Vec<Value>,
    /// The revision that was read.
    pub revision: String,
    /// The tool that rendered it.
    pub source_type: Option<SourceType>,
}

/// A repository that somebody wants to know of whether it can be had.
#[derive(Clone, Default)]
pub struct RepositoryRequest {
    /// Its address.
    pub address: String,
    /// What is there.
    pub kind: RepositoryKind,
    /// The project whose credentials count.
    pub project: String,
    /// The credentials as a Secret would have them (Argo CD docs, "Declarative Setup", "Repositories");
    /// without any, those that are declared count.
    pub fields: BTreeMap<String, String>,
}

/// What is behind the address of a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepositoryKind {
    /// Git.
    #[default]
    Git,
    /// Charts or artifacts: an index or a registry.
    Charts,
}

impl Controller {
    /// Renders one source.
    ///
    /// # Errors
    /// It cannot be had, or does not render.
    pub async fn render_source(&self, request: SourceRequest) -> Result<RenderedSource, RenderError> {
        let engine = self.engine().clone();
        off_thread(move || render_source(&engine, &request)).await
    }

    /// The commit, version or digest that a revision of a source means now.
    ///
    /// # Errors
    /// It cannot be had.
    pub async fn resolve_revision(
        &self,
        project: &str,
        source: ApplicationSource,
    ) -> Result<String, RenderError> {
        let (engine, project) = (self.engine().clone(), project.to_owned());
        off_thread(move || {
            engine.sources.repositories.expire_address(&source.repo_url);
            open_source(&source, &checkouts(&engine.home, &engine.sources, &project))
                .map(|opened| opened.revision)
        })
        .await
    }

    /// Whether a repository can be had: with the fields of a Secret that is not declared yet if there are
    /// some, else by what is declared for a project.
    ///
    /// # Errors
    /// It cannot; why.
    pub async fn test_repository(&self, request: RepositoryRequest) -> Result<(), RenderError> {
        let engine = self.engine().clone();
        off_thread(move || match request.fields.is_empty() {
            true => test_declared(&engine.home, &engine.sources, &request),
            false => test_given(&engine.home, &engine.sources, &request),
        })
        .await
    }
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RenderError> + Send + 'static,
) -> Result<T, RenderError> {
    let done = blocking(work).await;
    done.unwrap_or_else(|error| Err(RenderError::new(format!("the work broke off: {error}"))))
}

/// The repositories as a project has them, with the signatures that it demands.
fn checkouts<'a>(home: &Home, sources: &'a Sources, project: &str) -> Checkouts<'a> {
    let integrity = sources.integrity_of_project(&home.cache, project, &[&home.settings.namespace]);
    Checkouts::new(&sources.repositories)
        .with_settings(home.installation().argo.rendering.clone())
        .for_project(project)
        .demanding(integrity)
}

fn test_declared(home: &Home, sources: &Sources, request: &RepositoryRequest) -> Result<(), RenderError> {
    let RepositoryRequest { address, kind, project, .. } = request;
    sources.repositories.expire_address(address);
    match (kind, sources.repositories.fetcher_for(project)) {
        (RepositoryKind::Charts, Some(fetcher)) => {
            fetcher.test_charts(address).map_err(|error| out_of_reach(&error))
        }
        _ => checkouts(home, sources, project).repository(address, "HEAD").map(drop),
    }
}

/// Nothing is kept of what is fetched, nor is what was fetched before served: it was not these
/// credentials that got it.
fn test_given(home: &Home, sources: &Sources, request: &RepositoryRequest) -> Result<(), RenderError> {
    let RepositoryRequest { address, kind, fields, .. } = request;
    let Some(fetcher) =
        sources.repositories.fetcher().filter(|_| !sources.repositories.is_own_address(address))
    else {
        return test_declared(home, sources, request);
    };
    let mut fields = fields.clone();
    fields.insert("url".to_owned(), address.clone());
    let access = credentials::of_fields(&home.cache, &home.settings.namespace, &fields);
    let access = access.ok_or_else(|| RenderError::new("no address is given"))?;
    let folder = tempfile::tempdir()
        .map_err(|error| RenderError::new(format!("a folder for the trial cannot be made: {error}")))?;
    let trial = fetcher.trying(access, folder.path());
    match kind {
        RepositoryKind::Charts => trial.test_charts(address),
        RepositoryKind::Git => trial.repository(address, "HEAD").map(drop),
    }
    .map_err(|error| out_of_reach(&error))
}

fn render_source(engine: &Engine, request: &SourceRequest) -> Result<RenderedSource, RenderError> {
    let Engine { home, sources, clusters, .. } = engine;
    let wanted: Vec<&ApplicationSource> =
        std::iter::once(&request.source).chain(&request.references).collect();
    if request.fresh {
        wanted.iter().for_each(|source| sources.repositories.expire_address(&source.repo_url));
    }
    let mut app = Application::default();
    app.metadata.name.clone_from(&request.app);
    app.metadata.namespace.clone_from(&home.settings.namespace);
    app.spec.project.clone_from(&request.project);
    app.spec.destination.namespace.clone_from(&request.namespace);
    app.spec.sources = wanted.into_iter().cloned().collect();
    let own = clusters.home();
    let discovery = own.cache.cluster().discovery();
    let own_versions = discovery.api_versions();
    let given = &request.api_versions;
    let is_namespaced = |kind: &GroupVersionKind| discovery.resource(kind).map(|known| known.namespaced);
    let mut checkouts = checkouts(home, sources, app.project());
    if let Some(files) = &request.files {
        checkouts = checkouts.standing_in(files.clone());
    }
    let rendered = render(
        &app,
        &Context {
            sources: &checkouts,
            kube_version: match request.kube_version.as_str() {
                "" => &own.kube_version,
                given => given,
            },
            api_versions: if given.is_empty() { &own_versions } else { given },
            tracking: &home.settings.tracking,
            engine_namespace: &home.settings.namespace,
            is_namespaced: &is_namespaced,
            origins: false,
            mock_secrets: false,
            now: None,
        },
    )?;
    let mut objects: Vec<Value> = rendered.objects.into_iter().map(|object| object.value).collect();
    let masked = &home.installation().argo.masked_annotations;
    for object in &mut objects {
        if let Some(encoded) = encoded_secret(object) {
            *object = encoded;
        }
        mask_secret(&mut [object], masked);
    }
    let first = rendered.sources.into_iter().next();
    let footprint = checkouts.footprint();
    Ok(RenderedSource {
        objects,
        revision: first.as_ref().map(|one| checkouts.describe(&one.revision, &footprint)).unwrap_or_default(),
        source_type: first.and_then(|one| one.source_type),
    })
}
