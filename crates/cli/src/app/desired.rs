//! Desired and live objects of an Application, as the engine sees them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::Context as _;
use futures::{StreamExt as _, stream};
use tiphys_cluster::Cluster;
use tiphys_controller::{Checkouts, open_destination};
use tiphys_model::{Application, ArgoSettings, settings};
use tiphys_render::{Context, Rendered, render};
use tiphys_value::{GroupKind, GroupVersionKind, ObjectExt, ResourceKey, Value};

use super::session::Session;
use crate::{
    clusters::{HOME, cluster_of},
    local_clusters::{Served, kubeconfig_answers},
    repository::{Given, Repository},
    up::kubeconfig_for,
};

/// How many objects are asked for at once.
const AT_ONCE: usize = 16;

/// Which state of the sources counts.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Wanted {
    /// Render this branch, tag or commit, not what targetRevision says.
    #[arg(long, value_name = "REV")]
    pub revision: Option<String>,
    /// Take this folder for the repository that it is a clone of, with its files as they are; by default
    /// what a `tiphys up` serves, if the cluster is one's.
    #[arg(long, visible_alias = "local", value_name = "DIR")]
    pub repo: Option<String>,
    /// Fetch nothing.
    #[arg(long)]
    pub offline: bool,
}

/// The settings of the installation, from its ConfigMaps.
///
/// # Errors
/// They cannot be read.
pub(crate) async fn settings_of(session: &Session) -> anyhow::Result<ArgoSettings> {
    let config_map = session.cluster.resource(&GroupVersionKind::new("", "v1", "ConfigMap")).await?;
    let get = async |name| session.cluster.get(&config_map, &session.namespace, name).await;
    let config = get(settings::CONFIG_MAP).await?;
    let params = get(settings::PARAMS_CONFIG_MAP).await?;
    Ok(ArgoSettings::from_objects(config.as_ref(), params.as_ref()))
}

/// The cluster that an Application is synced to.
///
/// # Errors
/// No cluster Secret declares it, the Secrets may not be read, or it cannot be reached.
pub(crate) async fn destination(session: &Session, app: &Application) -> anyhow::Result<Cluster> {
    let home = &session.cluster;
    let destination = &app.spec.destination;
    if let Some(first) = &session.twin {
        let own = kubeconfig_for(first, destination).filter(|file| kubeconfig_answers(file));
        let Some(own) = own else { return Ok(home.clone()) };
        let cluster = Cluster::connect(Some(&own), None).await?.cluster;
        cluster.discover().await?;
        return Ok(cluster);
    }
    if cluster_of(destination) == HOME {
        return Ok(home.clone());
    }
    let secret = home.resource(&GroupVersionKind::new("", "v1", "Secret")).await?;
    let secrets = home.list(&secret, &session.namespace).await.with_context(|| {
        format!(
            "the Secrets of {}, which say where the cluster of {} is",
            session.namespace, app.metadata.name
        )
    })?;
    Ok(open_destination(home, &secrets.items, destination).await?)
}

/// Renders an Application as the engine would, for the cluster that it is synced to.
///
/// # Errors
/// A source cannot be had, or does not render.
pub(crate) async fn rendered(
    session: &Session,
    cluster: &Cluster,
    app: &Application,
    wanted: &Wanted,
    settings: &ArgoSettings,
) -> anyhow::Result<Rendered> {
    let kube_version = cluster.version().await?;
    let discovery = cluster.discovery();
    let served = session.repository.clone();
    let (mut app, wanted, settings) = (app.clone(), wanted.clone(), settings.clone());
    let namespace = session.namespace.clone();
    let task = tokio::task::spawn_blocking(move || {
        let repositories = repositories(&mut app, &wanted, served)?;
        let checkouts = Checkouts::new(&repositories).with_settings(settings.rendering.clone());
        let is_namespaced = |kind: &GroupVersionKind| discovery.resource(kind).map(|known| known.namespaced);
        let context = Context {
            sources: &checkouts,
            kube_version: &kube_version,
            api_versions: &discovery.api_versions(),
            tracking: &settings.tracking,
            engine_namespace: &namespace,
            is_namespaced: &is_namespaced,
            origins: false,
            mock_secrets: false,
            now: None,
        };
        render(&app, &context).map_err(|error| anyhow::anyhow!("{error:#}"))
    });
    task.await.context("rendering broke off")?
}

/// The repositories that an Application is rendered from: a folder that is given or served, else remote
/// ones.
fn repositories(
    app: &mut Application,
    wanted: &Wanted,
    served: Option<Served>,
) -> anyhow::Result<Arc<tiphys_source::Repositories>> {
    let (place, respect_revisions) = match (&wanted.repo, served) {
        (Some(place), _) => (place.clone(), false),
        (None, Some(served)) => (
            served.folder.to_str().context("the repository's path is not UTF-8")?.to_owned(),
            served.by_revision,
        ),
        (None, None) => {
            if let Some(revision) = &wanted.revision {
                pin(app, revision);
            }
            let fetcher = crate::fetch::fetcher(wanted.offline);
            return Ok(Arc::new(tiphys_source::Repositories::new(Some(fetcher), true)));
        }
    };
    let revision = wanted.revision.as_deref();
    let given = Given { place: &place, revision, path: None, respect_revisions, offline: wanted.offline };
    let repository = Repository::open(&given)?;
    repository.declarations(&[]);
    Ok(repository.repositories)
}

/// Sets the revision of the only source, or of the first.
fn pin(app: &mut Application, revision: &str) {
    let first =
        if app.spec.sources.is_empty() { app.spec.source.as_mut() } else { app.spec.sources.first_mut() };
    if let Some(source) = first {
        revision.clone_into(&mut source.target_revision);
    }
}

/// The key of a target in the cluster: with the destination namespace where it names none.
pub(crate) fn key_of(cluster: &Cluster, target: &Value, app: &Application) -> ResourceKey {
    let mut key = target.resource_key();
    match cluster.discovery().resource(&target.gvk()).map(|resource| resource.namespaced) {
        Some(false) => key.namespace.clear(),
        _ if key.namespace.is_empty() => key.namespace.clone_from(&app.spec.destination.namespace),
        _ => {}
    }
    key
}

/// The live objects at some keys; those that are not there, or whose kind is not served, are left out.
///
/// # Errors
/// The cluster does not answer.
pub(crate) async fn live(
    cluster: &Cluster,
    keys: &BTreeSet<(ResourceKey, String)>,
) -> anyhow::Result<BTreeMap<ResourceKey, Value>> {
    let discovery = cluster.discovery();
    let get = |(key, version): (ResourceKey, String)| {
        let exact = discovery.resource(&GroupVersionKind::new(&key.group, &version, &key.kind));
        let resource =
            exact.or_else(|| discovery.preferred_resource(&GroupKind::new(&key.group, &key.kind))).cloned();
        async move {
            let Some(resource) = resource else { return Ok(None) };
            let found = cluster.get(&resource, &key.namespace, &key.name).await?;
            anyhow::Ok(found.map(|object| (key, object)))
        }
    };
    let found: Vec<_> = stream::iter(keys.iter().cloned().map(get)).buffered(AT_ONCE).collect().await;
    found.into_iter().filter_map(Result::transpose).collect()
}

/// The keys, with versions, of the objects that an Application's status lists.
pub(crate) fn listed(app: &Application) -> BTreeSet<(ResourceKey, String)> {
    let resources = app.status.resources.iter();
    resources
        .map(|one| (ResourceKey::new(&one.group, &one.kind, &one.namespace, &one.name), one.version.clone()))
        .collect()
}
